"""`arco fold` and `arco rebuild`: from events to tables that anybody can query."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from arco.fold.folding import ALL_HEADS, Folding, Round
from arco.fold.folding import Settings as How
from arco.fold.following import Following
from arco.fold.heads import Heads
from arco.fold.manifests import Link, Manifest
from arco.fold.passes import Pass, fold_pass
from arco.fold.rebuilding import rebuild_several
from arco.fold.spark_home import SparkHome
from arco.fold.time_travel import cut_as_of, cut_by_id
from arco.kernel.errors import ArcoError
from arco.read.library import Binding
from arco.storage.keys import Head
from arco.surface.cli.asking import state_named
from arco.surface.cli.domains import domain_named
from arco.surface.cli.flags import Where
from arco.surface.cli.opening import opened
from arco.surface.cli.printing import counted, print_grid, print_json, say, say_aside
from arco.surface.cli.projects import spark_words
from arco.surface.cli.settings import load_settings
from arco.surface.folds import Lake, folding_of, own_session


@asynccontextmanager
async def at_work(where: Where, master: str | None, how: How | None = None) -> AsyncIterator[Folding]:
    """Whoever folds a workspace, with a Spark session when it is needed.

    That is here unless a flag says otherwise, whatever a project's file says: a fold is small, and needs Arco on the executors.
    """
    chosen = (
        own_session("arco fold") if master is None else own_session("arco fold", master, spark_words(where.folder).conf)
    )
    settings = load_settings(where.root, list(where.options), where.folder)
    async with opened(where) as at:
        home = SparkHome(
            chosen, starting=lambda: say_aside("starting Spark …"), told=lambda note: say_aside(f"arco: {note}")
        )
        try:
            async with folding_of(
                at.catalog.parts, Lake(at.place, settings.known, settings.retention), home, how
            ) as folding:
                yield folding
        finally:
            await home.stop()


async def fold(where: Where, *, master: str | None, follow: bool, every_s: float, listing: bool | None, json: bool) -> bool:
    """Fold what is new, once or again and again. True if every head is up to date."""
    async with at_work(where, master, how_to_find(where, listing=listing)) as folding:
        if follow:
            await Following(folding, every_s, lambda done: print_followed(done, json=json)).go_on()
        done = await fold_pass(folding)
        print_pass(done, json=json, quiet=False)
        return not done.failed


def how_to_find(where: Where, *, listing: bool | None) -> How:
    """As a flag says, or else as is set for the root."""
    settings = load_settings(where.root, list(where.options), where.folder)
    return How(listing=settings.fold_lists if listing is None else listing)


async def rebuild(where: Where, heads: Sequence[str], since: str | None, *, master: str | None, json: bool) -> None:
    """Make heads again from every segment there is, or from an earlier state and what was folded after it."""
    wanted = [domain_named(one) for one in heads] or list(ALL_HEADS)
    start = None if since is None else state_named(since)
    async with at_work(where, master) as folding:
        known = {} if start is None else await _published(folding.heads, start)
        made = await rebuild_several(folding, wanted, known)
        await folding.heads.publish_cut(made)
    rows = [(one.head.value, one.manifest) for one in made]
    if json:
        print_json({"heads": {head: _facts(manifest) for head, manifest in rows if manifest is not None}})
        return
    print_grid(("HEAD", "EVENTS", "FILES", "ROWS"), [(head, *_cells(manifest)) for head, manifest in rows])


async def _published(heads: Heads, start: Binding) -> dict[Head, Link]:
    """What each head had published in a state. One that had nothing yet begins with the first segment."""
    if start.snapshot_id is not None:
        cut = await cut_by_id(heads, start.snapshot_id)
    else:
        cut = await cut_as_of(heads, start.as_of_ms or 0)
    return {Head(one.head): one.manifest for one in cut.heads}


def print_followed(done: Pass | ArcoError, *, json: bool) -> None:
    if isinstance(done, ArcoError):
        say_aside(f"arco: {done.one_line()}; it is tried again")
    else:
        print_pass(done, json=json, quiet=True)


def pass_document(done: Pass) -> dict[str, Any]:
    """What a pass came to, for programs."""
    return {
        "snapshot": None if done.root.manifest is None else done.root.manifest.snapshot,
        "heads": {head.value: _round(one) for head, one in done.rounds.items()},
        "merged": [head.value for head in done.merged],
        "failed": {head.value: error.one_line() for head, error in done.failed.items()},
        "took_s": done.took_s,
        "synced": [[one.event_type, one.seconds, one.segments] for one in done.synced],
    }


def print_pass(done: Pass, *, json: bool, quiet: bool) -> None:
    if json:
        print_json(pass_document(done))
        return
    news = [(head, one) for head, one in done.rounds.items() if one.segments]
    if news:
        print_grid(
            ("HEAD", "SEGMENTS", "EVENTS", "REFUSED"),
            [
                (head.value, f"{one.segments:,}", f"{one.events:,}", f"{one.refused:,}" if one.refused else "")
                for head, one in news
            ],
        )
    elif not quiet and not done.failed:
        say("nothing new: everything that was appended is folded")
    for head in done.merged:
        say(f"{head.value}: deltas were merged into a new base")
    for head, error in done.failed.items():
        say_aside(f"{head.value}: {error.one_line()}")
    _print_trouble(done, quiet=quiet)


def _print_trouble(done: Pass, *, quiet: bool) -> None:
    for head, one in done.rounds.items():
        manifest = one.standing.manifest
        if manifest is None or (quiet and not one.segments):
            continue
        if one.refused:
            say(f"{head.value}: {counted(one.refused, 'event')} could not be folded; arco ledger letters tells why")
        if manifest.gaps:
            gaps = counted(len(manifest.gaps) + manifest.more_gaps, "gap")
            say(f"{head.value}: segments are missing ({gaps}); arco ledger stats tells which")
        for name in one.unreadable:
            say(f"{head.value}: {name} is no receipt; arco verify --deep explains it")


def _round(one: Round) -> dict[str, Any]:
    return {"segments": one.segments, "receipts": one.receipts, "events": one.events, "refused": one.refused}


def _facts(manifest: Manifest) -> dict[str, Any]:
    files = list(manifest.files())
    return {"events": manifest.events, "files": len(files), "rows": sum(file.rows for file in files)}


def _cells(manifest: Manifest | None) -> tuple[str, ...]:
    return () if manifest is None else tuple(f"{value:,}" for value in _facts(manifest).values())

"""`arco fold` and `arco rebuild`: from events to tables that anybody can query."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from arco.fold.folding import ALL_HEADS, Folding, Round
from arco.fold.folding import Settings as How
from arco.fold.following import Following
from arco.fold.manifests import Manifest
from arco.fold.passes import Pass, fold_pass
from arco.fold.rebuilding import rebuild as rebuilt
from arco.fold.spark_home import SparkHome
from arco.kernel.errors import ArcoError, InvalidInput
from arco.storage.keys import Head
from arco.surface.cli.flags import Where
from arco.surface.cli.opening import opened
from arco.surface.cli.printing import counted, print_grid, print_json, say, say_aside
from arco.surface.cli.settings import load_settings
from arco.surface.folds import Lake, folding_of, own_session


@asynccontextmanager
async def at_work(where: Where, master: str, how: How | None = None) -> AsyncIterator[Folding]:
    """Whoever folds a workspace, with a Spark session when it is needed."""
    settings = load_settings(where.root, list(where.options), where.folder)
    async with opened(where) as at:
        home = SparkHome(own_session("arco fold", master), starting=lambda: say_aside("starting Spark …"))
        try:
            async with folding_of(
                at.catalog.parts, Lake(at.place, settings.known, settings.retention), home, how
            ) as folding:
                yield folding
        finally:
            await home.stop()


async def fold(where: Where, *, master: str, follow: bool, every_s: float, listing: bool, json: bool) -> bool:
    """Fold what is new, once or again and again. True if every head is up to date."""
    async with at_work(where, master, How(listing=listing)) as folding:
        if follow:
            await Following(folding, every_s, lambda done: _print_followed(done, json=json)).go_on()
        done = await fold_pass(folding)
        _print(done, json=json, quiet=False)
        return not done.failed


async def rebuild(where: Where, heads: Sequence[str], *, master: str, json: bool) -> None:
    """Make heads again from every segment there is."""
    wanted = [_head(one) for one in heads] or list(ALL_HEADS)
    async with at_work(where, master) as folding:
        made = [await rebuilt(folding, head) for head in wanted]
        await folding.heads.publish_cut(made)
    rows = [(one.head.value, one.manifest) for one in made]
    if json:
        print_json({"heads": {head: _facts(manifest) for head, manifest in rows if manifest is not None}})
        return
    print_grid(("HEAD", "EVENTS", "FILES", "ROWS"), [(head, *_cells(manifest)) for head, manifest in rows])


def _print_followed(done: Pass | ArcoError, *, json: bool) -> None:
    if isinstance(done, ArcoError):
        say_aside(f"arco: {done.one_line()}; it is tried again")
    else:
        _print(done, json=json, quiet=True)


def _head(word: str) -> Head:
    try:
        found = Head(word)
    except ValueError:
        found = None
    if found not in ALL_HEADS:
        raise InvalidInput(f"there is no domain {word!r}", hint=f"one of {', '.join(head.value for head in ALL_HEADS)}")
    return found


def _print(done: Pass, *, json: bool, quiet: bool) -> None:
    if json:
        print_json(
            {
                "snapshot": None if done.root.manifest is None else done.root.manifest.snapshot,
                "heads": {head.value: _round(one) for head, one in done.rounds.items()},
                "merged": [head.value for head in done.merged],
                "failed": {head.value: error.one_line() for head, error in done.failed.items()},
            }
        )
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

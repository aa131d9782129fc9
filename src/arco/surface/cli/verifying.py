"""`arco verify`: the catalog's own self-test, for people and for programs."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING

import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as Bars

from arco.catalog.repairing import Repairs
from arco.catalog.repairing import repair as repair_catalog
from arco.catalog.verify import verify as verify_catalog
from arco.fold.heads import Heads
from arco.kernel.errors import ArcoError
from arco.storage.findings import Progress, Report
from arco.surface.cli.flags import Where
from arco.surface.cli.opening import Opened, opened
from arco.surface.cli.printing import counted, print_json, say
from arco.surface.cli.settings import load_settings

if TYPE_CHECKING:
    from arco.read.agreement import Disagreement

_FILES = (("snapshots", "snapshot"), ("manifests", "manifest"), ("data_files", "data file"))
_OTHERS = {
    "fold": (("fold_manifests", "manifest"), ("fold_files", "file"), ("consumed_lists", "list"), ("dead_letters", "dead letter")),
    "ledger": (("segments", "segment"), ("archived_segments", "archived segment")),
    "requests": (("transactions", "transaction"), ("staged_intents", "staged table"), ("markers", "marker"),
                 ("nameless_pointers", "nameless pointer")),
    "feed": (("feed_pages", "page"), ("feed_checkpoints", "checkpoint")),
    "runs": (("runs", "run"), ("run_entries", "log record"), ("run_claims", "claim"), ("asked_runs", "asked run"),
             ("task_logs", "task log")),
    "projects": (("deployments", "deployment"), ("schedules", "schedule"), ("planning_facts", "planning snapshot")),
}  # fmt: skip
"""What is counted beside the catalog itself, as people are told."""


async def verify(where: Where, *, files: bool, deep: bool, state: bool, repair: bool, json: bool) -> bool:
    """Print every finding; True if there are none."""
    repairs = Repairs()
    disagreements: tuple[Disagreement, ...] = ()
    reach_s = load_settings(where.root, list(where.options), where.folder).retention.reach_s
    async with opened(where) as at:
        await at.need_something()
        if not json:
            say(f"Verifying {at.warehouse} in {at.root}")
        if repair:
            repairs = await _repaired(at)
        with _watched() as progress:
            report = await verify_catalog(at.catalog, files=files, deep=deep, progress=progress)
            await import_module("arco.surface.cli.looking_over").look_over(at.catalog, report, progress, reach_s)
        if state and report.clean:
            disagreements = await import_module("arco.surface.cli.agreeing").disagreements_of(at)
    clean = report.clean and not disagreements
    if json:
        _print_json(at, report, clean=clean, disagreements=disagreements if state else None, repairs=repairs)
    else:
        _print_repairs(repairs, asked=repair)
        _print(report)
        if state:
            _print_state(report, disagreements)
    return clean


async def _repaired(at: Opened) -> Repairs:
    """What can be made again: of the catalog, and then what the folded state is reached by."""
    parts = at.catalog.parts
    found = await repair_catalog(at.catalog)
    done, failed = list(found.done), list(found.failed)
    heads = Heads(parts.tier1.store, parts.scope, parts.clock, parts.entropy)
    try:
        before = (await heads.read_root()).manifest
        after = (await heads.publish_cut()).manifest
        if after is not None and (before is None or before.snapshot != after.snapshot):
            done.append("the root of the state names what was folded last")
    except ArcoError as error:
        failed.append(error.one_line())
    return Repairs(tuple(done), tuple(failed))


def _print_repairs(repairs: Repairs, *, asked: bool) -> None:
    for text in repairs.done:
        say(f"  repaired: {text}")
    for text in repairs.failed:
        say(f"  not repaired: {text}")
    if asked and not repairs.done and not repairs.failed:
        say("  there was nothing to repair that can be derived")


@contextmanager
def _watched() -> Iterator[Progress]:
    """Bars on a terminal while it takes long, and nothing of them after."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Bars(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        tasks = {}

        def progress(what: str, done: int, in_all: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=in_all)
            bars.update(tasks[what], completed=done, total=in_all)

        yield progress


def _print_json(
    at: Opened, report: Report, *, clean: bool, disagreements: "tuple[Disagreement, ...] | None", repairs: Repairs
) -> None:
    compared = {} if disagreements is None else {"disagreements": msgspec.to_builtins(disagreements)}
    print_json(
        {
            "root": at.root,
            "warehouse": at.warehouse,
            "clean": clean,
            "counts": report.counts,
            "findings": report.findings,
            "notes": report.notes,
            "repaired": repairs.done,
            "not_repaired": repairs.failed,
            **compared,
        }
    )


def _print(report: Report) -> None:
    if any(report.counts.values()):
        _print_counts(report.counts)
    for note in report.notes:
        say(f"  note: {note}")
    if report.clean:
        say("Clean.")
        return
    say(f"{counted(len(report.findings), 'finding')}:")
    for finding in report.findings:
        say(f"  {finding.code}: {finding.one_line()}")


def _print_state(report: Report, disagreements: "tuple[Disagreement, ...]") -> None:
    if not report.clean:
        say("The state was not compared: first the catalog.")
    elif not disagreements:
        say("The state says what tables, runs and deployments say.")
    else:
        say(f"{counted(len(disagreements), 'disagreement')} of the state; arco rebuild makes it again:")
        for one in disagreements:
            say(f"  {one.about} {one.subject}: {one.truth or 'nothing'}, and the state says {one.state or 'nothing'}")


def _print_counts(counts: dict[str, int]) -> None:
    def number(word: str) -> int:
        return counts.get(word, 0)

    beside, unseen = number("commits_beside_the_chain"), number("commits_not_looked_at")
    others = f", {beside:,} beside it that never counted" if beside else ""
    others += f", {unseen:,} that could not be looked at: it is broken above them" if unseen else ""
    say(f"  commits   {number('commits'):,} in the chain{others}")
    say(f"  state     {counted(number('state_files'), 'file')}, {counted(number('commits_in_the_tail'), 'commit')} since")
    if "namespaces" in counts:
        parts = [
            counted(number("namespaces"), "namespace"),
            counted(number("iceberg_tables"), "Iceberg table"),
            counted(number("iceberg_views"), "view"),
            counted(number("other_tables"), "other table"),
            f"{number('dropped'):,} dropped",
        ]
        say(f"  names     {', '.join(parts)}")
    for kind, its in _OTHERS.items():
        if any(number(word) for word, _ in its):
            say(f"  {kind:<9} {', '.join(counted(number(word), said) for word, said in its)}")
    if number("under_way"):
        say(
            f"  under way {number('under_way'):,}: a drop, restore, registration or transaction that whoever comes next finishes"
        )
    if number("receipts_to_be_written"):
        say(f"  receipts  {number('receipts_to_be_written'):,} still to be written, by the next commit of each table")
    if "receipts" in counts:
        say(f"  receipts  {number('receipts'):,} read")
    if "snapshots" in counts:
        looked_at = ", ".join(counted(number(word), said) for word, said in _FILES)
        beyond = f", {number('files_out_of_reach'):,} out of reach" if number("files_out_of_reach") else ""
        say(f"  files     {looked_at}{beyond}")

"""`arco maintain`: what is worth to be rewritten, and what was, for people and for programs."""

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from arco.catalog.model import Entry, Format, Kind
from arco.catalog.spelling import parse_name
from arco.fold.spark_home import SparkHome
from arco.fold.spark_session import SparkSettings
from arco.kernel.errors import InvalidInput
from arco.ledger.run_state import RunState
from arco.quality.gates import exit_code
from arco.servo.execute.maintaining import Maintenance, Surveyed
from arco.servo.plan.document import PlannedTask
from arco.servo.schedule.executor import NoObserver
from arco.surface.cli.flags import Where
from arco.surface.cli.opening import Opened, opened
from arco.surface.cli.printing import counted, print_grid, print_json, say, say_aside, size
from arco.surface.cli.projects import spark_words
from arco.surface.cli.run_display import RunDisplay
from arco.surface.cli.settings import load_settings

_GROUPS_SHOWN_MAX = 20
EXIT_UNREAD = 1


async def maintain(
    where: Where, tables: Sequence[str], *, everything: bool, files_min: int, master: str | None, dry_run: bool, json: bool
) -> int:
    """Rewrite what is worth it, table by table. The exit code says what came of the run."""
    if bool(tables) == everything:
        raise InvalidInput("which tables?", hint="name some, or say --all")
    settings = load_settings(where.root, list(where.options), where.folder)
    async with opened(where) as at:
        entries = await _entries(at, tables)
        work = Maintenance(catalog=at.catalog, options=settings.known, by=at.author.principal, files_min=files_min)
        surveyed = await work.survey(entries)
        if not everything:
            _refuse(surveyed, dry_run=dry_run)
        started = None if dry_run else await work.start(surveyed)
        if started is None:
            _print_survey(surveyed, json=json)
            return _told(surveyed, json=json)
        log = Path(tempfile.gettempdir()) / "arco-maintain-spark.log"
        words = spark_words(where.folder)
        home = SparkHome(
            SparkSettings(master or words.master, "arco maintain", words.conf, words.jars, log_file=log),
            at.place,
            settings.known,
            starting=lambda: say_aside("starting Spark …"),
            told=lambda note: say_aside(f"arco: {note}"),
        )
        console = Console(highlight=False, stderr=json)
        try:
            with RunDisplay(console, started.plan, _said, live=console.is_terminal and not json) as display:
                watched = replace(work, observer=NoObserver() if json else display)
                state = await watched.drive(started, surveyed, home)
        finally:
            await home.stop()
        _print_done(str(started.log.run), started.plan.spec.tasks, surveyed, state, json=json)
        return exit_code(its.status.value for its in state.tasks.values()) or _told(surveyed, json=json)


async def _entries(at: Opened, tables: Sequence[str]) -> list[Entry]:
    if tables:
        return [await at.need_iceberg_table(parse_name(name)) for name in tables]
    names = await at.inventory.names()
    every = (one for one in names.entries.values() if one.format is Format.ICEBERG and one.kind is Kind.TABLE)
    return sorted(every, key=lambda one: one.full_name)


def _refuse(surveyed: Sequence[Surveyed], *, dry_run: bool) -> None:
    """Whoever names a table hears that it cannot be rewritten before anything is done for the others."""
    for one in surveyed:
        if one.unread is not None:
            raise InvalidInput(f"{one.name}: {one.unread.message}", hint=one.unread.hint) from one.unread
        if one.refused and not dry_run:
            raise InvalidInput(f"{one.name}: {one.refused}", hint="")


def _told(surveyed: Sequence[Surveyed], *, json: bool) -> int:
    """Which of all tables could not be looked at: the exit code that it makes."""
    unread = [f"{one.name}: {one.unread.one_line()}" for one in surveyed if one.unread is not None]
    for text in unread if not json else ():
        say_aside(f"arco: {text}")
    return EXIT_UNREAD if unread else 0


def _said(task: PlannedTask) -> str:
    return "; ".join(one.detail for one in task.because)


def _print_survey(surveyed: Sequence[Surveyed], *, json: bool) -> None:
    if json:
        print_json({"tables": [_document(one) for one in surveyed]})
        return
    rows = [
        (
            one.name,
            f"{sum(len(group.files) for group in one.rewriting.groups):,}" if one.rewriting.groups else "",
            size(sum(group.size_bytes for group in one.rewriting.groups)) if one.rewriting.groups else "",
            f"{len(one.rewriting.manifests):,}" if one.rewriting.manifests else "",
            one.refused or ", ".join(f"{count:,} {why}" for why, count in one.rewriting.left.items()),
        )
        for one in surveyed
        if one.unread is None
    ]
    if not any(not one.rewriting.is_empty or one.refused for one in surveyed):
        if len(rows) == len(surveyed):
            say("there is nothing that would be worth rewriting")
        return
    print_grid(("TABLE", "FILES", "SIZE", "MANIFESTS", "STAYS AS IT IS"), rows, folds=(4,))
    for one in surveyed:
        for group in one.rewriting.groups[:_GROUPS_SHOWN_MAX]:
            which = ", ".join(map(str, group.partition)) or "all of it"
            say(f"  {one.name} ({which}): {group.why}, {group.rows:,} rows, {size(group.size_bytes)}")
        if len(one.rewriting.groups) > _GROUPS_SHOWN_MAX:
            say(f"  and {counted(len(one.rewriting.groups) - _GROUPS_SHOWN_MAX, 'more partition')} of {one.name}")


def _document(one: Surveyed) -> dict[str, Any]:
    groups = [
        {
            "partition": [str(value) for value in group.partition],
            "why": group.why,
            "files": [file.location for file in group.files],
            "rows": group.rows,
            "bytes": group.size_bytes,
        }
        for group in one.rewriting.groups
    ]
    manifests = [manifest.manifest_path for manifest in one.rewriting.manifests]
    return {
        "table": one.name,
        "groups": groups,
        "manifests": manifests,
        "left": dict(one.rewriting.left),
        "refused": one.refused,
        "unread": None if one.unread is None else one.unread.one_line(),
    }


def _print_done(
    run: str, tasks: Sequence[PlannedTask], surveyed: Sequence[Surveyed], state: RunState, *, json: bool
) -> None:
    done = [_task_document(task, state) for task in tasks]
    if json:
        refused = {one.name: one.refused for one in surveyed if one.refused}
        unread = {one.name: one.unread.one_line() for one in surveyed if one.unread is not None}
        status = state.run.status.value
        print_json({"run": run, "status": status, "tasks": done, "refused": refused, "unread": unread})
        return
    for one in surveyed:
        if one.refused:
            say_aside(f"arco: {one.name}: {one.refused}")
    rows = sum(one["rows"] for one in done)
    say(f"{state.run.status.value}: run {run}, {counted(len(done), 'task')}, {rows:,} rows in other files")


def _task_document(task: PlannedTask, state: RunState) -> dict[str, Any]:
    its = state.tasks[task.id]
    written = {} if its.staged is None else its.staged.written
    return {
        "table": task.asset,
        "kind": task.inputs[0].kind,
        "why": _said(task),
        "state": its.status.value,
        "files_before": len(task.inputs[0].files),
        "files": written.get("files", 0),
        "rows": written.get("rows", 0),
        "bytes": written.get("bytes", 0),
        "snapshot_id": its.snapshot_id,
        "failure": None if its.failure is None else its.failure.message,
    }

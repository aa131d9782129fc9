"""A run as a person watches it: live at a terminal, one line for each task elsewhere, and what came of it at the end.

What must never enter: deciding anything about the run.
"""

from collections.abc import Callable, Mapping
from typing import Any, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from arco.ledger.run_entries import (
    AnyEntry,
    OutputStaged,
    PublishBegun,
    RunCreated,
    RunPublished,
    RunWithheld,
    TaskEntry,
    TaskPublished,
    TaskRetried,
    TaskStaged,
)
from arco.ledger.run_state import ACTIVE, ENDED, RunState, TaskState, TaskStatus
from arco.servo.plan.document import Plan, PlannedTask
from arco.surface.cli.printing import shown

Said = Callable[[PlannedTask], str]

_MARKS = {
    TaskStatus.SUCCEEDED: ("✓", "green"),
    TaskStatus.FAILED: ("✗", "red"),
    TaskStatus.BLOCKED: ("■", "yellow"),
    TaskStatus.QUARANTINED: ("◆", "yellow"),
    TaskStatus.SKIPPED: ("-", "dim"),
    TaskStatus.CANCELLED: ("-", "dim"),
}


class RunDisplay:
    """Shows a run as it happens. It is the driver's observer."""

    def __init__(self, console: Console, plan: Plan, said: Said, *, live: bool) -> None:
        self._console = console
        self._said = said
        self._tasks = {task.id: task for task in plan.spec.tasks}
        self._assets = list(dict.fromkeys(task.asset for task in plan.spec.tasks))
        self._now: dict[str, Mapping[str, Any]] = {}
        self._state: RunState | None = None
        self._live = Live(console=console, refresh_per_second=4, get_renderable=self._picture) if live else None

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def found(self, state: RunState) -> None:
        """How far the run is before anything is told."""
        self._state = state

    # What the driver tells

    def saw(self, entry: AnyEntry, state: RunState) -> None:
        self._state = state
        if state.run.is_atomic and self._saw_together(entry, state):
            return
        if isinstance(entry, TaskRetried):
            self._line("↻", "yellow", entry.task, f"attempt {entry.attempt}: {entry.failure.message}; it is tried again")
        elif isinstance(entry, TaskEntry) and not isinstance(entry, OutputStaged):
            its = state.task(entry.task)
            if its.status in ENDED:
                self._ended(entry.task, its)

    def _saw_together(self, entry: AnyEntry, state: RunState) -> bool:
        """What is said of an atomic run only: a task that is staged is done, and is published with all others."""
        match entry:
            case TaskStaged():
                self._line("✓", "cyan", entry.task, f"staged: {ended_text(state.task(entry.task), self._tasks)}")
            case PublishBegun():
                self._console.print(Text(f"  … publishing {said_of_tables(state)} in one transaction"), soft_wrap=True)
            case RunPublished():
                self._console.print(Text("  ✓ published together", "green"), soft_wrap=True)
            case RunWithheld():
                self._console.print(Text(f"  ✗ nothing was published: {shown(entry.reason)}", "red"), soft_wrap=True)
            case _:
                return isinstance(entry, TaskPublished)
        return True

    def progressed(self, task: str, facts: Mapping[str, Any]) -> None:
        self._now[task] = facts

    # Lines

    def _ended(self, task: str, its: TaskState) -> None:
        mark, style = _MARKS[its.status]
        self._line(mark, style, task, ended_text(its, self._tasks))
        for reason in warnings_of(its):
            self._note(f"{reason}")
        if its.failure is not None and its.failure.hint:
            self._note(its.failure.hint)

    def _line(self, mark: str, style: str, task: str, text: str) -> None:
        planned = self._tasks[task]
        line = Text.assemble(
            ("  " + mark, style), " ", (planned.asset, "bold"), "  ", (self._said(planned), "dim"), "  ", shown(text)
        )
        self._console.print(line, soft_wrap=True)

    def _note(self, text: str) -> None:
        self._console.print(Text(f"      {shown(text)}", "dim"), soft_wrap=True)

    # The picture

    def _picture(self) -> RenderableType:
        """What runs at the moment, and how far everything is."""
        state = self._state
        if state is None:
            return Text("  starting Spark …", "dim")
        grid = Table.grid(padding=(0, 2))
        for task, its in state.tasks.items():
            if its.status in ACTIVE:
                grid.add_row(*self._running(task))
        ended = sum(its.status in ENDED for its in state.tasks.values())
        total = Table.grid(padding=(0, 2))
        total.add_row("  ", ProgressBar(len(state.tasks), ended, width=30), f"{ended} of {len(state.tasks)} tasks")
        return Group(grid, total)

    def _running(self, task: str) -> tuple[RenderableType, ...]:
        planned, now = self._tasks[task], self._now.get(task, {})
        done, tasks = int(now.get("tasks_done", 0)), int(now.get("tasks", 0))
        rows = f"{now['rows']:,} rows" if "rows" in now else ""
        return (
            "  …",
            Text(planned.asset, "bold"),
            Text(self._said(planned), "dim"),
            str(now.get("phase", "waiting")),
            ProgressBar(max(tasks, 1), done, width=12),
            rows,
        )


def ended_text(its: TaskState, tasks: Mapping[str, PlannedTask]) -> str:
    """How a task ended, in a line."""
    match its.status:
        case TaskStatus.FAILED if its.failure is not None:
            return its.failure.message
        case TaskStatus.SKIPPED:
            because = tasks.get(its.reason)
            return f"skipped: {its.reason if because is None else because.asset} was not published"
        case TaskStatus.CANCELLED:
            return f"cancelled: {its.reason}"
        case TaskStatus.BLOCKED | TaskStatus.QUARANTINED:
            return f"held back: {its.reason}{_took(its)}"
        case _:
            return f"{_counted(its)}{_took(its)}"


def _counted(its: TaskState) -> str:
    if its.staged is None:
        return "published before"
    written, checks = its.staged.written, its.staged.checks
    parts = [f"{written.get('rows', 0):,} rows"]
    if aside := written.get("rows_set_aside"):
        parts.append(f"{aside:,} set aside")
    if checks:
        failed = sum(not check["passed"] for check in checks)
        parts.append(f"{len(checks)} checks" + (f", {failed} failed" if failed else ""))
    return ", ".join(parts)


def _took(its: TaskState) -> str:
    if its.started_ms is None or its.ended_ms is None:
        return ""
    return f", {(its.ended_ms - its.started_ms) / 1000:.1f} s"


def warnings_of(its: TaskState) -> list[str]:
    """What its checks found, strongest first, and what was done about it."""
    if its.staged is None:
        return []
    aside = {check["check"] for check in its.staged.checks if check.get("quarantined_rows")}
    return [
        f"{one['check']} ({one['severity']} → {'set aside' if one['check'] in aside else one['action']}): {one['message']}"
        for one in its.staged.decision.get("reasons", ())
    ]


def said_of_tables(state: RunState) -> str:
    """How many tables an atomic run changes, as far as it is."""
    tables = len(state.staged_commits)
    return f"{tables} table{'s' * (tables != 1)}"


def started_line(run: str, created: RunCreated | None, tasks: int, partitions: int) -> str:
    """The first line of a run."""
    at_once = "" if created is None else f", {created.max_parallelism} at once"
    together = ", all published together or nothing" if created is not None and created.atomic else ""
    sizes = f"{tasks} task{'s' * (tasks != 1)}, {partitions:,} partition{'s' * (partitions != 1)}"
    return f"run {run}: {sizes}{at_once}{together}"

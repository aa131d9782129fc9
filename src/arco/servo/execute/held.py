"""What was held back and what became of it, folded from the ledger: outputs on branches, and rows set aside.

Pure. The first event of each counts, as everywhere; whether a branch is still there only the table can say.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from arco.iceberg.metadata import TableMetadata
from arco.iceberg.shape import JsonObject
from arco.ledger.envelope import Event
from arco.ledger.execution_events import (
    MATERIALIZATION_COMPLETED,
    OUTPUT_DISCARDED,
    OUTPUT_HELD,
    OUTPUT_RELEASED,
    OutputDiscarded,
    OutputHeld,
    OutputReleased,
)
from arco.ledger.materializations import MATERIALIZATION
from arco.servo.execute.standing import ancestors
from arco.servo.plan.recorded import OUTPUT

ROWS = "rows"


@dataclass(frozen=True, slots=True)
class Settled:
    """What somebody decided."""

    verdict: str
    who: str
    why: str
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """One thing on the desk. `what`: an output on a branch, or the rows that were set aside when it was made."""

    materialization_id: str
    what: str
    asset: str
    asset_id: str
    run_id: str | None
    task_id: str | None
    partitions: list[dict[str, Any]]
    held_ms: int
    action: str
    reasons: tuple[str, ...] = ()
    branch: str | None = None
    rows: int | None = None
    completed: dict[str, Any] | None = None
    settled: Settled | None = None

    @property
    def id(self) -> str:
        """As people name it."""
        return self.materialization_id if self.what == OUTPUT else f"{self.materialization_id}/{self.what}"

    @property
    def table_uuid(self) -> str | None:
        return None if self.completed is None else str(self.completed["table_uuid"])


def held_outputs(events: Iterable[Event]) -> list[Held]:
    """Every output that was ever held back, the newest last."""
    found: dict[str, Held] = {}
    decided = decisions(events := list(events))
    for event in events:
        if event.type != OUTPUT_HELD:
            continue
        it = OutputHeld.of(event)
        one = Held(
            materialization_id=it.materialization_id,
            what=OUTPUT,
            asset=it.asset,
            asset_id=it.asset_id,
            run_id=it.run_id,
            task_id=it.task_id,
            partitions=it.partitions,
            held_ms=event.time.time_ms,
            action=it.action,
            reasons=it.reasons,
            branch=it.branch,
            rows=None if it.completed is None else int(it.completed["rows"]),
            completed=it.completed,
            settled=decided.get((it.materialization_id, OUTPUT)),
        )
        found.setdefault(it.materialization_id, one)
    return list(found.values())


def decisions(events: Iterable[Event]) -> dict[tuple[str, str], Settled]:
    """What people decided, by materialization and by what it is about."""
    found: dict[tuple[str, str], Settled] = {}
    for event in events:
        if event.type == OUTPUT_RELEASED:
            released = OutputReleased.of(event)
            verdict = Settled("released", released.who, released.why, released.settled_ms)
            found.setdefault((released.materialization_id, released.what), verdict)
        elif event.type == OUTPUT_DISCARDED:
            gone = OutputDiscarded.of(event)
            found.setdefault(
                (gone.materialization_id, gone.what), Settled("discarded", gone.who, gone.why, gone.settled_ms)
            )
    return found


def published(events: Iterable[Event]) -> dict[str, dict[str, Any]]:
    """What was said of each output that was published, by its materialization."""
    found: dict[str, dict[str, Any]] = {}
    for event in events:
        if event.type == MATERIALIZATION_COMPLETED:
            found.setdefault(str(event.data["materialization_id"]), event.data)
    return found


def rows_set_aside(
    table: TableMetadata, decided: dict[tuple[str, str], Settled], made: dict[str, dict[str, Any]]
) -> list[Held]:
    """The rows that each task set aside, from the history of the table that has them. `made`: the outputs they belong to."""
    by_task = [one for one in reversed(ancestors(table)) if MATERIALIZATION in (one.get("summary") or {})]
    return [_rows(one, decided, made) for one in by_task]


def still_open(held: Iterable[Held]) -> list[Held]:
    return [one for one in held if one.settled is None]


def with_branch(one: Held, table: TableMetadata | None) -> Held:
    """The same, without a branch that is not there any more."""
    is_there = table is not None and one.branch in table.refs
    return one if is_there or one.branch is None else replace(one, branch=None)


def _rows(snapshot: JsonObject, decided: dict[tuple[str, str], Settled], made: dict[str, dict[str, Any]]) -> Held:
    said = snapshot["summary"]
    materialization_id = str(said[MATERIALIZATION])
    completed = made.get(materialization_id)
    return Held(
        materialization_id=materialization_id,
        what=ROWS,
        asset=str(said.get("arco.asset", "")),
        asset_id=str(said.get("arco.asset-id", "")),
        run_id=said.get("arco.run-id"),
        task_id=str(said.get("arco.task-id", "")).removesuffix("/quarantine") or None,
        partitions=[] if completed is None else completed["partitions"],
        held_ms=int(snapshot["timestamp-ms"]),
        action="rows set aside",
        rows=int(said.get("added-records", 0)),
        completed=completed,
        settled=decided.get((materialization_id, ROWS)),
    )

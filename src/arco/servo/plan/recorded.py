"""From rows of state to facts: what has been published of each asset, what is held back of it, and by whom.

The rows come from the folded state, from events that are not folded, or from both: the rules are those of every fold, and the
order in which rows arrive changes nothing. Of the publishes of one range only the last is a fact: what lies under it decides
nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import msgspec

from arco.fold.joins import joined
from arco.fold.publish_table import PUBLISHES
from arco.fold.tables import HELD_OUTPUTS, QUARANTINES, SETTLED_OUTPUTS
from arco.fold.vocabulary import Row
from arco.ledger.execution_events import CheckFacts
from arco.ledger.payloads import SERVO
from arco.servo.plan.facts import HeldOutput, Materialization, QuarantineWord

OUTPUT = "output"
"""What a decision is about, if it is about a whole output and not about rows that were set aside."""

_DISCARDED = "discarded"


@dataclass(frozen=True, slots=True)
class Publish:
    """A materialization with the range that it stands for, and where it lies among those of the same range."""

    made: Materialization
    range: str
    order: str


@dataclass(slots=True)
class Recorded:
    """What is recorded of one asset. Publishes are in no order: which of them stand, the table decides."""

    publishes: dict[str, Publish] = field(default_factory=dict)
    held: tuple[HeldOutput, ...] = ()
    quarantined: tuple[QuarantineWord, ...] = ()


def recorded(rows: Mapping[str, Iterable[Row]], names: Mapping[str, str]) -> dict[str, Recorded]:
    """What is recorded of each asset by its key now. `names` maps asset ids to keys: a renamed asset keeps what it published."""
    found: dict[str, Recorded] = {key: Recorded() for key in names.values()}
    for row in rows[PUBLISHES.name]:
        key = names.get(row["asset_id"])
        if key is not None:
            one, known = _publish(row), found[key].publishes.get(row["materialization_id"])
            if known is None or known.order < one.order:
                found[key].publishes[one.made.id] = one
    decided = joined(SETTLED_OUTPUTS, rows[SETTLED_OUTPUTS.name]).values()
    discarded = {row["materialization_id"] for row in decided if (row["what"], row["verdict"]) == (OUTPUT, _DISCARDED)}
    for row in joined(HELD_OUTPUTS, rows[HELD_OUTPUTS.name]).values():
        key = names.get(row["asset_id"])
        if key is not None and row["told_by"] == SERVO and row["materialization_id"] not in discarded:
            found[key].held += (_held(row),)
    for row in joined(QUARANTINES, rows[QUARANTINES.name]).values():
        key = names.get(row["asset_id"])
        if key is not None:
            found[key].quarantined += (_word(row),)
    for its in found.values():
        its.held = tuple(sorted(its.held, key=attrgetter("position", "id")))
        its.quarantined = tuple(sorted(its.quarantined, key=attrgetter("order")))
    return found


def on_top(publishes: Iterable[Publish]) -> set[str]:
    """The ids of the publishes that no later one of exactly the same range lies over."""
    last: dict[tuple[str, str], Publish] = {}
    for one in publishes:
        place = one.made.table_uuid, one.range
        if place not in last or last[place].order < one.order:
            last[place] = one
    return {one.made.id for one in last.values()}


def _publish(row: Row) -> Publish:
    made = Materialization(
        id=row["materialization_id"],
        run_id=row["run_id"],
        task_id=row["task_id"],
        partitions=_document(row["partitions"]),
        code=row["code"],
        inputs=_document(row["inputs"]),
        snapshot_id=row["snapshot_id"],
        published_ms=row["published_at"],
        position=str(row["position"]),
        input_snapshots=_document(row["input_snapshots"]),
        rows=row["rows"],
        bytes=row["bytes"],
        checks_failed=tuple(row["checks_failed"]),
        table_uuid=row["table_uuid"],
        started_ms=row["started_at"],
        checks=msgspec.json.decode(row["checks"], type=tuple[CheckFacts, ...]),
    )
    return Publish(made, row["partitions"], row["publish_order"])


def _held(row: Row) -> HeldOutput:
    return HeldOutput(
        id=row["materialization_id"],
        run_id=row["run_id"],
        partitions=_document(row["partitions"]),
        action=row["action"],
        reasons=tuple(row["reasons"]),
        branch=row["branch"],
        position=row["held_order"].partition(":")[0],  # an order of what is told begins with where it stands
    )


def _word(row: Row) -> QuarantineWord:
    return QuarantineWord(
        partitions=_document(row["partitions"]),
        quarantined=row["quarantined"],
        who=row["who"],
        why=row["why"],
        materialization_id=row["materialization_id"] or None,
        said_ms=row["said_at"],
        order=row["said_order"],
    )


def _document(text: str) -> Any:
    return msgspec.json.decode(text)

"""From events to facts: what has been published of each asset, folded in memory.

The rules are those of every fold of the ledger: the first event of a materialization counts, later positions lie over earlier
ones, and the order in which events arrive changes nothing.
"""

from collections.abc import Iterable

import msgspec

from arco.ledger.envelope import Event
from arco.ledger.execution_events import (
    MATERIALIZATION_COMPLETED,
    OUTPUT_DISCARDED,
    OUTPUT_HELD,
    MaterializationCompleted,
    OutputDiscarded,
    OutputHeld,
)
from arco.servo.plan.facts import AssetFacts, HeldOutput, Materialization

OUTPUT = "output"
"""What a decision is about, if it is about a whole output and not about rows that were set aside."""


def recorded(events: Iterable[Event], names: dict[str, str]) -> dict[str, AssetFacts]:
    """The facts of each asset by its key now. `names` maps asset ids to keys: a renamed asset keeps what it published."""
    made: dict[str, dict[str, Materialization]] = {}
    held: dict[str, dict[str, HeldOutput]] = {}
    discarded: set[str] = set()
    for event in events:
        if event.type == MATERIALIZATION_COMPLETED:
            done = MaterializationCompleted.of(event)
            key = names.get(done.asset_id)
            if key is not None:
                made.setdefault(key, {}).setdefault(done.materialization_id, _fact(done, str(event.position)))
        elif event.type == OUTPUT_HELD:
            kept = OutputHeld.of(event)
            key = names.get(kept.asset_id)
            if key is not None:
                held.setdefault(key, {}).setdefault(kept.materialization_id, _held(kept, str(event.position)))
        elif event.type == OUTPUT_DISCARDED:
            gone = OutputDiscarded.of(event)
            discarded |= {gone.materialization_id} if gone.what == OUTPUT else set()
    facts: dict[str, AssetFacts] = {}
    for key in sorted({*made, *held}):
        ordered = tuple(sorted(made.get(key, {}).values(), key=lambda one: (one.position, one.id)))
        still = (one for one in held.get(key, {}).values() if one.id not in discarded)
        kept_back = tuple(sorted(still, key=lambda one: (one.position, one.id)))
        facts[key] = AssetFacts(materializations=ordered, held=kept_back)
    return facts


def _fact(done: MaterializationCompleted, position: str) -> Materialization:
    return Materialization(
        id=done.materialization_id,
        run_id=done.run_id,
        task_id=done.task_id,
        partitions=done.partitions,
        code=done.code,
        inputs=done.inputs,
        snapshot_id=done.snapshot_id,
        published_ms=done.published_ms,
        position=position,
        input_snapshots=done.input_snapshots,
        rows=done.rows,
        bytes=done.bytes,
        checks_failed=done.checks_failed,
        table_uuid=done.table_uuid,
        started_ms=done.started_ms,
    )


def _held(kept: OutputHeld, position: str) -> HeldOutput:
    return HeldOutput(
        id=kept.materialization_id,
        run_id=kept.run_id,
        partitions=kept.partitions,
        action=kept.action,
        reasons=kept.reasons,
        branch=kept.branch,
        position=position,
    )


def merged(one: AssetFacts, other: AssetFacts) -> AssetFacts:
    """Two halves of what is known of an asset."""
    return msgspec.structs.replace(
        one,
        materializations=one.materializations or other.materializations,
        table=one.table or other.table,
        files={**one.files, **other.files},
        dynamic={**one.dynamic, **other.dynamic},
        held=one.held or other.held,
    )

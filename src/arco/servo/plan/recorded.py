"""From events to facts: what has been published of each asset, folded in memory.

The rules are those of every fold of the ledger: the first event of a materialization counts, later positions lie over earlier
ones, and the order in which events arrive changes nothing.
"""

from collections.abc import Iterable

import msgspec

from arco.ledger.envelope import Event
from arco.ledger.execution_events import MATERIALIZATION_COMPLETED, OUTPUT_HELD, MaterializationCompleted, OutputHeld
from arco.servo.plan.facts import AssetFacts, Materialization


def recorded(events: Iterable[Event], names: dict[str, str]) -> dict[str, AssetFacts]:
    """The facts of each asset by its key now. `names` maps asset ids to keys: a renamed asset keeps what it published."""
    made: dict[str, dict[str, Materialization]] = {}
    held: dict[str, list[tuple[str, OutputHeld]]] = {}
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
                held.setdefault(key, []).append((str(event.position), kept))
    facts: dict[str, AssetFacts] = {}
    for key in sorted({*made, *held}):
        ordered = tuple(sorted(made.get(key, {}).values(), key=lambda one: (one.position, one.id)))
        facts[key] = AssetFacts(materializations=ordered, quarantined=_still_held(ordered, held.get(key, [])))
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
    )


def _still_held(made: tuple[Materialization, ...], held: list[tuple[str, OutputHeld]]) -> list[dict[str, object]]:
    """What was held back and not published since."""
    last = max((one.position for one in made), default="")
    return [box for position, kept in held if position > last for box in kept.partitions]


def merged(one: AssetFacts, other: AssetFacts) -> AssetFacts:
    """Two halves of what is known of an asset."""
    return msgspec.structs.replace(
        one,
        materializations=one.materializations or other.materializations,
        table=one.table or other.table,
        files={**one.files, **other.files},
        dynamic={**one.dynamic, **other.dynamic},
        quarantined=one.quarantined or other.quarantined,
    )

"""What planning stands on, as rows: publishes, what was held back and decided, what people hold back by hand.

The fold writes these rows, and whoever plans makes them of events that are not folded yet; so the two cannot differ. No range is
told apart into partitions here.
"""

from collections.abc import Callable, Iterator

from arco.fold.contributions import Contribution, RowMaker, json_text, ranges_text, told, told_at
from arco.fold.publish_table import PUBLISHES
from arco.fold.shredding_quality import quarantined, released
from arco.fold.tables import HELD_OUTPUTS, SETTLED_OUTPUTS
from arco.fold.whose_word import first_told
from arco.ledger import execution_events as said
from arco.ledger import quality_events
from arco.ledger.envelope import Event
from arco.ledger.payloads import SERVO

_PUBLISH, _HELD, _SETTLED = RowMaker(PUBLISHES), RowMaker(HELD_OUTPUTS), RowMaker(SETTLED_OUTPUTS)


def published(event: Event) -> Iterator[Contribution]:
    """A publish of Servo's; what others say they published is no ground for a plan."""
    if event.source != SERVO:
        return
    it = said.MaterializationCompleted.of(event)
    yield _PUBLISH(
        {"asset_id": it.asset_id, "table_uuid": it.table_uuid, "partitions": ranges_text(it.partitions)},
        materialization_id=it.materialization_id,
        run_id=it.run_id,
        task_id=it.task_id,
        code=it.code,
        inputs=json_text(it.inputs),
        input_snapshots=json_text(it.input_snapshots),
        snapshot_id=it.snapshot_id,
        rows=it.rows,
        bytes=it.bytes,
        checks_failed=list(it.checks_failed),
        checks=json_text(it.checks),
        started_at=it.started_ms,
        published_at=it.published_ms,
        position=event.position,
        publish_order=told_at(event, it.published_ms, it.sequence_number or 0, it.published_ms, it.materialization_id),
    )


def output_held(event: Event) -> Iterator[Contribution]:
    it = said.OutputHeld.of(event)
    yield _HELD(
        {"asset_id": it.asset_id, "materialization_id": it.materialization_id},
        asset=it.asset,
        run_id=it.run_id,
        task_id=it.task_id,
        partitions=ranges_text(it.partitions),
        action=it.action,
        reasons=list(it.reasons),
        branch=it.branch,
        snapshot_id=it.snapshot_id,
        held_at=event.time.time_ms,
        told_by=event.source,
        held_order=first_told(event),
    )


def output_released(event: Event) -> Iterator[Contribution]:
    it = said.OutputReleased.of(event)
    yield _settled(event, it, "released", it.snapshot_id)


def output_discarded(event: Event) -> Iterator[Contribution]:
    yield _settled(event, said.OutputDiscarded.of(event), "discarded", None)


def _settled(event: Event, it: said.SettledOutput, verdict: str, snapshot_id: int | None) -> Contribution:
    return _SETTLED(
        {"asset_id": it.asset_id, "materialization_id": it.materialization_id, "what": it.what},
        asset=it.asset,
        verdict=verdict,
        who=it.who,
        why=it.why,
        snapshot_id=snapshot_id,
        settled_at=it.settled_ms,
        settled_order=told(event),
    )


PLANNED_ON: dict[str, Callable[[Event], Iterator[Contribution]]] = {
    said.MATERIALIZATION_COMPLETED: published,
    said.OUTPUT_HELD: output_held,
    said.OUTPUT_DISCARDED: output_discarded,
    quality_events.PARTITION_QUARANTINED: quarantined,
    quality_events.PARTITION_RELEASED: released,
}
"""What makes the rows of `PLANNING_TABLES`, by the type of the event."""

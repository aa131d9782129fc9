"""Runs, tasks and publishes as rows. One publish of a range is one row a partition."""

from collections.abc import Callable, Iterator, Sequence

from arco.fold.contributions import Contribution, RowMaker, json_text, partitions_of, ranges_text
from arco.fold.file_table import FILES
from arco.fold.partition_counts import Size, places_of, sizes_of
from arco.fold.shredding_planning import output_discarded, output_held, output_released, published
from arco.fold.tables import MATERIALIZATIONS, PARTITIONS, RUNS, TASKS
from arco.fold.whose_word import first_told, first_told_of_run, last_told, last_told_of_run
from arco.kernel.errors import InvalidInput
from arco.kernel.ids import RunId
from arco.kernel.partition_key import PartitionKey
from arco.ledger import execution_events as said
from arco.ledger.envelope import Event
from arco.ledger.payloads import SERVO

_RUN, _TASK, _FILE = RowMaker(RUNS), RowMaker(TASKS), RowMaker(FILES)
_MATERIALIZATION, _PARTITION = RowMaker(MATERIALIZATIONS), RowMaker(PARTITIONS)

# An end stands above a beginning whatever came first, and what knows the ranges above what does not.
_BEGUN, _ENDED = 0, 1


def run_created(event: Event) -> Iterator[Contribution]:
    it = said.RunCreated.of(event)
    created_at = _born(it.run_id, event)
    yield _RUN(
        {"run_id": it.run_id},
        project=it.project,
        deployment=it.deployment,
        code_version=it.code_version,
        trigger=it.trigger,
        triggered_by=it.triggered_by,
        tasks_planned=it.tasks,
        created_at=created_at,
        job=it.job,
        created_order=first_told_of_run(event, it.run_id),
        state="running",
        started_at=created_at,
        told_by=event.source,
        # When it was created is not in what every delivery says; which of two beginnings is shown does not matter.
        state_order=last_told_of_run(event, it.run_id, 0, _BEGUN),
    )


def plan_generated(event: Event) -> Iterator[Contribution]:
    it = said.PlanGenerated.of(event)
    yield _RUN(
        {"run_id": it.run_id},
        plan_fingerprint=it.plan_fingerprint,
        planning_snapshot=it.planning_snapshot,
        assets=list(it.assets),
        planned_order=first_told_of_run(event, it.run_id),
    )


def run_completed(event: Event) -> Iterator[Contribution]:
    it = said.RunCompleted.of(event)
    yield _RUN(
        {"run_id": it.run_id},
        state=it.state,
        task_states=json_text(it.tasks),
        started_at=it.started_ms,
        ended_at=it.ended_ms,
        message=it.message,
        told_by=event.source,
        state_order=last_told_of_run(event, it.run_id, it.ended_ms, _ENDED),
    )


def task_started(event: Event) -> Iterator[Contribution]:
    it = said.TaskBegun.of(event)
    yield _TASK(
        {"run_id": it.run_id, "task_id": it.task_id},
        asset=it.asset,
        asset_id=it.asset_id,
        partitions=ranges_text(it.partitions),
        about_order=first_told_of_run(event, it.run_id, 0),
        worker=it.worker,
        begun_order=last_told_of_run(event, it.run_id, it.started_ms, it.attempt),
        state="running",
        attempt=it.attempt,
        started_at=it.started_ms,
        state_order=last_told_of_run(event, it.run_id, it.started_ms, it.attempt, _BEGUN),
    )


def task_ended(event: Event) -> Iterator[Contribution]:
    it = said.TaskEnded.of(event)
    yield _TASK(
        {"run_id": it.run_id, "task_id": it.task_id},
        asset=it.asset,
        asset_id=it.asset_id,
        about_order=first_told_of_run(event, it.run_id, 1),
        state=it.state,
        attempt=it.attempts,
        started_at=it.started_ms,
        ended_at=it.ended_ms,
        failure_class=it.failure_class,
        message=it.message,
        state_order=last_told_of_run(event, it.run_id, it.ended_ms, it.attempts, _ENDED),
    )


def materialization_completed(event: Event) -> Iterator[Contribution]:
    it = said.MaterializationCompleted.of(event)
    if it.grain is None and any(it.partitions):
        raise InvalidInput("its ranges have no grain, so its partitions are not known")
    grain = it.grain or {}
    partitions = partitions_of(it.asset_id, it.partitions, grain)
    whole = Size(it.rows, it.bytes, it.files)
    sizes = sizes_of([key for _, key in partitions], it.counts, grain, whole)
    shared = {
        "asset": it.asset,
        "run_id": it.run_id,
        "task_id": it.task_id,
        "snapshot_id": it.snapshot_id,
        "sequence_number": it.sequence_number,
        "schema_id": it.schema_id,
        "code_version": it.code_version,
        "quality": _quality(event, it),
        "published_at": it.published_ms,
        "told_by": event.source,
    }
    made = {
        **shared,
        "attempt": it.attempt,
        "table_uuid": it.table_uuid,
        "mode": it.mode,
        "code": it.code,
        "plan_fingerprint": it.plan_fingerprint,
        "checks_failed": list(it.checks_failed),
        "input_snapshots": json_text(it.input_snapshots),
        "started_at": it.started_ms,
        "position": event.position,
        "published_order": first_told(event),
    }
    current = {
        **shared,
        "materialization_id": it.materialization_id,
        "current_order": last_told(event, it.published_ms, it.sequence_number or 0, it.published_ms, it.materialization_id),
        "first_published_at": it.published_ms,
        "begun_order": first_told(event, it.published_ms, it.materialization_id),
    }
    for (partition_id, key), size in zip(partitions, sizes, strict=True):
        partition = {"asset_id": it.asset_id, "partition_id": partition_id}
        own = {"partition_key": key.canonical(), "rows": size.rows, "bytes": size.bytes, "files": size.files}
        yield _MATERIALIZATION({**partition, "materialization_id": it.materialization_id}, **made, **own)
        yield _PARTITION({**partition, "table_uuid": it.table_uuid}, **current, **own)
    yield from published(event)
    yield from _files(event, it, partitions)


def _files(
    event: Event, it: said.MaterializationCompleted, partitions: Sequence[tuple[str, PartitionKey]]
) -> Iterator[Contribution]:
    places = places_of([key for _, key in partitions], [one.partition for one in it.file_stats], it.grain or {})
    for file, place in zip(it.file_stats, places, strict=True):
        yield _FILE(
            {"asset_id": it.asset_id, "materialization_id": it.materialization_id, "path": file.path},
            partition_id=None if place is None else partitions[place][0],
            table_uuid=it.table_uuid,
            snapshot_id=it.snapshot_id,
            rows=file.rows,
            bytes=file.bytes,
            columns=json_text(file.columns),
            written_order=first_told(event),
        )


SHREDDERS: dict[str, Callable[[Event], Iterator[Contribution]]] = {
    said.RUN_CREATED: run_created,
    said.PLAN_GENERATED: plan_generated,
    said.RUN_COMPLETED: run_completed,
    said.TASK_STARTED: task_started,
    said.TASK_ENDED: task_ended,
    said.MATERIALIZATION_COMPLETED: materialization_completed,
    said.OUTPUT_HELD: output_held,
    said.OUTPUT_RELEASED: output_released,
    said.OUTPUT_DISCARDED: output_discarded,
}


def _born(run_id: str, event: Event) -> int:
    """When a run was created: its id says it, if it is one of ours; its event may have been delivered much later."""
    try:
        return RunId(run_id).time_ms
    except InvalidInput:
        return event.time.time_ms


def _quality(event: Event, it: said.MaterializationCompleted) -> str:
    if it.checks_failed:
        return "warned"
    # Servo publishes nothing that was not checked; of others it is not known.
    return "passed" if event.source == SERVO else "unknown"

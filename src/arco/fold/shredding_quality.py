"""Results of checks as rows, and what people hold back and let go by hand."""

from collections.abc import Callable, Iterator

from arco.fold.contributions import Contribution, RowMaker, json_text, partitions_of, ranges_text, told_at
from arco.fold.tables import QUALITY_RESULTS, QUARANTINES
from arco.fold.whose_word import first_told
from arco.ledger import quality_events as said
from arco.ledger.envelope import Event
from arco.quality.results import CheckResult

_RESULT, _QUARANTINE = RowMaker(QUALITY_RESULTS), RowMaker(QUARANTINES)


def check_executed(event: Event) -> Iterator[Contribution]:
    it = said.CheckExecuted.of(event)
    result = CheckResult.from_document(it.result)
    yield _RESULT(
        {
            "asset_id": it.asset_id,
            "check_id": it.check_id,
            "materialization_id": it.materialization_id,
            "partition_id": _partition(it),
        },
        asset=it.asset,
        run_id=it.run_id,
        task_id=it.task_id,
        partitions=ranges_text(it.partitions),
        check_name=result.check,
        check_type=result.kind,
        passed=result.passed,
        severity=result.severity.value,
        expected=result.expected,
        actual=None if result.measured is None else json_text(result.measured),
        failed_rows=result.failed_rows,
        message=result.message,
        action=it.action,
        checked_at=event.time.time_ms,
        position=event.position,
        result_order=first_told(event),
    )


def quarantined(event: Event) -> Iterator[Contribution]:
    yield _standing(event, said.PartitionQuarantined.of(event), quarantined=True)


def released(event: Event) -> Iterator[Contribution]:
    yield _standing(event, said.PartitionReleased.of(event), quarantined=False)


def _standing(event: Event, it: said.PartitionQuarantined | said.PartitionReleased, *, quarantined: bool) -> Contribution:
    # A word about one version never takes the place of one about all of them: readers weigh both.
    version = it.materialization_id or ""
    return _QUARANTINE(
        {"asset_id": it.asset_id, "partitions": ranges_text(it.partitions), "materialization_id": version},
        asset=it.asset,
        quarantined=quarantined,
        who=it.who,
        why=it.why,
        said_at=event.time.time_ms,
        said_order=told_at(event, event.time.time_ms),
    )


SHREDDERS: dict[str, Callable[[Event], Iterator[Contribution]]] = {
    said.CHECK_EXECUTED: check_executed,
    said.PARTITION_QUARANTINED: quarantined,
    said.PARTITION_RELEASED: released,
}


def _partition(it: said.CheckExecuted) -> str:
    """The one partition that the check speaks of, or nothing."""
    if it.grain is None:
        return ""
    partitions = partitions_of(it.asset_id, it.partitions, it.grain)
    return partitions[0][0] if len(partitions) == 1 else ""

"""Results of checks as rows. Who quarantines and releases by hand is not folded: those events are kept as they are."""

from collections.abc import Callable, Iterator

from arco.fold.contributions import Contribution, RowMaker, json_text, partitions_of, told
from arco.fold.tables import QUALITY_RESULTS
from arco.ledger import quality_events as said
from arco.ledger.envelope import Event
from arco.quality.results import CheckResult

_RESULT = RowMaker(QUALITY_RESULTS)


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
        partitions=json_text(it.partitions),
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
        result_order=told(event),
    )


def nothing(_event: Event) -> Iterator[Contribution]:
    return iter(())


SHREDDERS: dict[str, Callable[[Event], Iterator[Contribution]]] = {
    said.CHECK_EXECUTED: check_executed,
    said.PARTITION_QUARANTINED: nothing,
    said.PARTITION_RELEASED: nothing,
}


def _partition(it: said.CheckExecuted) -> str:
    """The one partition that the check speaks of, or nothing."""
    if it.grain is None:
        return ""
    partitions = partitions_of(it.asset_id, it.partitions, it.grain)
    return partitions[0][0] if len(partitions) == 1 else ""

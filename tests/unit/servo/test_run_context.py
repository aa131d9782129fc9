"""What the code of an asset sees of its run."""

from datetime import UTC, date, datetime
from typing import Any

import pytest

from arco.kernel.errors import InvalidInput
from arco.servo.partitions.axes import Axis
from arco.servo.partitions.partitioning import Partitioning
from arco.servo.sdk.dimensions import daily, hourly, monthly, static
from arco.servo.sdk.run_context import RunContext

_NOW_MS = 1_740_000_000_000  # 2025-02-19 21:20 UTC


def _run(*axes: Axis, wanted: dict[str, str] | None = None, **changed: Any) -> RunContext:
    partitioning = Partitioning(axes)
    given: dict[str, Any] = {
        "run_id": "r1",
        "asset": "shop.orders",
        "partitioning": partitioning,
        "selected": partitioning.select(wanted or {}, _NOW_MS),
        "params": {"limit": 3},
        "spark": None,
        "logical_time_ms": _NOW_MS,
        "attempt": 1,
    }
    return RunContext(**{**given, **changed})


def test_a_range_of_days_is_half_open() -> None:
    run = _run(daily("date", start="2025-01-01"), wanted={"date": "2025-01-03..2025-01-05"})
    assert (run.start, run.end) == (date(2025, 1, 3), date(2025, 1, 6))
    assert run.values("date") == [date(2025, 1, 3), date(2025, 1, 4), date(2025, 1, 5)]
    assert run.partitions == [{"date": ["2025-01-03", "2025-01-06"]}]


def test_hours_are_timestamps_and_months_end_with_the_next_month() -> None:
    hour = _run(hourly("hour", start="2025-01-01T00"), wanted={"hour": "2025-01-31T23"})
    assert (hour.start, hour.end) == (datetime(2025, 1, 31, 23, tzinfo=UTC), datetime(2025, 2, 1, tzinfo=UTC))
    month = _run(monthly("month", start="2024-12-01"), wanted={"month": "2024-12"})
    assert (month.start, month.end) == (date(2024, 12, 1), date(2025, 1, 1))


def test_the_one_partition_is_a_mapping_and_several_are_refused() -> None:
    axes = (daily("date", start="2025-01-01"), static("region", ["de", "fr"]))
    one = _run(*axes, wanted={"date": "2025-01-03", "region": "fr"})
    assert one.partition == {"date": date(2025, 1, 3), "region": "fr"}
    with pytest.raises(InvalidInput, match="this task makes 2") as raised:
        _ = _run(*axes, wanted={"date": "2025-01-03"}).partition
    assert "partitions_per_task=1" in str(raised.value.hint)


def test_time_is_found_behind_another_dimension() -> None:
    run = _run(static("region", ["de", "fr"]), daily("date", start="2025-01-01"), wanted={"date": "2025-01-03,2025-01-07"})
    assert (run.start, run.end) == (date(2025, 1, 3), date(2025, 1, 8))
    assert run.values("region") == ["de", "fr"]
    assert run.values("date") == [date(2025, 1, 3), date(2025, 1, 7)]


def test_an_asset_without_partitions_has_one_and_no_time() -> None:
    run = _run()
    assert run.partition == {}
    assert run.partitions == [{}]
    with pytest.raises(InvalidInput, match="not partitioned by time"):
        _ = run.start
    with pytest.raises(InvalidInput, match="no dimension 'date'"):
        run.values("date")


def test_the_logical_time_is_utc() -> None:
    assert _run().logical_time == datetime(2025, 2, 19, 21, 20, tzinfo=UTC)


def test_nothing_selected_begins_nowhere() -> None:
    run = _run(daily("date", start="2025-01-01"))
    nothing = _run(daily("date", start="2025-01-01"), selected=run.selected - run.selected)
    with pytest.raises(InvalidInput, match="no partitions are selected"):
        _ = nothing.end

"""Calling an asset from a unit test: inputs, parameters, and the run that its code sees."""

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from arco import Asset, RunContext, asset, daily, dynamic, static
from arco.kernel.errors import InvalidInput
from arco.testing import run, run_context, run_sql


@asset(partitions=daily("date", start="2025-01-01"))
def seen(orders: list[int], customers: list[str], run: RunContext, factor: int = 2) -> Any:
    return [one * factor for one in orders], customers, run


@asset
def plain(orders: list[int]) -> list[int]:
    return orders


@asset(partitions=[static("region", ["de", "fr"]), dynamic("shop")])
def by_shop(run: RunContext) -> RunContext:
    return run


def test_inputs_by_place_and_by_name() -> None:
    rows, customers, _ = run(seen, [1, 2], customers=["ann"])
    assert (rows, customers) == ([2, 4], ["ann"])
    assert run(plain, orders=[7]) == [7]


def test_parameters_reach_the_function_and_the_run() -> None:
    rows, _, context = run(seen, [1], [], params={"factor": 5})
    assert rows == [5]
    assert context.params == {"factor": 5}
    assert run(seen, [1], [])[2].params == {"factor": 2}


def test_partitions_are_written_as_on_the_command_line() -> None:
    context = run_context(seen, partitions={"date": "2025-01-03..2025-01-05"})
    assert (context.start, context.end) == (date(2025, 1, 3), date(2025, 1, 6))
    assert run_context(seen, partitions={"date": date(2025, 1, 3)}).partition == {"date": date(2025, 1, 3)}


def test_without_partitions_the_first_is_made_and_the_time_is_its_end() -> None:
    context = run_context(seen)
    assert context.partition == {"date": date(2025, 1, 1)}
    assert context.logical_time == datetime(2025, 1, 2, tzinfo=UTC)
    assert run_context(plain).logical_time == datetime(2025, 1, 1, tzinfo=UTC)
    given = run_context(plain, logical_time=datetime(2025, 5, 1, 12))  # noqa: DTZ001 - without a zone it is UTC
    assert given.logical_time == datetime(2025, 5, 1, 12, tzinfo=UTC)


def test_values_of_a_dynamic_dimension_are_those_that_are_named() -> None:
    context = run(by_shop, partitions={"shop": ["berlin", "paris"]})
    assert context.values("shop") == ["berlin", "paris"]
    assert context.values("region") == ["de"]
    with pytest.raises(InvalidInput, match="shop is dynamic"):
        run(by_shop)


@pytest.mark.parametrize(
    ("of", "arguments", "more", "said"),
    [
        (plain, ([1], [2]), {}, "plain has 1 inputs, and 2 were given"),
        (plain, (), {}, "plain reads 'orders', and the test does not give it"),
        (plain, ([1],), {"orders": [2]}, "input 'orders' is given twice"),
        (plain, ([1],), {"params": {"limit": 3}}, "plain has no parameter 'limit'"),
        (seen, ([1], []), {"partitions": {"date": "2024-12-31"}}, "no such partitions"),
        (seen, ([1], []), {"partitions": {"day": "2025-01-01"}}, "no dimension 'day'"),
    ],
)
def test_what_does_not_fit_is_refused(of: Asset[..., Any], arguments: tuple[Any, ...], more: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        run(of, *arguments, **more)


def test_a_setting_that_a_query_does_not_have_is_refused_too(tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_text("/*\nparameters = { low = 1 }\n*/\nSELECT :low AS low")
    with pytest.raises(InvalidInput, match="q has no parameter 'lov'"):
        run_sql(tmp_path / "q.sql", {}, params={"lov": 2})

"""Rows compared without their order. A table of Arrow stands for what a DataFrame gives; real ones are in tests/integration."""

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from arco.testing import assert_same_rows


class Frame:
    """What is used of a DataFrame."""

    def __init__(self, **columns: Any) -> None:
        self._table = pa.table(columns)

    def toArrow(self) -> pa.Table:  # noqa: N802 - Spark's name
        return self._table


ROWS = Frame(id=[1, 2, 2], name=["a", "b", "b"])


@pytest.mark.parametrize(
    "expected",
    [
        [{"id": 2, "name": "b"}, {"name": "a", "id": 1}, {"id": 2, "name": "b"}],
        [(2, "b"), (2, "b"), (1, "a")],
        Frame(name=["b", "a", "b"], id=[2, 1, 2]),
    ],
)
def test_the_same_rows_in_any_order(expected: Any) -> None:
    assert_same_rows(ROWS, expected)


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        ([(1, "a"), (2, "b")], r"not expected: \(2, 'b'\)"),
        ([(1, "a"), (2, "b"), (2, "b"), (3, "c"), (3, "c")], r"missing: \(3, 'c'\) \(2 times\)"),
        ([(1, "a"), (2, "b"), (2, None)], r"missing: \(2, None\)"),
        ([{"id": 1}], "columns differ"),
        ([{"id": 1}, {"name": "a"}], "different columns"),
        ([(1,)], "has 1 values"),
        ([], r"not expected: \(1, 'a'\)"),
    ],
)
def test_what_differs_is_said(expected: Any, said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        assert_same_rows(ROWS, expected)


def test_long_differences_are_cut() -> None:
    with pytest.raises(AssertionError, match="not expected: 90 more"):
        assert_same_rows(Frame(n=list(range(100))), [])


def test_times_nan_and_nested_values() -> None:
    moment = datetime(2025, 1, 1, 12, tzinfo=UTC)
    frame = Frame(
        at=pa.array([moment], pa.timestamp("us", "UTC")),
        x=[float("nan")],
        inside=[{"b": [1, 2], "a": None}],
        tags=pa.array([[("z", 1), ("a", 2)]], pa.map_(pa.string(), pa.int64())),
    )
    row = {"at": datetime(2025, 1, 1, 12), "x": float("nan"), "inside": {"a": None, "b": [1, 2]}, "tags": {"a": 2, "z": 1}}  # noqa: DTZ001
    assert_same_rows(frame, [row])
    with pytest.raises(AssertionError, match="missing"):
        assert_same_rows(frame, [{**row, "inside": {"a": None, "b": [2, 1]}}])

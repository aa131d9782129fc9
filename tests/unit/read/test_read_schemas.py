"""Schemas and checks of an asset: histories, and two schemas compared by the ids of their columns."""

import pytest

from arco.kernel.errors import InvalidInput, NotFound
from arco.quality.compatibility import ChangeKind, Compatibility
from arco.read.checks import check_history, latest_checks
from arco.read.diff_schemas import schema_diff
from arco.read.pages import Window
from arco.read.schemas import current_columns, schema_history, table_schema
from fixtures.state.state_world import DAY_MS, START_MS
from unit.read.ground import Ground


def test_the_history_of_schemas_is_of_the_table_and_of_the_project(ground: Ground) -> None:
    found = ground.ask(schema_history, "shop.orders")
    assert [(one.schema_id, one.current) for one in found.table] == [(1, True), (0, False)]
    assert [one.path for one in found.table[0].columns] == ["order_id", "total", "currency"]
    assert [(one.schema_hash, [column.path for column in one.columns]) for one in found.declared] == [
        ("feed01", ["order_id", "amount"])
    ]
    assert ground.ask(table_schema, "shop.orders", 0).columns[2].path == "memo"
    with pytest.raises(NotFound):
        ground.ask(table_schema, "shop.orders", 7)


def test_columns_are_those_of_the_table_or_else_declared(ground: Ground) -> None:
    found = ground.ask(current_columns, "shop.orders")
    assert (found.source, [(one.id, one.path, one.type) for one in found.columns]) == (
        "table", [(1, "order_id", "long"), (2, "total", "long"), (4, "currency", "string")],
    )  # fmt: skip
    assert ground.ask(current_columns, "ops.new").columns == ()


def test_two_schemas_are_compared_by_field_id(ground: Ground) -> None:
    found = ground.ask(schema_diff, "shop.orders", "0", "1")
    assert {(one.kind, one.column, one.before, one.after) for one in found.changes} == {
        (ChangeKind.DROP.value, "memo", "string", None),
        (ChangeKind.RENAME.value, "total", "amount", "total"),
        (ChangeKind.WIDEN.value, "total", "int", "long"),
        (ChangeKind.ADD_OPTIONAL.value, "currency", None, "string"),
    }
    assert (found.mode, found.allowed, found.in_place) == (Compatibility.BACKWARD, True, True)
    strict = ground.ask(schema_diff, "shop.orders", "0", "1", mode=Compatibility.FULL)
    assert not strict.allowed
    assert {one.column for one in strict.changes if one.refused} == {"memo", "total"}
    back = ground.ask(schema_diff, "shop.orders", "1", "0")
    assert not back.allowed
    assert [one.kind for one in back.changes if one.refused] == [ChangeKind.RETYPE.value]


def test_schemas_that_cannot_be_compared_are_refused(ground: Ground) -> None:
    with pytest.raises(InvalidInput):
        ground.ask(schema_diff, "shop.orders", "0", "feed01")
    with pytest.raises(NotFound):
        ground.ask(schema_diff, "shop.orders", "\u00b2", "feed01")
    with pytest.raises(NotFound) as refused:
        ground.ask(schema_diff, "shop.orders", "0", "9")
    assert "0" in refused.value.hint


def test_the_newest_result_of_each_check(ground: Ground) -> None:
    found = ground.ask(latest_checks, "shop.orders").checks
    assert [(one.check_name, one.passed) for one in found] == [("unique(order_id)", False), ("not_null(order_id)", True)]


def test_the_history_of_a_check_is_newest_first(ground: Ground) -> None:
    first = ground.ask(check_history, "shop.orders", check="not_null(order_id)", window=Window(2))
    assert [one.passed for one in first.items] == [True, False]
    rest = ground.ask(check_history, "shop.orders", check="not_null(order_id)", window=Window(2, first.next_cursor))
    assert [(one.passed, one.checked_at and one.checked_at.timestamp() * 1000) for one in rest.items] == [
        (True, START_MS + DAY_MS)
    ]
    assert rest.next_cursor is None
    assert len(ground.ask(check_history, "shop.orders").items) == 4

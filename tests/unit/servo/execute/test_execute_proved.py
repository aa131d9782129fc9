"""What footers prove, and above all what they do not."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyiceberg.conversions import to_bytes
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.typedef import Record
from pyiceberg.types import NestedField

from arco.quality.builtin import accepted_values, fresh, in_range, matches, not_null, row_count, unique
from arco.quality.checks import Check
from arco.quality.results import CheckResult
from arco.servo.execute.data_files import Written
from arco.servo.execute.proved import needs_rows, proved

TYPES = {
    "id": "long",
    "x": "double",
    "d": "decimal(9, 2)",
    "s": "string",
    "day": "date",
    "at": "timestamptz",
    "wall": "timestamp",
}
FIELDS = [
    {"id": place + 1, "name": name, "required": False, "type": kind} for place, (name, kind) in enumerate(TYPES.items())
]
INNER = {"id": 21, "name": "deep", "required": False, "type": "int"}
NESTED = [
    {"id": 20, "name": "inner", "required": False, "type": {"type": "struct", "fields": [INNER]}},
    {
        "id": 30,
        "name": "many",
        "required": False,
        "type": {"type": "list", "element-id": 31, "element-required": False, "element": "int"},
    },
]
SCHEMA = {"type": "struct", "schema-id": 0, "fields": [*FIELDS, *NESTED]}
IDS = {**{name: place + 1 for place, name in enumerate(TYPES)}, "inner.deep": 21, "many.element": 31}
KINDS = {**TYPES, "inner.deep": "int", "many.element": "int"}


def file(rows: int, /, nulls: dict[str, int] | None = None, **bounds: tuple[Any, Any]) -> DataFile:
    """A file of so many rows. A column without a count of nulls has no statistics at all."""

    def raw(name: str, place: int) -> bytes:
        field = NestedField.model_validate({"id": 1, "name": "one", "required": False, "type": KINDS[name]})
        return to_bytes(field.field_type, bounds[name][place])  # type: ignore[arg-type]

    counts = dict.fromkeys(bounds, 0) | (nulls or {})
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path="f",
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=rows,
        file_size_in_bytes=1,
        null_value_counts={IDS[name]: count for name, count in counts.items()},
        lower_bounds={IDS[name]: raw(name, 0) for name in bounds},
        upper_bounds={IDS[name]: raw(name, 1) for name in bounds},
    )


def prove(check: Check, *files: DataFile) -> CheckResult | None:
    written = Written(files, sum(one.record_count for one in files))
    found = proved([check], written, SCHEMA, logical_time_ms=1_735_732_800_000)
    return found[0] if found else None


def failed(check: Check, *files: DataFile) -> int | None:
    found = prove(check, *files)
    return None if found is None else found.failed_rows


def test_rows_are_counted_over_all_files() -> None:
    found = prove(row_count(min=6), file(2), file(3))
    assert found is not None
    assert (found.passed, found.measured) == (False, 5)


def test_nulls_of_one_column_are_counted_and_of_several_only_if_they_cannot_share_rows() -> None:
    assert failed(not_null("id"), file(5, {"id": 2}), file(5, {"id": 1})) == 3
    assert failed(not_null("id", "s"), file(5, {"id": 2, "s": 0})) == 2
    assert failed(not_null("id", "s"), file(5, {"id": 2, "s": 1})) is None
    assert failed(not_null("inner.deep"), file(5, {"inner.deep": 4})) == 4


def test_without_statistics_nothing_is_proved() -> None:
    assert failed(not_null("id"), file(5, {"id": 0}), file(5)) is None
    assert failed(in_range("id", min=0), file(5, {"id": 0})) is None
    assert prove(fresh("at", within="1h"), file(5, {"at": 0})) is None
    for check in (not_null("nope"), in_range("nope", min=0), fresh("nope", within="1h"), not_null("inner"), not_null("ID")):
        assert prove(check, file(5, {"id": 0})) is None


def test_listed_values_are_proved_where_all_between_the_bounds_are_listed() -> None:
    whole = accepted_values("id", [1, 2, 3, 7])
    assert failed(whole, file(5, id=(1, 3)), file(5, id=(2, 2)), file(5, id=(7, 7))) == 0
    for bounds in ((1, 7), (3, 4), (0, 1), (7, 8), (-(2**63), 2**63 - 1)):
        assert failed(whole, file(5, id=(1, 3)), file(5, id=bounds)) is None
    assert failed(accepted_values("s", ["a", "c"]), file(5, s=("a", "a")), file(5, s=("c", "c"))) == 0
    assert failed(accepted_values("s", ["a", "c"]), file(5, s=("b", "b"))) is None
    assert failed(accepted_values("s", ["a", "b"]), file(5, s=("a", "b"))) is None  # "aa" lies between them
    assert failed(accepted_values("day", [date(2025, 1, 1)]), file(5, day=(20089, 20089))) == 0
    assert failed(accepted_values("day", [date(2025, 1, 1)]), file(5, day=(20089, 20090))) is None


def test_listed_values_and_nulls_floats_and_other_types() -> None:
    some, none = file(5, {"id": 2}, id=(1, 2)), file(5, {"id": 5})
    assert failed(accepted_values("id", [1, 2]), some) is None
    assert failed(accepted_values("id", [1, 2], allow_null=True), some, none) == 0
    assert failed(accepted_values("id", [1, 2], allow_null=True), file(5)) is None
    for check, bounds in (
        (accepted_values("x", [1.0]), {"x": (1.0, 1.0)}),  # a NaN is in no bound
        (accepted_values("id", [1.0]), {"id": (1, 1)}),  # compared in another type
        (accepted_values("d", [Decimal("1.00")]), {"d": (Decimal("1.00"), Decimal("1.00"))}),
        (accepted_values("at", [datetime(1970, 1, 1, tzinfo=UTC)]), {"at": (0, 0)}),
        (accepted_values("id", [True]), {"id": (1, 1)}),
    ):
        assert failed(check, file(5, **bounds)) is None
    assert not needs_rows(accepted_values("id", range(1, 11)), SCHEMA)
    for check in (accepted_values("id", [1, 3]), accepted_values("s", ["a"]), accepted_values("nope", [1])):
        assert needs_rows(check, SCHEMA)


IN_RANGE: list[tuple[Check, tuple[Any, Any], bool]] = [
    (in_range("id", min=1, max=9), (1, 9), True),
    (in_range("id", min=1, max=9), (0, 9), False),
    (in_range("id", min=1, max=9), (1, 10), False),
    (in_range("id", min=1, max=9, inclusive=False), (2, 8), True),
    (in_range("id", min=1, max=9, inclusive=False), (1, 8), False),
    (in_range("id", min=0.5), (1, 9), True),
    (in_range("id", min=0.5, max=99.5, inclusive=False), (1, 9), False),  # Spark compares floats, and rounds
    (in_range("id", min=Decimal("0.5")), (1, 9), True),
    (in_range("d", min=1, max=Decimal("2.50")), (Decimal("1.00"), Decimal("2.50")), True),
    (in_range("d", max=Decimal("2.49")), (Decimal("1.00"), Decimal("2.50")), False),
    (in_range("x", min=0, max=9), (1.0, 2.0), False),  # a NaN is in no bound
    (in_range("s", min="a", max="c"), ("a", "b"), True),
    (in_range("s", max="b"), ("a", "b~"), False),  # a bound that was cut off lies above the value
    (in_range("day", min=date(2025, 1, 1)), (20089, 20090), True),
    (in_range("day", min=date(2025, 1, 2)), (20089, 20090), False),
    (in_range("day", min=datetime(2025, 1, 1, tzinfo=UTC)), (20089, 20090), False),  # compared in another type
    (in_range("at", max=datetime(2025, 1, 1, tzinfo=UTC)), (0, 1_735_689_600_000_000), True),
    (in_range("at", max=datetime(2025, 1, 1)), (0, 1), False),  # noqa: DTZ001
    (in_range("wall", max=datetime(2025, 1, 1)), (0, 1), True),  # noqa: DTZ001
]  # fmt: skip


@pytest.mark.parametrize(("check", "bounds", "is_proved"), IN_RANGE, ids=str)
def test_a_range_is_proved_where_the_bounds_lie_within_it(check: Check, bounds: tuple[Any, Any], is_proved: bool) -> None:
    assert failed(check, file(3, **{check.column: bounds})) == (0 if is_proved else None)


def test_nulls_fail_a_range_unless_they_are_allowed_and_only_nulls_have_no_bounds() -> None:
    some = file(5, {"id": 1}, id=(1, 2))
    assert failed(in_range("id", min=0), some) is None
    assert failed(in_range("id", min=0, allow_null=True), some, file(5, {"id": 5})) == 0
    assert failed(in_range("id", min=0, allow_null=True), file(5, {"id": 4})) is None


def test_the_newest_value_of_all_files_is_judged() -> None:
    noon = 1_735_732_800_000_000
    found = prove(
        fresh("at", within="1h"), file(2, at=(0, noon - 7_200_000_000)), file(1, {"at": 1}), file(2, at=(0, noon))
    )
    assert found is not None
    assert (found.passed, found.measured) == (True, 0)
    for files in ((file(3, {"at": 3}),), ()):
        nothing = prove(fresh("at", within="1h"), *files)
        assert nothing is not None
        assert not nothing.passed


def test_a_name_that_may_be_two_columns_is_none() -> None:
    twin = {"id": 40, "name": "inner.deep", "required": False, "type": "int"}
    written = Written((file(5, {"inner.deep": 0}),), 5)
    schema = {**SCHEMA, "fields": [*FIELDS, *NESTED, twin]}
    assert proved([not_null("inner.deep")], written, schema, logical_time_ms=0) == ()


def test_no_rows_fail_nothing() -> None:
    assert (failed(not_null("id")), failed(in_range("id", min=5))) == (0, 0)


def test_rows_that_are_set_aside_are_counted_by_who_split_them() -> None:
    assert prove(not_null("id", quarantine_rows=True), file(5, {"id": 2})) is None


def test_what_only_rows_can_tell_is_known_beforehand() -> None:
    by_rows = [accepted_values("s", ["a"]), matches("s", "a"), unique("id"), in_range("x", min=0), not_null("many.element")]
    by_footers = [
        row_count(min=1),
        not_null("id", "s"),
        in_range("d", min=0),
        fresh("day", within="1d"),
        not_null("inner.deep"),
    ]
    assert all(needs_rows(check, SCHEMA) for check in by_rows)
    assert not any(needs_rows(check, SCHEMA) for check in by_footers)

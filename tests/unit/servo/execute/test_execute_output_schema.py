"""An output meets a table: which column is which, what is new, what is wider, and what cannot be."""

from typing import Any

import pytest

from arco.kernel.errors import InvalidMetadata
from arco.servo.execute.output_schema import Missing, merge, with_new_ids


def field(number: int, name: str, kind: Any, *, required: bool = False) -> dict[str, Any]:
    return {"id": number, "name": name, "required": required, "type": kind}


def schema(*fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "struct", "schema-id": 3, "fields": list(fields), **more}


def struct(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


def items(number: int, element: Any) -> dict[str, Any]:
    return {"type": "list", "element-id": number, "element-required": False, "element": element}


def entries(key_id: int, value_id: int, key: Any, value: Any) -> dict[str, Any]:
    return {"type": "map", "key-id": key_id, "value-id": value_id, "value-required": False, "key": key, "value": value}


TABLE = schema(field(1, "id", "long"), field(2, "name", "string"))


def test_the_same_columns_change_nothing_whatever_their_order():
    merged = merge(TABLE, schema(field(7, "name", "string"), field(9, "id", "long")), last_column_id=2)
    assert merged.schema == TABLE
    assert not merged.evolves


def test_a_new_column_is_added_at_the_end_with_a_number_nobody_used():
    output = schema(field(1, "id", "long"), field(2, "extra", "date"), field(3, "name", "string"))
    merged = merge(TABLE, output, last_column_id=40)
    assert [(one["id"], one["name"]) for one in merged.schema["fields"]] == [(1, "id"), (2, "name"), (41, "extra")]
    assert (merged.added, merged.evolves) == (("extra",), True)


def test_everything_inside_a_new_column_gets_a_number_of_its_own():
    inner = struct(field(5, "a", items(6, "int")), field(7, "b", entries(8, 9, "string", struct(field(10, "c", "int")))))
    merged = merge(TABLE, schema(*TABLE["fields"], field(4, "s", inner)), last_column_id=2)
    new = merged.schema["fields"][2]
    a, b = new["type"]["fields"]
    numbers = [new["id"], a["id"], a["type"]["element-id"], b["id"], b["type"]["key-id"], b["type"]["value-id"]]
    numbers.append(b["type"]["value"]["fields"][0]["id"])
    assert sorted(numbers) == list(range(3, 10))


def test_a_new_column_is_optional_because_old_rows_have_no_value():
    merged = merge(TABLE, schema(*TABLE["fields"], field(4, "x", "int", required=True)), last_column_id=2)
    assert merged.schema["fields"][2]["required"] is False


@pytest.mark.parametrize(
    ("before", "after"), [("int", "long"), ("float", "double"), ("decimal(9,2)", "decimal(18, 2)")], ids=str
)
def test_a_wider_output_widens_the_column(before, after):
    merged = merge(schema(field(1, "x", before)), schema(field(5, "x", after)), last_column_id=1)
    assert (merged.schema["fields"][0]["type"], merged.widened) == (after, ("x",))


@pytest.mark.parametrize(("table", "output"), [("long", "int"), ("double", "float"), ("decimal(18,2)", "decimal(9,2)")])
def test_a_narrower_output_is_written_as_the_table_has_it(table, output):
    merged = merge(schema(field(1, "x", table)), schema(field(5, "x", output)), last_column_id=1)
    assert (merged.schema["fields"][0]["type"], merged.evolves) == (table, False)


@pytest.mark.parametrize(
    ("table", "output"),
    [
        ("string", "long"),
        ("timestamp", "timestamptz"),
        ("decimal(9,2)", "decimal(9,3)"),
        ("long", struct(field(2, "a", "int"))),
        (items(2, "int"), entries(2, 3, "int", "int")),
    ],
    ids=str,
)
def test_any_other_change_of_type_is_refused_by_name(table, output):
    with pytest.raises(InvalidMetadata, match=r"'x' is .* in the table and .* in the output"):
        merge(schema(field(1, "x", table)), schema(field(1, "x", output)), last_column_id=9)


def test_where_no_row_stays_a_column_of_another_type_is_another_column():
    table = schema(field(1, "x", "string"), field(2, "s", struct(field(3, "a", "int"), field(4, "b", "int"))))
    output = schema(field(1, "x", "long"), field(2, "s", struct(field(3, "a", "string"), field(4, "b", "int"))))
    merged = merge(table, output, last_column_id=4, missing=Missing.DROP, anew=True)
    assert merged.schema["fields"] == [
        field(2, "s", struct(field(4, "b", "int"), field(5, "a", "string"))),
        field(6, "x", "long"),
    ]
    assert (merged.dropped, merged.added) == (("x", "s.a"), ("s.a", "x"))


def test_columns_inside_structs_lists_and_maps_are_merged_too():
    table = schema(field(1, "s", struct(field(2, "a", "int"), field(3, "b", "int"))), field(4, "l", items(5, "int")))
    output = schema(field(1, "s", struct(field(2, "a", "long"), field(3, "c", "int"))), field(4, "l", items(5, "long")))
    merged = merge(table, output, last_column_id=5)
    assert merged.schema["fields"][0]["type"]["fields"] == [
        field(2, "a", "long"),
        field(3, "b", "int"),
        field(6, "c", "int"),
    ]
    assert merged.schema["fields"][1]["type"] == items(5, "long")
    assert (merged.added, merged.widened, merged.missing) == (("s.c",), ("s.a", "l.element"), ("s.b",))


def test_the_keys_of_a_map_stay_as_they_are():
    table, output = entries(2, 3, "int", "int"), entries(2, 3, "long", "int")
    with pytest.raises(InvalidMetadata, match="keys of 'm' changed"):
        merge(schema(field(1, "m", table)), schema(field(1, "m", output)), last_column_id=3)


def test_a_missing_column_is_kept_as_null_or_dropped_as_asked():
    output = schema(field(1, "id", "long"))
    kept = merge(TABLE, output, last_column_id=2)
    assert (kept.schema, kept.missing, kept.evolves) == (TABLE, ("name",), False)
    dropped = merge(TABLE, output, last_column_id=2, missing=Missing.DROP)
    assert (dropped.schema["fields"], dropped.dropped, dropped.evolves) == (TABLE["fields"][:1], ("name",), True)


def test_a_missing_column_that_is_required_is_refused():
    table = schema(field(1, "id", "long", required=True), field(2, "name", "string"))
    with pytest.raises(InvalidMetadata, match="no column 'id', which is required"):
        merge(table, schema(field(2, "name", "string")), last_column_id=2)


def test_a_dropped_column_is_no_identifier_any_more():
    table = schema(field(1, "id", "long", required=True), field(2, "name", "string"), **{"identifier-field-ids": [1]})
    merged = merge(table, schema(field(2, "name", "string")), last_column_id=2, missing=Missing.DROP)
    assert merged.schema["identifier-field-ids"] == []


@pytest.mark.parametrize("names", [("Id",), ("id", "ID")], ids=str)
def test_names_that_differ_in_letter_case_only_are_refused(names):
    with pytest.raises(InvalidMetadata, match="in letter case only"):
        merge(TABLE, schema(*(field(place, name, "long") for place, name in enumerate(names))), last_column_id=2)


def test_a_new_table_is_numbered_from_one_level_by_level():
    fresh = with_new_ids(schema(field(9, "s", struct(field(8, "a", "int"))), field(7, "b", "int")))
    assert fresh == {**schema(field(1, "s", struct(field(3, "a", "int"))), field(2, "b", "int")), "schema-id": 0}


def test_a_declared_name_renames_a_column_that_the_output_has_under_it():
    merged = merge(TABLE, schema(field(1, "id", "long"), field(2, "label", "string")), last_column_id=2, names={2: "label"})
    assert [(one["id"], one["name"]) for one in merged.schema["fields"]] == [(1, "id"), (2, "label")]
    assert (merged.renamed, merged.added, merged.missing, merged.evolves) == (("name",), (), (), True)


@pytest.mark.parametrize(
    ("output", "names"),
    [
        (("id", "name"), {2: "label"}),  # the output is still as before
        (("id", "name", "label"), {2: "label"}),  # it has both
        (("id", "name"), {2: "id"}),  # another column has that name
        (("id", "other"), {2: "label"}),  # it has neither
    ],
)
def test_a_declared_name_alone_renames_nothing(output: tuple[str, ...], names: dict[int, str]):
    columns = [field(number, name, "long" if name == "id" else "string") for number, name in enumerate(output, start=1)]
    merged = merge(TABLE, schema(*columns), last_column_id=2, names=names)
    assert merged.renamed == ()
    assert [one["name"] for one in merged.schema["fields"][:2]] == ["id", "name"]


def test_a_nested_column_is_renamed_too():
    table = schema(field(1, "place", struct(field(2, "town", "string"), field(3, "zip", "string"))))
    output = schema(field(1, "place", struct(field(2, "city", "string"), field(3, "zip", "string"))))
    merged = merge(table, output, last_column_id=3, names={2: "city"})
    assert merged.renamed == ("place.town",)
    assert merged.schema["fields"][0]["type"]["fields"][0] == field(2, "city", "string")

"""Schemas as lists of columns: both ways of writing them, and what is refused."""

import pytest

from arco.kernel.errors import InvalidInput
from arco.quality.schemas import Column, Schema, type_text

ICEBERG = {
    "type": "struct",
    "schema-id": 3,
    "fields": [
        {"id": 1, "name": "id", "required": True, "type": "long", "doc": "the key"},
        {
            "id": 2,
            "name": "price",
            "required": False,
            "type": "decimal(9, 2)",
            "initial-default": "1.00",
            "write-default": "2.00",
        },
        {
            "id": 3,
            "name": "lines",
            "required": False,
            "type": {
                "type": "list",
                "element-id": 4,
                "element-required": True,
                "element": {"type": "struct", "fields": [{"id": 5, "name": "sku", "required": True, "type": "string"}]},
            },
        },
        {
            "id": 6,
            "name": "by",
            "required": False,
            "type": {
                "type": "map",
                "key-id": 7,
                "key": {"type": "struct", "fields": [{"id": 9, "name": "k", "required": True, "type": "int"}]},
                "value-id": 8,
                "value-required": False,
                "value": "double",
            },
        },
    ],
}


def test_a_schema_as_iceberg_writes_it():
    assert Schema.of(ICEBERG).columns == (
        Column(1, ("id",), "long", required=True, doc="the key"),
        Column(2, ("price",), "decimal(9,2)", default="1.00"),
        Column(3, ("lines",), "list"),
        Column(4, ("lines", "element"), "struct", required=True, parent=3),
        Column(5, ("lines", "element", "sku"), "string", required=True, parent=4),
        Column(6, ("by",), "map"),
        Column(7, ("by", "key"), "struct", required=True, parent=6, in_map_key=True),
        Column(9, ("by", "key", "k"), "int", required=True, parent=7, in_map_key=True),
        Column(8, ("by", "value"), "double", parent=6),
    )


def test_a_schema_in_short():
    assert Schema.of({"id": "long not null", "price": "decimal( 9 , 2 )", "at": "timestamptz NOT  NULL "}).columns == (
        Column("id", ("id",), "long", required=True),
        Column("price", ("price",), "decimal(9,2)"),
        Column("at", ("at",), "timestamptz", required=True),
    )


def test_fields_without_ids_are_known_by_their_path():
    written = {"fields": [{"name": "a", "type": {"type": "struct", "fields": [{"name": "b", "type": "int"}]}}]}
    assert [(column.id, column.parent) for column in Schema.of(written).columns] == [("a", None), ("a.b", "a")]


def test_what_people_say_of_a_column_is_not_in_its_document():
    assert Schema.of(ICEBERG).describe()[0] == {"id": 1, "path": ["id"], "type": "long", "required": True, "default": None}


REFUSED = {
    "a text": ("id long", "a str is not a schema"),
    "an id twice": (
        {"fields": [{"id": 1, "name": "a", "type": "int"}, {"id": 1, "name": "b", "type": "int"}]},
        "share id 1",
    ),
    "a name twice": (
        {"fields": [{"id": 1, "name": "a", "type": "int"}, {"id": 2, "name": "a", "type": "int"}]},
        "two columns 'a'",
    ),
    "a field without a name": ({"fields": [{"id": 1, "type": "int"}]}, "a field of the schema has no name or no type"),
    "a field without a type": ({"fields": [{"id": 1, "name": "a"}]}, "a field of the schema has no name or no type"),
    "a field that is text": ({"fields": ["a"]}, "a field of the schema has no name or no type"),
    "a nested type nobody knows": (
        {"fields": [{"name": "a", "type": {"type": "set"}}]},
        "the type of column 'a' is not a type",
    ),
    "a type that is a number": ({"a": 3}, "the type of column 'a' is not text"),
    "a struct without fields": ({"fields": [{"name": "a", "type": {"type": "struct"}}]}, "column 'a' lacks fields"),
    "a list without an element": ({"fields": [{"name": "a", "type": {"type": "list"}}]}, "column 'a' lacks element"),
    "a map without a value": ({"fields": [{"name": "a", "type": {"type": "map", "key": "int"}}]}, "column 'a' lacks value"),
}


@pytest.mark.parametrize(("written", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_schema_is_refused(written, message):
    with pytest.raises(InvalidInput, match=message):
        Schema.of(written)


@pytest.mark.parametrize(
    "text", ["bigint", "decimal(9)", "decimal(9,2)x", "fixed", "timestamp_tz", "Int", "", "struct", "int;"]
)
def test_only_the_types_of_the_table_format_are_types(text):
    with pytest.raises(InvalidInput, match="is not a type"):
        type_text(text)


@pytest.mark.parametrize("text", ["geometry(srid:4326)", "fixed[16]", "timestamptz_ns", "variant", "unknown"])
def test_newer_types_are_types(text):
    assert type_text(text) == text

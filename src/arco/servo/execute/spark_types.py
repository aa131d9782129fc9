"""Types between the table format and Spark: schemas with field ids on the way in and out.

Spark keeps an id in the metadata of a struct's field, so list elements, map keys and map values have none; a schema with such
columns is written by another way (`spark_arrow_writer.py`). Types that the two do not share are refused by name.
"""

import re
from collections.abc import Iterator
from typing import Any

from pyspark.sql import types

from arco.iceberg.shape import JsonObject
from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip

FIELD_ID = "parquet.field.id"

_LEAVES: dict[str, types.DataType] = {
    "boolean": types.BooleanType(),
    "int": types.IntegerType(),
    "long": types.LongType(),
    "float": types.FloatType(),
    "double": types.DoubleType(),
    "date": types.DateType(),
    "timestamp": types.TimestampNTZType(),
    "timestamptz": types.TimestampType(),
    "string": types.StringType(),
    "binary": types.BinaryType(),
}
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")

# What Spark has and the table format has not, each as the type that holds all its values.
_WIDER = {types.ByteType: "int", types.ShortType: "int", types.CharType: "string", types.VarcharType: "string"}
_NAMES = {type(kind): name for name, kind in _LEAVES.items()} | _WIDER


def spark_schema(schema: JsonObject, *, ids: bool = True) -> types.StructType:
    """The schema as Spark reads and writes it. Everything may be null to Spark: what is required is checked by us."""
    return types.StructType([_spark_field(field, field["name"], ids=ids) for field in schema["fields"]])


def has_untaggable(schema: JsonObject) -> bool:
    """Whether there is a list or a map at any depth: their inner fields get no id from Spark's own writer."""
    return any(_collections(field["type"]) for field in schema["fields"])


def iceberg_schema(schema: types.StructType) -> JsonObject:
    """The schema of a DataFrame in the table format. Its ids are placeholders, and every column is optional."""
    numbers = iter(range(1, 1_000_000))
    fields = [_iceberg_field(field, field.name, numbers) for field in schema.fields]
    return {"type": "struct", "schema-id": 0, "fields": fields}


def _spark_field(field: JsonObject, path: str, *, ids: bool) -> types.StructField:
    metadata = {FIELD_ID: field["id"]} if ids else {}
    return types.StructField(field["name"], spark_type(field["type"], path, ids=ids), True, metadata)


def spark_type(kind: Any, path: str, *, ids: bool = False) -> types.DataType:
    """One type; `path` is for the message."""
    if isinstance(kind, str):
        return _leaf(kind, path)
    if kind["type"] == "struct":
        fields = [_spark_field(field, f"{path}.{field['name']}", ids=ids) for field in kind["fields"]]
        return types.StructType(fields)
    if kind["type"] == "list":
        return types.ArrayType(spark_type(kind["element"], f"{path}.element", ids=ids))
    key = spark_type(kind["key"], f"{path}.key", ids=ids)
    return types.MapType(key, spark_type(kind["value"], f"{path}.value", ids=ids))


def _leaf(kind: str, path: str) -> types.DataType:
    plain = kind.replace(" ", "")
    if decimal := _DECIMAL.fullmatch(plain):
        return types.DecimalType(int(decimal[1]), int(decimal[2]))
    if plain not in _LEAVES:
        raise InvalidInput(
            f"column {clip(path)!r} has type {clip(kind)}, which Spark has no counterpart for",
            hint="leave the column out, or write it as another type",
        )
    return _LEAVES[plain]


def _collections(kind: Any) -> bool:
    if isinstance(kind, str):
        return False
    return kind["type"] in {"list", "map"} or any(_collections(field["type"]) for field in kind["fields"])


def _iceberg_field(field: types.StructField, path: str, numbers: Iterator[int]) -> JsonObject:
    number = next(numbers)
    kind = _iceberg_type(field.dataType, path, numbers)
    comment = field.metadata.get("comment") if field.metadata else None
    doc = {"doc": comment} if isinstance(comment, str) and comment else {}
    return {"id": number, "name": field.name, "required": False, "type": kind, **doc}


def _iceberg_type(kind: types.DataType, path: str, numbers: Iterator[int]) -> Any:
    match kind:
        case types.StructType():
            fields = [_iceberg_field(field, f"{path}.{field.name}", numbers) for field in kind.fields]
            return {"type": "struct", "fields": fields}
        case types.ArrayType():
            number = next(numbers)
            element = _iceberg_type(kind.elementType, f"{path}.element", numbers)
            return {"type": "list", "element-id": number, "element-required": False, "element": element}
        case types.MapType():
            key_id, value_id = next(numbers), next(numbers)
            key = _iceberg_type(kind.keyType, f"{path}.key", numbers)
            value = _iceberg_type(kind.valueType, f"{path}.value", numbers)
            ids = {"key-id": key_id, "value-id": value_id, "value-required": False}
            return {"type": "map", **ids, "key": key, "value": value}
        case types.DecimalType():
            return f"decimal({kind.precision}, {kind.scale})"
        case _:
            return _leaf_name(kind, path)


def _leaf_name(kind: types.DataType, path: str) -> str:
    name = _NAMES.get(type(kind))
    if name is None:
        hint = "cast it to the type it should have" if isinstance(kind, types.NullType) else "cast it to another type"
        raise InvalidInput(f"column {clip(path)!r} has Spark's type {kind.simpleString()}, which no table holds", hint=hint)
    return name

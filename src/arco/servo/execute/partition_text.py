"""Partition values as parts of file paths, and back: exact for every value, on every file system.

Whole numbers, and all that is counted in them (days, hours, buckets, truth), stay numbers: Spark shuffles and sorts them much
faster than texts, and null has a folder that no number has. Texts are another matter: Spark writes null and the empty text into
the same folder, and some file systems take `a` and `A` for one name. So texts, bytes and decimals are written as digits or
lower-case hexadecimal after a letter, and null as a letter of its own. `spark_write.py` makes these by Spark expressions; this
reads them.
"""

from decimal import Decimal
from typing import Any

from arco.iceberg.schemas import columns_by_id
from arco.iceberg.shape import JsonObject
from arco.kernel.errors import BrokenInvariant

NULL = "n"
VALUE = "v"
NULL_NUMBER = "__HIVE_DEFAULT_PARTITION__"  # the name is Spark's
PREFIX = "__p"

# What a folder's name leaves for a value in hexadecimal: longer texts cannot be partitioned by.
TEXT_BYTES_MAX = 120


def column_name(place: int) -> str:
    """The hidden column, and the folder, of a partition field."""
    return f"{PREFIX}{place}"


def is_number(kind: str) -> bool:
    """Whether values of a type are hidden columns of whole numbers; otherwise they are texts."""
    return kind not in {"string", "binary"} and not kind.startswith("decimal")


def kind_of(transform: str, source: str) -> str:
    """The type of a partition field's values: of a transform of a column of a type."""
    if transform.startswith("truncate") or transform == "identity":
        return source.replace(" ", "")
    return {"day": "date", "void": "void"}.get(transform, "int")


def kinds_of(spec: JsonObject, schema: JsonObject) -> list[str]:
    """The types of a spec's fields, in order. A field whose column is gone has no value any more."""
    found = columns_by_id(schema)
    return [
        kind_of(field["transform"], found[field["source-id"]].type) if field["source-id"] in found else "void"
        for field in spec["fields"]
    ]


def parse_value(kind: str, text: str) -> Any:
    """A value in the representation of the table format: days, microseconds, texts, bytes, decimals."""
    if is_number(kind):
        return _number(kind, text)
    if text == NULL:
        return None
    body = text.removeprefix(VALUE)
    if text == body:
        raise BrokenInvariant(f"{text!r} is not a partition value")
    if kind == "string":
        return bytes.fromhex(body).decode()
    if kind == "binary":
        return bytes.fromhex(body)
    return Decimal(body)


def _number(kind: str, text: str) -> int | bool | None:
    if text == NULL_NUMBER:
        return None
    try:
        return bool(int(text)) if kind == "boolean" else int(text)
    except ValueError:
        raise BrokenInvariant(f"{text!r} is not a partition value") from None


def parse_folders(path: str, kinds: list[str]) -> tuple[Any, ...]:
    """The partition of a file from the folders above it."""
    found = dict(part.split("=", 1) for part in path.split("/") if part.startswith(PREFIX) and "=" in part)
    try:
        return tuple(parse_value(kind, found[column_name(place)]) for place, kind in enumerate(kinds))
    except KeyError as error:
        raise BrokenInvariant(f"{path!r} lies in no folder of {error}") from error

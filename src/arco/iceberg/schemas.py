"""Schemas as they stand in metadata: checked, walked, compared and numbered afresh.

The structure is ours, so that fields a newer client adds survive and every refusal names the column. What a leaf means
(which transforms take it, how a default value is written) is asked of PyIceberg in `semantics.py`.

What must never enter: evolution rules between two schemas (the client decided them; the requirements guard them).
"""

from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from arco.iceberg.semantics import check_default, leaf
from arco.iceberg.shape import Id, JsonObject, Text, read, without_nulls
from arco.kernel.errors import InvalidMetadata
from arco.kernel.ids import clip

# The last 200 ids below 2^31 belong to metadata columns.
FIELD_ID_MAX = 2**31 - 1 - 200

_DEFAULTS_MIN_VERSION = 3


class Column(msgspec.Struct, frozen=True):
    """One field of a schema, at any depth; elements, keys and values of collections are fields too.

    A struct, because every walk makes one for every column: a frozen dataclass takes several times as long to make.
    """

    field_id: int
    path: tuple[str, ...]
    type: Any
    required: bool
    doc: str | None
    kind: Literal["field", "element", "key", "value"]
    parent: "Column | None"
    raw: JsonObject

    @property
    def name(self) -> str:
        return self.path[-1]

    @property
    def full_name(self) -> str:
        return ".".join(self.path)

    @property
    def is_leaf(self) -> bool:
        return isinstance(self.type, str)


class _Schema(msgspec.Struct, frozen=True, rename="kebab"):
    fields: list[Any]
    type: Literal["struct"] = "struct"
    schema_id: Id | None = None
    identifier_field_ids: tuple[Id, ...] = ()


class _Field(msgspec.Struct, frozen=True, rename="kebab"):
    id: Id
    name: Text
    required: bool
    type: Any
    doc: str | None = None


class _List(msgspec.Struct, frozen=True, rename="kebab"):
    element_id: Id
    element_required: bool
    element: Any


class _Map(msgspec.Struct, frozen=True, rename="kebab"):
    key_id: Id
    key: Any
    value_id: Id
    value_required: bool
    value: Any


class _Struct(msgspec.Struct, frozen=True, rename="kebab"):
    fields: list[Any]


def columns(schema: JsonObject) -> Iterator[Column]:
    """Every field, a parent before its children, siblings in their order."""
    yield from _struct_columns(schema, None)


def columns_by_id(schema: JsonObject) -> dict[int, Column]:
    return {column.field_id: column for column in columns(schema)}


def checked(schema: object, *, format_version: int | None) -> JsonObject:
    """The schema without nulls if it is valid; `None` for a view, which has no format version of its own."""
    return checked_columns(schema, format_version=format_version)[0]


def checked_columns(schema: object, *, format_version: int | None) -> tuple[JsonObject, dict[int, Column]]:
    """The same with its columns by id, for who needs both: they are walked once."""
    head = read(schema, _Schema, "schema")
    tidy = _tidy(schema)
    by_id: dict[int, Column] = {}
    names: set[tuple[str, ...]] = set()
    for column in columns(tidy):
        other = by_id.setdefault(column.field_id, column)
        if other is not column:
            raise InvalidMetadata(f"schema: columns {_quoted(other)} and {_quoted(column)} share id {column.field_id}")
        if column.path in names:
            raise InvalidMetadata(f"schema: there are two columns {_quoted(column)}")
        names.add(column.path)
        _check_column(column, format_version)
    for field_id in head.identifier_field_ids:
        _check_identifier_field(field_id, by_id.get(field_id))
    return {**tidy, "type": "struct"}, by_id


def meaning(schema: JsonObject) -> bytes:
    """Equal for schemas that differ in nothing but their id and their spelling."""
    normal = {key: value for key, value in schema.items() if key not in {"schema-id", "type", "identifier-field-ids"}}
    normal["fields"] = [_normal_field(field) for field in schema["fields"]]
    normal["identifier-field-ids"] = sorted(schema.get("identifier-field-ids") or ())
    return msgspec.json.encode(normal, order="deterministic")


def with_fresh_ids(schema: JsonObject) -> tuple[JsonObject, dict[int, int]]:
    """The schema numbered from 1, level by level as Iceberg does it, and which id became which."""
    fresh: dict[int, int] = {}
    renumbered: JsonObject = {**schema, "fields": _fresh_fields(schema["fields"], fresh)}
    if identifiers := schema.get("identifier-field-ids"):
        renumbered["identifier-field-ids"] = [fresh[field_id] for field_id in identifiers]
    return renumbered, fresh


# --- walking


def _struct_columns(struct: JsonObject, parent: Column | None) -> Iterator[Column]:
    for place, item in enumerate(struct["fields"]):
        field = _read_field(item, place, parent)
        column = Column(
            field.id, (*_path(parent), field.name), field.type, field.required, field.doc, "field", parent, item
        )
        yield column
        if not isinstance(field.type, str):
            yield from _below(column)


def _read_field(item: object, place: int, parent: Column | None) -> _Field:
    """Nearly every field is as it has to be: nothing is made for a message before one is not, or says null somewhere."""
    try:
        field = msgspec.convert(item, _Field)
    except msgspec.ValidationError:
        field = None
    if field is None or field.type is None:
        where = f"schema: field {place} of {_quoted(parent) if parent else 'the schema'}"
        field = read(item, _Field, where)
    return field


def _below(column: Column) -> Iterator[Column]:
    if column.is_leaf:
        return
    kind = column.type.get("type") if isinstance(column.type, dict) else None
    what = f"schema: type of {_quoted(column)}"
    if kind == "struct":
        read(column.type, _Struct, what)
        yield from _struct_columns(column.type, column)
    elif kind == "list":
        items = read(column.type, _List, what)
        yield from _inner(column, items.element_id, "element", items.element, required=items.element_required)
    elif kind == "map":
        entries = read(column.type, _Map, what)
        yield from _inner(column, entries.key_id, "key", entries.key, required=True)
        yield from _inner(column, entries.value_id, "value", entries.value, required=entries.value_required)
    else:
        raise InvalidMetadata(f"{what} must be text or an object of type struct, list or map")


def _inner(
    parent: Column, field_id: int, kind: Literal["element", "key", "value"], inner: Any, *, required: bool
) -> Iterator[Column]:
    column = Column(field_id, (*parent.path, kind), inner, required, None, kind, parent, {})
    yield column
    yield from _below(column)


def _path(parent: Column | None) -> tuple[str, ...]:
    return parent.path if parent else ()


def _quoted(column: Column) -> str:
    return repr(clip(column.full_name))


# --- checking


def _check_column(column: Column, format_version: int | None) -> None:
    if column.field_id > FIELD_ID_MAX:
        raise InvalidMetadata(f"schema: id {column.field_id} of {_quoted(column)} is reserved for metadata columns")
    if column.is_leaf:
        known = leaf(column.type)
        if known is None:
            raise InvalidMetadata(f"schema: type {clip(column.type)!r} of {_quoted(column)} is unknown")
        if format_version is not None and known.min_format_version > format_version:
            raise InvalidMetadata(
                f"Invalid schema for v{format_version}: type {clip(column.type)} of {_quoted(column)} is not supported "
                f"until v{known.min_format_version}"
            )
        if column.type == "unknown" and column.required:
            raise InvalidMetadata(f"schema: {_quoted(column)} has type unknown and must be optional")
    for key in ("initial-default", "write-default"):
        if column.raw.get(key) is not None:
            _check_default(column, key, format_version)


def _check_default(column: Column, key: str, format_version: int | None) -> None:
    if key == "initial-default" and format_version is not None and format_version < _DEFAULTS_MIN_VERSION:
        raise InvalidMetadata(
            f"Invalid schema for v{format_version}: initial-default of {_quoted(column)} is not supported "
            f"until v{_DEFAULTS_MIN_VERSION}"
        )
    # A default that no reader can parse would make the whole table unreadable.
    value = column.raw[key]
    fits = check_default(column.type, value) if column.is_leaf else value == {} and column.type["type"] == "struct"
    if not fits:
        raise InvalidMetadata(f"schema: {key} of {_quoted(column)} is not a value of its type")


def _check_identifier_field(field_id: int, column: Column | None) -> None:
    if column is None:
        raise InvalidMetadata(f"schema: identifier field {field_id} is not a column")
    name = _quoted(column)
    if not column.is_leaf or column.type in {"float", "double"} or not column.required:
        raise InvalidMetadata(f"schema: identifier field {name} must be required, and neither nested nor floating point")
    above = column.parent
    while above is not None:
        if not above.required or not isinstance(above.type, dict) or above.type["type"] != "struct":
            raise InvalidMetadata(
                f"schema: identifier field {name} lies in {_quoted(above)}, which is not a required struct"
            )
        above = above.parent


# --- rebuilding


def _tidy(value: Any) -> Any:
    """A copy without null members at any depth: some readers take an explicit null for a value of the wrong type."""
    if isinstance(value, dict):
        return {
            key: _tidy(item) if isinstance(item, dict | list) else item for key, item in value.items() if item is not None
        }
    if isinstance(value, list):
        return [_tidy(item) for item in value]
    return value


def _normal_field(field: JsonObject) -> object:
    kept = without_nulls(field)
    return {**kept, "type": _normal_type(field["type"])} if isinstance(kept, dict) else kept


def _normal_type(kind: Any) -> Any:
    if isinstance(kind, str):
        return kind.replace(" ", "")
    if kind["type"] == "struct":
        return {**kind, "fields": [_normal_field(field) for field in kind["fields"]]}
    if kind["type"] == "list":
        return {**kind, "element": _normal_type(kind["element"])}
    return {**kind, "key": _normal_type(kind["key"]), "value": _normal_type(kind["value"])}


def _fresh_fields(fields: list[JsonObject], fresh: dict[int, int]) -> list[JsonObject]:
    for field in fields:
        _take(field["id"], fresh)
    return [{**field, "id": fresh[field["id"]], "type": _fresh_type(field["type"], fresh)} for field in fields]


def _fresh_type(kind: Any, fresh: dict[int, int]) -> Any:
    if isinstance(kind, str):
        return kind
    if kind["type"] == "struct":
        return {**kind, "fields": _fresh_fields(kind["fields"], fresh)}
    if kind["type"] == "list":
        element_id = _take(kind["element-id"], fresh)
        return {**kind, "element-id": element_id, "element": _fresh_type(kind["element"], fresh)}
    key_id, value_id = _take(kind["key-id"], fresh), _take(kind["value-id"], fresh)
    key, value = _fresh_type(kind["key"], fresh), _fresh_type(kind["value"], fresh)
    return {**kind, "key-id": key_id, "key": key, "value-id": value_id, "value": value}


def _take(old_id: int, fresh: dict[int, int]) -> int:
    fresh[old_id] = len(fresh) + 1
    return fresh[old_id]

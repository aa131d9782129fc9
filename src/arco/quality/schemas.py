"""A schema as a list of columns with stable ids: what checks and compatibility compare.

Nested columns stand in the same list under their path: a struct's fields by name, a list's `element`, a map's `key` and
`value`. Types are Iceberg's spelling, and `struct`, `list` and `map` for what holds other columns.

What must never enter: numbering of ids, partition specs, and anything that changes a schema.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from arco.kernel.canonical_json import JsonValue
from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip

_DECIMAL = re.compile(r"decimal\(\s*([0-9]{1,2})\s*,\s*([0-9]{1,2})\s*\)")
_LEAF = re.compile(
    r"boolean|int|long|float|double|date|time|timestamp(?:tz)?(?:_ns)?|string|uuid|binary|unknown|variant"
    r"|fixed\[[0-9]{1,9}\]|decimal\([0-9]{1,2},[0-9]{1,2}\)|(?:geometry|geography)(?:\([^()\x00-\x1f]{1,200}\))?"
)
_NESTED = {"struct": ("fields",), "list": ("element",), "map": ("key", "value")}
_NOT_NULL = re.compile(r"\s+not\s+null\s*$", re.IGNORECASE)
_LEAF_HINT = "an Iceberg type: long, string, decimal(9,2), timestamptz …"

ColumnKey = int | str


@dataclass(frozen=True, slots=True)
class Column:
    """One column at any depth. `default` is what rows written before the column existed are read with; None is no default."""

    id: ColumnKey
    path: tuple[str, ...]
    type: str
    required: bool = False
    default: JsonValue = None
    doc: str | None = None
    parent: ColumnKey | None = None
    in_map_key: bool = False

    @property
    def name(self) -> str:
        return self.path[-1]

    @property
    def full_name(self) -> str:
        return ".".join(self.path)


@dataclass(frozen=True, slots=True)
class Schema:
    """Columns, a parent before its children, siblings in their order."""

    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        ids: dict[ColumnKey, Column] = {}
        paths: set[tuple[str, ...]] = set()
        for column in self.columns:
            other = ids.setdefault(column.id, column)
            if other is not column:
                raise InvalidInput(
                    f"columns {clip(other.full_name)!r} and {clip(column.full_name)!r} share id {column.id!r}"
                )
            if column.path in paths:
                raise InvalidInput(f"there are two columns {clip(column.full_name)!r}", hint="rename one of them")
            paths.add(column.path)

    @classmethod
    def of(cls, written: object) -> Self:
        """A schema as Iceberg writes it, or in short: `{"order_id": "long not null", "note": "string"}`.

        A field without an id gets its path as the id, which is right where nothing but names is compared.
        """
        if isinstance(written, Schema):
            return cls(written.columns)
        if not isinstance(written, Mapping):
            raise InvalidInput(f"a {type(written).__name__} is not a schema", hint='write {"order_id": "long not null"}')
        if isinstance(written.get("fields"), list):
            return cls(tuple(_fields(written["fields"], (), None, in_map_key=False)))
        return cls(tuple(_short(name, text) for name, text in written.items()))

    def by_id(self) -> dict[ColumnKey, Column]:
        return {column.id: column for column in self.columns}

    def by_path(self) -> dict[tuple[str, ...], Column]:
        return {column.path: column for column in self.columns}

    def describe(self) -> list[JsonValue]:
        """The columns as a document, without what people say of them."""
        return [
            {
                "id": column.id,
                "path": list(column.path),
                "type": column.type,
                "required": column.required,
                "default": column.default,
            }
            for column in self.columns
        ]


def mismatches(expected: Schema, actual: Schema, *, allow_extra: bool) -> list[str]:
    """How a schema differs from what was asked for, by name. A column may be stricter than asked, and stand anywhere."""
    wanted, found = expected.by_path(), actual.by_path()
    wrong = []
    for path, column in wanted.items():
        here = found.get(path)
        if here is None:
            wrong.append(f"{column.full_name} is missing")
        elif here.type != column.type:
            wrong.append(f"{column.full_name} is {here.type}, not {column.type}")
        elif column.required and not here.required:
            wrong.append(f"{column.full_name} may be NULL")
    if not allow_extra:
        wrong += [f"{column.full_name} is not expected" for path, column in found.items() if path not in wanted]
    return wrong


def quoted(path: tuple[str, ...]) -> str:
    """A column's path as Spark's SQL takes it, whatever is in its names."""
    return ".".join(f"`{part.replace('`', '``')}`" for part in path)


def type_text(written: str) -> str:
    """The one spelling of a primitive type."""
    text = _DECIMAL.sub(r"decimal(\1,\2)", written.strip())
    if _LEAF.fullmatch(text) is None:
        raise InvalidInput(f"{clip(written)!r} is not a type", hint=_LEAF_HINT)
    return text


def _short(name: str, text: object) -> Column:
    if not isinstance(text, str):
        raise InvalidInput(f"the type of column {clip(name)!r} is not text", hint=_LEAF_HINT)
    bare = _NOT_NULL.sub("", text)
    return Column(name, (name,), type_text(bare), required=bare != text)


def _fields(
    fields: Sequence[Any], path: tuple[str, ...], parent: ColumnKey | None, *, in_map_key: bool
) -> Iterator[Column]:
    for field in fields:
        if not isinstance(field, Mapping) or not isinstance(field.get("name"), str) or "type" not in field:
            raise InvalidInput(f"a field of {'.'.join(path) or 'the schema'} has no name or no type")
        here = (*path, field["name"])
        default = field.get("initial-default", field.get("default"))
        facts = {"default": default, "doc": field.get("doc"), "parent": parent, "in_map_key": in_map_key}
        required = field.get("required", False) is True
        yield from _column(field.get("id"), here, field["type"], required=required, **facts)


def _column(
    key: ColumnKey | None, path: tuple[str, ...], written: Any, *, required: bool, **facts: Any
) -> Iterator[Column]:
    key = ".".join(path) if key is None else key
    if isinstance(written, str):
        yield Column(key, path, type_text(written), required, **facts)
        return
    kind = written.get("type") if isinstance(written, Mapping) else None
    if kind not in _NESTED:
        raise InvalidInput(f"the type of column {clip('.'.join(path))!r} is not a type", hint=_LEAF_HINT)
    if missing := [part for part in _NESTED[kind] if part not in written]:
        raise InvalidInput(f"{kind} column {clip('.'.join(path))!r} lacks {missing[0]}")
    yield Column(key, path, kind, required, **facts)
    inside = facts["in_map_key"]
    below = {"parent": key, "in_map_key": inside}
    match kind:
        case "struct":
            yield from _fields(written["fields"], path, key, in_map_key=inside)
        case "list":
            must = written.get("element-required", False)
            yield from _column(written.get("element-id"), (*path, "element"), written["element"], required=must, **below)
        case _:
            under_key = {**below, "in_map_key": True}
            must = written.get("value-required", False)
            yield from _column(written.get("key-id"), (*path, "key"), written["key"], required=True, **under_key)
            yield from _column(written.get("value-id"), (*path, "value"), written["value"], required=must, **below)

"""Files that were not written for the table they are in: which of a table's columns such a file has, and under which names.

A file with ids on all its fields is read by id. A file with none is read by the names that the table's name mapping lists for
each id. A file with some is refused: it would be read partly by one rule and partly by the other.
"""

import re
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa
from pyiceberg.table.name_mapping import NameMapping, parse_mapping_from_json

from arco.iceberg.shape import JsonObject
from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip

NAME_MAPPING_PROPERTY = "schema.name-mapping.default"

_FIELD_ID = b"PARQUET:field_id"


@dataclass(frozen=True, slots=True)
class Names:
    """The schema that one kind of file without ids is read with: the table's, under the names of the file.

    A field that the file lacks stands under a name that no file has, so that it is read as null and nothing moves.
    """

    text: str

    @property
    def schema(self) -> JsonObject:
        found: JsonObject = msgspec.json.decode(self.text)
        return found


@dataclass(frozen=True, slots=True)
class InFile:
    """Which columns a file has (ids at the top level), and its names if it has no ids."""

    present: frozenset[int]
    names: Names | None


def names_in_file(location: str, file: pa.Schema, schema: JsonObject, properties: dict[str, str]) -> InFile:
    """What of a table's schema a file has."""
    ids = [field_id_of(field) for field in _all_fields(file)]
    if ids and all(one is not None for one in ids):
        return InFile(frozenset(one for field in file if (one := field_id_of(field)) is not None), None)
    if any(one is not None for one in ids):
        raise InvalidInput(f"{clip(location, 300)} has ids on some of its fields only", hint="write the file anew")
    mapping = properties.get(NAME_MAPPING_PROPERTY)
    if mapping is None:
        raise InvalidInput(
            f"{clip(location, 300)} has no field ids, and the table maps no names to ids",
            hint=f"set {NAME_MAPPING_PROPERTY}",
        )
    by_id = _by_id(parse_mapping_from_json(mapping))
    inside = {field.name: field for field in file}
    renamed = [_renamed(field, inside, by_id) for field in schema["fields"]]
    present = frozenset(
        field["id"] for field, found in zip(schema["fields"], renamed, strict=True) if found["name"] in inside
    )
    text = msgspec.json.encode({**schema, "fields": renamed}, order="deterministic").decode()
    return InFile(present, Names(text))


def field_id_of(field: pa.Field) -> int | None:
    """The id that a field of a file has."""
    text = (field.metadata or {}).get(_FIELD_ID)
    return int(text) if text is not None and re.fullmatch(rb"\d+", text) else None


def inner_fields(kind: Any) -> list[pa.Field]:
    """The fields right below a schema or a type; elements, keys and values are fields too."""
    if isinstance(kind, pa.Schema):
        return list(kind)
    if pa.types.is_struct(kind):
        return [kind.field(place) for place in range(kind.num_fields)]
    if pa.types.is_map(kind):
        return [kind.key_field, kind.item_field]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [kind.value_field]
    return []


def _all_fields(kind: Any) -> list[pa.Field]:
    return [found for field in inner_fields(kind) for found in (field, *_all_fields(field.type))]


def _by_id(mapping: NameMapping) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    left = list(mapping)
    while left:
        one = left.pop()
        if one.field_id is not None:
            found[one.field_id] = list(one.names)
        left += list(one.fields)
    return found


def _renamed(field: JsonObject, inside: dict[str, pa.Field], by_id: dict[int, list[str]]) -> JsonObject:
    name = next((one for one in by_id.get(field["id"], ()) if one in inside), None)
    if name is None:
        return {**field, "name": f"__absent_{field['id']}"}
    return {**field, "name": name, "type": _renamed_type(field["type"], inside[name].type, by_id)}


def _renamed_type(kind: Any, found: pa.DataType, by_id: dict[int, list[str]]) -> Any:
    if isinstance(kind, str):
        return kind
    if kind["type"] == "struct" and pa.types.is_struct(found):
        inside = {found.field(place).name: found.field(place) for place in range(found.num_fields)}
        return {**kind, "fields": [_renamed(field, inside, by_id) for field in kind["fields"]]}
    if kind["type"] == "list" and (pa.types.is_list(found) or pa.types.is_large_list(found)):
        return {**kind, "element": _renamed_type(kind["element"], found.value_type, by_id)}
    if kind["type"] == "map" and pa.types.is_map(found):
        key = _renamed_type(kind["key"], found.key_type, by_id)
        return {**kind, "key": key, "value": _renamed_type(kind["value"], found.item_type, by_id)}
    raise InvalidInput(f"a data file without ids has {found} where the table has a {kind['type']}", hint="write it anew")

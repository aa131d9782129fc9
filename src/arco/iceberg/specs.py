"""Partition specs and sort orders: checked against a schema, compared, and carried over to fresh column ids.

What must never enter: partition values, and the writing of files.
"""

from typing import Any, Literal

import msgspec

from arco.iceberg.schemas import Column
from arco.iceberg.semantics import can_transform, is_void, known_transform
from arco.iceberg.shape import Id, JsonObject, Text, read, without_nulls
from arco.kernel.errors import InvalidMetadata
from arco.kernel.ids import clip

PARTITION_FIELD_ID_FIRST = 1000
UNSORTED_ORDER_ID = 0

UNPARTITIONED: JsonObject = {"spec-id": 0, "fields": []}
UNSORTED: JsonObject = {"order-id": UNSORTED_ORDER_ID, "fields": []}


class _Fields(msgspec.Struct, frozen=True):
    fields: list[Any]


class _Source(msgspec.Struct, frozen=True, rename="kebab"):
    source_id: Id


class _PartitionField(msgspec.Struct, frozen=True, rename="kebab"):
    name: Text
    transform: Text
    source_id: Id
    field_id: Id | None = None


class _SortField(msgspec.Struct, frozen=True, rename="kebab"):
    transform: Text
    source_id: Id
    direction: Literal["asc", "desc"]
    null_order: Literal["nulls-first", "nulls-last"]


def checked_spec(spec: object, columns: dict[int, Column], *, first_new_id: int, known: list[JsonObject]) -> JsonObject:
    """The spec with an id on every field. A field without one gets the id of an equal field of `known` specs, or a new one."""
    items = [_one_source(item) for item in read(spec, _Fields, "partition spec").fields]
    fields = [read(item, _PartitionField, f"partition spec: field {place}") for place, item in enumerate(items)]
    column_ids = {column.full_name: column.field_id for column in columns.values()}
    names: set[str] = set()
    for field in fields:
        what = f"partition field {clip(field.name)!r}"
        if field.name in names:
            raise InvalidMetadata(f"{what}: the name is used more than once")
        names.add(field.name)
        _check_transform(what, field.transform, columns.get(field.source_id), "partition")
        if column_ids.get(field.name, field.source_id) != field.source_id:
            raise InvalidMetadata(f"{what}: a column it is not made from has the same name")
    ids = _field_ids(fields, first_new_id, known)
    if len(set(ids)) < len(ids):
        raise InvalidMetadata("partition spec: two fields share a field-id")
    numbered = [{**item, "field-id": field_id} for item, field_id in zip(items, ids, strict=True)]
    return {**_object(spec), "fields": numbered}


def checked_order(order: object, columns: dict[int, Column]) -> JsonObject:
    items = [_one_source(item) for item in read(order, _Fields, "sort order").fields]
    for place, item in enumerate(items):
        field = read(item, _SortField, f"sort order: field {place}")
        _check_transform(f"sort field {place}", field.transform, columns.get(field.source_id), "sort")
    return {**_object(order), "fields": items}


def check_stored_spec(spec: JsonObject) -> None:
    """Only that it can be read: its transforms may be newer than we are, and its columns gone."""
    for field in spec["fields"]:
        if read(_one_source(field), _PartitionField, "partition spec").field_id is None:
            raise InvalidMetadata("partition spec: a field has no field-id")


def check_stored_order(order: JsonObject) -> None:
    for field in order["fields"]:
        read(_one_source(field), _SortField, "sort order")


def check_spec_fits(spec: JsonObject, columns: dict[int, Column]) -> None:
    """A default spec must stay computable under the current schema; by what, is the business of whoever wrote it."""
    for field in spec["fields"]:
        if known_transform(field["transform"]):
            what = f"partition field {clip(field['name'])!r}"
            _check_transform(what, field["transform"], columns.get(_source_id(field)), "partition")


def check_order_fits(order: JsonObject, columns: dict[int, Column]) -> None:
    for place, field in enumerate(order["fields"]):
        if known_transform(field["transform"]):
            _check_transform(f"sort field {place}", field["transform"], columns.get(_source_id(field)), "sort")


def has_sequential_ids(spec: JsonObject) -> bool:
    """What format version 1 needs, because it stores no field ids in manifests."""
    ids = [field["field-id"] for field in spec["fields"]]
    return ids == list(range(PARTITION_FIELD_ID_FIRST, PARTITION_FIELD_ID_FIRST + len(ids)))


def spec_meaning(spec: JsonObject) -> bytes:
    return msgspec.json.encode([(_source_id(field), field["name"], field["transform"]) for field in spec["fields"]])


def order_meaning(order: JsonObject) -> bytes:
    fields = order["fields"]
    return msgspec.json.encode(
        [(_source_id(field), field["transform"], field["direction"], field["null-order"]) for field in fields]
    )


def remapped(spec_or_order: JsonObject, what: str, fresh: dict[int, int]) -> JsonObject:
    """The same fields over columns that were numbered afresh."""
    items = [_one_source(item) for item in read(spec_or_order, _Fields, what).fields]
    for place, item in enumerate(items):
        if read(item, _Source, f"{what}: field {place}").source_id not in fresh:
            raise InvalidMetadata(f"{what}: field {place} has no source column")
    return {**_object(spec_or_order), "fields": [{**item, "source-id": fresh[item["source-id"]]} for item in items]}


def _check_transform(what: str, transform: str, source: Column | None, verb: str) -> None:
    if not known_transform(transform):
        raise InvalidMetadata(f"{what}: transform {clip(transform)!r} is unknown")
    if is_void(transform):
        # What a removed partition column becomes; its source may be gone.
        return
    if source is None:
        raise InvalidMetadata(f"Cannot find source column for {what}")
    if not source.is_leaf:
        raise InvalidMetadata(f"{what}: Cannot {verb} by non-primitive source field {clip(source.full_name)!r}")
    if not can_transform(transform, source.type):
        raise InvalidMetadata(f"{what}: Invalid source type {source.type} for transform: {transform}")
    above = source.parent
    while above is not None:
        if above.type["type"] != "struct":
            raise InvalidMetadata(
                f"{what}: Cannot {verb} by a field inside the {above.type['type']} {clip(above.full_name)!r}"
            )
        above = above.parent


def _field_ids(fields: list[_PartitionField], first_new_id: int, known: list[JsonObject]) -> list[int]:
    if all(field.field_id is not None for field in fields):
        return [field.field_id for field in fields if field.field_id is not None]
    earlier = {(_source_id(old), old["transform"]): old["field-id"] for spec in known for old in spec["fields"]}
    taken = {field.field_id for field in fields}
    ids: list[int] = []
    for field in fields:
        field_id = field.field_id if field.field_id is not None else earlier.get((field.source_id, field.transform))
        if field_id is None or (field.field_id is None and field_id in taken):
            while first_new_id in taken:
                first_new_id += 1
            field_id = first_new_id
        taken.add(field_id)
        ids.append(field_id)
    return ids


def _one_source(item: object) -> JsonObject:
    """A field with `source-id`; newer clients may write a list with that one id."""
    field = _object(item)
    sources = field.get("source-ids")
    if "source-id" not in field and isinstance(sources, list) and len(sources) == 1:
        return {**{key: value for key, value in field.items() if key != "source-ids"}, "source-id": sources[0]}
    return field


def _source_id(field: JsonObject) -> int:
    found: int = _one_source(field)["source-id"]
    return found


def _object(value: object) -> JsonObject:
    kept = without_nulls(value)
    if not isinstance(kept, dict):
        raise InvalidMetadata("partition spec and sort order: every field must be an object")
    return kept

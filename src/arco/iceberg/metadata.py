"""Table metadata: the JSON document as it is stored, with typed access to what the catalog needs of it.

The document is kept whole. Fields that a newer client wrote are carried along, and a table with a thousand snapshots costs
no model per snapshot. Documents are values: nobody changes one in place, whoever wants another makes another.

What must never enter: how a document changes (`updates.py`) and how it becomes bytes (`table.py`).
"""

from dataclasses import dataclass
from typing import Any

from arco.iceberg.locations import without_trailing_slash
from arco.iceberg.schemas import columns
from arco.iceberg.shape import JsonObject
from arco.iceberg.specs import PARTITION_FIELD_ID_FIRST, UNSORTED, check_stored_order, check_stored_spec
from arco.iceberg.stored_document import WRONG, expect, find, in_words
from arco.kernel.errors import CorruptObject, UnknownFormat
from arco.kernel.identity import uuid_told_by

FORMAT_VERSIONS = (1, 2, 3)
DEFAULT_FORMAT_VERSION = 2
MAIN = "main"
NO_SNAPSHOT = -1

# Each list with the number that every entry has.
_LISTS = {
    "schemas": "schema-id",
    "partition-specs": "spec-id",
    "sort-orders": "order-id",
    "snapshots": "snapshot-id",
    "snapshot-log": "snapshot-id",
    "metadata-log": "timestamp-ms",
    "statistics": "snapshot-id",
    "partition-statistics": "snapshot-id",
}
_TIMED = ("snapshots", "snapshot-log")
_OBJECTS = ("properties", "refs")
_NUMBERS = (
    "last-updated-ms",
    "last-column-id",
    "current-schema-id",
    "default-spec-id",
    "last-partition-id",
    "default-sort-order-id",
)
_KEPT_BY_REFS = ("min-snapshots-to-keep", "max-snapshot-age-ms", "max-ref-age-ms")
_OPTIONAL_NUMBERS = ("last-sequence-number", "next-row-id", "current-snapshot-id")
_REQUIRED = frozenset({*_NUMBERS, "table-uuid", "location", "schema", "partition-spec"})


@dataclass(frozen=True, slots=True)
class TableMetadata:
    """One state of one table."""

    document: JsonObject

    @property
    def format_version(self) -> int:
        return int(self.document["format-version"])

    @property
    def table_uuid(self) -> str:
        return str(self.document["table-uuid"])

    @property
    def location(self) -> str:
        return str(self.document["location"])

    @property
    def last_updated_ms(self) -> int:
        return int(self.document["last-updated-ms"])

    @property
    def last_sequence_number(self) -> int:
        return int(self.document.get("last-sequence-number") or 0)

    @property
    def last_column_id(self) -> int:
        return int(self.document["last-column-id"])

    @property
    def last_partition_id(self) -> int:
        return int(self.document["last-partition-id"])

    @property
    def properties(self) -> dict[str, str]:
        found: dict[str, str] = self.document["properties"]
        return found

    @property
    def schemas(self) -> list[JsonObject]:
        found: list[JsonObject] = self.document["schemas"]
        return found

    @property
    def current_schema_id(self) -> int:
        return int(self.document["current-schema-id"])

    @property
    def current_schema(self) -> JsonObject:
        return next(schema for schema in self.schemas if schema["schema-id"] == self.current_schema_id)

    @property
    def default_spec_id(self) -> int:
        return int(self.document["default-spec-id"])

    @property
    def default_sort_order_id(self) -> int:
        return int(self.document["default-sort-order-id"])

    @property
    def current_snapshot_id(self) -> int | None:
        found = self.document.get("current-snapshot-id")
        return None if found is None or found == NO_SNAPSHOT else int(found)

    @property
    def snapshots(self) -> list[JsonObject]:
        found: list[JsonObject] = self.document["snapshots"]
        return found

    @property
    def refs(self) -> dict[str, JsonObject]:
        found: dict[str, JsonObject] = self.document["refs"]
        return found


def empty_document(format_version: int) -> JsonObject:
    """The frame that a create commit fills in; its order of fields is the order in files."""
    document: JsonObject = {
        "format-version": format_version,
        "table-uuid": None,
        "location": None,
        "last-sequence-number": 0,
        "last-updated-ms": 0,
        "last-column-id": 0,
        "current-schema-id": None,
        "schemas": [],
        "default-spec-id": None,
        "partition-specs": [],
        "last-partition-id": PARTITION_FIELD_ID_FIRST - 1,
        "default-sort-order-id": None,
        "sort-orders": [],
        "properties": {},
        "current-snapshot-id": NO_SNAPSHOT,
        "refs": {},
        "snapshots": [],
        "statistics": [],
        "partition-statistics": [],
        "snapshot-log": [],
        "metadata-log": [],
    }
    if format_version == 1:
        del document["last-sequence-number"]
    if format_version >= 3:
        document["next-row-id"] = 0
    return document


def from_document(document: object, name: str) -> TableMetadata:
    """Metadata that somebody stored, with what older versions left out filled in; `name` is for the message."""
    if not isinstance(document, dict):
        raise CorruptObject(f"{name}: table metadata is not a JSON object")
    version = document.get("format-version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise CorruptObject(f"{name}: format-version is missing or not a number")
    if version not in FORMAT_VERSIONS:
        raise UnknownFormat(f"{name}: table format version {version} is not supported, 1 to {FORMAT_VERSIONS[-1]} are")
    try:
        filled = _filled(document, version)
        _check(filled)
    except WRONG as error:
        raise CorruptObject(f"{name}: not table metadata: {in_words(error, _REQUIRED)}") from None
    return TableMetadata(filled)


def _filled(document: JsonObject, version: int) -> JsonObject:
    filled = {key: value for key, value in document.items() if value is not None or key not in _KNOWN_OPTIONAL}
    for key in _LISTS:
        filled.setdefault(key, [])
    for key in _OBJECTS:
        filled.setdefault(key, {})
    if version == 1:
        _fill_from_v1(filled)
    else:
        filled.setdefault("last-sequence-number", 0)
    if version >= 3:
        filled.setdefault("next-row-id", 0)
    current = filled.get("current-snapshot-id", NO_SNAPSHOT)
    if current != NO_SNAPSHOT and MAIN not in filled["refs"]:
        filled["refs"] = {MAIN: {"snapshot-id": current, "type": "branch"}, **filled["refs"]}
    return filled


def _fill_from_v1(filled: JsonObject) -> None:
    """Early tables have one schema, one list of partition fields without ids, no sort order, and perhaps no uuid.

    A uuid that is missing follows from the table's place: every version of the table gets the same, whoever reads it, and the
    next commit writes it down.
    """
    if filled.get("table-uuid") is None and isinstance(filled["location"], str):
        filled["table-uuid"] = uuid_told_by("iceberg v1 table", without_trailing_slash(filled["location"]))
    if not filled["schemas"]:
        schema = {**filled["schema"], "schema-id": filled["schema"].get("schema-id", 0)}
        filled["schemas"], filled["current-schema-id"] = [schema], schema["schema-id"]
    if not filled["partition-specs"]:
        fields = [
            {**field, "field-id": field.get("field-id", PARTITION_FIELD_ID_FIRST + place)}
            for place, field in enumerate(filled["partition-spec"])
        ]
        filled["partition-specs"], filled["default-spec-id"] = [{"spec-id": 0, "fields": fields}], 0
    if not filled["sort-orders"]:
        filled["sort-orders"], filled["default-sort-order-id"] = [UNSORTED], UNSORTED["order-id"]
    used = [field["field-id"] for spec in filled["partition-specs"] for field in spec["fields"]]
    filled.setdefault("last-partition-id", max(used, default=PARTITION_FIELD_ID_FIRST - 1))


def _check(document: JsonObject) -> None:
    """What the rest of this room relies on when it looks into a document, and no more: it is read on every commit."""
    for key in ("table-uuid", "location"):
        expect(isinstance(document[key], str) and bool(document[key]), key)
    for key in (*_NUMBERS, *(key for key in _OPTIONAL_NUMBERS if key in document)):
        expect(type(document[key]) is int, key)
    for key, number in _LISTS.items():
        entries = document[key]
        expect(type(entries) is list and all(type(entry) is dict and type(entry[number]) is int for entry in entries), key)
    for key in ("schemas", "partition-specs", "sort-orders"):
        expect(all(type(entry["fields"]) is list for entry in document[key]), key)
    for spec in document["partition-specs"]:
        check_stored_spec(spec)
    for order in document["sort-orders"]:
        check_stored_order(order)
    expect(all(type(key["key-id"]) is str for key in document.get("encryption-keys", ())), "encryption-keys")
    for key in _OBJECTS:
        expect(type(document[key]) is dict, key)
    expect(all(type(value) is str for value in document["properties"].values()), "properties")
    expect(all(type(entry["timestamp-ms"]) is int for key in _TIMED for entry in document[key]), "a timestamp-ms")
    expect(all(type(entry["metadata-file"]) is str for entry in document["metadata-log"]), "metadata-log")
    for key in ("statistics", "partition-statistics"):
        expect(all(type(entry["statistics-path"]) is str for entry in document[key]), key)
        expect(all(type(entry["file-size-in-bytes"]) is int for entry in document[key]), key)
    for snapshot in document["snapshots"]:
        # What is null is not there: version 1 has snapshots without a summary, and the first has no parent.
        expect(type(snapshot.get("summary") or {}) is dict, "summary of a snapshot")
        expect(type(snapshot.get("parent-snapshot-id") or 0) is int, "parent-snapshot-id of a snapshot")
    _check_links(document)


def _check_links(document: JsonObject) -> None:
    snapshot_ids = {snapshot["snapshot-id"] for snapshot in document["snapshots"]}
    for ref in document["refs"].values():
        expect(ref["snapshot-id"] in snapshot_ids and ref["type"] in {"branch", "tag"}, "refs")
        expect(all(type(ref.get(key) or 0) is int for key in _KEPT_BY_REFS), "refs")
    current = document.get("current-snapshot-id", NO_SNAPSHOT)
    expect(current == document["refs"].get(MAIN, {"snapshot-id": NO_SNAPSHOT})["snapshot-id"], "current-snapshot-id")
    schema = find(document, "schemas", "schema-id", "current-schema-id", document["current-schema-id"])
    for _ in columns(schema):
        pass
    find(document, "partition-specs", "spec-id", "default-spec-id", document["default-spec-id"])


# Fields whose null means "absent"; a null in a field we do not know is somebody's value and stays.
_KNOWN_OPTIONAL: frozenset[Any] = frozenset(
    {
        *_LISTS,
        *_OBJECTS,
        "partition-statistics",
        "current-snapshot-id",
        "last-sequence-number",
        "next-row-id",
        "encryption-keys",
    }
)

"""View metadata: the JSON document as it is stored, with typed access to what the catalog needs of it.

Kept whole and never changed in place, as table metadata is. What must never enter: how a view changes (`views.py`).
"""

from dataclasses import dataclass

from arco.iceberg import metadata_file
from arco.iceberg.schemas import columns
from arco.iceberg.shape import JsonObject
from arco.iceberg.stored_document import WRONG, expect, find, in_words
from arco.kernel.errors import CorruptObject, UnknownFormat

VIEW_FORMAT_VERSION = 1
_REQUIRED = frozenset({"view-uuid", "location", "current-version-id", "versions", "version-log", "schemas"})


@dataclass(frozen=True, slots=True)
class ViewMetadata:
    """One state of one view."""

    document: JsonObject

    @property
    def view_uuid(self) -> str:
        return str(self.document["view-uuid"])

    @property
    def location(self) -> str:
        return str(self.document["location"])

    @property
    def properties(self) -> dict[str, str]:
        found: dict[str, str] = self.document["properties"]
        return found

    @property
    def current_version_id(self) -> int:
        return int(self.document["current-version-id"])

    @property
    def current_version(self) -> JsonObject:
        return next(one for one in self.versions if one["version-id"] == self.current_version_id)

    @property
    def versions(self) -> list[JsonObject]:
        found: list[JsonObject] = self.document["versions"]
        return found

    @property
    def version_log(self) -> list[JsonObject]:
        found: list[JsonObject] = self.document["version-log"]
        return found

    @property
    def schemas(self) -> list[JsonObject]:
        found: list[JsonObject] = self.document["schemas"]
        return found

    @property
    def current_schema(self) -> JsonObject:
        schema_id = self.current_version["schema-id"]
        return next(schema for schema in self.schemas if schema["schema-id"] == schema_id)


def encode_view(metadata: ViewMetadata, location: str) -> bytes:
    return metadata_file.to_bytes(metadata.document, location)


def decode_view(data: bytes, location: str) -> ViewMetadata:
    """The view in a file; `CorruptObject`, `UnknownFormat` or `TooLarge` if there is none to be had."""
    document = metadata_file.from_bytes(data, location)
    if not isinstance(document, dict) or type(document.get("format-version")) is not int:
        raise CorruptObject(f"{location}: not view metadata: its format-version is missing or not a number")
    if document["format-version"] != VIEW_FORMAT_VERSION:
        version = document["format-version"]
        raise UnknownFormat(f"{location}: view format version {version} is not supported, {VIEW_FORMAT_VERSION} is")
    metadata = ViewMetadata({**document, "properties": document.get("properties") or {}})
    try:
        _check(metadata)
    except WRONG as error:
        raise CorruptObject(f"{location}: not view metadata: {in_words(error, _REQUIRED)}") from None
    return metadata


def _check(metadata: ViewMetadata) -> None:
    document = metadata.document
    for key in ("view-uuid", "location"):
        expect(isinstance(document[key], str) and bool(document[key]), key)
    expect(type(document["properties"]) is dict, "properties")
    expect(all(type(value) is str for value in metadata.properties.values()), "properties")
    for key, number in (("versions", "version-id"), ("version-log", "version-id"), ("schemas", "schema-id")):
        entries = document[key]
        expect(type(entries) is list and all(type(entry) is dict and type(entry[number]) is int for entry in entries), key)
    expect(all(type(entry["timestamp-ms"]) is int for entry in metadata.version_log), "version-log")
    for version in metadata.versions:
        expect(type(version["timestamp-ms"]) is int, "timestamp-ms of a version")
        expect(all(type(one) is dict for one in version["representations"]), "representations")
        _ = version["schema-id"], version["default-namespace"]
    current = find(document, "versions", "version-id", "current-version-id", document["current-version-id"])
    for _ in columns(find(document, "schemas", "schema-id", "current version's schema-id", current["schema-id"])):
        pass

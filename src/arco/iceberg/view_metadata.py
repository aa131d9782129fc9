"""View metadata: the JSON document as it is stored, with typed access to what the catalog needs of it.

Kept whole and never changed in place, as table metadata is. What must never enter: how a view changes (`views.py`).
"""

from dataclasses import dataclass

from arco.iceberg import metadata_file
from arco.iceberg.schemas import columns
from arco.iceberg.shape import JsonObject
from arco.kernel.errors import CorruptObject, InvalidInput, UnknownFormat

VIEW_FORMAT_VERSION = 1


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
        raise CorruptObject(f"{location}: not view metadata (format-version is missing or not a number)")
    if document["format-version"] != VIEW_FORMAT_VERSION:
        raise UnknownFormat(f"{location}: view format version {document['format-version']} is not v{VIEW_FORMAT_VERSION}")
    metadata = ViewMetadata({**document, "properties": document.get("properties") or {}})
    try:
        _check(metadata)
    except (KeyError, TypeError, ValueError, StopIteration, InvalidInput) as error:
        raise CorruptObject(f"{location}: not view metadata ({type(error).__name__}: {error})") from None
    return metadata


def _check(metadata: ViewMetadata) -> None:
    document = metadata.document
    for key in ("view-uuid", "location"):
        _expect(isinstance(document[key], str) and bool(document[key]), key)
    _expect(type(document["properties"]) is dict, "properties")
    _expect(all(type(value) is str for value in metadata.properties.values()), "properties")
    for key, number in (("versions", "version-id"), ("version-log", "version-id"), ("schemas", "schema-id")):
        entries = document[key]
        _expect(type(entries) is list and all(type(entry) is dict and type(entry[number]) is int for entry in entries), key)
    _expect(all(type(entry["timestamp-ms"]) is int for entry in metadata.version_log), "version-log")
    for version in metadata.versions:
        _expect(type(version["timestamp-ms"]) is int, "timestamp-ms of a version")
        _expect(all(type(one) is dict for one in version["representations"]), "representations")
        _ = version["schema-id"], version["default-namespace"]
    # The current version and its schema are found, or this raises.
    for _ in columns(metadata.current_schema):
        pass


def _expect(holds: bool, key: str) -> None:  # noqa: FBT001 - an assertion with a name
    if not holds:
        raise ValueError(f"{key} is wrong or missing")

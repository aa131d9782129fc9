"""Views: making one, replacing its definition, and the history of its versions.

A definition that is already there is used again instead of stored twice; old versions are forgotten beyond
`version.history.num-entries`. Column ids of a view stay as sent: no file depends on them. What must never enter: the text
of queries (it is data here), and the dialects' meaning.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from arco.iceberg import changes, schemas
from arco.iceberg.changes import ViewUpdate
from arco.iceberg.locations import same_place, without_trailing_slash
from arco.iceberg.numbered import Numbered
from arco.iceberg.requests import CreateView
from arco.iceberg.shape import LAST_ADDED, Count, Id, IdOrLast, JsonObject, Text, read, without_nulls
from arco.iceberg.updates import property_as_int
from arco.iceberg.view_metadata import VIEW_FORMAT_VERSION, ViewMetadata
from arco.kernel.errors import Conflict, InvalidMetadata
from arco.kernel.ids import clip
from arco.kernel.limits import SNAPSHOT_LEAD_MS_MAX

HISTORY_PROPERTY = "version.history.num-entries"
HISTORY_DEFAULT = 10
DROP_DIALECT_PROPERTY = "replace.drop-dialect.allowed"


class _Version(msgspec.Struct, frozen=True, rename="kebab"):
    version_id: Id
    timestamp_ms: Count
    schema_id: IdOrLast
    representations: list[Any]
    default_namespace: tuple[str, ...]
    summary: dict[str, str] = {}
    default_catalog: str | None = None


class _Representation(msgspec.Struct, frozen=True):
    type: Text


class _SqlRepresentation(msgspec.Struct, frozen=True):
    sql: Text
    dialect: Text


@dataclass(slots=True)
class _Draft:
    """A view's next document; it owns its lists and maps, never their entries."""

    document: JsonObject
    creating: bool
    now_ms: int
    schemas: Numbered
    versions: Numbered


def new_view(request: CreateView, *, view_uuid: str, location: str, now_ms: int) -> ViewMetadata:
    """Metadata for a create request; the version's schema id gives way to the id its schema gets."""
    version = {**request.view_version, "schema-id": LAST_ADDED}
    updates: list[ViewUpdate] = [
        changes.AssignUuid(view_uuid),
        changes.SetLocation(location),
        changes.SetProperties(request.properties),
        changes.AddSchema(request.schema),
        changes.AddViewVersion(version),
        changes.SetCurrentViewVersion(LAST_ADDED),
    ]
    return _applied(None, updates, now_ms)


def apply_view(base: ViewMetadata, updates: Sequence[ViewUpdate], *, now_ms: int) -> ViewMetadata:
    """The view after the updates; `base` itself, the same object, if they change nothing."""
    return _applied(base, updates, now_ms)


def commit_conflict(view: str) -> Conflict:
    """What a lost race for a view is answered with; clients look for the first two words."""
    return Conflict(f"Cannot commit to view {view}: it was changed by somebody else")


# --- updates


def _assign_uuid(draft: _Draft, update: changes.AssignUuid) -> None:
    current = draft.document["view-uuid"]
    if current is None:
        draft.document["view-uuid"] = update.uuid
    elif current.lower() != update.uuid.lower():
        raise InvalidMetadata(f"Cannot reassign uuid: the view is {current}")


def _upgrade_format_version(draft: _Draft, update: changes.UpgradeFormatVersion) -> None:
    current = draft.document["format-version"]
    if update.format_version < current:
        raise InvalidMetadata(f"Cannot downgrade v{current} view to v{update.format_version}")
    if update.format_version > VIEW_FORMAT_VERSION:
        raise InvalidMetadata(
            f"Cannot upgrade view to unsupported format version: v{update.format_version} (supported: v{VIEW_FORMAT_VERSION})"
        )


def _add_schema(draft: _Draft, update: changes.AddSchema) -> None:
    # Nothing outside knows a view's schema by its id, so ids count from 0 whatever the client sent.
    draft.schemas.add(schemas.checked(update.schema, format_version=None), keep_id=False)


def _set_location(draft: _Draft, update: changes.SetLocation) -> None:
    current = draft.document["location"]
    if current is None or not same_place(current, update.location):
        draft.document["location"] = without_trailing_slash(update.location)


def _set_properties(draft: _Draft, update: changes.SetProperties) -> None:
    draft.document["properties"].update(update.updates)


def _remove_properties(draft: _Draft, update: changes.RemoveProperties) -> None:
    for key in update.removals:
        draft.document["properties"].pop(key, None)


def _add_view_version(draft: _Draft, update: changes.AddViewVersion) -> None:
    version = read(update.view_version, _Version, "view version")
    if not version.representations:
        raise InvalidMetadata("Invalid view version: it has no representation")
    if version.timestamp_ms > draft.now_ms + SNAPSHOT_LEAD_MS_MAX:
        raise InvalidMetadata(
            f"view version: timestamp-ms {version.timestamp_ms} is more than a day ahead of the server's clock"
        )
    _refuse_two_queries_of_one_dialect(version.representations)
    if version.schema_id == LAST_ADDED and draft.schemas.last_added is None:
        raise InvalidMetadata("Cannot set last added schema: no schema has been added")
    if version.schema_id != LAST_ADDED and draft.schemas.get(version.schema_id) is None:
        raise InvalidMetadata(f"Cannot add version with unknown schema: {version.schema_id}")
    kept: Any = without_nulls(update.view_version)
    entry = {"summary": {}, **kept, "schema-id": draft.schemas.resolve(version.schema_id)}
    draft.versions.add(entry, keep_id=draft.creating)


def _set_current_view_version(draft: _Draft, update: changes.SetCurrentViewVersion) -> None:
    draft.document["current-version-id"] = draft.versions.resolve(update.view_version_id)


_APPLY: dict[type, Callable[[_Draft, Any], None]] = {
    changes.AssignUuid: _assign_uuid,
    changes.UpgradeFormatVersion: _upgrade_format_version,
    changes.AddSchema: _add_schema,
    changes.SetLocation: _set_location,
    changes.SetProperties: _set_properties,
    changes.RemoveProperties: _remove_properties,
    changes.AddViewVersion: _add_view_version,
    changes.SetCurrentViewVersion: _set_current_view_version,
}


# --- the whole


def _applied(base: ViewMetadata | None, updates: Sequence[ViewUpdate], now_ms: int) -> ViewMetadata:
    draft = _open(base, now_ms)
    for update in updates:
        _APPLY[type(update)](draft, update)
    document = draft.document
    if base is not None and document == base.document:
        return base
    current = draft.versions.get(document["current-version-id"])
    if current is None:
        raise InvalidMetadata("a view needs a current version")
    if base is None or base.current_version_id != current["version-id"]:
        if base is not None:
            _refuse_lost_dialects(base.current_version, current, document["properties"])
        _log_current(draft, current)
    _forget_old_versions(draft)
    return ViewMetadata(document)


def _open(base: ViewMetadata | None, now_ms: int) -> _Draft:
    source = _EMPTY if base is None else base.document
    owned: JsonObject = {key: _owned(value) for key, value in source.items()}
    return _Draft(
        document=owned,
        creating=base is None,
        now_ms=now_ms,
        schemas=Numbered("schema", "schema-id", owned["schemas"], schemas.meaning),
        versions=Numbered("version", "version-id", owned["versions"], _definition, first_id=1),
    )


_EMPTY: JsonObject = {
    "view-uuid": None,
    "format-version": VIEW_FORMAT_VERSION,
    "location": None,
    "properties": {},
    "schemas": [],
    "current-version-id": None,
    "versions": [],
    "version-log": [],
}


def _owned(value: object) -> object:
    if isinstance(value, list):
        return list(value)
    return dict(value) if isinstance(value, dict) else value


def _definition(version: JsonObject) -> bytes:
    """Equal for versions that mean the same: who made it, and when, is not part of what a view is."""
    parts = (
        version["representations"],
        version["schema-id"],
        version["default-namespace"],
        version.get("default-catalog"),
    )
    return msgspec.json.encode(parts, order="deterministic")


def _log_current(draft: _Draft, current: JsonObject) -> None:
    log = draft.document["version-log"]
    made_now = current["version-id"] in draft.versions.added
    earliest = log[-1]["timestamp-ms"] if log else 0
    timestamp_ms = max(current["timestamp-ms"] if made_now else draft.now_ms, earliest)
    log.append({"timestamp-ms": timestamp_ms, "version-id": current["version-id"]})


def _forget_old_versions(draft: _Draft) -> None:
    size = property_as_int(draft.document["properties"], HISTORY_PROPERTY, HISTORY_DEFAULT)
    if size <= 0:
        raise InvalidMetadata(f"{HISTORY_PROPERTY} must be positive but was {size}")
    versions = draft.versions.entries
    # What this request added stays, even beyond the limit: its answer must show it.
    room = max(size, len(draft.versions.added))
    if len(versions) <= room:
        return
    kept = {draft.document["current-version-id"]}
    for version_id in sorted((version["version-id"] for version in versions), reverse=True):
        if len(kept) < room:
            kept.add(version_id)
    draft.versions.remove({version["version-id"] for version in versions} - kept)
    log: list[JsonObject] = []
    for entry in draft.document["version-log"]:
        if entry["version-id"] in kept:
            log.append(entry)
        else:
            log.clear()
    draft.document["version-log"] = log


def _refuse_two_queries_of_one_dialect(representations: Iterable[Any]) -> None:
    seen: set[str] = set()
    for place, representation in enumerate(representations):
        what = f"view version: representation {place}"
        if read(representation, _Representation, what).type != "sql":
            continue
        dialect = read(representation, _SqlRepresentation, what).dialect.lower()
        if dialect in seen:
            raise InvalidMetadata(f"Invalid view version: Cannot add multiple queries for dialect {clip(dialect)}")
        seen.add(dialect)


def _dialects(version: JsonObject) -> set[str]:
    sql = (one for one in version["representations"] if one.get("type") == "sql")
    return {str(one.get("dialect", "")).lower() for one in sql}


def _refuse_lost_dialects(before: JsonObject, after: JsonObject, properties: dict[str, str]) -> None:
    """An engine that replaces a view must not take it away from the readers of another engine unasked."""
    old, new = _dialects(before), _dialects(after)
    if properties.get(DROP_DIALECT_PROPERTY, "false").lower() == "true" or old <= new:
        return
    raise InvalidMetadata(
        f"Cannot replace view due to loss of view dialects ({DROP_DIALECT_PROPERTY}=false): "
        f"Previous dialects: {sorted(old)} New dialects: {sorted(new)}"
    )

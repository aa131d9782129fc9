"""What happened to a table, newest first, from what the table itself remembers.

Snapshots, metadata files, versions of a view, former names, and drops that can still be undone. Every commit of tier 1 that
touched the table is in the chain as well, but finding them means reading the whole chain; nothing here does.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from arco.catalog.catalog import Catalog
from arco.catalog.inventory import Inventory, Place
from arco.catalog.model import Dropped, Entry, Format, Kind, dotted
from arco.catalog.overview import summary_count
from arco.catalog.subject import Tables, Views
from arco.iceberg.metadata import TableMetadata
from arco.iceberg.view_metadata import ViewMetadata
from arco.kernel.errors import NoSuchTable


class Happening(msgspec.Struct, frozen=True):
    """One thing that happened. `what` is a word, `facts` what there is to know of it."""

    at_ms: int
    what: str
    facts: dict[str, Any]


async def timeline_of(catalog: Catalog, place: Place) -> list[Happening]:
    """The history of the table of this name, or of what was dropped last under it. All that happened, newest first."""
    names = await Inventory(catalog).names()
    entry, gone = names.entries.get(place), names.last_dropped(*place)
    if entry is None and gone is None:
        raise NoSuchTable(f"Table does not exist: {dotted(*place)}")
    subject = entry or (gone.entry if gone else None)
    found = [] if subject is None else [*await _recorded(catalog, subject), *_named(subject)]
    drops = [one for one in names.dropped.values() if (one.entry.namespace, one.entry.name) == place]
    # The sort is stable: of two things of one moment, the one that is listed last here happened first.
    return sorted([*(_drop(one, subject) for one in drops), *found], key=lambda one: -one.at_ms)


def _named(entry: Entry) -> Iterator[Happening]:
    """Names that the table had, and its beginning."""
    became = (entry.namespace, entry.name)
    for former in reversed(entry.former_names):
        facts = {"from": [*former.namespace, former.name], "to": [*became[0], became[1]]}
        yield Happening(former.until_ms, "renamed", facts)
        became = (former.namespace, former.name)
    yield Happening(entry.created_ms, "created", {"format": entry.format, "location": entry.location})


def _drop(dropped: Dropped, subject: Entry | None) -> Happening:
    """A drop that can be undone: of this table, or of another that had the name before it."""
    other = {} if subject is not None and subject.uuid == dropped.entry.uuid else {"earlier_table": dropped.entry.uuid}
    facts = {"drop_id": dropped.drop_id, "by": dropped.principal, "purge": dropped.purge}
    return Happening(dropped.dropped_ms, "dropped", facts | other)


async def _recorded(catalog: Catalog, entry: Entry) -> list[Happening]:
    """What the table's metadata remembers."""
    if entry.format is not Format.ICEBERG:
        return []
    pointer = await catalog.parts.pointers.read(entry.uuid)
    location = None if pointer is None else pointer.value.metadata_location
    if pointer is None and entry.start is not None:
        location = entry.start.metadata_location
    if location is None:
        return []
    data = await catalog.parts.files.read(location)
    if entry.kind is Kind.VIEW:
        return [*_versions(Views().decode(data, location))]
    metadata = Tables().decode(data, location)
    return [*_files(metadata, location), *_snapshots(metadata)]


def _files(metadata: TableMetadata, location: str) -> Iterator[Happening]:
    yield Happening(metadata.last_updated_ms, "committed", {"metadata_location": location, "current": True})
    log: list[dict[str, Any]] = metadata.document["metadata-log"]
    for one in reversed(log):
        facts = {"metadata_location": str(one.get("metadata-file")), "current": False}
        yield Happening(int(one["timestamp-ms"]), "committed", facts)


def _snapshots(metadata: TableMetadata) -> Iterator[Happening]:
    refs: dict[int, list[str]] = {}
    for name, ref in metadata.refs.items():
        refs.setdefault(ref["snapshot-id"], []).append(name)
    for one in reversed(metadata.snapshots):
        facts = {
            "snapshot_id": one["snapshot-id"],
            "parent_id": one.get("parent-snapshot-id"),
            "operation": str((one.get("summary") or {}).get("operation", "unknown")),
            "refs": refs.get(one["snapshot-id"], []),
            "added_rows": summary_count(one, "added-records"),
            "deleted_rows": summary_count(one, "deleted-records"),
            "rows": summary_count(one, "total-records"),
            "added_files": summary_count(one, "added-data-files"),
            "deleted_files": summary_count(one, "deleted-data-files"),
            "size_bytes": summary_count(one, "total-files-size"),
        }
        yield Happening(int(one["timestamp-ms"]), "snapshot", facts)


def _versions(metadata: ViewMetadata) -> Iterator[Happening]:
    current = metadata.current_version_id
    for one in reversed(metadata.version_log):
        facts = {"version_id": one["version-id"], "current": one["version-id"] == current}
        yield Happening(int(one["timestamp-ms"]), "version", facts)

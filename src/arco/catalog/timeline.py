"""What happened to a table, newest first, and who did it.

Snapshots, metadata files, versions of a view, former names, and drops that can still be undone: that the table itself remembers.
The newest commits of tier 1 say who changed its name and what is said of it; its receipts say who committed. Where neither
reaches, nobody is named.
"""

import asyncio
from collections.abc import Container, Iterator, Sequence
from typing import Any

import msgspec

from arco.catalog.catalog import Catalog
from arco.catalog.governance import FIELDS
from arco.catalog.inventory import Inventory, Place
from arco.catalog.manifest import Author
from arco.catalog.model import Dropped, Entry, Format, Kind, dotted
from arco.catalog.name_changes import NameChange, changes_of, is_beginning
from arco.catalog.operations import Describe, Drop, Rename, Undrop
from arco.catalog.overview import summary_count
from arco.catalog.subject import Tables, Views
from arco.iceberg.metadata import TableMetadata
from arco.iceberg.view_metadata import ViewMetadata
from arco.kernel.errors import NoSuchTable
from arco.kernel.limits import VERIFY_READ_AHEAD_MAX


class Happening(msgspec.Struct, frozen=True):
    """One thing that happened. `what` is a word, `facts` what there is to know of it, `author` who did it, if that is known."""

    at_ms: int
    what: str
    facts: dict[str, Any]
    author: Author | None = None


async def timeline_of(catalog: Catalog, place: Place, limit: int = 0) -> tuple[list[Happening], int]:
    """The history of the table of this name, or of what was dropped last under it, newest first, and how much there is in all."""
    names = await Inventory(catalog).names()
    entry, gone = names.entry(place), names.last_dropped(*place)
    if entry is None and gone is None:
        raise NoSuchTable(f"Table does not exist: {dotted(*place)}")
    subject = entry or (gone.entry if gone else None)
    drops = [one for one in names.dropped.values() if (one.entry.namespace, one.entry.name) == place]
    found: list[Happening] = []
    changes: list[NameChange] = []
    if subject is not None:
        changes = await changes_of(catalog.parts.tier1, subject.uuid)
        told = _told(changes, {one.drop_id for one in drops})
        found = [*told, *await _recorded(catalog, subject), *_named(subject, changes)]
    # The sort is stable: of two things of one moment, the one that is listed last here happened first.
    whole = sorted([*(_drop(one, subject, changes) for one in drops), *found], key=lambda one: -one.at_ms)
    shown = whole[:limit] if limit else whole
    return await _with_committers(catalog, shown), len(whole)


# Names


def _named(entry: Entry, changes: Sequence[NameChange]) -> Iterator[Happening]:
    """Names that the table had, and its beginning."""
    movers = {
        (change.at_ms, change.operation.namespace, change.operation.name): change.author
        for change in changes
        if isinstance(change.operation, Rename | Undrop)
    }
    became = (entry.namespace, entry.name)
    for former in reversed(entry.former_names):
        facts = {"from": [*former.namespace, former.name], "to": [*became[0], became[1]]}
        yield Happening(former.until_ms, "renamed", facts, movers.get((former.until_ms, *became)))
        became = (former.namespace, former.name)
    maker = next((one.author for one in changes if is_beginning(one.operation)), None)
    yield Happening(entry.created_ms, "created", {"format": entry.format, "location": entry.location}, maker)


def _told(changes: Sequence[NameChange], known_drops: Container[str]) -> Iterator[Happening]:
    """What the table does not remember itself: descriptions, drops that were undone, restores."""
    for change in changes:
        match change.operation:
            case Describe() as said:
                yield Happening(change.at_ms, "described", {"fields": _fields(said)}, change.author)
            case Undrop() as restored:
                to = [*restored.namespace, restored.name]
                yield Happening(change.at_ms, "restored", {"drop_id": restored.drop_id, "to": to}, change.author)
            case Drop() as gone if gone.drop_id not in known_drops:
                facts = _about_drop(gone)
                yield Happening(change.at_ms, "dropped", facts, Author(gone.principal, change.author.client_id))
            case _:
                pass


def _fields(said: Describe) -> list[str]:
    """What a description says something about."""
    properties = ["properties"] if said.property_updates or said.property_removals else []
    return [
        *sorted(one for one in said.governance if one in FIELDS),
        *properties,
        *([] if said.columns is None else ["columns"]),
    ]


def _drop(dropped: Dropped, subject: Entry | None, changes: Sequence[NameChange]) -> Happening:
    """A drop that can be undone: of this table, or of another that had the name before it."""
    other = {} if subject is not None and subject.uuid == dropped.entry.uuid else {"earlier_table": dropped.entry.uuid}
    facts = _about_drop(dropped)
    clients = (
        change.author.client_id
        for change in changes
        if isinstance(change.operation, Drop) and change.operation.drop_id == dropped.drop_id
    )
    return Happening(dropped.dropped_ms, "dropped", facts | other, Author(dropped.principal, next(clients, None)))


def _about_drop(drop: Drop | Dropped) -> dict[str, Any]:
    return {"drop_id": drop.drop_id, "purge": drop.purge} | ({"unregistered": True} if drop.unregistered else {})


# Commits


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
    number = 0 if pointer is None else pointer.value.commit_number
    return [*_files(metadata, location, number), *_snapshots(metadata)]


def _files(metadata: TableMetadata, location: str, number: int) -> Iterator[Happening]:
    """Every commit writes one file, so the numbers of those before the current one go down by one."""
    log: list[dict[str, Any]] = metadata.document["metadata-log"]
    before = [(str(one.get("metadata-file")), int(one["timestamp-ms"])) for one in reversed(log)]
    for back, (file, at_ms) in enumerate([(location, metadata.last_updated_ms), *before]):
        facts = {"metadata_location": file, "current": not back, "commit_number": number - back}
        yield Happening(at_ms, "committed", facts)


async def _with_committers(catalog: Catalog, happenings: Sequence[Happening]) -> list[Happening]:
    """The same, with who committed, and in which transaction, as far as receipts are kept. A registered file has none."""
    at_once = asyncio.Semaphore(VERIFY_READ_AHEAD_MAX)

    async def signed(one: Happening) -> Happening:
        number = one.facts.get("commit_number", -1)
        if one.what != "committed" or number < 0:
            return one
        async with at_once:
            receipt = await catalog.parts.receipts.find(one.facts["metadata_location"], number, one.at_ms)
        if receipt is None:
            return one
        source, transaction = receipt.commit.source, receipt.commit.transaction
        facts = one.facts if transaction is None else one.facts | {"transaction": transaction}
        return msgspec.structs.replace(one, facts=facts, author=Author(source.principal, source.client))

    return await asyncio.gather(*map(signed, happenings))


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

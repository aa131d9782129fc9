"""What the partitions of a table are now, for planning: one version a partition, from manifests alone and without Spark.

The version of a partition is a fingerprint of its live files, deletes among them: it changes when the partition may have
changed, and not when another one did. A file of deletes that concerns the whole table concerns every partition.

PyIceberg takes long to load, and is not needed for tables of a usual size: `source_files.py` reads the others.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from arco.catalog.workspace import Workspace
from arco.iceberg.avro import UnknownCodec, records
from arco.iceberg.metadata import TableMetadata
from arco.iceberg.schemas import columns_by_id
from arco.iceberg.shape import JsonObject
from arco.kernel.errors import CorruptObject
from arco.kernel.fingerprint import fingerprint
from arco.kernel.ids import clip
from arco.kernel.limits import PLANNING_READS_MAX
from arco.servo.execute.located import read_located
from arco.servo.execute.stored_values import python_value

_SMALL_BYTES = 2 * 1024 * 1024
"""Manifests of so many bytes together are read here; beyond, PyIceberg's compiled reader makes up for its time to load."""

_ADDED, _DELETED = 1, 2


class Content(IntEnum):
    """What a file holds, as manifests number it."""

    DATA = 0
    POSITION_DELETES = 1
    EQUALITY_DELETES = 2


@dataclass(frozen=True, slots=True)
class LiveFile:
    """A file that a snapshot has, as far as versions need it."""

    content: Content
    spec_id: int
    partition: tuple[Any, ...]
    path: str
    sequence_number: int | None
    rows: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class PartField:
    """A field of a partition spec: the column it is made from, and how. `type` is that of its values."""

    column: str
    transform: str
    type: str


@dataclass(frozen=True, slots=True)
class PartitionVersion:
    """One partition tuple of one spec. Values are dates, times, texts and numbers of Python; `hour` is hours since 1970."""

    fields: tuple[PartField, ...]
    values: tuple[Any, ...]
    version: str
    files: int
    rows: int
    size_bytes: int


async def versions_in(workspace: Workspace, table: TableMetadata) -> list[PartitionVersion]:
    """Every partition that holds rows, in the order of specs and values, of a table inside the root."""
    return versions_of(table, table.current_schema, await _live_files(workspace, table))


async def _live_files(workspace: Workspace, table: TableMetadata) -> list[LiveFile]:
    head = next((one for one in table.snapshots if one["snapshot-id"] == table.current_snapshot_id), None)
    if head is None:
        return []
    location = str(head["manifest-list"])
    try:
        manifests = records(await read_located(workspace, location), location)
        if sum(one["manifest_length"] for one in manifests) <= _SMALL_BYTES:
            return await _read(workspace, manifests)
    except UnknownCodec:
        pass
    except (KeyError, TypeError) as error:
        raise CorruptObject(f"{clip(location, 300)} is no manifest list") from error
    from arco.servo.execute.source_files import live_files  # noqa: PLC0415 - it loads PyIceberg

    return await live_files(workspace, table)


async def _read(workspace: Workspace, manifests: list[dict[str, Any]]) -> list[LiveFile]:
    turns = asyncio.Semaphore(PLANNING_READS_MAX)

    async def one(manifest: dict[str, Any]) -> list[LiveFile]:
        location = str(manifest["manifest_path"])
        async with turns:
            entries = records(await read_located(workspace, location), location)
        try:
            return [_live(entry, manifest) for entry in entries if entry["status"] != _DELETED]
        except (KeyError, TypeError, ValueError) as error:
            raise CorruptObject(f"{clip(location, 300)} is no manifest") from error

    return [file for files in await asyncio.gather(*(one(manifest) for manifest in manifests)) for file in files]


def _live(entry: dict[str, Any], manifest: dict[str, Any]) -> LiveFile:
    """An entry with what it inherits. The first format version has neither sequence numbers nor deletes."""
    file, of_list = entry["data_file"], manifest.get("sequence_number") or 0
    own = entry.get("sequence_number")
    return LiveFile(
        content=Content(file.get("content") or 0),
        spec_id=int(manifest["partition_spec_id"]),
        partition=tuple(file["partition"].values()),
        path=file["file_path"],
        sequence_number=of_list if own is None and (not of_list or entry["status"] == _ADDED) else own,
        rows=file["record_count"],
        size_bytes=file["file_size_in_bytes"],
    )


def versions_of(table: TableMetadata, schema: JsonObject, files: Iterable[LiveFile]) -> list[PartitionVersion]:
    """The same from live files."""
    data: dict[tuple[int, tuple[Any, ...]], list[LiveFile]] = defaultdict(list)
    marks: dict[tuple[int, tuple[Any, ...]], list[str]] = defaultdict(list)
    everywhere: list[str] = []
    for file in files:
        place = file.spec_id, file.partition
        mark = fingerprint("file", file.path, str(file.sequence_number), str(file.rows))
        if file.content is Content.EQUALITY_DELETES and not file.partition:
            everywhere.append(mark)
            continue
        marks[place].append(mark)
        if file.content is Content.DATA:
            data[place].append(file)
    specs = {spec["spec-id"]: _fields(spec, schema) for spec in table.document["partition-specs"]}
    found = [
        PartitionVersion(
            fields=specs[spec_id],
            values=tuple(python_value(field.type, value) for field, value in zip(specs[spec_id], values, strict=True)),
            version=fingerprint("partition", *sorted(marks[spec_id, values]), "everywhere", *sorted(everywhere))[:32],
            files=len(held),
            rows=sum(file.rows for file in held),
            size_bytes=sum(file.size_bytes for file in held),
        )
        for (spec_id, values), held in data.items()
    ]
    return sorted(found, key=lambda one: (repr(one.fields), [(value is not None, str(value)) for value in one.values]))


def _fields(spec: JsonObject, schema: JsonObject) -> tuple[PartField, ...]:
    columns = columns_by_id(schema)
    found = []
    for field in spec["fields"]:
        column, transform = columns.get(field["source-id"]), str(field["transform"])
        made = _MADE.get(transform.partition("[")[0])
        name, kind = (field["name"], "unknown") if column is None else (column.full_name, str(column.type))
        found.append(PartField(name, transform, made or kind))
    return tuple(found)


_MADE = {"bucket": "int", "year": "int", "month": "int", "hour": "int", "day": "date"}
"""The types of what transforms make; the others keep their column's."""

"""The live files of a source from its manifests, through the root's own store and without PyIceberg, which takes long to load.

Tables of a usual size are read here. PyIceberg's reader is compiled, and quicker for large ones; and it knows every codec.
"""

import asyncio
from typing import Any

from arco.catalog.workspace import Workspace
from arco.iceberg.avro import UnknownCodec, records
from arco.iceberg.metadata import TableMetadata
from arco.kernel.errors import CorruptObject
from arco.kernel.ids import clip
from arco.kernel.limits import PLANNING_READS_MAX
from arco.servo.execute.located import read_located
from arco.servo.execute.sources import Content, LiveFile, PartitionVersion, versions_of

_SMALL_BYTES = 2 * 1024 * 1024
"""Manifests of so many bytes together are read here; beyond, PyIceberg's compiled reader makes up for its time to load."""

_ADDED, _DELETED = 1, 2


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

"""What the partitions of a table are now, for planning: one version a partition, from manifests alone and without Spark.

The version of a partition is a fingerprint of its live files, deletes among them: it changes when the partition may have
changed, and not when another one did. A file of deletes that concerns the whole table concerns every partition.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pyiceberg.io import FileIO
from pyiceberg.manifest import DataFile, DataFileContent, ManifestEntry, ManifestEntryStatus

from arco.catalog.workspace import Workspace
from arco.iceberg.metadata import TableMetadata
from arco.iceberg.schemas import columns_by_id
from arco.iceberg.shape import JsonObject
from arco.kernel.fingerprint import fingerprint
from arco.servo.execute.stored_values import python_value
from arco.servo.execute.table_files import TableFiles
from arco.servo.execute.table_state import TableState, pyiceberg_schema, pyiceberg_spec, state_of


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


def partition_versions(
    table: TableMetadata, io: FileIO, *, snapshot_id: int | None = None, ref: str | None = None
) -> list[PartitionVersion]:
    """Every partition that holds rows at a snapshot, in the order of specs and values."""
    state = state_of(table, snapshot_id=snapshot_id, ref=ref)
    # Only here: it loads all of PyIceberg.
    from pyiceberg.utils.concurrent import ExecutorFactory  # noqa: PLC0415

    read = ExecutorFactory.get_or_create().map(lambda one: one.fetch_manifest_entry(io), state.manifests(io))
    return versions_of(state, (entry for entries in read for entry in entries))


async def versions_in(workspace: Workspace, table: TableMetadata) -> list[PartitionVersion]:
    """The same for a table inside the root, through the root's own store."""
    state, files = state_of(table), TableFiles(workspace)
    read = await files.entries(await files.manifests(state))
    live = (one for entries in read.values() for one in entries if one.status is not ManifestEntryStatus.DELETED)
    return versions_of(state, live)


def versions_of(state: TableState, entries: Iterable[ManifestEntry]) -> list[PartitionVersion]:
    """The same from live entries."""
    data: dict[tuple[int, tuple[Any, ...]], list[DataFile]] = defaultdict(list)
    marks: dict[tuple[int, tuple[Any, ...]], list[str]] = defaultdict(list)
    everywhere: list[str] = []
    for entry in entries:
        file = entry.data_file
        place = file.spec_id, tuple(file.partition[at] for at in range(len(file.partition)))
        mark = fingerprint("file", file.file_path, str(entry.sequence_number), str(file.record_count))
        if file.content == DataFileContent.EQUALITY_DELETES and not place[1]:
            everywhere.append(mark)
            continue
        marks[place].append(mark)
        if file.content == DataFileContent.DATA:
            data[place].append(file)
    specs = {spec["spec-id"]: _fields(spec, state) for spec in state.table.document["partition-specs"]}
    found = [
        PartitionVersion(
            fields=specs[spec_id],
            values=tuple(python_value(field.type, value) for field, value in zip(specs[spec_id], values, strict=True)),
            version=fingerprint("partition", *sorted(marks[spec_id, values]), "everywhere", *sorted(everywhere))[:32],
            files=len(files),
            rows=sum(file.record_count for file in files),
            size_bytes=sum(file.file_size_in_bytes for file in files),
        )
        for (spec_id, values), files in data.items()
    ]
    return sorted(found, key=lambda one: (repr(one.fields), [(value is not None, str(value)) for value in one.values]))


def _fields(spec: JsonObject, state: TableState) -> tuple[PartField, ...]:
    columns = columns_by_id(state.schema)
    kinds = pyiceberg_spec(spec).partition_type(pyiceberg_schema(state.schema)).fields
    return tuple(
        PartField(
            columns[field["source-id"]].full_name if field["source-id"] in columns else field["name"],
            field["transform"],
            str(kind.field_type),
        )
        for field, kind in zip(spec["fields"], kinds, strict=True)
    )

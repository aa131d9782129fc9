"""The live files of a source by PyIceberg: of tables outside the root, of large ones, and of unusual Avro.

Everything here loads PyIceberg; `source_manifests.py` does without, and asks here only where it has to.
"""

from pyiceberg.io import FileIO
from pyiceberg.manifest import ManifestEntry, ManifestEntryStatus

from arco.catalog.workspace import Workspace
from arco.iceberg.metadata import TableMetadata
from arco.servo.execute.sources import Content, LiveFile, PartitionVersion, versions_of
from arco.servo.execute.table_files import TableFiles
from arco.servo.execute.table_state import state_of


def partition_versions(
    table: TableMetadata, io: FileIO, *, snapshot_id: int | None = None, ref: str | None = None
) -> list[PartitionVersion]:
    """Every partition that holds rows at a snapshot, in the order of specs and values."""
    state = state_of(table, snapshot_id=snapshot_id, ref=ref)
    # Only here: it loads all of PyIceberg.
    from pyiceberg.utils.concurrent import ExecutorFactory  # noqa: PLC0415

    read = ExecutorFactory.get_or_create().map(lambda one: one.fetch_manifest_entry(io), state.manifests(io))
    return versions_of(table, state.schema, [_live(entry) for entries in read for entry in entries])


async def live_files(workspace: Workspace, table: TableMetadata) -> list[LiveFile]:
    """Those of main, through the root's own store."""
    files = TableFiles(workspace)
    read = await files.entries(await files.manifests(state_of(table)))
    return [_live(one) for entries in read.values() for one in entries if one.status is not ManifestEntryStatus.DELETED]


def _live(entry: ManifestEntry) -> LiveFile:
    file = entry.data_file
    return LiveFile(
        content=Content(int(file.content)),
        spec_id=file.spec_id,
        partition=tuple(file.partition[at] for at in range(len(file.partition))),
        path=file.file_path,
        sequence_number=entry.sequence_number,
        rows=file.record_count,
        size_bytes=file.file_size_in_bytes,
    )

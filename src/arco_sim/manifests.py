"""Real manifests and manifest lists of tiny tables, as engines write them, for actors and tests without an engine."""

from collections.abc import Sequence

from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    write_manifest,
    write_manifest_list,
)
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField

from arco.iceberg.held_files import MadeFile

ROWS = b"rows"
_MARK_BYTES = 16
_SCHEMA = Schema(NestedField(1, "a", LongType(), required=False))


def manifest(location: str, snapshot_id: int, files: Sequence[str]) -> tuple[ManifestFile, bytes]:
    """A manifest that adds some files, as a list names it and as it is stored."""
    made = MadeFile(location)
    with write_manifest(2, UNPARTITIONED_PARTITION_SPEC, _SCHEMA, made, snapshot_id, "null") as writer:
        for one in files:
            writer.add(_entry(one, snapshot_id))
    return writer.to_manifest_file(), _decided(made.data)


def manifest_list(
    location: str, snapshot_id: int, parent: int | None, sequence: int, manifests: Sequence[ManifestFile]
) -> bytes:
    made = MadeFile(location)
    with write_manifest_list(2, made, snapshot_id, parent, sequence, "null") as writer:
        writer.add_manifests(list(manifests))
    return _decided(made.data)


def _decided(data: bytes) -> bytes:
    """The same file with a mark between its blocks that nobody drew: a seed decides everything."""
    return data.replace(data[-_MARK_BYTES:], bytes(_MARK_BYTES))


def _entry(location: str, snapshot_id: int) -> ManifestEntry:
    file = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=location,
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=1,
        file_size_in_bytes=len(ROWS),
    )
    file.spec_id = 0
    return ManifestEntry.from_args(
        status=ManifestEntryStatus.ADDED,
        snapshot_id=snapshot_id,
        sequence_number=None,
        file_sequence_number=None,
        data_file=file,
    )

"""What manifest lists and manifests hold, from bytes that were read already.

It loads PyIceberg, which takes a second: import it where it is needed. What must never enter: a store.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from pyiceberg.avro.file import AvroFile
from pyiceberg.manifest import (
    MANIFEST_ENTRY_SCHEMAS,
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    read_manifest_list,
)

from arco.iceberg.held_files import HeldFile
from arco.kernel.errors import CorruptObject
from arco.kernel.ids import clip

_READ_VERSION = 2


def manifests_in(data: bytes, name: str) -> list[ManifestFile]:
    """The manifests that a manifest list names."""
    with _of(name):
        return list(read_manifest_list(HeldFile(name, data)))


def entries_in(data: bytes, name: str) -> list[ManifestEntry]:
    """The entries of a manifest, as they are written: what they inherit from the list is not in them."""
    return list(_entries(data, name))


def sizes_in(data: bytes, name: str) -> Iterator[tuple[str, int]]:
    """The locations and sizes of the files that a manifest holds, one after the other: a manifest may hold very many."""
    for entry in _entries(data, name):
        if entry.status is not ManifestEntryStatus.DELETED:
            yield entry.data_file.file_path, entry.data_file.file_size_in_bytes


def live_files_in(data: bytes, name: str) -> list[DataFile]:
    """The files of data, and of deletes, that a manifest holds; not those of which it says that they were removed."""
    return [one.data_file for one in entries_in(data, name) if one.status is not ManifestEntryStatus.DELETED]


def _entries(data: bytes, name: str) -> Iterator[ManifestEntry]:
    with (
        _of(name),
        AvroFile[ManifestEntry](
            HeldFile(name, data),
            MANIFEST_ENTRY_SCHEMAS[_READ_VERSION],
            read_types={-1: ManifestEntry, 2: DataFile},
            read_enums={0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent},
        ) as reader,
    ):
        yield from reader


@contextmanager
def _of(name: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # whatever damaged bytes lead PyIceberg to
        raise CorruptObject(f"{clip(name, 300)} cannot be read: {type(error).__name__}: {clip(str(error), 100)}") from error

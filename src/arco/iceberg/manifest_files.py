"""What manifest lists and manifests hold, from bytes that were read already.

It loads PyIceberg, which takes a second: import it where it is needed. What must never enter: a store.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Self, TypeVar

from pyiceberg.avro.decoder import new_decoder
from pyiceberg.avro.file import META_SCHEMA, AvroFile, AvroFileHeader
from pyiceberg.avro.reader import Reader
from pyiceberg.avro.resolver import construct_reader, resolve_reader
from pyiceberg.manifest import (
    MANIFEST_ENTRY_SCHEMAS,
    MANIFEST_LIST_FILE_SCHEMAS,
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    PartitionFieldSummary,
)
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record
from pyiceberg.utils.schema_conversion import AvroSchemaConversion

from arco.iceberg.held_files import HeldFile
from arco.kernel.errors import CorruptObject
from arco.kernel.ids import clip

_READ_VERSION = 2
_READERS_KEPT_MAX = 64
_HEADER = construct_reader(META_SCHEMA, {-1: AvroFileHeader})
D = TypeVar("D", bound=Record)


def manifests_in(data: bytes, name: str) -> list[ManifestFile]:
    """The manifests that a manifest list names."""
    with _of(name), _File[ManifestFile](HeldFile(name, data), _list_reader) as reader:
        return list(reader)


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
    with _of(name), _File[ManifestEntry](HeldFile(name, data), _entry_reader) as reader:
        yield from reader


class _File(AvroFile[D]):
    """PyIceberg's, but what reads its rows is made once for all files of one schema: that takes longer than the rows of most."""

    def __init__(self, file: HeldFile, reader_of: Callable[[str], Reader]) -> None:
        super().__init__(file)
        self._reader_of = reader_of

    def __enter__(self) -> Self:
        with self.input_file.open() as opened:
            self.decoder = new_decoder(opened.read())
        self.header = _HEADER.read(self.decoder)
        self.reader = self._reader_of(self.header.meta["avro.schema"])
        return self


@lru_cache(_READERS_KEPT_MAX)
def _list_reader(schema: str) -> Reader:
    return resolve_reader(
        _written(schema),
        MANIFEST_LIST_FILE_SCHEMAS[_READ_VERSION],
        read_types={-1: ManifestFile, 508: PartitionFieldSummary},
        read_enums={517: ManifestContent},
    )


@lru_cache(_READERS_KEPT_MAX)
def _entry_reader(schema: str) -> Reader:
    return resolve_reader(
        _written(schema),
        MANIFEST_ENTRY_SCHEMAS[_READ_VERSION],
        read_types={-1: ManifestEntry, 2: DataFile},
        read_enums={0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent},
    )


def _written(schema: str) -> Schema:
    """The schema that a file was written with, as its header has it."""
    return AvroSchemaConversion().avro_to_iceberg(json.loads(schema))


@contextmanager
def _of(name: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # whatever damaged bytes lead PyIceberg to
        raise CorruptObject(f"{clip(name, 300)} cannot be read: {type(error).__name__}: {clip(str(error), 100)}") from error

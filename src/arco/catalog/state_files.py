"""State of tier 1 as Parquet: what a checkpoint writes and a starting process reads.

A file holds the newest document of each name, or that it is gone. Beside the document, which is what is loaded, stand the
columns that people ask for, so that the file can be queried as it is. A checksum in the manifest covers every byte.

Arrow takes a while to load, and is loaded when the first file is read or written.
"""

import io
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from typing import Any

import msgspec

from arco.catalog.model import Dropped, Entry, Namespace, Reservation
from arco.catalog.names import Names, encode_levels
from arco.kernel.errors import CorruptObject
from arco.kernel.fingerprint import content_hash
from arco.kernel.limits import STATE_ROW_GROUP_ROWS_MAX

Change = tuple[str, str, msgspec.Struct | None]
"""Kind (namespace, entry, dropped, reserved), key, and the document, or None when it is gone."""


@cache
def _arrow() -> Any:
    return import_module("pyarrow")


@cache
def _parquet() -> Any:
    return import_module("pyarrow.parquet")


@cache
def _schema() -> Any:
    pa = _arrow()
    return pa.schema(
        [
            ("kind", pa.string()),
            ("key", pa.string()),
            ("gone", pa.bool_()),
            ("namespace", pa.list_(pa.string())),
            ("name", pa.string()),
            ("uuid", pa.string()),
            ("asset_id", pa.string()),
            ("entry_kind", pa.string()),
            ("format", pa.string()),
            ("location", pa.string()),
            ("owner", pa.string()),
            ("description", pa.string()),
            ("tags", pa.list_(pa.string())),
            ("created_ms", pa.int64()),
            ("updated_ms", pa.int64()),
            ("document", pa.string()),
        ]
    )


def encode_changes(changes: Iterable[Change]) -> tuple[bytes, int]:
    """The bytes of a state file, and its rows, sorted by kind and key."""
    rows = [_row(*change) for change in sorted(changes, key=lambda change: change[:2])]
    sink = io.BytesIO()
    table = _arrow().Table.from_pylist(rows, schema=_schema())
    _parquet().write_table(table, sink, compression="zstd", row_group_size=STATE_ROW_GROUP_ROWS_MAX)
    return sink.getvalue(), len(rows)


def _row(kind: str, key: str, document: msgspec.Struct | None) -> dict[str, object]:
    row: dict[str, object] = {"kind": kind, "key": key, "gone": document is None}
    match document:
        case Namespace():
            row |= {
                "namespace": list(document.levels),
                "created_ms": document.created_ms,
                "updated_ms": document.updated_ms,
            }
        case Entry():
            row |= _entry_columns(document)
        case Dropped() | Reservation():
            row |= _entry_columns(document.entry)
        case _:
            pass
    if document is not None:
        row["document"] = msgspec.json.encode(document).decode()
    return row


def _entry_columns(entry: Entry) -> dict[str, object]:
    return {
        "namespace": list(entry.namespace),
        "name": entry.name,
        "uuid": entry.uuid,
        "asset_id": entry.asset_id,
        "entry_kind": entry.kind.value,
        "format": entry.format.value,
        "location": entry.location,
        "owner": entry.governance.owner,
        "description": entry.governance.description,
        "tags": list(entry.governance.tags),
        "created_ms": entry.created_ms,
        "updated_ms": entry.updated_ms,
    }


def load_into(names: Names, data: bytes, checksum: str, key: str) -> None:
    """Apply a state file to a state that holds everything before it."""
    if content_hash(data) != checksum:
        raise CorruptObject(f"{key} does not match its checksum")
    for kind, row_key, document in _rows(data, key):
        match kind:
            case "namespace":
                namespace = None if document is None else msgspec.json.decode(document, type=Namespace)
                names.put_namespace(msgspec.json.decode(row_key, type=tuple[str, ...]), namespace)
            case "entry":
                entry = None if document is None else msgspec.json.decode(document, type=Entry)
                *levels, name = msgspec.json.decode(row_key, type=tuple[str, ...])
                names.put_entry((tuple(levels), name), entry)
            case "dropped":
                dropped = None if document is None else msgspec.json.decode(document, type=Dropped)
                names.put_dropped(row_key, dropped)
            case "reserved":
                reservation = None if document is None else msgspec.json.decode(document, type=Reservation)
                *levels, name = msgspec.json.decode(row_key, type=tuple[str, ...])
                names.put_reserved((tuple(levels), name), reservation)
            case _:
                raise CorruptObject(f"{key} has a row of unknown kind {kind!r}")


def _rows(data: bytes, key: str) -> Iterator[tuple[str, str, str | None]]:
    try:
        # Without threads: the file is in memory, and a process that ends while Arrow starts one is aborted. As one file, and not
        # as a dataset, for which Arrow would load pandas.
        file = _parquet().ParquetFile(_arrow().BufferReader(data), pre_buffer=False)
        table = file.read(columns=["kind", "key", "document"], use_threads=False)
    except _arrow().ArrowInvalid as error:
        raise CorruptObject(f"{key} is not a Parquet file: {error}") from error
    columns = [table.column(name).to_pylist() for name in ("kind", "key", "document")]
    return zip(*columns, strict=True)


def everything(names: Names) -> Iterator[Change]:
    """The whole state as changes, for a new base."""
    for levels, namespace in names.namespaces.items():
        yield "namespace", encode_levels(levels), namespace
    for (levels, name), entry in names.entries.items():
        yield "entry", encode_levels((*levels, name)), entry
    for uuid, dropped in names.dropped.items():
        yield "dropped", uuid, dropped
    for (levels, name), reservation in names.reserved.items():
        yield "reserved", encode_levels((*levels, name)), reservation

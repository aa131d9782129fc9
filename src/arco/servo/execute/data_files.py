"""From files that Spark wrote to entries of a manifest: counted, measured, and refused if they would be read wrongly.

Clients find columns by the ids in the file; a file with a missing or another id is read as null or as another column, without
an error. So every footer is compared with the schema, at every depth, before anybody can see the file.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import (
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
    schema_to_pyarrow,
)
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record
from pyiceberg.utils.concurrent import ExecutorFactory

from arco.iceberg.schemas import Column, columns
from arco.iceberg.shape import JsonObject
from arco.kernel.errors import BrokenInvariant, InvalidInput
from arco.kernel.ids import clip
from arco.servo.execute.footers import footer_of
from arco.servo.execute.name_mapping import field_id_of, inner_fields
from arco.servo.execute.table_state import pyiceberg_schema


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file that was written, with its partition's values."""

    location: str
    size_bytes: int
    partition: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Written:
    """What one attempt wrote. `partitions`: values, files, rows and bytes of each partition tuple."""

    files: tuple[DataFile, ...] = ()
    rows: int = 0
    size_bytes: int = 0

    @property
    def partitions(self) -> dict[tuple[Any, ...], tuple[int, int, int]]:
        found: dict[tuple[Any, ...], tuple[int, int, int]] = {}
        for file in self.files:
            values = values_of(file)
            files, rows, size = found.get(values, (0, 0, 0))
            found[values] = files + 1, rows + file.record_count, size + file.file_size_in_bytes
        return found


def values_of(file: DataFile) -> tuple[Any, ...]:
    """The partition tuple of a file."""
    return tuple(file.partition[place] for place in range(len(file.partition)))


def describe(
    io: FileIO,
    files: Iterable[NewFile],
    schema: JsonObject,
    *,
    spec_id: int,
    sort_order_id: int | None = None,
    properties: dict[str, str] | None = None,
) -> Written:
    """Read the footers and make the entries; files without rows are left out."""
    plan = _Plan(schema, spec_id, sort_order_id, properties or {})
    # Side by side: on a bucket each footer takes a round trip.
    made = ExecutorFactory.get_or_create().map(lambda file: plan.entry(file, footer_of(io, file.location)), files)
    entries = tuple(entry for entry in made if entry.record_count)
    rows, size = sum(one.record_count for one in entries), sum(one.file_size_in_bytes for one in entries)
    return Written(entries, rows, size)


class _Plan:
    """What is the same for all files of one output."""

    def __init__(self, schema: JsonObject, spec_id: int, sort_order_id: int | None, properties: dict[str, str]) -> None:
        self._schema: Schema = pyiceberg_schema(schema)
        self._expected = schema_to_pyarrow(self._schema)
        self._columns = list(columns(schema))
        self._statistics = compute_statistics_plan(self._schema, properties)
        self._paths = parquet_path_to_id_mapping(self._schema)
        self._spec_id = spec_id
        self._sort_order_id = sort_order_id

    def entry(self, file: NewFile, footer: pq.FileMetaData) -> DataFile:
        check_ids(file.location, footer.schema.to_arrow_schema(), self._expected)
        try:
            statistics = data_file_statistics_from_parquet_metadata(footer, self._statistics, self._paths)
        except (ValueError, KeyError) as error:
            raise BrokenInvariant(f"{clip(file.location, 300)} does not fit the table: {clip(str(error), 200)}") from error
        self._refuse_nulls(statistics.null_value_counts)
        entry = DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=file.location,
            file_format=FileFormat.PARQUET,
            partition=Record(*file.partition),
            file_size_in_bytes=file.size_bytes,
            sort_order_id=self._sort_order_id,
            equality_ids=None,
            key_metadata=None,
            **statistics.to_serialized_dict(),
        )
        entry.spec_id = self._spec_id
        return entry

    def _refuse_nulls(self, counts: dict[int, int]) -> None:
        for column in self._columns:
            if column.required and column.is_leaf and _always_there(column) and counts.get(column.field_id, 0):
                raise InvalidInput(
                    f"column {clip(column.full_name)!r} is required, and the output has {counts[column.field_id]} nulls in it",
                    hint="give every row a value, or make the column optional",
                )


def _always_there(column: Column) -> bool:
    above = column.parent
    while above is not None:
        if not above.required or above.type["type"] != "struct":
            return False
        above = above.parent
    return True


def check_ids(location: str, found: Any, expected: Any) -> None:
    """That a file has exactly the fields of the schema, each with its id. Raises with the first that differs."""
    theirs, ours = inner_fields(found), inner_fields(expected)
    named = {field.name: field for field in theirs} if _is_struct(expected) else None
    if len(theirs) != len(ours):
        raise _not_publishable(location, f"it has {len(theirs)} fields where the table has {len(ours)}")
    for place, field in enumerate(ours):
        other = theirs[place] if named is None else named.get(field.name)
        if other is None or field_id_of(other) != field_id_of(field):
            raise _not_publishable(location, f"field {clip(field.name)!r} lacks its id {field_id_of(field)}")
        check_ids(location, other.type, field.type)


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, pa.Schema) or pa.types.is_struct(kind)


def _not_publishable(location: str, reason: str) -> BrokenInvariant:
    return BrokenInvariant(f"{clip(location, 300)} cannot be published: {reason}")

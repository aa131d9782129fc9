"""What is said of the files of an output, one by one, where they are few: rows, bytes, nulls and bounds of their columns.

The footers were read when the files were taken for publishable; here is only what of it goes into an event, and how it is
spelled. It stays small: few files, some columns of each, no long bounds.
"""

from collections.abc import Callable, Iterator
from datetime import date, time
from typing import Any

from pyiceberg.conversions import from_bytes
from pyiceberg.manifest import DataFile
from pyiceberg.schema import Schema
from pyiceberg.types import BinaryType, FixedType, PrimitiveType

from arco.kernel.limits import FILE_STATS_BOUND_CHARS_MAX, FILE_STATS_COLUMNS_MAX, FILE_STATS_FILES_MAX
from arco.ledger.execution_events import ColumnFacts, FileFacts
from arco.servo.execute.data_files import Written, values_of
from arco.servo.execute.values import python_value

Named = Callable[[tuple[Any, ...]], dict[str, str | None]]
"""The values of a partition tuple by the names of the table's partition fields."""


def file_facts(written: Written, schema: Schema, named: Named) -> tuple[FileFacts, ...]:
    """Each file, if there are fewer than ten; else none."""
    if len(written.files) > FILE_STATS_FILES_MAX:
        return ()
    return tuple(
        FileFacts(
            path=file.file_path,
            rows=file.record_count,
            bytes=file.file_size_in_bytes,
            partition=named(values_of(file)),
            columns=tuple(_columns(file, schema)),
        )
        for file in written.files
    )


def _columns(file: DataFile, schema: Schema) -> Iterator[ColumnFacts]:
    nulls, lower, upper = file.null_value_counts or {}, file.lower_bounds or {}, file.upper_bounds or {}
    for field_id in sorted({*nulls, *lower, *upper})[:FILE_STATS_COLUMNS_MAX]:
        name = schema.find_column_name(field_id)
        if name is not None:
            kind = schema.find_field(field_id).field_type
            yield ColumnFacts(
                column=name,
                nulls=nulls.get(field_id),
                lower=_bound(kind, lower.get(field_id)),
                upper=_bound(kind, upper.get(field_id)),
            )


def _bound(kind: Any, stored: bytes | None) -> str | None:
    """A bound as text: dates and times as ISO 8601 has them. Bytes have no text, and a bound that is cut is none."""
    if stored is None or not isinstance(kind, PrimitiveType) or isinstance(kind, BinaryType | FixedType):
        return None
    value = python_value(str(kind), from_bytes(kind, stored))
    spelled = (
        value.isoformat()
        if isinstance(value, date | time)
        else str(value).lower()
        if isinstance(value, bool)
        else str(value)
    )
    return spelled if len(spelled) <= FILE_STATS_BOUND_CHARS_MAX else None

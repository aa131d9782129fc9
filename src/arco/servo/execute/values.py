"""Values of partitions, between the table format, Python and Arrow.

The format keeps dates as days, timestamps as microseconds, and everything else as itself; people want dates.
"""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.types import NestedField, StructType

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - a wall clock without a zone, as the type says


def arrow_values(kind: str, values: Sequence[Any]) -> pa.Array:
    """Stored values of one type as an Arrow array."""
    wanted = _arrow_type(kind)
    plain: Any = pa.int32() if kind == "date" else pa.int64() if kind.startswith("timestamp") else wanted
    return pa.array(values, plain).cast(wanted)


def python_value(kind: str, value: Any) -> Any:
    """A stored value as Python has it."""
    if value is None:
        return None
    if kind == "date":
        return date(1970, 1, 1) + timedelta(days=value)
    if kind == "timestamp":
        return _EPOCH + timedelta(microseconds=value)
    if kind == "timestamptz":
        return (_EPOCH + timedelta(microseconds=value)).replace(tzinfo=UTC)
    return value


def _arrow_type(kind: str) -> pa.DataType:
    struct = StructType(NestedField.model_validate({"id": 1, "name": "one", "required": False, "type": kind}))
    return schema_to_pyarrow(struct, include_field_ids=False).field(0).type

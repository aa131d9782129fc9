"""Values of partitions as Arrow: the format keeps dates as days, timestamps as microseconds, and everything else as itself."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.types import NestedField, StructType

from arco.servo.execute.stored_values import python_value

__all__ = ["arrow_values", "python_value"]


def arrow_values(kind: str, values: Sequence[Any]) -> pa.Array:
    """Stored values of one type as an Arrow array."""
    wanted = _arrow_type(kind)
    plain: Any = pa.int32() if kind == "date" else pa.int64() if kind.startswith("timestamp") else wanted
    return pa.array(values, plain).cast(wanted)


def _arrow_type(kind: str) -> pa.DataType:
    struct = StructType(NestedField.model_validate({"id": 1, "name": "one", "required": False, "type": kind}))
    return schema_to_pyarrow(struct, include_field_ids=False).field(0).type

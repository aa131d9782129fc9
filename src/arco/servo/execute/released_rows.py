"""Rows that were set aside, put back: read where they are kept, written as their asset's table is, by PyArrow and without Spark.

They are found by the run and the task that every row in quarantine carries, so it does not matter what became of the files that
they were written to. What must never enter: who may release them, and the commit that makes them visible.
"""

from typing import TYPE_CHECKING, Any
from uuid import UUID

import pyarrow as pa
from pyiceberg import expressions
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import _dataframe_to_data_files, schema_to_pyarrow
from pyiceberg.manifest import DataFile

from arco.iceberg.metadata import TableMetadata
from arco.kernel.entropy import Entropy
from arco.kernel.errors import InvalidInput, NotFound, PartitionsTouched
from arco.kernel.ids import clip
from arco.kernel.limits import RELEASED_ROWS_MAX
from arco.servo.execute.data_files import NewFile, describe, values_of
from arco.servo.execute.table_state import pyiceberg_schema, state_of

if TYPE_CHECKING:
    from pyiceberg.table import Table

_rule: Any = expressions
RULES, RUN, TASK, AT = "arco_rules", "arco_run_id", "arco_task_id", "arco_at"
"""What a row in quarantine says beside its own columns: the rules that it failed, and where it came from."""


def read_rows(kept: TableMetadata, io: FileIO, run_id: str, task_id: str) -> pa.Table:
    """The rows that one task of one run set aside, with their own columns only."""
    mine = _rule.And(_rule.EqualTo(RUN, run_id), _rule.EqualTo(TASK, task_id))
    found = _table(kept, io).scan(mine, limit=RELEASED_ROWS_MAX + 1).to_arrow()
    if not found.num_rows:
        raise NotFound("these rows are not in quarantine any more", hint="make them again: arco run")
    if found.num_rows > RELEASED_ROWS_MAX:
        raise InvalidInput(
            f"more than {RELEASED_ROWS_MAX:,} rows were set aside",
            hint="so many are made again: mend the source or the check, then arco run",
        )
    return found.drop_columns([RULES, RUN, TASK, AT])


def write_rows(rows: pa.Table, table: TableMetadata, io: FileIO, entropy: Entropy) -> tuple[DataFile, ...]:
    """The rows as new files of a table, by its partitions. Nobody sees them before they are committed."""
    wanted = schema_to_pyarrow(pyiceberg_schema(table.current_schema))
    if sorted(rows.column_names) != sorted(wanted.names):
        raise PartitionsTouched(
            f"the table has other columns by now: {clip(', '.join(wanted.names), 200)}", hint="make them again: arco run"
        )
    try:
        fitting = rows.select(wanted.names).cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        raise PartitionsTouched(
            f"the rows do not fit the table: {clip(str(error), 200)}", hint="mend the source or the check, then arco run"
        ) from error
    made = _dataframe_to_data_files(state_of(table).pyiceberg(), fitting, io, UUID(bytes=entropy.token_bytes(16)))
    new = [NewFile(one.file_path, one.file_size_in_bytes, values_of(one)) for one in made]
    spec_id, properties = table.default_spec_id, dict(table.properties)
    return describe(io, new, table.current_schema, spec_id=spec_id, properties=properties).files


def _table(table: TableMetadata, io: FileIO) -> "Table":
    from pyiceberg.catalog.noop import NoopCatalog  # noqa: PLC0415 - all of PyIceberg, for a command that is rarely given
    from pyiceberg.table import Table  # noqa: PLC0415

    return Table(("quarantine",), state_of(table).pyiceberg(), table.location, io, NoopCatalog("desk"))

"""Two snapshots compared: which assets, tables, partitions, runs, held outputs and edges differ between them.

Rows are equal if the orders of their groups are: an order names the contribution that won. Files that both snapshots have need
no look: while the base is the same, only keys of deltas that one of them lacks can differ.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from arco.fold.tables import ASSETS, CATALOG_TABLES, HELD_OUTPUTS, ICEBERG_TABLES, LINEAGE_EDGES, PARTITIONS, RUNS
from arco.fold.vocabulary import Table
from arco.kernel.errors import InvalidInput
from arco.kernel.limits import ANSWER_PAGE_ITEMS_MAX
from arco.read.answers import Answer
from arco.read.reader import Reader, Rows
from arco.read.views import name

COMPARED: tuple[tuple[Table, tuple[str, ...]], ...] = (
    (ASSETS, ("asset", "retired", "code_version", "fingerprint")),
    (CATALOG_TABLES, ("table", "kind", "location", "dropped")),
    (ICEBERG_TABLES, ("asset", "sequence_number", "schema_id", "total_rows")),
    (PARTITIONS, ("asset", "partition_key", "materialization_id", "rows")),
    (RUNS, ("project", "state")),
    (HELD_OUTPUTS, ("asset", "run_id")),
    (LINEAGE_EDGES, ("source", "target", "removed")),
)
"""What is compared, and what is said of each row beside its key."""


class RowChange(msgspec.Struct, frozen=True, kw_only=True):
    """A row that only one snapshot has, or that differs; null where it is not there."""

    key: dict[str, Any]
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class TableChanges(msgspec.Struct, frozen=True, kw_only=True):
    """How many rows came, went and changed; `rows` has the first of them by key."""

    table: str
    added: int
    removed: int
    changed: int
    rows: tuple[RowChange, ...]
    truncated: bool


class SnapshotDiff(Answer, frozen=True, kw_only=True):
    """From `before` to the snapshot of this answer."""

    before: str
    tables: tuple[TableChanges, ...]


async def snapshot_diff(before: Reader, after: Reader, *, limit: int = 100) -> SnapshotDiff:
    """What differs between two snapshots, table by table; tables that are equal are left out."""
    if not 1 <= limit <= ANSWER_PAGE_ITEMS_MAX:
        raise InvalidInput(f"limit={limit} is not between 1 and {ANSWER_PAGE_ITEMS_MAX}")
    found = [await _table(before, after, table, said, limit) for table, said in COMPARED]
    return SnapshotDiff(
        snapshot_id=after.cut.snapshot_id,
        before=before.cut.snapshot_id,
        tables=tuple(one for one in found if one is not None),
    )


async def _table(before: Reader, after: Reader, table: Table, said: tuple[str, ...], limit: int) -> TableChanges | None:
    spread = await _touched(before, after, table)
    if spread is not None and not spread:
        return None
    old, new = await _rows(before, table, said, spread), await _rows(after, table, said, spread)
    changes = list(_changes(table, said, old, new))
    if not changes:
        return None
    return TableChanges(
        table=table.name,
        added=sum(1 for one in changes if one.before is None),
        removed=sum(1 for one in changes if one.after is None),
        changed=sum(1 for one in changes if one.before is not None and one.after is not None),
        rows=tuple(changes[:limit]),
        truncated=len(changes) > limit,
    )


async def _touched(before: Reader, after: Reader, table: Table) -> list[str] | None:
    """The values of the spreading column that can differ; None where all of them can."""
    old, new = before.cut.layers(table), after.cut.layers(table)
    if {file.checksum for file in old.base} != {file.checksum for file in new.base}:
        return None
    mine = {file.checksum: file for file in old.files()}
    theirs = {file.checksum: file for file in new.files()}
    spread: set[str] = set()
    for reader, files in (
        (before, [mine[one] for one in mine.keys() - theirs.keys()]),
        (after, [theirs[one] for one in theirs.keys() - mine.keys()]),
    ):
        spread |= await reader.spread_in(table, files)
    return sorted(spread)


async def _rows(reader: Reader, table: Table, said: tuple[str, ...], spread: Sequence[str] | None) -> Rows:
    relation = await reader.relation(table, spread)
    orders = [group.order for group in table.groups]
    columns = ", ".join(name(column) for column in dict.fromkeys((*table.key_names, *said, *orders)))
    return await reader.rows(f"SELECT {columns} FROM {relation}")


def _changes(table: Table, said: tuple[str, ...], old: Rows, new: Rows) -> Iterator[RowChange]:
    orders = [group.order for group in table.groups]
    mine = {tuple(row[key] for key in table.key_names): row for row in old}
    theirs = {tuple(row[key] for key in table.key_names): row for row in new}
    for key in sorted(mine.keys() | theirs.keys()):
        here, there = mine.get(key), theirs.get(key)
        if here is not None and there is not None and all(here[order] == there[order] for order in orders):
            continue
        yield RowChange(
            key=dict(zip(table.key_names, key, strict=True)),
            before=None if here is None else {column: here[column] for column in said},
            after=None if there is None else {column: there[column] for column in said},
        )

"""Columns of tables: which identity a field of an asset's table has.

It is made of the asset, the table and Iceberg's field id, so that everybody who knows these knows it, and nothing has to be
kept or agreed on. A rename keeps the field id, and so the column. A table that was dropped and made anew has another uuid: the
asset is the same, its columns are others. What must never enter: names, and reading.
"""

from dataclasses import dataclass

from arco.iceberg.metadata import TableMetadata
from arco.kernel.fingerprint import fingerprint
from arco.kernel.ids import ColumnId, encode_ulid
from arco.quality.schemas import Schema


@dataclass(frozen=True, slots=True)
class TableColumns:
    """The fields of a table at every depth, by their paths."""

    uuid: str
    fields: dict[tuple[str, ...], int]

    @classmethod
    def of(cls, table: TableMetadata) -> "TableColumns":
        columns = Schema.of(table.current_schema).columns
        return cls(table.table_uuid, {one.path: one.id for one in columns if isinstance(one.id, int)})


def column_id(asset_id: str, table_uuid: str, field_id: int) -> ColumnId:
    """The identity of one field."""
    made = int(fingerprint("column", asset_id, table_uuid, str(field_id))[:32], 16)
    return ColumnId(encode_ulid(made))


def column_ids(asset_id: str, table: TableColumns) -> dict[tuple[str, ...], ColumnId]:
    """The identities of all columns of an asset's table, by their paths."""
    return {path: column_id(asset_id, table.uuid, field_id) for path, field_id in table.fields.items()}

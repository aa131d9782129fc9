"""Files of publishes as a table of state: only of publishes that wrote fewer than ten, so that it stays small."""

from arco.fold.vocabulary import Column, Group, Kind, Table, Wins
from arco.storage.keys import Head

FILES = Table(
    "files",
    Head.EXECUTION,
    "one row a file that a publish of fewer than ten files wrote",
    (
        Column("asset_id", Kind.TEXT, ""),
        Column("materialization_id", Kind.TEXT, ""),
        Column("path", Kind.TEXT, "where it lies"),
    ),
    (
        Group(
            "written",
            Wins.FIRST,
            (
                Column(
                    "partition_id", Kind.TEXT, "the partition that it is of; null where the table is laid out otherwise"
                ),
                Column("table_uuid", Kind.TEXT, ""),
                Column("snapshot_id", Kind.LONG, ""),
                Column("rows", Kind.LONG, ""),
                Column("bytes", Kind.LONG, ""),
                Column("columns", Kind.TEXT, "nulls and bounds of its columns, as JSON"),
            ),
        ),
    ),
    "asset_id",
)

"""One snapshot of a table as PyIceberg sees it: its schema, its specs, and its manifests.

PyIceberg finds columns by the current schema, whatever snapshot is asked for; after a column was dropped and its name used
again, a filter would look into the wrong one. So the document that it is given has the pinned snapshot's schema as the current
one, and no other snapshot: that also keeps tables with a long history cheap.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError
from pyiceberg.io import FileIO
from pyiceberg.manifest import ManifestFile
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema

from arco.iceberg.metadata import MAIN, TableMetadata
from arco.iceberg.shape import JsonObject
from arco.kernel.errors import InvalidInput, NotFound
from arco.kernel.ids import clip

if TYPE_CHECKING:
    from pyiceberg.table.metadata import TableMetadata as PyIcebergMetadata


@dataclass(frozen=True, slots=True)
class TableState:
    """A table at a snapshot; without one, a table that has no rows yet."""

    table: TableMetadata
    snapshot: JsonObject | None
    schema: JsonObject

    @property
    def snapshot_id(self) -> int | None:
        return None if self.snapshot is None else int(self.snapshot["snapshot-id"])

    def pyiceberg(self) -> "PyIcebergMetadata":
        """The same for PyIceberg, all of which is loaded for it."""
        from pyiceberg.table.metadata import TableMetadataUtil  # noqa: PLC0415

        kept: dict[str, Any] = {
            "snapshots": [] if self.snapshot is None else [self.snapshot],
            "current-snapshot-id": self.snapshot_id,
            "current-schema-id": self.schema["schema-id"],
            "snapshot-log": [],
            "metadata-log": [],
            "statistics": [],
            "partition-statistics": [],
            "refs": {},
        }
        try:
            return TableMetadataUtil.parse_obj({**self.table.document, **kept})
        except ValidationError as error:
            raise InvalidInput(
                f"this table's metadata cannot be read here: {clip(str(error.errors()[0]['msg']), 200)}",
                hint="it uses something that PyIceberg does not know",
            ) from error

    def manifests(self, io: FileIO) -> list[ManifestFile]:
        """The manifests of the snapshot."""
        current = self.pyiceberg().current_snapshot()
        return [] if current is None else list(current.manifests(io))


def state_of(table: TableMetadata, *, snapshot_id: int | None = None, ref: str | None = None) -> TableState:
    """A table at a snapshot, or at a ref (main if neither is given).

    A snapshot and a tag are read with the schema they were made with; a branch with the current one, as every engine does.
    """
    if snapshot_id is not None:
        snapshot = _snapshot(table, snapshot_id)
        return TableState(table, snapshot, _schema(table, snapshot.get("schema-id")))
    name = ref or MAIN
    found = table.refs.get(name)
    if found is None:
        if name != MAIN:
            raise NotFound(f"the table has no branch or tag {clip(name)!r}", hint="one of " + ", ".join(sorted(table.refs)))
        return TableState(table, None, table.current_schema)
    snapshot = _snapshot(table, int(found["snapshot-id"]))
    schema_id = snapshot.get("schema-id") if found["type"] == "tag" else None
    return TableState(table, snapshot, _schema(table, schema_id))


def pyiceberg_schema(schema: JsonObject) -> Schema:
    return Schema.model_validate(schema)


def pyiceberg_spec(spec: JsonObject) -> PartitionSpec:
    return PartitionSpec.model_validate(spec)


def _snapshot(table: TableMetadata, snapshot_id: int) -> JsonObject:
    for snapshot in table.snapshots:
        if snapshot["snapshot-id"] == snapshot_id:
            return snapshot
    raise NotFound(f"the table has no snapshot {snapshot_id}", hint="it has expired; plan again")


def _schema(table: TableMetadata, schema_id: int | None) -> JsonObject:
    """The schema of that id; the current one for snapshots that name none (v1) or one that was removed."""
    return next((one for one in table.schemas if one["schema-id"] == schema_id), table.current_schema)

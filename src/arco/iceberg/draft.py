"""A table's next document while one request's updates are applied to it.

The draft owns its lists and maps and may grow them in place; the entries inside belong to the base document too and are
never changed. What must never enter: one update's rules (`structure.py`, `history.py`).
"""

from dataclasses import dataclass, field

from arco.iceberg import schemas, specs
from arco.iceberg.metadata import MAIN, NO_SNAPSHOT, TableMetadata, empty_document
from arco.iceberg.numbered import Numbered
from arco.iceberg.schemas import Column
from arco.iceberg.shape import JsonObject
from arco.kernel.errors import InvalidInput


@dataclass(slots=True)
class Draft:
    document: JsonObject
    creating: bool
    now_ms: int
    schemas: Numbered
    specs: Numbered
    orders: Numbered
    snapshots: dict[int, JsonObject]
    added_snapshot_ids: set[int] = field(default_factory=set)
    # Added in this request and made current in it; those that are not current in the end were never seen by anybody.
    passed_through_main: set[int] = field(default_factory=set)
    removed_snapshots: bool = False
    # Schemas are values: one that is the same object has the same columns.
    _walked: tuple[JsonObject, dict[int, Column]] | None = None

    @property
    def format_version(self) -> int:
        return int(self.document["format-version"])

    @property
    def current_snapshot_id(self) -> int | None:
        ref = self.document["refs"].get(MAIN)
        return None if ref is None else int(ref["snapshot-id"])

    def current_columns(self) -> dict[int, Column]:
        """Columns that a spec or an order may name: of the current schema, or of the newest while a table is being made."""
        current = self.document["current-schema-id"]
        schema_id = self.schemas.last_added if current is None else current
        schema = None if schema_id is None else self.schemas.get(schema_id)
        if schema is None:
            raise InvalidInput("a partition spec or sort order is added before a schema")
        if self._walked is None or self._walked[0] is not schema:
            self._walked = schema, schemas.columns_by_id(schema)
        return self._walked[1]


def open_draft(base: TableMetadata | None, *, format_version: int, now_ms: int) -> Draft:
    source = empty_document(format_version) if base is None else base.document
    document: JsonObject = {key: _owned(value) for key, value in source.items()}
    return Draft(
        document=document,
        creating=base is None,
        now_ms=now_ms,
        schemas=Numbered("schema", "schema-id", document["schemas"], schemas.meaning),
        specs=Numbered("partition spec", "spec-id", document["partition-specs"], specs.spec_meaning),
        orders=Numbered("sort order", "order-id", document["sort-orders"], specs.order_meaning, first_id=1),
        snapshots={snapshot["snapshot-id"]: snapshot for snapshot in document["snapshots"]},
    )


def settle_current_snapshot(draft: Draft) -> None:
    """`current-snapshot-id` follows the main branch; older readers insist on a number where there is none."""
    current = draft.current_snapshot_id
    if current is not None:
        draft.document["current-snapshot-id"] = current
    elif draft.format_version < 3:
        draft.document["current-snapshot-id"] = NO_SNAPSHOT
    else:
        draft.document.pop("current-snapshot-id", None)


def _owned(value: object) -> object:
    if isinstance(value, list):
        return list(value)
    return dict(value) if isinstance(value, dict) else value

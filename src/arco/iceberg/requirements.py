"""Requirements checked against the state a commit is about to change.

The texts are part of the protocol: clients and the compatibility kit compare them, each starting with `Requirement failed: `
exactly once. What must never enter: retries, and any leniency about a requirement that does not hold.
"""

from collections.abc import Iterable
from typing import Protocol, assert_never

from arco.iceberg.changes import (
    AssertCreate,
    AssertCurrentSchemaId,
    AssertDefaultSortOrderId,
    AssertDefaultSpecId,
    AssertLastAssignedFieldId,
    AssertLastAssignedPartitionId,
    AssertRefSnapshotId,
    AssertTableUuid,
    TableRequirement,
    ViewRequirement,
)
from arco.iceberg.metadata import TableMetadata
from arco.kernel.errors import Conflict
from arco.kernel.ids import clip


class HasViewUuid(Protocol):
    @property
    def view_uuid(self) -> str: ...


def creates(requirements: Iterable[TableRequirement]) -> bool:
    """Whether the commit is meant to make the table."""
    return any(isinstance(requirement, AssertCreate) for requirement in requirements)


def check(requirements: Iterable[TableRequirement], metadata: TableMetadata | None) -> None:
    """Raise `Conflict` for the first requirement that does not hold; `None` means that the table does not exist."""
    for requirement in requirements:
        if isinstance(requirement, AssertCreate):
            if metadata is not None:
                raise _failed("table already exists")
        elif metadata is None:
            _check_absent(requirement)
        else:
            _check_one(requirement, metadata)


def check_view(requirements: Iterable[ViewRequirement], metadata: HasViewUuid) -> None:
    for requirement in requirements:
        if requirement.uuid.lower() != metadata.view_uuid.lower():
            raise _failed(f"view UUID does not match: expected {clip(requirement.uuid)} != {metadata.view_uuid}")


def _check_absent(requirement: TableRequirement) -> None:
    # The one thing that can be said of a table that is not there: it has no refs.
    if not isinstance(requirement, AssertRefSnapshotId) or requirement.snapshot_id is not None:
        raise _failed("table does not exist")


def _check_one(requirement: TableRequirement, metadata: TableMetadata) -> None:
    match requirement:
        case AssertCreate():
            raise _failed("table already exists")
        case AssertTableUuid(uuid):
            if uuid.lower() != metadata.table_uuid.lower():
                raise _failed(f"UUID does not match: expected {clip(uuid)} != {metadata.table_uuid}")
        case AssertRefSnapshotId(ref, snapshot_id):
            _check_ref(ref, snapshot_id, metadata)
        case AssertLastAssignedFieldId(expected):
            _check_id("last assigned field id", expected, metadata.last_column_id)
        case AssertCurrentSchemaId(expected):
            _check_id("current schema", expected, metadata.current_schema_id)
        case AssertLastAssignedPartitionId(expected):
            _check_id("last assigned partition id", expected, metadata.last_partition_id)
        case AssertDefaultSpecId(expected):
            _check_id("default partition spec", expected, metadata.default_spec_id)
        case AssertDefaultSortOrderId(expected):
            _check_id("default sort order", expected, metadata.default_sort_order_id)
        case _:
            assert_never(requirement)


def _check_id(what: str, expected: int, actual: int) -> None:
    if expected != actual:
        raise _failed(f"{what} changed: expected id {expected} != {actual}")


def _check_ref(name: str, expected: int | None, metadata: TableMetadata) -> None:
    ref = metadata.refs.get(name)
    if ref is None:
        if expected is not None:
            raise _failed(f"branch or tag {clip(name)} is missing, expected {expected}")
    elif expected is None:
        raise _failed(f"{ref['type']} {clip(name)} was created concurrently")
    elif expected != ref["snapshot-id"]:
        raise _failed(f"{ref['type']} {clip(name)} has changed: expected id {expected} != {ref['snapshot-id']}")


def _failed(why: str) -> Conflict:
    return Conflict(f"Requirement failed: {why}")

"""The events of the domain `iceberg`.

A report of scan or commit metrics is kept as the client sent it. Clients report before the table exists (a create from a
query does), so the table is named by its names, and by its uuid only if it has one. What must never enter: reading meaning
out of the report; that is the fold's.

A commit of a table or view is what its receipt says, with what the metadata file said at that commit, so that nobody needs
either of them later. Its id follows from the commit: whoever announces it announces the same event.
"""

from typing import Annotated, Any, Self

import msgspec

from arco.kernel.errors import InvalidInput
from arco.kernel.ids import EventId, TableUuid
from arco.ledger.drafts import Draft
from arco.ledger.envelope import Event, EventType
from arco.ledger.payloads import derived_event_id, read_payload

METRICS_REPORTED = EventType("iceberg.metrics_reported.v1")
TABLE_COMMITTED = EventType("iceberg.table_committed.v1")
SOURCE = "arco/iceberg-rest"
RECEIPTS = "arco/receipts"

_Text = Annotated[str, msgspec.Meta(min_length=1)]


class MetricsReported(msgspec.Struct, frozen=True, kw_only=True):
    """What a client measured. `report` is its body, unread."""

    namespace: Annotated[tuple[_Text, ...], msgspec.Meta(min_length=1)]
    table: _Text
    table_uuid: TableUuid | None = None
    report_type: _Text
    report: dict[str, Any]

    def draft(
        self, *, idempotencykey: str | None = None, correlationid: str | None = None, traceparent: str | None = None
    ) -> Draft:
        """The event of this report. Its subject is the table's uuid, if it has one."""
        return Draft(
            type=METRICS_REPORTED,
            source=SOURCE,
            subject=self.table_uuid,
            data={
                "namespace": list(self.namespace),
                "table": self.table,
                "table_uuid": self.table_uuid,
                "report_type": self.report_type,
                "report": self.report,
            },
            idempotencykey=idempotencykey,
            correlationid=correlationid,
            traceparent=traceparent,
        )

    @classmethod
    def of(cls, event: Event) -> Self:
        """The report that an event carries. Fields that this version does not know are passed over."""
        if event.type != METRICS_REPORTED:
            raise InvalidInput(f"event {event.id} is {event.type}, not {METRICS_REPORTED}")
        return read_payload(event, cls)


class CommittedSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot as the metadata file has it. The summary says rows, files, and which run of Servo made it, if one did."""

    snapshot_id: int
    parent_snapshot_id: int | None
    sequence_number: int
    schema_id: int | None
    at_ms: int
    operation: str | None
    summary: dict[str, str]


class CommittedMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """What the metadata file said at a commit.

    `schemas` has the current one and those that are new with this commit, as Iceberg writes them; all of them if the file before
    is gone. `added` are the snapshots that are new with this commit, on whatever branch; the newest if the file before is gone.
    `moved`: whether what is read on main is another snapshot than before, a new one or an old one; null if nobody can tell.
    """

    format_version: int
    location: str
    last_sequence_number: int
    current_schema_id: int | None
    schemas: list[dict[str, Any]]
    current: CommittedSnapshot | None
    added: tuple[CommittedSnapshot, ...]
    moved: bool | None = None


class TableCommitted(msgspec.Struct, frozen=True, kw_only=True):
    """A commit of a table or view. `metadata` is null if the metadata file was gone when the commit was announced.

    Commits that became visible together name their `transaction`, and each of them all `transaction_tables`: whoever sees one
    knows which others belong to it. They are null if the record of the transaction was gone when the commit was announced.
    """

    table_uuid: str
    kind: str
    commit_key: str
    commit_number: int
    metadata_location: str
    previous_metadata_location: str | None
    snapshot_id: int | None
    committed_ms: int
    source: str
    principal: str
    client: str | None
    metadata: CommittedMetadata | None = None
    transaction: str | None = None
    transaction_tables: tuple[str, ...] | None = None

    def draft(self) -> Draft:
        about = ("table committed", self.table_uuid, self.commit_key)
        return Draft(
            type=TABLE_COMMITTED,
            source=RECEIPTS,
            subject=self.table_uuid,
            id=EventId(derived_event_id(self.committed_ms, *about)),
            # As it is read back: lists where there are tuples.
            data=msgspec.json.decode(msgspec.json.encode(self)),
            time_ms=self.committed_ms,
        )

    @classmethod
    def of(cls, event: Event) -> Self:
        """The commit that an event carries. Fields that this version does not know are passed over."""
        if event.type != TABLE_COMMITTED:
            raise InvalidInput(f"event {event.id} is {event.type}, not {TABLE_COMMITTED}")
        return read_payload(event, cls)

"""The events of the domain `iceberg`.

A report of scan or commit metrics is kept as the client sent it. Clients report before the table exists (a create from a
query does), so the table is named by its names, and by its uuid only if it has one. What must never enter: reading meaning
out of the report; that is the fold's.

Commits are not appended: their receipts are there already, one object each and complete below every table's head. A receipt is
read as the event that it stands for, always the same one.
"""

from typing import Annotated, Any, Self

import msgspec

from arco.kernel.errors import CorruptObject, InvalidInput, UnknownFormat
from arco.kernel.fingerprint import fingerprint
from arco.kernel.ids import EventId, TableUuid, encode_ulid
from arco.kernel.position import Position
from arco.kernel.scope import Scope
from arco.ledger.drafts import Draft, seal
from arco.ledger.envelope import Event, EventType, identifier
from arco.ledger.payloads import Payload, read_payload

METRICS_REPORTED = EventType("iceberg.metrics_reported.v1")
TABLE_COMMITTED = EventType("iceberg.table_committed.v1")
SOURCE = "arco/iceberg-rest"
_RECEIPT = "arco.receipt"

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


class CommitSource(msgspec.Struct, frozen=True, kw_only=True):
    """Who moved the table: `servo`, `iceberg-rest`, `register`."""

    kind: str
    principal: str
    client: str | None = None


class TableCommitted(Payload, frozen=True, kw_only=True):
    """One commit of one table or view, as its committed receipt says."""

    table_uuid: TableUuid
    commit_number: int
    commit_key: str
    metadata_location: str
    previous_metadata_location: str | None
    snapshot_id: int | None
    at_ms: int
    source: CommitSource


class _Commit(msgspec.Struct, frozen=True):
    event_id: EventId
    commit_number: int
    metadata_location: str
    previous_metadata_location: str | None
    snapshot_id: int | None
    at_ms: int
    source: CommitSource


class _Receipt(msgspec.Struct, frozen=True):
    format: str
    format_version: int
    phase: str
    table_uuid: TableUuid
    commit_key: str
    commit: _Commit


def commit_event(data: bytes, name: str, scope: Scope) -> Event | None:
    """The event that a receipt stands for; None for a pending one, which says only that a commit was tried.

    Its id is that of the commit, and its position follows from both: whoever reads the receipt gets the same event.
    """
    try:
        receipt = msgspec.json.decode(data, type=_Receipt, dec_hook=identifier)
    except msgspec.DecodeError as error:
        raise CorruptObject(f"{name} is not a receipt: {error}") from error
    if (receipt.format, receipt.format_version) != (_RECEIPT, 1):
        raise UnknownFormat(f"{name} is {receipt.format} version {receipt.format_version}")
    if receipt.phase != "committed":
        return None
    commit = receipt.commit
    payload = TableCommitted(
        table_uuid=receipt.table_uuid,
        commit_number=commit.commit_number,
        commit_key=receipt.commit_key,
        metadata_location=commit.metadata_location,
        previous_metadata_location=commit.previous_metadata_location,
        snapshot_id=commit.snapshot_id,
        at_ms=commit.at_ms,
        source=commit.source,
    )
    draft = Draft(type=TABLE_COMMITTED, source=SOURCE, subject=receipt.table_uuid, id=commit.event_id, data=payload.data())
    place = int(fingerprint("receipt", receipt.commit_key)[:16], 16)
    position = Position(encode_ulid((commit.at_ms << 16) << 64 | place))
    return seal(draft, scope, fresh_id=commit.event_id, position=position, now_ms=commit.at_ms)

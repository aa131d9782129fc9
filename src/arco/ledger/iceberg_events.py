"""The events of the domain `iceberg`.

A report of scan or commit metrics is kept as the client sent it. Clients report before the table exists (a create from a
query does), so the table is named by its names, and by its uuid only if it has one. What must never enter: reading meaning
out of the report; that is the fold's.
"""

from typing import Annotated, Any, Self

import msgspec

from arco.kernel.errors import InvalidInput
from arco.kernel.ids import TableUuid, clip
from arco.ledger.drafts import Draft
from arco.ledger.envelope import Event, EventType, identifier

METRICS_REPORTED = EventType("iceberg.metrics_reported.v1")
SOURCE = "arco/iceberg-rest"

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
        try:
            return msgspec.convert(event.data, cls, dec_hook=identifier)
        except msgspec.ValidationError as error:
            raise InvalidInput(clip(f"event {event.id}: {error}".replace("`", ""), 300)) from None

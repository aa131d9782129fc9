"""A metrics report becomes an event and comes back as it was."""

import json

import msgspec
import pytest

from arco.kernel.errors import InvalidInput
from arco.kernel.ids import EventId, TableUuid
from arco.kernel.position import Position
from arco.kernel.scope import Scope
from arco.ledger.drafts import Draft, seal
from arco.ledger.envelope import EventType, decode, encode
from arco.ledger.iceberg_events import METRICS_REPORTED, MetricsReported

UUID = TableUuid("c0ffee00-1234-4abc-8def-0123456789ab")
REPORT = {
    "report-type": "scan-report",
    "table-name": "arco.db.orders",
    "snapshot-id": 7812345678901234567,
    "filter": {"type": "and", "left": True, "right": {"type": "eq", "term": "a", "value": 1.5}},
    "schema-id": 0,
    "projected-field-ids": [1, 2],
    "projected-field-names": ["größe", "日本"],
    "metrics": {"total-planning-duration": {"count": 1, "time-unit": "nanoseconds", "total-duration": 2644235116}},
    "something new": None,
}
KNOWN = MetricsReported(
    namespace=("db", "with.dot"), table="orders", table_uuid=UUID, report_type="scan-report", report=REPORT
)


def event_of(draft: Draft):
    sealed = seal(
        draft,
        Scope.of(),
        fresh_id=EventId("01K7A5V6M8YQ4Z3B2N1C0D9E8F"),
        position=Position("01K7A5V6M800000000000000AB"),
        now_ms=1,
    )
    return decode(encode(sealed))


def test_a_report_comes_back_as_it_was_given():
    event = event_of(KNOWN.draft())
    assert event.type == METRICS_REPORTED == "iceberg.metrics_reported.v1"
    assert event.subject == UUID
    assert MetricsReported.of(event) == KNOWN
    assert json.loads(encode(event))["data"]["report"] == REPORT


def test_a_table_that_does_not_exist_yet_has_names_and_no_uuid():
    early = msgspec.structs.replace(KNOWN, table_uuid=None)
    event = event_of(early.draft())
    assert event.subject is None
    assert event.data["table_uuid"] is None
    assert MetricsReported.of(event) == early


def test_a_report_sent_again_under_its_key_is_the_same_event():
    first = KNOWN.draft(idempotencykey="0199e2b1-0000-7000-8000-000000000001", correlationid="request-1")
    again = KNOWN.draft(idempotencykey="0199e2b1-0000-7000-8000-000000000001", correlationid="request-2")
    assert event_of(first).id == event_of(again).id


def test_fields_that_a_later_release_added_are_passed_over():
    draft = KNOWN.draft()
    later = msgspec.structs.replace(draft, data={**draft.data, "engine": "spark"})
    assert MetricsReported.of(event_of(later)) == KNOWN


@pytest.mark.parametrize(
    "fields",
    [
        {"namespace": []},
        {"namespace": "db"},
        {"namespace": [""]},
        {"table": ""},
        {"table": 7},
        {"table_uuid": "orders"},
        {"report_type": None},
        {"report": []},
    ],
    ids=repr,
)
def test_an_event_whose_data_is_no_report_is_refused(fields):
    draft = KNOWN.draft()
    wrong = msgspec.structs.replace(draft, data={**draft.data, **fields})
    with pytest.raises(InvalidInput):
        MetricsReported.of(event_of(wrong))


def test_an_event_of_another_type_or_version_is_refused():
    for kind in ("iceberg.metrics_reported.v2", "iceberg.table_created.v1"):
        draft = msgspec.structs.replace(KNOWN.draft(), type=EventType(kind))
        with pytest.raises(InvalidInput, match=kind):
            MetricsReported.of(event_of(draft))

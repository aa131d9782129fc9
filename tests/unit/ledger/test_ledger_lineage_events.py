"""Edges keep their identity, and what Servo writes of them reads as before."""

from arco.kernel.identity import dependency_fingerprint, edge_id
from arco.ledger.lineage_events import Edge, LineageRecorded, edges_of

SERVO = {
    "from": "shop.orders",
    "from_id": "01K798DZZZ000000000000000A",
    "from_partitions": [{"date": ["2025-10-10", "2025-10-11"]}],
    "from_snapshot": 7812345678901234567,
    "kind": "table",
    "to": "shop.daily",
    "to_id": "01K798DZZZ000000000000000B",
    "to_partitions": [],
}


def one(**more: object) -> Edge:
    (edge,) = edges_of([{**SERVO, **more}])
    return edge


def test_what_servo_says_of_an_edge_is_written_as_it_says_it() -> None:
    recorded = LineageRecorded(run_id="r", task_id="t", materialization_id="m", edges=edges_of([SERVO]))
    assert recorded.data()["edges"] == [SERVO]


def test_an_edge_is_about_assets_and_not_about_their_names() -> None:
    assert one(**{"from": "shop.sales", "to": "shop.other"}).identity() == one().identity()
    assert one(from_id="01K798DZZZ000000000000000C").identity() != one().identity()
    assert one(kind="changes").identity() != one().identity()


def test_the_identity_is_that_of_the_kernel() -> None:
    source, target = str(SERVO["from_id"]), str(SERVO["to_id"])
    assert one().identity() == edge_id(source, target, dependency_fingerprint(source, target, "", "table", ""))
    assert one(edge_id="edge_294daca7f00059e9").identity() == "edge_294daca7f00059e9"


def test_an_end_without_an_id_is_what_it_is_called() -> None:
    file = {"from": "landing/*.json", "kind": "files", "to": "shop.daily", "to_id": SERVO["to_id"]}
    (first,), (second,) = edges_of([file]), edges_of([{**file, "from": "landing/*.csv"}])
    assert first.identity() != second.identity()
    (elsewhere,) = edges_of([{**file, "from_namespace": "s3://other"}])
    assert elsewhere.identity() != first.identity()
    (table,) = edges_of([{**file, "from_table": "c0ffee00-1234-4abc-8def-0123456789ab"}])
    (renamed,) = edges_of([{**file, "from": "x", "from_table": "c0ffee00-1234-4abc-8def-0123456789ab"}])
    assert table.identity() == renamed.identity() != first.identity()

"""What each kind of event contributes, and what decides where two speak of the same thing."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from arco.fold.contributions import RowMaker, told_at
from arco.fold.joins import joined
from arco.fold.shredding import SHREDDERS, shred, shred_for
from arco.fold.tables import FOLDED_FROM, RUNS, TABLES, tables_of
from arco.fold.words import trigrams, words_of_name, words_of_text
from arco.kernel.errors import InvalidInput, UnknownFormat
from arco.kernel.identity import partition_id
from arco.kernel.ids import AssetId, EventId, encode_ulid
from arco.kernel.partition_key import PartitionKey
from arco.kernel.position import Position
from arco.kernel.scope import Scope
from arco.ledger.drafts import Draft, seal
from arco.ledger.envelope import Event, EventType
from arco.ledger.event_types import EVENT_KINDS
from arco.ledger.lineage_events import edges_of
from arco.ledger.receipts import SourceKind
from arco.storage.keys import Head

SCOPE = Scope.of("default", "default")
AT_MS = 1_735_689_600_000
RUN, TASK, ASSET = encode_ulid(AT_MS << 80 | 1), "task_0000000000000001", encode_ulid(AT_MS << 80 | 2)
TABLE = "0192e1d0-0000-7000-8000-000000000000"
BEGUN = {"run_id": RUN, "task_id": TASK, "asset": "shop.daily", "asset_id": ASSET}
MADE_KIND = "execution.materialization_completed.v1"
MADE = {
    **BEGUN,
    "materialization_id": "m1",
    "attempt": 1,
    "table_uuid": TABLE,
    "partitions": [{}],
    "code": "c",
    "code_version": "v",
    "plan_fingerprint": "p",
    "inputs": {},
    "input_snapshots": {"raw": 7},
    "snapshot_id": 5,
    "rows": 10,
    "bytes": 100,
    "files": 2,
    "schema_id": 0,
    "started_ms": AT_MS,
    "published_ms": AT_MS + 5,
    "grain": {},
    "sequence_number": 3,
}


def said(kind: str, data: dict[str, Any], at: int = 0, *, source: str = "arco/servo", number: int = 0) -> Event:
    """An event. `at` is its place among all; `number` makes its id."""
    draft = Draft(type=EventType(kind), source=source, data=data, subject="shop.daily", id=EventId(encode_ulid(number)))
    position = Position(encode_ulid((AT_MS << 16) + at << 64))
    return seal(draft, SCOPE, fresh_id=EventId(encode_ulid(0)), position=position, now_ms=AT_MS + at)


def made(at: int = 0, *, source: str = "arco/servo", **more: Any) -> Event:
    return said("execution.materialization_completed.v1", {**MADE, **more}, at, source=source)


def rows(table: str, *events: Event) -> list[dict[str, Any]]:
    """The state of a table after some events, whatever their order."""
    declared = next(one for one in TABLES if one.name == table)
    contributed = [row for event in events for one, row in shred_for(declared.head, event) if one is declared]
    there, back = joined(declared, contributed), joined(declared, contributed[::-1])
    assert there == back
    return list(there.values())


@pytest.mark.parametrize("head", FOLDED_FROM, ids=str)
def test_every_event_of_a_domain_is_known_to_the_heads_that_read_it(head: Head) -> None:
    wanted = {name for name, kind in EVENT_KINDS.items() if kind.domain in FOLDED_FROM[head]}
    assert set(SHREDDERS[head]) == wanted


def test_rows_have_every_column_of_their_table() -> None:
    for table, row in shred(made()):
        assert set(row) == set(table.column_names)
    with pytest.raises(KeyError, match="colour"):
        RowMaker(RUNS)({"run_id": "r"}, colour="red")


def again(event: Event, at: int) -> Event:
    """Another delivery of an event, whose sender said when it happened."""
    return msgspec.structs.replace(event, position=Position(encode_ulid((AT_MS << 16) + at << 64)))


# What others say


def test_others_do_not_say_how_a_run_of_servo_ended() -> None:
    ended = {"run_id": RUN, "state": "succeeded", "tasks": {}, "started_ms": AT_MS, "ended_ms": AT_MS + 5}
    forged = said(
        "execution.run_completed.v1", {**ended, "state": "failed", "ended_ms": AT_MS + 99}, 1, source="evil", number=9
    )
    (row,) = rows("runs", said("execution.run_completed.v1", ended, 2), forged)
    assert (row["state"], row["told_by"]) == ("succeeded", "arco/servo")
    begun = {
        "run_id": RUN,
        "project": "p",
        "deployment": "d",
        "code_version": "v",
        "trigger": "manual",
        "triggered_by": "ann",
        "tasks": 1,
    }
    (row,) = rows("runs", said("execution.run_created.v1", begun, 2), forged)
    assert (row["state"], row["ended_at"]) == ("running", None), "also while it goes on"
    (row,) = rows("runs", forged)
    assert (row["state"], row["told_by"]) == ("failed", "evil"), "it is told of by nobody else"


def test_others_do_not_say_how_a_task_of_servo_ended() -> None:
    ended = {**BEGUN, "state": "succeeded", "attempts": 1, "started_ms": AT_MS, "ended_ms": AT_MS + 5}
    forged = {**ended, "state": "zonk", "attempts": 99, "asset": "shop.other"}
    (row,) = rows(
        "tasks",
        said("execution.task_ended.v1", ended, 2),
        said("execution.task_ended.v1", forged, 1, source="evil", number=9),
    )
    assert (row["state"], row["attempt"], row["asset"]) == ("succeeded", 1, "shop.daily")


def test_others_do_not_publish_over_servo() -> None:
    number = 9_000_000_000
    forged = {**MADE, "materialization_id": "m9", "sequence_number": number, "published_ms": AT_MS + 99}
    mine, theirs = said(MADE_KIND, MADE, 2), said(MADE_KIND, forged, 1, source="evil", number=9)
    (row,) = rows("partitions", mine, theirs)
    assert (row["materialization_id"], row["told_by"]) == ("m1", "arco/servo")
    same = said(MADE_KIND, {**forged, "materialization_id": "m1"}, 1, source="evil", number=9)
    (row,) = rows("materializations", mine, same)
    assert (row["sequence_number"], row["told_by"]) == (3, "arco/servo"), "nor under the name of what it made"


def test_a_state_that_nobody_checked_then_is_kept_with_its_word() -> None:
    ended = {"run_id": "r", "state": "zonk", "tasks": {}, "started_ms": -5, "ended_ms": AT_MS}
    (row,) = rows("runs", said("execution.run_completed.v1", ended, 1, source="airflow"))
    assert (row["state"], row["started_at"]) == ("zonk", -5)


def test_runs_that_cannot_be_servos_are_ordered_as_ever() -> None:
    """What was folded of them before goes on."""
    ended = {"run_id": "0d1c-airflow", "state": "succeeded", "tasks": {}, "started_ms": AT_MS, "ended_ms": AT_MS + 5}
    event = said("execution.run_completed.v1", ended, 1, source="airflow")
    (row,) = rows("runs", event)
    assert row["state_order"] == told_at(event, AT_MS + 5, 1)


# What is delivered again


def test_a_word_that_is_delivered_again_does_not_stand_above_what_was_said_since() -> None:
    words = {"asset": "shop.daily", "asset_id": ASSET, "partitions": [{}], "who": "ann", "why": "odd"}
    held = said("quality.partition_quarantined.v1", words, 1, number=9)
    let_go = said("quality.partition_released.v1", words, 2, number=1)
    (row,) = rows("quarantines", held, let_go, again(held, 3))
    assert (row["quarantined"], row["said_at"]) == (False, AT_MS + 2)
    (row,) = rows("quarantines", held, again(held, 3))
    assert row["quarantined"]


def test_a_word_about_one_version_does_not_take_the_place_of_one_about_all() -> None:
    words = {"asset": "shop.daily", "asset_id": ASSET, "partitions": [{}], "who": "ann", "why": "odd"}
    held = said("quality.partition_quarantined.v1", words, 1, number=9)
    let_go = said("quality.partition_released.v1", {**words, "materialization_id": "m1"}, 2, number=1)
    found = {row["materialization_id"]: row["quarantined"] for row in rows("quarantines", held, let_go)}
    assert found == {"": True, "m1": False}


def test_lineage_that_is_delivered_again_is_not_seen_later() -> None:
    edges = [
        {"from": "a", "kind": "whole", "to": "b", "columns": {"mappings": [{"column": "x", "sources": [{"column": "y"}]}]}}
    ]
    edge_id = edges_of(edges)[0].identity()
    by_hand = said("lineage.lineage_recorded.v1", {"edges": edges, "method": "hand", "who": "ann"}, 1, number=9)
    taken_back = said("lineage.lineage_removed.v1", {"edge_ids": [edge_id], "who": "bo"}, 2, number=1)
    (row,) = rows("lineage_edges", by_hand, taken_back, again(by_hand, 3))
    assert (row["removed"], row["owner"]) == (True, "bo")
    newer = [{**edges[0], "transform": "new"}]
    first = said("lineage.lineage_recorded.v1", {"edges": edges, "run_id": "r1"}, 1, number=9)
    second = said("lineage.lineage_recorded.v1", {"edges": newer, "run_id": "r2"}, 2, number=1)
    (row,) = rows("lineage_edges", first, second, again(first, 3))
    assert (row["first_run_id"], row["last_run_id"], row["last_seen_at"]) == ("r1", "r2", AT_MS + 2)
    (row,) = rows("lineage_columns", first, second, again(first, 3))
    assert row["transform_fingerprint"] == "new"


def test_an_end_that_is_delivered_again_does_not_stand_above_a_later_end() -> None:
    """Also under another time: whoever sends an end need not say one, for the end says when it was."""
    ended = {"run_id": "r1", "tasks": {}, "started_ms": None}
    failed = said("execution.run_completed.v1", {**ended, "state": "failed", "ended_ms": AT_MS + 1}, 1, number=9)
    redone = said("execution.run_completed.v1", {**ended, "state": "succeeded", "ended_ms": AT_MS + 2}, 2, number=1)
    later = said("execution.run_completed.v1", failed.data, 3, number=9)
    (row,) = rows("runs", failed, redone, later)
    assert row["state"] == "succeeded"


def test_orders_of_before_compare_with_those_of_today() -> None:
    """Files that were written while positions decided hold a position where a moment is now."""
    at_ms = AT_MS + 1000
    before = f"{Position(encode_ulid((AT_MS << 16) << 64 | 5))}:{encode_ulid(9)}"
    since = f"{Position(encode_ulid((at_ms + 1 << 16) << 64 | 5))}:{encode_ulid(9)}"
    assert before < told_at(said("quality.partition_released.v1", {}, 1000), at_ms) < since


# Runs and tasks


def test_an_end_stands_above_a_beginning_and_an_attempt_above_those_before() -> None:
    begun = {**BEGUN, "partitions": [{}], "worker": "w1", "started_ms": AT_MS, "attempt": 1}
    again = {**begun, "attempt": 2, "worker": "w2"}
    failed = {**BEGUN, "state": "failed", "attempts": 1, "started_ms": AT_MS, "ended_ms": AT_MS + 1}
    events = [
        said("execution.task_ended.v1", failed, 1),
        said("execution.task_started.v1", again, 2),
        said("execution.task_started.v1", begun, 9),  # delivered late
    ]
    (task,) = rows("tasks", *events)
    assert (task["state"], task["attempt"], task["worker"], task["partitions"]) == ("running", 2, "w2", "[{}]")
    ended = said("execution.task_ended.v1", {**failed, "state": "succeeded", "attempts": 2}, 3)
    (task,) = rows("tasks", *events, ended)
    assert (task["state"], task["worker"], task["ended_at"]) == ("succeeded", "w2", AT_MS + 1)


def test_a_run_is_known_from_its_end_alone() -> None:
    data = {"run_id": RUN, "state": "failed", "tasks": {"failed": 1}, "started_ms": None, "ended_ms": AT_MS + 9}
    data["message"] = "no space left"
    (run,) = rows("runs", said("execution.run_completed.v1", data))
    assert (run["state"], run["task_states"], run["project"], run["created_order"]) == (
        "failed",
        '{"failed":1}',
        None,
        None,
    )
    assert (run["message"], run["told_by"]) == ("no space left", "arco/servo")
    created = {"run_id": RUN, "project": "shop", "deployment": "d", "code_version": "v", "trigger": "manual", "job": "j"}
    begun = said("execution.run_created.v1", {**created, "triggered_by": "ann", "tasks": 1}, 50)
    (run,) = rows("runs", begun, said("execution.run_completed.v1", data))
    assert (run["state"], run["project"], run["created_at"]) == ("failed", "shop", AT_MS)
    assert (run["job"], run["message"]) == ("j", "no space left")


# Publishes


def test_a_publish_of_a_range_is_a_row_a_partition() -> None:
    event = made(partitions=[{"date": ["2025-01-01", "2025-01-04"]}], grain={"date": "daily"})
    found = rows("materializations", event)
    assert [row["partition_key"] for row in found] == [f"date=d:2025-01-0{day}" for day in (1, 2, 3)]
    assert found[0]["partition_id"] == partition_id(AssetId(ASSET), PartitionKey.parse("date=d:2025-01-01"))
    assert {row["rows"] for row in found} == {None}  # what each holds is not known
    assert len(rows("partitions", event)) == 3
    (whole,) = rows("partitions", made())
    assert (whole["partition_key"], whole["rows"], whole["bytes"], whole["files"]) == ("", 10, 100, 2)


@pytest.mark.parametrize(
    ("kind", "box", "fields"),
    [
        ("daily", ["2025-01-01", "2025-01-03"], [{"at": "2025-01-01"}, {"at": "2025-01-02"}]),
        ("daily", ["2025-01-01", "2025-01-03"], [{"at_day": "2025-01-01"}, {"at_day": "2025-01-02"}]),
        (
            "hourly",
            ["2025-01-01T00:00:00+00:00", "2025-01-01T02:00:00+00:00"],
            [{"at_hour": "482136"}, {"at_hour": "482137"}],
        ),
        ("monthly", ["2025-01-01", "2025-03-01"], [{"at_month": "660"}, {"at_month": "661"}]),
        ("weekly", ["2025-01-06", "2025-01-20"], [{"at": "2025-01-08"}, {"at": "2025-01-13"}]),
        ("static", [["de", "fr"]], [{"at": "de"}, {"at": "fr"}]),
    ],
)
def test_counts_belong_to_the_partitions_that_their_fields_lie_in(kind: str, box: Any, fields: list[Any]) -> None:
    counts = [{"partition": one, "rows": 4 + at, "files": 1, "bytes": 40} for at, one in enumerate(fields)]
    counts.append({"partition": fields[1], "rows": 2, "files": 1, "bytes": 20})
    found = rows("partitions", made(partitions=[{"at": box}], grain={"at": kind}, counts=counts))
    assert [(row["rows"], row["files"], row["bytes"]) for row in found] == [(4, 1, 40), (7, 2, 60)]


def test_counts_by_other_fields_say_nothing_of_partitions() -> None:
    counts = [{"partition": {"bucket": "3"}, "rows": 10, "files": 1, "bytes": 100}]
    box = [{"date": ["2025-01-01", "2025-01-03"]}]
    found = rows("partitions", made(partitions=box, grain={"date": "daily"}, counts=counts))
    assert [row["rows"] for row in found] == [None, None]


def test_what_is_current_is_decided_by_the_publish_and_not_by_when_its_event_came() -> None:
    old = made(1, materialization_id="m9", sequence_number=3, published_ms=AT_MS + 90)
    new = made(2, materialization_id="m2", sequence_number=4, published_ms=AT_MS + 50)
    again = made(
        7, materialization_id="m9", sequence_number=3, published_ms=AT_MS + 90
    )  # the same, delivered a second time
    (row,) = rows("partitions", old, new, again)
    assert (row["materialization_id"], row["first_published_at"]) == ("m2", AT_MS + 50)
    (row,) = rows("partitions", made(1, materialization_id="m9", published_ms=AT_MS + 9), made(2, published_ms=AT_MS + 8))
    assert row["materialization_id"] == "m9"


def test_quality_is_known_of_what_servo_publishes() -> None:
    assert rows("partitions", made())[0]["quality"] == "passed"
    assert rows("partitions", made(checks_failed=["unique(id)"]))[0]["quality"] == "warned"
    assert rows("partitions", made(source="elsewhere"))[0]["quality"] == "unknown"


@pytest.mark.parametrize(
    "more",
    [
        {"partitions": [{"date": ["2025-01-01", "2025-01-02"]}], "grain": None},
        {"partitions": [{"date": ["2025-01-01", "2025-01-02"]}]},
        {"partitions": [{"date": ["1000-01-01", "2025-01-01"]}], "grain": {"date": "daily"}},
        {"asset_id": "orders"},
        {"rows": 2**63},
        {"published_ms": -1},
        {"published_ms": 10**18},
        {"sequence_number": 2**64},
        {"attempt": "one"},
    ],
    ids=str,
)
def test_what_cannot_be_a_row_is_refused(more: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        shred(made(**more))


@pytest.mark.parametrize("ranges", [5, ["2025-01-01"], ["2025-01-01", "soon"], [[["a"]]], {"from": "2025-01-01"}])
def test_what_is_no_range_is_refused_before_a_reader_trips_over_it(ranges: Any) -> None:
    partitions = [{"date": ranges}]
    held = {"asset": "shop.daily", "asset_id": ASSET, "partitions": partitions, "who": "ann", "why": "wrong"}
    edge = {**EDGE, "to_partitions": partitions}
    events = [
        said(
            "execution.task_started.v1", {**BEGUN, "attempt": 1, "worker": "w", "started_ms": 1, "partitions": partitions}
        ),
        said("quality.partition_quarantined.v1", held),
        said("lineage.lineage_recorded.v1", {"run_id": "r", "task_id": TASK, "edges": [edge]}),
    ]
    for event in events:
        with pytest.raises(InvalidInput, match="is no range"):
            shred(event)


def test_an_event_that_is_not_known_is_set_aside() -> None:
    with pytest.raises(UnknownFormat):
        shred(said("execution.run_created.v2", {}))
    with pytest.raises(UnknownFormat):
        shred(said("audit.action_recorded.v1", {}))


# Checks


def test_a_check_of_one_partition_says_which() -> None:
    result = {
        "check": "unique(id)",
        "kind": "unique",
        "severity": "error",
        "passed": False,
        "failed_rows": 2,
        "total_rows": 9,
    }
    data = {
        **BEGUN,
        "check_id": "c",
        "materialization_id": "m",
        "partitions": [{}],
        "result": result,
        "action": "fail_task",
    }
    (row,) = rows("quality_results", said("quality.check_executed.v1", {**data, "grain": {}}))
    assert row["partition_id"] == partition_id(AssetId(ASSET), PartitionKey({}))
    assert (row["check_name"], row["passed"], row["failed_rows"], row["severity"]) == ("unique(id)", False, 2, "error")
    days = {"partitions": [{"date": ["2025-01-01", "2025-01-03"]}], "grain": {"date": "daily"}}
    assert rows("quality_results", said("quality.check_executed.v1", {**data, **days}))[0]["partition_id"] == ""
    assert rows("quality_results", said("quality.check_executed.v1", data))[0]["partition_id"] == ""


# Lineage

EDGE = {"from": "shop.raw", "from_id": encode_ulid(5), "kind": "whole", "to": "shop.daily", "to_id": ASSET}


def test_an_edge_is_seen_first_and_last_and_each_time() -> None:
    events = [
        said("lineage.lineage_recorded.v1", {"run_id": f"r{at}", "task_id": TASK, "edges": [EDGE]}, at) for at in (3, 1, 2)
    ]
    (edge,) = rows("lineage_edges", *events)
    assert (edge["first_run_id"], edge["last_run_id"], edge["source_kind"]) == ("r1", "r3", "asset")
    assert (edge["removed"], edge["recorded_by"]) == (None, "servo")
    assert {row["run_id"] for row in rows("lineage_executions", *events, events[0])} == {"r1", "r2", "r3"}


def test_what_a_run_has_seen_is_known_as_seen_whatever_people_take_back() -> None:
    edge = {"from": "a", "kind": "whole", "to": "b", "columns": {"mappings": [], "coverage": 0.5, "unmapped": ["c"]}}
    edge_id = edges_of([edge])[0].identity()
    seen = said("lineage.lineage_recorded.v1", {"edges": [edge], "run_id": "r1"}, 1)
    gone = said("lineage.lineage_removed.v1", {"edge_ids": [edge_id], "who": "bo"}, 2, number=1)
    (row,) = rows("lineage_edges", seen, gone)
    assert (row["removed"], row["seen_by"]) == (True, "servo")
    assert (row["column_coverage"], row["unmapped_columns"]) == (0.5, ["c"])
    by_hand = said("lineage.lineage_recorded.v1", {"edges": [edge], "method": "hand", "who": "ann"}, 1)
    (row,) = rows("lineage_edges", by_hand, gone)
    assert (row["removed"], row["seen_by"]) == (True, None)


def test_an_event_says_each_thing_once() -> None:
    twice = [{**EDGE, "from_snapshot": 1}, {**EDGE, "from_snapshot": 2}]
    event = said("lineage.lineage_recorded.v1", {"run_id": "r", "task_id": TASK, "edges": twice})
    assert [table.name for table, _ in shred(event)] == ["lineage_edges", "lineage_executions"]
    assert [row["source_snapshot_id"] for row in rows("lineage_executions", event)] == [1]


def test_an_edge_by_hand_stands_until_it_is_taken_back() -> None:
    by_hand = said("lineage.lineage_recorded.v1", {"edges": [EDGE], "method": "hand", "who": "ann", "why": "known"}, 1)
    (edge,) = rows("lineage_edges", by_hand)
    assert (edge["removed"], edge["owner"], edge["description"]) == (False, "ann", "known")
    assert not rows("lineage_executions", by_hand)
    gone = said("lineage.lineage_removed.v1", {"edge_ids": [edge["edge_id"]], "who": "bo"}, 2)
    (edge,) = rows("lineage_edges", by_hand, gone)
    assert (edge["removed"], edge["owner"], edge["source"]) == (True, "bo", "shop.raw")


# Assets and words


def deployed(at: int = 0, **more: Any) -> Event:
    definition = {"description": "Orders of a day", "owners": ["ann"], "tags": ["gold"], "inputs": [{"asset": "shop.raw"}]}
    data = {
        "asset_id": ASSET,
        "asset": "shop.dailyOrders2",
        "kind": "python",
        "deployment": "d",
        "project": "shop",
        "code_version": "v",
        "fingerprint": "f",
        "definition": definition,
    }
    return said("catalog.asset_deployed.v1", {**data, **more}, at)


def test_an_asset_that_is_gone_keeps_what_it_was() -> None:
    removed = said("catalog.asset_removed.v1", {"asset_id": ASSET, "asset": "shop.dailyOrders2", "deployment": "e"}, 5)
    (asset,) = rows("assets", deployed(1), removed)
    assert (asset["retired"], asset["description"], asset["namespace"], asset["inputs"]) == (
        True,
        "Orders of a day",
        "shop",
        ["shop.raw"],
    )
    (asset,) = rows("assets", deployed(1), removed, deployed(9))
    assert asset["retired"] is False


def test_a_definition_of_another_shape_is_refused() -> None:
    with pytest.raises(InvalidInput, match="definition"):
        shred(deployed(definition={"inputs": [{"asset": 5}]}))


def test_an_asset_is_found_by_its_words() -> None:
    found = {(row["field"], row["word"]) for row in rows("postings", deployed())}
    assert {("name", "dailyorders2"), ("name", "daily"), ("name", "orders"), ("name", "2"), ("name", "shop")} <= found
    assert {("tag", "gold"), ("owner", "ann"), ("description", "orders")} <= found
    threes = {(row["word"], row["trigram"]) for row in rows("trigrams", deployed())}
    assert {("gold", " go"), ("gold", "gol"), ("gold", "old"), ("gold", "ld ")} <= threes


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("shop.orders_daily", ["orders_daily", "shop", "orders", "daily"]),
        ("OrderLines2025", ["orderlines2025", "order", "lines", "orderlines", "2025"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("größeÄnderung", ["größeänderung", "größe", "änderung"]),
        ("x", ["x"]),
    ],
)
def test_a_name_is_split_where_its_case_changes_and_at_digits(name: str, words: Sequence[str]) -> None:
    assert words_of_name(name) == words


def test_texts_have_words_and_words_have_trigrams() -> None:
    assert words_of_text("The orders, the EUR; 7-day") == ["the", "orders", "eur", "7", "day"]
    assert trigrams("a") == [" a "]
    assert trigrams("ord") == [" or", "ord", "rd "]


# Commits


def committed(at: int = 0, number: int = 1, *, source: str = "servo", metadata: bool = True) -> Event:
    snapshot = {
        "snapshot_id": number,
        "parent_snapshot_id": None,
        "sequence_number": number,
        "schema_id": 0,
        "at_ms": AT_MS,
    }
    summary = {"added-records": "10", "total-records": "x"}
    if source == "servo":
        summary |= {"arco.asset-id": ASSET, "arco.asset": "shop.daily", "arco.run-id": RUN}
    current = {**snapshot, "operation": "append", "summary": summary}
    fields = [{"id": 1, "name": "order_id", "required": True, "type": "long"}]
    document = {
        "format_version": 2,
        "location": "s3://lake/x",
        "last_sequence_number": number,
        "current_schema_id": 0,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": fields}],
        "current": current,
        "added": [current],
    }
    data = {
        "table_uuid": TABLE,
        "kind": "table",
        "commit_key": f"k{number}",
        "commit_number": number,
        "metadata_location": f"{number}.json",
        "previous_metadata_location": None,
        "snapshot_id": number,
        "committed_ms": AT_MS + number,
        "source": source,
        "principal": "ann",
        "client": None,
        "metadata": document if metadata else None,
    }
    return said("iceberg.table_committed.v1", data, at, source="arco/receipts")


def test_a_commit_of_others_is_seen_beside_the_asset_that_made_the_table() -> None:
    events = [committed(9, 1), committed(1, 2, source="iceberg-rest")]
    (table,) = rows("iceberg_tables", *events)
    assert (table["commit_number"], table["asset"], table["external_sequence_number"]) == (2, "shop.daily", 2)
    assert table["first_commit_at"] == AT_MS + 1
    commits = {row["commit_key"]: row for row in rows("iceberg_commits", *events)}
    assert (commits["k1"]["source"], commits["k1"]["run_id"], commits["k1"]["added_rows"]) == ("servo", RUN, 10)
    assert (commits["k2"]["source"], commits["k2"]["run_id"]) == ("external", None)
    (column,) = rows("columns", *events)
    assert (column["name"], column["type"], column["required"]) == ("order_id", "long", True)


def on_main(event: Event, snapshot_id: int | None, *, added: bool, moved: bool | None) -> Event:
    """A commit that left this snapshot to be read on main."""
    metadata = event.data["metadata"]
    told = metadata | {"added": metadata["added"] if added else [], "moved": moved}
    return msgspec.structs.replace(event, data=event.data | {"snapshot_id": snapshot_id, "metadata": told})


def test_going_back_to_an_old_snapshot_is_seen_though_it_adds_none() -> None:
    gone_back = on_main(committed(2, 5, source="iceberg-rest"), 1, added=False, moved=True)
    (table,) = rows("iceberg_tables", committed(1, 4), gone_back)
    # It has no number of its own: everything up to the last one was there before, and what comes next was not.
    assert (table["external_sequence_number"], table["external_principal"]) == (6, "ann")


@pytest.mark.parametrize("moved", [False, None])
def test_what_others_write_to_a_branch_is_not_read_on_main(moved: bool | None) -> None:
    branch = on_main(committed(2, 5, source="iceberg-rest"), 4, added=True, moved=moved)
    (table,) = rows("iceberg_tables", committed(1, 4), branch)
    assert table["external_sequence_number"] is None
    commits = {row["commit_key"]: row for row in rows("iceberg_commits", branch)}
    assert (commits["k5"]["snapshot_id"], commits["k5"]["source"]) == (5, "external")


def test_every_kind_of_source_is_told_as_what_it_is() -> None:
    told = {kind: rows("iceberg_commits", committed(source=kind))[0]["source"] for kind in (*SourceKind, "of tomorrow")}
    assert told == {
        "iceberg-rest": "external",
        "servo": "servo",
        "register": "admin",
        "upkeep": "admin",
        "of tomorrow": "external",
    }


def test_commits_that_became_visible_together_say_so() -> None:
    alone = committed(1)
    together = msgspec.structs.replace(alone, data=alone.data | {"transaction": "tx", "transaction_tables": ["t", "u"]})
    (commit,) = rows("iceberg_commits", together)
    assert commit["transaction"] == "tx"
    (commit,) = rows("iceberg_commits", alone)
    assert commit["transaction"] is None


def test_a_commit_is_what_was_said_while_its_metadata_was_there() -> None:
    (commit,) = rows("iceberg_commits", committed(1, metadata=False), committed(2))
    assert commit["operation"] == "append"
    (table,) = rows("iceberg_tables", committed(2), committed(5, metadata=False))
    assert table["location"] == "s3://lake/x"


def test_columns_of_a_table_are_found_by_its_asset_or_by_the_table() -> None:
    words = {"order_id", "order", "id"}
    found = rows("postings", committed())
    assert {(row["word"], row["namespace"], row["subject_id"]) for row in found} == {(one, "shop", ASSET) for one in words}
    found = rows("postings", committed(source="iceberg-rest"))
    assert {(row["word"], row["namespace"], row["subject_id"]) for row in found} == {(one, "", TABLE) for one in words}


def test_a_report_is_kept_as_it_came() -> None:
    data = {"namespace": ["shop"], "table": "orders", "report_type": "scan-report", "report": {"snapshot-id": 7, "a": [1]}}
    (report,) = rows("metrics_reports", said("iceberg.metrics_reported.v1", data))
    assert (report["table_uuid"], report["table"], report["snapshot_id"]) == ("", "shop.orders", 7)
    assert msgspec.json.decode(report["report"]) == {"snapshot-id": 7, "a": [1]}


def test_every_table_belongs_to_a_head_that_is_folded() -> None:
    assert {table.name for head in FOLDED_FROM for table in tables_of(head)} == {table.name for table in TABLES}

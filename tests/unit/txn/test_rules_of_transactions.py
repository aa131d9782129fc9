"""Transactions, rule by rule: what decides, what counts, and what becomes of an attempt that somebody stands in the way of.

Each rule has a planted bug (`tests/simulation/mutants`) that takes it away and must fail here or in a scenario.
"""

import asyncio
import re
from typing import Any

import msgspec
import pytest

from arco.catalog.feed import Feed
from arco.catalog.idempotency import RequestKey
from arco.catalog.model import Levels
from arco.catalog.pointer import Pointers
from arco.catalog.side_by_side import side_by_side
from arco.catalog.timeline import timeline_of
from arco.catalog.transaction_records import Status
from arco.fold.receipt_events import ReceiptEvents
from arco.iceberg import requests
from arco.kernel.canonical_json import request_hash
from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import (
    ArcoError,
    BrokenInvariant,
    Conflict,
    CorruptObject,
    InvalidInput,
    KeyReused,
    NoSuchTable,
    OutcomeUnknown,
    RetryLater,
    UnknownFormat,
)
from arco.kernel.ids import new_uuid7
from arco.kernel.limits import COMMIT_LASTS_S_MAX, HISTORY_KNOWN_S, READBACK_ATTEMPTS_MAX, TRANSACTION_STALE_S
from arco.ledger import reading
from arco.ledger.iceberg_events import TableCommitted
from arco.ledger.receipts import Source
from arco.storage.keys import Domain
from arco.storage.port import Always
from arco.txn.transactions import Transactions
from unit.catalog.ground import METADATA, NAMESPACE, POINTER, RECEIPT, SCOPE, Ground, Server, story

RECORD = "/iceberg_transactions/"


class Keys:
    """Keys of one test, each later than the one before."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._entropy = SeededEntropy("keys")

    def next(self) -> str:
        self._ground.clock.at_ms += 1
        return new_uuid7(self._ground.clock, self._entropy)


def change(table: str, label: str, *requirements: dict[str, Any], namespace: Levels = NAMESPACE) -> dict[str, Any]:
    return {
        "identifier": {"namespace": list(namespace), "name": table},
        "requirements": list(requirements),
        "updates": [{"action": "set-properties", "updates": {"last": label}}],
    }


NEVER = {"type": "assert-current-schema-id", "current-schema-id": 77}


async def transact(server: Server, key: str, *changes: dict[str, Any], tables_max: int = 10) -> None:
    """One transaction through one server, by an instance of its own: nothing of it is remembered from one to the next."""
    asked = RequestKey(key, "commitTransaction", request_hash(list(changes)))
    parsed = [requests.parse_commit_table(one) for one in changes]
    await Transactions(server.catalog, tables_max).commit(parsed, asked, Source())


def marks(label: str, *tables: str) -> list[dict[str, Any]]:
    return [change(table, label) for table in tables]


async def labels(server: Server, *tables: str) -> list[str | None]:
    return [(await server.properties(table)).get("last") for table in tables]


async def ground_of(*tables: str) -> tuple[Ground, Server, Server, Keys]:
    ground = Ground()
    one, two = ground.server(), ground.server()
    await one.found(*tables)
    return ground, one, two, Keys(ground)


@story
async def test_all_tables_change_at_once_and_the_pointers_are_plain_again_after():
    ground, one, two, keys = await ground_of("a", "b")
    await transact(one, keys.next(), *marks("x", "a", "b"))
    assert await labels(two, "a", "b") == ["x", "x"]
    await one.settle()
    found = await ground.audit()
    assert not found.gaps
    assert [pointer.pending for pointer in found.pointers.values()] == [None, None]
    assert {number for commits in found.commits.values() for number in commits} == {0, 1}


@story
async def test_the_history_of_a_table_names_the_transactions_of_its_commits():
    _, one, _, keys = await ground_of("a", "b")
    key = keys.next()
    await transact(one, key, *marks("x", "a", "b"))
    await one.commit("a", "alone")
    await one.settle()
    told, _ = await timeline_of(one.catalog, (NAMESPACE, "a"))
    commits = [happening.facts for happening in told if happening.what == "committed"]
    assert [facts.get("transaction") for facts in commits] == [None, key, None]


@story
async def test_receipts_of_one_transaction_name_it():
    ground, one, _, keys = await ground_of("a", "b")
    key = keys.next()
    await transact(one, key, *marks("x", "a", "b"))
    await one.settle()
    receipts = [msgspec.json.decode(data) for name, data in (await ground.audit()).objects.items() if RECEIPT in name]
    assert sorted(one["commit"].get("transaction", "") for one in receipts) == ["", "", key, key]


@story
async def test_the_feed_of_events_shows_a_transaction_as_one():
    """Each of its commits says which tables changed with it, so that whoever follows the feed knows when all were seen."""
    ground, one, _, keys = await ground_of("a", "b", "c")
    key = keys.next()
    await transact(one, key, *marks("x", "a", "b"))
    await one.commit("c", "alone")
    await one.settle()
    receipts = sorted(name for name in (await ground.audit()).objects if RECEIPT in name)
    feed = ReceiptEvents(ground.store, SCOPE, one.ws.files.find, ground.clock, SeededEntropy("feed"))
    await feed.append(receipts)
    told = [TableCommitted.of(event) for event in await reading.events(ground.store, SCOPE, Domain.ICEBERG)]
    together = {(await one.load(name)).uuid for name in ("a", "b")}
    parts = [commit for commit in told if commit.transaction == key]
    assert {commit.table_uuid for commit in parts} == together
    assert [set(commit.transaction_tables or ()) for commit in parts] == [together, together]
    others = [commit for commit in told if commit.transaction is None]
    assert (len(others), {commit.transaction_tables for commit in others}) == (4, {None})


@story
async def test_a_table_that_took_part_unchanged_holds_up_nobody_who_follows_the_feed():
    ground, one, _, keys = await ground_of("a", "b")
    key = keys.next()
    await transact(one, key, change("a", "x"), change("b", "") | {"updates": []})
    await one.commit("a", "after")
    await one.settle()
    # Nor does its pointer, which nobody has to ask: here nobody could.
    unchanged = one.ws.pointers.key((await one.load("b")).uuid)
    whole = ground.store._objects[unchanged].data
    await ground.store.put(unchanged, b"{nope", Always())
    followed = [event for page in await pages_of(Feed(ground.server().ws)) for event in page.events]
    await ground.store.put(unchanged, whole, Always())
    changed = (await one.load("a")).uuid
    told = [event["operation"] for event in followed if event["operation"]["operation-type"] == "update-table"]
    assert [operation["table-uuid"] for operation in told] == [changed, changed]
    receipts = sorted(name for name in (await ground.audit()).objects if RECEIPT in name)
    feed = ReceiptEvents(ground.store, SCOPE, one.ws.files.find, ground.clock, SeededEntropy("feed"))
    commits = [TableCommitted.of(event) for _, event in await feed.events(receipts)]
    assert {commit.transaction_tables for commit in commits if commit.transaction} == {(changed,)}


async def pages_of(feed: Feed) -> list[Any]:
    """Everything that the feed tells now."""
    await feed.refresh()
    pages: list[Any] = []
    while (page := await feed.page(len(pages) + 1)) is not None:
        pages.append(page)
    return pages


@story
async def test_rule_c6_a_file_that_upkeep_took_from_a_dead_attempt_is_no_refusal():
    """A server that has not heard of another's commit computes the same file on the same old base, and finds it in its place."""
    ground, one, two, keys = await ground_of("a", "b")
    dead, key = ground.server(), keys.next()
    uuid = (await one.load("a")).uuid
    file = f"a-{uuid}/metadata/00001-"
    pointer = dead.line.delay("put", POINTER)
    await pointer.holds(transact(dead, key, *marks("x", "a", "b")))
    dead.line.cut()
    (left,) = [name for name in ground.store._objects if file in name]
    await two.commit("a", "meanwhile")
    ground.clock.at_ms += round(TRANSACTION_STALE_S * 1000) + 1
    one.line.after("put", file, lambda: ground.store.delete(left))
    with pytest.raises(RetryLater):
        await transact(one, key, *marks("x", "a", "b"))
    assert one.line.used_up
    await transact(one, key, *marks("x", "a", "b"))
    assert await labels(two, "a", "b") == ["x", "x"]


@story
async def test_a_commit_whose_record_is_gone_is_told_without_the_others():
    ground, one, _, keys = await ground_of("a", "b")
    key = keys.next()
    await transact(one, key, *marks("x", "a", "b"))
    await one.settle()
    await ground.store.delete(one.ws.records.key(key))
    receipts = sorted(name for name in (await ground.audit()).objects if RECEIPT in name)
    await ReceiptEvents(ground.store, SCOPE, one.ws.files.find, ground.clock, SeededEntropy("feed")).append(receipts)
    told = [TableCommitted.of(event) for event in await reading.events(ground.store, SCOPE, Domain.ICEBERG)]
    assert [commit.transaction_tables for commit in told if commit.transaction == key] == [None, None]


@story
async def test_a_commit_whose_record_cannot_be_read_is_told_without_the_others():
    """Also where bytes of it are no text: nobody who folds commits is stopped by it."""
    ground, one, _, keys = await ground_of("a", "b")
    key = keys.next()
    await transact(one, key, *marks("x", "a", "b"))
    await one.settle()
    record = one.ws.records.key(key)
    whole = ground.store._objects[record].data
    receipts = sorted(name for name in (await ground.audit()).objects if RECEIPT in name)
    for damaged in (whole[:-9], whole.replace(b'"table_uuid":"', b'"table_uuid":"\xff')):
        await ground.store.put(record, damaged, Always())
        feed = ReceiptEvents(ground.store, SCOPE, one.ws.files.find, ground.clock, SeededEntropy("feed"))
        commits = [TableCommitted.of(event) for _, event in await feed.events(receipts)]
        assert [commit.transaction_tables for commit in commits if commit.transaction == key] == [None, None]


@story
async def test_several_changes_of_one_table_are_one_version_and_apply_in_order():
    _, one, _, keys = await ground_of("a")
    first = {"updates": [{"action": "set-properties", "updates": {"p": "1", "q": "2"}}], "requirements": []}
    second = {
        "updates": [{"action": "remove-properties", "removals": ["p"]}, *change("a", "y")["updates"]],
        "requirements": [],
    }
    identifier = {"identifier": {"namespace": list(NAMESPACE), "name": "a"}}
    await transact(one, keys.next(), identifier | first, identifier | second)
    _, base = await one.catalog.tables.load(NAMESPACE, "a")
    assert (base.pointer.value.commit_number, base.metadata.properties) == (1, {"q": "2", "last": "y"})
    assert len(base.metadata.document["metadata-log"]) == 1


@story
async def test_one_requirement_that_fails_leaves_everything_as_it_was_and_a_retry_hears_the_same():
    ground, one, two, keys = await ground_of("a", "b")
    key, body = keys.next(), [change("a", "x"), change("b", "x", NEVER)]
    with pytest.raises(Conflict, match="Requirement failed: current schema"):
        await transact(one, key, *body)
    before = len(two.line.asked)
    with pytest.raises(Conflict, match="Requirement failed: current schema"):
        await transact(two, key, *body)
    assert await labels(two, "a", "b") == [None, None]
    assert not [asked for asked in two.line.asked[before:] if asked.startswith("put") and POINTER in asked]
    await transact(one, keys.next(), *marks("y", "a", "b"))
    assert await labels(two, "a", "b") == ["y", "y"]
    assert not (await ground.audit()).gaps


@story
async def test_a_refusal_stands_though_what_was_required_comes_true():
    """It is in the record before it is told (C6): its client has deleted its files, and a retry must not commit them."""
    _, one, two, keys = await ground_of("a", "b")
    wants_two = {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 2}
    key, body = keys.next(), [change("a", "x"), change("b", "x", wants_two)]
    with pytest.raises(Conflict, match="last assigned field id changed"):
        await transact(one, key, *body)
    await two.commit("b", "rival", {"requirements": [], "updates": _new_column()})
    with pytest.raises(Conflict, match="last assigned field id changed"):
        await transact(two, key, *body)
    assert await labels(two, "a") == [None]


@story
async def test_a_table_that_nothing_changes_takes_part_all_the_same():
    """Its requirement must hold at the moment of the decision, not only when it was looked at."""
    _, one, two, keys = await ground_of("a", "b")
    guard = {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 1}
    only_required = change("b", "x", guard) | {"updates": []}

    async def rival() -> None:
        await two.commit("b", "rival", {"requirements": [], "updates": _new_column()})

    one.line.before("put", POINTER, rival, skip=1)
    with pytest.raises(Conflict, match="last assigned field id changed"):
        await transact(one, keys.next(), change("a", "x"), only_required)
    assert await labels(two, "a") == [None]
    await transact(
        one, keys.next(), change("a", "y"), change("b", "x", guard | {"last-assigned-field-id": 2}) | {"updates": []}
    )
    _, base = await two.catalog.tables.load(NAMESPACE, "b")
    assert (await labels(two, "a"), base.pointer.value.commit_number) == (["y"], 1)


def _new_column() -> list[dict[str, Any]]:
    fields = [{"id": number, "name": f"c{number}", "type": "long", "required": False} for number in (1, 2)]
    fields[0]["name"] = "a"
    return [
        {"action": "add-schema", "schema": {"type": "struct", "fields": fields}},
        {"action": "set-current-schema", "schema-id": -1},
    ]


# What is asked for wrongly


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ([], InvalidInput, "without table changes"),
        (marks("x", "a", "b", "c"), InvalidInput, "over 3 tables, more than 2"),
        (marks("x", "a", "missing"), NoSuchTable, "Table does not exist: db.missing"),
        ([change("a", "x", namespace=("no",))], NoSuchTable, "Table does not exist: no.a"),
    ],
)
def test_bad_input_is_refused_and_changes_nothing(changes: list[dict[str, Any]], error: type[ArcoError], says: str):
    async def tell() -> None:
        _, one, two, keys = await ground_of("a", "b", "c")
        with pytest.raises(error, match=says):
            await transact(one, keys.next(), *changes, tables_max=2)
        assert await labels(two, "a", "b", "c") == [None, None, None]

    asyncio.run(tell())


@story
async def test_what_was_committed_is_heard_also_where_fewer_tables_are_allowed():
    """Its client would delete files that tables name. One that was not is refused, and stays so wherever it is sent."""
    ground, one, two, keys = await ground_of("a", "b", "c")
    done, refused, changes = keys.next(), keys.next(), marks("x", "a", "b", "c")
    await transact(one, done, *changes, tables_max=3)
    await transact(two, done, *changes, tables_max=2)
    for limit in (2, 3):
        with pytest.raises(InvalidInput, match="over 3 tables, more than 2"):
            await transact(ground.server(), refused, *marks("y", "a", "b", "c"), tables_max=limit)
    assert await labels(two, "a", "b", "c") == ["x", "x", "x"]


@story
async def test_more_tables_than_any_server_takes_leave_no_record():
    _, one, two, keys = await ground_of("a")
    key = keys.next()
    with pytest.raises(InvalidInput, match="over 101 tables, more than 100"):
        await transact(one, key, *marks("x", *(f"t{number}" for number in range(101))), tables_max=101)
    assert await two.ws.records.read(key) is None


@story
async def test_a_view_is_refused_with_the_reason():
    _, one, _, keys = await ground_of("a")
    version = {
        "version-id": 1,
        "timestamp-ms": 1,
        "schema-id": 0,
        "summary": {},
        "default-namespace": ["db"],
        "representations": [{"type": "sql", "sql": "select 1", "dialect": "spark"}],
    }
    schema = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "a", "type": "long", "required": False}]}
    wanted = requests.parse_create_view({"name": "v", "schema": schema, "view-version": version, "properties": {}})
    await one.catalog.views.create(NAMESPACE, wanted, RequestKey("v", "createView", "0", durable=False), Source())
    with pytest.raises(InvalidInput, match=r"db\.v is a view"):
        await transact(one, keys.next(), *marks("x", "a", "v"))


@story
async def test_one_key_is_one_request():
    _, one, two, keys = await ground_of("a", "b")
    key = keys.next()
    await transact(one, key, *marks("x", "a", "b"))
    await transact(two, key, *marks("x", "a", "b"))
    with pytest.raises(KeyReused):
        await transact(two, key, *marks("y", "a", "b"))
    _, base = await two.catalog.tables.load(NAMESPACE, "a")
    assert base.pointer.value.commit_number == 1


# T1, T2: what counts


async def undecided(server: Server, key: str, *tables: str) -> "asyncio.Future[Any]":
    """A server that dies with everything prepared and its decision not sent."""
    decision = server.line.delay("put", RECORD, skip=1)
    working = await decision.holds(transact(server, key, *marks("x", *tables)))
    server.line.cut()
    return working


@story
async def test_rule_t1_what_is_prepared_counts_from_the_decision_on_and_not_before():
    _, one, two, keys = await ground_of("a", "b")
    decision = one.line.delay("put", RECORD, skip=1)
    await decision.holds(transact(one, keys.next(), *marks("x", "a", "b")))
    assert await labels(two, "a", "b") == [None, None]
    one.line.cut()
    await decision.land()
    assert await labels(two, "a", "b") == ["x", "x"]


@story
async def test_rule_t1_a_decided_change_is_finished_by_the_next_writer_with_its_receipt():
    ground, one, two, keys = await ground_of("a", "b")
    decision = one.line.delay("put", RECORD, skip=1)
    await decision.holds(transact(one, keys.next(), *marks("x", "a", "b")))
    one.line.cut()
    await decision.land()
    await two.commit("a", "after")
    await two.settle()
    found = await ground.audit()
    assert not found.gaps
    assert sorted(len(commits) for commits in found.commits.values()) == [2, 3]


@story
async def test_rule_t2_an_attempt_that_was_sent_back_cannot_decide():
    ground, one, two, keys = await ground_of("a", "b")
    key = keys.next()
    decision = one.line.delay("put", RECORD, skip=1)
    working = await decision.holds(transact(one, key, *marks("x", "a", "b")))
    ground.clock.at_ms += round(TRANSACTION_STALE_S * 1000) + 1
    await two.commit("a", "in between")
    assert await labels(two, "a", "b") == ["in between", None]
    await decision.answer()
    await working
    assert await labels(two, "a", "b") == ["x", "x"]
    await one.settle()
    assert not (await ground.audit()).gaps
    record = await two.ws.records.read(key)
    assert record is not None
    assert (record.value.status, record.value.attempt) == (Status.COMMITTED, 2)


# T3: every writer resolves what is pending


@story
async def test_rule_t3_a_single_commit_waits_for_a_transaction_and_says_so():
    _, one, two, keys = await ground_of("a", "b")
    await undecided(one, keys.next(), "a", "b")
    two.ws.clock.at_ms -= round(TRANSACTION_STALE_S * 1000)  # type: ignore[attr-defined] - and never becomes stale
    with pytest.raises(OutcomeUnknown, match="is being committed on this table"):
        await two.commit("a", "single")
    assert await labels(two, "a", "b") == [None, None]


@story
async def test_rule_t3_a_stale_transaction_is_sent_back_by_whoever_it_stands_in_the_way_of():
    ground, one, two, keys = await ground_of("a", "b")
    await undecided(one, keys.next(), "a", "b")
    ground.clock.at_ms += round(TRANSACTION_STALE_S * 1000) + 1
    await two.drop("a", "drop")
    await two.commit("b", "single")
    with pytest.raises(NoSuchTable):
        await two.load("a")
    assert await labels(two, "b") == ["single"]


@story
async def test_rule_t3_nobody_swings_a_pointer_whose_transaction_is_undecided():
    _, one, two, keys = await ground_of("a")
    uuid = (await two.load("a")).uuid
    await undecided(one, keys.next(), "a")
    pointer = await two.ws.pointers.read(uuid)
    assert pointer is not None
    assert pointer.value.pending is not None
    with pytest.raises(BrokenInvariant, match="not decided"):
        await two.ws.pointers.touch(pointer)


# T4, T8: attempts


@story
async def test_rule_t4_a_retry_takes_the_record_over_where_its_server_died():
    ground, one, two, keys = await ground_of("a", "b")
    key = keys.next()
    await undecided(one, key, "a", "b")
    with pytest.raises(OutcomeUnknown, match="still being worked on"):
        await transact(two, key, *marks("x", "a", "b"))
    ground.clock.at_ms += round(TRANSACTION_STALE_S * 1000) + 1
    await transact(two, key, *marks("x", "a", "b"))
    await two.settle()
    found = await ground.audit()
    assert not found.gaps
    assert [len(commits) for commits in found.commits.values()] == [2, 2]


@story
async def test_rule_t4_a_retry_that_read_what_was_left_before_it_took_the_record_over_goes_on():
    ground, one, two, keys = await ground_of("a", "b")
    key = keys.next()
    await undecided(one, key, "a", "b")
    ground.clock.at_ms += round(TRANSACTION_STALE_S * 1000) + 1
    takeover, both_staged = two.line.delay("put", RECORD, skip=1), two.line.reached("put", METADATA, skip=1)
    working = await takeover.holds(transact(two, key, *marks("x", "a", "b")))
    await both_staged.wait()
    await takeover.answer()
    await working
    assert await labels(two, "a", "b") == ["x", "x"]


@story
async def test_rule_t4_an_attempt_stops_where_it_meets_a_later_one_of_its_own():
    ground, one, two, keys = await ground_of("a", "b")
    key = keys.next()
    prepare = one.line.delay("put", POINTER)
    earlier = await prepare.holds(transact(one, key, *marks("x", "a", "b")))
    ground.clock.at_ms += round(TRANSACTION_STALE_S * 1000) + 1
    decision = two.line.delay("put", RECORD, skip=2)
    later = await decision.holds(transact(two, key, *marks("x", "a", "b")))
    await prepare.answer()
    with pytest.raises(OutcomeUnknown, match="another attempt"):
        await earlier
    await decision.answer()
    await later
    assert await labels(two, "a", "b") == ["x", "x"]


@story
async def test_rule_t10_a_takeover_that_slept_until_its_record_may_be_gone_is_not_acted_upon():
    ground, one, two, keys = await ground_of("a", "b")
    key = keys.next()
    await undecided(one, key, "a", "b")
    ground.clock.at_ms += round(TRANSACTION_STALE_S * 1000) + 1
    takeover = two.line.delay("put", RECORD, skip=1)
    working = await takeover.holds(transact(two, key, *marks("x", "a", "b")))
    ground.clock.at_ms += HISTORY_KNOWN_S * 1000
    await takeover.answer()
    with pytest.raises(OutcomeUnknown, match="so long ago"):
        await working
    assert await labels(two, "a", "b") == [None, None]


@story
async def test_rule_t8_a_retry_after_midnight_finds_the_record():
    ground, one, two, keys = await ground_of("a", "b")
    key = keys.next()
    await transact(one, key, *marks("x", "a", "b"))
    ground.clock.at_ms += 24 * 3600 * 1000
    await transact(two, key, *marks("x", "a", "b"))
    _, base = await two.catalog.tables.load(NAMESPACE, "a")
    assert base.pointer.value.commit_number == 1


# T5: two that meet


@story
async def test_rule_t5_the_smaller_id_sends_the_larger_back_and_both_get_done():
    ground, one, two, keys = await ground_of("a", "b")
    small, large = keys.next(), keys.next()
    decision = one.line.delay("put", RECORD, skip=1)
    working = await decision.holds(transact(one, large, *marks("large", "a", "b")))
    await transact(two, small, *marks("small", "b", "a"))
    assert await labels(two, "a", "b") == ["small", "small"]
    await decision.answer()
    await working
    assert await labels(two, "a", "b") == ["large", "large"]
    await one.settle()
    assert not (await ground.audit()).gaps


@story
async def test_rule_t5_the_larger_id_waits_and_then_says_that_nothing_happened():
    _, one, two, keys = await ground_of("a", "b")
    small, large = keys.next(), keys.next()
    await undecided(one, small, "a", "b")
    two.ws.clock.at_ms -= round(TRANSACTION_STALE_S * 1000)  # type: ignore[attr-defined] - and the smaller never becomes stale
    with pytest.raises(RetryLater, match="was there first"):
        await transact(two, large, *marks("large", "a", "b"))
    record = await two.ws.records.read(large)
    assert record is not None
    assert record.value.status is Status.WAITING


# What is told


@story
async def test_an_attempt_that_was_taken_over_does_not_say_that_nothing_happened():
    """Its own steps came to nothing, and the attempt that took over may have done it all."""
    ground, one, two, keys = await ground_of("a", "b")
    key = keys.next()
    prepare = one.line.delay("put", POINTER)
    working = await prepare.holds(transact(one, key, *marks("x", "a", "b")))
    ground.clock.at_ms += round(TRANSACTION_STALE_S * 1000) + 1
    await transact(two, key, *marks("x", "a", "b"))
    one.line.fail("get", POINTER, times=20)
    await prepare.answer()
    with pytest.raises(OutcomeUnknown, match="another attempt of this transaction is at work"):
        await working
    assert await labels(two, "a", "b") == ["x", "x"]


@story
async def test_a_decision_that_nobody_answers_is_not_said_to_have_failed():
    _, one, two, keys = await ground_of("a", "b")
    for _ in range(READBACK_ATTEMPTS_MAX):
        one.line.lose("put", RECORD, skip=1)
    one.line.fail("get", RECORD, times=20)
    with pytest.raises(OutcomeUnknown, match="did not say whether it was decided"):
        await transact(one, keys.next(), *marks("x", "a", "b"))
    assert await labels(two, "a", "b") == ["x", "x"]


# What is remembered


@story
async def test_rule_t7_a_reader_that_saw_it_undecided_sees_the_decision():
    _, one, two, keys = await ground_of("a", "b")
    decision = one.line.delay("put", RECORD, skip=1)
    await decision.holds(transact(one, keys.next(), *marks("x", "a", "b")))
    assert await labels(two, "a", "b") == [None, None]
    await decision.land()
    assert await labels(two, "a") == ["x"]
    assert await labels(two, "b") == ["x"]


# Fail closed


VERIFY, UPGRADE = "run arco verify", "run pip install --upgrade arco"


@pytest.mark.parametrize(
    ("spoil", "error"),
    [
        (lambda data: data[:40], CorruptObject),
        (lambda data: b"", CorruptObject),
        (lambda data: b"[]", CorruptObject),
        (lambda data: data.replace(b'"format_version":1', b'"format_version":9'), UnknownFormat),
        (lambda data: data.replace(b'"arco.transaction"', b'"arco.pointer"'), UnknownFormat),
        (lambda data: data.replace(b'"status":"preparing"', b'"status":"maybe"'), CorruptObject),
        (lambda data: data.replace(b'"attempt":1', b'"attempt":0'), CorruptObject),
        (lambda data: data.replace(b'"attempt":1', b'"attempt":-1'), CorruptObject),
        (lambda data: data.replace(b'"format_version":1', b'"format_version":[1]'), CorruptObject),
        (lambda data: data.replace(b'"format_version":1', b'"format_version":true'), CorruptObject),
        (lambda data: data.replace(b'"generation":1', b'"generation":"1"'), CorruptObject),
        (lambda data: data.replace(b'"tx_id":"0', b'"tx_id":"x'), CorruptObject),
        (lambda data: re.sub(rb'"tx_id":"(.*?).",', rb'"tx_id":"\1f",', data), CorruptObject),
        (lambda data: data.replace(b'"status":"preparing"', b'"status":"committed"'), CorruptObject),
        (lambda data: data.replace(b'"status":"preparing"', b'"status":"aborted"'), CorruptObject),
        (lambda data: re.sub(rb'"tables":\["', rb'"tables":["../', data), CorruptObject),
    ],
)
def test_hazard_09_a_record_that_cannot_be_read_is_an_error_and_not_a_no(spoil: Any, error: type[ArcoError]):
    async def tell() -> None:
        ground, one, two, keys = await ground_of("a")
        key = keys.next()
        await undecided(one, key, "a")
        name = two.ws.records.key(key)
        found = await ground.store.get(name)
        assert found is not None
        assert spoil(found.data) != found.data
        await ground.store.put(name, spoil(found.data), Always())
        again = keys.next()
        for asked in (two.load("a"), two.commit("a", "single"), transact(two, again, *marks("y", "a"))):
            with pytest.raises(error) as told:
                await asked
            assert name in told.value.message, "which object it is"
            assert (VERIFY if error is CorruptObject else UPGRADE) in told.value.hint, "and the command to run"
        # It is repaired: nobody was told a no that outlives that.
        await ground.store.put(name, found.data, Always())
        ground.clock.at_ms += round(TRANSACTION_STALE_S * 1000) + 1
        await two.commit("a", "single")
        await transact(two, again, *marks("y", "a"))
        assert await labels(ground.server(), "a") == ["y"]

    asyncio.run(tell())


@story
async def test_a_committed_record_that_lost_what_it_decided_is_not_taken_for_a_no():
    ground, one, two, keys = await ground_of("a", "b")
    key = keys.next()
    decision = one.line.delay("put", RECORD, skip=1)
    await decision.holds(transact(one, key, *marks("x", "a", "b")))
    one.line.cut()
    await decision.land()
    name = two.ws.records.key(key)
    found = await ground.store.get(name)
    assert found is not None
    await ground.store.put(name, re.sub(rb'"parts":\[.*?\]', b'"parts":[]', found.data), Always())
    for asked in (two.load("a"), two.commit("b", "single")):
        with pytest.raises(CorruptObject, match="names no table"):
            await asked
    await ground.store.put(name, found.data, Always())
    assert await labels(two, "a", "b") == ["x", "x"]


@story
async def test_a_pointer_in_the_place_of_another_tables_is_not_taken_for_it():
    ground, one, _, keys = await ground_of("a", "b")
    here, there = [one.ws.pointers.key((await one.load(name)).uuid) for name in ("a", "b")]
    await one.settle()
    copied = await ground.store.get(there)
    assert copied is not None
    await ground.store.put(here, copied.data, Always())
    new = ground.server()
    for asked in (new.load("a"), new.commit("a", "single"), transact(new, keys.next(), *marks("y", "a"))):
        with pytest.raises(CorruptObject, match=r"is the pointer of .*another table") as told:
            await asked
        assert here in told.value.message
    assert await labels(new, "b") == [None]


@pytest.mark.parametrize(
    ("spoil", "error"),
    [
        (lambda data: data[:40], CorruptObject),
        (lambda data: data.replace(b'"format_version":2', b'"format_version":{}'), CorruptObject),
        (lambda data: data.replace(b'"format_version":2', b'"format_version":2.0'), CorruptObject),
        (lambda data: data.replace(b'"format_version":2', b'"format_version":3'), UnknownFormat),
        (lambda data: data.replace(b'"format_version":2', b'"format_version":1'), CorruptObject),
        (lambda data: data.replace(b'"tx_id":"0', b'"tx_id":"x'), CorruptObject),
        (lambda data: data.replace(b"iceberg_transactions/2", b"iceberg_transactions/3"), CorruptObject),
        (lambda data: data.replace(b'"prepared_ms":', b'"prepared":'), CorruptObject),
    ],
)
def test_a_pointer_whose_transaction_cannot_be_told_names_itself_and_the_command_to_run(spoil: Any, error: type[ArcoError]):
    async def tell() -> None:
        ground, one, two, keys = await ground_of("a")
        uuid = (await two.load("a")).uuid
        await undecided(one, keys.next(), "a")
        name = two.ws.pointers.object(uuid).key
        found = await ground.store.get(name)
        assert found is not None
        assert spoil(found.data) != found.data
        await ground.store.put(name, spoil(found.data), Always())
        for asked in (two.load("a"), two.commit("a", "single"), transact(two, keys.next(), *marks("y", "a"))):
            with pytest.raises(error) as told:
                await asked
            assert uuid in told.value.message
            assert (VERIFY if error is CorruptObject else UPGRADE) in told.value.hint

    asyncio.run(tell())


@story
async def test_a_pointer_of_an_unknown_version_is_refused():
    ground, one, two, _ = await ground_of("a")
    uuid = (await one.load("a")).uuid
    name = two.ws.pointers.object(uuid).key
    found = await ground.store.get(name)
    assert found is not None
    await ground.store.put(name, found.data.replace(b'"format_version":1', b'"format_version":3'), Always())
    with pytest.raises(UnknownFormat, match="format version 3"):
        await two.load("a")


@story
async def test_a_pointer_is_of_version_2_only_while_something_is_pending():
    ground, one, two, keys = await ground_of("a")
    uuid = (await two.load("a")).uuid
    name = two.ws.pointers.object(uuid).key

    async def version() -> Any:
        found = await ground.store.get(name)
        assert found is not None
        return msgspec.json.decode(found.data)["format_version"]

    assert await version() == 1
    await undecided(one, keys.next(), "a")
    assert await version() == 2
    ground.clock.at_ms += round(TRANSACTION_STALE_S * 1000) + 1
    await two.commit("a", "after")
    assert await version() == 1


# Costs


@pytest.mark.parametrize("tables", [2, 10])
def test_a_warm_transaction_takes_three_rounds_however_many_tables_take_part(tables: int):
    async def tell() -> None:
        names = [f"t{number}" for number in range(tables)]
        ground, one, _, keys = await ground_of(*names)
        for name in names:
            await one.load(name)
        transactions = Transactions(one.catalog)
        body = marks("x", *names)
        asked = RequestKey(keys.next(), "commitTransaction", request_hash(body))
        before = len(one.line.asked)
        await transactions.commit([requests.parse_commit_table(change) for change in body], asked, Source())
        made = one.line.asked[before:]
        # The record twice, the names once; a file, a receipt of the base (there already) and a pointer for every table.
        assert len(made) <= 3 + 4 * tables, made
        assert not ground.clock.pauses

    asyncio.run(tell())


# Several tables at one moment


@story
async def test_tables_are_read_side_by_side_at_one_moment():
    _, one, two, keys = await ground_of("a", "b")

    async def rival() -> None:
        await transact(one, keys.next(), *marks("x", "a", "b"))

    places = [(NAMESPACE, "a"), (NAMESPACE, "b")]
    await side_by_side(two.catalog, places)
    two.line.after("head", POINTER, rival)
    found = await side_by_side(two.catalog, places)
    assert [base.metadata.properties.get("last") for _, base in found] == ["x", "x"]


@story
async def test_a_decision_between_two_readings_of_a_cut_is_seen():
    """It changes what counts in both tables, and neither of their pointers."""
    _, one, two, keys = await ground_of("a", "b")
    decision = one.line.delay("put", RECORD, skip=1)
    await decision.holds(transact(one, keys.next(), *marks("x", "a", "b")))
    one.line.cut()
    two.line.after("get", RECORD, decision.land, skip=2)
    found = await side_by_side(two.catalog, [(NAMESPACE, "a"), (NAMESPACE, "b")])
    assert two.line.used_up
    assert [base.metadata.properties.get("last") for _, base in found] == ["x", "x"]


@story
async def test_tables_that_change_all_the_time_have_no_such_moment():
    _, one, two, keys = await ground_of("a", "b")
    places = [(NAMESPACE, "a"), (NAMESPACE, "b")]

    async def rival() -> None:
        await transact(one, keys.next(), *marks(keys.next(), "a", "b"))

    for _ in range(40):
        two.line.before("head", POINTER, rival)
    with pytest.raises(RetryLater, match="changed between any two looks"):
        await side_by_side(two.catalog, places)


def test_pointers_that_no_transaction_touches_ask_for_no_record():
    async def tell() -> None:
        _, _, two, _ = await ground_of("a")
        await two.load("a")
        assert not [asked for asked in two.line.asked if RECORD in asked]
        assert isinstance(two.ws.pointers, Pointers)

    asyncio.run(tell())


@story
async def test_a_name_that_changes_hands_while_its_parts_are_prepared_is_looked_up_again():
    _, one, two, keys = await ground_of("a", "b")
    await one.load("a")
    await one.load("b")

    async def rival() -> None:
        await two.rename("b", "old_b", "rename")
        await two.create("b", "create again")

    one.line.before("head", "/manifests/catalog.manifest.json", rival)
    await transact(one, keys.next(), *marks("x", "a", "b"))
    assert await labels(two, "a", "b", "old_b") == ["x", "x", None]


@story
async def test_a_hundred_tables_change_at_once_where_the_limit_says_so():
    names = [f"t{number}" for number in range(100)]
    ground, one, two, keys = await ground_of(*names)
    await transact(one, keys.next(), *marks("x", *names), tables_max=100)
    await one.settle()
    assert set(await labels(two, *names)) == {"x"}
    assert not (await ground.audit()).gaps


@story
async def test_a_transaction_that_slept_for_half_a_day_before_it_was_prepared_does_not_land():
    """Nothing named its files all that time: upkeep may have taken them."""
    ground, one, two, keys = await ground_of("a", "b")
    held = one.line.delay("put", METADATA)
    sleeping = await held.holds(transact(one, keys.next(), *marks("late", "a", "b")))
    ground.clock.at_ms += (COMMIT_LASTS_S_MAX + 1) * 1000
    await held.answer()
    with pytest.raises(RetryLater, match="half a day"):
        await sleeping
    assert await labels(two, "a", "b") == [None, None]
    await transact(two, keys.next(), *marks("next", "a", "b"))
    assert await labels(two, "a", "b") == ["next", "next"]

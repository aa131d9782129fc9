"""Tables that a transaction creates: the name is kept until the decision, and is the table's from it on (rule T6)."""

import asyncio
from typing import Any

import msgspec
import pytest

from arco.catalog.checkpoint import checkpoint
from arco.catalog.idempotency import RequestKey
from arco.catalog.manifest import Author
from arco.catalog.model import Format, Kind
from arco.catalog.namespaces import create_namespace, drop_namespace
from arco.catalog.operations import Create
from arco.iceberg import requests
from arco.kernel.canonical_json import request_hash
from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import (
    AlreadyExists,
    AskOperator,
    Conflict,
    InvalidInput,
    NoSuchNamespace,
    NoSuchTable,
    RetryLater,
)
from arco.kernel.ids import new_uuid4, new_uuid7
from arco.kernel.limits import TRANSACTION_STALE_S
from arco.ledger.receipts import Source
from arco.storage.keys import Slug
from arco.storage.port import Always
from arco.txn.transactions import Transactions
from unit.catalog.ground import FIELD, NAMESPACE, Ground, Server, commit_key, story
from unit.txn.test_rules_of_transactions import RECORD, change, ground_of, labels, marks, transact


def created(server: Server, name: str, *more: dict[str, Any], uuid: str = "") -> dict[str, Any]:
    """A change that makes a new table."""
    uuid = uuid or new_uuid4(SeededEntropy(name))
    updates = [
        {"action": "assign-uuid", "uuid": uuid},
        {"action": "set-location", "location": server.catalog.tables.own_location(Slug.from_name(name), uuid)},
        {"action": "add-schema", "schema": {"type": "struct", "fields": [FIELD]}},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        *more,
    ]
    return change(name, "", {"type": "assert-create"}) | {"updates": updates}


async def names_in(server: Server) -> list[str]:
    names = (await server.ws.tier1.current()).names
    return [entry.name for entry in names.inhabitants(NAMESPACE)]


async def undecided(server: Server, key: str) -> Any:
    """A server that dies with `new` reserved and `a` prepared, before its decision."""
    decision = server.line.delay("put", RECORD, skip=1)
    await decision.holds(transact(server, key, created(server, "new"), change("a", "x")))
    server.line.cut()
    return decision


@story
async def test_a_new_table_and_a_change_of_another_become_visible_together():
    ground, one, two, keys = await ground_of("a")
    await transact(one, keys.next(), created(one, "new"), change("new", "first"), change("a", "x"))
    assert await labels(two, "new", "a") == ["first", "x"]
    await one.settle()
    found = await ground.audit()
    assert (found.gaps, found.names.reserved, await names_in(two)) == ([], {}, ["a", "new"])


@story
async def test_rule_t6_nobody_sees_the_name_before_the_decision_and_everybody_after_it():
    ground, one, two, keys = await ground_of("a")
    decision = await undecided(one, keys.next())
    assert await names_in(two) == ["a"]
    with pytest.raises(NoSuchTable):
        await two.load("new")
    await decision.land()
    three = ground.server()
    assert await names_in(two) == ["a", "new"]
    assert await labels(three, "a") == ["x"]
    assert await names_in(three) == ["a", "new"]
    await two.commit("new", "after")
    await two.settle()
    assert not (await ground.audit()).gaps


@pytest.mark.parametrize("tables", [10, 50])
def test_the_requests_of_creations_grow_with_their_number_and_by_no_more(tables: int):
    async def tell() -> None:
        _, one, two, keys = await ground_of("a")
        await two.load("a")
        begun = len(one.line.asked)
        decision = one.line.delay("put", RECORD, skip=1)
        news = [created(one, f"n{number}") for number in range(tables)]
        creating = await decision.holds(transact(one, keys.next(), *news, tables_max=100))
        await two.load("a")
        before = len(two.line.asked)
        await two.load("a")
        assert len(two.line.asked) - before == 4, "a load of a table that takes no part asks for the record once"
        await decision.land()
        before = len(two.line.asked)
        await two.load("a")
        assert len(two.line.asked) - before <= 13, "and so does the first after the decision, which brings the names in"
        await decision.answer()
        await creating
        await one.settle()
        assert len(one.line.asked) - begun <= 12 + 8 * tables

    asyncio.run(tell())


@story
async def test_two_names_for_one_new_table_are_refused_and_nothing_is_made():
    _, one, two, keys = await ground_of("a")
    uuid = new_uuid4(SeededEntropy("both"))
    with pytest.raises(InvalidInput, match="are both created with the uuid"):
        await transact(one, keys.next(), created(one, "new", uuid=uuid), created(one, "other", uuid=uuid))
    assert await names_in(two) == ["a"]


@story
async def test_hazard_09_a_record_that_cannot_be_read_stops_its_own_name_and_no_other():
    for damaged in (b"{nope", b'{"format": "arco.transaction", "format_version": 7, "fields": {}}'):
        ground, one, two, keys = await ground_of("a", "b")
        place = RequestKey("elsewhere", "create", "0", durable=False)
        await create_namespace(one.ws, ("elsewhere",), {}, place, Author())
        key = keys.next()
        await undecided(one, key)
        await ground.store.put(one.ws.records.key(key), damaged, Always())
        assert await labels(two, "b") == [None]
        await two.commit("b", "goes on")
        assert (await two.ws.tier1.current()).names.members(("elsewhere",), Kind.TABLE) == ()
        for asked in (
            two.load("new"),
            two.commit("new", "new"),
            two.create("new", "create"),
            two.rename("b", "new", "rename"),
            names_in(two),
        ):
            with pytest.raises(AskOperator, match="iceberg_transactions"):
                await asked
        await two.create("another", "another")


@story
async def test_rule_t6_a_reserved_name_is_not_free_and_not_taken():
    _, one, two, keys = await ground_of("a", "b")
    await undecided(one, keys.next())
    with pytest.raises(RetryLater, match="is about to create"):
        await two.create("new", "create")
    with pytest.raises(RetryLater, match="is about to create"):
        await two.rename("b", "new", "rename")


@story
async def test_rule_t6_a_namespace_is_not_dropped_under_a_reserved_name():
    ground = Ground()
    one, two = ground.server(), ground.server()
    await one.found("a")
    await one.make_namespace("empty", "space")
    keys = iter(["0194200a-0000-7000-8000-000000000001"])
    decision = one.line.delay("put", RECORD, skip=1)
    there = created(one, "new") | {"identifier": {"namespace": ["empty"], "name": "new"}}
    await decision.holds(transact(one, next(keys), there, change("a", "x")))
    one.line.cut()
    with pytest.raises(RetryLater, match="is about to create"):
        await drop_namespace(two.ws, ("empty",), RequestKey("drop", "dropNamespace", "0", durable=False), Author())


@story
async def test_rule_t6_a_stale_reservation_is_released_and_the_transaction_hears_that_the_name_is_taken():
    ground, one, two, keys = await ground_of("a")
    key = keys.next()
    await undecided(one, key)
    ground.clock.at_ms += round(TRANSACTION_STALE_S * 1000) + 1
    await two.create("new", "create")
    three = ground.server()
    with pytest.raises(Conflict, match="table already exists"):
        await transact(three, key, created(one, "new"), change("a", "x"))
    assert await labels(two, "new", "a") == [None, None]
    assert (await ground.audit()).names.reserved == {}


@story
async def test_rule_t6_a_retry_gives_the_table_that_its_first_attempt_staged_the_name():
    ground, one, two, keys = await ground_of("a")
    key = keys.next()
    await undecided(one, key)
    ground.clock.at_ms += round(TRANSACTION_STALE_S * 1000) + 1
    await transact(two, key, created(one, "new"), change("a", "x"))
    assert await labels(two, "a") == ["x"]
    assert await names_in(ground.server()) == ["a", "new"]


@story
async def test_two_transactions_that_create_the_same_name_do_not_both():
    ground, one, two, keys = await ground_of("a", "b")
    small, large = keys.next(), keys.next()
    decision = one.line.delay("put", RECORD, skip=1)
    working = await decision.holds(transact(one, large, created(one, "new"), change("a", "large")))
    await transact(two, small, created(two, "new", uuid=new_uuid4(SeededEntropy("other"))), change("b", "small"))
    await decision.answer()
    with pytest.raises(Conflict, match="table already exists"):
        await working
    assert await labels(ground.server(), "a", "b") == [None, "small"]
    assert await names_in(two) == ["a", "b", "new"]


@story
async def test_one_requirement_that_fails_leaves_no_table():
    ground, one, two, keys = await ground_of("a")
    never = {"type": "assert-current-schema-id", "current-schema-id": 77}
    with pytest.raises(Conflict, match="current schema"):
        await transact(one, keys.next(), created(one, "new"), change("a", "x", never))
    assert await names_in(two) == ["a"]
    await two.create("new", "create")
    assert (await ground.audit()).names.reserved == {}


@story
async def test_what_is_required_beside_the_creation_must_hold_of_a_table_that_is_not_there():
    _, one, two, keys = await ground_of("a")
    never = {"type": "assert-current-schema-id", "current-schema-id": 0}
    no_branch = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None}
    plain = created(one, "new")
    for name, requirement in (("refused", never), ("made", no_branch)):
        wanted = created(one, name) | {"requirements": [*plain["requirements"], requirement]}
        asked = created(one, f"{name} alone") | {"requirements": wanted["requirements"]}
        alone = {part: asked[part] for part in ("requirements", "updates")}
        works = (
            transact(one, keys.next(), wanted, change("a", name)),
            one.catalog.staging.create_by_commit(
                NAMESPACE, f"{name} alone", requests.parse_commit_table(alone), commit_key(keys.next(), alone), Source()
            ),
        )
        for work in works:
            if requirement is never:
                with pytest.raises(Conflict, match="Requirement failed: table does not exist"):
                    await work
            else:
                await work
    assert await names_in(two) == ["a", "made", "made alone"]


@story
async def test_a_name_that_is_taken_is_a_requirement_that_fails():
    _, one, two, keys = await ground_of("a", "b")
    with pytest.raises(Conflict, match="Requirement failed: table already exists"):
        await transact(one, keys.next(), created(one, "a"), *marks("x", "b"))
    assert await labels(two, "b") == [None]


@story
async def test_a_creation_says_its_identity_lies_in_its_place_and_in_a_namespace_that_exists():
    _, one, _, keys = await ground_of("a")
    without = created(one, "new")
    without["updates"] = without["updates"][1:]
    with pytest.raises(InvalidInput, match="assigns it no uuid"):
        await transact(one, keys.next(), without)
    elsewhere = created(one, "new", {"action": "set-location", "location": "file:///elsewhere"})
    with pytest.raises(InvalidInput, match="location"):
        await transact(one, keys.next(), elsewhere)
    with pytest.raises(NoSuchNamespace):
        await transact(one, keys.next(), created(one, "new") | {"identifier": {"namespace": ["no"], "name": "new"}})


@story
async def test_a_name_that_a_table_of_another_format_has_is_taken_as_it_is_for_a_commit_of_one_table():
    _, one, two, keys = await ground_of("a")
    uuid = new_uuid4(SeededEntropy("delta"))
    entry = msgspec.structs.replace(
        one.catalog.tables.new_entry(uuid, NAMESPACE, "new", "file:///elsewhere/new", 1), format=Format.DELTA
    )
    await one.ws.committer.submit(Create(key_hash="delta", entry=entry, minted_ms=one.ws.clock.now_ms()), since=0)
    wanted = created(two, "new")
    with pytest.raises(Conflict, match="Requirement failed: table already exists"):
        await transact(two, keys.next(), wanted, change("a", "x"))
    alone = {part: wanted[part] for part in ("requirements", "updates")}
    with pytest.raises(Conflict, match="Requirement failed: table already exists"):
        await two.catalog.staging.create_by_commit(
            NAMESPACE, "new", requests.parse_commit_table(alone), commit_key(keys.next(), alone), Source()
        )
    with pytest.raises(NoSuchTable):
        await transact(two, keys.next(), change("new", "x"))


def unkeyed(ground: Ground, body: Any, entropy: str) -> RequestKey:
    """The key that the server makes for a request without one: another each time that it is sent."""
    return RequestKey(new_uuid7(ground.clock, SeededEntropy(entropy)), "any", request_hash(body), durable=False)


@story
async def test_who_sent_no_key_and_gave_way_is_told_to_stage_the_new_table_again():
    """503, "send the same again", could not succeed: another request may not adopt what the first one began (rule N5)."""
    ground, one, two, keys = await ground_of("a")
    await two.load("a")
    await undecided(one, keys.next())
    ground.clock.at_ms += 1
    body = [created(two, "other"), change("a", "y")]
    wanted = [requests.parse_commit_table(one) for one in body]
    with pytest.raises(Conflict, match="nothing was done") as told:
        await Transactions(two.catalog).commit(wanted, unkeyed(ground, body, "first"), Source())
    assert told.value.hint == "stage the table again, and send its new assign-uuid"
    ground.clock.at_ms += round(TRANSACTION_STALE_S * 1000) + 1
    with pytest.raises(Conflict, match="has begun to create a table with this identity") as told:
        await Transactions(two.catalog).commit(wanted, unkeyed(ground, body, "second"), Source())
    assert told.value.hint == "stage the table again, and send its new assign-uuid"
    anew = [created(two, "other", uuid=new_uuid4(SeededEntropy("staged again"))), change("a", "y")]
    await transact(two, keys.next(), *anew)
    assert await labels(two, "other", "a") == [None, "y"]


@story
async def test_who_sent_a_key_and_gave_way_may_send_the_same_again():
    ground, one, two, keys = await ground_of("a")
    await two.load("a")
    await undecided(one, keys.next())
    key, body = keys.next(), [created(two, "other"), change("a", "y")]
    with pytest.raises(RetryLater):
        await transact(two, key, *body)
    ground.clock.at_ms += round(TRANSACTION_STALE_S * 1000) + 1
    await transact(two, key, *body)
    assert await labels(two, "other", "a") == [None, "y"]


@story
async def test_who_gave_way_before_anything_of_a_new_table_was_written_may_send_the_same_again():
    ground, one, two, keys = await ground_of("a")
    await undecided(one, keys.next())
    ground.clock.at_ms += 1
    body = [created(two, "other"), change("a", "y")]
    wanted = [requests.parse_commit_table(one) for one in body]
    with pytest.raises(RetryLater):
        await Transactions(two.catalog).commit(wanted, unkeyed(ground, body, "first"), Source())
    ground.clock.at_ms += round(TRANSACTION_STALE_S * 1000) + 1
    await Transactions(two.catalog).commit(wanted, unkeyed(ground, body, "second"), Source())
    assert await labels(two, "other", "a") == [None, "y"]


@story
async def test_a_creation_alone_that_has_no_key_is_told_to_stage_its_table_again_where_the_name_is_kept():
    ground, one, two, keys = await ground_of("a")
    await undecided(one, keys.next())
    body = created(two, "new", uuid=new_uuid4(SeededEntropy("alone")))
    wanted, create = requests.parse_commit_table(body), two.catalog.staging.create_by_commit
    with pytest.raises(Conflict, match="is about to create") as told:
        await create(NAMESPACE, "new", wanted, unkeyed(ground, body, "first"), Source())
    assert told.value.hint == "stage the table again, and send its new assign-uuid"


@story
async def test_a_reservation_survives_a_checkpoint():
    ground, one, two, keys = await ground_of("a")
    decision = await undecided(one, keys.next())
    await two.ws.tier1.current()
    await checkpoint(two.ws.tier1, ground.clock, SeededEntropy("checkpoint"))
    await decision.land()
    assert await names_in(ground.server()) == ["a", "new"]


@story
async def test_a_table_that_was_created_by_a_transaction_is_like_any_other():
    ground, one, two, keys = await ground_of("a")
    await transact(one, keys.next(), created(one, "new"), change("a", "x"))
    await two.commit("new", "commit")
    await two.rename("new", "newer", "rename")
    await two.drop("newer", "drop")
    with pytest.raises(NoSuchTable):
        await one.load("newer")
    dropped = await two.dropped("newer")
    await two.undrop(dropped, "newer", "undrop")
    with pytest.raises(AlreadyExists):
        await one.create("newer", "create")
    await two.settle()
    assert not (await ground.audit()).gaps


@story
async def test_rule_t6_an_identity_that_a_transaction_keeps_gets_no_other_name():
    """Two names for one identity would be two histories of the same files."""
    _, one, two, keys = await ground_of("a", "b")
    uuid = new_uuid4(SeededEntropy("new"))
    await undecided(one, keys.next())
    await two.ws.tier1.current()
    entry = two.catalog.tables.new_entry(uuid, NAMESPACE, "other", "s3://lake/other", 0)
    with pytest.raises(RetryLater, match="is about to create"):
        await two.ws.committer.submit(Create(key_hash="other", entry=entry, minted_ms=0), since=0)
    again = created(two, "other", uuid=uuid)
    with pytest.raises((RetryLater, Conflict)):
        await transact(two, keys.next(), again)
    assert await names_in(two) == ["a", "b"]

"""Transactions that nobody finished, records that nobody needs, and tables whose last receipt is missing."""

import asyncio
import json

import pytest
from msgspec.structs import replace

from arco.catalog.transaction_records import Status
from arco.kernel.errors import OutcomeUnknown
from arco.ledger.audit_events import UpkeepCompleted
from arco.ledger.reading import events
from arco.storage.cas import Held
from arco.storage.keys import Domain
from unit.catalog.ground import POINTER, RECEIPT, SCOPE, Server, story
from unit.txn.test_rules_of_transactions import RECORD, Keys, labels, marks, transact
from unit.upkeep.ground import DAY_S, HOUR_S, UpkeepGround
from unit.upkeep.table_ground import Table


async def bank(*tables: str) -> tuple[UpkeepGround, Server, Keys]:
    ground = UpkeepGround()
    server = ground.server()
    await server.found(*tables)
    return ground, server, Keys(ground)


async def died_after_deciding(server: Server, key: str, *tables: str) -> None:
    """The decision is there, and nothing after it."""
    decision = server.line.delay("put", RECORD, skip=1)
    await decision.holds(transact(server, key, *marks("x", *tables)))
    server.line.cut()
    await decision.land()


def pendings(ground: UpkeepGround) -> int:
    return sum(b'"pending"' in ground.store._objects[key].data for key in ground.objects(POINTER))


@story
async def test_what_was_decided_is_finished_with_its_receipts():
    ground, server, keys = await bank("a", "b")
    await died_after_deciding(server, keys.next(), "a", "b")
    before = len(ground.objects(RECEIPT))
    assert pendings(ground) == 2
    report = (await ground.upkeep("transactions"))["transactions"]
    assert (report.changed, pendings(ground), len(ground.objects(RECEIPT)) - before) == (2, 0, 2)
    assert await labels(ground.server(), "a", "b") == ["x", "x"]
    assert not (await ground.audit()).gaps


@story
async def test_an_attempt_that_fell_silent_is_sent_back_and_its_key_still_works():
    ground, server, keys = await bank("a", "b")
    key = keys.next()
    decision = server.line.delay("put", RECORD, skip=1)
    await decision.holds(transact(server, key, *marks("x", "a", "b")))
    server.line.cut()
    assert (await ground.upkeep("transactions"))["transactions"].changed == 0, "it is young"
    ground.later(2 * HOUR_S)
    assert (await ground.upkeep("transactions"))["transactions"].changed == 3, "the record and two pointers"
    other = ground.server()
    assert pendings(ground) == 0
    assert await labels(other, "a", "b") == [None, None]
    await transact(other, key, *marks("x", "a", "b"))
    assert await labels(other, "a", "b") == ["x", "x"]


@story
async def test_rule_t10_a_record_goes_after_thirty_days_when_nothing_speaks_of_it():
    ground, server, keys = await bank("a", "b")
    await transact(server, keys.next(), *marks("x", "a", "b"))
    await server.settle()
    ground.later(30 * DAY_S)
    assert (await ground.upkeep("transactions"))["transactions"].deleted == 0
    ground.later(1)
    report = (await ground.upkeep("transactions", dry_run=True))["transactions"]
    assert (report.deleted, report.why) == (1, {"30 days old, and nothing speaks of it": 1})
    assert (await ground.upkeep("transactions"))["transactions"].deleted == 1
    assert (ground.objects(RECORD), await labels(ground.server(), "a", "b")) == ([], ["x", "x"])


@pytest.mark.parametrize("is_decided", [True, False])
def test_a_dry_run_says_of_what_nobody_finished_what_the_real_one_does(is_decided: bool):
    @story
    async def tell() -> None:
        ground, server, keys = await bank("a", "b")
        if is_decided:
            await died_after_deciding(server, keys.next(), "a", "b")
        else:
            decision = server.line.delay("put", RECORD, skip=1)
            await decision.holds(transact(server, keys.next(), *marks("x", "a", "b")))
            server.line.cut()
        for days in (1, 30):
            ground.later(days * DAY_S)
            before = dict(ground.store._objects)
            dry = (await ground.upkeep("transactions", dry_run=True))["transactions"]
            changed = {key for key, one in ground.store._objects.items() if before.get(key) != one}
            assert all("/upkeep/" in key for key in changed), "the clock alone"
            if days == 30:
                real = (await ground.upkeep("transactions"))["transactions"]
                said = (dry.changed, dry.deleted, dry.why, dry.kept)
                assert said == (real.changed, real.deleted, real.why, real.kept)
                assert dry.deleted == 1

    tell()


@story
async def test_rule_t10_a_record_that_a_pointer_names_stays():
    """Its pointer cannot be written now: the record must not go before it was."""
    ground, server, keys = await bank("a", "b")
    await died_after_deciding(server, keys.next(), "a", "b")
    ground.later(31 * DAY_S)
    keeper = ground.server()

    async def somebody_swings() -> None:
        uuid = (await keeper.load("a")).uuid
        held = await ground.server().ws.pointers.object(uuid).read()
        assert isinstance(held, Held)
        await ground.server().ws.pointers.object(uuid).swap(held, held.value)

    keeper.line.before("put", POINTER, somebody_swings)
    report = (await ground.upkeep("transactions", by=keeper))["transactions"]
    assert (report.deleted, len(ground.objects(RECORD))) == (0, 1)
    assert await labels(ground.server(), "a", "b") == ["x", "x"]
    assert (await ground.upkeep("transactions"))["transactions"].deleted == 1
    assert await labels(ground.server(), "a", "b") == ["x", "x"]


@story
async def test_rule_t10_a_claim_that_slept_until_its_record_may_be_gone_is_not_acted_upon():
    ground, server, keys = await bank("a", "b")
    key = keys.next()
    claim = server.line.delay("put", RECORD)
    working = await claim.holds(transact(server, key, *marks("x", "a", "b")))
    ground.later(14 * HOUR_S)
    await claim.answer()
    with pytest.raises(OutcomeUnknown, match="so long ago"):
        await working
    record = await ground.server().ws.records.read(key)
    assert record is not None
    assert record.value.status is Status.WAITING
    assert await labels(ground.server(), "a", "b") == [None, None]


@story
async def test_a_record_that_cannot_be_read_is_told_and_stays():
    ground, server, keys = await bank("a")
    await transact(server, keys.next(), *marks("x", "a"))
    await server.settle()
    (name,) = ground.objects(RECORD)
    stored = ground.store._objects[name]
    ground.store._objects[name] = replace(stored, data=stored.data[:50])
    ground.later(31 * DAY_S)
    report = (await ground.upkeep("transactions"))["transactions"]
    assert (report.deleted, len(report.trouble)) == (0, 1)
    assert name in report.trouble[0]


# The reconciler


@story
async def test_the_receipt_of_a_tables_last_commit_is_completed():
    ground, server, _ = await bank("a")
    receipt = server.line.delay("put", RECEIPT, skip=1)
    await server.commit("a", "one")
    await asyncio_turns()
    server.line.cut()
    del receipt
    before = len(ground.objects(RECEIPT))
    report = (await ground.upkeep("reconcile"))["reconcile"]
    assert (report.changed, len(ground.objects(RECEIPT)) - before, report.trouble) == (1, 1, ())
    assert (await ground.upkeep("reconcile"))["reconcile"].changed == 0


@story
async def test_a_commit_in_the_log_without_a_receipt_is_a_discrepancy_that_is_told():
    ground, server, _ = await bank("a")
    for label in ("one", "two", "three"):
        await server.commit("a", label)
        await server.settle()
    report = (await ground.upkeep("reconcile"))["reconcile"]
    assert (report.changed, report.trouble) == (0, ())
    lost = next(key for key in ground.objects(RECEIPT) if b'"commit_number":1' in ground.store._objects[key].data)
    del ground.store._objects[lost]
    report = (await ground.upkeep("reconcile"))["reconcile"]
    assert report.trouble == ("commit 1 of db.a is in its metadata log and has no receipt; run arco verify --deep",)


@story
async def test_receipts_that_were_collected_are_no_discrepancy_though_a_client_with_a_clock_ahead_took_its_table_with_it():
    """The time of a table is never before its newest snapshot: for hours its commits looked younger than they were."""
    ground, server, _ = await bank("a")
    table = Table(ground, server)
    update = await table.written(await table.metadata(), 1, None)
    update["snapshot"]["timestamp-ms"] += 20 * HOUR_S * 1000
    main = {"action": "set-snapshot-ref", "ref-name": "main", "snapshot-id": 1, "type": "branch"}
    await table.update(update, main)
    for label in ("one", "two"):
        await server.commit("a", label)
        await server.settle()
    ground.later(HOUR_S)
    lost = next(key for key in ground.objects(RECEIPT) if b'"commit_number":1' in ground.store._objects[key].data)
    stored = ground.store._objects.pop(lost)
    assert len((await ground.upkeep("reconcile"))["reconcile"].trouble) == 1, "nobody collected it so soon"
    ground.store._objects[lost] = stored
    ground.later(26 * HOUR_S)
    for key in ground.objects(RECEIPT):
        if b'"commit_number":3' not in ground.store._objects[key].data:
            del ground.store._objects[key]  # as upkeep does once it is folded
    assert (await ground.upkeep("reconcile"))["reconcile"].trouble == ()


async def three_commits() -> tuple[UpkeepGround, list[str]]:
    """A table, and the receipts of its commits in their order."""
    ground, server, _ = await bank("a")
    for label in ("one", "two", "three"):
        ground.later(60)
        await server.commit("a", label)
        await server.settle()
    number = {
        key: json.loads(ground.store._objects[key].data)["commit"]["commit_number"] for key in ground.objects(RECEIPT)
    }
    return ground, sorted(number, key=number.__getitem__)


@story
async def test_a_pause_of_upkeep_hides_no_discrepancy_and_it_is_told_until_it_is_gone():
    ground, receipts = await three_commits()
    stored = ground.store._objects.pop(receipts[1])
    ground.later(10 * DAY_S)
    for _ in range(2):
        report = (await ground.upkeep("reconcile"))["reconcile"]
        assert report.trouble == ("commit 1 of db.a is in its metadata log and has no receipt; run arco verify --deep",)
        ground.later(5 * DAY_S)
    told = [UpkeepCompleted.of(one) for one in await events(ground.store, SCOPE, Domain.AUDIT)]
    assert [one.trouble for one in told] == [report.trouble] * 2
    ground.store._objects[receipts[1]] = stored
    assert (await ground.upkeep("reconcile"))["reconcile"].trouble == ()


@story
async def test_receipts_that_were_collected_are_no_discrepancy():
    ground, receipts = await three_commits()
    ground.later(100 * DAY_S)
    assert (await ground.upkeep("receipts"))["receipts"].why["90 days old"] == 3
    assert receipts[3] in ground.objects(RECEIPT)
    assert (await ground.upkeep("reconcile"))["reconcile"].trouble == ()


@story
async def test_what_was_decided_is_finished_however_long_ago_its_process_died():
    ground, server, keys = await bank("a", "b")
    await died_after_deciding(server, keys.next(), "a", "b")
    ground.later(5 * DAY_S)
    assert (await ground.upkeep("transactions"))["transactions"].changed == 0, "it looks at young records alone"
    assert (await ground.upkeep("reconcile", dry_run=True))["reconcile"].trouble == ()
    assert pendings(ground) == 2
    report = (await ground.upkeep("reconcile"))["reconcile"]
    assert (report.changed, report.trouble, pendings(ground)) == (2, (), 0)
    assert await labels(ground.server(), "a", "b") == ["x", "x"]
    assert not (await ground.audit()).gaps


@story
async def test_an_attempt_that_may_still_decide_is_left_to_it_and_one_that_fell_silent_is_ended():
    ground, server, keys = await bank("a", "b")
    key = keys.next()
    decision = server.line.delay("put", RECORD, skip=1)
    await decision.holds(transact(server, key, *marks("x", "a", "b")))
    server.line.cut()
    assert (await ground.upkeep("reconcile"))["reconcile"].changed == 0
    assert pendings(ground) == 2
    ground.later(5 * DAY_S)
    assert (await ground.upkeep("reconcile"))["reconcile"].changed == 2
    record = await ground.server().ws.records.read(key)
    assert record is not None
    assert (record.value.status, pendings(ground)) == (Status.WAITING, 0)
    assert await labels(ground.server(), "a", "b") == [None, None]


async def asyncio_turns() -> None:
    for _ in range(20):
        await asyncio.sleep(0)

"""Settling a transaction: afterwards it is certain, and stays so whoever wakes up."""

import asyncio

import pytest

from arco.catalog.idempotency import RequestKey
from arco.catalog.settling import DidLand, NeverLands, Trace
from arco.kernel.canonical_json import request_hash
from arco.kernel.errors import Fenced, OutcomeUnknown
from arco.kernel.limits import TRANSACTION_KEPT_S
from arco.txn.settling import settle_transaction
from unit.catalog.ground import Ground, Server, story
from unit.txn.test_rules_of_transactions import RECORD, Keys, labels, marks, transact

TABLES = ("a", "b")


async def settled(server: Server, key: str, trace: Trace | None = None):
    asked = RequestKey(key, "commitTransaction", request_hash(marks("x", *TABLES)))
    return await settle_transaction(server.ws, asked, "somebody gave up", trace)


async def two_servers() -> tuple[Ground, Keys, Server, Server]:
    ground = Ground()
    one, two = ground.server(), ground.server()
    await one.found(*TABLES)
    return ground, Keys(ground), one, two


@story
async def test_a_transaction_that_nobody_began_can_no_longer_be_begun() -> None:
    _, keys, one, two = await two_servers()
    key = keys.next()
    assert await settled(one, key) == NeverLands(was_free=True)
    with pytest.raises(Fenced, match="somebody gave up"):
        await transact(two, key, *marks("x", *TABLES))
    assert await labels(two, *TABLES) == [None, None]
    assert await settled(two, key) == NeverLands()


@story
async def test_one_that_is_about_to_be_decided_is_not() -> None:
    _, keys, one, two = await two_servers()
    key = keys.next()
    decision = one.line.delay("put", RECORD, skip=1)
    working = await decision.holds(transact(one, key, *marks("x", *TABLES)))
    assert await settled(two, key) == NeverLands()
    await decision.answer()
    with pytest.raises(Fenced):
        await asyncio.wait_for(working, 60)
    assert await labels(two, *TABLES) == [None, None]
    # What it left in the pointers is in nobody's way.
    await two.commit("a", "after")


@story
async def test_one_that_landed_is_said_to_have() -> None:
    _, keys, one, two = await two_servers()
    key = keys.next()
    await transact(one, key, *marks("x", *TABLES))
    assert isinstance(await settled(two, key), DidLand)
    assert await labels(two, *TABLES) == ["x", "x"]


@story
async def test_after_so_long_that_the_record_may_be_gone_only_the_tables_can_tell() -> None:
    ground, keys, one, _ = await two_servers()
    key = keys.next()
    ground.clock.at_ms += TRANSACTION_KEPT_S * 1000
    with pytest.raises(OutcomeUnknown, match="so long ago"):
        await settled(one, key, Trace((await one.load("a")).uuid, 5))

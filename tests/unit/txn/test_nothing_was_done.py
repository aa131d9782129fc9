"""503, "nothing was done", and its client deletes its files (C8): no request that was sent before may do it all the same.

Each test fails without its guard in `txn/claims.py`; so does the model (`specs/`), guards `passed_by_stays`,
`long_under_way_stays` and `overtaken_is_judged`.
"""

from typing import Any

import pytest

from arco.catalog.transaction_records import Status
from arco.kernel.errors import OutcomeUnknown, RetryLater
from arco.kernel.limits import REQUEST_FRESH_S, TRANSACTION_STALE_S
from stand_ins.shared_store import Delayed
from unit.catalog.ground import POINTER, Ground, Server, story
from unit.txn.test_rules_of_transactions import RECORD, ground_of, labels, marks, transact

X = marks("x", "a", "b")


def much_later(ground: Ground) -> None:
    ground.clock.at_ms += round(TRANSACTION_STALE_S * 1000) + 1
    ground.clock.elapsed_s += TRANSACTION_STALE_S + 1


async def told_503(server: Server, key: str) -> None:
    """A request of the same key that cannot prepare anything, and says so."""
    server.line.fail("get", POINTER, times=40)
    with pytest.raises(RetryLater):
        await transact(server, key, *X)


async def asks_again(ground: Ground, key: str) -> None:
    """The client, to whom 503 was said: its next request is a new one."""
    await transact(ground.server(), key, *X)
    assert await labels(ground.server(), "a", "b") == ["x", "x"]


@story
async def test_a_request_that_was_passed_by_does_not_do_what_was_told_as_not_done():
    ground, one, two, keys = await ground_of("a", "b")
    key = keys.next()
    decision = one.line.delay("put", RECORD, skip=1)
    working = await decision.holds(transact(one, key, *X))
    much_later(ground)
    await told_503(two, key)
    await decision.answer()
    with pytest.raises(OutcomeUnknown):
        await working
    assert await labels(ground.server(), "a", "b") == [None, None]
    await asks_again(ground, key)


@story
async def test_a_claim_that_was_passed_by_while_nobody_answered_it_begins_nothing():
    ground, one, two, keys = await ground_of("a", "b")
    key = keys.next()
    claim = one.line.delay("put", RECORD)
    working = await claim.holds(transact(one, key, *X))
    await claim.land()
    much_later(ground)
    await told_503(two, key)
    claim.fall_silent()
    with pytest.raises(OutcomeUnknown):
        await working
    assert await labels(ground.server(), "a", "b") == [None, None]


@story
async def test_a_claim_that_was_on_its_way_for_long_begins_nothing_where_another_request_ended():
    ground, one, two, keys = await ground_of("a", "b")
    key = keys.next()
    claim = one.line.delay("put", RECORD)
    working = await claim.holds(transact(one, key, *X))
    ground.clock.elapsed_s += REQUEST_FRESH_S + 1
    await told_503(two, key)
    await claim.answer()
    with pytest.raises(OutcomeUnknown):
        await working
    assert await labels(ground.server(), "a", "b") == [None, None]
    await asks_again(ground, key)


@story
async def test_a_request_that_was_sent_back_by_others_goes_on_however_long_it_took():
    """Its record waits, and no request of its key has begun since: nobody was told anything."""
    ground, one, _, keys = await ground_of("a", "b")
    key = keys.next()
    decision = one.line.delay("put", RECORD, skip=1)
    working = await decision.holds(transact(one, key, *X))
    much_later(ground)
    await transact(ground.server(), keys.next(), *marks("other", "a", "b"))
    await decision.answer()
    await working
    assert await labels(ground.server(), "a", "b") == ["x", "x"]


@story
async def test_who_was_overtaken_while_giving_up_does_not_say_that_nothing_was_done():
    """Its send-back landed and the reply got lost; when it is read back, the client's next request has committed."""
    ground, _, two, keys = await ground_of("a", "b")
    key = keys.next()
    giving_up: Delayed = two.line.delay("put", RECORD, skip=1)
    two.line.fail("get", POINTER, times=40)
    working: Any = await giving_up.holds(transact(two, key, *X))
    await giving_up.land()
    await asks_again(ground, key)
    giving_up.fall_silent()
    with pytest.raises(OutcomeUnknown):
        await working
    record = await ground.server().ws.records.read(key)
    assert record is not None
    assert record.value.status is Status.COMMITTED

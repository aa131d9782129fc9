"""What is asked of a table or name while a transaction there is not decided: who only waited says that nothing was done (C8)."""

from collections.abc import Awaitable, Callable

import pytest

from arco.catalog.idempotency import RequestKey
from arco.catalog.inventory import Inventory
from arco.catalog.manifest import Author
from arco.kernel.errors import OutcomeUnknown, RetryLater
from unit.catalog.ground import COMMIT, NAMESPACE, Server, story
from unit.txn.test_creations import undecided
from unit.txn.test_rules_of_transactions import ground_of, labels

Asked = Callable[[Server, bool], Awaitable[object]]


def key(asked: str, durable: bool) -> RequestKey:
    return RequestKey(f"the key of {asked}", asked, asked, durable=durable)


async def drop(server: Server, durable: bool) -> None:
    await server.catalog.tables.drop(NAMESPACE, "a", purge=True, key=key("drop", durable), author=Author())


async def drop_by_hand(server: Server, durable: bool) -> None:
    await Inventory(server.catalog).drop((NAMESPACE, "a"), purge=False, key=key("drop", durable), author=Author())


async def rename(server: Server, durable: bool) -> None:
    """To the name that the transaction keeps."""
    places = (NAMESPACE, "b"), (NAMESPACE, "new")
    await server.catalog.tables.rename(*places, key("rename", durable), Author())


async def undrop(server: Server, durable: bool) -> None:
    await server.catalog.tables.undrop(await server.dropped("c"), NAMESPACE, "new", key("undrop", durable), Author())


async def register_over(server: Server, durable: bool) -> None:
    """Another table in its place, in which the transaction has no part."""
    pointer = await server.ws.pointers.read((await server.dropped("c")).entry.uuid)
    assert pointer is not None
    location, asked = pointer.value.metadata_location, key("register", durable)
    await server.catalog.registering.register(NAMESPACE, "a", location, overwrite=True, key=asked, author=Author())


@pytest.mark.parametrize("durable", [False, True], ids=["without a key", "with a key"])
@pytest.mark.parametrize("asked", [drop, drop_by_hand, rename, undrop, register_over])
def test_who_waited_in_vain_for_a_transaction_says_that_nothing_was_done(asked: Asked, durable: bool):
    @story
    async def tell() -> None:
        _, one, two, keys = await ground_of("a", "b", "c")
        await two.drop("c", "before")
        decision = await undecided(one, keys.next())
        before = (await two.ws.tier1.current()).sequence
        with pytest.raises(RetryLater, match="transaction"):
            await asked(two, durable)
        assert (await two.ws.tier1.current()).sequence == before
        await decision.land()
        assert await labels(two, "a") == ["x"]

    tell()


@story
async def test_a_retry_that_waits_in_vain_does_not_know_what_the_first_attempt_did():
    _, one, two, keys = await ground_of("a")
    await undecided(one, keys.next())
    with pytest.raises(RetryLater):
        await drop(two, True)
    with pytest.raises(OutcomeUnknown) as told:
        await drop(two, True)
    assert "silent" not in told.value.message


@story
async def test_a_registration_over_a_name_whose_tombstone_may_stand_does_not_say_that_nothing_was_done():
    """Whoever loads the table finishes the replacement."""
    _, _, two, _ = await ground_of("a", "c")
    await two.drop("c", "before")
    two.line.fail("put", COMMIT, times=40)
    with pytest.raises(OutcomeUnknown):
        await register_over(two, False)


@story
async def test_a_drop_whose_tombstone_may_stand_does_not_say_that_nothing_was_done():
    """Whoever loads the table finishes the drop."""
    _, _, two, _ = await ground_of("a")
    two.line.fail("put", COMMIT, times=40)
    with pytest.raises(OutcomeUnknown):
        await drop(two, False)

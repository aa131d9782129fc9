"""What people say of a table, said once: a retry is about the table that the first attempt found, and takes nothing back."""

import pytest

from arco.catalog.idempotency import RequestKey
from arco.catalog.inventory import Description, Inventory
from arco.catalog.manifest import Author
from arco.kernel.errors import NoSuchTable, OutcomeUnknown
from unit.catalog.ground import COMMIT, MANIFEST, NAMESPACE, Ground, Server, story


async def describe(server: Server, name: str, key: str, owner: str) -> None:
    asked = RequestKey(key, "platform.describe", f"{name} {owner}")
    await Inventory(server.catalog).describe((NAMESPACE, name), Description({"owner": owner}), asked, Author())


async def owner_of(server: Server, name: str) -> str | None:
    return (await server.load(name)).governance.owner


async def died(ground: Ground, server: Server, part: str, *, landed: bool) -> None:
    """A description of `a` under the key K, by a server that dies at its write of `part`."""
    writing = server.line.delay("put", part)
    await writing.holds(describe(server, "a", "K", "ann"))
    server.line.cut()
    if landed:
        await writing.land()
    ground.long_after()


async def two_servers() -> tuple[Ground, Server, Server]:
    ground = Ground()
    one, two = ground.server(), ground.server()
    await one.found("a")
    await two.ws.tier1.current()
    return ground, one, two


@story
async def test_rule_c7_a_retry_describes_the_table_that_the_first_attempt_found():
    ground, one, two = await two_servers()
    await died(ground, one, COMMIT, landed=False)
    await two.rename("a", "b", "rename")
    await two.create("a", "another")
    await describe(two, "a", "K", "ann")
    assert (await owner_of(two, "a"), await owner_of(two, "b")) == (None, "ann")


@story
async def test_a_retry_of_a_description_is_not_about_another_table_of_the_name():
    ground, one, two = await two_servers()
    await died(ground, one, COMMIT, landed=False)
    await two.drop("a", "drop")
    await two.create("a", "another")
    with pytest.raises(NoSuchTable):
        await describe(two, "a", "K", "ann")
    assert await owner_of(two, "a") is None


@story
async def test_rule_n1_a_description_that_landed_is_not_said_again_over_a_later_one():
    ground, one, two = await two_servers()
    await died(ground, one, MANIFEST, landed=True)
    await describe(two, "a", "L", "bob")
    await describe(two, "a", "K", "ann")
    assert await owner_of(two, "a") == "bob"


@story
async def test_rule_c8_a_description_that_landed_is_not_said_to_be_nothing():
    ground, one, two = await two_servers()
    await died(ground, one, MANIFEST, landed=True)
    for what in ("get", "head", "put"):
        two.line.fail(what, "", times=1000)
    with pytest.raises(OutcomeUnknown):
        await describe(two, "a", "K", "ann")

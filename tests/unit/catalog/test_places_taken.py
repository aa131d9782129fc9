"""Where tables of other formats lie: no two in one folder, also when several servers register, drop and restore at once."""

import asyncio

import pytest

from arco.catalog.inventory import DropRef, Inventory, NewTable
from arco.catalog.manifest import Author
from arco.catalog.model import Format
from arco.kernel.errors import Conflict

from .ground import MANIFEST, NAMESPACE, Ground, Server, story

AUTHOR = Author("ann")
PLACE = "s3://others/orders"


async def register(server: Server, name: str, location: str = PLACE) -> None:
    key = server.ws.markers.request_key(None, f"register {name}", "")
    await Inventory(server.catalog).create(NewTable(NAMESPACE, name, Format.DELTA, location), key, AUTHOR)


async def drop(server: Server, name: str) -> None:
    key = server.ws.markers.request_key(None, f"drop {name}", "")
    await Inventory(server.catalog).drop((NAMESPACE, name), purge=False, key=key, author=AUTHOR)


async def undrop(server: Server, name: str) -> None:
    key = server.ws.markers.request_key(None, f"undrop {name}", "")
    await Inventory(server.catalog).undrop(DropRef((NAMESPACE, name)), None, key, AUTHOR)


async def names(server: Server) -> set[str]:
    return {entry.name for entry in (await Inventory(server.catalog).names()).entries.values()}


@pytest.mark.parametrize("theirs", [PLACE, f"{PLACE}/2025", "s3://others"])
def test_of_two_servers_that_register_one_place_at_once_one_is_refused(theirs: str) -> None:
    async def tale() -> None:
        ground = Ground()
        one, other = ground.server(), ground.server()
        await one.found()
        one.line.before("put", MANIFEST, lambda: register(other, "theirs", theirs))
        with pytest.raises(Conflict, match=r"table db\.theirs lies at"):
            await register(one, "mine")
        assert await names(one) == {"theirs"}

    asyncio.run(tale())


@story
async def test_of_two_requests_of_one_server_for_one_place_one_is_refused() -> None:
    server = Ground().server()
    await server.found()
    ended = await asyncio.gather(*(register(server, name) for name in "abc"), return_exceptions=True)
    assert sorted(type(one).__name__ for one in ended) == ["Conflict", "Conflict", "NoneType"]
    assert len(await names(server)) == 1


@story
async def test_what_was_dropped_does_not_come_back_to_a_place_that_is_taken() -> None:
    server = Ground().server()
    await server.found()
    await register(server, "old")
    await drop(server, "old")
    await register(server, "new", f"{PLACE}/inside")
    with pytest.raises(Conflict, match=r"table db\.new lies at"):
        await undrop(server, "old")
    assert await names(server) == {"new"}
    await drop(server, "new")
    await undrop(server, "old")
    assert await names(server) == {"old"}


@story
async def test_what_was_dropped_does_not_come_back_to_a_place_that_is_taken_at_that_moment() -> None:
    ground = Ground()
    one, other = ground.server(), ground.server()
    await one.found()
    await register(one, "old")
    await drop(one, "old")
    one.line.before("put", MANIFEST, lambda: register(other, "new"))
    with pytest.raises(Conflict, match=r"table db\.new lies at"):
        await undrop(one, "old")
    assert await names(one) == {"new"}


@story
async def test_a_place_is_free_once_its_table_was_dropped_elsewhere() -> None:
    ground = Ground()
    one, other = ground.server(), ground.server()
    await one.found()
    await register(one, "old")
    await other.ws.tier1.current()
    await drop(one, "old")
    await register(other, "new")
    assert await names(one) == {"new"}

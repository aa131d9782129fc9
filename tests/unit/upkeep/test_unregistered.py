"""A table that was unregistered lives on elsewhere: no job of upkeep touches its files, whoever asks and however late."""

import msgspec
import pytest

from arco.catalog.idempotency import RequestKey
from arco.catalog.inventory import DropRef, Inventory
from arco.catalog.manifest import Author
from arco.catalog.operations import Purge
from arco.catalog.pointer import Tombstone
from arco.catalog.verify import verify
from arco.kernel.errors import Conflict
from arco.storage.port import Absent
from arco.upkeep.purging import purge
from arco.upkeep.sweep import Setting
from unit.catalog.ground import NAMESPACE, POINTER, Server, setting, story
from unit.upkeep.ground import DAY_S, UpkeepGround


async def unregistered(ground: UpkeepGround, server: Server, name: str = "a") -> tuple[str, str]:
    """The identity of a table with data that was unregistered, and where its last metadata lies."""
    await server.found(name)
    uuid = (await server.load(name)).uuid
    await server.commit(name, "one")
    await ground.store.put(f"t/w/data/{name}-{uuid}/data/rows.parquet", b"rows", Absent())
    # A second file of a number, as a commit that lost its swing leaves it.
    landed = next(key for key in ground.objects(f"-{uuid}/metadata/00001-"))
    body = (await ground.store.get(landed)).data
    await ground.store.put(f"{landed.rpartition('/')[0]}/00001-{'0' * 32}.metadata.json", body, Absent())
    location = await unregister(server, name)
    return uuid, location


async def unregister(server: Server, name: str, key: str = "unregister") -> str:
    asked = RequestKey(key, "unregisterTable", name)
    location = await server.catalog.tables.unregister(NAMESPACE, name, key=asked, author=Author())
    await server.settle()
    return location


async def purge_all(ground: UpkeepGround) -> None:
    await purge(Setting(ground.server().ws), 0)


@story
async def test_the_files_of_an_unregistered_table_are_never_deleted():
    ground = UpkeepGround()
    server = ground.server()
    uuid, _ = await unregistered(ground, server)
    kept = ground.objects(f"-{uuid}/")
    assert len(kept) == 4
    for _ in range(3):
        ground.later(100 * DAY_S)
        await ground.upkeep()
        await purge_all(ground)
    assert ground.objects(f"-{uuid}/") == kept
    assert (await server.dropped("a")).unregistered


@story
async def test_its_files_stay_though_tier_1_has_forgotten_it():
    """A process of before the word could purge it as any other: the tombstone says what it is."""
    ground = UpkeepGround()
    server = ground.server()
    uuid, location = await unregistered(ground, server)
    forgotten = Purge(key_hash="k", uuid=uuid, drop_id=(await server.dropped("a")).drop_id)
    await server.ws.committer.submit(forgotten, since=0, author=Author())
    kept = ground.objects(f"-{uuid}/")
    ground.later(100 * DAY_S)
    await ground.upkeep()
    await purge_all(ground)
    assert ground.objects(f"-{uuid}/") == kept
    await ground.server().register("b", location, "again")
    assert (await ground.server().load("b")).uuid == uuid


@story
async def test_an_unregistered_table_is_registered_again_and_is_the_same():
    ground = UpkeepGround()
    server = ground.server()
    uuid, location = await unregistered(ground, server)
    ground.later(100 * DAY_S)
    await ground.upkeep()
    await server.register("b", location, "again")
    assert (await server.load("b")).uuid == uuid
    assert (await server.properties("b"))["last"] == "one"
    await server.commit("b", "two", setting("two"))
    assert not (await server.ws.tier1.current()).names.dropped
    assert (await verify(ground.server().catalog, files=False)).clean


@story
async def test_an_unregistered_table_is_not_restored():
    ground = UpkeepGround()
    server = ground.server()
    uuid, location = await unregistered(ground, server)
    dropped = await server.dropped("a")
    for lost in (DropRef((NAMESPACE, "a"), None), DropRef(None, dropped.drop_id)):
        key = RequestKey(f"undrop {lost}", "undrop", str(lost))
        with pytest.raises(Conflict, match="was unregistered") as refusal:
            await Inventory(server.catalog).undrop(lost, None, key, Author())
        assert location in (refusal.value.hint or "")
    assert (await server.dropped("a")).entry.uuid == uuid


@story
async def test_what_its_next_owner_does_with_the_files_is_no_damage():
    ground = UpkeepGround()
    server = ground.server()
    uuid, _ = await unregistered(ground, server)
    for key in ground.objects(f"-{uuid}/"):
        await ground.store.delete(key)
    assert (await verify(ground.server().catalog)).clean


@story
async def test_whoever_finishes_an_unregistration_says_that_it_is_one():
    ground = UpkeepGround()
    server = ground.server()
    await server.found("a")
    uuid = (await server.load("a")).uuid
    held = server.line.delay("put", "/manifests/catalog.manifest.json")
    await held.holds(unregister(server, "a"))
    server.line.cut()
    other = ground.server()
    with pytest.raises(Exception, match="does not exist"):
        await other.load("a")
    assert (await other.dropped("a")).unregistered
    assert ground.objects(f"{POINTER}{uuid}")


def test_a_tombstone_of_before_the_word_is_a_drop():
    before = {"drop_id": "d", "binding": 1, "purge": False, "principal": "p", "key_hash": "k", "successor": None}
    assert not msgspec.convert(before, Tombstone).unregistered

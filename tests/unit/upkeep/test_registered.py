"""A table that was made elsewhere and registered here: its history before that is no business of this workspace."""

from arco.catalog.verify import verify
from arco.storage.port import Absent
from unit.catalog.ground import RECEIPT, Server, story
from unit.upkeep.ground import DAY_S, HOUR_S, UpkeepGround


async def moved_here() -> tuple[UpkeepGround, Server]:
    """A table with some commits, copied from another root and registered here at once."""
    there = UpkeepGround()
    made = there.server()
    await made.found("a")
    for number in range(3):
        await made.commit("a", f"commit {number}")
        await made.settle()
    location = (await made.catalog.tables.load(("db",), "a"))[1].location
    here = UpkeepGround()
    here.clock.at_ms = there.clock.at_ms
    for key in there.objects("/data/"):
        await here.store.put(key, there.store._objects[key].data, Absent())
    server = here.server()
    await server.found()
    await server.register("b", location, "register")
    await server.settle()
    return here, server


async def told(ground: UpkeepGround) -> tuple[str, ...]:
    return (await ground.upkeep("reconcile"))["reconcile"].trouble


@story
async def test_commits_from_before_a_registration_are_no_discrepancy():
    ground, server = await moved_here()
    for label in ("", "one", "two"):
        if label:
            await server.commit("b", label)
            await server.settle()
        ground.later(HOUR_S)
        assert await told(ground) == ()
        assert (await verify(server.catalog, deep=True)).clean
    ground.later(10 * DAY_S)
    assert await told(ground) == ()


@story
async def test_a_commit_after_a_registration_without_a_receipt_is_one():
    ground, server = await moved_here()
    for label in ("one", "two"):
        await server.commit("b", label)
        await server.settle()
    (lost,) = [key for key in ground.objects(RECEIPT) if b'"commit_number":1' in ground.store._objects[key].data]
    del ground.store._objects[lost]
    assert await told(ground) == ("commit 1 of db.b is in its metadata log and has no receipt; run arco verify --deep",)

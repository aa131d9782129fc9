"""A table that two workspaces of a root know: its folder belongs to the one that made it."""

from arco.catalog.policy import LocationPolicy, _Listed
from arco.kernel.scope import Scope
from arco.upkeep.purging import purge
from arco.upkeep.sweep import Setting
from unit.catalog.ground import NAMESPACE, Server, story
from unit.upkeep.ground import DAY_S, UpkeepGround
from unit.upkeep.table_ground import Table, maintained_table
from unit.upkeep.test_names_and_pointers import dropped_for_good


async def registered_elsewhere(ground: UpkeepGround) -> tuple[Table, Server]:
    """A table with data, and another workspace that registered it from where it lies."""
    table = await maintained_table(ground)
    await table.publish(1)
    whole_bucket = LocationPolicy([_Listed("file:///lake", ground.store)])
    elsewhere = ground.server(whole_bucket, scope=Scope.of("t", "other"))
    await elsewhere.found()
    await elsewhere.register("copy", (await table.server.catalog.tables.load(NAMESPACE, "a"))[1].location, "register")
    await elsewhere.settle()
    return table, elsewhere


@story
async def test_a_purge_takes_no_files_of_a_table_that_another_workspace_made():
    ground = UpkeepGround()
    table, elsewhere = await registered_elsewhere(ground)
    uuid = await dropped_for_good(elsewhere, "copy")
    assert uuid == await table.uuid(), "the identity is the same in both"
    kept = ground.objects(f"-{uuid}/")
    assert kept
    for _ in range(3):
        ground.later(10 * DAY_S)
        assert (await ground.upkeep("dropped", by=elsewhere, dry_run=True))["dropped"].deleted == 0
        await ground.upkeep(by=elsewhere)
        await purge(Setting(elsewhere.ws), DAY_S)
    assert not (await elsewhere.ws.tier1.current()).names.dropped, "it was purged there"
    assert ground.objects(f"-{uuid}/") == kept
    assert (await table.server.load("a")).uuid == uuid


@story
async def test_no_job_takes_files_of_a_table_that_another_workspace_made_whoever_asks():
    ground = UpkeepGround()
    table, elsewhere = await registered_elsewhere(ground)
    uuid = await table.uuid()
    await table.put(f"{(await table.metadata()).location}/data/written and not committed.parquet")
    ground.later(10 * DAY_S)
    kept = ground.objects(f"-{uuid}/")
    await ground.upkeep("files", "metadata", "versions", "creations", by=elsewhere, asked=[uuid])
    assert ground.objects(f"-{uuid}/") == kept


@story
async def test_what_the_next_owner_of_a_dropped_table_commits_is_no_commit_that_never_happened():
    """Clients move a table by a drop without purge and a registration elsewhere, where commits have the same numbers again."""
    ground = UpkeepGround()
    table = await maintained_table(ground)
    for number in (1, 2, 3):
        await table.publish(number)
    location = (await table.server.catalog.tables.load(NAMESPACE, "a"))[1].location
    await table.server.drop("a", "drop")
    elsewhere = ground.server(LocationPolicy([_Listed("file:///lake", ground.store)]), scope=Scope.of("t", "other"))
    await elsewhere.found()
    await elsewhere.register("a", location, "register")
    for label in ("one", "two"):
        await elsewhere.commit("a", label)
        await elsewhere.settle()
    uuid = (await elsewhere.load("a")).uuid
    kept = ground.objects(f"-{uuid}/")
    for days in (2, 100):
        ground.later(days * DAY_S)
        await ground.upkeep()
        await ground.upkeep(by=ground.server(scope=Scope.of("t", "other")))
        assert (await elsewhere.load("a")).uuid == uuid
        assert set(kept) <= set(ground.objects(f"-{uuid}/"))

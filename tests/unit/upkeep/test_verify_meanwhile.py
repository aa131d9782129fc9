"""`arco verify` beside an engine that lets snapshots expire, and takes their files away at once."""

from arco.catalog.verify import verify
from unit.catalog.ground import story
from unit.upkeep.ground import UpkeepGround
from unit.upkeep.table_ground import Table
from unit.upkeep.test_expired_files import expired_by_an_engine, expiring_table


async def verified_while_a_snapshot_expires(ground: UpkeepGround, table: Table) -> tuple[list[str], dict[str, int]]:
    """What is found by who has read the table, and then misses what an engine takes."""
    looker = ground.server()
    reading = looker.line.delay("get", table.key(table.files[1][2]))
    looking = await reading.holds(verify(looker.catalog))
    await expired_by_an_engine(ground, table, 1)
    await reading.answer()
    report = await looking
    return [one.code for one in report.findings], report.counts


@story
async def test_what_an_engine_takes_while_a_table_is_looked_at_is_no_damage():
    ground = UpkeepGround()
    table = await expiring_table(ground)
    found, counts = await verified_while_a_snapshot_expires(ground, table)
    assert found == []
    assert (counts["snapshots"], counts["manifests"], counts["data_files"]) == (1, 1, 1), "as it is now, and once"


@story
async def test_what_the_table_as_it_is_now_misses_is_found_though_it_was_changed_meanwhile():
    ground = UpkeepGround()
    table = await expiring_table(ground)
    await ground.store.delete(table.key(table.files[2][0]))
    found, _ = await verified_while_a_snapshot_expires(ground, table)
    assert found == ["file_missing"]

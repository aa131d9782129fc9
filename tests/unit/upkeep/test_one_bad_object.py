"""One object that cannot be read, or one table that cannot be written, keeps no other from its upkeep; and the pass says so."""

import json
from typing import Any

import pytest

from arco.storage.port import Always
from arco.upkeep.jobs import JOBS
from unit.catalog.ground import NAMESPACE, POINTER, story
from unit.txn.test_rules_of_transactions import RECORD, labels, transact
from unit.upkeep.ground import DAY_S, UpkeepGround
from unit.upkeep.table_ground import Table
from unit.upkeep.test_transactions import bank, died_after_deciding, pendings


async def spoil(ground: UpkeepGround, key: str) -> None:
    await ground.store.put(key, b"{", Always())


async def pointer_of(ground: UpkeepGround, name: str) -> str:
    uuid = (await ground.server().catalog.tables.load(NAMESPACE, name))[1].metadata.table_uuid
    (key,) = [key for key in ground.objects(POINTER) if uuid in key]
    return key


@story
async def test_transactions_of_other_tables_are_finished_beside_a_pointer_that_cannot_be_read():
    ground, _, keys = await bank("a", "b", "c", "d")
    for pair in (("a", "b"), ("c", "d")):
        await died_after_deciding(ground.server(), keys.next(), *pair)
    spoiled = await pointer_of(ground, "a")
    await spoil(ground, spoiled)
    report = (await ground.upkeep("transactions"))["transactions"]
    assert (report.changed, pendings(ground)) == (3, 0)
    assert spoiled in report.trouble[0]
    assert await labels(ground.server(), "b", "c", "d") == ["x", "x", "x"]


@story
async def test_a_record_stays_where_a_pointer_of_it_cannot_be_read_and_older_records_go():
    ground, server, keys = await bank("a", "b", "c")
    first, second = keys.next(), keys.next()
    for key, pair in ((first, ("a", "b")), (second, ("b", "c"))):
        await transact(server, key, *[_change(name) for name in pair])
        await server.settle()
    await spoil(ground, await pointer_of(ground, "a"))
    ground.later(40 * DAY_S)
    report = (await ground.upkeep("transactions"))["transactions"]
    assert report.deleted == 1
    assert report.trouble
    assert [key for key in ground.objects(RECORD) if first in key] == ground.objects(RECORD)


def _change(name: str) -> dict[str, object]:
    setting = {"action": "set-properties", "updates": {"last": "x"}}
    return {"identifier": {"namespace": list(NAMESPACE), "name": name}, "requirements": [], "updates": [setting]}


@story
async def test_snapshots_of_other_tables_expire_beside_a_table_that_cannot_be_written():
    ground = UpkeepGround()
    server = ground.server()
    await server.found("a", "b")
    tables = [Table(ground, server, name) for name in ("a", "b")]
    for number, table in enumerate(tables):
        await table.set(maintenance_expire__snapshots_enabled="true", history_expire_max__snapshot__age__ms="1000")
        for snapshot in (1, 2):
            await table.publish(10 * number + snapshot)
    ground.later(DAY_S)
    keeper, (first, _) = ground.server(), tables
    keeper.line.fail("put", await pointer_of(ground, first.name), times=50)
    report = (await ground.upkeep("snapshots", by=keeper))["snapshots"]
    assert [len((await table.metadata()).snapshots) for table in tables] == [2, 1]
    assert report.changed == 1
    assert first.name in report.trouble[0]


WRONG = (
    {"metadata-log": [{"timestamp-ms": 1}]},
    {"refs": {"b": {"snapshot-id": 1, "type": "branch", "max-ref-age-ms": "soon"}}},
    {"snapshots": [{"snapshot-id": 1, "timestamp-ms": 1, "summary": 5}]},
    {"snapshots": [{"snapshot-id": 1, "timestamp-ms": 1, "parent-snapshot-id": [1]}]},
    {"statistics": [{"snapshot-id": 1}]},
)


@pytest.mark.parametrize("wrong", WRONG, ids=lambda one: next(iter(one)))
def test_metadata_that_parses_and_makes_no_sense_ends_no_pass(wrong: dict[str, Any]):
    """It ended the pass of its whole workspace, and every job after this one was never done again."""

    @story
    async def looked_at() -> None:
        ground = UpkeepGround()
        server = ground.server()
        await server.found("a", "b")
        for name in ("a", "b"):
            table = Table(ground, server, name)
            await table.set(maintenance_expire__snapshots_enabled="true", maintenance_orphan__files_enabled="true")
            for number in (1, 2):
                await table.publish(number)
        _, base = await server.catalog.tables.load(NAMESPACE, "a")
        refs = {**base.metadata.refs, **wrong.get("refs", {})}
        document = {**base.metadata.document, **wrong, "refs": refs if "snapshots" not in wrong else {}}
        if "snapshots" in wrong:
            document["current-snapshot-id"] = -1
        await ground.store.put(table.key(base.location), json.dumps(document).encode(), Always())
        ground.later(30 * DAY_S)
        reports = await ground.upkeep()
        assert set(reports) == {job.kind for job in JOBS}
        assert "cannot be read" in " ".join(reports["reconcile"].kept)
        assert reports["snapshots"].changed == 1, "of the other table"

    looked_at()


@story
async def test_the_files_of_one_table_that_cannot_be_listed_keep_no_other_from_its_upkeep():
    ground = UpkeepGround()
    server = ground.server()
    await server.found("a", "b")
    uuids = {name: (await server.load(name)).uuid for name in ("a", "b")}
    for name in ("a", "b"):
        table = Table(ground, server, name)
        await table.set(write_metadata_previous__versions__max="1", write_metadata_delete__after__commit_enabled="true")
        for number in range(3):
            await table.set(last=str(number))
        await ground.store.put(f"t/w/data/{name}-{uuids[name]}/metadata/00002-{'0' * 32}.metadata.json", b"{", Always())
    ground.later(3 * DAY_S)
    for job in ("metadata", "versions"):
        for name in ("a", "b"):
            keeper = ground.server()
            keeper.line.fail("list", f"/{name}-{uuids[name]}/metadata/")
            report = (await ground.upkeep(job, by=keeper))[job]
            assert len(report.trouble) == 1
            assert f"db.{name}" in report.trouble[0]
            assert report.deleted, "of the other table"

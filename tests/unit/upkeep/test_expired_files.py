"""Files of snapshots that expired, however they expired and whatever became of the versions that named them."""

from collections.abc import Iterable
from typing import Any

import pytest

from arco.catalog.idempotency import RequestKey
from arco.iceberg import requests
from arco.kernel.limits import UPKEEP_MANIFEST_READS_MAX
from arco.storage.memory import MemoryStore
from arco.storage.port import Always
from arco.upkeep import reach
from arco_sim.manifests import manifest, manifest_list
from unit.catalog.ground import FIELD, METADATA, NAMESPACE, POINTER, story
from unit.upkeep.ground import DAY_S, HOUR_S, UpkeepGround
from unit.upkeep.table_ground import Table, maintained_table
from unit.upkeep.test_names_and_pointers import dropped_for_good
from unit.upkeep.test_table_files import by_a_client_that_deletes, removal, setting

NOTED = "/_catalog/upkeep/named_"


async def expiring_table(ground: UpkeepGround, **properties: str) -> Table:
    """Its first snapshot has had its time, and its second has not."""
    table = await maintained_table(ground, history_expire_max__snapshot__age__ms=str(HOUR_S * 1000), **properties)
    await table.publish(1)
    await table.publish(2)
    ground.later(2 * HOUR_S)
    return table


async def expired_table(ground: UpkeepGround, **properties: str) -> Table:
    table = await expiring_table(ground, **properties)
    assert (await ground.upkeep("snapshots"))["snapshots"].changed == 1
    return table


async def commits(ground: UpkeepGround, table: Table, number: int, every_s: int) -> None:
    for label in range(number):
        ground.later(every_s)
        await table.set(last=str(label))


async def orphan(table: Table) -> str:
    return await table.put(f"{(await table.metadata()).location}/data/lost.parquet")


# However many commits there are


@story
async def test_files_of_expired_snapshots_go_however_many_commits_their_table_has():
    ground = UpkeepGround()
    table = await expired_table(ground)
    await commits(ground, table, 600, 300)
    report = (await ground.upkeep("files"))["files"]
    assert report.why == {
        "only expired snapshots named it": 2,
        "the list of a snapshot that expired": 1,
    }
    assert table.there(table.files[1]) == [False] * 3
    assert table.there(table.files[2]) == [True] * 3


@story
async def test_a_pass_that_does_not_get_to_the_first_version_is_gone_on_with_by_the_next():
    ground = UpkeepGround()
    table = await expired_table(ground, write_metadata_previous__versions__max="3")
    await commits(ground, table, 20, 4 * HOUR_S)
    left = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("arco.upkeep.named.UPKEEP_VERSIONS_MAX", 6)
        for _ in range(3):
            left.append((await ground.upkeep("files"))["files"].deleted)
            await commits(ground, table, 6, 4 * HOUR_S)
    assert left == [0, 0, 3]
    assert table.there(table.files[2]) == [True] * 3


@story
async def test_versions_stay_until_a_pass_came_as_far_as_they_are():
    ground = UpkeepGround()
    wanted = {"write_metadata_previous__versions__max": "3", "write_metadata_delete__after__commit_enabled": "true"}
    table = await expired_table(ground, **wanted)
    await commits(ground, table, 20, 4 * HOUR_S)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("arco.upkeep.named.UPKEEP_VERSIONS_MAX", 6)
        left = [(await ground.upkeep("versions"))["versions"].deleted for _ in range(6)]
    assert left[:2] == [0, 0]
    assert await _named_by_versions(ground, table, 1) == []
    await ground.upkeep("files")
    assert table.there(table.files[1]) == [False] * 3


@story
async def test_files_of_expired_snapshots_go_though_more_lies_in_the_folder_than_a_pass_looks_at():
    ground = UpkeepGround()
    table = await expired_table(ground)
    place = (await table.metadata()).location
    strange = [await table.put(f"{place}/data/0-{number}.parquet") for number in range(5)]
    await table.publish(3)
    ground.later(2 * HOUR_S)
    await ground.upkeep("snapshots")
    ground.later(4 * DAY_S)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("arco.upkeep.table_files.UPKEEP_FILES_MAX", 1)
        deleted = [(await ground.upkeep("files"))["files"].deleted for _ in range(2)]
    assert deleted == [1, 5], "manifests stay until the last file that they name is gone"
    assert table.there([*table.files[1], *table.files[2], *strange]) == [False] * 6 + [True] * 5


# Whatever became of the versions


@story
async def test_a_metadata_file_goes_after_what_it_named_was_noted_so_that_files_of_expired_snapshots_are_still_found():
    ground = UpkeepGround()
    wanted = {"write_metadata_previous__versions__max": "2", "write_metadata_delete__after__commit_enabled": "true"}
    table = await expired_table(ground, **wanted)
    await commits(ground, table, 10, 12 * HOUR_S)
    assert (await ground.upkeep("versions"))["versions"].deleted > 0
    assert await _named_by_versions(ground, table, 1) == []
    assert (await ground.upkeep("files"))["files"].deleted == 3
    assert table.there(table.files[1]) == [False] * 3


@story
async def test_a_dry_run_notes_nothing():
    ground = UpkeepGround()
    wanted = {"write_metadata_previous__versions__max": "2", "write_metadata_delete__after__commit_enabled": "true"}
    table = await expired_table(ground, **wanted)
    await commits(ground, table, 10, 12 * HOUR_S)
    for kind, going in (("versions", 9), ("files", 3)):
        assert (await ground.upkeep(kind, dry_run=True))[kind].deleted >= going
    assert ground.objects(NOTED) == []


@story
async def test_files_go_whose_versions_a_client_deletes_if_the_log_covers_a_day():
    ground = UpkeepGround()
    wanted = {"write_metadata_previous__versions__max": "8", "write_metadata_delete__after__commit_enabled": "true"}
    table = await expired_table(ground, **wanted)
    for number in range(18):
        if number % 6 == 0:
            await ground.upkeep("files")
        ground.later(4 * HOUR_S)
        await by_a_client_that_deletes(ground, table, setting(a=str(number)))
    assert await _named_by_versions(ground, table, 1) == []
    await ground.upkeep("files")
    assert table.there(table.files[1]) == [False] * 3


@story
async def test_files_go_whose_versions_a_client_deleted_though_the_log_did_not_cover_a_day():
    """What the table named on the day before is known; no more is needed once a day's versions are there again."""
    ground = UpkeepGround()
    wanted = {"write_metadata_previous__versions__max": "2", "write_metadata_delete__after__commit_enabled": "true"}
    table = await expiring_table(ground, **wanted)
    ground.later(2 * DAY_S)
    await ground.upkeep("files")
    await table.update(removal(1))
    for number in range(6):
        await by_a_client_that_deletes(ground, table, setting(a=str(number)))
    assert len((await ground.upkeep("files"))["files"].notes) == 1
    ground.later(2 * DAY_S)
    await ground.upkeep("files")
    assert table.there(table.files[1]) == [False] * 3


async def _named_by_versions(ground: UpkeepGround, table: Table, snapshot_id: int) -> list[str]:
    """The metadata files that are there and name a snapshot."""
    mark = table.files[snapshot_id][2].rpartition("/")[2].encode()
    return [key for key in ground.objects(METADATA) if mark in ground.store._objects[key].data]


@story
async def test_what_was_written_and_never_committed_does_not_count_as_expired():
    """Its commit lost its swing. Nobody asked for orphans to be collected."""
    ground = UpkeepGround()
    table = await expired_table(ground)
    update = await table.written(await table.metadata(), 3, None)
    slow = ground.server()
    held = slow.line.delay("put", POINTER)
    main = {"action": "set-snapshot-ref", "ref-name": "main", "snapshot-id": 3, "type": "branch"}
    await held.holds(slow.commit("a", "slow", {"requirements": [], "updates": [update, main]}))
    ground.later(4 * DAY_S)
    assert (await ground.upkeep("files"))["files"].deleted == 3, "while it could land, its version was read"
    slow.line.cut()
    await table.set(last="quicker")
    ground.later(4 * DAY_S)
    assert (await ground.upkeep("files"))["files"].deleted == 0
    assert table.there(table.files[3]) == [True] * 3


# What upkeep notes


@story
async def test_a_note_of_a_slow_pass_does_not_take_the_place_of_a_later_one():
    ground = UpkeepGround()
    table = await expiring_table(ground)
    ground.later(2 * DAY_S)
    await ground.upkeep("files")
    await table.publish(3)
    keeper = ground.server()
    writing = keeper.line.delay("put", NOTED)
    passing = await writing.holds(ground.upkeep("files", by=keeper))
    await table.publish(4)
    await ground.upkeep("files")
    (key,) = ground.objects(NOTED)
    later = ground.store._objects[key].data
    await writing.answer()
    await passing
    assert ground.store._objects[key].data == later


@story
async def test_a_note_that_cannot_be_read_keeps_the_files_of_its_table_and_of_no_other():
    ground = UpkeepGround()
    table = await expired_table(ground, maintenance_orphan__files_enabled="true")
    await ground.upkeep("files")
    (key,) = ground.objects(NOTED)
    await ground.store.put(key, b"{", Always())
    await table.server.create("b", "b")
    other = Table(ground, table.server, "b")
    await other.set(maintenance_orphan__files_enabled="true")
    lost = [await orphan(one) for one in (table, other)]
    ground.later(4 * DAY_S)
    report = (await ground.upkeep("files"))["files"]
    assert table.there(lost) == [True, False]
    (told,) = report.trouble
    assert key in told
    assert "arco verify" in told
    await ground.store.delete(key)
    assert (await ground.upkeep("files"))["files"].is_well
    assert table.there([*lost, *table.files[1]]) == [False] * 5


@story
async def test_the_note_of_a_table_goes_when_the_table_is_no_more():
    ground = UpkeepGround()
    table = await expired_table(ground)
    await ground.upkeep("files")
    assert len(ground.objects(NOTED)) == 1
    await dropped_for_good(table.server, "a")
    ground.later(6 * DAY_S)
    await ground.upkeep("files")
    assert len(ground.objects(NOTED)) == 1, "it can be restored"
    ground.later(4 * DAY_S)
    await ground.upkeep("dropped", "pointers", "files")
    assert ground.objects(NOTED) == []


# Engines that take the files of what they let expire


async def expired_by_an_engine(ground: UpkeepGround, table: Table, snapshot_id: int) -> None:
    """Spark's expire_snapshots: a commit, and then the files that only the expired snapshot named."""
    await table.update(removal(snapshot_id))
    for one in table.files[snapshot_id]:
        await ground.store.delete(table.key(one))


@story
async def test_a_table_whose_snapshots_an_engine_expires_every_day_has_its_upkeep():
    ground = UpkeepGround()
    table = await maintained_table(ground, maintenance_orphan__files_enabled="true")
    lost = await orphan(table)
    await table.publish(1)
    for day in range(2, 7):
        ground.later(DAY_S)
        await table.publish(day)
        ground.later(HOUR_S)
        await expired_by_an_engine(ground, table, day - 1)
        report = (await ground.upkeep("files"))["files"]
        assert (report.trouble, report.notes) == ((), ())
    assert table.there([lost, *table.files[6]]) == [False, True, True, True]


@story
async def test_what_an_engine_takes_while_the_version_before_is_read_is_no_damage():
    ground = UpkeepGround()
    table = await expiring_table(ground, maintenance_orphan__files_enabled="true")
    lost = await orphan(table)
    ground.later(4 * DAY_S)
    keeper = ground.server()
    reading = keeper.line.delay("get", table.key(table.files[1][2]))
    passing = await reading.holds(ground.upkeep("files", by=keeper))
    await expired_by_an_engine(ground, table, 1)
    await reading.answer()
    report = (await passing)["files"]
    assert (report.deleted, report.trouble) == (0, ())
    assert report.kept["its table has moved on meanwhile, so the next pass looks at it"] == 1
    await ground.upkeep("files")
    assert table.there([lost]) == [False]


@story
async def test_what_the_table_as_it_is_now_misses_too_is_told():
    ground = UpkeepGround()
    table = await expiring_table(ground, maintenance_orphan__files_enabled="true")
    lost = await orphan(table)
    ground.later(4 * DAY_S)
    await ground.store.delete(table.key(table.files[2][1]))
    keeper = ground.server()
    reading = keeper.line.delay("get", table.key(table.files[1][2]))
    passing = await reading.holds(ground.upkeep("files", by=keeper))
    await table.set(last="meanwhile")
    await reading.answer()
    report = (await passing)["files"]
    assert "is gone, and its table names it: run arco verify" in report.trouble[0]
    assert table.there([lost]) == [True]


# What cannot be read


@story
async def test_a_damaged_list_of_an_expired_snapshot_keeps_nothing_else():
    ground = UpkeepGround()
    table = await expired_table(ground, maintenance_orphan__files_enabled="true")
    data, named, listed = table.files[1]
    lost = await orphan(table)
    await ground.store.put(table.key(listed), b"broken", Always())
    ground.later(4 * DAY_S)
    report = (await ground.upkeep("files"))["files"]
    assert report.trouble == ()
    (note,) = report.notes
    assert listed in note
    assert table.there([lost, data, named, listed]) == [False] * 4


@story
async def test_a_damaged_manifest_of_an_expired_snapshot_keeps_nothing_else():
    ground = UpkeepGround()
    table = await expired_table(ground)
    data, named, listed = table.files[1]
    await ground.store.put(table.key(named), b"broken", Always())
    ground.later(4 * DAY_S)
    report = (await ground.upkeep("files"))["files"]
    assert (report.trouble, len(report.notes)) == ((), 1)
    assert table.there([data, named, listed]) == [True, False, False], "nobody asked for orphans to be collected"


@story
async def test_a_damaged_manifest_of_yesterdays_version_keeps_everything_until_it_is_out_of_reach():
    ground = UpkeepGround()
    table = await expired_table(ground, maintenance_orphan__files_enabled="true")
    lost = await orphan(table)
    ground.later(4 * DAY_S)
    await table.publish(3)
    await table.update(removal(2))
    await ground.store.put(table.key(table.files[2][1]), b"broken", Always())
    report = (await ground.upkeep("files"))["files"]
    assert (report.deleted, report.trouble) == (0, ())
    (note,) = report.notes
    assert table.files[2][1] in note
    ground.later(2 * DAY_S)
    await ground.upkeep("files")
    assert table.there([lost]) == [False]


@story
async def test_a_damaged_version_of_long_ago_keeps_nothing_else():
    ground = UpkeepGround()
    table = await expired_table(ground)
    lost = ground.objects(METADATA)[2]
    await ground.store.put(lost, b"broken", Always())
    ground.later(4 * DAY_S)
    report = (await ground.upkeep("files"))["files"]
    assert (report.trouble, len(report.notes)) == ((), 1)
    assert table.there(table.files[1]) == [False] * 3


@story
async def test_of_two_collectors_the_slower_one_finds_nothing_amiss():
    ground = UpkeepGround()
    table = await expired_table(ground)
    ground.later(4 * DAY_S)
    slow = ground.server()
    reading = slow.line.delay("get", table.key(table.files[1][2]))
    passing = await reading.holds(ground.upkeep("files", by=slow))
    assert (await ground.upkeep("files"))["files"].deleted == 3
    await reading.answer()
    assert (await passing)["files"].is_well


@story
async def test_a_note_of_a_staged_table_that_cannot_be_read_keeps_every_folder_until_nobody_can_create_its_table():
    ground = UpkeepGround()
    table = await expired_table(ground)
    ground.later(2 * DAY_S)
    body = requests.parse_create_table({"name": "b", "schema": {"type": "struct", "fields": [FIELD]}})
    await table.server.catalog.staging.stage(NAMESPACE, body, RequestKey("stage", "createTable", "0"))
    (key,) = ground.objects("/iceberg_staged/")
    await ground.store.put(key, b"{broken", Always())
    ground.later(2 * DAY_S)
    report = (await ground.upkeep("files"))["files"]
    assert (report.deleted, key in report.trouble[0]) == (0, True)
    ground.later(3 * HOUR_S)
    report = (await ground.upkeep("files"))["files"]
    assert (report.deleted, report.trouble) == (3, ())
    assert ground.objects("/iceberg_staged/") == [key]


# Memory


@story
async def test_of_the_manifests_of_a_table_only_a_few_are_held_at_once():
    ground = UpkeepGround()
    table = await maintained_table(ground, maintenance_orphan__files_enabled="true")
    names = await _publish_manifests(ground, table, 3 * UPKEEP_MANIFEST_READS_MAX)
    await orphan(table)
    fetched: list[str] = []
    decoded: list[int] = []
    live_in, get = reach.live_in, MemoryStore.get

    async def seen_get(store: MemoryStore, key: str) -> Any:
        fetched.append(key)
        return await get(store, key)

    def seen_live_in(data: bytes, name: str) -> Iterable[str]:
        decoded.append(len(names.intersection(fetched)) - len(decoded))
        return live_in(data, name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MemoryStore, "get", seen_get)
        patch.setattr(reach, "live_in", seen_live_in)
        assert (await ground.upkeep("files"))["files"].is_well
    assert len(decoded) == len(names)
    assert max(decoded) == UPKEEP_MANIFEST_READS_MAX


async def _publish_manifests(ground: UpkeepGround, table: Table, number: int) -> set[str]:
    """A snapshot of many manifests: their keys."""
    place = (await table.metadata()).location
    entries = []
    for one in range(number):
        name = f"{place}/metadata/{one}-m0.avro"
        entry, content = manifest(name, 1, [f"{place}/data/{one}.parquet"])
        entries.append(entry)
        await table.put(name, content)
    listed = f"{place}/metadata/snap-1.avro"
    await table.put(listed, manifest_list(listed, 1, None, 1, entries))
    snapshot = {
        "snapshot-id": 1,
        "sequence-number": 1,
        "timestamp-ms": ground.clock.now_ms(),
        "manifest-list": listed,
        "summary": {"operation": "append"},
    }
    main = {"action": "set-snapshot-ref", "ref-name": "main", "snapshot-id": 1, "type": "branch"}
    await table.update({"action": "add-snapshot", "snapshot": snapshot}, main)
    return {table.key(entry.manifest_path) for entry in entries}

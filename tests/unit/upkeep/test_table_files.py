"""Files that nothing names: what goes, and everybody for whose sake something stays."""

from typing import Any

import pytest
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestEntry, ManifestEntryStatus
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record

from arco.catalog.idempotency import RequestKey
from arco.catalog.policy import LocationPolicy
from arco.iceberg import requests
from arco.iceberg.held_files import MadeFile
from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import OutcomeUnknown, RetryLater
from arco.kernel.ids import RunId, TaskId, UlidSource
from arco.ledger.materializations import materialization_id
from arco.ledger.receipts import Source
from arco.ledger.run_entries import RunCreated, Trigger
from arco.ledger.run_log import RunLog, write_plan
from arco.ledger.run_outline import Outline
from arco.storage.port import Always
from arco.upkeep.passes import due, jobs_named, upkeep_pass
from arco.upkeep.sweep import UNSPEAKABLE, Setting
from arco_sim.manifests import manifest_list
from fixtures.servo.deletes import DeletesWriter
from unit.catalog.ground import FIELD, METADATA, NAMESPACE, POINTER, SCOPE, story
from unit.upkeep.ground import DAY_S, HOUR_S, UpkeepGround, put_by_client
from unit.upkeep.table_ground import Table, maintained_table

TASK, OTHER_TASK = TaskId(f"task_{1:016x}"), TaskId(f"task_{2:016x}")
NOTHING_NAMES_IT = "no version of its table in reach names it"


async def collected_table(ground: UpkeepGround, **properties: str) -> Table:
    return await maintained_table(ground, maintenance_orphan__files_enabled="true", **properties)


async def orphan(table: Table, name: str = "data/lost.parquet") -> str:
    return await table.put(f"{(await table.metadata()).location}/{name}")


# What goes


@story
async def test_a_file_that_nothing_names_goes_after_three_days():
    ground = UpkeepGround()
    table = await collected_table(ground)
    files = [*await table.publish(1)]
    lost = [await orphan(table), await orphan(table, "metadata/lost-m0.avro"), await orphan(table, "elsewhere/x")]
    ground.later(3 * DAY_S)
    report = (await ground.upkeep("files"))["files"]
    assert report.deleted == 0
    assert report.kept["nothing names it, and its writer may still commit it"] == 3
    ground.later(1)
    report = (await ground.upkeep("files"))["files"]
    assert (report.deleted, report.why) == (3, {NOTHING_NAMES_IT: 3})
    assert table.there(lost) == [False] * 3
    assert table.there(files) == [True] * 3


@story
async def test_without_its_property_a_table_keeps_what_nothing_names():
    ground = UpkeepGround()
    table = await maintained_table(ground)
    lost = await orphan(table)
    ground.later(30 * DAY_S)
    report = (await ground.upkeep("files"))["files"]
    assert report.deleted == 0
    assert table.there([lost]) == [True]
    assert (await ground.upkeep("files", asked=[await table.uuid()]))["files"].deleted == 1


@story
async def test_metadata_files_are_not_judged_as_orphans():
    ground = UpkeepGround()
    table = await collected_table(ground)
    for label in "xyz":
        await table.set(last=label)
    before = ground.objects(METADATA)
    ground.later(300 * DAY_S)
    await ground.upkeep("files")
    assert ground.objects(METADATA) == before


# What stays


@story
async def test_the_files_of_every_snapshot_that_is_there_stay_whichever_branch_leads_to_it():
    ground = UpkeepGround()
    table = await collected_table(ground)
    await table.publish(1)
    await table.publish(2, ref="held-back")
    ground.later(4 * DAY_S)
    assert (await ground.upkeep("files"))["files"].deleted == 0
    assert table.there([*table.files[1], *table.files[2]]) == [True] * 6


@story
async def test_files_of_deletes_and_statistics_that_the_table_names_stay():
    """Positions and values of deleted rows, a deletion vector, and the statistics of a snapshot and of its partitions."""
    ground = UpkeepGround()
    table = await collected_table(ground)
    metadata = await table.metadata()
    place = metadata.location
    kinds = (
        (DataFileContent.POSITION_DELETES, FileFormat.PARQUET, "data/positions.parquet"),
        (DataFileContent.EQUALITY_DELETES, FileFormat.AVRO, "data/values.avro"),
        (DataFileContent.POSITION_DELETES, FileFormat.PUFFIN, "data/vectors.puffin"),
    )
    deletes = [await table.put(f"{place}/{name}") for _, _, name in kinds]
    made = MadeFile(f"{place}/metadata/deletes-m0.avro")
    with DeletesWriter(UNPARTITIONED_PARTITION_SPEC, Schema(), made, 1, "null") as writer:
        for (content, form, _), path in zip(kinds, deletes, strict=True):
            file = DataFile.from_args(
                content=content,
                file_path=path,
                file_format=form,
                partition=Record(),
                record_count=1,
                file_size_in_bytes=4,
                equality_ids=[1] if content is DataFileContent.EQUALITY_DELETES else None,
            )
            writer.add(ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, snapshot_id=1, data_file=file))
    listed = f"{place}/metadata/snap-1.avro"
    await table.put(made.location, made.data)
    await table.put(listed, manifest_list(listed, 1, None, 1, [writer.to_manifest_file()]))
    snapshot = {
        "snapshot-id": 1,
        "sequence-number": 1,
        "timestamp-ms": ground.clock.now_ms(),
        "manifest-list": listed,
        "summary": {"operation": "delete"},
    }
    main = {"action": "set-snapshot-ref", "ref-name": "main", "snapshot-id": 1, "type": "branch"}
    statistics = [await table.put(f"{place}/metadata/{name}") for name in ("of-columns.puffin", "of-partitions.parquet")]
    said = [{"snapshot-id": 1, "statistics-path": path, "file-size-in-bytes": 4} for path in statistics]
    await table.update(
        {"action": "add-snapshot", "snapshot": snapshot},
        main,
        {"action": "set-statistics", "statistics": {**said[0], "file-footer-size-in-bytes": 1, "blob-metadata": []}},
        {"action": "set-partition-statistics", "partition-statistics": said[1]},
    )
    lost = await orphan(table)
    ground.later(30 * DAY_S)
    assert (await ground.upkeep("files"))["files"].deleted == 1
    assert table.there([*deletes, *statistics, lost]) == [True] * 5 + [False]


@story
async def test_a_file_is_known_however_its_client_spells_the_root_and_special_characters():
    """A client may reach the same bucket under another name, and engines escape values of partitions."""
    ground = UpkeepGround()
    table = await collected_table(ground)
    metadata = await table.metadata()
    folder = metadata.location.rpartition("/")[2]
    stored = f"{metadata.location}/data/at=2025-01-01 10:00/x.parquet"
    spelled = f"s3a://other-name//mnt/{folder}//data/at=2025-01-01%2010%3A00/x.parquet"
    await table.publish_naming(7, spelled)
    await table.put(stored)
    ground.later(30 * DAY_S)
    await ground.upkeep("files")
    assert table.there([stored]) == [True]


@story
async def test_a_file_is_known_where_its_folder_is_escaped_and_its_location_a_url():
    """The name on the store has a percent sign of its own: of the location that is another one."""
    ground = UpkeepGround()
    table = await collected_table(ground)
    place = (await table.metadata()).location
    stored = await table.put(f"{place}/data/at=2025-01-01%2010%3A00/x.parquet")
    await table.publish_naming(7, f"{place}/data/at%3D2025-01-01%252010%253A00/x.parquet")
    ground.later(30 * DAY_S)
    await ground.upkeep("files")
    assert table.there([stored]) == [True]


@story
async def test_what_a_version_named_that_came_and_went_within_the_day_stays():
    """A commit was on its way for days and is rolled back an hour after it landed: neither the version of yesterday nor the
    one of now names its files, and whoever loaded the table between reads them."""
    ground = UpkeepGround()
    table = await collected_table(ground)
    await table.publish(1)
    late = [
        await table.written(await table.metadata(), 2, 1),
        {"action": "set-snapshot-ref", "ref-name": "main", "snapshot-id": 2, "type": "branch"},
    ]
    slow = ground.server()
    swing = slow.line.delay("put", POINTER)
    committing = await swing.holds(slow.commit("a", "late", {"requirements": [], "updates": late}))
    ground.later(10 * DAY_S)
    await swing.answer()
    await committing
    await slow.settle()
    ground.later(HOUR_S)
    back = {"action": "set-snapshot-ref", "ref-name": "main", "snapshot-id": 1, "type": "branch"}
    await table.update(back, {"action": "remove-snapshots", "snapshot-ids": [2]})
    ground.later(60)
    assert (await ground.upkeep("files"))["files"].deleted == 0
    assert table.there(table.files[2]) == [True] * 3
    ground.later(2 * DAY_S)
    await ground.upkeep("files")
    assert table.there(table.files[2]) == [False] * 3


@story
async def test_what_a_version_named_that_was_current_a_day_ago_stays():
    """It was rolled back and expired an hour ago by a client; readers that began before still read it."""
    ground = UpkeepGround()
    table = await collected_table(ground)
    await table.publish(1)
    await table.publish(2)
    ground.later(10 * DAY_S)
    await table.update({"action": "remove-snapshots", "snapshot-ids": [1]})
    ground.later(HOUR_S)
    await ground.upkeep("files")
    assert table.there(table.files[1]) == [True] * 3
    ground.later(2 * DAY_S)
    await ground.upkeep("files")
    assert table.there(table.files[1]) == [False] * 3


@story
async def test_a_version_counts_from_the_moment_its_swing_landed_not_from_when_it_was_computed():
    """The swing of an expiry arrives ten days late, and then somebody commits: until then everybody read version one."""
    ground = UpkeepGround()
    table = await collected_table(ground)
    await table.publish(1)
    await table.publish(2)
    slow = ground.server()
    held = slow.line.delay("put", POINTER)
    body = {"requirements": [], "updates": [{"action": "remove-snapshots", "snapshot-ids": [1]}]}
    expiring = await held.holds(slow.commit("a", "late expiry", body))
    ground.later(10 * DAY_S)
    await held.answer()
    await expiring
    await slow.settle()
    await ground.upkeep("files")
    assert table.there(table.files[1]) == [True] * 3, "the pointer says when it was swung"
    await table.set(last="after")
    await ground.upkeep("files")
    assert table.there(table.files[1]) == [True] * 3, "the receipt says when it was swung"
    ground.later(26 * HOUR_S)
    await ground.upkeep("files")
    assert table.there(table.files[1]) == [False] * 3


@story
async def test_rule_u2_what_a_version_names_that_may_still_become_current_stays():
    """Staged, and its swing sleeps: ten days later the pointer is where it was, and the swing lands."""
    ground = UpkeepGround()
    table = await collected_table(ground)
    await table.publish(1)
    metadata = await table.metadata()
    update = await table.written(metadata, 2, 1)
    slow = ground.server()
    held = slow.line.delay("put", POINTER)
    main = {"action": "set-snapshot-ref", "ref-name": "main", "snapshot-id": 2, "type": "branch"}
    committing = await held.holds(slow.commit("a", "slow", {"requirements": [], "updates": [update, main]}))
    ground.later(10 * DAY_S)
    assert (await ground.upkeep("files"))["files"].deleted == 0
    await held.answer()
    await committing
    assert (await table.metadata()).current_snapshot_id == 2
    assert table.there(table.files[2]) == [True] * 3


@story
async def test_a_commit_that_was_under_way_for_half_a_day_before_it_was_staged_does_not_land():
    """Its files were named by nothing all that time: they may be gone."""
    ground = UpkeepGround()
    table = await collected_table(ground)
    metadata = await table.metadata()
    update = await table.written(metadata, 1, None)
    slow = ground.server()
    held = slow.line.delay("put", METADATA)
    main = {"action": "set-snapshot-ref", "ref-name": "main", "snapshot-id": 1, "type": "branch"}
    body = {"requirements": [], "updates": [update, main]}
    key = RequestKey("server's own", "updateTable", "0", durable=False)
    committing = await held.holds(
        slow.catalog.table_commits.commit(NAMESPACE, "a", requests.parse_commit_table(body), key, Source())
    )
    ground.later(4 * DAY_S)
    assert (await ground.upkeep("files"))["files"].deleted == 3
    await held.answer()
    with pytest.raises(RetryLater, match="half a day"):
        await committing
    assert (await table.metadata()).current_snapshot_id is None


@story
async def test_a_lost_swing_is_not_repeated_with_files_that_may_be_gone():
    ground = UpkeepGround()
    table = await collected_table(ground)
    update = await table.written(await table.metadata(), 1, None)
    slow = ground.server()
    held = slow.line.delay("put", POINTER)
    main = {"action": "set-snapshot-ref", "ref-name": "main", "snapshot-id": 1, "type": "branch"}
    key = RequestKey("server's own", "updateTable", "0", durable=False)
    body = requests.parse_commit_table({"requirements": [], "updates": [update, main]})
    committing = await held.holds(slow.catalog.table_commits.commit(NAMESPACE, "a", body, key, Source()))
    await table.set(last="quicker")
    ground.later(4 * DAY_S)
    assert (await ground.upkeep("files"))["files"].deleted == 3, "its number was taken: it can never land as it is"
    await held.answer()
    with pytest.raises(OutcomeUnknown, match="so long ago"):
        await committing


@story
async def test_files_of_a_run_that_has_not_ended_stay():
    ground = UpkeepGround()
    table = await collected_table(ground)
    ws = ground.server().ws
    run = RunId(UlidSource(ground.clock, SeededEntropy("run")).next())
    plan = b'{"spec":{"tasks":[{"id":"' + TASK.encode() + b'","depends_on":[]}]}}'
    await write_plan(ground.store, SCOPE, run, plan, ws.clock, ws.entropy)
    log = RunLog(ground.store, SCOPE, run, Outline.of_plan(plan), ws.clock, ws.entropy)
    assert await log.append([RunCreated(plan_id="p", tasks=1, trigger=Trigger.MANUAL, who="me", max_parallelism=1)])
    made = materialization_id(run, TASK)
    theirs = [await orphan(table, f"data/{made}/1/part-0.parquet"), await orphan(table, f"metadata/{made}-1-ff-9-m0.avro")]
    lost = await orphan(table, f"data/{materialization_id(run, OTHER_TASK)}/1/part-0.parquet")
    ground.later(30 * DAY_S)
    report = (await ground.upkeep("files"))["files"]
    assert report.kept["of a run that has not ended"] == 2
    assert table.there([*theirs, lost]) == [True, True, False]
    await log.close()
    await ground.upkeep("files")
    assert table.there(theirs) == [False, False]


@story
async def test_a_folder_that_another_table_lies_in_is_left_alone():
    ground = UpkeepGround()
    table = await collected_table(ground)
    lost = await orphan(table)
    place = (await table.metadata()).location
    inside = ground.server(LocationPolicy.of([place], ground.clock, SeededEntropy("policy")))
    await inside.create("b", "inside", location=f"{place}/inside")
    ground.later(30 * DAY_S)
    report = (await ground.upkeep("files"))["files"]
    assert report.kept == {"another table lies in its folder": 1}
    assert table.there([lost]) == [True]


@story
async def test_a_folder_in_which_somebody_is_about_to_create_a_table_is_left_alone():
    """What lies there may be the new table's, and no version of any table names it yet."""
    ground = UpkeepGround()
    table = await collected_table(ground)
    place = (await table.metadata()).location
    theirs = await orphan(table, "inside/data/theirs.parquet")
    ground.later(4 * DAY_S)
    inside = ground.server(LocationPolicy.of([place], ground.clock, SeededEntropy("policy")))
    body = {"name": "b", "schema": {"type": "struct", "fields": [FIELD]}, "location": f"{place}/inside"}
    wanted = requests.parse_create_table(body)
    await inside.catalog.staging.stage(NAMESPACE, wanted, RequestKey("stage", "createTable", "0"))
    report = (await ground.upkeep("files"))["files"]
    assert (report.deleted, table.there([theirs])) == (0, [True])
    assert "is about to create a table in the folder of db.a" in report.trouble[0]


@story
async def test_a_table_whose_manifest_is_gone_loses_nothing_more():
    ground = UpkeepGround()
    table = await collected_table(ground)
    _, manifest, _ = await table.publish(1)
    lost = await orphan(table)
    await ground.store.delete(table.key(manifest))
    ground.later(30 * DAY_S)
    report = (await ground.upkeep("files"))["files"]
    assert report.deleted == 0
    assert "is gone, and its table names it" in report.trouble[0]
    assert table.there([lost]) == [True]


# Versions whose files are gone


async def by_a_client_that_deletes(ground: UpkeepGround, table: Table, *updates: dict[str, Any]) -> None:
    """A commit of a client that takes away, right after it, what the table's log no longer names: PyIceberg does."""
    before = await table.metadata()
    await table.update(*updates)
    logs = [{str(one["metadata-file"]) for one in of.document["metadata-log"]} for of in (before, await table.metadata())]
    for location in logs[0] - logs[1]:
        await ground.store.delete(table.key(location))


def removal(*snapshot_ids: int) -> dict[str, Any]:
    return {"action": "remove-snapshots", "snapshot-ids": list(snapshot_ids)}


def setting(**properties: str) -> dict[str, Any]:
    return {"action": "set-properties", "updates": properties}


async def forgetful_table(ground: UpkeepGround, versions: int = 2) -> Table:
    table = await collected_table(ground)
    await table.set(write_metadata_previous__versions__max=str(versions))
    await table.set(write_metadata_delete__after__commit_enabled="true")
    return table


@story
async def test_what_only_a_version_named_that_its_client_deleted_stays_for_a_day():
    """Its readers loaded it within the day. Of what it named nothing is known any more, so nothing of the table goes."""
    ground = UpkeepGround()
    table = await forgetful_table(ground)
    await table.publish(1)
    await table.publish(2)
    lost = await orphan(table)
    ground.later(10 * DAY_S)
    await by_a_client_that_deletes(ground, table, setting(a="1"))
    await by_a_client_that_deletes(ground, table, removal(1))
    for number in range(4):
        await by_a_client_that_deletes(ground, table, setting(a=f"again {number}"))
    ground.later(HOUR_S)
    report = (await ground.upkeep("files"))["files"]
    assert table.there([*table.files[1], lost]) == [True] * 4
    assert (report.deleted, report.trouble, report.is_well) == (0, (), True)
    (note,) = report.notes
    assert note.startswith("db.a: ")
    assert "write.metadata.previous-versions-max (2 now)" in note
    assert "arco verify" not in note
    ground.later(2 * DAY_S)
    assert (await ground.upkeep("files"))["files"].notes == ()
    assert table.there([*table.files[1], lost]) == [False] * 4
    assert table.there(table.files[2]) == [True] * 3


@story
async def test_a_client_that_deletes_slowly_enough_takes_nothing_from_its_tables_upkeep():
    ground = UpkeepGround()
    table = await forgetful_table(ground)
    await table.publish(1)
    await table.publish(2)
    lost = await orphan(table)
    for number in range(6):
        ground.later(DAY_S)
        await by_a_client_that_deletes(ground, table, setting(a=str(number)))
    report = (await ground.upkeep("files"))["files"]
    assert (report.notes, report.trouble, table.there([lost])) == ((), (), [False])


@story
async def test_a_version_that_goes_while_the_table_is_read_is_no_damage():
    """The pointer that was read names it; the one that is there does not."""
    ground = UpkeepGround()
    table = await forgetful_table(ground)
    lost = await orphan(table)
    ground.later(10 * DAY_S)
    await by_a_client_that_deletes(ground, table, setting(a="1"))
    await by_a_client_that_deletes(ground, table, setting(a="2"))
    keeper = ground.server()
    oldest = str((await table.metadata()).document["metadata-log"][0]["metadata-file"])
    reading = keeper.line.delay("get", table.key(oldest))
    passing = await reading.holds(ground.upkeep("files", by=keeper))
    await by_a_client_that_deletes(ground, table, setting(a="3"))
    await reading.answer()
    report = (await passing)["files"]
    assert (report.deleted, report.trouble, len(report.notes)) == (0, (), 1)
    assert table.there([lost]) == [True]


@story
async def test_a_version_that_the_log_names_and_that_is_gone_is_told():
    ground = UpkeepGround()
    table = await forgetful_table(ground)
    lost = await orphan(table)
    ground.later(10 * DAY_S)
    await table.set(a="1")
    await table.set(a="2")
    (_, newest) = (await table.metadata()).document["metadata-log"]
    await ground.store.delete(table.key(str(newest["metadata-file"])))
    report = (await ground.upkeep("files"))["files"]
    assert (report.deleted, table.there([lost])) == (0, [True])
    assert "is gone, and its table names it" in report.trouble[0]


@story
async def test_a_day_of_more_versions_than_are_followed_keeps_everything_of_its_table():
    """Where the walk ends, nothing says that what came before is long ago."""
    ground = UpkeepGround()
    table = await collected_table(ground)
    await table.set(write_metadata_previous__versions__max="1")
    await table.publish(1)
    await table.publish(2)
    ground.later(10 * DAY_S)
    await table.update(removal(1))
    for number in range(6):
        await table.set(a=str(number))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("arco.upkeep.versions.UPKEEP_HISTORY_READS_MAX", 4)
        report = (await ground.upkeep("files"))["files"]
    assert table.there(table.files[1]) == [True] * 3
    assert (report.deleted, report.trouble, len(report.notes)) == (0, (), 1)


@story
async def test_a_damaged_manifest_keeps_everything_of_its_table():
    ground = UpkeepGround()
    table = await collected_table(ground)
    _, manifest, _ = await table.publish(1)
    lost = await orphan(table)
    await ground.store.put(table.key(manifest), b"Obj\x01 damaged", Always())
    ground.later(30 * DAY_S)
    report = (await ground.upkeep("files"))["files"]
    assert (report.deleted, len(report.trouble)) == (0, 1)
    assert table.there([lost]) == [True]


@story
async def test_what_is_committed_while_files_are_listed_stays():
    """The pointer is read after the listing and after the notes: a run that ended meanwhile has committed."""
    ground = UpkeepGround()
    table = await collected_table(ground)
    update = await table.written(await table.metadata(), 1, None)
    ground.later(10 * DAY_S)
    keeper = ground.server()
    held = keeper.line.delay("list", "/iceberg_staged/")
    collecting = await held.holds(ground.upkeep("files", by=keeper))
    main = {"action": "set-snapshot-ref", "ref-name": "main", "snapshot-id": 1, "type": "branch"}
    await table.update(update, main)
    await held.answer()
    assert (await collecting)["files"].deleted == 0
    assert table.there(table.files[1]) == [True] * 3


@pytest.mark.parametrize("word", [{"gc_enabled": "false"}, {"maintenance_orphan__files_enabled": "false"}])
def test_a_table_that_says_no_while_its_files_are_listed_is_left_alone(word: dict[str, str]):
    """Reading a large table takes long: what it says when the first file would go is what counts."""

    @story
    async def tell() -> None:
        ground = UpkeepGround()
        table = await collected_table(ground)
        lost = await orphan(table)
        ground.later(10 * DAY_S)
        keeper = ground.server()
        held = keeper.line.delay("list", "/iceberg_staged/")
        collecting = await held.holds(ground.upkeep("files", by=keeper))
        await table.set(**word)
        await held.answer()
        report = (await collecting)["files"]
        assert (report.deleted, report.trouble) == (0, ())
        assert table.there([lost]) == [True]

    tell()


@story
async def test_a_name_that_no_folder_could_hold_keeps_nothing_else_from_going():
    """Engines write such names on buckets, of long values of partitions: who tried to delete one came no further, ever again."""
    ground = UpkeepGround()
    table = await collected_table(ground)
    lost = [await orphan(table, f"data/lost-{number}.parquet") for number in range(100)]
    put_by_client(ground, f"{table.key((await table.metadata()).location)}/data/at={'x' * 300}/a.parquet")
    ground.later(4 * DAY_S)
    dry = (await ground.upkeep("files", dry_run=True))["files"]
    report = (await ground.upkeep("files"))["files"]
    assert (dry.deleted, report.deleted, report.trouble) == (100, 100, ())
    assert report.kept[UNSPEAKABLE] == 1
    assert table.there(lost) == [False] * 100


@story
async def test_dropped_tables_are_left_alone():
    ground = UpkeepGround()
    table = await collected_table(ground)
    lost = await orphan(table)
    await table.server.drop("a", "drop")
    ground.later(30 * DAY_S)
    assert (await ground.upkeep("files"))["files"].looked_at == 0
    assert table.there([lost]) == [True]


@story
async def test_what_goes_on_and_on_looks_at_files_once_a_day():
    ground = UpkeepGround()
    await collected_table(ground)
    setting, jobs = Setting(ground.server().ws), jobs_named(("files", "markers"))
    assert await due(setting, jobs) == jobs
    await upkeep_pass(setting, jobs)
    assert [job.kind for job in await due(setting, jobs)] == ["markers"]
    ground.later(DAY_S)
    assert await due(setting, jobs) == jobs

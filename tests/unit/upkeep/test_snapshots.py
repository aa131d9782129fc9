"""Snapshots that have had their time: what expires, what is held and by what, and when the files go."""

import json

import pytest

from arco.catalog.history import Landing, landing
from arco.catalog.idempotency import Tried
from arco.catalog.subject import Tables
from arco.catalog.verify import verify
from arco.kernel.errors import OutcomeUnknown
from arco.kernel.limits import UPKEEP_GRACE_S
from arco.upkeep.versions import number_of
from unit.catalog.ground import METADATA, POINTER, story
from unit.upkeep.ground import DAY_S, HOUR_S, UpkeepGround
from unit.upkeep.table_ground import Table, maintained_table

WEEK_MS = 7 * DAY_S * 1000


async def ids(table: Table) -> set[int]:
    return {one["snapshot-id"] for one in (await table.metadata()).snapshots}


async def three_snapshots(ground: UpkeepGround, **properties: str) -> Table:
    table = await maintained_table(ground, **properties)
    for number in (1, 2, 3):
        await table.publish(number)
        ground.later(DAY_S)
    return table


@story
async def test_snapshots_expire_by_icebergs_own_properties():
    ground = UpkeepGround()
    table = await three_snapshots(ground, history_expire_max__snapshot__age__ms=str(3 * DAY_S * 1000))
    assert (await ground.upkeep("snapshots"))["snapshots"].changed == 0, "the first is three days old, and no older"
    ground.later(HOUR_S)
    report = (await ground.upkeep("snapshots"))["snapshots"]
    assert (report.changed, report.kept) == (1, {"it has not had its time": 2})
    assert await ids(table) == {2, 3}
    ground.later(30 * DAY_S)
    await ground.upkeep("snapshots")
    assert await ids(table) == {3}, "what main points at stays, however old it is"


@story
async def test_a_table_that_does_not_ask_for_it_is_left_alone():
    ground = UpkeepGround()
    table = await three_snapshots(ground)
    await table.set(maintenance_expire__snapshots_enabled="false")
    ground.later(100 * DAY_S)
    assert (await ground.upkeep("snapshots"))["snapshots"].looked_at == 0
    assert await ids(table) == {1, 2, 3}
    assert (await ground.upkeep("snapshots", asked=[await table.uuid()]))["snapshots"].changed == 2, (
        "somebody asked for it by name"
    )
    assert await ids(table) == {3}


@story
async def test_a_table_that_forbids_garbage_to_be_collected_is_left_alone_whoever_asks():
    ground = UpkeepGround()
    table = await three_snapshots(ground, gc_enabled="false")
    ground.later(100 * DAY_S)
    report = (await ground.upkeep("snapshots", "files", asked=[await table.uuid()]))["snapshots"]
    assert (report.changed, report.kept) == (0, {"its table says gc.enabled = false": 1})
    assert await ids(table) == {1, 2, 3}


@story
async def test_as_many_as_the_table_or_the_branch_says_stay():
    ground = UpkeepGround()
    table = await three_snapshots(ground, history_expire_min__snapshots__to__keep="2")
    ground.later(100 * DAY_S)
    await ground.upkeep("snapshots")
    assert await ids(table) == {2, 3}
    await table.update(
        {"action": "set-snapshot-ref", "ref-name": "main", "snapshot-id": 3, "type": "branch", "min-snapshots-to-keep": 1}
    )
    await ground.upkeep("snapshots")
    assert await ids(table) == {3}


@story
async def test_refs_go_when_their_time_is_over_and_hold_their_snapshots_until_then():
    ground = UpkeepGround()
    table = await three_snapshots(ground)
    tag = {"action": "set-snapshot-ref", "type": "tag", "max-ref-age-ms": 10 * DAY_S * 1000}
    await table.update({**tag, "ref-name": "audit", "snapshot-id": 1})
    await table.update({"action": "set-snapshot-ref", "type": "tag", "ref-name": "for ever", "snapshot-id": 2})
    ground.later(7 * DAY_S)
    await ground.upkeep("snapshots")
    assert await ids(table) == {1, 2, 3}
    ground.later(DAY_S)
    await ground.upkeep("snapshots")
    assert await ids(table) == {2, 3}
    assert set((await table.metadata()).refs) == {"main", "for ever"}


@story
async def test_a_tag_that_is_set_while_its_snapshot_expires_is_kept():
    """What goes is computed on the base that is swung: a lost swing computes again."""
    ground = UpkeepGround()
    table = await three_snapshots(ground)
    ground.later(30 * DAY_S)
    keeper = ground.server()
    held = keeper.line.delay("put", POINTER)
    expiring = await held.holds(ground.upkeep("snapshots", by=keeper))
    await table.update({"action": "set-snapshot-ref", "type": "tag", "ref-name": "late", "snapshot-id": 1})
    await held.answer()
    await expiring
    assert (await table.metadata()).refs["late"]["snapshot-id"] == 1
    assert await ids(table) == {1, 3}


@story
async def test_a_table_that_takes_the_name_meanwhile_keeps_its_snapshots():
    ground = UpkeepGround()
    table = await three_snapshots(ground)
    await table.server.create("b", "b")
    other = Table(ground, table.server, "b")
    for number in (11, 12):
        await other.publish(number)
    ground.later(30 * DAY_S)
    keeper = ground.server()

    async def change_places() -> None:
        await table.server.rename("a", "gone", "away")
        await table.server.rename("b", "a", "here")

    keeper.line.before("get", f"{POINTER}{await table.uuid()}", change_places, skip=1)
    report = (await ground.upkeep("snapshots", by=keeper))["snapshots"]
    assert keeper.line.used_up
    other.name = "a"
    assert await ids(other) == {11, 12}, "it did not ask for it"
    assert (report.changed, report.trouble) == (0, ())


@story
async def test_a_table_that_forbids_it_meanwhile_keeps_its_snapshots():
    ground = UpkeepGround()
    table = await three_snapshots(ground)
    ground.later(30 * DAY_S)
    keeper = ground.server()
    held = keeper.line.delay("put", POINTER)
    expiring = await held.holds(ground.upkeep("snapshots", by=keeper))
    await table.set(gc_enabled="false")
    await held.answer()
    assert (await expiring)["snapshots"].changed == 0
    assert await ids(table) == {1, 2, 3}


@story
async def test_files_of_expired_snapshots_go_only_after_the_grace():
    ground = UpkeepGround()
    table = await three_snapshots(ground)
    ground.later(30 * DAY_S)
    await ground.upkeep("snapshots", "files")
    assert table.there(table.files[1]) == [True] * 3, "somebody may be reading the version before"
    ground.later(UPKEEP_GRACE_S)
    await ground.upkeep("snapshots", "files")
    assert table.there(table.files[1]) == [True] * 3
    ground.later(HOUR_S + 1)
    reports = await ground.upkeep("files", dry_run=True)
    assert {one.why for one in reports["files"].examples} == {
        "only expired snapshots named it",
        "the list of a snapshot that expired",
    }
    report = (await ground.upkeep("files"))["files"]
    assert report.deleted == 6
    assert report.bytes > 0
    assert table.there([*table.files[1], *table.files[2]]) == [False] * 6
    assert table.there(table.files[3]) == [True] * 3
    found = await verify(ground.server().catalog, deep=True)
    assert found.clean, found.findings


@story
async def test_a_killed_pass_is_finished_by_the_next():
    ground = UpkeepGround()
    table = await three_snapshots(ground)
    ground.later(30 * DAY_S)
    await ground.upkeep("snapshots")
    ground.later(2 * DAY_S)
    for part in ("/data/1.parquet", "2-m0.avro", "snap-1.avro"):
        keeper = ground.server()
        killed = await keeper.line.delay("delete", part).holds(ground.upkeep("files", by=keeper))
        killed.cancel()
        assert table.there(table.files[3]) == [True] * 3
    await ground.upkeep("files")
    assert table.there([*table.files[1], *table.files[2]]) == [False] * 6


@story
async def test_statistics_of_an_expired_snapshot_go_with_it():
    ground = UpkeepGround()
    table = await three_snapshots(ground)
    place = (await table.metadata()).location
    paths = {number: await table.put(f"{place}/metadata/{number}.stats") for number in (1, 3)}
    for number, path in paths.items():
        statistics = {
            "snapshot-id": number,
            "statistics-path": path,
            "file-size-in-bytes": 4,
            "file-footer-size-in-bytes": 1,
            "blob-metadata": [],
        }
        await table.update({"action": "set-statistics", "statistics": statistics, "snapshot-id": number})
    ground.later(30 * DAY_S)
    await ground.upkeep("snapshots")
    ground.later(2 * DAY_S)
    await ground.upkeep("files")
    assert table.there([paths[1], paths[3]]) == [False, True]
    assert [one["snapshot-id"] for one in (await table.metadata()).document["statistics"]] == [3]


@story
async def test_an_expiry_is_a_commit_with_a_receipt_like_any_other():
    ground = UpkeepGround()
    await three_snapshots(ground)
    ground.later(30 * DAY_S)
    before = len(ground.objects("/committed/"))
    await ground.upkeep("snapshots")
    assert len(ground.objects("/committed/")) == before + 1
    newest = max(
        ground.objects("/committed/"),
        key=lambda key: json.loads(ground.store._objects[key].data)["commit"]["commit_number"],
    )
    assert json.loads(ground.store._objects[newest].data)["commit"]["source"]["kind"] == "upkeep"


@story
async def test_a_property_that_is_no_number_lets_nothing_expire_and_is_said():
    ground = UpkeepGround()
    table = await three_snapshots(ground, history_expire_max__snapshot__age__ms="a week")
    ground.later(30 * DAY_S)
    report = (await ground.upkeep("snapshots"))["snapshots"]
    assert report.changed == 0
    assert "history.expire.max-snapshot-age-ms" in report.trouble[0]
    assert await ids(table) == {1, 2, 3}


@story
async def test_two_at_once_expire_what_one_would():
    ground = UpkeepGround()
    table = await three_snapshots(ground)
    ground.later(30 * DAY_S)
    keeper = ground.server()
    held = keeper.line.delay("put", POINTER)
    expiring = await held.holds(ground.upkeep("snapshots", by=keeper))
    await ground.upkeep("snapshots")
    await held.answer()
    await expiring
    assert await ids(table) == {3}


# Metadata files


async def busy_table(ground: UpkeepGround, **properties: str) -> Table:
    table = await maintained_table(ground, write_metadata_previous__versions__max="2", **properties)
    for number in range(6):
        await table.set(last=str(number))
        ground.later(HOUR_S)
    return table


def numbers(ground: UpkeepGround) -> list[int]:
    return sorted(int(key.rpartition("/")[2][:5]) for key in ground.objects(METADATA))


@story
async def test_metadata_files_stay_unless_their_table_says_otherwise():
    ground = UpkeepGround()
    table = await busy_table(ground)
    ground.later(100 * DAY_S)
    await ground.upkeep("versions", asked=[await table.uuid()])
    assert numbers(ground) == list(range(8))


@story
async def test_metadata_files_that_the_log_no_longer_names_go_after_every_marker():
    ground = UpkeepGround()
    table = await busy_table(ground, write_metadata_delete__after__commit_enabled="true")
    ground.later(20 * HOUR_S)
    assert (await ground.upkeep("versions"))["versions"].deleted == 0
    ground.later(2 * HOUR_S + 1)
    await ground.upkeep("versions")
    assert numbers(ground) == [4, 5, 6, 7], "version 3 was superseded 26 hours ago; version 4 was not"
    ground.later(30 * DAY_S)
    report = (await ground.upkeep("versions"))["versions"]
    assert report.why == {"its table's log no longer names it": 1}
    assert numbers(ground) == [5, 6, 7], "as many as the log names"
    await table.set(last="after")
    found = await verify(ground.server().catalog, deep=True)
    assert found.clean, found.findings


@story
async def test_who_asks_for_a_commit_whose_file_is_gone_hears_that_nobody_knows():
    """It landed, and its file went some time after: to whoever asks that late it must not look like one that never happened."""
    ground = UpkeepGround()
    table = await busy_table(ground, write_metadata_delete__after__commit_enabled="true")
    begun_ms = ground.clock.now_ms()
    location = await table.server.commit("a", "landed")
    base = number_of(location) - 1
    for number in range(4):
        await table.set(last=str(number))
    ground.later(3 * DAY_S)
    await ground.upkeep()
    assert base + 1 not in numbers(ground)
    asked = ground.server().ws
    pointer = await asked.pointers.read(await table.uuid())
    with pytest.raises(OutcomeUnknown, match="so long ago"):
        await landing(Tried(location, base, base + 1, begun_ms), pointer, asked, Tables())
    never = location.replace(location[-40:-30], "0" * 10)
    assert await landing(Tried(never, base, base + 1, ground.clock.now_ms()), pointer, asked, Tables()) is Landing.NEVER

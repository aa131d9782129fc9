"""Pointers without a name, staged creates, and tables that were purged: who waits, who is refused, and what goes."""

import pytest

from arco.catalog.catalog import Catalog
from arco.catalog.idempotency import RequestKey
from arco.catalog.manifest import Author
from arco.catalog.model import Reservation
from arco.catalog.operations import Reserve
from arco.catalog.staging import Intent
from arco.catalog.verify import verify
from arco.iceberg import requests
from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import Conflict, NoSuchTable, NotFound
from arco.kernel.ids import new_uuid7
from arco.ledger.receipts import Source
from arco.storage.port import Absent, Always
from arco.upkeep.purging import purge
from arco.upkeep.sweep import FOLDER_MARK, UNSPEAKABLE, Setting
from stand_ins.hand_clock import HandClock
from unit.catalog.ground import FIELD, MANIFEST, METADATA, NAMESPACE, POINTER, SCOPE, Server, story
from unit.upkeep.ground import DAY_S, HOUR_S, UpkeepGround, mark_folder, put_by_client

FORBIDS = {"action": "set-properties", "updates": {"gc.enabled": "false"}}
ALLOWS = {"action": "remove-properties", "removals": ["gc.enabled"]}
ASKED = {"name": "a", "schema": {"type": "struct", "fields": [FIELD]}}


async def half_created(ground: UpkeepGround, name: str = "a") -> tuple[list[str], Server]:
    """A server that died between staging a table and taking its name."""
    server = ground.server()
    await server.found()
    before = ground.objects()
    held = server.line.delay("put", MANIFEST)
    await held.holds(server.create(name, "half"))
    server.line.cut()
    return [key for key in ground.objects() if key not in before and (POINTER in key or METADATA in key)], server


@story
async def test_a_creation_that_was_given_up_leaves_nothing_behind():
    ground = UpkeepGround()
    litter, _ = await half_created(ground)
    assert len(litter) == 2
    ground.later(DAY_S)
    await ground.upkeep("pointers")
    assert not ground.gone(litter), "a creation may be slow"
    ground.later(3 * HOUR_S)
    report = (await ground.upkeep("pointers"))["pointers"]
    assert ground.gone(litter)
    assert report.deleted == 2


@story
async def test_rule_u1_a_creation_that_slept_through_a_clean_up_is_refused():
    ground = UpkeepGround()
    server = ground.server()
    await server.found()
    held = server.line.delay("put", MANIFEST)
    creating = await held.holds(server.create("a", "slow"))
    ground.later(10 * DAY_S)
    assert (await ground.upkeep("pointers"))["pointers"].deleted == 2
    await held.answer()
    with pytest.raises(Conflict, match="before the last clean-up"):
        await creating
    with pytest.raises(NoSuchTable):
        await ground.server().load("a")


@story
async def test_a_creation_that_lands_while_upkeep_looks_keeps_its_pointer():
    ground = UpkeepGround()
    server, keeper = ground.server(), ground.server()
    await server.found()
    held = server.line.delay("put", MANIFEST)
    creating = await held.holds(server.create("a", "slow"))
    ground.later(2 * DAY_S)

    async def land() -> None:
        await held.answer()
        await creating

    keeper.line.before("put", MANIFEST, land)
    await ground.upkeep("pointers", by=keeper)
    assert keeper.line.used_up
    assert (await ground.server().load("a")).name == "a"


@story
async def test_a_table_that_has_a_name_is_left_alone():
    ground = UpkeepGround()
    server = ground.server()
    await server.found("a", "b")
    await server.commit("a", "one")
    await server.drop("b", "drop")
    await server.settle()
    ground.later(100 * DAY_S)
    kept = ground.objects(METADATA)
    await ground.upkeep()
    assert ground.objects(METADATA) == kept
    await server.undrop(await server.dropped("b"), "b", "undrop")
    assert (await ground.server().properties("a"))["last"] == "one"
    await ground.server().load("b")


@story
async def test_an_identity_that_a_client_chose_is_buried_not_deleted():
    """Whoever comes with the same identity again must find it taken, for a request to delete it could arrive after that."""
    ground = UpkeepGround()
    server = ground.server()
    await server.found()
    chosen = "6f1d9df0-0000-4000-8000-000000000001"
    body = created_by_commit(chosen)
    key = RequestKey("half", "updateTable", "1")
    held = server.line.delay("put", MANIFEST)
    await held.holds(server.catalog.staging.create_by_commit(NAMESPACE, "a", body, key, Source()))
    server.line.cut()
    ground.later(2 * DAY_S)
    report = (await ground.upkeep("pointers"))["pointers"]
    assert (report.changed, report.deleted) == (1, 0)
    ground.later(2 * DAY_S)
    assert (await ground.upkeep("pointers"))["pointers"].deleted == 1, "its metadata file"
    again = RequestKey("again", "updateTable", "1")
    with pytest.raises(Conflict, match="another request has begun to create a table with this identity"):
        await ground.server().catalog.staging.create_by_commit(NAMESPACE, "a", body, again, Source())


@story
async def test_an_identity_that_a_client_chose_is_buried_though_it_never_had_a_pointer():
    ground = UpkeepGround()
    server = ground.server()
    await server.found()
    body = created_by_commit("6f1d9df0-0000-4000-8000-000000000001")
    held = server.line.delay("put", POINTER)
    await held.holds(
        server.catalog.staging.create_by_commit(NAMESPACE, "a", body, RequestKey("half", "updateTable", "1"), Source())
    )
    server.line.cut()
    (left,) = ground.objects(METADATA)
    ground.later(2 * DAY_S)
    assert (await ground.upkeep("creations", dry_run=True))["creations"].changed == 0
    report = (await ground.upkeep("creations"))["creations"]
    assert (report.changed, report.deleted) == (1, 0)
    ground.later(2 * DAY_S)
    await ground.upkeep("creations", "pointers")
    assert ground.gone([left])
    assert (await verify(ground.server().catalog, deep=True)).clean
    again = RequestKey("again", "updateTable", "1")
    with pytest.raises(Conflict, match="another request has begun to create a table with this identity"):
        await ground.server().catalog.staging.create_by_commit(NAMESPACE, "a", body, again, Source())


AHEAD = "7fffffff-0000-7000-8000-000000000001"
"""An identity by a clock that goes wrong: its time lies far ahead."""


async def create_by_commit(server: Server, uuid: str, key: str) -> None:
    asked = RequestKey(key, "updateTable", "1")
    await server.catalog.staging.create_by_commit(NAMESPACE, "a", created_by_commit(uuid), asked, Source())


@story
async def test_rule_u1_an_identity_whose_time_lies_ahead_is_buried_for_no_boundary_refuses_it():
    """A second collector that stalls in its deletion would take the pointer of whoever creates the table meanwhile."""
    ground = UpkeepGround()
    server, keeper, slow = ground.server(), ground.server(), ground.server()
    await server.found()
    held = server.line.delay("put", MANIFEST)
    await held.holds(create_by_commit(server, AHEAD, "half"))
    server.line.cut()
    ground.later(2 * DAY_S)
    deleted: list[str] = []
    slow.line.before("delete", POINTER, lambda: _note(deleted))
    await ground.upkeep("pointers", by=slow)
    await ground.upkeep("pointers", by=keeper)
    assert not deleted
    assert ground.objects(f"{POINTER}{AHEAD}"), "its identity stays taken"
    with pytest.raises(Conflict, match="another request has begun to create a table with this identity"):
        await create_by_commit(ground.server(), AHEAD, "again")
    ground.later(2 * DAY_S)
    await ground.upkeep("pointers")
    assert not ground.objects(f"-{AHEAD}/"), "its files went"
    assert (await verify(ground.server().catalog, deep=True)).clean


async def _note(deleted: list[str]) -> None:
    deleted.append("a pointer")


@story
async def test_the_first_file_of_an_identity_whose_time_lies_ahead_goes_when_it_is_buried():
    ground = UpkeepGround()
    server = ground.server()
    await server.found()
    held = server.line.delay("put", POINTER)
    await held.holds(create_by_commit(server, AHEAD, "half"))
    server.line.cut()
    (left,) = ground.objects(METADATA)
    ground.later(2 * DAY_S)
    assert (await ground.upkeep("creations"))["creations"].deleted == 0
    with pytest.raises(Conflict, match="another request has begun to create a table with this identity"):
        await create_by_commit(ground.server(), AHEAD, "again")
    ground.later(2 * DAY_S)
    await ground.upkeep("pointers")
    assert ground.gone([left])


def created_by_commit(uuid: str) -> requests.CommitTable:
    schema = {"type": "struct", "schema-id": 0, "fields": [FIELD]}
    return requests.parse_commit_table(
        {
            "requirements": [{"type": "assert-create"}],
            "updates": [
                {"action": "assign-uuid", "uuid": uuid},
                {"action": "upgrade-format-version", "format-version": 2},
                {"action": "add-schema", "schema": schema},
                {"action": "set-current-schema", "schema-id": -1},
                {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
                {"action": "set-default-spec", "spec-id": -1},
                {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
                {"action": "set-default-sort-order", "sort-order-id": -1},
                {"action": "set-location", "location": f"file:///lake/t/w/data/a-{uuid}"},
            ],
        }
    )


# Staged


async def stage(server: Server) -> str:
    wanted = requests.parse_create_table(ASKED)
    key = RequestKey("stage", "createTable", "0")
    return (await server.catalog.staging.stage(NAMESPACE, wanted, key)).table_uuid


@story
async def test_a_staged_table_that_nobody_created_goes_with_its_files():
    ground = UpkeepGround()
    server = ground.server()
    await server.found()
    uuid = await stage(server)
    file = f"t/w/data/a-{uuid}/data/part.parquet"
    await ground.store.put(file, b"rows", Absent())
    ground.later(49 * HOUR_S)
    await ground.upkeep("staged")
    assert file in ground.objects()
    ground.later(2 * HOUR_S)
    report = (await ground.upkeep("staged"))["staged"]
    assert report.deleted == 2
    assert not ground.objects(uuid)
    late = RequestKey("late", "updateTable", "1")
    with pytest.raises(Conflict, match="before the last clean-up"):
        await server.catalog.staging.create_by_commit(NAMESPACE, "a", created_by_commit(uuid), late, Source())


@story
async def test_rule_u1_a_staged_table_whose_time_lies_ahead_stays_until_the_boundary_refuses_it():
    """A server whose clock goes wrong gave it out: the table could still be created while its files go."""
    ground = UpkeepGround()
    server = ground.server()
    await server.found()
    ground.later(10 * DAY_S)
    uuid = await stage(server)
    for key in ground.objects(uuid):
        found = await ground.store.get(key)
        assert found is not None
        ground.later(-10 * DAY_S)
        await ground.store.put(key, found.data, Always())
    ground.later(5 * DAY_S)
    assert (await ground.upkeep("staged"))["staged"].deleted == 0
    ground.later(8 * DAY_S)
    await ground.upkeep("staged")
    assert not ground.objects(uuid)


@story
async def test_files_that_a_client_still_writes_keep_a_staged_table_alive():
    ground = UpkeepGround()
    server = ground.server()
    await server.found()
    uuid = await stage(server)
    ground.later(60 * HOUR_S)
    await ground.store.put(f"t/w/data/a-{uuid}/data/late.parquet", b"rows", Absent())
    await ground.upkeep("staged")
    assert len(ground.objects(uuid)) == 2


@story
async def test_the_note_of_a_staged_table_that_exists_goes_alone():
    ground = UpkeepGround()
    server = ground.server()
    await server.found()
    uuid = await stage(server)
    key = RequestKey("create", "updateTable", "1")
    await server.catalog.staging.create_by_commit(NAMESPACE, "a", created_by_commit(uuid), key, Source())
    await server.settle()
    ground.later(100 * HOUR_S)
    await ground.upkeep("staged")
    assert not ground.objects("iceberg_staged")
    assert (await ground.server().load("a")).uuid == uuid


@story
async def test_a_note_that_cannot_be_read_is_told_and_stays():
    ground = UpkeepGround()
    server = ground.server()
    await server.found()
    await ground.store.put("t/w/_catalog/iceberg_staged/6f1d9df0-0000-4000-8000-000000000001.json", b"{}", Absent())
    ground.later(10 * DAY_S)
    report = (await ground.upkeep("staged"))["staged"]
    assert report.deleted == 0
    assert "is not an intent" in report.trouble[0]
    assert Intent.__struct_fields__[0] == "format"


# Purge


async def dropped_for_good(server: Server, name: str) -> str:
    uuid = (await server.load(name)).uuid
    key = RequestKey(f"drop {name}", "drop", name)
    await server.catalog.tables.drop(NAMESPACE, name, purge=True, key=key, author=Author())
    await server.settle()
    return uuid


@story
async def test_a_purged_table_can_be_restored_until_its_hold_has_passed():
    ground = UpkeepGround()
    server = ground.server()
    await server.found("a")
    uuid = await dropped_for_good(server, "a")
    dropped = await server.dropped("a")
    ground.later(7 * DAY_S)
    await ground.upkeep()
    await server.undrop(dropped, "a", "undrop")
    assert (await server.load("a")).uuid == uuid
    await server.catalog.tables.drop(NAMESPACE, "a", purge=True, key=RequestKey("2", "drop", "a"), author=Author())
    again = await server.dropped("a")
    ground.later(8 * DAY_S)
    await ground.upkeep()
    assert not ground.objects(f"-{uuid}/"), "its files are gone"
    with pytest.raises(NotFound):
        await ground.server().undrop(again, "a", "too late")


@story
async def test_rule_n3_a_table_cannot_be_restored_once_its_files_may_go():
    """The files of a table that is on the list of what can be restored are never touched, whoever dies in between."""
    ground = UpkeepGround()
    server, keeper = ground.server(), ground.server()
    await server.found("a")
    uuid = await dropped_for_good(server, "a")
    ground.later(8 * DAY_S)
    seen = []

    async def look() -> None:
        names = (await ground.server().ws.tier1.current()).names
        seen.append(uuid in names.dropped)

    keeper.line.before("delete", f"-{uuid}/", look)
    await ground.upkeep(by=keeper)
    assert seen == [False]


@story
async def test_a_purge_that_stopped_half_way_is_finished_by_the_next():
    ground = UpkeepGround()
    server = ground.server()
    await server.found("a")
    uuid = await dropped_for_good(server, "a")
    for number in range(3):
        await ground.store.put(f"t/w/data/a-{uuid}/data/{number}.parquet", b"rows", Absent())
    ground.later(8 * DAY_S)
    await ground.upkeep("dropped")
    assert len(ground.objects(f"-{uuid}/")) == 4
    await ground.upkeep("pointers")
    assert not ground.objects(f"-{uuid}/")
    assert ground.objects(f"{POINTER}{uuid}"), "the tombstone stays"


@story
async def test_of_two_purged_tables_the_second_goes_though_the_first_has_a_name_that_no_folder_could_hold():
    ground = UpkeepGround()
    server = ground.server()
    await server.found("a", "b")
    uuids = sorted([await dropped_for_good(server, "a"), await dropped_for_good(server, "b")])
    folders = [key.partition("/metadata/")[0] for uuid in uuids for key in ground.objects(f"-{uuid}/")]
    put_by_client(ground, f"{folders[0]}/data/at={'x' * 300}/a.parquet")
    ground.later(8 * DAY_S)
    await ground.upkeep("dropped")
    report = (await ground.upkeep("pointers"))["pointers"]
    assert (report.deleted, report.kept[UNSPEAKABLE]) == (2, 1)
    assert not ground.objects(f"-{uuids[1]}/")


@story
async def test_of_two_purged_tables_the_second_goes_though_the_folder_of_the_first_cannot_be_listed():
    ground = UpkeepGround()
    server = ground.server()
    await server.found("a", "b")
    uuids = sorted([await dropped_for_good(server, "a"), await dropped_for_good(server, "b")])
    ground.later(8 * DAY_S)
    await ground.upkeep("dropped")
    keeper = ground.server()
    keeper.line.fail("list", f"-{uuids[0]}/")
    report = (await ground.upkeep("pointers", by=keeper))["pointers"]
    assert (report.deleted, len(report.trouble)) == (1, 1)
    assert uuids[0] in report.trouble[0]
    assert not ground.objects(f"-{uuids[1]}/")


@story
async def test_what_stands_for_a_folder_of_a_purged_table_is_not_said_to_go_in_every_pass():
    """It was, and the ledger heard of it every quarter of an hour, for ever."""
    ground = UpkeepGround()
    server = ground.server()
    await server.found("a")
    uuid = await dropped_for_good(server, "a")
    folder = ground.objects(f"-{uuid}/")[0].partition("/metadata/")[0]
    mark_folder(ground, f"{folder}/data")
    ground.later(8 * DAY_S)
    for deleted in (1, 0, 0):
        report = (await ground.upkeep("dropped", "pointers"))["pointers"]
        assert (report.deleted, report.kept[FOLDER_MARK]) == (deleted, 1)


@story
async def test_a_dry_run_of_a_purge_says_what_the_real_one_does_and_when_the_files_go():
    ground = UpkeepGround()
    server = ground.server()
    await server.found("a")
    ground.later(3 * DAY_S)
    uuid = await dropped_for_good(server, "a")
    ground.later(2 * HOUR_S)
    dry = await purge(Setting(ground.server().ws, dry_run=True), HOUR_S)
    real = await purge(Setting(ground.server().ws), HOUR_S)
    assert sum(one.deleted for one in dry) == sum(one.deleted for one in real) == 0
    said = "files of db.a stay for 24 more hours, and go with the upkeep that comes then"
    assert said in dry[0].notes
    assert real[0].notes == (said,)
    ground.later(23 * HOUR_S)
    await ground.upkeep("pointers")
    assert ground.objects(f"-{uuid}/")
    ground.later(HOUR_S)
    assert (await ground.upkeep("pointers"))["pointers"].deleted == 1
    assert not ground.objects(f"-{uuid}/")


@story
async def test_trap_t8_a_folder_that_another_table_lies_in_is_not_swept():
    ground = UpkeepGround()
    server = ground.server()
    await server.found("a")
    entry = await server.load("a")
    uuid = await dropped_for_good(server, "a")
    inside = await lodger(ground, server, entry.location)
    ground.later(8 * DAY_S)
    await ground.upkeep()
    assert ground.objects(f"-{uuid}/metadata/"), "the whole folder stays"
    assert inside in ground.objects()
    await ground.server().load("lodger")


async def lodger(ground: UpkeepGround, server: Server, place: str) -> str:
    """A registered table of another identity, in the folder of the first."""
    wanted = requests.parse_create_table({**ASKED, "name": "lodger"})
    stranger = "6f1d9df0-0000-4000-8000-000000000009"
    metadata = server.catalog.tables.subject.created(
        wanted, stranger, f"{place}/lodger", ground.clock.now_ms(), lambda _: True
    )
    location = f"{place}/lodger/metadata/v1.metadata.json"
    key = location.removeprefix("file:///lake/")
    await ground.store.put(key, server.catalog.tables.subject.encode(metadata, location), Absent())
    await server.register("lodger", location, "register")
    return key


@story
async def test_a_pointer_that_has_commits_and_no_name_is_told_and_stays():
    """Names that were set back from a backup must not cost anybody a table."""
    ground = UpkeepGround()
    server = ground.server()
    await server.found()
    manifest = await ground.store.get("t/w/_catalog/manifests/catalog.manifest.json")
    uuid = await server.create("a", "create")
    await server.commit("a", "one")
    await server.settle()
    await ground.store.delete("t/w/_catalog/manifests/catalog.manifest.json")
    assert manifest is not None
    await ground.store.put("t/w/_catalog/manifests/catalog.manifest.json", manifest.data, Absent())
    ground.later(100 * DAY_S)
    report = (await ground.upkeep("pointers"))["pointers"]
    assert "has 1 commits and no name" in report.trouble[0]
    assert len(ground.objects(f"-{uuid}/")) == 2


@story
async def test_a_first_file_that_came_after_its_pointer_was_collected_goes_too():
    ground = UpkeepGround()
    server = ground.server()
    await server.found("b")
    held = server.line.delay("put", METADATA)
    await held.holds(server.create("a", "half"))
    server.line.cut()
    ground.later(3 * DAY_S)
    await ground.upkeep()
    kept = ground.objects(METADATA)
    await held.land()
    (late,) = [key for key in ground.objects(METADATA) if key not in kept]
    await ground.upkeep()
    assert late in ground.objects(), "younger than the grace"
    ground.later(2 * DAY_S)
    await ground.upkeep()
    assert ground.objects(METADATA) == kept


@story
async def test_a_folder_that_somebody_put_there_is_left_to_them():
    """A copy that is to be registered: of another place, with rows, or of an identity that does not say its time."""
    ground = UpkeepGround()
    server = ground.server()
    await server.found("a")
    entry = await server.load("a")
    (first,) = ground.objects(f"-{entry.uuid}/")
    stored = await ground.store.get(first)
    assert stored is not None
    copies = [
        first.replace("/a-", "/moved-"),
        first.replace(entry.uuid, "6f1d9df0-0000-4000-8000-000000000001"),
        first.replace(entry.uuid, "01941f29-0000-7000-8000-000000000001"),
    ]
    for copy in copies:
        await ground.store.put(copy, stored.data, Absent())
    await ground.store.delete(f"t/w/_catalog/iceberg_pointers/{entry.uuid}.json")
    ground.later(100 * DAY_S)
    await ground.upkeep("creations")
    assert set(copies) <= set(ground.objects())


@story
async def test_a_table_whose_name_a_transaction_keeps_is_left_alone():
    """It may be decided any day: until then the pointer belongs to somebody."""
    ground = UpkeepGround()
    litter, _ = await half_created(ground)
    (pointer_key,) = [key for key in litter if POINTER in key]
    uuid = pointer_key.rpartition("/")[2].removesuffix(".json")
    server = ground.server()
    await server.ws.tier1.current()
    held = await server.ws.pointers.read(uuid)
    assert held is not None
    location = held.value.metadata_location
    entry = server.catalog.tables.new_entry(
        uuid, NAMESPACE, "a", location.rpartition("/metadata/")[0], ground.clock.now_ms()
    )
    reservation = Reservation(entry, new_uuid7(ground.clock, SeededEntropy("tx")), 1, location)
    reserve = Reserve(key_hash="reserve", reservation=reservation, minted_ms=ground.clock.now_ms())
    await server.ws.committer.submit(reserve, since=server.ws.tier1.seen.sequence)
    ground.later(10 * DAY_S)
    await ground.upkeep("staged", "pointers", "creations", "metadata")
    assert set(litter) <= set(ground.objects())


# What may not be purged, and when


@story
async def test_a_table_that_forbids_garbage_to_be_collected_is_not_purged():
    """Its files may be those of other tables, too: Iceberg's own word for it."""
    ground = UpkeepGround()
    server = ground.server()
    await server.found("a")
    await server.commit("a", "one", {"requirements": [], "updates": [FORBIDS]})
    uuid = await dropped_for_good(server, "a")
    kept = ground.objects(f"-{uuid}/")
    ground.later(100 * DAY_S)
    report = (await ground.upkeep("dropped", "pointers"))["dropped"]
    assert (report.changed, report.kept) == (0, {"its table says gc.enabled = false": 1})
    await purge(Setting(ground.server().ws), 0)
    assert ground.objects(f"-{uuid}/") == kept
    await server.undrop(await server.dropped("a"), "a", "undrop")
    await server.commit("a", "two", {"requirements": [], "updates": [ALLOWS]})
    await server.catalog.tables.drop(NAMESPACE, "a", purge=True, key=RequestKey("2", "drop", "a"), author=Author())
    ground.later(100 * DAY_S)
    await ground.upkeep("dropped", "pointers")
    assert not ground.objects(f"-{uuid}/")


@story
async def test_a_dropped_table_whose_metadata_is_gone_is_purged_and_one_that_cannot_be_read_stays():
    ground = UpkeepGround()
    server = ground.server()
    await server.found("a", "b")
    lost, damaged = [await dropped_for_good(server, name) for name in ("a", "b")]
    for key in ground.objects(f"-{lost}/"):
        await ground.store.delete(key)
    for key in ground.objects(f"-{damaged}/"):
        await ground.store.put(key, b"{", Always())
    ground.later(8 * DAY_S)
    report = (await ground.upkeep("dropped"))["dropped"]
    assert report.changed == 1
    assert [damaged in text for text in report.trouble] == [True]


@story
async def test_a_server_whose_clock_is_slow_gives_a_dropped_table_its_hold_all_the_same():
    ground = UpkeepGround()
    server = ground.server()
    await server.found("a")
    await server.settle()
    ground.later(30 * DAY_S)
    slow = HandClock(ground.clock.now_ms() - 20 * DAY_S * 1000)
    behind = Catalog.open(ground.store, "file:///lake", SCOPE, slow, SeededEntropy("behind"))
    await behind.tables.drop(NAMESPACE, "a", purge=True, key=RequestKey("1", "drop", "a"), author=Author())
    await behind.parts.afterwards.settle()
    await ground.upkeep("dropped", "pointers")
    await purge(Setting(ground.server().ws), 10 * DAY_S)
    ground.later(6 * DAY_S)
    await ground.upkeep("dropped", "pointers")
    await ground.server().undrop(await ground.server().dropped("a"), "a", "undrop")


@story
async def test_a_dry_run_tells_the_files_that_go_with_a_purge():
    ground = UpkeepGround()
    server = ground.server()
    await server.found("a")
    uuid = await dropped_for_good(server, "a")
    await ground.store.put(f"t/w/data/a-{uuid}/data/rows.parquet", b"rows", Absent())
    ground.later(8 * DAY_S)

    async def gone(*, dry_run: bool) -> tuple[int, int]:
        reports = await ground.upkeep("dropped", "pointers", dry_run=dry_run)
        return sum(one.deleted for one in reports.values()), sum(one.bytes for one in reports.values())

    told = await gone(dry_run=True)
    assert told[0] == 2
    assert sum(one.deleted for one in await purge(Setting(ground.server().ws, dry_run=True), 0)) == 2
    assert await gone(dry_run=False) == told

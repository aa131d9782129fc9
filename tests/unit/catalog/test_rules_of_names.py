"""Names, rule by rule: create, drop, restore, rename and register, with rivals, dead servers and late requests.

Each rule has a planted bug (`tests/simulation/mutants`) that takes it away and must fail here or in a scenario.
"""

import asyncio
from typing import Any

import pytest

from arco.catalog.checkpoint import checkpoint, make_room
from arco.catalog.idempotency import RequestKey
from arco.catalog.operations import Purge, Rename
from arco.catalog.policy import LocationPolicy
from arco.iceberg import requests, table
from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import AlreadyExists, Conflict, InvalidInput, NoSuchTable, OutcomeUnknown
from arco.kernel.limits import STAGED_INTENT_LIFETIME_S
from arco.ledger.receipts import Source
from arco.storage.port import Absent, Always
from stand_ins.shared_store import Delayed
from unit.catalog.ground import (
    COMMIT,
    FIELD,
    MANIFEST,
    MARKER,
    METADATA,
    NAMESPACE,
    POINTER,
    Ground,
    Server,
    commit_key,
    story,
)


async def two_servers(*tables: str) -> tuple[Ground, Server, Server]:
    ground = Ground()
    one, two = ground.server(), ground.server()
    await one.found(*tables)
    await two.ws.tier1.current()
    return ground, one, two


async def died_after(ground: Ground, server: Server, what: str, part: str, work: Any) -> None:
    """The server's request has its effect, and the server is dead before it hears of it."""
    heard = server.line.delay(what, part)
    await heard.holds(work)
    server.line.cut()
    await heard.land()
    ground.long_after()


async def list_of(server: Server) -> list[str]:
    return [entry.name for entry in (await server.ws.tier1.current()).names.inhabitants(NAMESPACE)]


# N1


@story
async def test_rule_n1_a_retried_creation_does_not_bring_back_what_was_removed_since():
    ground, one, two = await two_servers()
    await died_after(ground, one, "put", MANIFEST, one.make_namespace("shop", "K"))
    await two.unmake_namespace("shop", "remove")
    await two.make_namespace("shop", "K")
    assert ("shop",) not in (await two.ws.tier1.current()).names.namespaces
    assert len((await ground.audit()).operations(RequestKey("K", "", "").hash)) == 1


@story
async def test_rule_n1_a_stalled_creation_does_not_bring_back_what_was_removed_since():
    """The same without a retry: the swing landed, its reply was lost, and others were quicker than the read-back."""
    ground, one, two = await two_servers()

    async def rival() -> None:
        await two.unmake_namespace("shop", "remove")

    one.line.lose("put", MANIFEST)
    one.line.before("get", MANIFEST, rival)
    await one.make_namespace("shop", "K")
    assert ("shop",) not in (await two.ws.tier1.current()).names.namespaces
    assert len((await ground.audit()).operations(RequestKey("K", "", "").hash)) == 1


@story
async def test_rule_n1_a_retried_drop_leaves_what_was_restored_since():
    ground, one, two = await two_servers("a")
    await died_after(ground, one, "put", MANIFEST, one.drop("a", "K"))
    await two.undrop(await two.dropped("a"), "a", "undrop")
    await two.drop("a", "K")
    assert await list_of(two) == ["a"]


@story
async def test_rule_n1_a_retried_drop_leaves_what_was_created_since():
    ground, one, two = await two_servers("a")
    await died_after(ground, one, "put", MANIFEST, one.drop("a", "K"))
    again = await two.create("a", "again")
    await two.drop("a", "K")
    assert (await two.load("a")).uuid == again


@story
async def test_rule_n1_a_retry_of_what_is_in_the_chain_does_not_wait_for_an_owner_that_died():
    ground, one, two = await two_servers()
    swing = one.line.delay("put", MANIFEST)
    await swing.holds(one.make_namespace("new", "K"))
    await swing.land()
    one.line.cut()
    ground.clock.pauses.clear()
    await two.make_namespace("new", "K")
    assert ground.clock.pauses == []


@story
async def test_rule_n1_the_chain_is_asked_beyond_the_last_checkpoint():
    ground, one, two = await two_servers()
    await died_after(ground, one, "put", MANIFEST, one.make_namespace("shop", "K"))
    await two.unmake_namespace("shop", "remove")
    await checkpoint(two.ws.tier1, ground.clock, two.ws.entropy)
    three = ground.server()
    await three.make_namespace("shop", "K")
    assert ("shop",) not in (await three.ws.tier1.current()).names.namespaces


# N1, where the answer is no


@story
async def test_who_is_refused_because_of_another_of_its_group_hears_so_when_that_one_counts():
    """Two renames to one name in one commit. Another server drops the first one's table: the second stands in nobody's way."""
    _, one, two = await two_servers("a", "c")
    entries = [(await one.load(name)) for name in ("a", "c")]

    async def rival() -> None:
        await two.drop("a", "rival")

    one.line.before("put", MANIFEST, rival)
    asked = [
        one.ws.committer.submit(
            Rename(key_hash=str(number) * 64, uuid=entry.uuid, binding=entry.binding, namespace=NAMESPACE, name="b"),
            since=one.ws.tier1.seen.sequence,
        )
        for number, entry in enumerate(entries)
    ]
    first, second = await asyncio.gather(*asked, return_exceptions=True)
    assert isinstance(first, NoSuchTable)
    assert isinstance(second, int)
    assert await list_of(two) == ["b"]


@story
async def test_a_refused_retry_is_not_done_later_by_its_first_attempt():
    """The second server does not allow the place; the first one's swing of the manifest is still on its way."""
    ground = Ground()
    policy = LocationPolicy.of(["file:/elsewhere"], SystemClock(), SeededEntropy("policy"))
    one, two = ground.server(policy), ground.server()
    await one.found()
    wanted = {"properties": {"write.data.path": "file:///elsewhere/a"}}
    swing = one.line.delay("put", MANIFEST)
    await swing.holds(one.create("a", "K", **wanted))
    one.line.cut()
    ground.long_after()
    with pytest.raises(InvalidInput):
        await two.create("a", "K", **wanted)
    await swing.land()
    assert await list_of(two) == []


@story
async def test_an_attempt_that_slept_while_it_was_refused_stops():
    ground, one, two = await two_servers("a")
    staging = one.line.delay("put", METADATA)
    late = await staging.holds(one.create("a", "K"))
    ground.long_after()
    with pytest.raises(AlreadyExists):
        await two.create("a", "K")
    await two.drop("a", "drop")
    await staging.answer()
    with pytest.raises(OutcomeUnknown):
        await late
    assert await list_of(two) == []


@story
async def test_a_tombstone_whose_request_was_refused_does_not_stand():
    """A registration over another table is refused to its client; then the tombstone of its first attempt arrives."""
    ground, one, two = await two_servers("a", "b")
    meant = (await two.load("a")).uuid
    location = (await one.catalog.tables.load(NAMESPACE, "b"))[1].location
    await two.drop("b", "drop")
    tombstone = one.line.delay("put", POINTER)
    await tombstone.holds(one.register("a", location, "K", overwrite=True))
    one.line.cut()
    ground.long_after()
    await two.undrop(await two.dropped("b"), "b", "undrop")
    with pytest.raises(AlreadyExists):
        await two.register("a", location, "K", overwrite=True)
    await tombstone.land()
    assert (await two.load("a")).uuid == meant
    await two.commit("a", "commit")


@story
async def test_a_silent_store_does_not_make_a_landed_operation_a_failure():
    """The swing landed, its reply was lost, and a checkpoint came between: carrying the state forward needs more reads."""
    ground, one, two = await two_servers()

    async def rival() -> None:
        await checkpoint(two.ws.tier1, ground.clock, two.ws.entropy)

    one.line.lose("put", MANIFEST)
    one.line.before("get", MANIFEST, rival)
    one.line.fail("get", "/core/state/", times=100)
    await one.make_namespace("shop", "K")
    assert ("shop",) in (await two.ws.tier1.current()).names.namespaces


@story
async def test_silence_after_a_drop_has_begun_is_not_a_no():
    _ground, one, two = await two_servers("a")
    one.line.fail("put", COMMIT, times=100)
    with pytest.raises(OutcomeUnknown):
        await one.drop("a", "K")
    with pytest.raises(NoSuchTable):
        await two.load("a")


@story
async def test_silence_after_a_restore_is_not_a_no():
    _ground, one, two = await two_servers("a")
    await one.drop("a", "drop")
    dropped = await one.dropped("a")
    one.line.fail("get", POINTER, times=100)
    with pytest.raises(OutcomeUnknown):
        await one.undrop(dropped, "a", "K")
    assert (await two.load("a")).binding == 2


@story
async def test_silence_towards_a_retry_is_not_a_no():
    _ground, one, two = await two_servers("a")
    await one.rename("a", "b", "K")
    two.line.fail("head", MANIFEST, times=100)
    with pytest.raises(OutcomeUnknown):
        await two.rename("a", "b", "K")


# C7 for names: the marker is asked before a 404


@story
async def test_rule_c7_a_retried_drop_hears_that_it_was_done():
    _ground, one, two = await two_servers("a")
    await one.drop("a", "K")
    await one.settle()
    await two.drop("a", "K")


@story
async def test_a_retry_right_after_the_answer_meets_the_end_of_the_marker_and_hears_it():
    """The first attempt has answered, and its marker is finished just before the retry takes it over."""
    _ground, one, two = await two_servers()
    await one.make_namespace("x", "made")
    await one.settle()
    finishing = one.line.delay("put", MARKER, skip=1)
    await (await finishing.holds(one.unmake_namespace("x", "K")))
    two.line.before("put", MARKER, finishing.answer, skip=1)
    await two.unmake_namespace("x", "K")
    await one.settle()


@story
async def test_rule_c7_a_retried_rename_hears_that_it_was_done():
    ground, one, two = await two_servers("a")
    await died_after(ground, one, "put", MANIFEST, one.rename("a", "b", "K"))
    await two.create("a", "again")
    await two.rename("a", "b", "K")
    assert await list_of(two) == ["a", "b"]


@story
async def test_a_name_is_not_looked_up_in_memory():
    """Another server renamed the table and made a new one of that name: this one is meant."""
    for work in ("drop", "rename"):
        _ground, one, two = await two_servers("a")
        await one.rename("a", "b", "away")
        await one.create("a", "again")
        if work == "drop":
            await two.drop("a", "K")
            assert await list_of(two) == ["b"]
        else:
            await two.rename("a", "c", "K")
            assert await list_of(two) == ["b", "c"]


# N2


@story
async def test_rule_n2_whoever_meets_a_drop_half_way_finishes_it():
    ground, one, two = await two_servers("a")
    await died_after(ground, one, "put", POINTER, one.drop("a", "K"))
    assert await list_of(two) == ["a"]
    with pytest.raises(NoSuchTable):
        await two.load("a")
    assert await list_of(two) == []
    await two.drop("a", "K")


@story
async def test_rule_n2_a_tombstone_of_an_older_binding_is_not_finished():
    """The drop began, the table was renamed before it reached tier 1: the rename stands."""
    ground, one, two = await two_servers("a")
    await died_after(ground, one, "put", POINTER, one.drop("a", "K"))
    await two.rename("a", "b", "rename")
    assert (await two.load("b")).binding == 2
    await two.commit("b", "commit")
    with pytest.raises(NoSuchTable):
        await two.drop("a", "K")
    assert (await two.properties("b"))["last"] == "commit"


@story
async def test_rule_n2_a_late_drop_does_not_destroy_what_was_restored():
    """A drop waits on its way to tier 1 while another finishes it and a third restores the table."""
    _ground, one, two = await two_servers("a")
    swing = one.line.delay("put", MANIFEST)
    late = await swing.holds(one.drop("a", "K"))
    with pytest.raises(NoSuchTable):
        await two.load("a")
    await two.undrop(await two.dropped("a"), "a", "undrop")
    await swing.answer()
    await late
    assert (await two.load("a")).binding == 2


@story
async def test_rule_n2_a_drop_that_slept_through_a_restore_does_not_strike_the_restored_table():
    ground, one, two = await two_servers("a")
    read = one.line.delay("get", POINTER)
    late = await read.holds(one.drop("a", "K"))
    await two.drop("a", "other")
    await two.undrop(await two.dropped("a"), "a", "undrop")
    await read.answer()
    with pytest.raises((NoSuchTable, Conflict)):
        await late
    uuid = (await two.ws.tier1.current()).names.entries[(NAMESPACE, "a")].uuid
    assert (await ground.audit()).pointers[uuid].tombstone is None


@story
async def test_rule_n2_a_helper_that_comes_too_late_looks_again():
    """A loader sees a tombstone; before it can finish the drop, the table is renamed. It says what is true now."""
    ground, one, two = await two_servers("a")
    await two.load("a")
    await died_after(ground, one, "put", POINTER, one.drop("a", "K"))
    three = ground.server()

    async def rival() -> None:
        await three.rename("a", "b", "away")
        await three.rename("b", "a", "back")

    two.line.before("put", MANIFEST, rival)
    assert (await two.load("a")).binding == 3


# N3


@story
async def test_rule_n3_a_restore_begins_with_the_name():
    """Until tier 1 has the name again, the pointer stays dead, and no commit can land on it."""
    ground, one, two = await two_servers("a")
    uuid = (await one.load("a")).uuid
    await one.drop("a", "drop")
    swing = one.line.delay("put", MANIFEST)
    await swing.holds(one.undrop(await one.dropped("a"), "a", "K"))
    one.line.cut()
    assert (await ground.audit()).pointers[uuid].tombstone is not None
    await swing.land()
    assert (await two.load("a")).uuid == uuid


# N4


@story
async def test_rule_n4_of_a_rename_and_a_drop_one_wins_and_the_other_finds_nothing():
    _ground, one, two = await two_servers("a")
    swing = one.line.delay("put", MANIFEST)
    drop = await swing.holds(one.drop("a", "K"))
    await two.rename("a", "b", "rename")
    await swing.answer()
    with pytest.raises(NoSuchTable, match=r"db\.a"):
        await drop
    assert (await two.load("b")).name == "b"


# N5, hazard 11


async def staged(server: Server, name: str, key: str) -> dict[str, Any]:
    """Stage a table, and the commit that would create it."""
    body = {"name": name, "schema": {"type": "struct", "fields": [FIELD]}, "stage-create": True}
    metadata = await server.catalog.staging.stage(NAMESPACE, requests.parse_create_table(body), commit_key(key, body))
    updates = [
        {"action": "assign-uuid", "uuid": metadata.table_uuid},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": metadata.current_schema},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": metadata.location},
        {"action": "set-properties", "updates": {"made by": key}},
    ]
    return {"requirements": [{"type": "assert-create"}], "updates": updates}


async def create_staged(server: Server, name: str, body: dict[str, Any], key: str) -> str:
    wanted = requests.parse_commit_table(body)
    _, location = await server.catalog.staging.create_by_commit(NAMESPACE, name, wanted, commit_key(key, body), Source())
    return location


@story
async def test_rule_n5_a_pointer_that_another_request_made_is_not_adopted():
    _ground, one, two = await two_servers()
    body = await staged(one, "a", "stage")
    swing = one.line.delay("put", MANIFEST)
    first = await swing.holds(create_staged(one, "a", body, "first"))
    other = {**body, "updates": [*body["updates"], {"action": "set-properties", "updates": {"made by": "another"}}]}
    with pytest.raises(Conflict):
        await create_staged(two, "a", other, "second")
    await swing.answer()
    await first
    assert (await two.properties("a"))["made by"] == "stage"


@story
async def test_hazard_11_two_staged_creates_of_one_name_share_nothing():
    _ground, one, two = await two_servers()
    first, second = await staged(one, "a", "first"), await staged(two, "a", "second")
    assert first["updates"][0]["uuid"] != second["updates"][0]["uuid"]
    assert first["updates"][-2]["location"] != second["updates"][-2]["location"]
    location = await create_staged(two, "a", second, "second commit")
    with pytest.raises((Conflict, AlreadyExists)):
        await create_staged(one, "a", first, "first commit")
    _, base = await one.catalog.tables.load(NAMESPACE, "a")
    assert base.location == location
    assert base.metadata.properties["made by"] == "second"


@story
async def test_a_staged_table_is_created_until_it_expires_and_not_after():
    ground, one, two = await two_servers()
    first, second = await staged(one, "a", "first"), await staged(one, "b", "second")
    ground.clock.at_ms += STAGED_INTENT_LIFETIME_S * 1000
    await create_staged(two, "a", first, "in time")
    ground.clock.at_ms += 1
    for server in (one, two):
        with pytest.raises(Conflict, match="expired"):
            await create_staged(server, "b", second, "too late")
    assert [entry.name for entry in (await two.ws.tier1.current()).names.inhabitants(NAMESPACE)] == ["a"]


@story
async def test_a_staged_table_that_was_created_in_time_is_answered_after_its_time():
    ground, one, two = await two_servers()
    body = await staged(one, "a", "stage")
    swing = one.line.delay("put", MANIFEST)
    await swing.holds(create_staged(one, "a", body, "K"))
    await swing.land()
    one.line.cut()
    ground.clock.at_ms += STAGED_INTENT_LIFETIME_S * 1000 + 1
    location = await create_staged(two, "a", body, "K")
    assert (await two.catalog.tables.load(NAMESPACE, "a"))[1].location == location


@story
async def test_a_file_of_another_workspace_is_not_registered():
    """It lies under the same root, and is nobody's business here."""
    ground, one, _ = await two_servers("a")
    location = (await one.catalog.tables.load(NAMESPACE, "a"))[1].location
    elsewhere = location.replace("/t/w/data/", "/t/other/data/")
    (key,) = [key for key in (await ground.audit()).objects if location.endswith(key)]
    found = await ground.store.get(key)
    assert found is not None
    await ground.store.put(key.replace("t/w/data/", "t/other/data/"), found.data, Always())
    inside = location.replace("/t/w/data/", "/t/w/_catalog/")
    for hostile in (elsewhere, inside):
        with pytest.raises(InvalidInput, match="is not allowed"):
            await one.register("b", hostile, f"register {hostile}")


@story
async def test_a_staged_create_of_a_name_that_was_dropped_elsewhere_is_a_creation():
    _ground, one, two = await two_servers("a")
    await one.drop("a", "drop")
    await create_staged(two, "a", await staged(one, "a", "stage"), "K")
    assert (await one.properties("a"))["made by"] == "stage"


# N6


@story
async def test_rule_n6_a_load_looks_at_the_name_after_a_pointer_that_changed():
    """Renamed, and committed to under its new name: the old name never meant that."""
    _ground, one, two = await two_servers("a")
    await two.load("a")
    await one.commit("a", "before")

    async def rival() -> None:
        await one.rename("a", "b", "rename")
        await one.commit("b", "late")

    two.line.before("get", POINTER, rival)
    with pytest.raises(NoSuchTable):
        await two.load("a")


@story
async def test_rule_n6_a_load_looks_at_the_pointer_after_a_name_that_changed():
    """The name went to another table and came back, and a commit landed in between: what was read before is old."""
    _ground, one, two = await two_servers("a")
    await two.load("a")

    async def rival() -> None:
        await one.rename("a", "b", "away")
        await one.commit("b", "late")
        await one.rename("b", "a", "back")

    two.line.before("head", MANIFEST, rival)
    pointer = two.line.delay("head", POINTER)
    loading = await pointer.holds(two.properties("a"))
    await pointer.answer()
    assert (await loading)["last"] == "late"


# Registering


@story
async def test_a_registered_table_starts_at_its_file_once():
    ground, one, two = await two_servers("a")
    location = await one.commit("a", "first")
    await one.settle()
    await one.drop("a", "drop")
    await one.register("b", location, "register")
    await two.commit("b", "second")
    await two.settle()
    assert (await one.properties("b"))["last"] == "second"
    assert not (await ground.audit()).gaps


@story
async def test_a_table_registered_over_another_takes_its_name_in_one_step():
    """The server dies when only the pointer of the old table knows: whoever comes next finishes both halves."""
    ground, one, two = await two_servers("a", "b")
    location = (await one.catalog.tables.load(NAMESPACE, "b"))[1].location
    uuid = (await one.load("b")).uuid
    await one.drop("b", "drop")
    await died_after(ground, one, "put", POINTER, one.register("a", location, "K", overwrite=True))
    assert (await two.load("a")).uuid == uuid
    await two.register("a", location, "K", overwrite=True)
    assert len((await ground.audit()).operations(RequestKey("K", "", "").hash)) == 1


@story
async def test_a_drop_that_lost_to_a_replacement_does_not_say_that_the_name_is_free():
    _ground, one, two = await two_servers("a", "b")
    location = (await one.catalog.tables.load(NAMESPACE, "b"))[1].location
    await two.drop("b", "drop")
    for work in ("drop", "rename"):
        read = one.line.delay("get", POINTER) if work == "drop" else one.line.delay("put", COMMIT)
        late = await read.holds(one.drop("a", "K1") if work == "drop" else one.rename("a", "c", "K2"))
        await two.register("a", location, f"register {work}", overwrite=True)
        await read.answer()
        with pytest.raises(Conflict, match="replaced"):
            await late


@story
async def test_a_registration_over_a_name_that_others_change_looks_again():
    _ground, one, two = await two_servers("a", "b")
    location = (await one.catalog.tables.load(NAMESPACE, "b"))[1].location
    uuid = (await one.load("b")).uuid
    await two.drop("b", "drop b")

    async def rival_takes() -> None:
        await two.create("a", "again")

    async def rival_leaves() -> None:
        await two.drop("a", "drop a")

    one.line.before("put", POINTER, rival_leaves)  # there is nothing to replace any more
    one.line.before("put", MANIFEST, rival_takes)  # now there is
    await one.register("a", location, "K", overwrite=True)
    assert one.line.used_up
    assert (await two.load("a")).uuid == uuid


async def b_over_a(one: Server, two: Server) -> tuple[str, str, Delayed]:
    """One begins to register b's file as `a`, over the table that is there, and is held up; then b is a live table again.

    The identity of the table at `a`, the file, and the swing that is held up.
    """
    location = (await one.catalog.tables.load(NAMESPACE, "b"))[1].location
    await two.drop("b", "drop b")
    held_up = one.line.delay("put", MANIFEST)
    await held_up.holds(one.register("a", location, "K", overwrite=True))
    await two.undrop(await two.dropped("b"), "b", "undrop b")
    return (await two.ws.tier1.current()).names.entries[(NAMESPACE, "a")].uuid, location, held_up


@story
async def test_a_replacement_that_became_impossible_leaves_the_table_as_it_was():
    """Its server is dead, the tombstone stands, and its successor is bound elsewhere: whoever comes next is not stuck."""
    ground, one, two = await two_servers("a", "b")
    uuid, location, swing = await b_over_a(one, two)
    one.line.cut()
    ground.long_after()
    assert (await two.load("a")).uuid == uuid
    await two.commit("a", "commit")
    # A retry may still do it, once it is possible again; but only that.
    heir = (await two.load("b")).uuid
    await two.drop("b", "drop b again")
    await two.register("a", location, "K", overwrite=True)
    await swing.land()
    assert (await two.load("a")).uuid == heir


@story
async def test_a_refused_replacement_is_not_finished_later():
    """Not even if everything that stood in its way is gone without a trace."""
    ground, one, two = await two_servers("a")
    meant = (await one.load("a")).uuid
    stranger, location = await file_of_a_stranger(ground, two)

    async def rival() -> None:
        await two.register("c", location, "rival")

    one.line.before("put", MANIFEST, rival)
    with pytest.raises(AlreadyExists):
        await one.register("a", location, "K", overwrite=True)
    await two.drop("c", "drop c")
    purge = Purge(key_hash="purge", uuid=stranger, drop_id=(await two.dropped("c")).drop_id)
    await two.ws.committer.submit(purge, since=0)
    assert (await two.load("a")).uuid == meant


@story
async def test_a_table_that_was_purged_can_be_registered_again():
    """Nothing is left of it but its pointer, which is dead, and must not kill the new one."""
    ground, one, two = await two_servers("a")
    location = await one.commit("a", "commit")
    uuid = (await one.load("a")).uuid
    await one.drop("a", "drop")
    purge = Purge(key_hash="purge", uuid=uuid, drop_id=(await one.dropped("a")).drop_id)
    await one.ws.committer.submit(purge, since=0)
    await checkpoint(one.ws.tier1, ground.clock, one.ws.entropy)
    with pytest.raises(Conflict, match="its files are being deleted"):
        await two.register("b", location, "in the old place")
    await two.register("b", await copied(ground, location, uuid), "K")
    for server in (one, two, ground.server()):
        assert (await server.properties("b"))["last"] == "commit"


async def copied(ground: Ground, location: str, uuid: str) -> str:
    """A copy of a table that lies in another folder, and says so."""
    stored = await ground.store.get(location.removeprefix("file:///lake/"))
    assert stored is not None
    old, new = f"-{uuid}/".encode(), f"_copy-{uuid}/".encode()
    place = f"-{uuid}".encode()
    data = stored.data.replace(old, new).replace(place + b'"', b"_copy" + place + b'"')
    there = location.replace(f"-{uuid}/", f"_copy-{uuid}/")
    await ground.store.put(there.removeprefix("file:///lake/"), data, Absent())
    return there


async def file_of_a_stranger(ground: Ground, server: Server) -> tuple[str, str]:
    """A metadata file in the catalog's own place, of a table that it does not know."""
    _, base = await server.catalog.tables.load(NAMESPACE, "a")
    known, stranger = base.metadata.table_uuid, "6f1d9df0-0000-4000-8000-000000000001"
    location = base.location.replace(known, stranger)
    data = table.encode(base.metadata, location).replace(known.encode(), stranger.encode())
    await ground.store.put(location.removeprefix("file:///lake/"), data, Absent())
    return stranger, location


# What was dropped last


@story
async def test_what_was_dropped_last_does_not_depend_on_a_checkpoint():
    ground, one, _two = await two_servers()
    for number in range(6):
        await one.create("a", f"create {number}")
        ground.clock.at_ms += 1
        await one.drop("a", f"drop {number}")
    last = await one.dropped("a")
    await checkpoint(one.ws.tier1, ground.clock, one.ws.entropy)
    fresh = ground.server()
    assert await fresh.dropped("a") == last
    await one.undrop(last, "b", "undrop")
    assert (await one.dropped("a")).dropped_ms < last.dropped_ms
    assert await one.dropped("a") == await fresh.dropped("a")


@story
async def test_commit_times_never_go_back_also_after_a_checkpoint():
    ground, one, two = await two_servers("a")
    await checkpoint(one.ws.tier1, ground.clock, one.ws.entropy)
    ground.clock.at_ms -= 60_000
    await two.rename("a", "b", "rename")
    assert not (await ground.audit()).breaks


# Checkpoints


def state(server: Server) -> list[str]:
    return sorted(entry.name for entry in server.ws.tier1.names.inhabitants(NAMESPACE))


@story
async def test_a_checkpoint_lands_beside_what_is_committed_meanwhile():
    ground, one, two = await two_servers("a")

    async def rival() -> None:
        await two.create("b", "meanwhile")

    one.line.before("put", MANIFEST, rival)
    assert await checkpoint(one.ws.tier1, ground.clock, one.ws.entropy)
    manifest = one.ws.tier1.manifest
    assert (len(manifest.deltas), len(manifest.tail)) == (1, 1), "what came after it is the tail"
    fresh = ground.server()
    await fresh.ws.tier1.current()
    assert state(fresh) == state(one) == ["a", "b"]
    assert not (await ground.audit()).breaks


@story
async def test_a_base_lands_beside_what_is_committed_and_checkpointed_meanwhile():
    ground, one, two = await two_servers("a")
    assert await checkpoint(one.ws.tier1, ground.clock, one.ws.entropy)
    await one.create("b", "b")

    async def rival() -> None:
        await two.create("c", "meanwhile")
        assert await make_room(two.ws.tier1, ground.clock, two.ws.entropy), "who waits for room writes a delta"
        await two.create("d", "after it")

    one.line.before("put", MANIFEST, rival)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("arco.catalog.checkpoint.STATE_DELTAS_MAX", 1)
        assert await checkpoint(one.ws.tier1, ground.clock, one.ws.entropy)
    manifest = one.ws.tier1.manifest
    assert manifest.base is not None
    assert (len(manifest.deltas), len(manifest.tail)) == (1, 1), "the first delta is in the base, the second is not"
    fresh = ground.server()
    await fresh.ws.tier1.current()
    assert state(fresh) == state(one) == ["a", "b", "c", "d"]
    assert not (await ground.audit()).breaks


@story
async def test_a_checkpoint_that_others_made_too_is_left_alone():
    ground, one, two = await two_servers("a")

    async def rival() -> None:
        assert await checkpoint(two.ws.tier1, ground.clock, two.ws.entropy)

    one.line.before("put", MANIFEST, rival)
    assert not await checkpoint(one.ws.tier1, ground.clock, one.ws.entropy)
    fresh = ground.server()
    await fresh.ws.tier1.current()
    assert len(fresh.ws.tier1.manifest.deltas) == 1
    assert state(fresh) == ["a"]


@story
async def test_a_checkpoint_that_slept_for_a_day_is_given_up_for_its_file_may_be_gone():
    ground, one, two = await two_servers("a")

    async def rival() -> None:
        ground.clock.at_ms += 26 * 3600 * 1000
        await two.create("b", "meanwhile")

    one.line.before("put", MANIFEST, rival)
    assert not await checkpoint(one.ws.tier1, ground.clock, one.ws.entropy)
    fresh = ground.server()
    await fresh.ws.tier1.current()
    assert fresh.ws.tier1.manifest.deltas == ()
    assert state(fresh) == ["a", "b"]


# Markers


@story
async def test_rule_c6_a_refused_creation_is_durable_before_it_is_heard():
    _ground, one, two = await two_servers("a")
    marker = one.line.delay("put", MARKER, skip=1)
    refusal = await marker.holds(one.create("a", "K"))
    for _ in range(50):
        await asyncio.sleep(0)
    assert not refusal.done()
    await marker.answer()
    with pytest.raises(AlreadyExists):
        await refusal
    await two.drop("a", "drop")
    with pytest.raises(AlreadyExists):
        await two.create("a", "K")

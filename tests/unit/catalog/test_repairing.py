"""`verify --repair` makes again what can be derived, byte for byte, and leaves alone what cannot."""

import asyncio
from typing import Any

import pytest

from arco.catalog.checkpoint import checkpoint
from arco.catalog.repairing import repair
from arco.catalog.verify import verify
from arco.kernel.errors import Unavailable
from arco.kernel.limits import VERIFY_READ_AHEAD_MAX
from arco.storage.port import Always, ObjectInfo
from unit.catalog.ground import COMMIT, METADATA, POINTER, RECEIPT, Ground, Server, story
from unit.upkeep.ground import UpkeepGround
from unit.upkeep.table_ground import maintained_table


async def grown(ground: Ground) -> Server:
    server = ground.server()
    await server.found("a", "b")
    for number in range(5):
        await server.commit("a", f"commit {number}")
        await server.settle()
    return server


def objects(ground: Ground, part: str) -> dict[str, bytes]:
    return {key: one.data for key, one in ground.store._objects.items() if part in key}


async def findings(ground: Ground) -> list[str]:
    return [one.code for one in (await verify(ground.server().catalog, deep=True)).findings]


@story
async def test_a_whole_catalog_is_left_as_it_is():
    ground = Ground()
    await grown(ground)
    before = dict(ground.store._objects)
    found = await repair(ground.server().catalog)
    assert (found.done, found.failed) == ((), ())
    assert ground.store._objects == before


@story
async def test_receipts_that_are_missing_are_written_again_byte_for_byte():
    ground = Ground()
    await grown(ground)
    before = objects(ground, RECEIPT)
    for key in before:
        if '"commit_number":2' in before[key].decode() or '"commit_number":5' in before[key].decode():
            await ground.store.delete(key)
    assert len(objects(ground, RECEIPT)) == len(before) - 2
    assert await findings(ground) == ["receipt_gap"]
    found = await repair(ground.server().catalog)
    assert [text.partition(" was")[0] for text in found.done] == [
        "the receipt of commit 5 of db.a",
        "the receipt of commit 2 of db.a",
    ]
    assert objects(ground, RECEIPT) == before
    assert await findings(ground) == []


@story
async def test_a_receipt_is_not_made_up_for_a_commit_that_lost_its_swing():
    """What was written just before a commit says only that it was about to happen."""
    ground = Ground()
    server = await grown(ground)
    slow = ground.server()
    held = slow.line.delay("put", POINTER)
    losing = await held.holds(slow.commit("a", "loser"))
    await server.commit("a", "winner")
    await server.commit("a", "after")
    await server.settle()
    held.fall_silent()
    losing.cancel()
    lost = [key for key, data in objects(ground, RECEIPT).items() if '"commit_number":6' in data.decode()]
    assert len(lost) == 1
    before = objects(ground, RECEIPT)
    await ground.store.delete(lost[0])
    await repair(ground.server().catalog)
    assert objects(ground, RECEIPT) == before


@story
async def test_of_two_attempts_of_one_commit_the_receipt_is_that_of_the_file_they_share():
    """The second adopted what the first had written before midnight, and said of it when it had computed its own."""
    ground = UpkeepGround()
    server = await grown(ground)
    day_ms = 86_400_000
    ground.clock.at_ms += day_ms - ground.clock.at_ms % day_ms - 60_000
    slow = ground.server()
    held = slow.line.delay("put", POINTER)
    losing = await held.holds(slow.commit("a", "shared"))
    held.fall_silent()
    losing.cancel()
    ground.later(700)
    await ground.server().commit("a", "shared")
    for label in ("after", "last"):
        await server.commit("a", label)
    await server.settle()
    assert len({key[:40] for key, data in objects(ground, "/pending/").items() if b'"commit_number":6' in data}) == 2
    before = objects(ground, RECEIPT)
    (lost,) = [key for key, data in before.items() if b'"commit_number":6' in data]
    await ground.store.delete(lost)
    found = await repair(ground.server().catalog)
    assert found.done == ("the receipt of commit 6 of db.a was written",)
    assert objects(ground, RECEIPT).keys() == before.keys()
    assert await findings(ground) == []


@story
async def test_a_gap_whose_commit_left_nothing_behind_stays_a_finding():
    ground = Ground()
    await grown(ground)
    for key, data in objects(ground, "/events/").items():
        if '"commit_number":2' in data.decode():
            await ground.store.delete(key)
    found = await repair(ground.server().catalog)
    assert found.done == ()
    assert await findings(ground) == ["receipt_gap"]


@story
async def test_the_state_is_made_again_from_a_chain_that_is_whole():
    ground = Ground()
    server = await grown(ground)
    await checkpoint(server.ws.tier1, server.ws.clock, server.ws.entropy)
    await server.make_namespace("more", "more")
    (state,) = objects(ground, "/core/state/")
    await ground.store.put(state, b"damaged", Always())
    assert await findings(ground) == ["state_altered"]
    found = await repair(ground.server().catalog)
    assert found.done == ("the state of 4 commits was made again from their chain",)
    assert await findings(ground) == []
    assert (await ground.server().load("a")).name == "a"


@story
async def test_the_state_is_not_made_again_from_a_chain_that_is_not_whole():
    ground = Ground()
    server = await grown(ground)
    await checkpoint(server.ws.tier1, server.ws.clock, server.ws.entropy)
    for part in ("/core/state/", COMMIT):
        key = min(objects(ground, part))
        await ground.store.put(key, b"damaged", Always())
    before = dict(ground.store._objects)
    found = await repair(ground.server().catalog)
    assert "the chain of commits is not whole" in found.failed[0]
    assert objects(ground, "/manifests/") == {key: one.data for key, one in before.items() if "/manifests/" in key}


@story
async def test_a_drop_that_was_left_half_done_is_finished():
    ground = Ground()
    await grown(ground)
    dying = ground.server()
    held = dying.line.delay("put", COMMIT)
    dropping = await held.holds(dying.drop("b", "drop"))
    dropping.cancel()
    found = await repair(ground.server().catalog)
    assert found.done == ("what was begun with db.b was finished",)


@story
async def test_a_registration_whose_file_is_gone_is_not_called_finished():
    ground = Ground()
    server = await grown(ground)
    location = (await server.catalog.tables.load(("db",), "a"))[1].location
    await server.drop("a", "drop")
    await server.register("a", location, "register")
    await server.settle()
    pointer = f"{(await server.load('a')).uuid}.json"
    for part in (pointer, location.rpartition("/")[2]):
        for key in objects(ground, part):
            await ground.store.delete(key)
    found = await repair(ground.server().catalog)
    assert found.done == ()
    (failed,) = found.failed
    assert failed.startswith("db.a: ")
    assert location in failed


@story
async def test_a_pointer_or_a_metadata_file_is_never_made_up():
    ground = Ground()
    await grown(ground)
    for part in (POINTER, METADATA):
        for key in objects(ground, part):
            await ground.store.delete(key)
    found = await repair(ground.server().catalog)
    assert found.done == ()
    assert set(await findings(ground)) == {"pointer_missing"}


@story
async def test_a_table_that_cannot_be_read_keeps_no_other_from_being_repaired_and_is_told_once():
    ground = Ground()
    server = ground.server()
    await server.found("a", "b", "c")
    for name in "abc":
        for number in range(3):
            await server.commit(name, f"{number} of {name}")
            await server.settle()
    before = objects(ground, RECEIPT)
    for key, data in before.items():
        if '"commit_number":1' in data.decode() or '"commit_number":3' in data.decode():
            await ground.store.delete(key)
    first = await server.load("a")
    (bad,) = [key for key in objects(ground, POINTER) if first.uuid in key]
    await ground.store.put(bad, b"{broken", Always())
    found = await repair(ground.server().catalog)
    assert sorted(text.partition(" was")[0] for text in found.done) == [
        f"the receipt of commit {number} of db.{name}" for number in (1, 3) for name in "bc"
    ]
    (failed,) = found.failed
    assert failed.startswith("db.a: ")
    assert bad in failed
    assert len(objects(ground, RECEIPT)) == len(before) - 2, "those of the table that cannot be read"


@story
async def test_what_was_repaired_before_a_step_came_to_its_end_is_told():
    ground = Ground()
    server = await grown(ground)
    for key, data in objects(ground, RECEIPT).items():
        if '"commit_number":2' in data.decode() or '"commit_number":3' in data.decode():
            await ground.store.delete(key)
    repairing = ground.server()
    ensure, written = repairing.ws.receipts.ensure, 0

    async def second_fails(*arguments: Any) -> None:
        nonlocal written
        written += 1
        if written == 2:
            raise Unavailable("the store is gone")
        await ensure(*arguments)

    repairing.ws.receipts.ensure = second_fails
    found = await repair(repairing.catalog)
    assert found.done == ("the receipt of commit 2 of db.a was written",)
    assert [text.partition(": ")[0] for text in found.failed] == ["db.a"]
    assert (await server.load("a")).name == "a"


# Down to the files


@story
async def test_verify_walks_down_to_the_files_and_says_what_is_gone():
    ground = UpkeepGround()
    table = await maintained_table(ground)
    data, manifest, listed = await table.publish(1)
    report = await verify(ground.server().catalog)
    assert (report.clean, report.counts["data_files"], report.counts["manifests"]) == (True, 1, 1)
    await ground.store.put(table.key(data), b"longer", Always())
    assert await findings(ground) == ["file_altered"]
    assert [one.code for one in (await verify(ground.server().catalog)).findings] == ["file_altered"]
    quick = await verify(ground.server().catalog, files=False, deep=True)
    assert (quick.clean, "data_files" in quick.counts) == (True, False)
    await ground.store.delete(table.key(data))
    assert await findings(ground) == ["file_missing"]
    await ground.store.put(table.key(manifest), b"damaged", Always())
    assert await findings(ground) == ["snapshot_manifest_unreadable"]
    await ground.store.delete(table.key(manifest))
    assert await findings(ground) == ["snapshot_manifest_missing"]
    await ground.store.delete(table.key(listed))
    assert await findings(ground) == ["snapshot_list_missing"]


def test_files_beyond_what_is_remembered_of_a_listing_are_asked_for_side_by_side(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("arco.catalog.verify_files.VERIFY_FILES_LISTED_MAX", 5)
    asyncio.run(_asked_for_side_by_side())


async def _asked_for_side_by_side() -> None:
    ground = UpkeepGround()
    table = await maintained_table(ground)
    for number in range(1, 41):
        await table.publish(number)
    assert (await verify(ground.server().catalog)).counts["data_files"] == 40
    await ground.store.delete(table.key(table.files[40][0]))
    server = ground.server()
    head, under_way, most = server.line.head, 0, 0

    async def watched(key: str) -> ObjectInfo | None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        under_way -= 1
        return await head(key)

    server.line.head = watched
    assert [one.code for one in (await verify(server.catalog)).findings] == ["file_missing"]
    assert most == VERIFY_READ_AHEAD_MAX - 5, "all of a batch but those that the listing had"


@story
async def test_verify_looks_at_old_snapshots_and_says_little_of_many():
    ground = UpkeepGround()
    table = await maintained_table(ground)
    for number in range(1, 31):
        await table.publish(number)
        await ground.store.delete(table.key(table.files[number][0]))
    found = await findings(ground)
    assert (found.count("file_missing"), found.count("more_files")) == (20, 1)

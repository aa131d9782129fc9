"""Markers, receipts, metadata files and what tier 1 leaves: what goes, and who hears of it who comes too late."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from arco.catalog.checkpoint import checkpoint
from arco.catalog.feed import Feed
from arco.catalog.feed_pages import Fed, FeedPages
from arco.catalog.idempotency import RequestKey
from arco.catalog.verify import verify
from arco.iceberg import requests
from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import OutcomeUnknown
from arco.kernel.ids import new_uuid7
from arco.kernel.limits import CAS_RECENT_WRITES_MAX
from arco.ledger.receipts import Source
from unit.catalog.ground import (
    COMMIT,
    MANIFEST,
    MARKER,
    METADATA,
    NAMESPACE,
    POINTER,
    RECEIPT,
    Server,
    commit_key,
    setting,
    story,
)
from unit.upkeep.ground import DAY_S, HOUR_S, UpkeepGround

PENDING = "/pending/"


async def one_table(ground: UpkeepGround) -> Server:
    server = ground.server()
    await server.found("a")
    return server


# Markers


@story
async def test_a_marker_is_kept_for_a_day_after_its_keys_lifetime():
    ground = UpkeepGround()
    server = await one_table(ground)
    await server.commit("a", "one")
    await server.settle()
    ground.later(25 * HOUR_S)
    assert (await ground.upkeep("markers"))["markers"].deleted == 0
    ground.later(1)
    report = (await ground.upkeep("markers"))["markers"]
    assert (report.deleted, report.looked_at) == (2, 2), "the creation's and the commit's"
    assert report.oldest_s == 25 * HOUR_S + 1
    assert not ground.objects(MARKER)


@story
async def test_a_dry_run_says_what_would_go_and_why_and_deletes_nothing():
    ground = UpkeepGround()
    server = await one_table(ground)
    await server.commit("a", "one")
    await server.settle()
    ground.later(200 * DAY_S)
    before = ground.objects()
    reports = await ground.upkeep(dry_run=True)
    assert ground.objects() == sorted([*before, "t/w/_catalog/upkeep/clock.json"])
    assert reports["markers"].deleted == 2
    assert [one.why for one in reports["markers"].examples] == ["the lifetime of its key ended more than a day ago"] * 2
    assert all(one.key.startswith("t/w/_catalog/iceberg_idempotency/") for one in reports["markers"].examples)


@story
async def test_a_claim_that_slept_until_its_marker_was_collected_is_not_acted_upon():
    """Nobody can tell whether the same request was done in between."""
    ground = UpkeepGround()
    slow, quick = await one_table(ground), ground.server()
    body, key = setting("one"), new_uuid7(ground.clock, SeededEntropy("client"))
    held = slow.line.delay("put", MARKER)
    sleeping = await held.holds(slow.commit("a", key, body))
    await quick.commit("a", "another")
    await quick.commit("a", key, body)
    await quick.commit("a", "third")
    await quick.settle()
    ground.later(10 * DAY_S)
    await ground.upkeep()
    await held.answer()
    with pytest.raises(OutcomeUnknown, match="its record may be gone"):
        await sleeping
    assert len((await ground.audit()).landings(quick.ws.files.name(commit_key(key, body), 0, ""))) <= 1
    assert (await ground.server().properties("a"))["last"] == "third"


@story
async def test_a_commit_that_woke_up_after_its_receipt_was_collected_does_not_commit_again():
    ground = UpkeepGround()
    slow, quick = ground.server(), ground.server()
    await slow.found()
    await slow.create("a", "create", properties={"write.metadata.previous-versions-max": "1"})
    key = RequestKey("unkeyed", "updateTable", "1", durable=False)
    heard = slow.line.delay("put", POINTER)
    wanted = requests.parse_commit_table(setting("one"))
    sleeping = await heard.holds(slow.catalog.table_commits.commit(NAMESPACE, "a", wanted, key, Source()))
    await heard.land()
    for number in range(CAS_RECENT_WRITES_MAX + 2):
        await quick.commit("a", f"{number}")
    await quick.settle()
    ground.later(100 * DAY_S)
    await ground.upkeep()
    heard.fall_silent()
    with pytest.raises(OutcomeUnknown, match="its record may be gone"):
        await sleeping
    assert (await ground.server().properties("a"))["last"] == f"{CAS_RECENT_WRITES_MAX + 1}"


# Receipts


@story
async def test_receipts_of_commits_that_were_about_to_happen_go_after_a_day():
    ground = UpkeepGround()
    server = await one_table(ground)
    await server.commit("a", "one")
    await server.settle()
    assert ground.objects(PENDING)
    ground.later(24 * HOUR_S)
    await ground.upkeep("receipts")
    assert ground.objects(PENDING)
    ground.later(2 * HOUR_S)
    await ground.upkeep("receipts")
    assert not ground.objects(PENDING)
    assert len(ground.objects(RECEIPT)) == 2, "nobody folded these"


@story
async def test_receipts_that_nobody_folded_go_after_90_days_but_for_the_last():
    ground = UpkeepGround()
    server = await one_table(ground)
    for label in ("one", "two", "three"):
        await server.commit("a", label)
    await server.settle()
    ground.later(89 * DAY_S)
    await ground.upkeep("receipts")
    assert len(ground.objects(RECEIPT)) == 4
    ground.later(2 * DAY_S)
    await ground.upkeep("receipts")
    (last,) = ground.objects(RECEIPT)
    pointer = await server.ws.pointers.read((await server.load("a")).uuid)
    assert pointer is not None
    assert server.ws.receipts.name(pointer.value.published[0]) == last
    assert (await verify(ground.server().catalog, deep=True)).clean


@story
async def test_a_receipt_that_was_collected_and_written_again_makes_no_gap():
    """A server that loaded the table before the pass makes sure of the receipt of what it loaded."""
    ground = UpkeepGround()
    old, server = ground.server(), await one_table(ground)
    await server.commit("a", "one")
    await old.load("a")
    for label in ("two", "three"):
        await server.commit("a", label)
    await server.settle()
    ground.later(91 * DAY_S)
    await ground.upkeep("receipts")
    assert len(ground.objects(RECEIPT)) == 1
    await old.commit("a", "four")
    await old.settle()
    assert len(ground.objects(RECEIPT)) == 3
    assert (await verify(ground.server().catalog, deep=True)).clean
    await server.commit("a", "five")
    await server.settle()
    (lost,) = [key for key in ground.objects(RECEIPT) if b'"commit_number":4' in ground.store._objects[key].data]
    await ground.store.delete(lost)
    found = await verify(ground.server().catalog, deep=True)
    assert [(one.code, "of commits 4 of" in one.what) for one in found.findings] == [("receipt_gap", True)]


# Metadata files


async def lost_a_race(ground: UpkeepGround, slow: Server) -> str:
    """The metadata file of a commit whose swing was lost to another."""
    quick = ground.server()
    held = slow.line.delay("put", POINTER)
    losing = await held.holds(slow.commit("a", "loses"))
    before = set(ground.objects(METADATA))
    (orphan,) = [key for key in before if slow.digits_of("loses") in key]
    await quick.commit("a", "wins")
    await held.answer()
    await losing
    await slow.settle()
    await quick.settle()
    return orphan


@story
async def test_the_file_of_a_commit_that_lost_its_swing_goes_and_no_other():
    ground = UpkeepGround()
    server = await one_table(ground)
    orphan = await lost_a_race(ground, server)
    ground.later(24 * HOUR_S)
    await ground.upkeep("metadata")
    assert orphan in ground.objects()
    ground.later(2 * HOUR_S)
    before = ground.objects(METADATA)
    report = (await ground.upkeep("metadata"))["metadata"]
    assert report.deleted == 1
    assert ground.objects(METADATA) == [key for key in before if key != orphan]


@story
async def test_rule_u2_the_file_of_a_commit_that_may_still_swing_stays():
    """Two commits on one base have two files under one number, and either may be the one that lands."""
    ground = UpkeepGround()
    server, other = await one_table(ground), ground.server()
    held, dead = server.line.delay("put", POINTER), other.line.delay("put", POINTER)
    slow = await held.holds(server.commit("a", "slow"))
    await dead.holds(other.commit("a", "dead"))
    other.line.cut()
    ground.later(10 * DAY_S)
    await ground.upkeep("metadata")
    await held.answer()
    await slow
    await server.settle()
    assert (await ground.server().properties("a"))["last"] == "slow"
    report = (await ground.upkeep("metadata"))["metadata"]
    assert report.deleted == 1, "now the other never will"


@story
async def test_trap_t20_files_of_a_history_that_was_cut_short_stay():
    """A table that remembers one file before the current one: older ones were commits all the same."""
    ground = UpkeepGround()
    server = ground.server()
    await server.found()
    await server.create("a", "create", properties={"write.metadata.previous-versions-max": "1"})
    orphan = await lost_a_race(ground, server)
    for number in range(6):
        await server.commit("a", f"{number}")
    await server.settle()
    ground.later(30 * HOUR_S)
    before = ground.objects(METADATA)
    await ground.upkeep("metadata")
    assert ground.objects(METADATA) == [key for key in before if key != orphan]
    assert (await verify(ground.server().catalog)).clean


# Tier 1


@story
async def test_commits_beside_the_chain_go_and_the_chain_stays_whole():
    ground = UpkeepGround()
    slow, quick = await one_table(ground), ground.server()
    held = slow.line.delay("put", MANIFEST)
    losing = await held.holds(slow.create("b", "slow"))
    for name in ("c", "d", "e"):
        await quick.create(name, name)
    await held.answer()
    await losing
    commits = len(ground.objects(COMMIT))
    ground.later(2 * DAY_S)
    report = (await ground.upkeep("names"))["names"]
    assert (report.deleted, len(ground.objects(COMMIT))) == (1, commits - 1)
    found = await verify(ground.server().catalog, deep=True)
    assert found.clean
    assert found.counts["commits_beside_the_chain"] == 0


@story
async def test_a_swing_that_slept_through_a_clean_up_cannot_name_what_is_gone():
    ground = UpkeepGround()
    slow = await one_table(ground)
    held = slow.line.delay("put", MANIFEST)
    sleeping = await held.holds(slow.make_namespace("other", "slow"))
    ground.later(10 * DAY_S)
    assert (await ground.upkeep("names"))["names"].deleted == 1
    await held.answer()
    await sleeping
    assert (await verify(ground.server().catalog)).clean
    assert ("other",) in (await ground.server().ws.tier1.current()).names.namespaces


@story
async def test_files_of_state_that_a_newer_base_replaced_go():
    ground = UpkeepGround()
    server = await one_table(ground)
    for number in range(3):
        await server.create(f"t{number}", f"{number}")
        await checkpoint(server.ws.tier1, ground.clock, server.ws.entropy)
        ground.later(2 * HOUR_S)
    assert len(ground.objects("/core/state/")) == 3
    ground.later(2 * DAY_S)
    await ground.upkeep("names")
    assert len(ground.objects("/core/state/")) == 2, "a base, and a delta after it"
    assert len((await ground.server().ws.tier1.current()).names.entries) == 4


# The feed of events


@story
async def test_no_receipt_goes_before_the_feed_has_told_it():
    ground = UpkeepGround()
    server = await one_table(ground)
    await Feed(server.catalog.parts).refresh()
    for number in range(3):
        await server.commit("a", f"change {number}")
    await server.settle()
    ground.later(100 * DAY_S)
    dry = (await ground.upkeep("receipts", dry_run=True))["receipts"]
    report = (await ground.upkeep("receipts"))["receipts"]
    assert (dry.deleted, dry.why, dry.kept) == (report.deleted, report.why, report.kept)
    feed = Feed(ground.server().catalog.parts)
    told = [event["operation"]["operation-type"] async for event in all_events(feed)]
    assert told.count("update-table") == 3
    assert len(ground.objects("/committed/")) == 1, "that of the last swing"


@story
async def test_a_root_whose_feed_nobody_reads_gets_none():
    ground = UpkeepGround()
    server = await one_table(ground)
    await server.commit("a", "one")
    await server.settle()
    ground.later(100 * DAY_S)
    await ground.upkeep()
    assert not ground.objects("/feed/")


@story
async def test_checkpoints_of_the_feed_go_when_a_newer_one_is_there():
    ground = UpkeepGround()
    server = await one_table(ground)
    feed = Feed(server.catalog.parts)
    await feed.refresh()
    pages = FeedPages(server.catalog.parts.tier1.store, server.catalog.parts.scope, ground.clock, SeededEntropy(4))
    for number in (1, 2, 3):
        await pages.write_checkpoint(Fed(number))
    ground.later(26 * HOUR_S)
    assert (await ground.upkeep("feed"))["feed"].deleted == 2
    assert [key[-8:] for key in ground.objects("/feed/checkpoints/")] == ["003.json"]
    assert ground.objects("/feed/pages/")


async def all_events(feed: Feed) -> AsyncIterator[dict[str, Any]]:
    number = 1
    while (page := await feed.page(number)) is not None:
        for event in page.events:
            yield event
        number += 1

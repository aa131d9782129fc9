"""Commits of one table, rule by rule: what every attempt does in which order, and what happens if it is late.

Each rule has a planted bug (`tests/simulation/mutants`) that takes it away and must fail here or in a scenario.
"""

import asyncio

import pytest

from arco.catalog.idempotency import Marker
from arco.catalog.policy import LocationPolicy
from arco.iceberg import table
from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import Conflict, InvalidInput, NoSuchTable, OutcomeUnknown, RetryLater
from arco.kernel.ids import new_uuid7
from arco.kernel.limits import IDEMPOTENCY_KEY_LEAD_S, IDEMPOTENCY_LIFETIME_S, REQUEST_FRESH_S
from stand_ins.hand_clock import HandClock
from stand_ins.shared_store import Delayed
from unit.catalog.ground import (
    MANIFEST,
    MARKER,
    METADATA,
    POINTER,
    RECEIPT,
    Ground,
    Server,
    commit_key,
    new_column,
    setting,
    story,
)


async def swing_under_way(ground: Ground, server: Server, body=None) -> Delayed:
    """A server dies with the swing of commit K on its way to the store; so long ago that the key may be taken over."""
    swing = server.line.delay("put", POINTER)
    await swing.holds(server.commit("a", "K", body))
    server.line.cut()
    ground.long_after()
    return swing


async def landings(ground: Ground, server: Server, body=None) -> list[tuple[str, int]]:
    await server.settle()
    found = await ground.audit()
    assert not found.gaps
    return found.landings(server.file_of("K", body))


async def marker_of(server: Server, key: str) -> Marker:
    return (await server.ws.markers.existing(commit_key(key, setting(key)))).value


# C1


@story
async def test_rule_c1_a_swing_needs_exactly_the_version_it_was_prepared_for():
    ground = Ground()
    one, two = ground.server(), ground.server()
    await one.found("a")

    async def rival():
        await two.commit("a", "rival")
        await two.settle()

    one.line.before("put", POINTER, rival)
    await one.commit("a", "K")
    assert [number for _, number in await landings(ground, one)] == [2]
    assert [number for _, number in (await ground.audit()).landings(two.file_of("rival"))] == [1]


@story
async def test_rule_c1_every_further_swing_has_its_own_marker_write_before_it():
    """A stalled attempt lost its base, and its successor commits meanwhile: the marker tells it to stop."""
    ground = Ground()
    one, two, three = ground.server(), ground.server(), ground.server()
    await one.found("a")

    async def rival():
        await three.commit("a", "first rival")
        await three.settle()

    async def successor():
        ground.long_after()
        await two.commit("a", "K")
        await two.settle()
        await three.commit("a", "second rival")
        await three.settle()

    one.line.before("put", POINTER, rival)
    # Once to look back after the lost swing, once more for the next base.
    one.line.before("get", POINTER, successor, skip=1)
    with pytest.raises(OutcomeUnknown, match="took over"):
        await one.commit("a", "K")
    assert one.line.used_up
    assert len(await landings(ground, two)) == 1


# C2


@story
async def test_rule_c2_a_commit_does_not_follow_a_table_to_another_name():
    ground = Ground()
    one, two = ground.server(), ground.server()
    await one.found("a")
    await two.load("a")
    await one.rename("a", "b", "rename")
    again = await one.create("a", "again")
    await two.commit("a", "K")
    assert [uuid for uuid, _ in await landings(ground, two)] == [again]
    assert "last" not in await one.properties("b")


@story
async def test_rule_c2_the_swing_waits_for_the_answer_about_the_name():
    ground = Ground()
    one, two = ground.server(), ground.server()
    await one.found("a")
    await two.load("a")
    checked, claimed = two.line.delay("head", MANIFEST), two.line.reached("put", MARKER)
    working = await checked.holds(two.commit("a", "K"))
    await claimed.wait()
    await one.rename("a", "b", "rename")
    await checked.answer()
    with pytest.raises(NoSuchTable):
        await working
    assert "last" not in await one.properties("b")


@story
async def test_rule_c2_a_marker_made_from_an_old_name_leads_nobody_to_the_table_that_was_renamed():
    """The name was wrong when the key was claimed, and nobody learned it, because the claimer died."""
    ground = Ground()
    one, two = ground.server(), ground.server()
    await one.found("a")
    await two.load("a")
    await one.rename("a", "b", "rename")
    again = await one.create("a", "again")
    checked, claimed = two.line.delay("head", MANIFEST), two.line.reached("put", MARKER)
    await checked.holds(two.commit("a", "K"))
    await claimed.wait()
    two.line.cut()
    ground.long_after()
    await one.commit("a", "K")
    assert [uuid for uuid, _ in await landings(ground, one)] == [again]
    assert "last" not in await one.properties("b")


# C3


@story
async def test_rule_c3_two_attempts_on_one_base_share_a_file_and_its_bytes():
    ground = Ground()
    one, two = ground.server(), ground.server()
    await one.found("a")
    before = len([key for key in (await ground.audit()).objects if key.endswith(METADATA)])
    await swing_under_way(ground, one)
    location = await two.commit("a", "K")
    files = {key: data for key, data in (await ground.audit()).objects.items() if key.endswith(METADATA)}
    assert len(files) == before + 1
    data = next(data for key, data in files.items() if location.endswith(key))
    _, base = await two.catalog.tables.load(("db",), "a")
    assert base.metadata.document == table.decode(data, location).document
    assert base.pointer.value.updated_at_ms == table.facts(table.decode(data, location)).last_updated_ms


@story
async def test_rule_c3_a_takeover_keeps_a_file_that_an_older_version_named():
    """While its base is current the swing of the older one may still land: under another name nobody would know it again."""
    ground = Ground()
    one, two = ground.server(), ground.server()
    await one.found("a")
    older = f"00001-{'ab' * 16}.metadata.json"
    one.ws.files.name = lambda *_: older  # type: ignore[method-assign]
    body = new_column(1, "b")
    swing = await swing_under_way(ground, one, body)
    two.line.before("put", POINTER, swing.land)
    assert (await two.commit("a", "K", body)).endswith(older)
    assert two.line.used_up
    assert [pointer.commit_number for pointer in (await ground.audit()).pointers.values()] == [1]


@story
async def test_rule_c3_a_swing_that_lands_after_the_takeover_looked_is_not_repeated():
    ground = Ground()
    one, two, three = ground.server(), ground.server(), ground.server()
    await one.found("a")
    swing = await swing_under_way(ground, one)

    async def late():
        await swing.land()
        await three.commit("a", "rival")
        await three.settle()

    two.line.after("put", MARKER, late, skip=1)
    await two.commit("a", "K")
    assert two.line.used_up
    assert len(await landings(ground, two)) == 1
    assert (await two.properties("a"))["last"] == "rival"


@story
async def test_rule_c3_the_base_of_a_marker_never_decreases():
    """A takeover by a server that remembers the table as it was long ago: the marker must not lead back there."""
    ground = Ground()
    one, two, three = ground.server(), ground.server(), ground.server()
    await one.found("a")
    await three.load("a")
    for label in ("x", "y"):
        await two.commit("a", label)
        await two.settle()
    await swing_under_way(ground, one)
    claimed = await marker_of(two, "K")
    assert claimed.base_commit_number == 2
    bases = []

    async def look():
        bases.append((await marker_of(two, "K")).base_commit_number)

    three.line.before("put", POINTER, look)
    await three.commit("a", "K")
    assert bases == [2]
    assert [number for _, number in await landings(ground, three)] == [3]


# C4


@story
async def test_rule_c4_a_lost_swing_looks_for_its_file_in_history_first():
    """The successor shares the stalled attempt's file; the stalled swing lands first, and is the same commit."""
    ground = Ground()
    one, two, three = ground.server(), ground.server(), ground.server()
    await one.found("a")
    swing = await swing_under_way(ground, one)

    async def late():
        await swing.land()
        await three.commit("a", "rival")
        await three.settle()

    two.line.before("put", POINTER, late)
    await two.commit("a", "K")
    assert len(await landings(ground, two)) == 1
    assert (await two.properties("a"))["last"] == "rival"


@story
async def test_rule_c4_requirements_that_our_own_commit_broke_are_no_refusal():
    ground = Ground()
    one, two = ground.server(), ground.server()
    await one.found("a")
    body = new_column(1, "b")
    swing = await swing_under_way(ground, one, body)
    two.line.after("put", MARKER, swing.land, skip=1)
    await two.commit("a", "K", body)
    assert len(await landings(ground, two, body)) == 1


# C5


@story
async def test_rule_c5_recovery_asks_receipts_where_the_metadata_log_is_short():
    """Hazard 1: the commit landed, its server died, others followed; the head and a short log know nothing of it."""
    ground = Ground()
    one, two, three = ground.server(), ground.server(), ground.server()
    await one.found()
    await one.create("a", "create", properties={"write.metadata.previous-versions-max": "1"})
    swing = one.line.delay("put", POINTER)
    await swing.holds(one.commit("a", "K"))
    one.line.cut()
    await swing.land()
    ground.long_after()
    for label in ("x", "y", "z"):
        await three.commit("a", label)
        await three.settle()
    _, base = await three.catalog.tables.load(("db",), "a")
    assert len(base.metadata.document["metadata-log"]) == 1
    answered = await two.commit("a", "K")
    assert [number for _, number in await landings(ground, two)] == [1]
    assert "/00001-" in answered


async def delete(ground: Ground, location: str) -> None:
    """As PyIceberg does right after a commit, where the log no longer names a file and the table says that such files go."""
    key = location.removeprefix("file:///lake/")
    assert await ground.store.head(key) is not None
    await ground.store.delete(key)


@story
async def test_rule_c5_a_commit_whose_file_its_table_has_deleted_since_is_neither_refused_nor_done_again():
    """As above, and the file is gone. Who hears a no deletes the data that it has committed; done again, it is there twice."""
    ground = Ground()
    one, two, three = ground.server(), ground.server(), ground.server()
    await one.found()
    await one.create("a", "create", properties={"write.metadata.previous-versions-max": "1"})
    body = new_column(1, "b")
    swing = one.line.delay("put", POINTER)
    await swing.holds(one.commit("a", "K", body))
    one.line.cut()
    await swing.land()
    location = (await three.catalog.tables.load(("db",), "a"))[1].location
    ground.long_after()
    for label in ("x", "y", "z"):
        await three.commit("a", label)
        await three.settle()
    await delete(ground, location)
    for _ in range(2):
        with pytest.raises(OutcomeUnknown, match="cannot be shown any more"):
            await two.commit("a", "K", body)
    assert [number for _, number in await landings(ground, two, body)] == [1]


@story
async def test_a_retry_of_a_commit_that_was_answered_and_whose_file_is_gone_is_not_told_that_it_failed():
    ground = Ground()
    one, two = ground.server(), ground.server()
    await one.found("a")
    location = await one.commit("a", "K")
    await one.commit("a", "next")
    await one.settle()
    await delete(ground, location)
    with pytest.raises(OutcomeUnknown, match="cannot be shown any more"):
        await two.commit("a", "K")
    assert len(await landings(ground, two)) == 1


@story
async def test_a_retry_of_a_creation_whose_file_is_gone_is_not_told_that_it_failed():
    ground = Ground()
    one, two = ground.server(), ground.server()
    await one.found()
    await one.create("a", "create")
    location = (await one.catalog.tables.load(("db",), "a"))[1].location
    await one.commit("a", "next")
    await one.settle()
    await delete(ground, location)
    with pytest.raises(OutcomeUnknown, match="cannot be shown any more"):
        await two.create("a", "create")


# C6


@story
async def test_rule_c6_a_refusal_is_not_computed_from_remembered_metadata():
    ground = Ground()
    one, two = ground.server(), ground.server()
    await one.found("a")
    await two.load("a")
    await one.commit("a", "column", new_column(1, "b"))
    await two.commit("a", "K", new_column(2, "c"))


@story
async def test_rule_c6_a_refusal_is_not_computed_for_the_table_that_a_name_meant_before():
    ground = Ground()
    one, two = ground.server(), ground.server()
    await one.found("a")
    await two.load("a")
    await one.rename("a", "b", "rename")
    again = await one.create("a", "again")
    await two.commit("a", "K", setting("K", {"type": "assert-table-uuid", "uuid": again}))


@story
async def test_rule_c6_a_refusal_is_durable_before_it_is_heard():
    ground = Ground()
    one, two = ground.server(), ground.server()
    await one.found("a")
    body = new_column(2, "c")
    marker = one.line.delay("put", MARKER)
    refusal = await marker.holds(one.commit("a", "K", body))
    for _ in range(50):
        await asyncio.sleep(0)
    assert not refusal.done()
    await marker.answer()
    with pytest.raises(Conflict):
        await refusal
    # It would apply now; but a client that was refused has cleaned up.
    await two.commit("a", "column", new_column(1, "b"))
    with pytest.raises(Conflict):
        await two.commit("a", "K", body)


@story
async def test_rule_c6_a_refusal_kills_the_swing_of_the_attempt_before():
    """The first server allowed a place for the metadata that the second does not; its swing is still on its way."""
    ground = Ground()
    one, two = ground.server(elsewhere()), ground.server()
    await one.found("a")
    body = elsewhere_body()
    swing = await swing_under_way(ground, one, body)
    with pytest.raises(InvalidInput):
        await two.commit("a", "K", body)
    await swing.land()
    assert not await landings(ground, two, body)


@story
async def test_rule_c6_a_swing_that_lands_just_before_the_touch_is_no_refusal():
    ground = Ground()
    one, two = ground.server(elsewhere()), ground.server()
    await one.found("a")
    body = elsewhere_body()
    swing = await swing_under_way(ground, one, body)
    two.line.before("put", POINTER, swing.land)
    await two.commit("a", "K", body)
    assert two.line.used_up
    assert len(await landings(ground, two, body)) == 1


def elsewhere() -> LocationPolicy:
    """A policy that allows a folder outside. Nothing is written there: clients would put their data files into it."""
    return LocationPolicy.of(["file:/elsewhere"], SystemClock(), SeededEntropy("policy"))


def elsewhere_body() -> dict:
    update = {"action": "set-properties", "updates": {"write.data.path": "file:///elsewhere/data"}}
    return {"requirements": [], "updates": [update]}


# C7


@story
async def test_rule_c7_a_retry_after_a_drop_hears_that_it_was_done():
    ground = Ground()
    one, two = ground.server(), ground.server()
    await one.found("a")
    location = await one.commit("a", "K")
    await one.settle()
    await one.drop("a", "drop")
    assert await two.commit("a", "K") == location


@story
async def test_rule_c7_a_retry_after_a_drop_finds_its_landed_commit_though_nobody_finished_its_marker():
    ground = Ground()
    one, two = ground.server(), ground.server()
    await one.found("a")
    swing = await swing_under_way(ground, one)
    await swing.land()
    await two.drop("a", "drop")
    await two.create("a", "again")
    assert "/00001-" in await two.commit("a", "K")
    assert len(await landings(ground, two)) == 1


@story
async def test_rule_c7_a_retry_settles_the_table_of_its_first_attempt_before_it_takes_another():
    ground = Ground()
    one, two = ground.server(), ground.server()
    await one.found("a")
    swing = await swing_under_way(ground, one)
    await two.rename("a", "b", "rename")
    again = await two.create("a", "again")
    await two.commit("a", "K")
    await swing.land()
    assert [uuid for uuid, _ in await landings(ground, two)] == [again]


@story
async def test_rule_c7_a_retry_whose_first_attempt_landed_under_the_old_name_is_done():
    ground = Ground()
    one, two = ground.server(), ground.server()
    await one.found("a")
    swing = await swing_under_way(ground, one)
    await swing.land()
    await two.rename("a", "b", "rename")
    await two.create("a", "again")
    await two.commit("a", "K")
    assert len(await landings(ground, two)) == 1
    assert (await two.properties("b"))["last"] == "K"
    assert "last" not in await two.properties("a")


# C8


@story
async def test_rule_c8_a_duplicate_of_what_is_under_way_is_told_that_nobody_knows():
    ground = Ground()
    one, two = ground.server(), ground.server()
    await one.found("a")
    swing = one.line.delay("put", POINTER)
    first = await swing.holds(one.commit("a", "K"))
    with pytest.raises(OutcomeUnknown):
        await two.commit("a", "K")
    await swing.answer()
    assert await first == await two.commit("a", "K")
    assert len(await landings(ground, two)) == 1


@story
async def test_rule_c8_a_retry_of_what_landed_does_not_wait_for_an_owner_that_died():
    ground = Ground()
    one, two = ground.server(), ground.server()
    await one.found("a")
    swing = one.line.delay("put", POINTER)
    await swing.holds(one.commit("a", "K"))
    await swing.land()
    one.line.cut()
    ground.clock.pauses.clear()
    assert one.digits_of("K") in await two.commit("a", "K")
    assert ground.clock.pauses == []
    assert len(await landings(ground, two)) == 1


@story
async def test_rule_c8_silence_after_a_swing_that_may_have_landed_is_not_a_no():
    ground = Ground()
    one = ground.server()
    await one.found("a")
    await one.load("a")
    one.line.lose("put", POINTER)
    one.line.fail("get", POINTER, times=100)
    with pytest.raises(OutcomeUnknown):
        await one.commit("a", "K")
    assert len(await landings(ground, one)) == 1


@story
async def test_rule_c8_silence_towards_a_retry_is_not_a_no():
    """The first attempt landed. A retry that cannot even read the marker must not say that nothing happened."""
    ground = Ground()
    one, two = ground.server(), ground.server()
    await one.found("a")
    await two.load("a")
    await one.commit("a", "K")
    await one.settle()
    two.line.fail("get", MARKER, times=100)
    with pytest.raises(OutcomeUnknown):
        await two.commit("a", "K")
    for part in (MANIFEST, POINTER):
        three = ground.server()
        three.line.fail("get", part, times=100)
        with pytest.raises(OutcomeUnknown):
            await three.commit("a", "K")


@story
async def test_rule_c8_silence_before_anything_was_done_says_so():
    ground = Ground()
    one = ground.server()
    await one.found("a")
    one.line.fail("put", POINTER, times=100)
    with pytest.raises(RetryLater):
        await one.commit("a", "K")
    assert not await landings(ground, one)


@story
async def test_rule_c8_what_was_told_as_not_done_is_not_done_by_a_request_that_was_sent_before():
    """Its claim was on its way for long; meanwhile its client asked another server, heard 503 and deleted its files."""
    ground = Ground()
    one, two, rival = ground.server(), ground.server(), ground.server()
    await one.found("a")
    claim = one.line.delay("put", MARKER)
    first = await claim.holds(one.commit("a", "K"))
    ground.clock.elapsed_s += REQUEST_FRESH_S + 1
    two.line.before("put", POINTER, lambda: rival.commit("a", "rival"))
    # The look back is answered, and the next pass is not.
    two.line.fail("get", POINTER, times=100, skip=2)
    with pytest.raises(RetryLater):
        await two.commit("a", "K")
    ground.long_after()
    await claim.answer()
    with pytest.raises(OutcomeUnknown, match="may have been told that it was not done"):
        await first
    assert not await landings(ground, rival)
    await ground.server().commit("a", "K")
    assert len(await landings(ground, rival)) == 1


# C9


@story
async def test_rule_c9_the_next_swing_waits_for_the_receipt_of_the_last():
    ground = Ground()
    one, two = ground.server(), ground.server()
    await one.found("a")
    one.line.delay("put", RECEIPT, skip=1)  # the receipt of the creation goes first
    await one.commit("a", "K")
    receipt = two.line.delay("put", RECEIPT)
    second = await receipt.holds(two.commit("a", "second"))
    for _ in range(50):
        await asyncio.sleep(0)
    assert (await ground.audit()).landings(two.file_of("second")) == []
    await receipt.answer()
    await second
    await two.settle()
    assert not (await ground.audit()).gaps


@story
async def test_rule_c9_a_drop_waits_for_the_receipt_of_the_last_commit():
    ground = Ground()
    one, two = ground.server(), ground.server()
    await one.found("a")
    uuid = (await two.load("a")).uuid
    one.line.delay("put", RECEIPT, skip=1)  # the receipt of the creation goes first
    await one.commit("a", "K")
    receipt = two.line.delay("put", RECEIPT)
    drop = await receipt.holds(two.drop("a", "drop"))
    for _ in range(50):
        await asyncio.sleep(0)
    assert (await ground.audit()).pointers[uuid].tombstone is None
    await receipt.answer()
    await drop
    buried = (await ground.audit()).pointers[uuid]
    assert buried.tombstone is not None
    assert [await two.ws.receipts.committed(commit) is not None for commit in buried.published] == [True]


@story
async def test_rule_c9_a_registration_writes_the_receipt_of_what_stands_there_without_a_name():
    """A creation that died left a pointer; whoever registers its file swings that pointer."""
    ground = Ground()
    one, two = ground.server(), ground.server()
    await one.found()
    swing = one.line.delay("put", MANIFEST)
    await swing.holds(one.create("a", "K"))
    one.line.cut()
    (left,) = (await ground.audit()).pointers.values()
    await two.register("b", left.metadata_location, "register")
    await two.commit("b", "next")
    await two.settle()
    found = await ground.audit()
    assert found.pointers[left.table_uuid].commit_number == 2
    assert not found.gaps
    assert [await two.ws.receipts.committed(commit) is not None for commit in left.published] == [True]


# C11


@story
async def test_rule_c11_a_key_past_its_lifetime_is_refused_before_anything_is_written():
    ground = Ground()
    one = ground.server()
    await one.found("a")
    key = new_uuid7(ground.clock, SeededEntropy("client"))
    ground.clock.at_ms += (IDEMPOTENCY_LIFETIME_S + 1) * 1000
    asked = len(one.line.asked)
    with pytest.raises(InvalidInput, match="lifetime"):
        one.ws.markers.request_key(key, "updateTable", "0")
    assert len(one.line.asked) == asked


@story
async def test_rule_c11_a_key_of_the_future_is_refused_but_clocks_may_differ_by_minutes():
    ground = Ground()
    one = ground.server()
    later = HandClock(ground.clock.at_ms + IDEMPOTENCY_KEY_LEAD_S * 1000)
    assert one.ws.markers.request_key(new_uuid7(later, SeededEntropy("client")), "updateTable", "0").durable
    later.at_ms += 1
    with pytest.raises(InvalidInput, match="future"):
        one.ws.markers.request_key(new_uuid7(later, SeededEntropy("client")), "updateTable", "0")


@story
async def test_rule_c11_one_key_means_one_request_wherever_it_is_used():
    ground = Ground()
    one, two = ground.server(), ground.server()
    await one.found("a", "b")
    await one.commit("a", "K")
    await one.settle()
    with pytest.raises(Exception, match="reused"):
        await two.commit("b", "K", setting("other"))
    with pytest.raises(Exception, match="reused"):
        await two.drop("b", "K")


# No change


@story
async def test_a_commit_that_changes_nothing_answers_the_same_for_ever():
    ground = Ground()
    one, two = ground.server(), ground.server()
    await one.found("a")
    await one.commit("a", "first", setting("same"))
    location = await one.commit("a", "K", setting("same"))
    await two.commit("a", "rival")
    # Done now, it would change something.
    assert await two.commit("a", "K", setting("same")) == location
    assert (await two.properties("a"))["last"] == "rival"

"""Settling a key (rule P2): whoever hears that a commit never lands can rely on it, and what landed is found.

The attempt that is settled is alive in some of these stories: asleep with its swing prepared, or just slow.
"""

import asyncio
from typing import Any

import pytest

from arco.catalog.idempotency import RequestKey, State
from arco.catalog.settling import DidLand, NeverLands, Trace, settle
from arco.iceberg import requests
from arco.kernel.canonical_json import request_hash
from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import ArcoError, Conflict, Fenced, OutcomeUnknown, RetryLater
from arco.kernel.ids import new_uuid7
from arco.kernel.limits import IDEMPOTENCY_LIFETIME_S, MARKER_GRACE_S
from arco.ledger.receipts import Source
from stand_ins.shared_store import Delayed
from unit.catalog.ground import (
    FIELD,
    MANIFEST,
    MARKER,
    METADATA,
    NAMESPACE,
    POINTER,
    Ground,
    Server,
    commit_key,
    setting,
    story,
)

FREE = NeverLands(was_free=True)
NEVER = NeverLands()


class Place(Ground):
    """A worker that commits under a key, a settler, and a third party on the same table."""

    def __init__(self) -> None:
        super().__init__()
        self.worker, self.settler, self.other = self.server(), self.server(), self.server()
        self.key = new_uuid7(self.clock, SeededEntropy("key"))

    @classmethod
    async def made(cls) -> "Place":
        place = cls()
        await place.worker.found("a")
        return place

    async def commit(self) -> str:
        return await self.worker.commit("a", self.key)

    async def settle(self, server: Server | None = None, trace: Trace | None = None) -> DidLand | NeverLands:
        by = server or self.settler
        return await settle(by.ws, commit_key(self.key, setting(self.key)), "declared dead", trace)

    async def landings(self) -> int:
        for server in (self.worker, self.settler, self.other):
            await server.settle()
        found = await self.audit()
        assert not found.gaps
        return len(found.landings(self.worker.file_of(self.key)))

    async def marker(self) -> State:
        held = await self.other.ws.markers.object(commit_key(self.key, setting(self.key))).read()
        assert held is not None
        return held.value.state

    async def swing_under_way(self) -> tuple[Delayed, "asyncio.Future[Any]"]:
        """The worker has prepared its swing; the store has not got it yet."""
        swing = self.worker.line.delay("put", POINTER)
        return swing, await swing.holds(self.commit())


async def outcome(work: "asyncio.Future[Any]") -> object:
    """What an attempt heard in the end."""
    try:
        return await work
    except ArcoError as error:
        return type(error)


# The marker is free


@story
async def test_a_key_that_nobody_used_can_no_longer_be_used():
    place = await Place.made()
    assert await place.settle() == FREE
    with pytest.raises(Fenced, match="declared dead"):
        await place.commit()
    assert await place.landings() == 0


@story
async def test_settling_again_says_the_same():
    place = await Place.made()
    assert await place.settle() == FREE
    assert await place.settle() == NEVER
    assert await place.settle(place.other) == NEVER


@story
async def test_an_attempt_that_was_about_to_claim_is_too_late():
    place = await Place.made()

    async def settled() -> None:
        assert await place.settle() == FREE

    place.worker.line.before("put", MARKER, settled)
    with pytest.raises(Fenced):
        await place.commit()
    assert await place.landings() == 0


# A swing is under way


@story
async def test_a_swing_under_way_is_dead_when_its_key_is_settled():
    place = await Place.made()
    swing, work = await place.swing_under_way()
    assert await place.settle() == NEVER
    await swing.answer()
    assert await outcome(work) is not str
    assert await place.landings() == 0
    assert await place.marker() is State.FAILED


@story
async def test_the_attempt_whose_swing_died_hears_that_it_is_over_and_does_not_go_on():
    place = await Place.made()
    swing, work = await place.swing_under_way()
    await place.settle()
    await swing.answer()
    assert await outcome(work) in {Fenced, OutcomeUnknown}
    with pytest.raises(Fenced, match="declared dead"):
        await place.commit()
    assert await place.landings() == 0


@pytest.mark.parametrize("rivals", [1, 3])
def test_a_table_that_others_commit_to_does_not_hide_the_swing(rivals: int):
    @story
    async def told():
        place = await Place.made()
        swing, work = await place.swing_under_way()
        for number in range(rivals):
            await place.other.commit("a", f"rival {number}")
        assert await place.settle() == NEVER
        await swing.answer()
        await outcome(work)
        assert await place.landings() == 0

    told()


@story
async def test_the_verdict_is_written_only_after_the_swing_is_dead():
    """The swing lands between the look at history and the touch: the touch fails, and history is asked again."""
    place = await Place.made()
    swing, work = await place.swing_under_way()
    place.settler.line.before("put", POINTER, swing.answer)
    settled = await place.settle()
    assert isinstance(settled, DidLand)
    assert await outcome(work) == settled.metadata_location
    assert await place.landings() == 1


@story
async def test_the_marker_is_not_failed_while_the_swing_can_land():
    place = await Place.made()
    swing, work = await place.swing_under_way()
    seen: list[State] = []

    async def look() -> None:
        seen.append(await place.marker())

    place.settler.line.before("put", POINTER, look)
    await place.settle()
    assert seen == [State.SETTLING]
    await swing.answer()
    await outcome(work)


@story
async def test_an_attempt_that_lost_its_base_cannot_prepare_another_swing():
    """It is about to renew its marker for a newer base when it is settled."""
    place = await Place.made()
    swing, work = await place.swing_under_way()
    await place.other.commit("a", "rival")

    async def settled() -> None:
        assert await place.settle() == NEVER

    place.worker.line.before("put", MARKER, settled)
    await swing.answer()
    assert await outcome(work) in {Fenced, OutcomeUnknown}
    assert place.worker.line.used_up
    assert await place.landings() == 0


@story
async def test_an_attempt_that_renews_its_marker_first_is_settled_all_the_same():
    place = await Place.made()
    swing, work = await place.swing_under_way()
    await place.other.commit("a", "rival")
    second = place.worker.line.delay("put", POINTER)

    async def renewed() -> None:
        await swing.answer()
        await second.holds(work)

    place.settler.line.before("put", MARKER, renewed, skip=1)
    assert await place.settle() == NEVER
    await second.answer()
    assert await outcome(work) in {Fenced, OutcomeUnknown}
    assert await place.landings() == 0


# It landed


@story
async def test_a_finished_commit_did_land():
    place = await Place.made()
    location = await place.commit()
    await place.worker.settle()
    assert await place.settle() == DidLand(location)
    assert await place.landings() == 1


@story
async def test_a_commit_whose_server_died_after_the_swing_did_land_and_is_finished():
    place = await Place.made()
    swing, _ = await place.swing_under_way()
    await swing.land()
    place.worker.line.cut()
    settled = await place.settle()
    assert isinstance(settled, DidLand)
    assert await place.marker() is State.COMMITTED
    await place.settler.settle()
    found = await place.audit()
    assert len(found.landings(place.worker.file_of(place.key))) == 1
    assert await place.other.commit("a", place.key) == settled.metadata_location


@pytest.mark.parametrize("later", [1, 5])
def test_a_commit_that_others_have_buried_did_land(later: int):
    @story
    async def told():
        place = await Place.made()
        swing, _ = await place.swing_under_way()
        await swing.land()
        place.worker.line.cut()
        for number in range(later):
            await place.other.commit("a", f"later {number}")
            await place.other.settle()
        assert isinstance(await place.settle(), DidLand)

    told()


# A refusal


@story
async def test_a_commit_that_was_refused_never_lands():
    place = await Place.made()
    body = setting("x", {"type": "assert-current-schema-id", "current-schema-id": 77})
    with pytest.raises(Conflict):
        await place.worker.commit("a", place.key, body)
    assert await settle(place.settler.ws, commit_key(place.key, body), "declared dead") == NEVER


# Settlers that die, and several of them


@pytest.mark.parametrize("point", ["marker", "pointer"])
def test_a_settler_that_died_half_way_is_followed_by_another(point: str):
    @story
    async def told():
        place = await Place.made()
        swing, work = await place.swing_under_way()
        stuck = place.settler.line.delay("put", POINTER if point == "pointer" else MARKER, skip=int(point == "marker"))
        await stuck.holds(place.settle())
        if point == "pointer":
            assert await place.marker() is State.SETTLING
        place.settler.line.cut()
        assert await place.settle(place.other) == NEVER
        await swing.answer()
        await outcome(work)
        place.settler.line._cut = False
        assert await place.landings() == 0

    told()


@story
async def test_two_settlers_at_once_agree():
    place = await Place.made()
    swing, work = await place.swing_under_way()
    one, two = await asyncio.gather(place.settle(), place.settle(place.other))
    assert one == two == NEVER
    await swing.answer()
    await outcome(work)
    assert await place.landings() == 0


@story
async def test_a_duplicate_that_meets_a_key_being_settled_hears_that_nobody_knows():
    place = await Place.made()
    swing, work = await place.swing_under_way()
    stuck = place.settler.line.delay("put", POINTER)
    settling = await stuck.holds(place.settle())
    with pytest.raises(OutcomeUnknown):
        await place.other.commit("a", place.key)
    await stuck.answer()
    assert await settling == NEVER
    await swing.answer()
    await outcome(work)
    assert await place.landings() == 0


@story
async def test_a_duplicate_long_after_does_not_take_over_a_key_being_settled():
    place = await Place.made()
    swing, work = await place.swing_under_way()
    stuck = place.settler.line.delay("put", POINTER)
    await stuck.holds(place.settle())
    place.settler.line.cut()
    place.long_after()
    with pytest.raises(OutcomeUnknown):
        await place.other.commit("a", place.key)
    await swing.answer()
    assert await outcome(work) is not None
    place.settler.line._cut = False
    assert await place.landings() <= 1


# A store that does not answer


@story
async def test_nothing_is_said_while_the_store_is_silent():
    place = await Place.made()
    swing, work = await place.swing_under_way()
    place.settler.line.fail("get", POINTER)
    with pytest.raises(RetryLater):
        await place.settle()
    assert await place.settle() == NEVER
    await swing.answer()
    await outcome(work)
    assert await place.landings() == 0


@pytest.mark.parametrize("part", [MARKER, POINTER])
def test_a_lost_reply_changes_nothing(part: str):
    @story
    async def told():
        place = await Place.made()
        swing, work = await place.swing_under_way()
        place.settler.line.lose("put", part, skip=1 if part == MARKER else 0)
        assert await place.settle() == NEVER
        assert place.settler.line.used_up
        await swing.answer()
        await outcome(work)
        assert await place.landings() == 0

    told()


# Long ago


@story
async def test_without_a_marker_long_ago_only_a_trace_in_the_table_is_an_answer():
    place = await Place.made()
    place.clock.at_ms += (IDEMPOTENCY_LIFETIME_S + MARKER_GRACE_S) * 1000
    entry = await place.settler.load("a")
    with pytest.raises(OutcomeUnknown, match="so long ago"):
        await place.settle()
    with pytest.raises(OutcomeUnknown, match="so long ago"):
        await place.settle(trace=Trace(entry.uuid, 5))
    await place.other.commit("a", "with a snapshot", _with_snapshot(5))
    assert isinstance(await place.settle(trace=Trace(entry.uuid, 5)), DidLand)


@story
async def test_a_marker_that_is_still_there_long_ago_is_as_good_as_ever():
    place = await Place.made()
    location = await place.commit()
    await place.worker.settle()
    place.clock.at_ms += (IDEMPOTENCY_LIFETIME_S + MARKER_GRACE_S) * 1000
    assert await place.settle() == DidLand(location)


def _with_snapshot(number: int) -> dict[str, Any]:
    snapshot = {
        "snapshot-id": number,
        "sequence-number": 1,
        "timestamp-ms": 1_735_700_000_000,
        "manifest-list": "file:///lake/t/w/data/x/metadata/snap.avro",
        "schema-id": 0,
        "summary": {"operation": "append"},
    }
    return {"requirements": [], "updates": [{"action": "add-snapshot", "snapshot": snapshot}]}


# A commit that makes its table


class NewTable(Place):
    """The worker's commit is the first of its table: it is decided in tier 1."""

    async def commit(self) -> str:
        uuid = "11111111-2222-4333-8444-555555555555"
        body = {
            "requirements": [{"type": "assert-create"}],
            "updates": [
                {"action": "assign-uuid", "uuid": uuid},
                {"action": "upgrade-format-version", "format-version": 2},
                {"action": "add-schema", "schema": {"type": "struct", "fields": [FIELD]}},
                {"action": "set-current-schema", "schema-id": -1},
                {"action": "add-spec", "spec": {"fields": []}},
                {"action": "set-default-spec", "spec-id": -1},
                {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
                {"action": "set-default-sort-order", "sort-order-id": -1},
                {"action": "set-location", "location": f"file:///lake/t/w/data/new-{uuid}"},
            ],
        }
        self.request = RequestKey(self.key, "publish", request_hash(body))
        staging = self.worker.catalog.staging
        _, location = await staging.create_by_commit(
            NAMESPACE, "new", requests.parse_commit_table(body), self.request, Source()
        )
        return location

    async def settle(self, server: Server | None = None, trace: Trace | None = None) -> DidLand | NeverLands:
        return await settle((server or self.settler).ws, RequestKey(self.key, "publish", "h"), "declared dead", trace)

    async def exists(self) -> bool:
        current = await self.other.ws.tier1.current()
        return current.names.find(NAMESPACE, "new", (await self.other.load("a")).kind) is not None


@story
async def test_a_table_whose_making_was_settled_is_never_made():
    place = await NewTable.made()
    assert await place.settle() == FREE
    with pytest.raises(ArcoError):
        await place.commit()
    assert not await place.exists()


@pytest.mark.parametrize("part", [MANIFEST, METADATA, POINTER])
def test_a_making_under_way_is_dead_when_its_key_is_settled(part: str):
    @story
    async def told():
        place = await NewTable.made()
        claimed, late = place.worker.line.reached("put", MARKER), place.worker.line.delay("put", part)
        work = await late.holds(place.commit())
        await claimed.wait()
        await place.other.make_namespace("meanwhile", "meanwhile")
        assert await place.settle() == NEVER
        await late.answer()
        assert isinstance(await outcome(work), type)
        assert not await place.exists()
        assert await place.settle() == NEVER

    told()


@story
async def test_a_table_that_was_made_is_found_and_its_maker_hears_so():
    place = await NewTable.made()
    late = place.worker.line.delay("put", MANIFEST)
    work = await late.holds(place.commit())
    await late.land()
    assert isinstance(await place.settle(), DidLand)
    assert isinstance(await place.settle(), DidLand)
    await late.answer()
    assert isinstance(await outcome(work), str)
    await place.worker.settle()
    assert await place.exists()
    assert isinstance(await place.settle(), DidLand)

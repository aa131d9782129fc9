"""Rebuilds give the same rows, from the ledger and the archive, and keep what others publish meanwhile."""

import msgspec
import pytest

from arco.fold.finding import Batches
from arco.fold.manifests import Made, encode_manifest
from arco.fold.rebuilding import rebuild, rebuild_several
from arco.fold.time_travel import manifest_as_of
from arco.kernel.errors import BeyondReach, CorruptObject, InvalidInput
from arco.kernel.fingerprint import content_hash
from arco.storage.keys import Head
from arco.storage.port import Absent
from unit.fold.ground import HEAD, Ground, story

BOTH = (HEAD, Head.SEARCH)


async def history(ground: Ground, folding, count: int = 6) -> None:
    for number in range(count):
        await ground.append(f"{'ab'[number % 2]}{number}")
        for head in BOTH:
            await folding.round(head)
        if number == 2:
            await ground.move_consumed(folding)


def test_a_rebuild_gives_the_same_rows_from_ledger_and_archive():
    async def play(ground: Ground) -> None:
        folding = ground.folding(batches=Batches(segments=2))
        await history(ground, folding)
        before = (await folding.heads.read(HEAD)).manifest
        after = (await rebuild(folding, HEAD)).manifest
        assert ground.store.named("/archive/")
        assert ground.store.named("/ledger/")
        assert await ground.things(after) == await ground.things(before) == {"a": ("a0", "a4"), "b": ("b1", "b5")}
        assert (after.made, after.events, after.sequence) == (Made.REBUILD, before.events, before.sequence + 1)
        assert not after.table("things").deltas
        assert len(after.table("things").base) == 1
        assert (after.first_position, after.last_position) == (before.first_position, before.last_position)
        assert (await folding.round(HEAD)).segments == 0

    story(play)


def test_several_heads_are_rebuilt_beside_one_another_as_one_by_one():
    async def play(ground: Ground) -> None:
        folding = ground.folding()
        await history(ground, folding)
        start = {head: (await folding.heads.read(head)).link for head in BOTH}
        for since in (None, start):
            before = {head: await ground.things((await folding.heads.read(head)).manifest) for head in BOTH}
            made = await rebuild_several(folding, BOTH, since)
            assert [one.head for one in made] == list(BOTH)
            assert {one.head: await ground.things(one.manifest) for one in made} == before
            assert all(one.manifest.made is Made.REBUILD for one in made)

    story(play)


def test_a_head_that_cannot_be_rebuilt_is_told_by_its_own_error():
    async def play(ground: Ground) -> None:
        folding = ground.folding()
        await history(ground, folding, 2)
        strange = (await folding.heads.read(HEAD)).link
        with pytest.raises(BeyondReach, match="is gone"):
            await rebuild_several(folding, BOTH, {Head.SEARCH: strange})

    story(play)


def test_what_others_publish_during_a_rebuild_is_kept():
    async def play(ground: Ground) -> None:
        folding, rival = ground.folding(1), ground.folding(2)
        await history(ground, folding)
        done = []

        async def meanwhile(what: str, key: str) -> None:
            if what == "put" and "/manifests/" in key and not done:
                done.append(True)
                await ground.append("c1")
                for head in BOTH:
                    await rival.round(head)
                assert await ground.move_consumed(rival)

        ground.store.before = meanwhile
        after = (await rebuild(folding, HEAD)).manifest
        assert done
        assert (await ground.things(after))["c"] == ("c1", "c1")
        assert after.events == 7

    story(play)


def test_a_segment_that_is_moved_during_the_listing_is_not_lost():
    async def play(ground: Ground) -> None:
        folding = ground.folding()
        await history(ground, folding)
        seen: list[str] = []

        async def between(what: str, key: str) -> None:
            # Just before the second of the two listings, whichever it is.
            if what == "list" and len(seen) == 1:
                await ground.move_consumed(ground.folding(2))
            if what == "list":
                seen.append(key)

        ground.store.before = between
        after = (await rebuild(folding, HEAD)).manifest
        assert len(seen) >= 2
        assert await ground.things(after) == {"a": ("a0", "a4"), "b": ("b1", "b5")}
        assert after.events == 6

    story(play)


def test_a_rebuild_from_a_manifest_folds_what_came_after_it():
    async def play(ground: Ground) -> None:
        folding = ground.folding(lists_max=3)
        await history(ground, folding, 3)
        start = await folding.heads.read(HEAD)
        await history(ground, folding, 5)
        now = (await folding.heads.read(HEAD)).manifest
        again = (await rebuild(ground.folding(3), HEAD, start.link)).manifest
        assert await ground.things(again) == await ground.things(now)
        assert again.events == now.events
        assert set(again.table("things").files) >= set(start.manifest.table("things").files)
        assert not again.gaps

    story(play)


def test_a_rebuild_from_what_never_counted_is_refused():
    async def play(ground: Ground) -> None:
        folding = ground.folding()
        await history(ground, folding, 3)
        stranger = await folding.heads.read(Head.SEARCH)
        link = (await folding.heads.read(HEAD)).link
        await rebuild(folding, HEAD)
        await rebuild(folding, HEAD, link)
        with pytest.raises(BeyondReach, match="is gone"):
            await rebuild(folding, HEAD, stranger.link)

    story(play)


def test_receipts_that_were_told_are_not_told_again_after_a_rebuild():
    async def play(ground: Ground) -> None:
        folding = ground.folding()
        await ground.commit(0, None)
        await folding.round(HEAD)
        await rebuild(folding, HEAD)
        done = await ground.folding(2).round(HEAD)
        assert (done.receipts, done.segments) == (0, 0)
        assert len(ground.store.named("/ledger/")) == 1

    story(play)


def test_a_rebuild_from_a_manifest_that_lost_its_swing_is_refused():
    async def play(ground: Ground) -> None:
        folding = ground.folding()
        await history(ground, folding, 3)
        lost = msgspec.structs.replace((await folding.heads.read(HEAD)).manifest, snapshot=ground.ulids.next())
        data = encode_manifest(lost)
        await ground.store.put(folding.heads.manifest_key(HEAD, lost.snapshot), data, Absent())
        with pytest.raises(InvalidInput, match="is not in the chain"):
            await rebuild(folding, HEAD, lost.link(content_hash(data)))

    story(play)


@pytest.mark.parametrize("kind", ["/manifests/iceberg/", "/consumed/iceberg/"])
def test_a_rebuild_is_the_way_out_of_a_damaged_manifest_or_list(kind):
    async def play(ground: Ground) -> None:
        await ground.commit(0, None)
        await history(ground, ground.folding(), 5)
        state = await ground.things((await ground.folding().heads.read(HEAD)).manifest)
        for key in ground.store.named(kind):
            await ground.store.damage(key)
        with pytest.raises(CorruptObject):
            await ground.folding(2).round(HEAD)
        new = (await rebuild(ground.folding(3), HEAD)).manifest
        assert await ground.things(new) == state
        assert new.sequence == 6
        for number in range(9):
            await ground.append(f"a{number}")
            last = (await ground.folding(4).catch_up(HEAD)).standing.manifest
        assert last.sequence == 15
        first = await manifest_as_of(ground.folding(5).heads, HEAD, new.published_ms)
        assert first.sequence >= 6

    story(play)

"""Rounds of the fold: what is new is folded once, whoever else is at work."""

import pytest

from arco.fold.archiving import copy_aside, movable
from arco.fold.finding import Batches
from arco.fold.manifests import Made
from arco.fold.notifying import hinted, notify
from arco.kernel.errors import Fenced, InvalidInput
from arco.storage.keys import Domain, Head
from arco_sim.scenarios.fold_work import SCOPE
from unit.fold.ground import HEAD, Ground, story


def test_a_round_folds_what_is_new_and_says_what_it_did():
    async def play(ground: Ground) -> None:
        await ground.append("a1", "b1")
        await ground.append("a2")
        done = await ground.folding().round(HEAD)
        manifest = done.standing.manifest
        assert (done.segments, done.events, done.refused, done.more) == (2, 3, 0, False)
        assert (manifest.made, manifest.sequence, manifest.events) == (Made.FOLD, 1, 3)
        assert await ground.things(manifest) == {"a": ("a1", "a2"), "b": ("b1", "b1")}
        assert manifest.first_position < manifest.last_position
        assert (manifest.sharding.buckets, manifest.caps.files, manifest.caps.bytes, manifest.caps.age_s) == (
            256, 50, 256 * 1024 * 1024, 3600,
        )  # fmt: skip

    story(play)


def test_nothing_to_do_costs_the_head_and_the_listing():
    async def play(ground: Ground) -> None:
        await ground.append("a1")
        folding = ground.folding()
        await folding.round(HEAD)
        ground.store.requests.clear()
        done = await folding.round(HEAD)
        assert done.segments == 0
        assert [what for what, _ in ground.store.requests] == ["get", "list", "list"]  # head, ledger, receipts

    story(play)


def test_an_empty_ledger_publishes_nothing():
    async def play(ground: Ground) -> None:
        done = await ground.folding().round(HEAD)
        assert done.standing.manifest is None
        assert not ground.store.named("manifests")

    story(play)


def test_hazard_04_a_segment_with_an_older_name_is_folded():
    async def play(ground: Ground) -> None:
        folding = ground.folding()
        ground.clock.at_ms += 10 * 24 * 3600 * 1000
        await ground.append("b1")
        await folding.round(HEAD)
        ground.clock.at_ms -= 5 * 24 * 3600 * 1000
        ground.ulids = type(ground.ulids)(ground.clock, ground.entropy)
        await ground.append("a1")
        done = await folding.round(HEAD)
        assert await ground.things(done.standing.manifest) == {"a": ("a1", "a1"), "b": ("b1", "b1")}

    story(play)


def test_hazard_15_a_move_that_stops_between_copy_and_delete_changes_nothing():
    async def play(ground: Ground) -> None:
        folding = ground.folding()
        await ground.append("a1")
        for head in (HEAD, Head.SEARCH):
            await folding.round(head)
        await folding.heads.publish_cut()
        keys = [one async for one in movable(folding.heads, folding.lists, Domain.ICEBERG)]
        assert keys
        for key in keys:
            assert await copy_aside(folding.heads, key)
            assert await copy_aside(folding.heads, key), "the copy may be there already"
        assert (await folding.round(HEAD)).segments == 0
        assert (await folding.heads.read(HEAD)).manifest.events == 1

    story(play)


def test_a_segment_that_one_head_has_not_read_stays():
    async def play(ground: Ground) -> None:
        folding = ground.folding()
        await ground.append("a1")
        await folding.round(HEAD)
        assert await ground.move_consumed(folding) == 0
        await folding.round(Head.SEARCH)
        assert await ground.move_consumed(folding) == 1
        assert ground.store.named("/archive/iceberg/")

    story(play)


def test_a_segment_stays_until_the_root_names_who_consumed_it():
    """Readers begin at the root: a folder that died before it was swung leaves them the ledger to look in."""

    async def play(ground: Ground) -> None:
        folding = ground.folding()
        await ground.append("a1")
        for head in (HEAD, Head.SEARCH):
            await folding.round(head)
        assert [key async for key in movable(folding.heads, folding.lists, Domain.ICEBERG)] == []
        await folding.heads.publish_cut()
        assert len([key async for key in movable(folding.heads, folding.lists, Domain.ICEBERG)]) == 1

    story(play)


def test_two_folders_at_once_fold_everything_once():
    async def play(ground: Ground) -> None:
        await ground.append("a1")
        one, other = ground.folding(1), ground.folding(2)

        async def rival(what: str, key: str) -> None:
            if what == "put" and "/manifests/" in key and not rival_done:
                rival_done.append(True)
                await ground.append("b1")
                await other.catch_up(HEAD)

        rival_done: list[bool] = []
        ground.store.before = rival
        await one.catch_up(HEAD)
        await one.catch_up(HEAD)
        manifest = (await one.heads.read(HEAD)).manifest
        assert rival_done
        assert manifest.events == 2
        assert await ground.things(manifest) == {"a": ("a1", "a1"), "b": ("b1", "b1")}

    story(play)


def test_batches_are_bounded_and_the_rest_follows():
    async def play(ground: Ground) -> None:
        for number in range(7):
            await ground.append(f"a{number}")
        folding = ground.folding(batches=Batches(segments=3))
        first = await folding.round(HEAD)
        assert (first.segments, first.more) == (3, True)
        rest = await folding.catch_up(HEAD)
        assert (rest.segments, rest.more) == (4, False)
        assert rest.standing.manifest.events == 7
        assert rest.standing.manifest.sequence == 3

    story(play)


def test_a_segment_larger_than_a_batch_is_folded_alone():
    async def play(ground: Ground) -> None:
        await ground.append("a1")
        await ground.append("a2")
        done = await ground.folding(batches=Batches(bytes=1)).round(HEAD)
        assert (done.segments, done.more) == (1, True)

    story(play)


def test_what_was_notified_is_folded_without_a_listing():
    async def play(ground: Ground) -> None:
        told, untold = await ground.append("a1"), await ground.append("b1")
        folding = ground.folding(listing=False)
        assert (await folding.round(HEAD)).segments == 0
        await notify(ground.store, SCOPE, [told, told], ground.clock, ground.entropy)
        ground.store.requests.clear()
        done = await folding.round(HEAD)
        assert "list" not in {what for what, _ in ground.store.requests}
        assert await ground.things(done.standing.manifest) == {"a": ("a1", "a1")}
        assert await hinted(ground.store, SCOPE, Domain.ICEBERG, ground.clock, ground.entropy) == (told,)
        assert (await ground.folding().catch_up(HEAD)).segments == 1, f"a listing finds {untold}"

    story(play)


@pytest.mark.parametrize("name", ["t/w/_catalog/runs/x", "other/w/_catalog/ledger/iceberg/2025-01-01/0.jsonl", ""])
def test_a_notification_of_something_else_is_refused(name):
    async def play(ground: Ground) -> None:
        with pytest.raises(InvalidInput):
            await notify(ground.store, SCOPE, [name], ground.clock, ground.entropy)

    story(play)


def test_a_folder_of_an_older_epoch_does_not_publish():
    async def play(ground: Ground) -> None:
        await ground.append("a1")
        owner, former = ground.folding(), ground.folding(2)
        owner.epoch, former.epoch = 7, 6
        await owner.round(HEAD)
        await ground.append("a2")
        written = len(ground.store.named("/state/"))
        with pytest.raises(Fenced):
            await former.round(HEAD)
        assert len(ground.store.named("/state/")) == written, "nothing was folded in vain"
        manifest = (await ground.folding().heads.read(HEAD)).manifest
        assert (manifest.epoch, manifest.events) == (7, 1)

    story(play)


def test_consumed_lists_are_merged_and_moved_names_forgotten():
    async def play(ground: Ground) -> None:
        folding = ground.folding(lists_max=4)
        for number in range(9):
            await ground.append(f"a{number}")
            for head in (HEAD, Head.SEARCH):
                await folding.round(head)
            if number == 4:
                await ground.move_consumed(folding)
        standing = await folding.heads.read(HEAD)
        consumed = await ground.folding().lists.of(HEAD, standing.manifest)
        assert len(standing.manifest.consumed) <= 4
        assert {folding.lists.full(name) for name in consumed.names()} >= set(ground.store.named("/ledger/iceberg/"))
        assert len(consumed.names()) < 9
        assert not standing.manifest.gaps, "numbers outlive names"
        assert standing.manifest.events == 9

    story(play)


def test_rule_f1_what_is_consumed_between_the_head_and_the_listing_is_not_forgotten():
    async def play(ground: Ground) -> None:
        folding, rival = ground.folding(1, lists_max=3), ground.folding(2, lists_max=99)
        for number in range(4):
            await ground.append(f"a{number}")
            await rival.round(HEAD)
        await ground.append("b1")
        seen: list[str] = []

        async def between(what: str, key: str) -> None:
            # Just before the second of the two looks, whichever it is.
            look = "head" if key.endswith("iceberg.manifest.json") else "ledger" if "/ledger/" in key else ""
            if look and len(seen) == 1 and seen[0] != look:
                seen.append(look)
                told = await ground.append("c1")
                await notify(ground.store, SCOPE, [told], ground.clock, ground.entropy)
                assert (await ground.folding(4, listing=False, lists_max=99).round(HEAD)).segments == 1
            elif look and not seen:
                seen.append(look)

        ground.store.before = between
        await folding.round(HEAD)
        assert len(seen) == 2
        manifest = (await ground.folding(3).catch_up(HEAD)).standing.manifest
        assert manifest.events == 6, "each of six events is folded once"
        assert (await ground.things(manifest)).keys() == {"a", "b", "c"}

    story(play)

"""A pass over all heads: everything new, every merge that is due, and one cut."""

from arco.fold.manifests import Caps
from arco.fold.passes import fold_pass
from arco.kernel.errors import CorruptObject
from arco.storage.keys import Head
from unit.fold.ground import HEAD, Ground, story


def test_a_pass_folds_merges_and_publishes_one_cut():
    async def play(ground: Ground) -> None:
        await ground.append("a1")
        done = await fold_pass(ground.folding(caps=Caps(files=1)))
        assert done.merged == (HEAD, Head.SEARCH)
        assert not done.failed
        assert [one.head for one in done.root.manifest.heads] == ["iceberg", "search"]
        assert [one.manifest.sequence for one in done.root.manifest.heads] == [2, 2]

    story(play)


def test_a_pass_with_nothing_to_do_looks_once_at_everything():
    async def play(ground: Ground) -> None:
        folding = ground.folding()
        await ground.append("a1")
        await fold_pass(folding)
        ground.store.requests.clear()
        done = await fold_pass(folding)
        assert sum(one.segments for one in done.rounds.values()) == 0
        gets = [key for what, key in ground.store.requests if what == "get"]
        assert sum(what == "put" for what, _ in ground.store.requests) == 0
        assert len(gets) == 7, "six heads and the root"
        assert all(key.endswith(".manifest.json") for key in gets)

    story(play)


def test_a_damaged_head_does_not_hold_up_the_others():
    async def play(ground: Ground) -> None:
        await ground.append("a1")
        await fold_pass(ground.folding(1))
        for key in ground.store.named("/manifests/iceberg/"):
            await ground.store.damage(key)
        await ground.append("a2")
        done = await fold_pass(ground.folding(2))
        assert isinstance(done.failed[HEAD], CorruptObject)
        assert done.rounds[Head.SEARCH].segments == 1
        assert {one.head: one.manifest.sequence for one in done.root.manifest.heads} == {"iceberg": 1, "search": 2}

    story(play)


def test_a_pass_begins_with_what_names_have_not_told():
    async def play(ground: Ground) -> None:
        told = []

        async def tell() -> list[str]:
            told.append(await ground.append(f"a{len(told)}"))
            return told[-1:]

        # Where nothing is listed, what was told is notified.
        for listing in (True, False):
            done = await fold_pass(ground.folding(tell=tell, listing=listing))
            assert (done.rounds[HEAD].segments, done.failed) == (1, {})
        assert len(told) == 2
        await fold_pass(ground.folding(tell=tell), [HEAD])
        assert len(told) == 2, "no head of this pass reads what names tell"

    story(play)


def test_names_that_cannot_be_told_do_not_hold_up_the_fold():
    async def play(ground: Ground) -> None:
        async def tell() -> list[str]:
            raise CorruptObject("commit 3 is missing from the chain")

        await ground.append("a1")
        done = await fold_pass(ground.folding(tell=tell))
        assert done.failed.keys() == {Head.CATALOG}
        assert done.rounds[HEAD].segments == 1

    story(play)

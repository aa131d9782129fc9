"""Merges: files are replaced by their join, and nothing that came meanwhile is lost."""

from typing import Any

from arco.fold.manifests import Caps, Made
from arco.fold.merging import merge
from unit.fold.ground import HEAD, Ground, story

TIGHT = {"caps": Caps(files=3, bytes=10**9, age_s=3600)}


def test_deltas_are_merged_when_they_pass_a_cap():
    async def play(ground: Ground) -> None:
        folding = ground.folding(**TIGHT)
        for number in range(3):
            await ground.append(f"a{number}")
            assert await merge(folding, HEAD) is None
            await folding.round(HEAD)
        merged = (await merge(folding, HEAD)).manifest
        table = merged.table("things")
        assert (merged.made, len(table.base), table.deltas, table.deltas_since_ms) == (Made.MERGE, 1, (), None)
        assert await ground.things(merged) == {"a": ("a0", "a2")}
        assert merged.events == 3
        assert (await folding.round(HEAD)).segments == 0

    story(play)


def test_an_old_delta_is_merged_though_it_is_small():
    async def play(ground: Ground) -> None:
        folding = ground.folding()
        await ground.append("a1")
        await folding.round(HEAD)
        assert await merge(folding, HEAD) is None
        ground.clock.at_ms += 3600 * 1000
        assert (await merge(folding, HEAD)).manifest.made is Made.MERGE
        ground.clock.at_ms += 3600 * 1000
        assert await merge(folding, HEAD) is None, "a base does not grow old"

    story(play)


def test_a_merge_keeps_a_delta_that_was_published_meanwhile():
    async def play(ground: Ground) -> None:
        folding, rival = ground.folding(1, **TIGHT), ground.folding(2, **TIGHT)
        for number in range(3):
            await ground.append(f"a{number}")
            await folding.round(HEAD)

        done = []

        async def meanwhile(what: str, key: str) -> None:
            if what == "put" and "/manifests/" in key and not done:
                done.append(True)
                await ground.append("b1")
                await rival.round(HEAD)

        ground.store.before = meanwhile
        merged = (await merge(folding, HEAD)).manifest
        assert done
        assert len(merged.table("things").deltas) == 1
        assert await ground.things(merged) == {"a": ("a0", "a2"), "b": ("b1", "b1")}
        assert merged.events == 4

    story(play)


def test_a_merge_whose_files_were_replaced_publishes_nothing():
    async def play(ground: Ground) -> None:
        folding, rival = ground.folding(1, **TIGHT), ground.folding(2, **TIGHT)
        for number in range(3):
            await ground.append(f"a{number}")
            await folding.round(HEAD)
        done: list[Any] = []

        async def meanwhile(what: str, key: str) -> None:
            if what == "put" and "/state/" in key and not done:
                done.append(True)
                done.append(await merge(rival, HEAD))

        ground.store.before = meanwhile
        assert await merge(folding, HEAD) is None
        manifest = (await folding.heads.read(HEAD)).manifest
        assert manifest == done[1].manifest
        assert await ground.things(manifest) == {"a": ("a0", "a2")}

    story(play)

"""Where nobody runs upkeep, the fold moves aside what was consumed: what a round lists stays bounded, and nothing is lost."""

from arco.fold.passes import fold_pass
from arco.fold.rebuilding import rebuild
from arco.kernel.errors import Unavailable
from arco.kernel.limits import UPKEEP_GRACE_S
from arco.storage.keys import Head
from unit.fold.ground import HEAD, Ground, story

DAY_MS = UPKEEP_GRACE_S * 1000
LEDGER, ARCHIVE = "/ledger/iceberg/", "/archive/iceberg/"


def test_what_a_round_lists_stays_bounded_though_nobody_runs_upkeep():
    async def play(ground: Ground) -> None:
        folding, most = ground.folding(crowd_max=4), 0
        for number in range(40):
            ground.clock.at_ms += DAY_MS // 2
            await ground.append(f"a{number:02}")
            await fold_pass(folding)
            most = max(most, len(ground.store.named(LEDGER)))
        # Two or three of the last day, what may lie there, and the one that passes the limit.
        assert most <= 3 + 4 + 1
        assert len(ground.store.named(LEDGER)) + len(ground.store.named(ARCHIVE)) == 40
        assert await ground.things((await folding.heads.read(HEAD)).manifest) == {"a": ("a00", "a39")}
        await rebuild(folding, HEAD)
        assert await ground.things((await folding.heads.read(HEAD)).manifest) == {"a": ("a00", "a39")}

    story(play)


def test_up_to_the_limit_and_of_the_last_day_everything_stays():
    async def play(ground: Ground) -> None:
        folding = ground.folding(crowd_max=3)
        for number in range(20):
            await ground.append(f"a{number:02}")
        assert (await fold_pass(folding)).moved == 0
        assert (await fold_pass(folding)).moved == 0, "they are many, and young"
        ground.clock.at_ms += 2 * DAY_MS
        assert (await fold_pass(folding)).moved == 0, (
            "how old they are says the store's clock, and it has written nothing since"
        )
        assert not ground.store.named(ARCHIVE)

    story(play)


def test_what_a_head_has_not_consumed_stays_for_it():
    async def play(ground: Ground) -> None:
        folding = ground.folding(crowd_max=0)
        await ground.append("a1")
        ground.clock.at_ms += 2 * DAY_MS
        await ground.append("a2")
        await fold_pass(folding, [HEAD])
        assert (await fold_pass(folding, [HEAD])).moved == 0
        assert (await fold_pass(folding)).moved == 1
        assert len(ground.store.named(ARCHIVE)) == 1

    story(play)


def test_who_cannot_move_has_folded_and_says_so():
    async def play(ground: Ground) -> None:
        folding = ground.folding(crowd_max=0)
        await ground.append("a1")
        ground.clock.at_ms += 2 * DAY_MS
        await ground.append("a2")
        await fold_pass(folding)

        async def refused(what: str, key: str) -> None:
            if what == "put" and ARCHIVE in key:
                raise Unavailable("not now")

        ground.store.before = refused
        await ground.append("a3")
        done = await fold_pass(folding)
        ground.store.before = None
        assert set(done.failed) == {HEAD, Head.SEARCH}
        assert (done.moved, done.rounds[HEAD].segments) == (0, 1)
        assert len(ground.store.named(LEDGER)) == 3

    story(play)

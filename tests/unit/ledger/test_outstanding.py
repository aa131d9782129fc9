"""What runs have done that the ledger does not say: which runs there are, however many objects each consists of."""

import asyncio

from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.kernel.ids import RunId, encode_ulid
from arco.kernel.scope import Scope
from arco.ledger.outstanding import Outstanding, outstanding, run_ids
from arco.storage.keys import Domain, RunLogKey, RunPlanKey
from arco.storage.memory import MemoryStore
from arco.storage.port import Absent, Page
from stand_ins.hand_clock import HandClock

SCOPE = Scope.of("t", "w")


class Counted(MemoryStore):
    """A store that gives small pages, and counts them."""

    pages = 0

    async def list_page(self, prefix: str, after: str = "", limit: int = 1000) -> Page:
        self.pages += 1
        return await super().list_page(prefix, after, min(limit, 3))


async def filled(runs: int, entries: int) -> Counted:
    store = Counted(HandClock())
    for number in range(1, runs + 1):
        run = RunId(encode_ulid(number))
        await store.put(str(RunPlanKey(SCOPE, run)), b"{}", Absent())
        for sequence in range(1, entries + 1):
            await store.put(str(RunLogKey(SCOPE, run, sequence)), b"{}", Absent())
    return store


def test_every_run_is_found_once_whatever_its_size() -> None:
    async def story() -> None:
        store = await filled(runs=7, entries=50)
        assert await run_ids(store, SCOPE) == [RunId(encode_ulid(number)) for number in range(1, 8)]
        assert store.pages <= 2 * 7, "the rest of a run is stepped over"
        small = await filled(runs=20, entries=0)
        assert len(await run_ids(small, SCOPE)) == 20
        assert small.pages <= 20 // 3 + 1
        assert await run_ids(MemoryStore(HandClock()), SCOPE) == []

    asyncio.run(story())


def test_a_run_that_is_gone_says_nothing() -> None:
    async def story() -> None:
        found = await outstanding(
            MemoryStore(HandClock()), SCOPE, [RunId(encode_ulid(1))], (Domain.EXECUTION,), SystemClock(), SystemEntropy()
        )
        assert found == Outstanding()

    asyncio.run(story())

"""The ledger looked at again: a segment that is gone is missed, and one that a writer is about to add is not."""

import asyncio

from arco.kernel.entropy import SeededEntropy
from arco.kernel.ids import SegmentId
from arco.kernel.scope import Scope
from arco.ledger.appender import Appender
from arco.ledger.drafts import Draft
from arco.ledger.envelope import EventType
from arco.ledger.verify_ledger import verify_ledger
from arco.storage.findings import Report
from arco.storage.keys import ArchivedSegmentKey, Domain, SegmentKey, parse
from arco.storage.looking import Look
from arco.storage.memory import MemoryStore
from arco.storage.paging import walk
from arco.storage.port import Absent, Object
from stand_ins.hand_clock import HandClock

SCOPE = Scope.of()
HAPPENED = EventType("execution.happened.v1")


class Late(MemoryStore):
    """Some objects are not there yet when they are first listed or read."""

    def __init__(self, clock: HandClock) -> None:
        super().__init__(clock)
        self.late: set[str] = set()

    async def get(self, key: str) -> Object | None:
        if key in self.late:
            self.late.discard(key)
            return None
        return await super().get(key)


async def segments(store: MemoryStore, many: int = 4) -> list[SegmentKey]:
    """Segments of one writer."""
    clock = HandClock()
    ledger = Appender(store, SCOPE, clock, SeededEntropy("ledger"))
    for number in range(many):
        clock.at_ms += 1000
        await ledger.append(Domain.EXECUTION, [Draft(type=HAPPENED, source="test", data={"n": number})])
    found = [parse(listed.key) async for listed in walk(store, "")]
    return [key for key in found if isinstance(key, SegmentKey)]


async def verified(store: MemoryStore) -> Report:
    report = Report()
    await verify_ledger(Look(store, SCOPE, report))
    return report


def test_a_segment_that_is_gone_is_missed() -> None:
    async def story() -> Report:
        store = MemoryStore(HandClock())
        keys = await segments(store)
        await store.delete(str(keys[1]))
        await store.delete(str(keys[2]))
        return await verified(store)

    (found,) = asyncio.run(story()).findings
    assert found.code == "segment_gap"
    assert "segments 2 to 3 are missing from the ledger of execution" in found.what


def test_a_segment_that_was_moved_aside_is_not_missed() -> None:
    async def story() -> Report:
        store = MemoryStore(HandClock())
        key = (await segments(store))[1]
        stored = await store.get(str(key))
        assert stored is not None
        aside = ArchivedSegmentKey(key.scope, key.domain, key.day, SegmentId(key.segment))
        await store.put(str(aside), stored.data, Absent())
        await store.delete(str(key))
        return await verified(store)

    report = asyncio.run(story())
    assert report.findings == []
    assert (report.counts["segments"], report.counts["archived_segments"]) == (3, 1)


def test_what_a_writer_adds_meanwhile_is_no_gap() -> None:
    async def story() -> Report:
        store = Late(HandClock())
        keys = await segments(store)
        store.late.add(str(keys[1]))
        return await verified(store)

    assert asyncio.run(story()).findings == []


def test_no_gap_is_said_where_a_segment_cannot_be_read() -> None:
    async def story() -> tuple[Report, str]:
        store = MemoryStore(HandClock())
        key = str((await segments(store))[1])
        stored = await store.get(key)
        assert stored is not None
        await store.delete(key)
        await store.put(key, stored.data[:-1], Absent())
        return await verified(store), key

    report, key = asyncio.run(story())
    assert [(one.code, one.subject) for one in report.findings] == [("segment_unreadable", key)]
    assert report.notes == [
        "gaps in the ledger of execution were not looked for: some of its segments cannot be read",
    ]

"""The self-test: a good store passes and is left clean; every way of losing commits is found."""

import asyncio

import pytest

from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import AccessDenied, StoreUnsuitable, Unavailable
from arco.storage.memory import MemoryStore
from arco.storage.port import (
    Absent,
    Always,
    Condition,
    Landed,
    Lost,
    Matches,
    Object,
    ObjectInfo,
    ObjectStore,
    Outcome,
    Page,
    Unknown,
    Version,
)
from arco.storage.selftest import Finding, SelfTest, require_suitable
from stand_ins.hand_clock import HandClock


def examined(store: ObjectStore) -> list[Finding]:
    return asyncio.run(SelfTest(store, HandClock(), SeededEntropy(1)).run())


class IgnoresConditions(MemoryStore):
    """Answers 200 to everything."""

    async def put(self, key: str, data: bytes, condition: Condition) -> Outcome:
        return await super().put(key, data, Always())


class IgnoresAbsent(MemoryStore):
    """Honours If-Match but not If-None-Match."""

    async def put(self, key: str, data: bytes, condition: Condition) -> Outcome:
        return await super().put(key, data, Always() if isinstance(condition, Absent) else condition)


class IgnoresMatches(MemoryStore):
    """Honours If-None-Match but not If-Match."""

    async def put(self, key: str, data: bytes, condition: Condition) -> Outcome:
        return await super().put(key, data, Always() if isinstance(condition, Matches) else condition)


class CreatesOnMatch(MemoryStore):
    """Takes If-Match on a missing object for a create."""

    async def put(self, key: str, data: bytes, condition: Condition) -> Outcome:
        missing = isinstance(condition, Matches) and await self.head(key) is None
        return await super().put(key, data, Always() if missing else condition)


class Racy(MemoryStore):
    """Honours conditions, except when two writers meet: it looks, lets others go first, and then writes."""

    async def put(self, key: str, data: bytes, condition: Condition) -> Outcome:
        current = await self.get(key)
        await asyncio.sleep(0)
        match condition:
            case Absent() if current is not None:
                return Lost("taken")
            case Matches(version) if current is None or current.version != version:
                return Lost("stale")
        return await super().put(key, data, Always())


class RacyCreates(Racy):
    """Racy only for creates."""

    async def put(self, key: str, data: bytes, condition: Condition) -> Outcome:
        if isinstance(condition, Absent):
            return await super().put(key, data, condition)
        return await MemoryStore.put(self, key, data, condition)


class LosesUpdates(MemoryStore):
    """Says that an overwrite landed, and keeps the old bytes."""

    def _store(self, key: str, data: bytes) -> Version:
        return super()._store(key, self._objects[key].data if key in self._objects else data)


class LosesSwaps(MemoryStore):
    """Loses only conditional overwrites."""

    async def put(self, key: str, data: bytes, condition: Condition) -> Outcome:
        current = await self.get(key)
        if isinstance(condition, Matches) and current is not None:
            data = current.data
        return await super().put(key, data, condition)


class StaleReads(MemoryStore):
    """Reads lag one write behind."""

    def __init__(self, clock: HandClock) -> None:
        super().__init__(clock)
        self._before: dict[str, Object] = {}

    async def put(self, key: str, data: bytes, condition: Condition) -> Outcome:
        if key in self._objects:
            self._before[key] = self._objects[key]
        return await super().put(key, data, condition)

    async def get(self, key: str) -> Object | None:
        return self._before.get(key) or await super().get(key)


class OneVersion(MemoryStore):
    """Gives every state the same version."""

    def _store(self, key: str, data: bytes) -> Version:
        super()._store(key, data)
        version = Version("same")
        self._objects[key] = Object(ObjectInfo(key, len(data), version, 0), data)
        return version


class HidesNames(MemoryStore):
    """Forgets the last name of every page."""

    async def list_page(self, prefix: str, after: str = "", limit: int = 1000) -> Page:
        page = await super().list_page(prefix, after, limit)
        return Page(page.entries[:-1] if page.next_after else page.entries, page.next_after)


class IgnoresRanges(MemoryStore):
    """Answers a range with the whole object."""

    async def get_range(self, key: str, start: int, length: int) -> bytes | None:
        found = await self.get(key)
        return None if found is None else found.data


CREATED_AGAIN = "a taken name is not created again"
SWAPS = "a swap of the current version lands, a stale one does not"
GHOST = "a swap of a missing object creates nothing"
CREATORS = "of 8 creators at once exactly one wins"
SWAPPERS = "of 8 swappers at once exactly one wins"
READ_AT_ONCE = "what is written can be read at once"
BAD_STORES: tuple[tuple[type[MemoryStore], set[str]], ...] = (
    (IgnoresConditions, {CREATED_AGAIN, SWAPS, GHOST, CREATORS, SWAPPERS}),
    (IgnoresAbsent, {CREATED_AGAIN, CREATORS}),
    (IgnoresMatches, {SWAPS, GHOST, SWAPPERS}),
    (CreatesOnMatch, {GHOST}),
    (Racy, {CREATORS, SWAPPERS}),
    (RacyCreates, {CREATORS}),
    (LosesUpdates, {READ_AT_ONCE}),
    (LosesSwaps, {SWAPS}),
    (StaleReads, {READ_AT_ONCE}),
    (OneVersion, {SWAPS, SWAPPERS, "a state that returns has a version of its own, or equal bytes"}),
    (HidesNames, {"a listing shows every name, in pages"}),
    (IgnoresRanges, {"a range of bytes can be read"}),
)
bad_stores = pytest.mark.parametrize(("kind", "wrong"), BAD_STORES, ids=[kind.__name__ for kind, _ in BAD_STORES])


def test_a_good_store_answers_every_question_right():
    findings = examined(MemoryStore(HandClock()))
    assert len(findings) == 9
    assert all(finding.ok and not finding.detail for finding in findings)
    asyncio.run(require_suitable(MemoryStore(HandClock()), HandClock(), SeededEntropy(1)))


@bad_stores
def test_a_store_that_loses_commits_is_found_out(kind, wrong):
    findings = {finding.question: finding for finding in examined(kind(HandClock()))}
    failed = {question for question, finding in findings.items() if not finding.ok}
    assert failed >= wrong
    assert all(findings[question].detail for question in failed)


@bad_stores
def test_a_store_that_loses_commits_is_refused_with_its_first_wrong_answer(kind, wrong):
    with pytest.raises(StoreUnsuitable) as caught:
        asyncio.run(require_suitable(kind(HandClock()), HandClock(), SeededEntropy(1)))
    assert any(question in caught.value.message for question in wrong)
    assert "arco doctor" in caught.value.hint


def test_every_question_catches_some_store():
    asked = {finding.question for finding in examined(MemoryStore(HandClock()))}
    assert asked == set().union(*(wrong for _, wrong in BAD_STORES))


@pytest.mark.parametrize("kind", [MemoryStore, IgnoresConditions, Racy, LosesUpdates], ids=lambda kind: kind.__name__)
def test_the_probes_are_removed_whatever_the_answers(kind):
    async def scenario() -> None:
        store = kind(HandClock())
        await MemoryStore.put(store, "data/precious", b"x", Absent())
        await SelfTest(store, HandClock(), SeededEntropy(1)).run()
        assert [entry.key for entry in (await MemoryStore.list_page(store, "")).entries] == ["data/precious"]

    asyncio.run(scenario())


def test_two_tests_at_once_do_not_disturb_each_other():
    async def scenario() -> None:
        store = MemoryStore(HandClock())
        tests = [SelfTest(store, HandClock(), SeededEntropy(seed)) for seed in range(4)]
        for findings in await asyncio.gather(*(test.run() for test in tests)):
            assert all(finding.ok for finding in findings)

    asyncio.run(scenario())


@pytest.mark.parametrize("error", [Unavailable("down"), AccessDenied("no")], ids=lambda error: error.code)
def test_a_store_that_cannot_be_asked_is_an_error_and_nothing_was_written(error):
    class Closed(MemoryStore):
        async def head(self, key: str) -> ObjectInfo | None:
            raise error

    store = Closed(HandClock())
    with pytest.raises(type(error)):
        examined(store)
    assert store._objects == {}


def test_a_store_that_takes_no_plain_write_is_unsuitable():
    class Mute(MemoryStore):
        async def put(self, key: str, data: bytes, condition: Condition) -> Outcome:
            return Unknown("no reply")

    with pytest.raises(StoreUnsuitable, match="did not land"):
        examined(Mute(HandClock()))


def test_a_store_whose_replies_sometimes_get_lost_is_a_good_store():
    class Forgetful(MemoryStore):
        async def put(self, key: str, data: bytes, condition: Condition) -> Outcome:
            outcome = await super().put(key, data, condition)
            return Unknown("no reply") if self._writes % 3 == 0 and isinstance(outcome, Landed) else outcome

    assert all(finding.ok for finding in examined(Forgetful(HandClock())))

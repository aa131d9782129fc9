"""Looking at many objects: few are held at once, each is judged once, and what is wrong is said of the object that has it."""

import asyncio
from typing import Any

import pytest

from arco.kernel.errors import CorruptObject, InvalidInput
from arco.kernel.limits import VERIFY_READ_AHEAD_MAX
from arco.kernel.scope import Scope
from arco.storage import looking
from arco.storage.findings import Report
from arco.storage.keys import FeedPageKey
from arco.storage.looking import Look
from arco.storage.memory import MemoryStore
from arco.storage.port import Absent, Object
from stand_ins.hand_clock import HandClock

SCOPE = Scope.of()


class Counting(MemoryStore):
    """How many objects, and bytes of them, are asked for at once."""

    def __init__(self) -> None:
        super().__init__(HandClock())
        self._now: list[int] = []
        self.objects_most = self.bytes_most = 0

    async def get(self, key: str) -> Object | None:
        found = await super().get(key)
        assert found is not None
        self._now.append(len(found.data))
        self.objects_most = max(self.objects_most, len(self._now))
        self.bytes_most = max(self.bytes_most, sum(self._now))
        await asyncio.sleep(0)
        self._now.pop()
        return found


async def pages(store: MemoryStore, many: int, data: bytes = b"{}") -> None:
    for number in range(1, many + 1):
        await store.put(str(FeedPageKey(SCOPE, number)), data, Absent())


def looked_at(store: MemoryStore, judge: Any, many: int, data: bytes = b"{}") -> Report:
    async def story() -> Report:
        report = Report()
        await pages(store, many, data)
        await Look(store, SCOPE, report).each("page_bad", "pages", {FeedPageKey: judge}, "feed")
        return report

    return asyncio.run(story())


def test_each_object_is_judged_once_and_few_are_read_at_once() -> None:
    store, seen = Counting(), []
    report = looked_at(store, lambda key, _: seen.append(key.number), 3 * VERIFY_READ_AHEAD_MAX + 1)
    assert seen == list(range(1, 3 * VERIFY_READ_AHEAD_MAX + 2))
    assert report.counts == {"pages": len(seen)}
    assert store.objects_most <= VERIFY_READ_AHEAD_MAX


def test_large_objects_are_read_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looking, "VERIFY_READ_BYTES_MAX", 250)
    store = Counting()
    looked_at(store, lambda *_: None, 10, b"x" * 100)
    assert store.bytes_most == 200
    alone = Counting()
    looked_at(alone, lambda *_: None, 3, b"x" * 300)
    assert alone.bytes_most == 300


@pytest.mark.parametrize("wrong", [CorruptObject("it is cut off"), InvalidInput("a number of another")])
def test_what_is_wrong_is_said_of_its_object(wrong: Exception) -> None:
    def judge(key: FeedPageKey, _: Object) -> None:
        if key.number == 2:
            raise wrong

    name = str(FeedPageKey(SCOPE, 2))
    (found,) = looked_at(MemoryStore(HandClock()), judge, 3).findings
    assert (found.code, found.subject) == ("page_bad", name)
    assert found.what.startswith(f"{name}: ")


def test_bytes_that_are_no_text_are_found_where_a_decoder_would_step_over_them() -> None:
    report = looked_at(MemoryStore(HandClock()), lambda *_: None, 1, b'{"\xff": 1}')
    assert [one.subject for one in report.findings] == [str(FeedPageKey(SCOPE, 1))]


def test_an_error_of_the_code_is_not_taken_for_damage() -> None:
    def judge(_: FeedPageKey, __: Object) -> None:
        raise RuntimeError("a bug")

    with pytest.raises(RuntimeError):
        looked_at(MemoryStore(HandClock()), judge, 1)

"""The compare-and-swap object: its header, its memory of writes, its fence, and what each outcome means."""

import asyncio
from itertools import count
from typing import Any

import msgspec
import pytest

from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import Conflict, CorruptObject, Fenced, InvalidInput, OutcomeUnknown, TooLarge, UnknownFormat
from arco.kernel.ids import AssetId, WriteId
from arco.kernel.limits import CAS_OBJECT_BYTES_MAX, CAS_RECENT_WRITES_MAX, READBACK_ATTEMPTS_MAX, SWAP_ATTEMPTS_MAX
from arco.storage.cas import CasObject, Held, Overtaken, Swung
from arco.storage.memory import MemoryStore
from arco.storage.port import Absent, Landed, Lost, Matches, ObjectStore, Unknown, Version
from stand_ins.hand_clock import HandClock
from stand_ins.scripted_store import LostReplies, ScriptedStore, stored

KEY = "t/w/document"
SILENT = Unknown("no reply")
rivals = count()


class Text:
    """A document with one field."""

    format = "test.text"

    def encode(self, value: Any) -> tuple[int, dict[str, Any]]:
        return 1, {"text": value}

    def decode(self, format_version: int, fields: dict[str, Any]) -> Any:
        if format_version != 1:
            raise UnknownFormat(f"version {format_version}")
        return fields["text"]


class Fields(Text):
    """A document whose fields are whatever it is given."""

    def encode(self, value: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        return 1, value

    def decode(self, format_version: int, fields: dict[str, Any]) -> dict[str, Any]:
        return fields


def document(store: ObjectStore, codec: Any = None, seed: str = "ours") -> CasObject[Any]:
    return CasObject(store, KEY, codec or Text(), HandClock(), SeededEntropy(seed))


def memory() -> MemoryStore:
    return MemoryStore(HandClock())


async def swung(outcome: Any) -> Held[Any]:
    done = await outcome
    assert isinstance(done, Swung), done
    return done.held


async def body(store: MemoryStore) -> dict[str, Any]:
    found = await store.get(KEY)
    assert found is not None
    return msgspec.json.decode(found.data)


async def overwrite(store: MemoryStore, times: int) -> None:
    """Somebody else writes on top, so many times."""
    rival = document(store, seed=f"rival {next(rivals)}")
    for number in range(times):
        held = await rival.read()
        assert held is not None
        await swung(rival.swap(held, f"theirs {number}"))


# The header


def test_a_document_carries_its_header_beside_its_fields():
    async def scenario() -> None:
        store = memory()
        held = await swung(document(store).create("hello", epoch=3))
        assert await body(store) == {
            "format": "test.text",
            "format_version": 1,
            "generation": 1,
            "write_id": held.write_id,
            "recent_write_ids": [],
            "epoch": 3,
            "text": "hello",
        }

    asyncio.run(scenario())


def test_a_swing_keeps_the_write_before_in_mind():
    async def scenario() -> None:
        store = memory()
        shared = document(store)
        first = await swung(shared.create("a"))
        second = await swung(shared.swap(first, "b"))
        third = await swung(shared.swap(second, "c"))
        assert (third.generation, third.write_id) == (3, (await body(store))["write_id"])
        assert third.recent_write_ids == (second.write_id, first.write_id)
        assert await shared.read() == third

    asyncio.run(scenario())


def test_the_generation_grows_by_one_and_write_ids_never_repeat():
    async def scenario() -> list[Held[Any]]:
        shared = document(memory())
        states = [await swung(shared.create("same"))]
        for _ in range(40):
            states.append(await swung(shared.swap(states[-1], "same")))
        return states

    states = asyncio.run(scenario())
    assert [state.generation for state in states] == list(range(1, 42))
    assert len({state.write_id for state in states}) == 41


def test_the_memory_of_writes_is_bounded_and_newest_first():
    async def scenario() -> None:
        shared = document(memory())
        states = [await swung(shared.create("0"))]
        for number in range(1, CAS_RECENT_WRITES_MAX + 10):
            states.append(await swung(shared.swap(states[-1], str(number))))
            expected = [state.write_id for state in reversed(states[:-1])][:CAS_RECENT_WRITES_MAX]
            assert list(states[-1].recent_write_ids) == expected
        assert states[-1].oldest_remembered_generation == states[-1].generation - CAS_RECENT_WRITES_MAX

    asyncio.run(scenario())


def test_hazard_14_a_value_that_returns_never_has_the_bytes_it_had():
    async def scenario() -> list[bytes]:
        store = memory()
        shared = document(store)
        held = await swung(shared.create("a"))
        seen = []
        for value in ("b", "a", "b", "a"):
            held = await swung(shared.swap(held, value))
            seen.append((await store.get(KEY)).data)
        return seen

    seen = asyncio.run(scenario())
    assert len(set(seen)) == len(seen)


def test_equal_values_are_written_in_one_order_of_fields():
    async def scenario(value: dict[str, Any]) -> list[str]:
        store = memory()
        await swung(document(store, Fields()).create(value))
        return list(await body(store))

    forwards, backwards = asyncio.run(scenario({"a": 1, "z": 2})), asyncio.run(scenario({"z": 2, "a": 1}))
    assert forwards == backwards == sorted(forwards)


def test_an_identifier_in_a_document_is_its_text():
    async def scenario() -> Any:
        store = memory()
        await swung(document(store).create(AssetId("01ARZ3NDEKTSV4RRFFQ69G5FAV")))
        return (await body(store))["text"]

    assert asyncio.run(scenario()) == "01ARZ3NDEKTSV4RRFFQ69G5FAV"


@pytest.mark.parametrize("name", ["format", "format_version", "generation", "write_id", "recent_write_ids", "epoch"])
def test_a_field_with_a_name_of_the_header_is_refused_before_anything_is_written(name):
    store = memory()
    with pytest.raises(InvalidInput, match=name):
        asyncio.run(document(store, Fields()).create({name: 1}))
    assert asyncio.run(store.get(KEY)) is None


def test_a_value_that_is_no_document_is_refused_before_anything_is_written():
    store = memory()
    with pytest.raises(InvalidInput):
        asyncio.run(document(store).create(object()))
    assert asyncio.run(store.get(KEY)) is None


def test_a_document_over_the_limit_is_refused_before_anything_is_written():
    async def scenario() -> None:
        store = memory()
        shared = document(store)
        held = await swung(shared.create("small"))
        with pytest.raises(TooLarge):
            await shared.swap(held, "x" * CAS_OBJECT_BYTES_MAX)
        assert await shared.read() == held

    asyncio.run(scenario())


GOOD_HEADER = {
    "format": "test.text", "format_version": 1, "generation": 1, "write_id": "0" * 26, "recent_write_ids": [], "epoch": 0,
    "text": "x",
}  # fmt: skip


@pytest.mark.parametrize(
    "wrong",
    [
        {"generation": None}, {"generation": "many"}, {"generation": []}, {"epoch": None}, {"epoch": {}}, {"write_id": None},
        {"write_id": "short"}, {"write_id": 5}, {"recent_write_ids": None}, {"recent_write_ids": "text"},
        {"recent_write_ids": ["short"]}, {"recent_write_ids": [5]},
    ],
    ids=str,
)  # fmt: skip
def test_a_header_that_is_wrong_is_refused_and_never_guessed(wrong):
    store = ScriptedStore(gets=[stored(KEY, msgspec.json.encode(GOOD_HEADER | wrong), "1")])
    with pytest.raises(CorruptObject, match=KEY):
        asyncio.run(document(store).read())


@pytest.mark.parametrize("name", [name for name in GOOD_HEADER if name != "text"])
def test_a_header_that_is_incomplete_is_refused(name):
    short = {field: value for field, value in GOOD_HEADER.items() if field != name}
    store = ScriptedStore(gets=[stored(KEY, msgspec.json.encode(short), "1")])
    with pytest.raises(CorruptObject):
        asyncio.run(document(store).read())


def test_a_missing_document_is_none():
    assert asyncio.run(document(memory()).read()) is None


# Whose write landed


def test_hazard_01_a_swap_whose_reply_is_lost_is_recognised_by_its_write_id():
    async def scenario() -> None:
        store = LostReplies(HandClock())
        shared = document(store)
        base = await swung(shared.create("base"))
        store.times = 1
        held = await swung(shared.swap(base, "ours"))
        assert await shared.read() == held
        assert len(store.puts) == 2

    asyncio.run(scenario())


def test_a_create_whose_reply_is_lost_is_recognised():
    async def scenario() -> None:
        store = LostReplies(HandClock(), times=1)
        held = await swung(document(store).create("ours"))
        assert await document(store).read() == held

    asyncio.run(scenario())


@pytest.mark.parametrize("overwrites", [1, 2, CAS_RECENT_WRITES_MAX - 1, CAS_RECENT_WRITES_MAX])
def test_hazard_01_within_the_remembered_window_an_overwritten_swap_knows_that_it_landed(overwrites):
    async def scenario() -> None:
        store = LostReplies(HandClock())
        shared = document(store)
        base = await swung(shared.create("base"))
        store.times, store.meanwhile = 1, lambda: overwrite(store, overwrites)
        outcome = await shared.swap(base, "ours")
        assert isinstance(outcome, Overtaken), outcome
        assert outcome.held == await shared.read()
        assert outcome.held.value == f"theirs {overwrites - 1}"

    asyncio.run(scenario())


@pytest.mark.parametrize("overwrites", [1, CAS_RECENT_WRITES_MAX])
def test_within_the_remembered_window_an_overwritten_create_knows_that_it_landed(overwrites):
    async def scenario() -> None:
        store = LostReplies(HandClock(), times=1)
        store.meanwhile = lambda: overwrite(store, overwrites)
        assert isinstance(await document(store).create("ours"), Overtaken)

    asyncio.run(scenario())


@pytest.mark.parametrize("overwrites", [CAS_RECENT_WRITES_MAX + 1, CAS_RECENT_WRITES_MAX + 20])
def test_beyond_the_remembered_window_a_swap_stays_unknown(overwrites):
    async def scenario() -> None:
        store = LostReplies(HandClock())
        shared = document(store)
        base = await swung(shared.create("base"))
        store.times, store.meanwhile = 1, lambda: overwrite(store, overwrites)
        assert isinstance(await shared.swap(base, "ours"), Unknown)

    asyncio.run(scenario())


class NothingArrives(LostReplies):
    """Our write is lost on its way; what rivals did `meanwhile` stands."""

    async def put(self, key, data, condition):
        if not self.times:
            return await super().put(key, data, condition)
        self.times -= 1
        await self.meanwhile()
        return SILENT


@pytest.mark.parametrize("overwrites", [1, 5, CAS_RECENT_WRITES_MAX + 1])
def test_a_swap_that_never_arrived_is_lost_while_every_write_since_its_base_is_remembered(overwrites):
    async def scenario() -> None:
        store = NothingArrives(HandClock())
        shared = document(store)
        base = await swung(shared.create("base"))
        store.times, store.meanwhile = 1, lambda: overwrite(store, overwrites)
        assert isinstance(await shared.swap(base, "ours"), Lost)

    asyncio.run(scenario())


def test_a_swap_that_never_arrived_stays_unknown_when_a_write_since_its_base_is_forgotten():
    async def scenario() -> None:
        store = NothingArrives(HandClock())
        shared = document(store)
        base = await swung(shared.create("base"))
        store.times, store.meanwhile = 1, lambda: overwrite(store, CAS_RECENT_WRITES_MAX + 2)
        assert isinstance(await shared.swap(base, "ours"), Unknown)

    asyncio.run(scenario())


def test_an_object_that_was_begun_anew_cannot_tell_what_became_of_a_swap():
    async def scenario() -> None:
        store = NothingArrives(HandClock())
        shared = document(store)
        base = await swung(shared.create("base"))
        base = await swung(shared.swap(base, "later"))

        async def begin_anew() -> None:
            await store.delete(KEY)
            await swung(document(store, seed="theirs").create("anew"))

        store.times, store.meanwhile = 1, begin_anew
        assert isinstance(await shared.swap(base, "ours"), Unknown)

    asyncio.run(scenario())


def test_an_object_that_turned_to_garbage_cannot_tell_either():
    store = ScriptedStore([SILENT], [stored(KEY, b"garbage", "2")])
    base = Held("base", Version("1"), 1, WriteId("0" * 26), (), 0)
    assert isinstance(asyncio.run(document(store).swap(base, "ours")), Unknown)


def test_a_swap_is_sent_with_the_version_that_was_read_and_again_with_the_same_bytes():
    base = Held("base", Version("v7"), 1, WriteId("0" * 26), (), 0)
    before = stored(KEY, b"base", "v7")
    store = ScriptedStore([SILENT, SILENT, Landed(Version("v8"))], [before, before])
    held = asyncio.run(swung(document(store).swap(base, "ours")))
    assert held.version == "v8"
    assert {put.condition for put in store.puts} == {Matches(Version("v7"))}
    assert len({put.data for put in store.puts}) == 1


def test_a_create_is_sent_only_for_an_absent_object():
    store = ScriptedStore([Landed(Version("v1"))])
    asyncio.run(document(store).create("ours"))
    assert [put.condition for put in store.puts] == [Absent()]


def test_hazard_02_a_stale_holder_never_overwrites_whatever_epoch_it_shows():
    async def scenario() -> None:
        shared = document(memory())
        stale = await swung(shared.create("base", epoch=1))
        current = await swung(shared.swap(stale, "newer", epoch=2))
        assert isinstance(await shared.swap(stale, "stale", epoch=9), Lost)
        assert await shared.read() == current

    asyncio.run(scenario())


# The fence


def test_an_older_epoch_is_fenced_before_anything_is_sent():
    async def scenario() -> None:
        store = memory()
        shared = document(store)
        held = await swung(shared.create("base", epoch=5))
        with pytest.raises(Fenced):
            await shared.swap(held, "older", epoch=4)
        assert await shared.read() == held

    asyncio.run(scenario())


def test_an_equal_or_newer_epoch_passes_and_is_written():
    async def scenario() -> None:
        shared = document(memory())
        held = await swung(shared.create("base", epoch=5))
        for epoch in (5, 6, 6, 100):
            held = await swung(shared.swap(held, "on", epoch=epoch))
            assert held.epoch == epoch

    asyncio.run(scenario())


def test_who_names_no_epoch_keeps_the_one_that_stands():
    async def scenario() -> None:
        shared = document(memory())
        held = await swung(shared.create("base", epoch=5))
        assert (await swung(shared.swap(held, "on"))).epoch == 5
        assert (await shared.update(lambda _: "again")).epoch == 5

    asyncio.run(scenario())


def test_an_update_with_an_older_epoch_is_fenced():
    async def scenario() -> None:
        shared = document(memory())
        await swung(shared.create("base", epoch=5))
        with pytest.raises(Fenced):
            await shared.update(lambda _: "older", epoch=4)
        assert (await shared.update(lambda _: "newer", epoch=6)).epoch == 6

    asyncio.run(scenario())


def test_a_first_update_begins_at_the_epoch_it_names():
    assert asyncio.run(document(memory()).update(lambda _: "first", epoch=7)).epoch == 7
    assert asyncio.run(document(memory()).update(lambda _: "first")).epoch == 0


# Updating


def test_an_update_decides_on_what_stands_and_waits_between_attempts():
    async def scenario() -> None:
        store = memory()
        clock = HandClock()
        shared = CasObject(store, KEY, Text(), clock, SeededEntropy(1))
        await swung(shared.create("0"))
        seen: list[Any] = []

        async def change(held: Held[Any] | None) -> str:
            assert held is not None
            seen.append(held.value)
            if len(seen) <= 3:
                await overwrite(store, 1)
            return f"ours on {held.value}"

        final = await shared.update(change)
        assert seen == ["0", "theirs 0", "theirs 0", "theirs 0"]
        assert final.value == "ours on theirs 0"
        assert final.generation == 5
        assert len(clock.pauses) == 3

    asyncio.run(scenario())


def test_an_update_gives_up_with_a_conflict_after_a_bounded_number_of_attempts():
    async def scenario() -> None:
        store = memory()
        shared = document(store)
        await swung(shared.create("0"))
        calls = 0

        async def change(_: Held[Any] | None) -> str:
            nonlocal calls
            calls += 1
            await overwrite(store, 1)
            return "never"

        with pytest.raises(Conflict, match=KEY):
            await shared.update(change)
        assert calls == SWAP_ATTEMPTS_MAX
        assert (await body(store))["text"] == "theirs 0"

    asyncio.run(scenario())


def test_an_update_whose_outcome_is_unknown_says_so_and_is_not_repeated():
    base = stored(KEY, msgspec.json.encode(GOOD_HEADER), "1")
    store = ScriptedStore([SILENT, ...], [base, ...])
    calls = []
    with pytest.raises(OutcomeUnknown, match=KEY):
        asyncio.run(document(store).update(lambda held: calls.append(held) or "ours"))
    assert len(calls) == 1
    assert len(store.puts) == READBACK_ATTEMPTS_MAX


def test_an_update_that_was_overtaken_landed_and_is_not_repeated():
    async def scenario() -> None:
        store = LostReplies(HandClock())
        shared = document(store)
        await swung(shared.create("0"))
        store.times, store.meanwhile = 1, lambda: overwrite(store, 2)
        calls: list[Any] = []
        final = await shared.update(lambda held: calls.append(held) or "ours")
        assert len(calls) == 1
        assert (final.value, final.generation) == ("theirs 1", 4)

    asyncio.run(scenario())


def test_an_update_of_a_missing_object_creates_it():
    async def scenario() -> None:
        seen: list[Any] = []
        held = await document(memory()).update(lambda held: seen.append(held) or "first")
        assert (seen, held.value, held.generation) == ([None], "first", 1)

    asyncio.run(scenario())


def test_a_change_that_raises_writes_nothing():
    store = memory()

    def change(_: Held[Any] | None) -> str:
        raise InvalidInput("no such column")

    with pytest.raises(InvalidInput):
        asyncio.run(document(store).update(change))
    assert asyncio.run(store.get(KEY)) is None

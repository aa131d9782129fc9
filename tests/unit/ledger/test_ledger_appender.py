"""Appending: who shares a segment, who is told what and when, and what the numbers say afterwards."""

import asyncio

import pytest

from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SeededEntropy, SystemEntropy
from arco.kernel.errors import (
    AccessDenied,
    BrokenInvariant,
    InvalidInput,
    InvalidItems,
    OutcomeUnknown,
    Throttled,
    TooLarge,
    Unavailable,
)
from arco.kernel.ids import EventId
from arco.kernel.limits import (
    LEDGER_EVENT_BYTES_MAX,
    LEDGER_NAME_ATTEMPTS_MAX,
    LEDGER_SEGMENT_BYTES_MAX,
    LEDGER_SEGMENT_EVENTS_MAX,
    LEDGER_WAITING_BYTES_MAX,
    READBACK_ATTEMPTS_MAX,
)
from arco.kernel.scope import Scope
from arco.ledger.appender import Appender
from arco.ledger.drafts import Draft
from arco.ledger.envelope import EventType
from arco.ledger.segment import Segment, decode_segment
from arco.storage.keys import Domain, SegmentKey, parse
from arco.storage.memory import MemoryStore
from arco.storage.paging import walk
from arco.storage.port import Lost, Unknown
from arco.storage.roots import open_root
from stand_ins.hand_clock import ConstantEntropy, HandClock
from stand_ins.scripted_store import LostReplies, ScriptedStore
from stand_ins.troubled_store import Mood, TroubledStore

SCOPE = Scope.of("acme", "prod")
HAPPENED = EventType("execution.happened.v1")
SILENT = Unknown("no reply")


def draft(label: str, *, key: str | None = None, kind: EventType = HAPPENED, **data) -> Draft:
    return Draft(type=kind, source="test", data={"label": label, **data}, idempotencykey=key)


def appender_on(store, clock=None, seed: int = 1, **options) -> Appender:
    return Appender(store, SCOPE, clock or HandClock(), SeededEntropy(seed), **options)


async def segments_of(store) -> list[Segment]:
    found = []
    async for entry in walk(store, "acme/prod/_catalog/ledger/"):
        key, stored = parse(entry.key), await store.get(entry.key)
        assert isinstance(key, SegmentKey)
        assert stored is not None
        found.append(decode_segment(key, stored.data))
    return found


def labels(segment: Segment) -> list[str]:
    return [event.data["label"] for event in segment.events]


def numbers(segments: list[Segment]) -> dict[str, list[int]]:
    by_writer: dict[str, list[int]] = {}
    for segment in segments:
        by_writer.setdefault(segment.writer_id, []).append(segment.writer_seq)
    return by_writer


async def append(appender: Appender, *drafts: Draft, domain: Domain = Domain.EXECUTION) -> None:
    await appender.append(domain, drafts)


# Sharing segments


def test_calls_that_come_together_share_a_segment_in_their_order():
    async def story():
        store = MemoryStore(HandClock())
        appender = appender_on(store)
        await asyncio.gather(*(append(appender, draft(f"{n}a"), draft(f"{n}b")) for n in range(20)))
        [segment] = await segments_of(store)
        assert labels(segment) == [f"{n}{part}" for n in range(20) for part in "ab"]
        assert (segment.writer_seq, len(segment.events)) == (1, 40)

    asyncio.run(story())


def test_calls_that_come_while_a_segment_is_written_share_the_next_one():
    async def story():
        store = TroubledStore(HandClock())
        store.gate = asyncio.Event()
        appender = appender_on(store)
        first = asyncio.create_task(append(appender, draft("first")))
        await _idle()
        others = [asyncio.create_task(append(appender, draft(f"{n}"))) for n in range(3)]
        await _idle()
        store.gate.set()
        await asyncio.gather(first, *others)
        assert [labels(segment) for segment in await segments_of(store)] == [["first"], ["0", "1", "2"]]

    asyncio.run(story())


def test_a_call_waits_only_a_short_time_for_company():
    async def story():
        clock = HandClock()
        appender = appender_on(MemoryStore(clock), clock, gather_s=0.25)
        await append(appender, draft("alone"))
        assert clock.pauses == [0.25]

    asyncio.run(story())


def test_a_segment_holds_no_more_events_than_its_limit_and_no_call_is_split():
    async def story():
        store = MemoryStore(HandClock())
        appender = appender_on(store)
        half = LEDGER_SEGMENT_EVENTS_MAX // 2 + 1
        await asyncio.gather(*(append(appender, *[draft(str(n))] * half) for n in range(3)), append(appender, draft("3")))
        assert [len(segment.events) for segment in await segments_of(store)] == [half, half, half + 1]

    asyncio.run(story())


def test_a_segment_holds_no_more_bytes_than_its_limit():
    async def story():
        store = MemoryStore(HandClock())
        appender = appender_on(store)
        large = draft("large", text="x" * (LEDGER_EVENT_BYTES_MAX - 1000))
        await asyncio.gather(*(append(appender, large) for _ in range(10)))
        assert [len(segment.events) for segment in await segments_of(store)] == [8, 2]

    asyncio.run(story())


def test_each_domain_has_its_own_segments_and_its_own_numbers():
    async def story():
        store = MemoryStore(HandClock())
        appender = appender_on(store)
        audit = draft("audit", kind=EventType("audit.happened.v1"))
        for _ in range(2):
            await asyncio.gather(append(appender, draft("run")), append(appender, audit, domain=Domain.AUDIT))
        segments = await segments_of(store)
        assert sorted((segment.key.domain, segment.writer_seq) for segment in segments) == [
            ("audit", 1),
            ("audit", 2),
            ("execution", 1),
            ("execution", 2),
        ]
        assert len({segment.writer_id for segment in segments}) == 2

    asyncio.run(story())


def test_a_segment_lies_under_the_date_of_its_own_name():
    async def story():
        clock = HandClock(1_760_140_799_999)  # the last millisecond of a day
        store = MemoryStore(clock)
        appender = appender_on(store, clock, gather_s=0.0)
        await append(appender, draft("before"))
        clock.at_ms += 1
        await append(appender, draft("after"))
        assert [segment.key.day for segment in await segments_of(store)] == ["2025-10-10", "2025-10-11"]

    asyncio.run(story())


# Being told


def test_nobody_is_told_before_the_segment_is_durable():
    async def story():
        store = TroubledStore(HandClock())
        store.gate = asyncio.Event()
        appender = appender_on(store)
        calls = [asyncio.create_task(append(appender, draft(str(n)))) for n in range(3)]
        await _idle()
        assert not any(call.done() for call in calls)
        store.gate.set()
        await asyncio.gather(*calls)

    asyncio.run(story())


def test_a_lost_reply_is_read_back_and_the_events_are_there_once():
    async def story():
        store = LostReplies(HandClock(), times=1)
        await append(appender_on(store), draft("a"))
        assert [labels(segment) for segment in await segments_of(store)] == [["a"]]
        assert len(store.puts) == 1

    asyncio.run(story())


def test_an_outcome_that_stays_unknown_is_told_to_everybody_who_shared_it():
    async def story():
        store = ScriptedStore([SILENT, ...], [Unavailable("silence"), ...])
        appender = appender_on(store)
        told = await asyncio.gather(*(append(appender, draft(str(n))) for n in range(3)), return_exceptions=True)
        assert [type(one) for one in told] == [OutcomeUnknown] * 3
        assert len({(put.key, put.data) for put in store.puts}) == 1
        assert len(store.puts) == READBACK_ATTEMPTS_MAX

    asyncio.run(story())


def test_after_an_unknown_outcome_the_same_drafts_are_the_same_events():
    async def story():
        store = TroubledStore(HandClock())
        appender = appender_on(store)
        own = Draft(type=HAPPENED, source="test", data={"label": "b"}, id=EventId("01K7A5V6M8YQ4Z3B2N1C0D9E8F"))
        store.mood = Mood.MUTE
        with pytest.raises(OutcomeUnknown) as told:
            await append(appender, draft("a", key="key-a"), own)
        assert "_catalog/ledger/execution/" in told.value.message
        assert "same id or key" in told.value.hint
        store.mood = Mood.FINE
        await append(appender, draft("a", key="key-a"), own)
        first, second = await segments_of(store)
        assert [event.id for event in first.events] == [event.id for event in second.events]
        assert labels(first) == labels(second) == ["a", "b"]

    asyncio.run(story())


@pytest.mark.parametrize("refusal", [Throttled("slow down"), AccessDenied("no")], ids=["throttled", "denied"])
def test_a_refusal_is_passed_on_and_nothing_is_stored(refusal):
    async def story():
        store = TroubledStore(HandClock())
        store.refusal = refusal
        appender = appender_on(store)
        with pytest.raises(type(refusal)):
            await append(appender, draft("a"))
        store.refusal = None
        assert await segments_of(store) == []
        await append(appender, draft("b"))
        assert [labels(segment) for segment in await segments_of(store)] == [["b"]]

    asyncio.run(story())


def test_an_error_that_nobody_foresaw_is_an_unknown_outcome():
    async def story():
        store = TroubledStore(HandClock())
        store.refusal = ZeroDivisionError()
        with pytest.raises(OutcomeUnknown) as told:
            await append(appender_on(store), draft("a"))
        assert isinstance(told.value.__cause__, ZeroDivisionError)

    asyncio.run(story())


def test_a_call_that_is_cancelled_does_not_disturb_those_that_share_its_segment():
    async def story():
        store = TroubledStore(HandClock())
        store.gate = asyncio.Event()
        appender = appender_on(store)
        gone, stays = (asyncio.create_task(append(appender, draft(name))) for name in ("gone", "stays"))
        await _idle()
        gone.cancel()
        await _idle()
        store.gate.set()
        await stays
        assert gone.cancelled()
        assert [labels(segment) for segment in await segments_of(store)] == [["gone", "stays"]]

    asyncio.run(story())


# Names and numbers


def test_hazard_05_a_name_that_a_stranger_has_is_never_overwritten():
    async def story():
        clock = HandClock()
        store = MemoryStore(clock)
        twins = [appender_on(store, HandClock(), seed=7, gather_s=0.0) for _ in range(2)]
        await append(twins[0], draft("first", key="first"))
        await append(twins[1], draft("second", key="second"))
        segments = await segments_of(store)
        assert sorted(map(labels, segments)) == [["first"], ["second"]]
        assert sorted(numbers(segments).values()) == [[1], [1]]

    asyncio.run(story())


def test_hazard_05_names_are_whole_ulids_and_are_created_only_if_absent():
    async def story():
        store = LostReplies(HandClock())
        appender = appender_on(store)
        for n in range(50):
            await append(appender, draft(str(n)))
        assert len({put.key for put in store.puts}) == 50
        assert all(type(put.condition).__name__ == "Absent" for put in store.puts)
        assert all(len(put.key.rpartition("/")[2]) == 26 + len(".jsonl") for put in store.puts)

    asyncio.run(story())


def test_names_that_are_all_taken_are_reported_and_nothing_is_overwritten():
    async def story():
        store = ScriptedStore([Lost("the object exists"), ...])
        with pytest.raises(BrokenInvariant, match="taken"):
            await append(appender_on(store), draft("a"))
        assert len({put.key for put in store.puts}) == LEDGER_NAME_ATTEMPTS_MAX

    asyncio.run(story())


def test_a_writers_numbers_are_dense():
    async def story():
        store = MemoryStore(HandClock())
        appender = appender_on(store)
        for n in range(5):
            await append(appender, draft(str(n)))
        assert list(numbers(await segments_of(store)).values()) == [[1, 2, 3, 4, 5]]

    asyncio.run(story())


@pytest.mark.parametrize(
    ("mood", "expected"),
    [(Mood.DEAF, [[1, 2], [1, 2]]), (Mood.MUTE, [[1, 2], [1, 2, 3]]), (Mood.LATE, [[1, 2], [1, 2, 3]])],
    ids=["never stored", "stored at once", "stored long after"],
)
def test_no_number_is_skipped_or_given_twice_around_an_unknown_outcome(mood, expected):
    async def story():
        store = TroubledStore(HandClock())
        appender = appender_on(store)
        await append(appender, draft("1"))
        await append(appender, draft("2"))
        store.mood = mood
        with pytest.raises(OutcomeUnknown):
            await append(appender, draft("3"))
        store.mood = Mood.FINE
        await append(appender, draft("4"))
        await append(appender, draft("5"))
        await store.arrive()
        assert sorted(numbers(await segments_of(store)).values()) == expected

    asyncio.run(story())


def test_no_number_is_skipped_after_a_refusal():
    async def story():
        store = TroubledStore(HandClock())
        appender = appender_on(store)
        await append(appender, draft("1"))
        store.refusal = Throttled("slow down")
        for _ in range(3):
            with pytest.raises(Throttled):
                await append(appender, draft("2"))
        store.refusal = None
        await append(appender, draft("3"))
        await append(appender, draft("4"))
        assert sorted(numbers(await segments_of(store)).values()) == [[1], [1, 2]]

    asyncio.run(story())


def test_positions_grow_along_a_writers_segments_though_the_clock_goes_back():
    async def story():
        clock = HandClock()
        store = MemoryStore(clock)
        appender = appender_on(store, clock)
        for n in range(6):
            await asyncio.gather(*(append(appender, draft(f"{n}{part}")) for part in "ab"))
            clock.at_ms -= 3_600_000
        segments = sorted(await segments_of(store), key=lambda segment: segment.writer_seq)
        positions = [event.position for segment in segments for event in segment.events]
        assert len(positions) == 12
        assert positions == sorted(set(positions))

    asyncio.run(story())


# Keys


def test_hazard_06_one_key_sent_by_many_at_once_is_one_event():
    async def story():
        clock = HandClock()
        store = MemoryStore(clock)
        appenders = [appender_on(store, clock, seed=seed) for seed in range(4)]
        await asyncio.gather(*(append(one, draft("same", key="key")) for one in appenders for _ in range(2)))
        events = [event for segment in await segments_of(store) for event in segment.events]
        assert len(events) == 8
        assert len({event.id for event in events}) == 1
        assert len({event.position for event in events}) == 8

    asyncio.run(story())


def test_events_without_a_key_are_all_different():
    async def story():
        store = MemoryStore(HandClock())
        await append(appender_on(store), *[draft("same")] * 10)
        [segment] = await segments_of(store)
        assert len({event.id for event in segment.events}) == 10

    asyncio.run(story())


# Refusals before anything is written


def test_nothing_is_written_for_no_events():
    async def story():
        store = ScriptedStore()
        await appender_on(store).append(Domain.EXECUTION, [])
        assert store.puts == []

    asyncio.run(story())


@pytest.mark.parametrize(
    ("drafts", "error"),
    [
        ([draft("a", kind=EventType("audit.happened.v1"))], InvalidInput),
        ([draft("good"), draft("bad", n=float("nan"))], InvalidInput),
        ([draft("a", text="x" * LEDGER_EVENT_BYTES_MAX)], TooLarge),
        ([draft("a")] * (LEDGER_SEGMENT_EVENTS_MAX + 1), TooLarge),
        ([draft("a", text="x" * 1_000_000)] * (LEDGER_SEGMENT_BYTES_MAX // 1_000_000 + 1), TooLarge),
    ],
    ids=["domain", "one bad event", "large event", "many events", "many bytes"],
)
def test_a_call_that_cannot_be_stored_is_refused_alone(drafts, error):
    async def story():
        store = MemoryStore(HandClock())
        appender = appender_on(store)
        told = await asyncio.gather(
            append(appender, draft("before")),
            append(appender, *drafts),
            append(appender, draft("after")),
            return_exceptions=True,
        )
        assert [type(one) for one in told] == [type(None), error, type(None)]
        assert [labels(segment) for segment in await segments_of(store)] == [["before", "after"]]

    asyncio.run(story())


def test_a_process_holds_only_so_many_events_and_recovers():
    async def story():
        store = TroubledStore(HandClock())
        store.gate = asyncio.Event()
        appender = appender_on(store)
        large = draft("large", text="x" * (LEDGER_EVENT_BYTES_MAX - 1000))
        fits = LEDGER_WAITING_BYTES_MAX // LEDGER_EVENT_BYTES_MAX
        calls = [asyncio.create_task(append(appender, large)) for _ in range(fits + 1)]
        await _idle()
        assert [type(call.exception()) for call in calls if call.done()] == [Throttled]
        store.gate.set()
        await asyncio.gather(*calls, return_exceptions=True)
        await append(appender, large)
        assert sum(len(segment.events) for segment in await segments_of(store)) == fits + 1

    asyncio.run(story())


# Closing


def test_closing_stores_what_was_taken_and_takes_no_more():
    async def story():
        store = MemoryStore(HandClock())
        appender = appender_on(store)
        calls = [asyncio.create_task(append(appender, draft(str(n)))) for n in range(3)]
        await asyncio.sleep(0)
        await appender.close()
        assert [labels(segment) for segment in await segments_of(store)] == [["0", "1", "2"]]
        await asyncio.gather(*calls)
        with pytest.raises(Unavailable, match="closed"):
            await append(appender, draft("late"))
        await appender.close()

    asyncio.run(story())


def test_closing_an_appender_that_was_never_used_does_nothing():
    asyncio.run(appender_on(ScriptedStore()).close())


def test_two_processes_on_one_folder_leave_each_others_segments_alone(tmp_path):
    async def story():
        stores = [open_root(str(tmp_path), {}, SystemClock(), SystemEntropy()) for _ in range(2)]
        appenders = [Appender(store, SCOPE, SystemClock(), SystemEntropy()) for store in stores]
        for n in range(3):
            await asyncio.gather(*(append(one, draft(f"{name}{n}")) for one, name in zip(appenders, "ab", strict=True)))
        segments = await segments_of(stores[0])
        assert sorted(label for segment in segments for label in labels(segment)) == ["a0", "a1", "a2", "b0", "b1", "b2"]
        assert sorted(numbers(segments).values()) == [[1, 2, 3], [1, 2, 3]]
        for store in stores:
            await store.close()

    asyncio.run(story())


def test_the_worst_source_of_randomness_still_overwrites_nothing():
    async def story():
        store, clock = MemoryStore(HandClock()), HandClock()
        appenders = [Appender(store, SCOPE, clock, ConstantEntropy(), gather_s=0.0) for _ in range(3)]
        for n, appender in enumerate(appenders):
            await append(appender, draft(str(n), key=str(n)))
        assert sorted(label for segment in await segments_of(store) for label in labels(segment)) == ["0", "1", "2"]

    asyncio.run(story())


async def _idle() -> None:
    """Let every task run until it waits for something."""
    for _ in range(20):
        await asyncio.sleep(0)


# Items of several domains


CHECKED = EventType("quality.checked.v1")


def test_the_events_of_items_are_told_where_they_stand():
    async def story():
        store = MemoryStore(HandClock())
        given = [[draft("a"), draft("b", kind=CHECKED)], [], [draft("c")]]
        appended = await appender_on(store).append_items(given, lambda drafts: drafts)
        assert [len(several) for several in appended] == [2, 0, 1]
        stored = {event.id: event for segment in await segments_of(store) for event in segment.events}
        assert [(one.type, one.position) for several in appended for one in several] == [
            (stored[one.id].type, stored[one.id].position) for several in appended for one in several
        ]
        assert sorted(labels(segment) for segment in await segments_of(store)) == [["a", "c"], ["b"]]

    asyncio.run(story())


def test_everything_that_is_wrong_is_said_and_nothing_is_stored():
    def drafts_of(item):
        if item == "refused":
            raise InvalidInput("no such thing")
        return [draft(item), draft("x", kind=CHECKED, text="x" * (LEDGER_EVENT_BYTES_MAX if item == "large" else 1))]

    async def story():
        store = MemoryStore(HandClock())
        with pytest.raises(InvalidItems) as caught:
            await appender_on(store).append_items(["a", "refused", "b", "large"], drafts_of)
        assert [(one.index, one.code) for one in caught.value.problems] == [(1, "invalid_input"), (3, "too_large")]
        assert await segments_of(store) == []

    asyncio.run(story())


def test_items_that_fit_into_no_segment_leave_nothing_waiting():
    async def story():
        store = MemoryStore(HandClock())
        appender = appender_on(store)
        with pytest.raises(TooLarge):
            await appender.append_items(range(LEDGER_SEGMENT_EVENTS_MAX + 1), lambda n: [draft(str(n))])
        await appender.append_items([1], lambda n: [draft("a"), draft("b", kind=CHECKED)])
        assert sorted(labels(segment) for segment in await segments_of(store)) == [["a"], ["b"]]

    asyncio.run(story())


class OneDomainRefused(MemoryStore):
    async def put(self, key, data, condition):
        if "/ledger/quality/" in key:
            raise Unavailable("not now")
        return await super().put(key, data, condition)


def test_what_is_stored_in_part_is_not_said_to_be_refused():
    async def story():
        appender = appender_on(OneDomainRefused(HandClock()))
        with pytest.raises(OutcomeUnknown):
            await appender.append_items([1], lambda _: [draft("a"), draft("b", kind=CHECKED)])

    asyncio.run(story())


def test_a_domain_that_is_not_there_is_refused():
    async def story():
        unknown = draft("a", kind=EventType("weather.rained.v1"))
        with pytest.raises(InvalidItems) as caught:
            await appender_on(MemoryStore(HandClock())).append_items([1], lambda _: [unknown])
        assert "no domain" in caught.value.problems[0].message

    asyncio.run(story())

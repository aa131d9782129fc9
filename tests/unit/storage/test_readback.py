"""The lost reply, path by path: what was asked of the store, and what the caller is told."""

import asyncio
from itertools import pairwise

import pytest

from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import AccessDenied, ArcoError, InvalidInput, NotFound, Throttled, Unavailable
from arco.kernel.limits import READBACK_ATTEMPTS_MAX, READBACK_PAUSE_S_FIRST, READBACK_PAUSE_S_MAX
from arco.storage.port import Absent, Always, Condition, Landed, Lost, Matches, Object, Outcome, Unknown, Version
from arco.storage.readback import Judge, pause_s, put_settled
from stand_ins.hand_clock import ConstantEntropy, HandClock
from stand_ins.scripted_store import Put, ScriptedStore, stored

KEY = "t/w/x"
OURS = b"ours"
BASE = Version("base")
MATCHES = Matches(BASE)
SILENT = Unknown("no reply")
LANDED = Landed(Version("new"))
LOST = Lost("taken")
THROTTLED = Throttled("slow down")
CONDITIONS = (Absent(), MATCHES, Always())
conditions = pytest.mark.parametrize("condition", CONDITIONS, ids=["create", "swap", "overwrite"])


def found(data: bytes, version: str = "other") -> Object:
    return stored(KEY, data, version)


def settle(
    store: ScriptedStore, condition: Condition, judge: Judge | None = None, clock: HandClock | None = None
) -> Outcome:
    return asyncio.run(
        put_settled(
            store, KEY, OURS, condition, clock=clock or HandClock(), entropy=SeededEntropy(1), judge=judge
        )
    )  # fmt: skip


def never(_: Object) -> Outcome:
    raise AssertionError("nothing was there to judge")


# A definite first reply


@conditions
@pytest.mark.parametrize("reply", [LANDED, LOST], ids=["landed", "lost"])
def test_a_definite_first_reply_is_believed_without_a_read(condition, reply):
    store = ScriptedStore([reply])
    assert settle(store, condition, never) == reply
    assert store.reads == []
    assert len(store.puts) == 1


@conditions
def test_a_write_goes_out_as_it_was_given(condition):
    store = ScriptedStore([LANDED])
    settle(store, condition)
    assert store.puts == [Put(KEY, OURS, condition)]


# An unknown reply, resolved by reading


@conditions
def test_our_bytes_there_means_landed_with_the_version_that_stands_there(condition):
    store = ScriptedStore([SILENT], [found(OURS, "v9")])
    assert settle(store, condition, never) == Landed(Version("v9"))
    assert store.reads == [KEY]
    assert len(store.puts) == 1


def test_a_create_that_finds_another_object_is_lost_when_objects_are_immutable():
    store = ScriptedStore([SILENT], [found(b"theirs")])
    assert isinstance(settle(store, Absent()), Lost)
    assert len(store.puts) == 1


def test_a_swap_that_finds_another_state_stays_unknown_when_it_carries_no_history():
    store = ScriptedStore([SILENT], [found(b"theirs")])
    assert isinstance(settle(store, MATCHES), Unknown)
    assert len(store.puts) == 1


@pytest.mark.parametrize("condition", [Absent(), MATCHES], ids=["create", "swap"])
@pytest.mark.parametrize(
    "verdict", [Landed(None), LOST, Unknown("history is too short")], ids=lambda verdict: type(verdict).__name__
)
def test_what_stands_there_instead_is_judged_once_and_the_verdict_stands(condition, verdict):
    judged = []

    def judge(current: Object) -> Outcome:
        judged.append(current.data)
        return verdict

    store = ScriptedStore([SILENT], [found(b"theirs")])
    assert settle(store, condition, judge) == verdict
    assert judged == [b"theirs"]
    assert len(store.puts) == 1


def test_an_object_that_is_gone_may_have_taken_our_write_with_it():
    store = ScriptedStore([SILENT], [None])
    outcome = settle(store, MATCHES, never)
    assert isinstance(outcome, Unknown)
    assert "gone" in outcome.reason
    assert len(store.puts) == 1


STILL_AS_BEFORE = {
    "create": (Absent(), None),
    "swap": (MATCHES, found(b"base", BASE)),
    "overwrite of nothing": (Always(), None),
    "overwrite of another": (Always(), found(b"theirs")),
}


@pytest.mark.parametrize("case", STILL_AS_BEFORE)
def test_while_the_base_still_stands_the_same_bytes_are_sent_again_under_the_same_condition(case):
    condition, base = STILL_AS_BEFORE[case]
    store = ScriptedStore([SILENT, SILENT, LANDED], [base, base])
    assert settle(store, condition, never) == LANDED
    assert store.puts == [Put(KEY, OURS, condition)] * 3
    assert store.used_up


# The failures that the module is there to prevent


@pytest.mark.parametrize("condition", [Absent(), MATCHES], ids=["create", "swap"])
def test_hazard_01_a_landed_write_that_is_sent_again_and_refused_is_not_reported_lost(condition):
    """The first reply is lost on its way, the read-back fails, the second attempt collides with the first."""
    store = ScriptedStore([SILENT, LOST], [Unavailable("no answer"), found(OURS, "v2")])
    assert settle(store, condition, never) == Landed(Version("v2"))


def test_hazard_01_a_landed_swap_that_others_have_overwritten_is_found_in_the_history():
    store = ScriptedStore([SILENT, LOST], [found(b"base", BASE), found(b"theirs, after ours")])
    assert settle(store, MATCHES, lambda _: Landed(None)) == Landed(None)


def test_hazard_12_a_lost_after_a_doubt_is_never_passed_on_unread():
    """A caller that cleans up after `Lost` would delete the files of a landed commit."""
    store = ScriptedStore([SILENT, LOST, ...], [Unavailable("no answer"), ...])
    assert isinstance(settle(store, MATCHES), Unknown)
    assert len(store.reads) == READBACK_ATTEMPTS_MAX


def test_hazard_14_bytes_that_only_look_like_the_base_do_not_pass_for_it():
    """The version decides what the base is, never the bytes."""
    store = ScriptedStore([SILENT], [found(b"base", "another version")])
    assert isinstance(settle(store, MATCHES), Unknown)
    assert len(store.puts) == 1


# Stores that ask for a pause


@conditions
def test_a_store_that_asks_for_a_pause_is_asked_again(condition):
    clock = HandClock()
    store = ScriptedStore([THROTTLED, Unavailable("down"), LANDED])
    assert settle(store, condition, never, clock) == LANDED
    assert store.puts == [Put(KEY, OURS, condition)] * 3
    assert len(clock.pauses) == 2


@conditions
def test_after_a_mere_pause_a_definite_lost_is_still_believed_without_a_read(condition):
    store = ScriptedStore([THROTTLED, LOST])
    assert settle(store, condition, never) == LOST
    assert store.reads == []


@conditions
@pytest.mark.parametrize("error", [THROTTLED, Unavailable("down")], ids=lambda error: error.code)
def test_a_store_that_never_takes_the_write_raises_because_surely_nothing_was_written(condition, error):
    store = ScriptedStore([error, ...])
    with pytest.raises(type(error)):
        settle(store, condition)
    assert len(store.puts) == READBACK_ATTEMPTS_MAX


@conditions
def test_a_store_that_falls_silent_after_a_doubt_leaves_it_unknown(condition):
    store = ScriptedStore([SILENT, THROTTLED, ...], [THROTTLED, ...])
    outcome = settle(store, condition)
    assert isinstance(outcome, Unknown)
    assert "no reply" in outcome.reason
    assert len(store.puts) == READBACK_ATTEMPTS_MAX


@conditions
def test_a_failing_read_back_is_repeated(condition):
    store = ScriptedStore([SILENT, SILENT], [THROTTLED, found(OURS, "v3")])
    assert settle(store, condition) == Landed(Version("v3"))


# Refusals


@conditions
@pytest.mark.parametrize(
    "error", [AccessDenied("no"), InvalidInput("bad name"), NotFound("no bucket")], ids=lambda error: error.code
)
def test_a_refusal_without_a_doubt_is_raised_at_once(condition, error):
    store = ScriptedStore([error])
    with pytest.raises(type(error)):
        settle(store, condition)
    assert len(store.puts) == 1


@conditions
def test_a_refusal_after_a_pause_is_raised_too(condition):
    store = ScriptedStore([THROTTLED, AccessDenied("expired")])
    with pytest.raises(AccessDenied):
        settle(store, condition)


@conditions
def test_a_refusal_after_a_doubt_does_not_say_that_nothing_happened(condition):
    store = ScriptedStore([SILENT, AccessDenied("the token expired")], [THROTTLED])
    assert settle(store, condition) == Unknown("the token expired")


@conditions
def test_a_read_back_that_is_refused_leaves_it_unknown(condition):
    store = ScriptedStore([SILENT], [AccessDenied("may write, not read")])
    assert settle(store, condition) == Unknown("may write, not read")


def test_a_judge_that_cannot_read_the_object_leaves_it_unknown():
    def judge(_: Object) -> Outcome:
        raise ArcoError("not a document")

    store = ScriptedStore([SILENT], [found(b"garbage")])
    assert settle(store, MATCHES, judge) == Unknown("not a document")


def test_an_error_that_is_not_arcos_is_not_swallowed():
    with pytest.raises(ZeroDivisionError):
        settle(ScriptedStore([ZeroDivisionError()]), Absent())


# Attempts and pauses


@pytest.mark.parametrize("case", STILL_AS_BEFORE)
def test_the_attempts_are_bounded_and_the_end_is_unknown(case):
    condition, base = STILL_AS_BEFORE[case]
    clock = HandClock()
    store = ScriptedStore([SILENT, ...], [base, ...])
    outcome = settle(store, condition, never, clock)
    assert isinstance(outcome, Unknown)
    assert str(READBACK_ATTEMPTS_MAX) in outcome.reason
    assert len(store.puts) == len(store.reads) == READBACK_ATTEMPTS_MAX
    assert len(clock.pauses) == READBACK_ATTEMPTS_MAX - 1


def test_a_first_attempt_does_not_wait():
    clock = HandClock()
    settle(ScriptedStore([LANDED]), Absent(), clock=clock)
    assert clock.pauses == []


def test_pauses_double_until_their_bound():
    longest = [pause_s(attempt, ConstantEntropy(fraction=1.0)) for attempt in range(1, 40)]
    assert longest[0] == READBACK_PAUSE_S_FIRST
    assert all(after == min(2 * before, READBACK_PAUSE_S_MAX) for before, after in pairwise(longest))
    assert longest[-1] == READBACK_PAUSE_S_MAX


@pytest.mark.parametrize("attempt", [1, 2, 5, 30])
def test_pauses_are_shortened_at_random_but_never_below_half(attempt):
    longest = pause_s(attempt, ConstantEntropy(fraction=1.0))
    entropy = SeededEntropy(attempt)
    pauses = [pause_s(attempt, entropy) for _ in range(200)]
    assert all(longest / 2 <= pause <= longest for pause in pauses)
    assert len(set(pauses)) > 150

"""What a schedule owes: pure decisions on its state, its definition and a time."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from arco.kernel.errors import CorruptObject
from arco.kernel.limits import SCHEDULE_ENDED_TICKS_MAX, SCHEDULE_OPEN_TICKS_MAX
from arco.servo.deploy.manifest import DeployedSchedule
from arco.servo.plan.freshness import Urgent
from arco.servo.schedule.schedule_state import EndedTick, Paused, ScheduleState
from arco.servo.schedule.tick_decisions import Known, decided, ended, is_news, resumed

HOUR_MS = 3_600_000
NOTHING = Known()


def deployed(when: dict[str, Any], version: str = "v1", since_ms: int = 0) -> DeployedSchedule:
    definition = {"when": when, "make": ["orders+"], "partitions": {}, "mode": "stale", "parameters": {}}
    return DeployedSchedule(name="nightly", version=version, since_ms=since_ms, definition=definition)


def hourly(catch_up: str, version: str = "v1", since_ms: int = 0) -> DeployedSchedule:
    return deployed({"kind": "cron", "cron": "0 * * * *", "timezone": "UTC", "catch_up": catch_up}, version, since_ms)


SOURCE = deployed({"kind": "source", "sources": ["shop.raw"]})
FRESH = deployed({"kind": "freshness", "assets": ["shop.orders"]})
URGENT = Urgent(
    ("shop.orders",), ("m1",), due_by_ms=9_000, again_after_s=60, cause="shop.orders would not be fresh in time"
)


def ids(state: ScheduleState) -> list[str]:
    return [tick.id for tick in state.open]


def finished(state: ScheduleState) -> ScheduleState:
    for tick in state.open:
        state = ended(state, tick, EndedTick(id=tick.id, version=tick.version, outcome="ran", ended_ms=0))
    return state


def test_every_missed_tick_is_taken_up_or_only_the_last() -> None:
    now = 3 * HOUR_MS + 1
    every, last = decided(None, hourly("all"), NOTHING, now), decided(None, hourly("latest"), NOTHING, now)
    assert ids(every) == [str(HOUR_MS), str(2 * HOUR_MS), str(3 * HOUR_MS)]
    assert ids(last) == [str(3 * HOUR_MS)]
    assert every.through_ms == last.through_ms == 3 * HOUR_MS
    assert (every.decisions, last.decisions) == (3, 1)
    assert every.open[0].make == ("orders+",)
    assert (every.open[0].trigger, every.open[0].cause) == ("scheduled", "0 * * * * at 1970-01-01 01:00Z")


def test_nothing_is_decided_twice() -> None:
    once = decided(None, hourly("all"), NOTHING, HOUR_MS)
    assert decided(once, hourly("all"), NOTHING, HOUR_MS + 5) == once
    assert decided(finished(once), hourly("all"), NOTHING, HOUR_MS + 5).open == ()
    assert decided(finished(once), hourly("all"), NOTHING, HOUR_MS - 5).through_ms == HOUR_MS  # by a clock that is behind


def test_only_what_catches_up_all_lets_ticks_wait_behind_one_another() -> None:
    first = decided(None, hourly("latest"), NOTHING, HOUR_MS)
    waiting = decided(first, hourly("latest"), NOTHING, 5 * HOUR_MS)
    assert waiting == first
    assert ids(decided(finished(first), hourly("latest"), NOTHING, 5 * HOUR_MS)) == [str(5 * HOUR_MS)]


def test_what_waits_has_a_limit_and_nothing_is_lost_by_it() -> None:
    hours = SCHEDULE_OPEN_TICKS_MAX + 500
    full = decided(None, hourly("all"), NOTHING, hours * HOUR_MS)
    assert len(full.open) == SCHEDULE_OPEN_TICKS_MAX
    assert decided(full, hourly("all"), NOTHING, hours * HOUR_MS) == full
    rest = decided(finished(full), hourly("all"), NOTHING, hours * HOUR_MS)
    assert [int(one) for one in ids(rest)] == [number * HOUR_MS for number in range(SCHEDULE_OPEN_TICKS_MAX + 1, hours + 1)]


def test_a_schedule_that_nobody_looked_at_owes_from_its_deployment_on() -> None:
    assert ids(decided(None, hourly("all", since_ms=HOUR_MS), NOTHING, 2 * HOUR_MS)) == [str(2 * HOUR_MS)]
    quiet = decided(None, hourly("all", since_ms=HOUR_MS), NOTHING, HOUR_MS)
    assert not is_news(None, quiet)


def test_another_definition_ends_the_one_before_when_it_was_deployed() -> None:
    before = decided(None, hourly("all"), NOTHING, HOUR_MS)
    after = decided(before, hourly("latest", "v2", since_ms=3 * HOUR_MS + 1), NOTHING, 5 * HOUR_MS)
    # What the old one owes is kept by its own policy; the new one decides when that is done.
    assert [(tick.version, tick.id) for tick in after.open] == [("v1", str(hour * HOUR_MS)) for hour in (1, 2, 3)]
    assert (after.version, after.through_ms) == ("v2", 3 * HOUR_MS + 1)
    assert [tick.version for tick in decided(finished(after), hourly("latest", "v2"), NOTHING, 5 * HOUR_MS).open] == ["v2"]


def test_what_is_not_caught_up_ends_with_its_definition() -> None:
    before = finished(decided(None, hourly("latest"), NOTHING, HOUR_MS))
    after = decided(before, hourly("all", "v2", since_ms=3 * HOUR_MS), NOTHING, 5 * HOUR_MS)
    assert [(tick.version, tick.id) for tick in after.open] == [("v2", str(hour * HOUR_MS)) for hour in (4, 5)]


def test_a_moment_never_counts_for_two_definitions() -> None:
    before = finished(decided(None, hourly("all"), NOTHING, 4 * HOUR_MS))
    after = decided(
        before, hourly("all", "v2", since_ms=2 * HOUR_MS), NOTHING, 5 * HOUR_MS
    )  # deployed by a clock that is behind
    assert ids(after) == [str(5 * HOUR_MS)]


def test_a_pause_decides_nothing_and_its_ticks_are_not_due_afterwards() -> None:
    before = decided(None, hourly("all"), NOTHING, HOUR_MS)
    paused = msgspec.structs.replace(before, paused=Paused(who="ann", why="holidays", at_ms=HOUR_MS))
    assert decided(paused, hourly("all"), NOTHING, 9 * HOUR_MS) == paused
    again = resumed(paused, 9 * HOUR_MS + 1)
    assert again.paused is None
    assert ids(decided(again, hourly("all"), NOTHING, 10 * HOUR_MS)) == [str(HOUR_MS), str(10 * HOUR_MS)]


def test_new_content_of_a_source_is_a_tick_once() -> None:
    first = decided(None, SOURCE, Known(sources={"shop.raw": "t/1"}), 5)
    assert [(tick.id, tick.trigger, tick.cause) for tick in first.open] == [("number 1", "source", "new in shop.raw")]
    assert decided(finished(first), SOURCE, Known(sources={"shop.raw": "t/1"}), 6).open == ()
    assert decided(first, SOURCE, Known(sources={"shop.raw": "t/2"}), 6) == first  # while one waits
    second = decided(finished(first), SOURCE, Known(sources={"shop.raw": "t/2"}), 6)
    third = decided(finished(second), SOURCE, Known(sources={"shop.raw": "t/1"}), 7)  # set back: content that is new again
    assert (ids(second), ids(third)) == (["number 2"], ["number 3"])


def test_a_source_that_is_gone_for_a_while_is_no_news() -> None:
    first = finished(decided(None, SOURCE, Known(sources={"shop.raw": "t/1"}), 5))
    assert decided(first, SOURCE, Known(sources={}), 6) == first
    assert decided(first, SOURCE, Known(sources={"shop.raw": "t/1"}), 7) == first


def test_what_is_due_soon_is_asked_for_once_on_the_same_facts() -> None:
    first = decided(None, FRESH, Known(urgent=URGENT), 1_000)
    tick = first.open[0]
    assert (tick.make, tick.due_by_ms, tick.trigger) == (("shop.orders",), 9_000, "freshness")
    assert decided(finished(first), FRESH, Known(urgent=URGENT), 60_000).open == ()
    assert ids(decided(finished(first), FRESH, Known(urgent=URGENT), 61_000)) == [
        "number 2"
    ]  # it failed, and is tried again
    other = replace(URGENT, published=("m2",))
    assert ids(decided(finished(first), FRESH, Known(urgent=other), 2_000)) == ["number 2"]
    assert decided(finished(first), FRESH, NOTHING, 99_000).open == ()


def test_a_tick_that_another_has_ended_stays_ended() -> None:
    state = decided(None, hourly("all"), NOTHING, HOUR_MS)
    tick = state.open[0]
    result = EndedTick(id=tick.id, version=tick.version, outcome="ran", ended_ms=1)
    once = ended(state, tick, result)
    assert ended(once, tick, result) == once
    assert once.ended == (result,)


def test_only_the_last_ends_are_kept() -> None:
    state = finished(decided(None, hourly("all"), NOTHING, 30 * HOUR_MS))
    assert len(state.ended) == SCHEDULE_ENDED_TICKS_MAX
    assert state.ended[0].id == str(30 * HOUR_MS)


def test_a_kind_that_nobody_knows_is_refused() -> None:
    with pytest.raises(CorruptObject, match="fires by 'moon'"):
        decided(None, deployed({"kind": "moon"}), NOTHING, 5)


def test_the_key_of_a_run_names_project_schedule_version_and_tick() -> None:
    tick = decided(None, hourly("all"), NOTHING, HOUR_MS).open[0]
    assert tick.key("shop", "nightly") == "schedule shop nightly v1 3600000"

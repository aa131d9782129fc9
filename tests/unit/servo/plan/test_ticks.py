"""Ticks across the days on which clocks go forward and back, in zones that do it each in its own way."""

from datetime import UTC, datetime, tzinfo
from itertools import pairwise

import pytest

from arco.kernel.errors import InvalidInput
from arco.kernel.limits import SCHEDULE_LATE_S, SCHEDULE_OPEN_TICKS_MAX
from arco.servo.plan.ticks import Due, due, last_tick, next_ticks, ticks_between
from arco.servo.sdk.cron import Cron
from arco.servo.sdk.schedules import CatchUp, zone


def ms(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def said(ticks: list[int], where: tzinfo) -> list[str]:
    """As the clock on the wall shows them, with what it is away from UTC."""
    return [datetime.fromtimestamp(tick / 1000, where).isoformat(timespec="minutes") for tick in ticks]


def between(text: str, place: str, first: str, last: str) -> list[str]:
    where = zone(place)
    return said(ticks_between(Cron.parse(text), where, ms(first) - 1, ms(last)), where)


def test_a_time_that_is_skipped_fires_when_the_clocks_go_forward() -> None:
    assert between("30 2 * * *", "Europe/Berlin", "2026-03-28", "2026-03-31") == [
        "2026-03-28T02:30+01:00",
        "2026-03-29T03:00+02:00",
        "2026-03-30T02:30+02:00",
    ]


def test_a_time_that_is_there_twice_fires_the_first_time() -> None:
    assert between("30 2 * * *", "Europe/Berlin", "2026-10-24", "2026-10-27") == [
        "2026-10-24T02:30+02:00",
        "2026-10-25T02:30+02:00",
        "2026-10-26T02:30+01:00",
    ]


def test_several_times_in_one_gap_are_one_tick() -> None:
    assert between("0,30 2-3 * * *", "Europe/Berlin", "2026-03-29", "2026-03-29 12:00") == [
        "2026-03-29T03:00+02:00",
        "2026-03-29T03:30+02:00",
    ]


def test_what_fires_every_hour_follows_the_time_that_passes() -> None:
    forward = ticks_between(Cron.parse("*/30 * * * *"), zone("America/New_York"), ms("2026-03-08"), ms("2026-03-09"))
    back = ticks_between(Cron.parse("*/30 * * * *"), zone("America/New_York"), ms("2026-11-01"), ms("2026-11-02"))
    assert [later - one for one, later in pairwise(forward)] == [1_800_000] * 47
    assert [later - one for one, later in pairwise(back)] == [1_800_000] * 47


def test_half_an_hour_of_summer() -> None:
    assert between("15 2 * * *", "Australia/Lord_Howe", "2026-10-02 15:00", "2026-10-05 12:00") == [
        "2026-10-03T02:15+10:30",
        "2026-10-04T02:30+11:00",
        "2026-10-05T02:15+11:00",
    ]


def test_a_midnight_that_is_not_there() -> None:
    assert between("0 0 * * *", "Africa/Cairo", "2026-04-22 12:00", "2026-04-25 12:00") == [
        "2026-04-23T00:00+02:00",
        "2026-04-24T01:00+03:00",
        "2026-04-25T00:00+03:00",
    ]


def test_a_day_that_is_not_there() -> None:
    """Samoa went to the other side of the date line: 30 December 2011 was left out."""
    assert between("0 9 * * *", "Pacific/Apia", "2011-12-29", "2012-01-01") == [
        "2011-12-29T09:00-10:00",
        "2011-12-31T00:00+14:00",
        "2011-12-31T09:00+14:00",
        "2012-01-01T09:00+14:00",
    ]


def test_leap_days_and_a_century_without_one() -> None:
    leap = Cron.parse("0 12 29 2 *")
    found = next_ticks(leap, UTC, ms("2088-03-01"), 3)
    assert said(found, UTC) == ["2092-02-29T12:00+00:00", "2096-02-29T12:00+00:00", "2104-02-29T12:00+00:00"]


def test_bounds_are_after_one_moment_and_up_to_another() -> None:
    daily = Cron.parse("0 0 * * *")
    assert ticks_between(daily, UTC, ms("2026-01-01"), ms("2026-01-02")) == [ms("2026-01-02")]
    assert ticks_between(daily, UTC, ms("2026-01-02"), ms("2026-01-02")) == []
    assert last_tick(daily, UTC, ms("2026-01-01"), ms("2026-01-02")) == ms("2026-01-02")
    assert last_tick(daily, UTC, ms("2026-01-02"), ms("2026-01-02 23:59")) is None


def test_what_is_owed_after_a_long_sleep() -> None:
    hourly = Cron.parse("0 * * * *")
    first, now = ms("2026-01-01"), ms("2026-01-01 05:10")
    hours = [ms(f"2026-01-01 0{hour}:00") for hour in range(1, 6)]
    assert due(hourly, UTC, CatchUp.ALL, first, now) == Due(tuple(hours), hours[-1])
    assert due(hourly, UTC, CatchUp.LATEST, first, now) == Due((hours[-1],), hours[-1])
    assert due(hourly, UTC, CatchUp.NONE, first, now) == Due((), hours[-1])
    assert due(hourly, UTC, CatchUp.NONE, first, hours[-1] + SCHEDULE_LATE_S * 1000) == Due((hours[-1],), hours[-1])
    assert due(hourly, UTC, CatchUp.ALL, hours[-1], now) is None


def test_what_waits_for_years_is_taken_up_part_by_part() -> None:
    minutely, first, now = Cron.parse("* * * * *"), ms("2016-01-01"), ms("2026-01-01")
    owed = due(minutely, UTC, CatchUp.ALL, first, now)
    assert owed is not None
    assert len(owed.ticks) == SCHEDULE_OPEN_TICKS_MAX
    assert owed.through_ms == owed.ticks[-1] == first + SCHEDULE_OPEN_TICKS_MAX * 60_000
    assert due(minutely, UTC, CatchUp.LATEST, first, now) == Due((now,), now)


def test_a_zone_that_is_none() -> None:
    for name in ("Europe/Atlantis", "", "../etc/passwd", "/etc/localtime"):
        with pytest.raises(InvalidInput, match="there is no time zone"):
            zone(name)

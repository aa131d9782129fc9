"""Ticks against a clock that is looked at every minute, on generated expressions, in zones that change their clocks."""

from datetime import UTC, date, datetime, timedelta, tzinfo
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from arco.servo.plan.ticks import due, last_tick, next_ticks, ticks_between
from arco.servo.sdk.cron import Cron
from arco.servo.sdk.schedules import CatchUp, zone

ZONES = (
    "UTC", "Europe/Berlin", "Europe/London", "America/New_York", "America/St_Johns", "America/Sao_Paulo", "Africa/Cairo",
    "Africa/Casablanca", "Asia/Kathmandu", "Asia/Tehran", "Australia/Lord_Howe", "Pacific/Apia", "Pacific/Chatham",
    "America/Scoresbysund", "Antarctica/Troll",
)  # fmt: skip
MINUTE_MS = 60_000


def changes(where: tzinfo) -> list[datetime]:
    """The hours of two decades, the last that are known, in which the clocks of a zone are changed."""
    day, found = datetime(2008, 1, 1, tzinfo=UTC), []
    while day.year < 2030:
        after = day + timedelta(days=1)
        if day.astimezone(where).utcoffset() != after.astimezone(where).utcoffset():
            found.append(day)
        day = after
    return found


CHANGES = {name: changes(zone(name)) for name in ZONES}


def field(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    some = st.lists(number, min_size=1, max_size=4).map(lambda them: ",".join(map(str, them)))
    spans = st.tuples(number, number).map(lambda two: f"{min(two)}-{max(two)}")
    steps = st.integers(1, high).map(lambda step: f"*/{step}")
    return st.one_of(st.just("*"), some, spans, steps)


@st.composite
def crons(draw: st.DrawFn) -> Cron:
    days = draw(st.one_of(st.just("* * *"), st.tuples(field(1, 28), st.just("*"), field(0, 7)).map(" ".join)))
    hours = draw(st.one_of(field(0, 23), st.sampled_from(["0", "1", "2", "3", "0-3", "*"])))
    return Cron.parse(f"{draw(field(0, 59))} {hours} {days}")


@st.composite
def windows(draw: st.DrawFn) -> tuple[tzinfo, int, int]:
    """A zone, and some days around one of the moments at which its clocks are changed."""
    name = draw(st.sampled_from(ZONES))
    around = draw(st.sampled_from(CHANGES[name])) if CHANGES[name] else datetime(2026, 2, 27, tzinfo=UTC)
    first = around - timedelta(minutes=draw(st.integers(0, 2880)))
    last = around + timedelta(minutes=draw(st.integers(0, 4320)))
    return zone(name), round(first.timestamp() * 1000), round(last.timestamp() * 1000)


def watched(cron: Cron, where: tzinfo, after_ms: int, until_ms: int) -> list[int]:
    """Whoever looks at the clock on the wall every minute, and has a memory of two days."""
    now = after_ms // MINUTE_MS * MINUTE_MS - 2880 * MINUTE_MS
    before = wall_at(where, now)
    seen = {before}
    found = []
    while now + MINUTE_MS <= until_ms:
        now += MINUTE_MS
        wall = wall_at(where, now)
        skipped = (before + timedelta(minutes=number) for number in range(1, (wall - before) // timedelta(minutes=1)))
        if cron.is_hourly:
            fires = matches(cron, wall)
        else:
            fires = (matches(cron, wall) and wall not in seen) or any(matches(cron, one) for one in skipped)
        if fires and now > after_ms:
            found.append(now)
        seen.add(wall)
        before = wall
    return found


def wall_at(where: tzinfo, at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, where).replace(tzinfo=None, fold=0)


def matches(cron: Cron, wall: datetime) -> bool:
    return cron.has(wall.date()) and wall.hour in cron.hours and wall.minute in cron.minutes


@settings(max_examples=80)
@given(crons(), windows())
def test_ticks_are_what_a_watcher_of_the_clock_sees(cron: Cron, window: tuple[tzinfo, int, int]) -> None:
    where, first, last = window
    assert ticks_between(cron, where, first, last) == watched(cron, where, first, last)


@settings(max_examples=60)
@given(crons(), windows(), st.integers(0, 100))
def test_it_does_not_matter_how_often_one_looks(cron: Cron, window: tuple[tzinfo, int, int], percent: int) -> None:
    where, first, last = window
    middle = first + (last - first) * percent // 100
    whole = ticks_between(cron, where, first, last)
    assert ticks_between(cron, where, first, middle) + ticks_between(cron, where, middle, last) == whole
    assert next_ticks(cron, where, first, 7, last) == whole[:7]
    assert next_ticks(cron, where, first, len(whole) + 1)[: len(whole)] == whole
    assert last_tick(cron, where, first, last) == (whole[-1] if whole else None)


@settings(max_examples=30)
@given(crons(), windows(), st.lists(st.integers(0, 100), max_size=6))
def test_whenever_one_looks_nothing_is_owed_twice_and_all_is_owed_once(
    cron: Cron, window: tuple[tzinfo, int, int], looks: list[int]
) -> None:
    """Also by clocks that go back: what is decided stays decided."""
    where, first, last = window
    through, taken = first, []
    for now in [*(first + (last - first) * one // 100 for one in looks), *[last] * 20]:
        owed = due(cron, where, CatchUp.ALL, through, now)
        if owed is not None:
            taken += owed.ticks
            through = owed.through_ms
    assert taken == ticks_between(cron, where, first, last)


@settings(max_examples=60)
@given(st.sampled_from(ZONES), st.integers(2008, 2029), st.integers(0, 23), st.integers(0, 59))
def test_a_daily_schedule_has_a_tick_for_every_day(name: str, year: int, hour: int, minute: int) -> None:
    """One a day, whatever the clocks do: also the day that was left out has its own, unless another of the day stands there."""
    where = zone(name)
    first = round(datetime(year, 1, 1, tzinfo=UTC).timestamp() * 1000)
    ticks = ticks_between(Cron.parse(f"{minute} {hour} * * *"), where, first, first + 365 * 86_400_000)
    assert 364 <= len(ticks) <= 366
    assert max(later - one for one, later in pairwise(ticks)) <= 86_400_000 + 3 * 3_600_000


@given(st.dates(date(1972, 1, 1), date(2100, 1, 1)), st.integers(1, 31), st.integers(0, 6))
def test_days_count_by_the_calendar(day: date, of_month: int, weekday: int) -> None:
    is_day, is_weekday = day.day == of_month, day.isoweekday() % 7 == weekday
    assert Cron.parse(f"0 0 {of_month} * *").has(day) == is_day
    assert Cron.parse(f"0 0 * * {weekday}").has(day) == is_weekday
    assert Cron.parse(f"0 0 {of_month} * {weekday}").has(day) == (is_day or is_weekday)

"""Which moments a cron expression means in a time zone, and which of them a schedule that slept takes up again. Pure.

A tick is a moment, in milliseconds. A wall time that is there twice, because clocks go back, and one that is not there, because
they go forward, are what this file is about:

  by the clock     fires at some hours only, such as every day at 2:30. Each wall time counts once: of two, the first; one that
                   is skipped fires at the moment when the clocks go forward. So no day goes without its run, and none has two.
  by the hour      fires in every hour, such as every 15 minutes. It follows the time that passes: the hour that is there twice
                   has its ticks twice, the one that is skipped has none.

What must never enter: a clock, and what is done at a tick.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo

from arco.kernel.errors import InvalidInput
from arco.kernel.limits import SCHEDULE_LATE_S, SCHEDULE_OPEN_TICKS_MAX
from arco.servo.sdk.cron import Cron
from arco.servo.sdk.schedules import CatchUp

_SEARCHED_DAYS_MAX = 366 * 41
"""Until a day comes again that a cron expression has: 29 February may be 8 years away, and on one weekday 40."""

_DAY_MS = 86_400_000
_MARGIN = timedelta(days=2)
"""How far a wall time may be from UTC, with room: no zone ever was a whole day and a half away."""


def ticks_between(cron: Cron, where: tzinfo, after_ms: int, until_ms: int) -> list[int]:
    """Every tick after one moment and up to another, in order."""
    if until_ms <= after_ms:
        return []
    first, last = _utc(after_ms) - _MARGIN, _utc(until_ms) + _MARGIN
    found: set[int] = set()
    for day in _days(first.date(), last.date()):
        if cron.has(day):
            found |= {tick for tick in _ticks_of(cron, where, day) if after_ms < tick <= until_ms}
    return sorted(found)


def next_ticks(cron: Cron, where: tzinfo, after_ms: int, count: int, until_ms: int | None = None) -> list[int]:
    """The next ticks after a moment, and up to another if one is given: at most so many."""
    found: list[int] = []
    quiet_days = 0
    for day in _days((_utc(after_ms) - _MARGIN).date(), date.max - timedelta(days=1)):
        # A tick may come before one of an earlier day: days are looked at somewhat further than needed.
        sure = _utc(found[count - 1]) if len(found) >= count else None if until_ms is None else _utc(until_ms)
        if (sure is not None and (sure + _MARGIN).date() < day) or quiet_days > _SEARCHED_DAYS_MAX:
            break
        new = {tick for tick in _ticks_of(cron, where, day) if tick > after_ms} if cron.has(day) else set()
        quiet_days = 0 if new else quiet_days + 1
        found = sorted({*found, *new}) if new else found
    return [tick for tick in found if until_ms is None or tick <= until_ms][:count]


def last_tick(cron: Cron, where: tzinfo, after_ms: int, until_ms: int) -> int | None:
    """The last tick up to a moment, if there is one after another."""
    found: int | None = None
    first, last = (_utc(after_ms) - _MARGIN).date(), (_utc(until_ms) + _MARGIN).date()
    for day in (date.fromordinal(number) for number in range(last.toordinal(), first.toordinal() - 1, -1)):
        if found is not None and day < (_utc(found) - _MARGIN).date():
            break
        if cron.has(day):
            new = (tick for tick in _ticks_of(cron, where, day) if after_ms < tick <= until_ms)
            found = max((*new, *(() if found is None else (found,))), default=None)
    return found


@dataclass(frozen=True, slots=True)
class Due:
    """The ticks that are to be run, in order; all up to `through_ms` are decided with them, run or passed over."""

    ticks: tuple[int, ...]
    through_ms: int


def due(cron: Cron, where: tzinfo, policy: CatchUp, after_ms: int, now_ms: int) -> Due | None:
    """What a schedule owes that has decided everything up to a moment; None if nothing has come since."""
    match policy:
        case CatchUp.ALL:
            ticks = next_ticks(cron, where, after_ms, SCHEDULE_OPEN_TICKS_MAX, now_ms)
            return Due(tuple(ticks), ticks[-1]) if ticks else None
        case CatchUp.LATEST | CatchUp.NONE:
            last = last_tick(cron, where, after_ms, now_ms)
            if last is None:
                return None
            too_late = policy is CatchUp.NONE and now_ms - last > SCHEDULE_LATE_S * 1000
            return Due(() if too_late else (last,), last)


def _ticks_of(cron: Cron, where: tzinfo, day: date) -> Iterator[int]:
    midnight, next_midnight = (datetime(one.year, one.month, one.day) for one in (day, day + timedelta(days=1)))  # noqa: DTZ001
    begins, ends = _folds(midnight, where), _folds(next_midnight, where)
    if begins[0] == begins[1] and ends[0] == ends[1] == begins[0] + _DAY_MS:
        # Nobody changes the clocks on this day: what is left is arithmetic.
        yield from (begins[0] + (hour * 60 + minute) * 60_000 for hour, minute in cron.times())
        return
    for hour, minute in cron.times():
        yield from _moments(midnight.replace(hour=hour, minute=minute), where, by_the_hour=cron.is_hourly)


def _folds(wall: datetime, where: tzinfo) -> tuple[int, int]:
    """The moments that a wall time is where it is there twice; usually they are one."""
    return _ms(wall.replace(tzinfo=where, fold=0)), _ms(wall.replace(tzinfo=where, fold=1))


def _moments(wall: datetime, where: tzinfo, *, by_the_hour: bool) -> tuple[int, ...]:
    """The moments that a wall time is: one, usually."""
    first, second = _folds(wall, where)
    if first == second:
        return (first,)
    if first < second:
        return (first, second) if by_the_hour else (first,)
    # In a gap the two offsets are the wrong way round, and the clocks go forward between the two.
    return () if by_the_hour else (_transition(where, second, first),)


def _transition(where: tzinfo, before_ms: int, after_ms: int) -> int:
    """The moment at which the offset changes, to the second."""
    low, high = before_ms // 1000, after_ms // 1000
    offset = _utc(low * 1000).astimezone(where).utcoffset()
    while high - low > 1:
        middle = (low + high) // 2
        if _utc(middle * 1000).astimezone(where).utcoffset() == offset:
            low = middle
        else:
            high = middle
    return high * 1000


def _days(first: date, last: date) -> Iterator[date]:
    return (date.fromordinal(number) for number in range(first.toordinal(), last.toordinal() + 1))


def _utc(at_ms: int) -> datetime:
    try:
        return datetime.fromtimestamp(at_ms // 1000, UTC)
    except (ValueError, OverflowError, OSError):
        raise InvalidInput(f"the time {at_ms} ms lies outside the years 1 to 9999") from None


def _ms(moment: datetime) -> int:
    return round(moment.timestamp()) * 1000

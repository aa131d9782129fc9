"""A cron expression as data: which minutes of which days, by the clock on the wall.

    minute hour day-of-month month day-of-week        30 2 * * mon-fri

Lists, ranges, steps and the English names of months and days. Where both days are restricted, a day counts if either of them
says so, as in every cron since the first. What must never enter: time zones, and which moment a wall time is
(`plan/ticks.py`).
"""

import re
from calendar import monthrange
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip

_NAMES = {
    "month": ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"),
    "day of week": ("sun", "mon", "tue", "wed", "thu", "fri", "sat"),
}
_BOUNDS = {"minute": (0, 59), "hour": (0, 23), "day of month": (1, 31), "month": (1, 12), "day of week": (0, 7)}
_WORDS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_PART = re.compile(r"(?P<first>\*|[0-9a-z]+)(?:-(?P<last>[0-9a-z]+))?(?:/(?P<step>[0-9]{1,3}))?")
_LEAP_YEAR = 2024
HINT = 'write five fields, such as "30 2 * * mon-fri": minute, hour, day of month, month, day of week'


@dataclass(frozen=True, slots=True)
class Cron:
    """The values that each field allows. `text` is what was written. Days of the week count from Sunday, 0."""

    text: str
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool
    any_weekday: bool

    @classmethod
    def parse(cls, text: str) -> "Cron":
        """An expression; one that is wrong, or that no day ever satisfies, is refused."""
        written = text.strip().lower()
        if written.startswith("@") and written not in _WORDS:
            raise InvalidInput(f"cron: there is no {clip(text)!r}", hint=f"one of {', '.join(_WORDS)}")
        fields = _WORDS.get(written, written).split()
        if len(fields) != len(_BOUNDS):
            raise InvalidInput(f"cron {clip(text)!r} has {len(fields)} fields and not 5", hint=HINT)
        minutes, hours, days, months, weekdays = (
            _values(name, field, text) for name, field in zip(_BOUNDS, fields, strict=True)
        )
        found = cls(
            text=" ".join(text.split()),
            minutes=minutes,
            hours=hours,
            days=days,
            months=months,
            weekdays=frozenset(one % 7 for one in weekdays),
            any_day=fields[2].startswith("*"),
            any_weekday=fields[4].startswith("*"),
        )
        found._refuse_never()
        return found

    @property
    def is_hourly(self) -> bool:
        """Whether it fires in every hour: then it follows the time that passes, and not the clock on the wall."""
        return len(self.hours) == 24

    def has(self, day: date) -> bool:
        """Whether a day counts."""
        if day.month not in self.months:
            return False
        by_day, by_weekday = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        if self.any_day or self.any_weekday:
            return by_day and by_weekday
        return by_day or by_weekday

    def times(self) -> list[tuple[int, int]]:
        """The hours and minutes of a day that counts, in order."""
        return [(hour, minute) for hour in sorted(self.hours) for minute in sorted(self.minutes)]

    def _refuse_never(self) -> None:
        if not self.any_day and not self.any_weekday:
            return  # some weekday comes in every month
        if any(min(self.days) <= monthrange(_LEAP_YEAR, month)[1] for month in self.months):
            return
        raise InvalidInput(
            f"cron {clip(self.text)!r} never fires: none of its months has day {min(self.days)}",
            hint="name a day that one of its months has; the last of a month has no word, so run on the first of the next",
        )


def _values(name: str, field: str, text: str) -> frozenset[int]:
    return frozenset(one for part in field.split(",") for one in _part(name, part, text))


def _part(name: str, part: str, text: str) -> Iterable[int]:
    found = _PART.fullmatch(part)
    if found is None:
        raise InvalidInput(f"cron {clip(text)!r}: {clip(part)!r} is no {name}", hint=HINT)
    low, high = _BOUNDS[name]
    step = int(found["step"] or 1)
    if found["first"] == "*":
        if found["last"] is not None:
            raise InvalidInput(f"cron {clip(text)!r}: {clip(part)!r} is no {name}", hint=HINT)
        # Sunday is 0 and 7: a star means it once.
        first, last = low, min(high, 6) if name == "day of week" else high
    else:
        first = _number(name, found["first"], text)
        end = found["last"]
        last = _number(name, end, text) if end else high if found["step"] else first
        if end == "sun" and first:
            last = 7  # it is the first day of the week and the last: sat-sun
    if step < 1 or first > last:
        raise InvalidInput(
            f"cron {clip(text)!r}: {clip(part)!r} of the {name} has no values", hint="a range goes up, a step is at least 1"
        )
    return range(first, last + 1, step)


def _number(name: str, word: str, text: str) -> int:
    names = _NAMES.get(name, ())
    low, high = _BOUNDS[name]
    if word in names:
        return names.index(word) + low
    if not word.isdigit() or not low <= int(word) <= high:
        raise InvalidInput(f"cron {clip(text)!r}: {clip(word)!r} is no {name}", hint=f"{low} to {high}")
    return int(word)

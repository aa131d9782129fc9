"""Cron expressions: what each field allows, and what is refused, in one line."""

from datetime import date

import pytest

from arco.kernel.errors import InvalidInput
from arco.servo.sdk.cron import Cron


def test_the_fields_of_an_expression() -> None:
    found = Cron.parse(" 0,30  2-4 */10 jan-mar,DEC mon-fri ")
    assert found.minutes == {0, 30}
    assert found.hours == {2, 3, 4}
    assert found.days == {1, 11, 21, 31}
    assert found.months == {1, 2, 3, 12}
    assert found.weekdays == {1, 2, 3, 4, 5}
    assert found.text == "0,30 2-4 */10 jan-mar,DEC mon-fri"
    assert found.times() == [(2, 0), (2, 30), (3, 0), (3, 30), (4, 0), (4, 30)]


def test_sunday_is_the_first_and_the_seventh_day() -> None:
    sunday = date(2026, 11, 15)
    assert all(Cron.parse(f"0 0 * * {word}").has(sunday) for word in ("0", "7", "sun", "fri-7", "*"))
    assert Cron.parse("0 0 * * 5/2").weekdays == {5, 0}
    assert Cron.parse("0 0 * * sat-sun").weekdays == {6, 0}
    assert Cron.parse("0 0 * * mon-sun").weekdays == set(range(7))
    assert Cron.parse("0 0 * * sun-tue").weekdays == {0, 1, 2}


def test_a_day_counts_by_either_of_two_restricted_fields() -> None:
    either = Cron.parse("0 0 13 * fri")
    assert either.has(date(2026, 11, 13))  # both
    assert either.has(date(2026, 10, 13))  # the 13th, a Tuesday
    assert either.has(date(2026, 11, 20))  # a Friday
    assert not either.has(date(2026, 11, 17))


def test_a_star_restricts_nothing_even_with_a_step() -> None:
    both = Cron.parse("0 0 */2 * fri")
    assert both.has(date(2026, 11, 13))
    assert not both.has(date(2026, 11, 20))  # a Friday, and an even day
    assert not both.has(date(2026, 11, 15))


def test_the_29th_of_february_comes_in_leap_years() -> None:
    leap = Cron.parse("0 0 29 2 *")
    assert leap.has(date(2028, 2, 29))
    assert not leap.has(date(2026, 2, 28))


def test_words_for_the_usual_ones() -> None:
    assert Cron.parse("@daily").times() == [(0, 0)]
    assert Cron.parse("@hourly").is_hourly
    assert not Cron.parse("0 */2 * * *").is_hourly


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "has 0 fields and not 5"),
        ("0 0 * *", "has 4 fields and not 5"),
        ("0 0 * * * *", "has 6 fields and not 5"),
        ("60 0 * * *", "'60' is no minute"),
        ("0 24 * * *", "'24' is no hour"),
        ("0 0 0 * *", "'0' is no day of month"),
        ("0 0 * 13 *", "'13' is no month"),
        ("0 0 * * 8", "'8' is no day of week"),
        ("0 0 * * moon", "'moon' is no day of week"),
        ("0 0 L * *", "'l' is no day of month"),
        ("*-5 0 * * *", "'*-5' is no minute"),
        ("5-3 0 * * *", "has no values"),
        ("*/0 0 * * *", "has no values"),
        ("0 0 30 2 *", "never fires: none of its months has day 30"),
        ("0 0 31 apr,jun,sep,nov *", "never fires: none of its months has day 31"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(text: str, why: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Cron.parse(text)
    assert why in refused.value.message
    assert refused.value.hint
    assert "\n" not in refused.value.one_line()


def test_a_day_that_a_month_lacks_and_a_weekday_that_it_has_do_fire() -> None:
    assert Cron.parse("0 0 30 2 mon").has(date(2026, 2, 2))

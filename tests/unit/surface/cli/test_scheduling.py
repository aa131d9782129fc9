"""`arco schedule` as the shell calls it: written, validated, deployed, listed, ticked where nothing needs Spark, paused."""

from pathlib import Path

import pytest

from .shell import Shell, arco

__all__ = ["arco"]

ASSETS = """
from arco import asset, schedule, source

raw = source("raw")

@asset(fresh_within="6h", tags="daily")
def orders(raw): ...

@asset
def totals(orders): ...

schedule("new_orders", after=raw, make=orders, description="As soon as there is something new.")
schedule("in_time", keep_fresh="tag:daily")
"""
TOML = """
root = "lake"
[project]
name = "shop"

[schedules.leap]
cron = "30 2 29 2 *"
timezone = "Europe/Berlin"
make = ["orders+"]
catch_up = "all"
"""


DAYS = """
from arco import asset, daily, dynamic, static

@asset(partitions=[daily("date", start="2026-01-01"), static("region", ["de", "fr"]), dynamic("shop")])
def days(): ...
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ARCO_ROOT", raising=False)
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "a.py").write_text(ASSETS)
    (tmp_path / "arco.toml").write_text(TOML)
    return tmp_path


def test_what_is_written_is_listed_before_and_after_it_is_deployed(arco: Shell) -> None:
    before = {one["name"]: one for one in arco("schedule", "list", "--json").json}
    assert sorted(before) == ["in_time", "leap", "new_orders"]
    assert {one["state"] for one in before.values()} == {"not deployed: arco deploy"}
    deployed = arco("deploy")
    assert "changed  schedule leap" in deployed.out
    after = {one["name"]: one for one in arco("schedule", "list", "--json").json}
    assert {one["state"] for one in after.values()} == {"ready"}
    assert after["leap"]["fires"] == "30 2 29 2 * Europe/Berlin, catches up all"
    assert after["leap"]["next"].endswith("-02-29 01:30:00")
    assert after["new_orders"]["fires"] == "after commits to shop.raw"
    assert after["in_time"]["fires"] == "to keep shop.orders fresh"
    assert "30 2 29 2 * Europe/Berlin" in arco("schedule", "list").out


def test_the_next_times_by_both_clocks(arco: Shell) -> None:
    ended = arco("schedule", "next", "leap", "--count", "2", "--json")
    first, second = ended.json
    assert first["at"][4:] == second["at"][4:] == "-02-29 01:30:00"
    assert first["local"].endswith("-02-29 02:30 CET")
    assert arco("schedule", "next", "new_orders").out.startswith("nothing fires at a time")


def test_a_tick_with_nothing_due(arco: Shell) -> None:
    ended = arco("schedule", "tick", "leap", "new_orders")
    assert (ended.code, ended.out) == (0, "nothing is due\n")


def test_a_tick_that_cannot_be_planned_is_struck_off_with_its_reason(arco: Shell, here: Path) -> None:
    """`orders` was never published, so it is due at once; its source has no table, so a run of it would fail."""
    (here / "arco.toml").write_text(TOML.replace("[schedules", '[schedules.wrong]\nafter = "raw"\n\n[schedules'))
    text = (here / "assets" / "a.py").read_text()
    (here / "assets" / "a.py").write_text(text + 'schedule("lost", keep_fresh="orders", parameters={"moon": "full"})\n')
    first = arco("schedule", "tick", "lost", "--json")
    assert first.code == 0
    assert [(one["schedule"], one["tick"], one["status"]) for one in first.json] == [("lost", "number 1", "refused")]
    assert "no asset has a parameter 'moon'" in first.json[0]["said"]
    assert arco("schedule", "tick", "lost", "--json").json == []
    listed = {one["name"]: one for one in arco("schedule", "list", "--json").json}
    assert listed["lost"]["last"].startswith("refused no asset has a parameter")


def test_pause_and_resume_say_who_and_why(arco: Shell) -> None:
    assert "it is written and not deployed" in arco("schedule", "pause", "leap", "--why", "x").err
    arco("deploy")
    assert arco("schedule", "pause", "leap", "--why", "holidays").out.startswith("leap is paused")
    assert arco("schedule", "pause", "leap", "--why", "other").out == "leap was paused before\n"
    listed = {one["name"]: one for one in arco("schedule", "list", "--json").json}
    assert listed["leap"]["paused"]["why"] == "holidays"
    assert listed["leap"]["state"].endswith(": holidays")
    assert listed["leap"]["next"] == ""
    following = arco("schedule", "next", "leap")
    assert "02:30" not in following.out
    assert following.err.startswith("arco: leap is paused by ")
    assert arco("schedule", "resume", "leap").out == "leap goes on from now\n"
    assert arco("schedule", "resume", "leap").out == "leap was not paused\n"
    refused = arco("schedule", "pause", "leap", "--why", " ")
    assert refused.code == 2
    assert "without a reason" in refused.err


def test_a_schedule_that_is_not_there(arco: Shell, here: Path) -> None:
    ended = arco("schedule", "tick", "weekly")
    assert ended.code == 2
    assert "there is no schedule 'weekly'" in ended.err
    assert list((here / "lake").rglob("*.json")) == [], "nothing was deployed for it"
    for words in (("pause", "weekly", "--why", "x"), ("resume", "weekly")):
        refused = arco("schedule", *words)
        assert refused.code == 2
        assert "no schedule 'weekly': there are in_time, leap, new_orders" in refused.err


def test_what_a_schedule_makes_may_be_of_partitions_that_are_still_to_come(arco: Shell, here: Path) -> None:
    (here / "assets" / "c.py").write_text(DAYS)
    wanted = '{"date": "2090-01-01..", "shop": "one that nobody has seen"}'
    written = f'schedule("later", cron="@daily", make="days", partitions={wanted})'
    (here / "assets" / "b.py").write_text(f"from arco import schedule\n\n{written}\n")
    assert arco("validate").code == 0


def test_a_reason_is_asked_for_where_somebody_can_answer(arco: Shell) -> None:
    arco("deploy")
    for words in (("schedule", "pause", "leap"), ("quarantine", "release", "x"), ("quarantine", "discard", "x")):
        refused = arco(*words)
        assert refused.code == 2
        assert refused.out == ""
        assert refused.err.count("\n") == 1
        assert "--why" in refused.err


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ('schedule("x", cron="0 0 30 2 *")', "never fires: none of its months has day 30"),
        ('schedule("x", cron="0 0 * *")', "has 4 fields and not 5"),
        ('schedule("x")', "it has none of them: it never fires"),
        ('schedule("x", cron="@daily", after="raw")', "it has cron and after"),
        ('schedule("x", cron="@daily", make="raw")', "never fires: nothing of what it makes is made here"),
        ('schedule("x", cron="@daily", make="nobody")', "there is no asset 'nobody'"),
        ('schedule("x", keep_fresh="totals")', "never fires: nothing of what it keeps fresh has fresh_within"),
        ('schedule("x", after="orders")', "shop.orders is made here"),
        ('schedule("x", cron="@daily", timezone="Mars/Base")', "there is no time zone 'Mars/Base'"),
        ('schedule("x", cron="@daily", catch_up="some")', "catch_up='some' is not known"),
        ('schedule("x", after="raw", catch_up="all")', "catch_up is for cron"),
        ('schedule("x", keep_fresh="orders", make="totals")', "what is kept fresh is what is made"),
        ('schedule("x", cron="@midnite")', "there is no '@midnite'"),
        ('schedule("x", cron="@daily", make="days", partitions={"dat": "2026-01-05"})', "has a dimension 'dat'"),
        (
            'schedule("x", cron="@daily", make="days", partitions={"date": "2026-01-09..2026-01-05"})',
            "ends before it begins",
        ),
        ('schedule("x", cron="@daily", make="days", partitions={"date": "2025-12-31"})', "it never makes anything"),
        ('schedule("x", cron="@daily", make="days", partitions={"date": "2026-01-32"})', "is not a date"),
        ('schedule("x", cron="@daily", make="days", partitions={"region": "dk"})', "dk"),
        ('schedule("x", keep_fresh="orders", partitions={"date": "2026-01-05"})', "has a dimension 'date'"),
        ('schedule("X y", cron="@daily")', "is not a schedule name"),
        ('schedule("leap", cron="@daily")', "schedule 'leap' is defined twice"),
    ],
)
def test_a_schedule_that_never_fires_is_refused_in_one_line(arco: Shell, here: Path, written: str, why: str) -> None:
    (here / "assets" / "b.py").write_text(f"from arco import schedule\n\n{written}\n")
    (here / "assets" / "c.py").write_text(DAYS)
    ended = arco("validate", "--json")
    assert ended.code == 2
    (problem,) = ended.json["problems"]
    assert why in problem["message"]
    assert "\n" not in problem["message"]
    assert problem["hint"]
    assert (problem["file"], problem["line"]) == ("assets/b.py", 3)


def test_the_file_says_where_its_schedules_are_wrong(arco: Shell, here: Path) -> None:
    (here / "arco.toml").write_text(TOML.replace("make =", "males ="))
    (problem,) = arco("validate", "--json").json["problems"]
    assert problem["message"] == "schedule 'leap': there is no option 'males'"
    assert (problem["file"], problem["line"]) == ("arco.toml", 6)

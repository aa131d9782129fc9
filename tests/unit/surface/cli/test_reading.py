"""`arco assets`, `lineage`, `health` and `search` as the shell calls them, on a published state; the answers themselves are
held against the story in tests/unit/read."""

import asyncio
import json
import os
import pty
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from arco.kernel.clock import SystemClock
from fixtures.state.published_state import publish_in_folder
from fixtures.state.shop_story import FAILED_RUN, told
from fixtures.state.state_world import NOW_MS, World

from .reading_ground import Lake, lake
from .shell import Shell, arco

__all__ = ["arco", "lake"]


def rows(out: str) -> list[list[str]]:
    return [line.split() for line in out.splitlines()]


# assets


def test_assets_are_listed_with_what_people_ask_first(arco: Shell, lake: Lake) -> None:
    out = rows(arco("assets", *lake.at).out)
    assert ["shop.orders", "python", "ann@example.com", "core", "daily", "20", "2025-03-21", "00:00:00", "warning"] in out
    assert ["ops.new", "python", "ann@example.com", "beta", "unknown"] in out
    assert out[-1] == ["14", "assets"]


@pytest.mark.parametrize(
    ("flags", "names"),
    [
        (["--namespace", "shop", "--tag", "core"], ["shop.customers", "shop.orders"]),
        (["--owner", "cy@example.com"], ["ops.features", "ops.model"]),
        (["--namespace", "nowhere"], []),
    ],
    ids=" ".join,
)
def test_a_list_of_assets_is_filtered(arco: Shell, lake: Lake, flags: list[str], names: list[str]) -> None:
    document = arco("assets", *flags, *lake.at, "--json").json
    assert [one["asset"] for one in document["items"]] == names
    assert document["snapshot"] == lake.snapshots[-1]
    assert arco("assets", *flags, *lake.at).out.startswith("name" if names else "0 assets of this namespace")


def test_an_asset_has_a_page_and_a_former_name_leads_to_it(arco: Shell, lake: Lake) -> None:
    out = arco("assets", "shop.sales", *lake.at).out
    for words in (
        "shop.orders  warning",
        "shop.sales, its former name",
        "20 from date=2025-03-01 to date=2025-03-20",
        "1 day",
        "currency",
        "unique(order_id)    failed",
        "arco lineage shop.orders",
    ):
        assert words in out
    page = arco("assets", "shop.orders", *lake.at, "--json").json
    assert page["status"] == "warning"
    assert page["summary"]["partitions"] == 20


def test_partitions_are_printed_as_they_can_be_given_back(arco: Shell, lake: Lake) -> None:
    listed = rows(arco("assets", "shop.orders", "--partitions", *lake.at).out)
    assert len([row for row in listed if row[0].startswith("date=2025-03-")]) == 20
    key = listed[5][0]
    assert arco("lineage", "shop.orders", "--partition", key, *lake.at).code == 0
    assert len(arco("assets", "shop.orders", "--partitions", *lake.at, "--json").json["items"]) == 20


def test_tables_that_no_project_made_are_marked(arco: Shell, tmp_path: Path) -> None:
    world = World()
    world.asset("shop.orders")
    world.plain_table("0" * 31 + "d", "shop.clicks", owner="bea", description="As they come")
    world.plain_table("0" * 31 + "e", "shop.gone", dropped=True)
    asyncio.run(publish_in_folder(tmp_path, world, NOW_MS))
    at = ("--root", str(tmp_path))
    out = rows(arco("assets", *at).out)
    assert ["shop.clicks", "table,", "no", "project", "bea", "unknown"] in out
    assert " ".join(out[-1]) == "1 asset; 1 table that no project made"
    every = arco("assets", "--retired", *at).out
    assert "table, no project, dropped" in every
    page = arco("assets", "shop.clicks", *at).out
    assert "table, no project" in page
    assert "As they come" in page
    assert "deployed" not in page
    assert "was published yet" in page.splitlines()[1], "which is said of its health, and not of partitions it never has"
    assert "none was published" not in page


# lineage


def test_lineage_is_a_tree_both_ways(arco: Shell, lake: Lake) -> None:
    assert arco("lineage", "shop.revenue", *lake.at, "--columns").out.splitlines() == [
        "shop.revenue  made of",
        "├─ shop.customers",
        "└─ shop.orders",
        "   ├─ revenue = sum(total)",
        "   └─ shop.raw_orders",
        "      └─ s3://landing/orders  files",
        "shop.revenue  goes into",
        "└─ shop.report",
        "   └─ shop.dashboard",
    ]


def test_that_no_column_is_mapped_is_said(arco: Shell, lake: Lake) -> None:
    printed = arco("lineage", "shop.dashboard", "--up", "--depth", "1", *lake.at, "--columns").out
    assert printed.splitlines()[-1].startswith("No column lineage is known here")
    assert "No column" not in arco("lineage", "shop.dashboard", "--up", "--depth", "1", *lake.at).out


def test_a_tree_ends_at_its_depth_and_says_that_it_goes_on(arco: Shell, lake: Lake) -> None:
    assert arco("lineage", "shop.dashboard", "--up", "--depth", "2", *lake.at).out.splitlines() == [
        "shop.dashboard  made of",
        "└─ shop.report",
        "   ├─ shop.customers",
        "   └─ shop.revenue",
        "      └─ … 2 more: --depth 3",
    ]
    document = arco("lineage", "shop.dashboard", "--up", "--depth", "2", *lake.at, "--json").json
    assert list(document) == ["upstream"]
    names = [one["name"] for one in document["upstream"]["nodes"]]
    assert names == ["shop.dashboard", "shop.report", "shop.customers", "shop.revenue"]


def test_a_cycle_ends(arco: Shell, lake: Lake) -> None:
    assert arco("lineage", "ops.ping", "--down", *lake.at).out.splitlines() == [
        "ops.ping  goes into",
        "└─ ops.pong",
        "   └─ ops.ping  (again)",
    ]


def test_nothing_known_is_said(arco: Shell, lake: Lake) -> None:
    assert "nothing that is known" in arco("lineage", "ops.new", *lake.at).out


def test_a_partition_has_its_own_tree(arco: Shell, lake: Lake) -> None:
    out = arco("lineage", "shop.revenue", "--up", "--partition", "date=2025-03-05", *lake.at).out
    assert out.startswith("shop.revenue  date=2025-03-05  made of\n├─ shop.customers  all of it  run ")
    assert "└─ shop.orders  date=2025-03-01..2025-03-19  run " in out
    assert "   ├─ shop.raw_orders  date=2025-03-" in out


def test_impact_says_who_is_hit_and_whom_to_tell(arco: Shell, lake: Lake) -> None:
    out = arco("lineage", "shop.orders", "--impact", *lake.at).out
    assert [row[0] for row in rows(out)[1:4]] == ["shop.revenue", "shop.report", "shop.dashboard"]
    assert "tell ann@example.com, bob@example.com" in out
    part = arco("lineage", "shop.orders", "--impact", "--partition", "date=2025-03-05", *lake.at).out
    assert "date=2025-03-01..2025-03-19" in part
    assert arco("lineage", "shop.dashboard", "--impact", *lake.at).out == "Nothing is made of shop.dashboard.\n"


# health


def test_health_is_listed_worst_first_and_the_exit_tells(arco: Shell, lake: Lake) -> None:
    ended = arco("health", *lake.at)
    assert ended.code == 1
    order = [row[0] for row in rows(ended.out)[1:15]]
    assert order == ["unhealthy"] * 3 + ["warning"] * 3 + ["unknown"] * 4 + ["healthy"] * 4
    assert ended.out.endswith("Next: arco health ops.features\n")
    assert arco("health", "--tag", "core", *lake.at).code == 0
    assert arco("health", *lake.at, "--json").code == 1


def test_health_of_one_leads_to_where_it_begins_and_what_to_type(arco: Shell, lake: Lake) -> None:
    ended = arco("health", "shop.dashboard", *lake.at)
    assert ended.code == 1
    for words in (
        "shop.dashboard  unhealthy",
        "it is past its deadline",
        "shop.revenue: its task failed (transform): division by zero",
        "shop.dashboard ◄ shop.report ◄ shop.revenue",
        "\n  arco run shop.revenue\n",
        f"arco runs {FAILED_RUN}",
    ):
        assert words in ended.out
    assert arco("health", "shop.customers", *lake.at).code == 0


def test_health_of_the_past_is_judged_at_its_time(arco: Shell, lake: Lake) -> None:
    """The deadline of orders has passed since; at the time of the story it had not."""
    then = arco("health", "shop.orders", *lake.at, "--json").json
    now = arco("health", "shop.orders", *lake.now, "--json").json
    assert (then["freshness"]["within_sla"], now["freshness"]["within_sla"]) == (True, False)


def test_health_as_of_a_time_is_judged_at_that_time(arco: Shell, tmp_path: Path) -> None:
    published_ms = SystemClock().now_ms() - 60_000
    asyncio.run(publish_in_folder(tmp_path, told(), published_ms))
    asked = datetime.fromtimestamp(published_ms // 1000 + 7, UTC).replace(tzinfo=None).isoformat()
    assert arco("health", "--root", str(tmp_path), "--as-of", asked, "--json").json["computed_at"] == f"{asked}Z"


# search


def test_hits_say_where_they_were_found(arco: Shell, lake: Lake) -> None:
    out = arco("search", "total", *lake.at).out
    assert ["shop.orders", "asset", "column", "(total)", "ann@example.com", "What", "shop.orders", "holds"] in rows(out)
    assert "Nothing has 'ordrs': this is for orders" in arco("search", "ordrs", *lake.at).out
    assert [one["name"] for one in arco("search", "shop", "orders", "--limit", "1", *lake.at, "--json").json["hits"]] == [
        "shop.orders"
    ]


def test_nothing_found_is_an_answer_with_a_way_out(arco: Shell, lake: Lake) -> None:
    ended = arco("search", "xylophone", *lake.at)
    assert (ended.code, ended.out) == (1, "")
    assert ended.err == "arco: nothing has 'xylophone'; `arco assets` lists all\n"
    near = arco("search", "shopprices", *lake.at)
    assert near.code == 1
    assert "did you mean" in near.err
    assert "shop.prices" in near.err
    elsewhere = arco("search", "orders", "--namespace", "ops", *lake.at)
    assert "without --namespace" in elsewhere.err


# everywhere


@pytest.mark.parametrize("words", [["assets"], ["lineage"], ["health"], ["diff", "--schemas"]], ids=" ".join)
def test_a_name_that_is_nearly_right_is_told_the_right_one(arco: Shell, lake: Lake, words: list[str]) -> None:
    ended = arco(*words, "shop.ordres", *lake.at)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("arco: there is no asset 'shop.ordres': did you mean shop.orders")
    assert ended.err.count("\n") == 1


@pytest.mark.parametrize("words", [["assets"], ["health"], ["search", "orders"]], ids=" ".join)
def test_before_the_first_fold_lists_are_empty_and_say_why(arco: Shell, tmp_path: Path, words: list[str]) -> None:
    ended = arco(*words, "--root", str(tmp_path))
    assert ended.code == (1 if words[0] == "search" else 0)
    assert "nothing is folded yet in default/default" in ended.err
    assert "`arco fold`" in ended.err
    assert "--fresh" in ended.err
    assert "folded" not in arco(*words, "--root", str(tmp_path), "--fresh").err


@pytest.mark.parametrize("words", [["assets", "a"], ["lineage", "a"], ["health", "a"], ["diff"]], ids=" ".join)
def test_before_the_first_fold_a_name_is_not_called_unknown(arco: Shell, tmp_path: Path, words: list[str]) -> None:
    ended = arco(*words, "--root", str(tmp_path))
    assert ended.code == 2
    assert ended.err.startswith("arco: nothing is folded yet in default/default")
    assert ended.err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["assets", "--as-of", "yesterday"], "is no time"),
        (["assets", "--as-of", "2025-03-21", "--fresh"], "a question is about one state"),
        (["assets", "--as-of-run", "01JZ3V5Q0E8Y7M2K4T6B9N1D3F"], "is folded yet"),
        (["health", "--snapshot", "01JZ3V5Q0E8Y7M2K4T6B9N1D3F"], "there is no snapshot"),
        (["lineage", "shop.orders", "--depth", "0"], "depth=0"),
        (["lineage", "shop.orders", "--partition", "day=1"], "names no dimension of its partitions: write date=2025-01-31"),
        (["lineage", "shop.orders", "--partition", "date=soon"], "is no time for date"),
        (["lineage", "shop.orders", "--partition", "date=2024-03-05"], "has no partition"),
        (["lineage", "shop.customers", "--partition", "date=2024-03-05"], "leave the partition out"),
        (["search", "orders", "--limit", "0"], "limit=0"),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, list) else None,
)
def test_what_cannot_be_answered_is_said_in_a_line(arco: Shell, lake: Lake, words: list[str], says: str) -> None:
    ended = arco(*words, *lake.now)
    assert (ended.code, ended.out) == (2, "")
    assert says in ended.err
    assert ended.err.count("\n") == 1


def test_what_happened_since_the_fold_is_asked_with_fresh(arco: Shell, lake: Lake) -> None:
    assert arco("assets", *lake.now, "--fresh").out.endswith("14 assets\n")


def test_colours_are_for_terminals_alone(lake: Lake) -> None:
    command = [sys.executable, "-c", "from arco.surface.cli.main import run; run()", "health", *lake.at]
    environment = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "FORCE_COLOR"}}
    piped = subprocess.run(command, capture_output=True, env=environment, check=False)
    assert b"unhealthy" in piped.stdout
    assert b"\x1b[" not in piped.stdout
    terminal, end = pty.openpty()
    painted = subprocess.Popen(command, stdout=end, stdin=end, env=environment | {"TERM": "xterm-256color"})
    os.close(end)
    seen = b""
    while chunk := _read(terminal):
        seen += chunk
    painted.wait()
    os.close(terminal)
    assert b"\x1b[1;31munhealthy" in seen


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # the other end is closed: so a terminal says that it is over
        return b""


def test_json_of_every_command_names_its_snapshot(arco: Shell, lake: Lake) -> None:
    for words in (["assets"], ["assets", "shop.orders"], ["health"], ["health", "shop.orders"], ["search", "orders"]):
        assert json.loads(arco(*words, *lake.at, "--json").out)["snapshot"] == lake.snapshots[-1]

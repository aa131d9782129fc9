"""docs/planning.md says what the code does: every reason in its order, every mode, every way to choose."""

import re
from pathlib import Path

import pytest

from arco.kernel.asset_key import AssetKey
from arco.kernel.errors import NotFound
from arco.servo.plan.planner import Mode
from arco.servo.plan.staleness import Reason
from arco.servo.sdk.authoring import asset
from arco.servo.sdk.project import assembled
from arco.servo.sdk.selection import find, select

PAGE = (Path(__file__).resolve().parents[4] / "docs" / "planning.md").read_text()


def test_the_reasons_stand_in_the_order_in_which_they_are_tried() -> None:
    table = PAGE.partition("| reason |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == [reason.value for reason in Reason]


def test_every_mode_has_a_line() -> None:
    table = PAGE.partition("| mode |")[2].partition("\n\n")[0]
    said = re.findall(r"^\| (?:`--)?(\w+)`? \|", table, re.MULTILINE)
    assert [{"standard": "stale"}.get(one, one) for one in said] == [mode.value for mode in Mode]


def test_every_way_to_choose_works_as_it_is_written() -> None:
    @asset(tags="finance")
    def raw() -> object: ...

    @asset
    def orders_daily(raw: object) -> object: ...

    @asset
    def report(orders_daily: object) -> object: ...

    @asset
    def a() -> object: ...

    @asset
    def b() -> object: ...

    written = [one.written for one in (raw, orders_daily, report, a, b)]
    graph = assembled(written, folder=Path(), name="shop", namespace="shop").graph
    block = next(text for text in re.findall(r"```\n(.*?)```", PAGE, re.DOTALL) if "tag:finance" in text)
    chosen = {
        words: sorted(key.name for key in select(graph, words.split()))
        for words in (re.split(r"\s{2,}", line)[0] for line in block.splitlines())
    }
    assert chosen == {
        "orders_daily": ["orders_daily"],
        "shop.*": ["a", "b", "orders_daily", "raw", "report"],
        "tag:finance": ["raw"],
        "+orders_daily": ["orders_daily", "raw"],
        "orders_daily+": ["orders_daily", "report"],
        "a b": ["a", "b"],
    }


def test_a_name_that_is_nearly_right_is_told_the_right_one() -> None:
    keys = [AssetKey.parse(one) for one in ("shop.orders", "shop.revenue", "crm.people")]
    for text in ("ordres", "shop.ordrs", "order"):
        with pytest.raises(NotFound) as told:
            find(keys, text)
        assert told.value.hint == "near it: shop.orders"
    with pytest.raises(NotFound) as told:
        find(keys, "xyz")
    assert told.value.hint == "arco plan lists them"

"""`arco plan` and `arco explain` on a folder: what people read, what programs read, and that nothing is left behind."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from arco.catalog.catalog import Catalog
from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.kernel.scope import Scope
from arco.ledger.appender import Appender
from arco.ledger.execution_events import OUTPUT_HELD, OutputHeld
from arco.ledger.run_entries import Failure, TaskClaimed, TaskFailed, TaskSkipped, TaskStarted
from arco.servo.deploy.deploying import Deployments
from arco.servo.plan.document import decode_plan
from arco.servo.schedule.starting import RunRequest, start_run
from arco.storage.keys import Domain
from arco.storage.roots import open_root
from arco.surface.cli.projects import read_project
from unit.surface.cli.shell import Shell, arco

__all__ = ["arco"]

ASSETS = '''
from arco.servo.sdk.authoring import asset, source
from arco.servo.sdk.dimensions import daily
from arco.servo.sdk.inputs import every, files, window

DAYS = daily("date", start="2025-01-01", end="2025-01-31")


@asset(partitions=DAYS, inputs={"landed": files("landing/*.json")}, tags="raw")
def orders(landed):
    """Orders as they came in."""
    return landed


@asset(partitions=DAYS, inputs={"orders": window("orders", -6, 0)}, partitions_per_task=10)
def weekly(orders):
    return orders


@asset(inputs={"orders": every("orders")})
def totals(orders, rates):
    return orders


source("rates")
'''


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "shop"
    (folder / "assets").mkdir(parents=True)
    (folder / "arco.toml").write_text('root = "./lake"\n[project]\nname = "shop"\n')
    (folder / "assets" / "orders.py").write_text(ASSETS)
    monkeypatch.chdir(folder)
    monkeypatch.delenv("ARCO_ROOT", raising=False)
    return folder


async def on_the_lake(folder: Path, work: Callable[[Catalog], Any]) -> Any:
    clock, entropy = SystemClock(), SystemEntropy()
    (folder / "lake").mkdir(exist_ok=True)
    store = open_root(str(folder / "lake"), {}, clock, entropy)
    catalog = Catalog.open(store, (folder / "lake").as_uri(), Scope.of(), clock, entropy)
    try:
        return await work(catalog)
    finally:
        await catalog.parts.afterwards.settle()
        await store.close()


def deploy(folder: Path) -> Any:
    project = read_project(str(folder)).load()

    async def work(catalog: Catalog) -> Any:
        parts = catalog.parts
        return await Deployments(parts.tier1.store, parts.scope, parts.clock, parts.entropy).deploy(project, by="ann")

    return asyncio.run(on_the_lake(folder, work))[0]


def test_a_plan_is_a_tree_by_stage_with_the_number_of_tasks_first(shop: Path, arco: Shell) -> None:
    ended = arco("plan")
    assert ended.code == 0
    assert ended.out.splitlines() == [
        "This expands to 5 tasks: 3 assets, 61 partitions.",
        "stage 0",
        "└─ shop.orders  1 task: date 2025-01-01 to 2025-01-30 (30 partitions)",
        "     never published",
        "stage 1",
        "├─ shop.totals  1 task: all of it",
        "│    never published",
        "└─ shop.weekly  3 tasks: date 2025-01-01 to 2025-01-30 (30 partitions)",
        "     never published",
        "Note: shop.rates: there is no such table yet, and shop.totals reads it as rates.",
        "Next: arco run; arco plan --why says which facts differ",
    ]
    assert ended.err == "arco: not deployed yet: arco run deploys it\n"


def test_partitions_that_are_not_there_are_not_called_up_to_date(shop: Path, arco: Shell) -> None:
    there = "there are date 2025-01-01 to 2025-01-30 (30 partitions)"
    said = [f"shop.{name} has no partitions date=2031-01-01: {there}." for name in ("orders", "weekly")]
    asked = ("orders", "weekly", "--partition", "date=2031-01-01", "--force")
    assert arco("plan", *asked).out.splitlines() == [*said, "Nothing to do."]
    assert arco("run", *asked).out.splitlines() == [f"nothing to do: {one[:-1]}" for one in said]
    assert arco("plan", "orders", "--partition", "date=2025-01-09..2025-01-03").err == (
        "arco: date=2025-01-09..2025-01-03 ends before it begins: write the earlier one first\n"
    )


def test_planning_writes_nothing_at_all(shop: Path, arco: Shell) -> None:
    arco("plan")
    arco("explain", "orders")
    assert not (shop / "lake").exists()


def test_a_plan_before_and_after_deploying_is_the_same_each_time(shop: Path, arco: Shell) -> None:
    def tasks() -> list[str]:
        return [task["id"] for task in arco("plan", "--json").json["spec"]["tasks"]]

    before = tasks()
    assert tasks() == before
    deploy(shop)
    after = tasks()
    assert tasks() == after
    first, second = (arco("plan", "--json").json for _ in range(2))
    assert first == second
    assert first["spec"]["snapshot"] == "", "nothing is stored that it could name"
    assert arco("plan").err == ""


def test_changed_code_is_said_in_a_line(shop: Path, arco: Shell) -> None:
    deploy(shop)
    text = (shop / "assets" / "orders.py").read_text()
    (shop / "assets" / "orders.py").write_text(text.replace("return landed", "return landed.limit(1)"))
    assert arco("plan").err == "arco: code differs from the deployment: arco run deploys it\n"
    (shop / "assets" / "orders.py").write_text(text.replace('daily("date"', 'daily("day"'))
    assert "deploying it would be refused" in arco("plan").err


def test_words_and_ranges_choose(shop: Path, arco: Shell) -> None:
    chosen = arco("plan", "tag:raw", "--partition", "date=2025-01-05..2025-01-06,2025-01-09").out
    assert "1 task: date 2025-01-05 to 2025-01-06; date 2025-01-09 (3 partitions)" in chosen
    assert "Next: arco run tag:raw" in chosen
    assert "--why" not in arco("plan", "+weekly", "--why").out
    assert arco("plan", "nothing").code == 2
    assert "has no value" in arco("plan", "--partition", "2025-01-05").err
    assert "exclude each other" in arco("plan", "--force", "--backfill").err


def test_what_to_type_next_asks_for_the_same(shop: Path, arco: Shell) -> None:
    ended = arco("plan", "+weekly", "--partition", "date=2025-01-01..2025-01-03", "--force")
    asked = "+weekly --force --partition date=2025-01-01..2025-01-03"
    assert ended.out.splitlines()[-1] == f"Next: arco run {asked}; arco plan {asked} --why says which facts differ"


def test_a_dry_run_is_the_plan(shop: Path, arco: Shell) -> None:
    planned, dry = arco("plan", "weekly"), arco("run", "weekly", "--dry-run")
    assert (dry.code, dry.out) == (0, planned.out)
    assert not (shop / "lake").exists()


def test_explain_says_why_what_it_reads_and_what_to_type(shop: Path, arco: Shell) -> None:
    told = arco("explain", "weekly", "--partition", "date=2025-01-10").out.splitlines()
    assert told == [
        "shop.weekly  python, assets/orders.py:15",
        "  0 of 1 partition there, no snapshot yet",
        "stale  date 2025-01-10 (1 partition)",
        "  never published",
        "reads",
        "  orders (table, window -6..0): nothing, 0 versions",
        "Next: arco run +shop.weekly makes it and what it needs (shop.orders)",
    ]
    assert "  Orders as they came in." in arco("explain", "orders").out
    found = arco("explain", "shop.totals", "--json").json
    assert [one["reason"] for one in found["stale"]] == ["never"]
    assert found["needs"] == ["shop.orders"]


def test_explain_says_what_the_last_run_came_to(shop: Path, arco: Shell) -> None:
    deploy(shop)
    plan = decode_plan(arco("plan", "orders", "weekly", "--json").out.encode())
    failed, *skipped = plan.spec.tasks
    wrong = Failure(kind="user_code", message="orders.py:14: no such column")

    async def work(catalog: Catalog) -> str:
        parts = catalog.parts
        started = await start_run(parts.tier1.store, parts.scope, plan, RunRequest(), parts.clock, parts.entropy)
        await started.log.append([TaskClaimed(task=failed.id, attempt=1, worker="w", lease_s=30)])
        await started.log.append([TaskStarted(task=failed.id, attempt=1)])
        await started.log.append([TaskFailed(task=failed.id, attempt=1, failure=wrong)])
        await started.log.append([TaskSkipped(task=one.id, because=failed.id) for one in skipped])
        return str(started.log.run)

    run = asyncio.run(on_the_lake(shop, work))
    told = arco("explain", "orders").out.splitlines()
    at = told.index("tried  date 2025-01-01 to 2025-01-30 (30 partitions)")
    assert told[at + 1].startswith("  failed at ")
    assert told[at + 1].endswith(f" in run {run}: orders.py:14: no such column")
    weekly = arco("explain", "weekly", "--partition", "date=2025-01-12").out
    assert "tried  date 2025-01-12 (1 partition)\n  skipped at " in weekly
    assert f" in run {run}: shop.orders was not published\n" in weekly
    assert "tried" not in arco("explain", "totals").out
    assert [one["status"] for one in arco("explain", "weekly", "--json").json["tried"]] == ["skipped"] * 3


def test_explain_shows_what_is_held_back(shop: Path, arco: Shell) -> None:
    asset_id = deploy(shop).assets["shop.orders"].asset_id
    held = OutputHeld(
        materialization_id="01JGQ00000000000000000000M",
        run_id="01JGQ00000000000000000000R",
        task_id="task_0123456789abcdef",
        asset="shop.orders",
        asset_id=asset_id,
        partitions=[{"date": ["2025-01-03", "2025-01-05"]}],
        action="quarantine",
        reasons=("unique(order_id)",),
        branch="quarantine_x",
        snapshot_id=None,
    )

    async def work(catalog: Catalog) -> None:
        parts = catalog.parts
        draft = held.draft(OUTPUT_HELD, "01JGQ00000000000000000000E", subject="shop.orders", run_id=held.run_id)
        appender = Appender(parts.tier1.store, parts.scope, parts.clock, parts.entropy)
        await appender.append(Domain.EXECUTION, [draft])

    asyncio.run(on_the_lake(shop, work))
    told = arco("explain", "orders").out
    assert "held back  date 2025-01-03 to 2025-01-04 (2 partitions)" in told
    assert "  quarantine by run 01JGQ00000000000000000000R: unique(order_id)" in told
    assert "  kept on branch quarantine_x of the table" in told


def test_a_project_elsewhere_is_planned_from_anywhere(shop: Path, arco: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    assert "shop.orders" in arco("plan", "--project", str(shop)).out


def loaded_by_planning() -> set[str]:
    code = (
        "import sys; sys.argv = ['arco', 'plan']; from arco.surface.cli.main import run\n"
        "try: run()\nexcept SystemExit as ended: assert not ended.code\n"
        "print(*sys.modules)"
    )
    where = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=where)
    return {name.partition(".")[0] for name in done.stdout.splitlines()[-1].split()}


def test_neither_spark_nor_pyiceberg_is_loaded(shop: Path) -> None:
    heavy = {"pyspark", "pyiceberg", "sqlglot", "duckdb", "pyarrow", "pydantic", "numpy", "pandas"}
    assert not heavy & loaded_by_planning()


def test_of_what_a_project_imports_only_that_is_loaded(shop: Path) -> None:
    (shop / "assets" / "counted.py").write_text(
        "from pyspark.sql import DataFrame, Window\nfrom pyspark.sql import functions as f\n\n"
        "from arco.servo.sdk.authoring import asset\n\n\n"
        "@asset\ndef counted(orders: DataFrame) -> DataFrame:\n    return orders.groupBy().agg(f.count('*'))\n"
    )
    (shop / "assets" / "twice.sql").write_text("SELECT * FROM counted")
    loaded = loaded_by_planning()
    assert {"pyspark", "sqlglot"} <= loaded
    assert not {"pyiceberg", "duckdb", "pyarrow", "pydantic", "numpy", "pandas"} & loaded


# Values of dynamic dimensions


def test_values_of_a_dynamic_dimension_become_partitions(shop: Path, arco: Shell) -> None:
    (shop / "assets" / "invoices.py").write_text(
        "from arco.servo.sdk.authoring import asset\nfrom arco.servo.sdk.dimensions import dynamic\n\n\n"
        '@asset(partitions=dynamic("customer"))\ndef invoices():\n    return None\n'
    )
    assert "is not deployed yet" in arco("partitions", "add", "invoices", "customer", "acme").err
    deploy(shop)
    none_yet = "it has no partitions yet; arco partitions add shop.invoices customer VALUE makes one"
    assert arco("plan", "invoices").out == f"shop.invoices: {none_yet}.\nNothing to do.\n"
    assert arco("run", "invoices").out == f"nothing to do: shop.invoices: {none_yet}\n"
    assert arco("partitions", "add", "invoices", "customer", "acme", "globex").out == "customer has 2 values now\n"
    assert "1 task: customer acme to globex (2 partitions)" in arco("plan", "invoices").out
    assert arco("partitions", "remove", "invoices", "customer", "acme").code == 0
    assert arco("partitions", "list").out == "shop.invoices  customer: 1 value: globex\n"
    assert arco("partitions", "list", "--json").json == {"shop.invoices": {"customer": ["globex"]}}
    assert "no dynamic dimension 'date'" in arco("partitions", "add", "orders", "date", "x").err

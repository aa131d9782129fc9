"""What `arco init` writes works as it is: its unit tests pass, it runs, and what it makes is right."""

import subprocess
import sys
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

import arco
from fixtures.servo.frames import MARKS

pytestmark = MARKS
ARCO = str(Path(sys.executable).with_name("arco"))


def called(folder: Path, *command: str, code: int = 0) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    home = tmp_path_factory.mktemp("init")
    called(home, ARCO, "init", "shop")
    return home / "shop"


def test_its_unit_tests_pass(project: Path) -> None:
    said = called(project, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert "3 passed" in said


def test_it_runs_and_what_it_makes_is_right(project: Path) -> None:
    called(project, ARCO, "run")
    lake = arco.connect(str(project / "lake"))
    assert lake.tables() == ["shop.orders", "shop.orders_raw", "shop.revenue"]
    raw = {
        row["order_id"]: row for row in lake.table("shop.orders_raw").to_arrow().to_pylist() if row["amount"] is not None
    }
    orders = lake.table("shop.orders").to_arrow().to_pylist()
    assert sorted(row["order_id"] for row in orders) == sorted(raw)
    revenue = {row["date"]: row for row in lake.table("shop.revenue").to_arrow().to_pylist()}
    days = [date(2025, 1, 1) + timedelta(days=number) for number in range(14)]
    assert sorted(revenue) == days
    for day in days:
        rows = [row for row in raw.values() if row["date"] == day]
        assert revenue[day]["orders"] == len(rows)
        assert revenue[day]["revenue"] == sum((row["amount"] for row in rows), Decimal(0))
    assert "nothing to do" in called(project, ARCO, "run")
    assert "nothing changed" in called(project, ARCO, "deploy")


@pytest.mark.parametrize(
    ("before", "after", "code", "said"),
    [
        ("row_count(min=1)", "row_count(min=10**9)", 3, "its checks held it back; readers see the version before"),
        ('"amount is not null"', '"amont is not null"', 1, "mend it, then: arco run shop.orders+"),
        ("from arco import", "from arco import nothing_of_this_name,", 2, ""),
    ],
    ids=["held back", "failed", "wrong"],
)
def test_the_exit_code_says_what_came_of_it(project: Path, before: str, after: str, code: int, said: str) -> None:
    """The table is there from the test above; what does not come through leaves it as it is."""
    orders = arco.connect(str(project / "lake")).table("shop.orders").to_arrow().num_rows
    file = project / "assets" / "orders.py"
    right = file.read_text()
    assert before in right
    file.write_text(right.replace(before, after))
    try:
        assert said in called(project, ARCO, "run", "orders", "--force", "--no-fold", code=code)
    finally:
        file.write_text(right)
    assert arco.connect(str(project / "lake")).table("shop.orders").to_arrow().num_rows == orders > 0

"""What docs/projects.md shows works as it stands there, on a real Spark: its unit tests, and a run of its assets."""

import subprocess
import sys
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.transforms import IdentityTransform

import arco
from fixtures.document_blocks import write_blocks
from fixtures.servo.frames import MARKS

from .arco_server import arco_server

pytestmark = MARKS
PAGE = Path(__file__).resolve().parents[2] / "docs" / "projects.md"
ARCO = str(Path(sys.executable).with_name("arco"))
COUNTRIES = {1: "de", 2: "fr", 3: "it"}
ORDERS = [
    {
        "date": date(2025, 1, 1) + timedelta(days=number // 4),
        "order_id": number,
        "customer_id": 1 + number % 3,
        "amount": float(number % 7),
        "region": ("de", "fr", "it", "us")[number % 4],
    }
    for number in range(40)
]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page's files, and the tables that others write."""
    home = tmp_path_factory.mktemp("page")
    write_blocks(PAGE, home)
    with arco_server(home / "lake") as address:
        catalog = RestCatalog("arco", uri=address)
        catalog.create_namespace("shop")
        rows = pa.Table.from_pylist([*ORDERS, *ORDERS[:5]])
        table = catalog.create_table("shop.orders_raw", rows.schema)
        with table.update_spec() as spec:
            spec.add_field("date", IdentityTransform(), "date")
        table.append(rows)
        customers = pa.table({"customer_id": list(COUNTRIES), "country": list(COUNTRIES.values())})
        catalog.create_table("shop.customers", customers.schema).append(customers)
    return home


def called(folder: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_unit_tests_of_the_page_pass(project: Path) -> None:
    assert "4 passed" in called(project, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")


def test_the_assets_of_the_page_are_made(project: Path) -> None:
    called(project, ARCO, "run", "+revenue", "+sales_7d", "billable", "--partition", "date=2025-01-01..2025-01-08")
    lake = arco.connect(str(project / "lake"))
    kept = [one for one in ORDERS if one["date"] <= date(2025, 1, 8)]
    assert sorted(row["order_id"] for row in lake.table("shop.orders").to_arrow().to_pylist()) == list(range(len(kept)))
    revenue = {(row["date"], row["country"]): row["revenue"] for row in lake.table("shop.revenue").to_arrow().to_pylist()}
    expected: dict[tuple[date, str], float] = {}
    for one in kept:
        if one["amount"] >= 1:
            place = (one["date"], COUNTRIES[one["customer_id"]])
            expected[place] = expected.get(place, 0) + one["amount"]
    assert revenue == expected
    week = {(row["date"], row["region"]): row["sold"] for row in lake.table("shop.sales_7d").to_arrow().to_pylist()}
    assert set(week) == {(day, region) for day in (date(2025, 1, 7), date(2025, 1, 8)) for region in ("de", "fr", "it")}
    for (day, region), sold in week.items():
        days = [day - timedelta(days=back) for back in range(7)]
        raw = [*ORDERS, *ORDERS[:5]]
        assert sold == sum(one["amount"] for one in raw if one["date"] in days and one["region"] == region)
    assert lake.table("shop.billable").to_arrow().num_rows == len(kept)

"""Commands on the store beside a running server: each sees at once what the other did."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import NoSuchTableError, RESTError

from .arco_server import arco_server

ROWS = pa.table({"id": [1, 2]})


@dataclass(frozen=True)
class Lake:
    root: Path
    catalog: RestCatalog

    def arco(self, *arguments: str, code: int = 0) -> str:
        command = [str(Path(sys.executable).with_name("arco")), *arguments, "--root", str(self.root)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def json(self, *arguments: str) -> Any:
        return json.loads(self.arco(*arguments, "--json"))

    def rows(self, name: str) -> int:
        return int(self.catalog.load_table(name).scan().to_arrow().num_rows)


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    root = tmp_path / "lake"
    with arco_server(root) as address:
        yield Lake(root, RestCatalog("arco", uri=address))


def test_the_shell_and_a_client_see_each_others_changes(lake: Lake) -> None:
    lake.catalog.create_namespace("shop")
    table = lake.catalog.create_table("shop.orders", schema=ROWS.schema)
    table.append(ROWS)
    table.append(ROWS)
    shown = lake.json("show", "shop.orders")
    assert shown["uuid"] == str(table.metadata.table_uuid)
    assert shown["iceberg"]["row_count"] == 4
    told = lake.json("history", "shop.orders")["happenings"]
    assert [(one["operation"], one["rows"]) for one in told if one["what"] == "snapshot"] == [("append", 4), ("append", 2)]

    lake.arco("rename", "shop.orders", "shop.sales")
    assert lake.rows("shop.sales") == 4
    with pytest.raises(NoSuchTableError):
        lake.catalog.load_table("shop.orders")

    lake.arco("drop", "shop.sales", "--yes")
    with pytest.raises(RESTError, match="NoSuchTableException"):
        table.append(ROWS)
    assert lake.catalog.list_tables("shop") == []

    lake.catalog.create_table("shop.sales", schema=ROWS.schema)
    lake.arco("undrop", "shop.sales", code=2)
    lake.arco("undrop", "shop.sales", "--as", "shop.orders")
    assert lake.rows("shop.orders") == 4
    lake.catalog.load_table("shop.orders").append(ROWS)
    assert lake.rows("shop.orders") == 6
    assert [one["name"] for one in lake.json("ls")["tables"]] == ["orders", "sales"]
    assert "Clean." in lake.arco("verify", "--deep")


def test_verify_is_clean_while_a_server_is_busy(lake: Lake) -> None:
    """Commits, creates, drops and restores land between its reads; none of them looks like damage."""
    lake.catalog.create_namespace("shop")
    lake.catalog.create_table("shop.orders", schema=ROWS.schema)
    over = threading.Event()

    def work() -> int:
        turns = 0
        while not over.is_set():
            lake.catalog.load_table("shop.orders").append(ROWS)
            lake.catalog.create_table("shop.brief", schema=ROWS.schema)
            lake.catalog.drop_table("shop.brief")
            turns += 1
        return turns

    with ThreadPoolExecutor(1) as pool:
        turns = pool.submit(work)
        try:
            reports = [lake.json("verify", "--deep") for _ in range(2)]
        finally:
            over.set()
        assert turns.result() > 0
    assert [report["findings"] for report in reports] == [[], []]
    assert reports[-1]["counts"]["commits"] > reports[0]["counts"]["commits"]

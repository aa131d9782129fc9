"""Commands on the store beside a running server: each sees at once what the other did."""

import json
import subprocess
import sys
from collections.abc import Iterator
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
    lake.catalog.drop_table("shop.sales")
    assert [one["name"] for one in lake.json("ls", "--dropped")["dropped"]] == ["sales"]
    assert [one["name"] for one in lake.json("ls")["tables"]] == ["orders"]
    assert "Clean." in lake.arco("verify", "--deep")

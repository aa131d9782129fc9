# SPDX-License-Identifier: Apache-2.0
"""DataFusion as its page says: ADDRESS FOLDER PAGE. Every block of Python there is run. Imports nothing of Arco."""

import re
import sys
from pathlib import Path
from typing import Any

import datafusion
import pyarrow as pa
from pyiceberg.catalog import load_catalog

ADDRESS = "http://127.0.0.1:8181/iceberg"


def main(address: str, _folder: str, page: str) -> None:
    catalog = load_catalog("arco", type="rest", uri=address)
    catalog.create_namespace("shop")
    rows = pa.table({"id": [1, 2, 3], "item": ["fern", "moss", "ivy"]})
    catalog.create_table("shop.orders", schema=rows.schema).append(rows)
    names: dict[str, Any] = {}
    for block in blocks(page):
        exec(block.replace(ADDRESS, address), names)
    found = names["context"].sql("SELECT item FROM orders WHERE id > 1 ORDER BY id").to_pydict()
    assert found == {"item": ["moss", "ivy"]}, found
    print(f"DataFusion {datafusion.__version__}: all as it should be")


def blocks(page: str) -> list[str]:
    found = re.findall(r"^```python\n(.*?)^```$", Path(page).read_text(), re.MULTILINE | re.DOTALL)
    assert found, f"{page} has no Python"
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])

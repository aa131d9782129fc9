# SPDX-License-Identifier: Apache-2.0
"""Flink as its page says: ADDRESS FOLDER PAGE KEYS READER JAR... Every block of SQL there is run, with the catalog that has no
keys to give out (`none`), or the one that vends (`vended`). Imports nothing of Arco.

READER is a Python that has PyIceberg. It reads what Flink wrote: beside Flink's packages only an old PyIceberg can be installed.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pyflink
from pyflink.table import EnvironmentSettings, TableEnvironment
from pyflink.version import __version__

ADDRESS = "http://127.0.0.1:8181/iceberg"
CREATE = "CREATE CATALOG"
TABLE = "events.clicks"
ROWS = [[1, "2026-01-01 00:00:00"], [2, "2026-01-02 00:00:00"]]
READ = """
import json, sys
from pyiceberg.catalog import load_catalog
table = load_catalog("arco", type="rest", uri=sys.argv[1]).load_table(sys.argv[2])
rows = table.scan().to_arrow().sort_by("id").to_pylist()
print(json.dumps([[row["id"], str(row["seen"])] for row in rows]))
"""


def main(address: str, folder: str, page: str, keys: str, reader: str, *jars: str) -> None:
    os.environ |= {"FLINK_HOME": str(home(Path(folder), jars)), "FLINK_LOG_DIR": folder}
    flink = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    # What a statement gives is asked for to its end: an INSERT is done only then.
    answers = [list(flink.execute_sql(one.replace(ADDRESS, address)).collect()) for one in statements(page, keys)]
    by_flink = sorted([row[0], str(row[1])] for row in answers[-1])
    assert by_flink == ROWS, by_flink
    by_pyiceberg = subprocess.run([reader, "-I", "-c", READ, address, TABLE], check=True, capture_output=True).stdout
    assert json.loads(by_pyiceberg) == ROWS, by_pyiceberg
    print(f"Flink {__version__}, keys: {keys}: all as it should be")


def home(folder: Path, jars: tuple[str, ...]) -> Path:
    """A home for Flink whose lib has the jars beside Flink's own, where the page says that they go."""
    installed = Path(pyflink.__file__).parent
    place = folder / "flink"
    (place / "lib").mkdir(parents=True)
    for jar in [*installed.glob("lib/*.jar"), *map(Path, jars)]:
        (place / "lib" / jar.name).symlink_to(jar)
    for part in ("bin", "conf", "opt", "plugins"):
        (place / part).symlink_to(installed / part)
    return place


def statements(page: str, keys: str) -> list[str]:
    """One of the two catalogs of the page, and what is done in it."""
    blocks = re.findall(r"^```sql\n(.*?)^```$", Path(page).read_text(), re.MULTILINE | re.DOTALL)
    found = [one.strip() for block in blocks for one in block.split(";\n") if one.strip()]
    catalogs = {"vended" if "vended-credentials" in one else "none": one for one in found if one.startswith(CREATE)}
    rest = [one for one in found if not one.startswith(CREATE)]
    assert len(catalogs) == len(found) - len(rest) == 2, f"{page} has other catalogs than two: {found}"
    return [catalogs[keys], *rest]


if __name__ == "__main__":
    main(*sys.argv[1:])

# SPDX-License-Identifier: Apache-2.0
"""Flink as its page says: ADDRESS FOLDER PAGE READER JAR... Every block of SQL there is run. Imports nothing of Arco.

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
TABLE = "events.clicks"
ROWS = [[1, "2026-01-01 00:00:00"], [2, "2026-01-02 00:00:00"]]
READ = """
import json, sys
from pyiceberg.catalog import load_catalog
table = load_catalog("arco", type="rest", uri=sys.argv[1]).load_table(sys.argv[2])
rows = table.scan().to_arrow().sort_by("id").to_pylist()
print(json.dumps([[row["id"], str(row["seen"])] for row in rows]))
"""


def main(address: str, folder: str, page: str, reader: str, *jars: str) -> None:
    os.environ |= {"FLINK_HOME": str(home(Path(folder), jars)), "FLINK_LOG_DIR": folder}
    flink = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    # What a statement gives is asked for to its end: an INSERT is done only then.
    answers = [list(flink.execute_sql(one.replace(ADDRESS, address)).collect()) for one in statements(page)]
    by_flink = sorted([row[0], str(row[1])] for row in answers[-1])
    assert by_flink == ROWS, by_flink
    by_pyiceberg = subprocess.run([reader, "-I", "-c", READ, address, TABLE], check=True, capture_output=True).stdout
    assert json.loads(by_pyiceberg) == ROWS, by_pyiceberg
    print(f"Flink {__version__}: all as it should be")


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


def statements(page: str) -> list[str]:
    blocks = re.findall(r"^```sql\n(.*?)^```$", Path(page).read_text(), re.MULTILINE | re.DOTALL)
    assert blocks, f"{page} has no SQL"
    return [one.strip() for block in blocks for one in block.split(";\n") if one.strip()]


if __name__ == "__main__":
    main(*sys.argv[1:])

"""How long people wait for commands that only look: `import arco`, `arco --help`, `arco plan` on the example shop.

Every command is a process of its own. Medians with their spread, of wall time and of processor time; the first round warms up the
disk, compiles every module as an installation does once, and is not counted. The shop's raw tables are landed first, smaller: a
plan reads their manifests, and no rows.
Usage: python bench/commands.py [--rounds 7]
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pyiceberg.catalog import load_catalog

ARCO = str(Path(sys.executable).with_name("arco"))
SHOP = Path(__file__).resolve().parents[1] / "examples" / "shop"
SIZES = {"CUSTOMERS": 500, "ORDERS": 6_000, "CLICKS": 8_000}


def landed(root: str) -> None:
    """The raw tables of the shop, with all of their days and few rows."""
    sys.path.insert(0, str(SHOP))
    import landing  # noqa: PLC0415 - the example's own

    for name, rows in SIZES.items():
        setattr(landing, name, rows)
    command = [ARCO, "serve", "--root", root, "--port", "0", "--log-level", "error"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            uri = server.stdout.readline().rpartition(" at ")[2].strip()
            landing.write(load_catalog("arco", type="rest", uri=uri))
        finally:
            server.terminate()


def measured(command: list[str], compiled: str) -> tuple[float, float]:
    """Wall and processor time of one process. Modules are kept compiled in a folder of their own, whatever the shell says."""
    own = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    environment = own | {"PYTHONPYCACHEPREFIX": compiled}
    subprocess.run(command, cwd=SHOP, check=True, capture_output=True, env=environment)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def said(found: list[float]) -> str:
    return f"{1000 * statistics.median(found):.0f} ({1000 * min(found):.0f}-{1000 * max(found):.0f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory(prefix="arco-bench-") as folder:
        landed(f"{folder}/lake")
        python = [sys.executable, "-c"]
        cases: dict[str, tuple[list[str], str]] = {
            "python, nothing": ([*python, "pass"], ""),
            "import arco": ([*python, "import arco"], "< 60 ms beyond python"),
            "arco --help": ([ARCO, "--help"], "< 200 ms"),
            "arco plan, the shop": ([ARCO, "plan", "--root", f"{folder}/lake"], "< 1000 ms"),
            "its imports of pyspark alone": ([*python, "from pyspark.sql import DataFrame, functions"], ""),
        }
        spent: dict[str, list[tuple[float, float]]] = {name: [] for name in cases}
        for number in range(rounds + 1):
            for name, (command, _) in cases.items():
                found = measured(command, f"{folder}/compiled")
                if number:
                    spent[name].append(found)
    print(f"{rounds} rounds")
    print(f"{'':30} {'wall ms (spread)':>20} {'processor ms (spread)':>24}   goal")
    for name, (_, goal) in cases.items():
        walls, processors = ([one[at] for one in spent[name]] for at in (0, 1))
        print(f"{name:30} {said(walls):>20} {said(processors):>24}   {goal}")


if __name__ == "__main__":
    main()

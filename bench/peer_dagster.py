"""Dagster's side of `bench/peers.py`, run by a Python that has it: define, resolve and plan; then materialize in process.

Prints JSON: seconds of processor and wall time for each.
"""

import json
import sys
import time
import warnings
from collections.abc import Callable

warnings.filterwarnings("ignore")

from dagster import AssetKey, Definitions, asset, define_asset_job, materialize  # noqa: E402
from dagster._core.execution.api import create_execution_plan  # noqa: E402


def chains(count: int) -> list:
    """Assets that do nothing, in chains of ten."""
    made = []
    for number in range(count):
        needs = [AssetKey(f"a{number - 1}")] if number % 10 else []

        @asset(name=f"a{number}", deps=needs)
        def nothing() -> None:
            return None

        made.append(nothing)
    return made


def spent(work: Callable[[], object]) -> dict[str, float]:
    wall, processor = time.perf_counter(), time.process_time()
    work()
    return {"wall_s": time.perf_counter() - wall, "processor_s": time.process_time() - processor}


def planned(count: int) -> None:
    defined = Definitions(assets=chains(count), jobs=[define_asset_job("everything")])
    create_execution_plan(defined.get_job_def("everything"))


def main() -> None:
    plans, runs = int(sys.argv[1]), int(sys.argv[2])
    planned(10)  # what the first one loads is not what is measured
    found = {"plan": spent(lambda: planned(plans))}
    made = chains(runs)
    found["run"] = spent(lambda: materialize(made))
    print(json.dumps(found))


if __name__ == "__main__":
    main()

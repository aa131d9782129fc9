"""Arco's side of `bench/peers.py`: define and plan; then run tasks that do nothing. Prints JSON as `peer_dagster.py` does."""

import asyncio
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from arco import asset
from arco.kernel.ids import encode_ulid
from arco.servo.plan.facts import PlanningSnapshot
from arco.servo.plan.planner import Deployed, PlanRequest, plan
from arco.servo.sdk.inputs import same
from arco.servo.sdk.project import assembled
from scheduling import one_round, plan_of


def planned(count: int) -> None:
    """Chains of ten assets that do nothing, defined and planned."""
    made = []
    for number in range(count):

        def first() -> None:
            return None

        def next_one(above: object) -> object:
            return above

        defined = (
            asset(name=f"a{number}", inputs={"above": same(f"a{number - 1}")})(next_one)
            if number % 10
            else asset(name=f"a{number}")(first)
        )
        made.append(defined.written)
    project = assembled(made, folder=Path(), name="bench", namespace="bench")
    ids = {key: encode_ulid(number) for number, key in enumerate(project.assets, 1)}
    plan(project.graph, PlanningSnapshot.taken(0, {}), Deployed("d", "c", ids), PlanRequest()).encode()


def spent(work: Callable[[], object]) -> dict[str, float]:
    wall, processor = time.perf_counter(), time.process_time()
    work()
    return {"wall_s": time.perf_counter() - wall, "processor_s": time.process_time() - processor}


def main() -> None:
    plans, runs = int(sys.argv[1]), int(sys.argv[2])
    planned(10)
    found = {"plan": spent(lambda: planned(plans))}
    tasks = plan_of(runs, max(1, runs // 10))
    found["run"] = spent(lambda: asyncio.run(one_round(tasks, 4)))
    print(json.dumps(found))


if __name__ == "__main__":
    main()

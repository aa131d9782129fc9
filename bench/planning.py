"""What planning costs, without Spark and without a store: wall time, processor time, memory; each case in its own process.

Every case makes its project and its facts first, which is not measured, and then plans, encodes and fingerprints. Memory is the
peak of the process less what it had before planning began; the whole peak stands beside it.
Usage: python bench/planning.py [case]
"""

import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from arco.kernel.ids import encode_ulid
from arco.servo.plan.document import Plan
from arco.servo.plan.facts import AssetFacts, Materialization, PlanningSnapshot, TableFact
from arco.servo.plan.planner import Deployed, Mode, PlanRequest, plan
from arco.servo.sdk.authoring import Written
from arco.servo.sdk.definitions import AssetKind, CallSite
from arco.servo.sdk.dimensions import daily, partitioned
from arco.servo.sdk.inputs import same, window
from arco.servo.sdk.project import Project, assembled

ROUNDS = 5
START = datetime(2023, 1, 1, tzinfo=UTC)
PARTITIONS = 1000
NOW_MS = int((START + timedelta(days=PARTITIONS)).timestamp() * 1000)
DAYS = partitioned(daily("date", start=START.date()))
END = (START + timedelta(days=PARTITIONS)).date().isoformat()
WHOLE = [{"date": [START.date().isoformat(), END]}]


def project(assets: int, width: int, per_task: int | None) -> Project:
    """Layers of assets; each reads the two above it, one of them by a window of a week."""
    written = []
    for number in range(assets):
        above = number - width
        inputs = {}
        if above >= 0:
            inputs = {"one": same(f"a{above}"), "other": window(f"a{above - above % width + (above + 1) % width}", -6, 0)}
        kind = AssetKind.SOURCE if above < 0 and width > 1 else AssetKind.SQL
        written.append(
            Written(
                name=f"a{number}",
                kind=kind,
                where=CallSite("bench", number),
                sql=None if kind is AssetKind.SOURCE else f"select {number}",
                inputs=inputs,
                parameters={},
                partitions=DAYS,
                partitions_per_task=per_task,
            )
        )
    return assembled(written, folder=Path(), name="bench", namespace="bench")


def day(number: int) -> list[dict[str, list[str]]]:
    first = START.date() + timedelta(days=number)
    return [{"date": [first.isoformat(), (first + timedelta(days=1)).isoformat()]}]


def sources(made: Project, changed: int | None = None) -> dict[str, AssetFacts]:
    """The tables of the sources, one version a day; one day of each is new."""
    versions = [
        {"partitions": day(number), "version": f"v{number}{'x' if number == changed else ''}"}
        for number in range(PARTITIONS)
    ]
    table = TableFact(table_uuid="u", snapshot_id=1, metadata_location="m", versions=versions)
    return {str(key): AssetFacts(table=table) for key, asset in made.assets.items() if asset.is_source}


def published(made: Project, first: Plan) -> dict[str, AssetFacts]:
    """What the facts are after a plan ran."""
    ids = {task.id: encode_ulid(number + 1) for number, task in enumerate(first.spec.tasks)}
    by_id = {task.id: task for task in first.spec.tasks}
    codes = {str(key): asset.fingerprint for key, asset in made.assets.items()}
    table = TableFact(table_uuid="u", snapshot_id=1, metadata_location="m")
    found: dict[str, list[Materialization]] = {}
    for task in first.spec.tasks:
        inputs = {
            one.parameter: [
                *one.versions,
                *({"partitions": by_id[maker].partitions, "version": ids[maker]} for maker in one.made_by),
            ]
            for one in task.inputs
        }
        made_by = Materialization(
            id=ids[task.id], run_id="r", task_id=task.id, partitions=task.partitions, code=codes[task.asset],
            inputs=inputs, snapshot_id=1, published_ms=NOW_MS, position=ids[task.id], rows=10, bytes=100,
        )  # fmt: skip
        found.setdefault(task.asset, []).append(made_by)
    return {name: AssetFacts(materializations=tuple(its), table=table) for name, its in found.items()}


Ready = tuple[Project, PlanningSnapshot, PlanRequest]


def nothing_published() -> Ready:
    made = project(1000, 20, None)
    return made, PlanningSnapshot.taken(NOW_MS, sources(made)), PlanRequest()


def one_day_changed() -> Ready:
    made = project(1000, 20, None)
    first = planned((made, PlanningSnapshot.taken(NOW_MS, sources(made)), PlanRequest()))
    facts = {**sources(made, changed=500), **published(made, first)}
    return made, PlanningSnapshot.taken(NOW_MS, facts), PlanRequest()


def explicit_tasks() -> Ready:
    made = project(100, 1, 1)
    return made, PlanningSnapshot.taken(NOW_MS, {}), PlanRequest()


def explicit_again() -> Ready:
    made = project(100, 1, 1)
    first = planned((made, PlanningSnapshot.taken(NOW_MS, {}), PlanRequest()))
    return made, PlanningSnapshot.taken(NOW_MS, published(made, first)), PlanRequest(mode=Mode.FORCE)


CASES: dict[str, tuple[str, Callable[[], Ready], str]] = {
    "ranges": ("1,000 assets × 1,000 partitions, nothing published", nothing_published, "1 s, 300 MB"),
    "changed": ("the same, all published, one day of each source is new", one_day_changed, "1 s, 300 MB"),
    "tasks": ("100,000 explicit tasks, nothing published", explicit_tasks, "5 s"),
    "forced": ("100,000 explicit tasks, all published one by one, forced", explicit_again, ""),
}


def planned(ready: Ready) -> Plan:
    made, facts, request = ready
    ids = {key: encode_ulid(number) for number, key in enumerate(made.assets, 1)}
    return plan(made.graph, facts, Deployed("d", made.code_version, ids), request)


def measured(name: str) -> tuple[float, float, int, int, int]:
    ready = CASES[name][1]()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wall, processor = time.perf_counter(), time.process_time()
    made = planned(ready)
    made.encode()
    took = time.perf_counter() - wall, time.process_time() - processor
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return *took, len(made.spec.tasks), (peak - before) // 1024, peak // 1024


def main() -> None:
    if len(sys.argv) > 1:
        print(msgspec.json.encode(measured(sys.argv[1])).decode())
        return
    print(f"{'case':<58} {'tasks':>7} {'wall s':>18} {'processor s':>18} {'planning, whole MB':>20}  goal")
    for name, (said, _, goal) in CASES.items():
        rounds = [_in_a_process(name) for _ in range(ROUNDS)]
        wall, processor, tasks, grown, peak = zip(*rounds, strict=True)
        memory = f"{int(max(grown))}, {int(max(peak))}"
        print(f"{said:<58} {tasks[0]:>7} {_spread(wall):>18} {_spread(processor):>18} {memory:>20}  {goal}", flush=True)


def _in_a_process(name: str) -> tuple[float, ...]:
    done = subprocess.run([sys.executable, __file__, name], capture_output=True, text=True, check=True)
    return tuple(msgspec.json.decode(done.stdout.splitlines()[-1]))


def _spread(values: tuple[float, ...]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f}–{max(values):.2f})"


if __name__ == "__main__":
    main()

"""What the fold costs on Spark, on a lake in a folder: small batches, a batch beside a long history, and a rebuild.

Events are those of runs: tasks begin, publish days, are checked, record lineage and end; made from a seed, in segments as writers
store them, for the heads execution, quality and lineage. A batch is folded head by head. Wall time, and processor time of this
process, of the JVM and of its Python workers together, since other programs may use the machine too. Every figure stands beside
its goal as a ratio. Usage: python bench/fold.py [--events 200000] [--history 2000000] [--rounds 5]
"""

import argparse
import asyncio
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from arco.fold.spark_fold import SparkFold
from arco.fold.spark_session import SparkSettings, open_session
from arco.fold.work import StateFile
from arco.kernel.ids import SegmentId, WriterId, encode_ulid
from arco.kernel.scope import Scope
from arco.ledger.segment import encode_segment
from arco.storage.keys import Day, Domain, Head, SegmentKey

SCOPE = Scope.of("default", "default")
BEGIN_MS = 1_735_689_600_000
HEADS = {Head.EXECUTION: Domain.EXECUTION, Head.QUALITY: Domain.QUALITY, Head.LINEAGE: Domain.LINEAGE}
ASSETS = 2_000
TASKS_PER_RUN = 20
PER_SEGMENT = 1_000
SEGMENTS_PER_ROUND = 100
"""How many segments a round of the fold takes at most: what one manifest adds."""

MICRO_S, REBUILD_EVENTS_PER_S, HISTORY_RATIO = 5.0, 20_000, 1.5


def ulid(number: int) -> str:
    return encode_ulid((BEGIN_MS << 80) + number)


class Events:
    """Runs, one after the other, for ever."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._number = seed << 60

    def tasks(self) -> Iterator[tuple[Domain, bytes]]:
        while True:
            run = self._next()
            yield self._line("execution.run_created.v1", run, _created(run))
            for _ in range(TASKS_PER_RUN):
                yield from self._task(run)
            ended = {"run_id": run, "state": "succeeded", "tasks": {"succeeded": TASKS_PER_RUN}, "message": None}
            yield self._line(
                "execution.run_completed.v1", run, {**ended, "started_ms": BEGIN_MS, "ended_ms": BEGIN_MS + 60_000}
            )

    def _task(self, run: str) -> Iterator[tuple[Domain, bytes]]:
        pick = self._random
        number = pick.randrange(ASSETS)
        day = pick.randrange(28) + 1
        about = {
            "run_id": run,
            "task_id": f"task_{pick.getrandbits(64):016x}",
            "asset": f"shop.asset_{number}",
            "asset_id": ulid(number),
        }
        ranges = {"partitions": [{"date": [f"2025-01-{day:02}", f"2025-01-{day + 1:02}"]}]}
        made = {**about, **ranges, "materialization_id": self._next()}
        begun = {**about, **ranges, "attempt": 1, "worker": "w", "started_ms": BEGIN_MS}
        yield self._line("execution.task_started.v1", run, begun)
        yield self._line("execution.materialization_completed.v1", run, {**made, **_published(number, pick)})
        for check in ("unique(order_id)", "row_count"):
            result = {"check": check, "kind": "unique", "severity": "error", "passed": True, "total_rows": 1000}
            checked = {**made, "check_id": f"{number} {check}", "action": "continue", "grain": {"date": "daily"}}
            yield self._line("quality.check_executed.v1", run, {**checked, "result": result})
        edges = [_edge(pick.randrange(ASSETS), number, ranges["partitions"]) for _ in range(2)]
        lineage = {"run_id": run, "task_id": about["task_id"], "materialization_id": made["materialization_id"]}
        yield self._line("lineage.lineage_recorded.v1", run, {**lineage, "edges": edges, "method": "servo"})
        ended = {**about, "state": "succeeded", "attempts": 1, "failure_class": None, "message": None}
        yield self._line("execution.task_ended.v1", run, {**ended, "started_ms": BEGIN_MS, "ended_ms": BEGIN_MS + 9_000})

    def _line(self, kind: str, run: str, data: dict[str, Any]) -> tuple[Domain, bytes]:
        event = {
            "specversion": "1.0",
            "datacontenttype": "application/json",
            "id": self._next(),
            "source": "arco/servo",
            "type": kind,
            "time": "2025-01-01T00:00:00.000Z",
            "subject": data.get("asset", run),
            "data": data,
            "tenantid": "default",
            "workspaceid": "default",
            "streamid": run,
            "correlationid": run,
            "position": self._next(),
        }
        return Domain(kind.partition(".")[0]), msgspec.json.encode(event, order="sorted")

    def _next(self) -> str:
        self._number += 1
        return ulid(self._number)


def _created(run: str) -> dict[str, Any]:
    words = {"run_id": run, "project": "shop", "deployment": ulid(0), "code_version": "v1", "job": None}
    return {**words, "trigger": "manual", "triggered_by": "ann", "tasks": TASKS_PER_RUN}


def _published(number: int, pick: random.Random) -> dict[str, Any]:
    return {
        "attempt": 1,
        "table_uuid": f"0192e1d0-0000-7000-8000-{number:012x}",
        "code": f"{number:064x}",
        "code_version": "v1",
        "plan_fingerprint": f"{number:064x}",
        "inputs": {},
        "input_snapshots": {"raw": pick.getrandbits(62)},
        "snapshot_id": pick.getrandbits(62),
        "rows": 1000,
        "bytes": 100_000,
        "files": 1,
        "schema_id": 0,
        "started_ms": BEGIN_MS,
        "published_ms": BEGIN_MS + 8_000,
        "counts": [],
        "checks_failed": [],
        "mode": "replace",
        "grain": {"date": "daily"},
        "sequence_number": pick.randrange(1, 1000),
    }


def _edge(source: int, target: int, partitions: list[dict[str, Any]]) -> dict[str, Any]:
    ends = {"from": f"shop.asset_{source}", "from_id": ulid(source), "to": f"shop.asset_{target}", "to_id": ulid(target)}
    return {**ends, "kind": "whole", "from_partitions": partitions, "to_partitions": partitions, "from_snapshot": 1}


@dataclass(slots=True)
class Lake:
    """A ledger in a folder."""

    root: Path
    written: int = 0
    segments: dict[Head, list[str]] = field(default_factory=lambda: {head: [] for head in HEADS})

    def append(self, events: int, seed: int) -> dict[Head, list[str]]:
        """So many events of all domains, as segments; their names."""
        lines: dict[Domain, list[bytes]] = {domain: [] for domain in HEADS.values()}
        for number, (domain, line) in enumerate(Events(seed).tasks()):
            if number == events:
                break
            lines[domain].append(line)
        made = {head: list(self._store(domain, lines[domain])) for head, domain in HEADS.items()}
        for head, names in made.items():
            self.segments[head] += names
        return made

    def _store(self, domain: Domain, lines: list[bytes]) -> Iterator[str]:
        for at in range(0, len(lines), PER_SEGMENT):
            self.written += 1
            key = SegmentKey(SCOPE, domain, Day("2025-01-01"), SegmentId(ulid(self.written)))
            path = self.root / str(key)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(encode_segment(key, WriterId(ulid(0)), self.written, lines[at : at + PER_SEGMENT]))
            yield str(key)


@dataclass(frozen=True, slots=True)
class Spent:
    wall_s: float
    processor_s: float


class Bench:
    """One session, one lake."""

    def __init__(self, folder: Path, master: str) -> None:
        self.lake = Lake(folder / "lake")
        conf = {"spark.local.dir": str(folder / "scratch"), "spark.driver.memory": "4g"}
        self.session = open_session(SparkSettings(master, "bench-fold", conf))
        self.work = SparkFold(self.session, str(self.lake.root), {}, SCOPE)
        self._attempts = 0

    def fold(self, segments: dict[Head, list[str]]) -> list[StateFile]:
        """Fold segments as rounds do: head by head, a number of segments at a time."""
        files: list[StateFile] = []
        for head, names in segments.items():
            for at in range(0, len(names), SEGMENTS_PER_ROUND):
                self._attempts += 1
                some = names[at : at + SEGMENTS_PER_ROUND]
                folded = asyncio.run(self.work.fold(head, some, ulid(self._attempts)))
                if folded.refused:
                    raise SystemExit(f"an event of the bench was refused: {folded.refused[0].reason}")
                files += folded.files
        return files

    def merge(self, files: Sequence[StateFile]) -> None:
        for head in HEADS:
            self._attempts += 1
            own = [file for file in files if f"/state/{head}/" in file.key]
            asyncio.run(self.work.merge(head, own, ulid(self._attempts)))

    def batches(self, events: int, rounds: int, seed: int) -> list[Spent]:
        """Some batches, each of new events; the making of them is not measured."""
        spent = []
        for number in range(rounds):
            made = self.lake.append(events, seed + number)
            spent.append(measured(lambda made=made: self.fold(made)))  # type: ignore[misc]
        return spent

    def close(self) -> None:
        self.work.close()
        self.session.stop()


def measured(work: Callable[[], object]) -> Spent:
    wall, processor = time.perf_counter(), processor_seconds()
    work()
    return Spent(time.perf_counter() - wall, processor_seconds() - processor)


def processor_seconds() -> float:
    """What this process and everything below it have used so far, those that ended included."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        number = int(stat.parent.name)
        parents[number], ticks[number] = int(words[1]), sum(int(word) for word in words[11:15])
    below = {os.getpid()}
    while True:
        more = {one for one, parent in parents.items() if parent in below} - below
        if not more:
            return sum(ticks.get(one, 0) for one in below) / os.sysconf("SC_CLK_TCK")
        below |= more


def said(name: str, spent: Sequence[Spent], events: int, goal: str) -> None:
    walls, processors = [one.wall_s for one in spent], [one.processor_s for one in spent]
    wall, processor = statistics.median(walls), statistics.median(processors)
    spread = f"{wall:.2f} ({min(walls):.2f}-{max(walls):.2f})"
    rates = f"{events / wall:>9.0f} {events / processor * (os.cpu_count() or 1):>12.0f}"
    print(f"{name:52} {spread:>24} {processor:>8.2f} {rates}  {goal}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=200_000, help="of the rebuild")
    parser.add_argument("--history", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--master", default="local[2]")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), given.master)
        print(f"{'':52} {'wall s (spread)':>24} {'cpu s':>8} {'events/s':>9} {'by cpu alone':>12}")
        bench.batches(1_000, 2, seed=1)  # warms up, and is not counted
        micro = bench.batches(1_000, given.rounds, seed=10)
        worst = statistics.median(one.wall_s for one in micro) / MICRO_S
        said("a micro-batch of 1,000 events", micro, 1_000, f"{worst:.2f} of {MICRO_S:.0f} s")
        bench.lake.append(10_000, seed=100)
        few = bench.batches(10_000, given.rounds, seed=200)
        said("a batch of 10,000 events, 10 thousand before it", few, 10_000, "")
        rebuilt = bench.lake.append(given.events, seed=300)
        files: list[StateFile] = []
        spent = measured(lambda: files.extend(bench.fold(rebuilt)))
        part = given.events / spent.wall_s / REBUILD_EVENTS_PER_S
        said(f"a rebuild of {given.events} events", [spent], given.events, f"{part:.2f} of {REBUILD_EVENTS_PER_S} events/s")
        merged = measured(lambda: bench.merge(files))
        said("  and its files merged into a base", [merged], given.events, "")
        bench.lake.append(max(0, given.history - given.events), seed=400)
        many = bench.batches(10_000, given.rounds, seed=500)
        by_wall = statistics.median(one.wall_s for one in many) / statistics.median(one.wall_s for one in few)
        by_cpu = statistics.median(one.processor_s for one in many) / statistics.median(one.processor_s for one in few)
        goal = f"{by_wall:.2f}, by cpu {by_cpu:.2f}, of at most {HISTORY_RATIO}"
        said(f"a batch of 10,000 events, {given.history} before it", many, 10_000, goal)
        bench.close()


if __name__ == "__main__":
    main()

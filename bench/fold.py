"""What the fold costs on Spark, on a lake in a folder: a first batch, small ones, the same batch beside a long history, rebuilds.

Events are those of runs: tasks begin, publish days, are checked, record lineage and end; made from a seed, in segments as writers
store them. What is measured is the whole of it: look, fold on Spark, publish three heads and the root, on a disk that is asked to
keep what it was given. Wall time, and processor time of this process, of the JVM and of its Python workers together, since other
programs may use the machine too. The history is folded, by a rebuild. Prints the table of bench/results/fold.md.
Usage: python bench/fold.py [--rebuild 200000] [--history 2000000] [--rounds 7]
"""

import argparse
import asyncio
import os
import random
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from arco.fold.folding import Folding, Settings
from arco.fold.heads import Heads
from arco.fold.manifests import Caps
from arco.fold.merging import merge
from arco.fold.passes import fold_pass
from arco.fold.rebuilding import rebuild_several
from arco.fold.spark_fold import SparkFold
from arco.fold.spark_session import open_session
from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.kernel.ids import SegmentId, WriterId, encode_ulid
from arco.kernel.scope import Scope
from arco.ledger.segment import encode_segment
from arco.storage.keys import Day, Domain, Head, SegmentKey
from arco.storage.roots import open_root
from arco.surface.folds import own_session

SCOPE = Scope.of("default", "default")
BEGIN_MS = 1_735_689_600_000
HEADS = {Head.EXECUTION: Domain.EXECUTION, Head.QUALITY: Domain.QUALITY, Head.LINEAGE: Domain.LINEAGE}
ASSETS = 2_000
TASKS_PER_RUN = 20
PER_SEGMENT = 1_000
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
        # An asset reads the same others in every run.
        edges = [_edge(number * step % ASSETS, number, ranges["partitions"]) for step in (31, 77)]
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
    segments: int = 0
    events: int = 0

    def append(self, events: int) -> None:
        """So many events of all domains, as segments."""
        lines: dict[Domain, list[bytes]] = {domain: [] for domain in HEADS.values()}
        made = Events(seed=self.events + 1).tasks()
        for _ in range(events):
            domain, line = next(made)
            lines[domain].append(line)
            if len(lines[domain]) == PER_SEGMENT:
                self._store(domain, lines.pop(domain))
                lines[domain] = []
        for domain, rest in lines.items():
            if rest:
                self._store(domain, rest)
        self.events += events

    def _store(self, domain: Domain, lines: list[bytes]) -> None:
        self.segments += 1
        key = SegmentKey(SCOPE, domain, Day("2025-01-01"), SegmentId(ulid(self.segments)))
        path = self.root / str(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encode_segment(key, WriterId(ulid(0)), self.segments, lines))


@dataclass(frozen=True, slots=True)
class Spent:
    wall_s: float
    processor_s: float


class Bench:
    """One lake, one session, one folder."""

    def __init__(self, folder: Path, master: str) -> None:
        self.lake = Lake(folder / "lake")
        self._settings = own_session("bench-fold", master)  # as `arco fold` has it

    def open(self) -> None:
        clock, entropy = SystemClock(), SystemEntropy()
        self.session = open_session(self._settings)
        self._work = SparkFold(self.session, str(self.lake.root), {}, SCOPE)
        store = open_root(str(self.lake.root), {}, clock, entropy)
        self.folding = Folding(Heads(store, SCOPE, clock, entropy), self._work)

    async def fold(self) -> None:
        done = await fold_pass(self.folding, tuple(HEADS))
        if done.failed or done.merged or sum(one.refused for one in done.rounds.values()):
            raise SystemExit(f"a batch was not only folded: {done}")

    async def rebuild(self) -> None:
        published = await rebuild_several(self.folding, HEADS)
        events = sum(one.manifest.events for one in published if one.manifest is not None)
        if events != self.lake.events:
            raise SystemExit(f"{events} of {self.lake.events} events were rebuilt")
        await self.folding.heads.publish_cut(published)

    async def merge(self) -> None:
        """All deltas into the base, whatever the caps say."""
        due = Folding(self.folding.heads, self._work, Settings(caps=Caps(files=1)))
        await self.folding.heads.publish_cut([made for head in HEADS if (made := await merge(due, head)) is not None])

    async def batches(self, events: int, rounds: int) -> list[Spent]:
        """Some batches, each of new events; the making of them is not measured."""
        spent = []
        for _ in range(rounds):
            self.lake.append(events)
            spent.append(await measured(self.fold))
        return spent

    def close(self) -> None:
        self._work.close()
        self.session.stop()


async def measured(work: Callable[[], Awaitable[None]]) -> Spent:
    wall, processor = time.perf_counter(), processor_seconds()
    await work()
    return Spent(time.perf_counter() - wall, processor_seconds() - processor)


def processor_seconds() -> float:
    """What this process and everything below it have used so far, those that ended included."""
    return sum(sum(int(word) for word in words[11:15]) for words in below().values()) / os.sysconf("SC_CLK_TCK")


def below() -> dict[int, list[str]]:
    """This process and all below it, with the words of their `stat` after the name."""
    found: dict[int, list[str]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            found[int(stat.parent.name)] = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
    ours = {os.getpid()}
    while more := {one for one, words in found.items() if int(words[1]) in ours} - ours:
        ours |= more
    return {one: found[one] for one in ours if one in found}


def forget_memory() -> None:
    """From now on count the most memory anew, for every process below this one."""
    for number in below().keys() - {os.getpid()}:
        with suppress(OSError):
            Path(f"/proc/{number}/clear_refs").write_text("5")


def memory_words() -> str:
    return ", ".join(f"{name} {size:,} MB" for name, size in sorted(most_memory_mb().items()))


def most_memory_mb() -> dict[str, int]:
    """The most that a Python worker, and that the JVM, had in memory since that was forgotten."""
    most: dict[str, int] = {}
    for number in below().keys() - {os.getpid()}:
        status = Path(f"/proc/{number}/status").read_text()
        words = dict(line.split(":", 1) for line in status.splitlines())
        if "VmHWM" not in words:
            continue  # it has ended
        name = "the JVM" if words["Name"].strip() == "java" else "a Python worker"
        most[name] = max(most.get(name, 0), int(words["VmHWM"].split()[0]) // 1024)
    return most


def said(name: str, spent: Sequence[Spent], events: int, goal: str = "") -> None:
    walls, processors = [one.wall_s for one in spent], [one.processor_s for one in spent]
    wall, processor = statistics.median(walls), statistics.median(processors)
    spread = f" ({min(walls):.2f} to {max(walls):.2f})" if len(spent) > 1 else ""
    rates = f"{events / wall:,.0f} | {events / processor * (os.cpu_count() or 1):,.0f}" if events else " | "
    print(f"| {name} | {wall:.2f}{spread} | {processor:.2f} | {rates} | {goal} |", flush=True)


def against(measured: float, goal: float, words: str, *, at_least: bool = False) -> str:
    met = measured >= goal if at_least else measured <= goal
    return f"{words}: {'met' if met else 'MISSED'}"


def median(spent: Sequence[Spent]) -> Spent:
    return Spent(statistics.median(one.wall_s for one in spent), statistics.median(one.processor_s for one in spent))


async def run(bench: Bench, rebuilt: int, history: int, rounds: int) -> None:
    cores = os.cpu_count()
    print(f"Load of the machine: {os.getloadavg()[0]:.1f} on {cores} cores.\n")
    print(f"| what | wall s (spread of {rounds}) | cpu s | events/s | by cpu alone, {cores} cores | goal |")
    print("|---|---|---|---|---|---|")

    async def opening() -> None:
        bench.open()

    said("starting the session", [await measured(opening)], 0)
    said("1,000 events, the first batch of the session", await bench.batches(1_000, 1), 1_000)
    micro = await bench.batches(1_000, rounds)
    said("1,000 events, warm", micro, 1_000, against(median(micro).wall_s, MICRO_S, f"at most {MICRO_S:.0f} s"))
    await bench.batches(10_000 - bench.lake.events, 1)
    few = await bench.batches(10_000, rounds)
    said("10,000 events, 10 thousand before the first of them", few, 10_000)
    for count in (rebuilt, history):
        bench.lake.append(count - bench.lake.events)
        forget_memory()
        spent = await measured(bench.rebuild)
        words = f"at least {REBUILD_EVENTS_PER_S:,}/s"
        rate = against(count / spent.wall_s, REBUILD_EVENTS_PER_S, words, at_least=True)
        by_cpu = f"{'met' if count / spent.processor_s * (cores or 1) >= REBUILD_EVENTS_PER_S else 'MISSED'} by cpu"
        said(f"rebuild of {count:,} events", [spent], count, f"{rate}, {by_cpu}; most memory: {memory_words()}")
    forget_memory()
    many = await bench.batches(10_000, rounds)
    by_wall, by_cpu = median(many).wall_s / median(few).wall_s, median(many).processor_s / median(few).processor_s
    words = f"{by_wall:.2f}× of wall, {by_cpu:.2f}× of cpu, at most {HISTORY_RATIO}×"
    goal = f"{against(by_wall, HISTORY_RATIO, words)}; most memory: {memory_words()}"
    said(f"10,000 events, {history:,} before the first of them", many, 10_000, goal)
    said("  these merged into the base, all of it written anew", [await measured(bench.merge)], 0)
    print(f"\nLoad of the machine at the end: {os.getloadavg()[0]:.1f}.")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rebuild", type=int, default=200_000)
    parser.add_argument("--history", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--master", default="local[2]")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), given.master)
        try:
            asyncio.run(run(bench, given.rebuild, given.history, given.rounds))
        finally:
            bench.close()


if __name__ == "__main__":
    main()

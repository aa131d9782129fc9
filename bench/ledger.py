"""Appending to the ledger: events a second from one process on a folder, and what a segment costs a store.

The baseline writes the same bytes bare: a new file, flushed, and its folder flushed. Rounds of both are taken in turn, so that
the machine's noise falls on both. Events a second are given by the clock and by the time of the processor, which other work on
the machine hardly changes. The table also goes to bench/results/ledger.md. Usage: python bench/ledger.py [--quick]
"""

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.kernel.ids import EventId, UlidSource
from arco.kernel.scope import Scope
from arco.ledger.appender import Appender
from arco.ledger.drafts import Draft
from arco.ledger.execution_events import MATERIALIZATION_COMPLETED, TASK_ENDED, MaterializationCompleted, TaskEnded
from arco.ledger.payloads import derived_event_id
from arco.ledger.posted import posted_draft
from arco.ledger.reading import segments
from arco.ledger.segment import decode_segment
from arco.storage.keys import Domain
from arco.storage.local import LocalStore
from arco.storage.profile import INSTANT, ProfiledStore, operation

ROOT = Path(__file__).resolve().parents[1]
CLOCK, ENTROPY = SystemClock(), SystemEntropy()
SCOPE = Scope.of()
GOAL_EVENTS_S = 5000

Drafts = list[Draft]
Make = Callable[[int], Drafts]


def materializations(count: int) -> Drafts:
    """What runs write: ids that are known, and some hundred bytes of data."""
    ulids = UlidSource(CLOCK, ENTROPY)
    run = ulids.next()
    drafts = []
    for number in range(count):
        made = MaterializationCompleted(
            materialization_id=ulids.next(), run_id=run, task_id="task_0123456789abcdef", attempt=1, asset="shop.daily",
            asset_id="01K798DZZZ000000000000000B", table_uuid="c0ffee00-1234-4abc-8def-0123456789ab",
            partitions=[{"date": ["2025-10-10", "2025-10-11"]}], code="5c" * 32, code_version="4f2a9c1",
            plan_fingerprint="9f" * 32, inputs={"orders": [{"version": run}]}, input_snapshots={"orders": 7812345678901234567},
            snapshot_id=5123456789012345678 + number, rows=1000, bytes=20480, files=1, schema_id=0,
            started_ms=1760173687100, published_ms=1760173690000,
        )  # fmt: skip
        event_id = derived_event_id(1760173690000, run, str(number))
        drafts.append(made.draft(MATERIALIZATION_COMPLETED, event_id, subject="shop.daily", run_id=run))
    return drafts


def ended(count: int) -> Drafts:
    """Small events under the ids that the sender gave them."""
    ulids = UlidSource(CLOCK, ENTROPY)
    run = ulids.next()
    payload = TaskEnded(
        run_id=run, task_id="task_0123456789abcdef", asset="shop.daily", asset_id="01K798DZZZ000000000000000B",
        state="succeeded", attempts=1, started_ms=1760173687100, ended_ms=1760173690200,
    )  # fmt: skip
    return [payload.draft(TASK_ENDED, str(EventId(ulids.next())), subject="shop.daily", run_id=run) for _ in range(count)]


def posted(count: int) -> Drafts:
    """The same from another system, with a key each: checked on the way in, and the id made of what they say."""
    bodies = [
        {"type": str(one.type), "source": "airflow", "data": one.data, "idempotencykey": f"{one.id}"}
        for one in ended(count)
    ]
    return [posted_draft(body, SCOPE) for body in bodies]


@dataclass(frozen=True)
class Row:
    what: str
    batch: int
    events_s: float
    processor_events_s: float
    bytes_each: float
    segments: int
    puts: float
    others: int
    trips: float
    ratio: float
    least: float
    greatest: float

    def line(self) -> str:
        met = "met" if self.events_s >= GOAL_EVENTS_S else "**not met**"
        cells = (
            self.what,
            f"{self.batch:,}",
            f"{self.events_s:,.0f}",
            f"{self.processor_events_s:,.0f}",
            f"≥ {GOAL_EVENTS_S:,}: {met}" if self.batch > 1 else "–",
            f"{self.bytes_each:,.0f} B",
            f"{self.segments:,}",
            f"{self.puts:.2f}",
            f"{self.others}",
            f"{self.trips:.2f}",
            f"{self.ratio:.1f} ({self.least:.1f}–{self.greatest:.1f})",
        )
        return f"| {' | '.join(cells)} |"


async def measure(what: str, make: Make, batch: int, batches: int, rounds: int) -> Row:
    rates, processor, ratios, sizes, costs = [], [], [], [], []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory(prefix="arco-bench-") as folder:
            store = ProfiledStore(LocalStore(f"{folder}/lake", CLOCK, ENTROPY), INSTANT, CLOCK)
            appender = Appender(store, SCOPE, CLOCK, ENTROPY, gather_s=0.0)
            groups = [make(batch) for _ in range(batches)]
            with operation("append") as cost:
                took_s, processor_s = await timed(lambda: one_after_the_other(appender, groups))  # noqa: B023 - used at once
            bodies = [found.data async for found in stored(store)]
            bare_s = await asyncio.to_thread(bare, f"{folder}/bare", bodies)
            await store.close()
        rates.append(batch * batches / took_s)
        processor.append(batch * batches / processor_s)
        ratios.append(took_s / bare_s)
        sizes.append(sum(map(len, bodies)) / (batch * batches))
        costs.append((len(bodies), cost))
    count, cost = costs[-1]
    others = cost.total_requests - cost.requests["put"]
    return Row(
        what, batch, statistics.median(rates), statistics.median(processor), sizes[-1], count,
        cost.requests["put"] / count, others,
        cost.round_trips / count, statistics.median(ratios), min(ratios), max(ratios),
    )  # fmt: skip


async def one_after_the_other(appender: Appender, groups: list[Drafts]) -> None:
    """Each batch is durable before the next is sent: one sender that waits for its answers."""
    for drafts in groups:
        await appender.append(Domain.EXECUTION, drafts)


async def timed(work: Callable[[], Awaitable[None]]) -> tuple[float, float]:
    started, processor = time.perf_counter(), time.process_time()
    await work()
    return time.perf_counter() - started, time.process_time() - processor


async def stored(store: ProfiledStore):  # noqa: ANN201
    """What the ledger holds; each segment is read back and checked."""
    async for key in segments(store, SCOPE, Domain.EXECUTION):
        found = await store.get(str(key))
        assert found is not None
        decode_segment(key, found.data)
        yield found


def bare(folder: str, bodies: list[bytes]) -> float:
    """The same bytes as new files, each durable with its name before the next."""
    Path(folder).mkdir()
    handle = os.open(folder, os.O_RDONLY)
    started = time.perf_counter()
    for number, body in enumerate(bodies):
        file = os.open(f"{folder}/{number}", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        os.write(file, body)
        os.fsync(file)
        os.close(file)
        os.fsync(handle)
    took_s = time.perf_counter() - started
    os.close(handle)
    return took_s


async def together(senders: int, rounds: int) -> str:
    """Many senders of one event each, at the same time: how many segments that makes."""
    rates, per_segment = [], []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory(prefix="arco-bench-") as folder:
            store = ProfiledStore(LocalStore(f"{folder}/lake", CLOCK, ENTROPY), INSTANT, CLOCK)
            appender = Appender(store, SCOPE, CLOCK, ENTROPY)
            drafts = ended(senders)
            started = time.perf_counter()
            await asyncio.gather(*(appender.append(Domain.EXECUTION, [draft]) for draft in drafts))
            rates.append(senders / (time.perf_counter() - started))
            per_segment.append(senders / store.total.requests["put"])
            await store.close()
    return (
        f"{senders:,} senders of one event each, all at once: {statistics.median(rates):,.0f} events/s, "
        f"{statistics.median(per_segment):,.0f} events in a segment."
    )


COLUMNS = (
    *(
        "events",
        "in a batch",
        "events/s",
        "events/s of processor time",
        "goal of events/s",
        "each",
        "segments",
        "puts a segment",
    ),
    *("other requests", "round trips a segment", "time beside the same bytes bare (least–greatest)"),
)
HEAD = ["# The ledger: appending", "", f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]


async def report(rounds: int) -> list[str]:
    cases: list[tuple[str, Make, int, int]] = [
        ("materializations of runs", materializations, 1000, 5),
        ("materializations of runs", materializations, 100, 20),
        ("ends of tasks", ended, 1000, 5),
        ("ends of tasks, sent with a key", posted, 1000, 5),
        ("ends of tasks", ended, 1, 100),
    ]
    rows = [await measure(*case, rounds) for case in cases]
    return [
        *HEAD,
        *(row.line() for row in rows),
        "",
        await together(2000, rounds),
        "",
        f"Medians of {rounds} rounds; one process, one sender that waits for each batch. Every segment is read back and checked.",
        "",
        f"Load of the machine at the end: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors.",
    ]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="fewer rounds, and no file of results")
    quick = parser.parse_args().quick
    lines = asyncio.run(report(2 if quick else 9))
    print("\n".join(lines))
    if not quick:
        (ROOT / "bench" / "results" / "ledger.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

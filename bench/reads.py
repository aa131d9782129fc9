"""What questions cost over 10,000 assets, 1,000,000 partitions and 5,000,000 lineage executions: wall, processor, files read.

The asset page, lineage to depth 10, explain and search, asked of assets chosen by a seed, warm (each kind was asked before).
Beside them the same questions as SQL with indexes on the same rows in a DuckDB file: the floor of a database that runs anyway.
The world is made once and kept in the folder for temporary files; `--small` takes a small one.
Usage: python bench/reads.py [--small] [--rounds N] [--without-floor]
"""

import argparse
import asyncio
import os
import random
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import reads_floor
from arco.fold.tables import ASSETS
from arco.kernel.clock import SystemClock
from arco.read.assets import asset
from arco.read.explain import explain
from arco.read.files import Files
from arco.read.graph import Direction
from arco.read.lineage import lineage
from arco.read.reader import Reader
from arco.read.search import search
from arco.storage.memory import MemoryStore
from reads_world import SHAPES, SMALL, THINGS, Scale, now_ms, world

GOAL_MS = 100
Question = Callable[[str], Awaitable[Any]]


def queries(rng: random.Random) -> str:
    """Words as people type them: whole, begun, and spelled wrongly."""
    thing, shape = rng.choice(THINGS), rng.choice(SHAPES)
    wrong = thing[:2] + thing[3] + thing[2] + thing[4:]
    return rng.choice([thing, f"{thing} {shape}", thing[:4], wrong, f"{shape} finance"])


async def measured(name: str, ask: Question, subjects: list[str], reader: Reader | None) -> dict[str, Any]:
    wall, processor, touched = [], [], []
    for subject in subjects[:3]:
        await ask(subject)
    for subject in subjects:
        if reader is not None:
            reader.touched.clear()
        begun, worked = time.perf_counter(), time.process_time()
        await ask(subject)
        wall.append((time.perf_counter() - begun) * 1000)
        processor.append((time.process_time() - worked) * 1000)
        if reader is not None:
            touched.append(sum(file.bytes for file in reader.touched.values()))
    return {
        "name": name,
        "p50": statistics.median(wall),
        "p95": statistics.quantiles(wall, n=20)[-1],
        "cpu50": statistics.median(processor),
        "cpu95": statistics.quantiles(processor, n=20)[-1],
        "bytes": statistics.median(touched) if touched else 0,
    }


async def asked(scale: Scale, folder: Path, rounds: int, *, with_floor: bool) -> None:
    cut = world(scale, folder)
    reader = Reader(cut, Files(MemoryStore(SystemClock()), folder=folder / scale.name))
    rng = random.Random(scale.seed)
    begun = time.perf_counter()
    rows = await reader.rows(f"SELECT asset, namespace FROM {await reader.relation(ASSETS)} ORDER BY asset_id")
    names = [row["asset"] for row in rows]
    deep = [rng.choice(names[len(names) // 2 :]) for _ in range(rounds)]
    words = [queries(rng) for _ in range(rounds)]
    now = now_ms(scale)
    spaces = {word: rng.choice(rows)["namespace"] for word in words}
    print(f"opening the assets, every file checked: {(time.perf_counter() - begun) * 1000:.0f} ms")
    kinds: list[tuple[str, Question, list[str]]] = [
        ("asset page", lambda name: asset(reader, name, now), deep),
        ("lineage up, depth 10", lambda name: lineage(reader, name, Direction.UPSTREAM, depth=10), deep),
        ("explain", lambda name: explain(reader, name, now), deep),
        ("search everywhere", lambda text: search(reader, text), words),
        ("search one namespace", lambda text: search(reader, text, namespace=spaces[text]), words),
    ]
    for name, ask, subjects in kinds:
        first = time.perf_counter()
        await ask(subjects[0])
        print(f"first {name}: {(time.perf_counter() - first) * 1000:.0f} ms")
    ours = [await measured(*kind, reader) for kind in kinds]
    theirs = {}
    if with_floor:
        floor = reads_floor.opened(cut, folder / scale.name)
        for name, question, subjects in (
            ("asset page", floor.page, deep),
            ("lineage up, depth 10", floor.lineage, deep),
            ("explain", floor.explain, deep),
            ("search everywhere", floor.search, words),
            ("search one namespace", lambda text: floor.search(text, spaces[text]), words),
        ):
            theirs[name] = await measured(name, _awaited(question), subjects, None)
    report(cut, ours, theirs)
    reader.close()


def _awaited(question: Callable[[str], Any]) -> Question:
    async def ask(subject: str) -> Any:
        return await asyncio.to_thread(question, subject)

    return ask


def report(cut: Any, ours: list[dict[str, Any]], theirs: dict[str, dict[str, Any]]) -> None:
    total = sum(file.bytes for layers in cut.tables.values() for file in layers.files())
    sizes = ", ".join(f"{name} {sum(file.rows for file in layers.files()):,}" for name, layers in cut.tables.items())
    load = f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    print(f"\nrows: {sizes}\nall files: {total / 1e6:.0f} MB; {load}\n")
    print(
        "| question | p50 ms | p95 ms | goal p95 | cpu p50 | cpu p95 | files touched, MB | floor p50 | floor p95 | ratio p50 |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for one in ours:
        floor = theirs.get(one["name"])
        beside = f"{floor['p50']:.0f} | {floor['p95']:.0f} | {one['p50'] / floor['p50']:.1f}×" if floor else "– | – | –"
        met = "met" if one["p95"] < GOAL_MS else "not met"
        cpu = f"{one['cpu50']:.0f} | {one['cpu95']:.0f}"
        print(
            f"| {one['name']} | {one['p50']:.0f} | {one['p95']:.0f} | < {GOAL_MS}: {met} | {cpu} "
            f"| {one['bytes'] / 1e6:.1f} | {beside} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--without-floor", action="store_true")
    given = parser.parse_args()
    folder = Path(tempfile.gettempdir()) / "arco-bench-reads"
    asyncio.run(asked(SMALL if given.small else Scale(), folder, given.rounds, with_floor=not given.without_floor))


if __name__ == "__main__":
    main()

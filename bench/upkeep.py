"""Upkeep over 100,000 objects on a folder: what an object costs, how much memory it takes, and whether it goes on after a kill.

The garbage is markers and receipts, written as files and made old; a tenth of it is young and must stay. One pass is killed
half way, the next finishes. Each pass is a process of its own, and its greatest memory is what the system says of it. Requests
are those of a pass that runs through a counting store. The table also goes to bench/results/upkeep.md.
Usage: python bench/upkeep.py [--quick]
"""

import argparse
import asyncio
import hashlib
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import msgspec

from arco.catalog.catalog import Catalog
from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.kernel.ids import KeyHash
from arco.kernel.scope import Scope
from arco.ledger.receipts import Published, Receipt, Source, commit_key, receipt_name
from arco.storage.keys import MarkerKey, Phase
from arco.storage.local import LocalStore
from arco.upkeep.passes import upkeep_pass
from arco.upkeep.sweep import Setting

ROOT = Path(__file__).resolve().parents[1]
SCOPE = Scope.of()
OLD_S, TABLES = 100 * 86_400, 1000
MEMORY_MB_MAX = 300
PASS = "from arco.surface.cli.main import run; import sys; sys.argv = ['arco', 'upkeep', '--json', '--root', sys.argv[1]]; run()"


def fill(folder: Path, count: int) -> None:
    """Half markers, a quarter pending receipts, a quarter committed ones that nobody folded in 90 days."""
    now_ms = int(time.time() * 1000)
    for number in range(count):
        young = number % 10 == 0
        at_ms = now_ms - (0 if young else OLD_S * 1000)
        name, data = thing(number, at_ms)
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        os.utime(path, (at_ms / 1000, at_ms / 1000))


def thing(number: int, at_ms: int) -> tuple[str, bytes]:
    if number % 2:
        digest = hashlib.sha256(str(number).encode()).hexdigest()
        return str(MarkerKey(SCOPE, KeyHash(digest))), b"x" * 700
    table = f"01941f29-7c00-767c-95f1-{number % TABLES:012x}"
    location = f"{folder_of(table)}/{number:05}-{number:032x}.metadata.json"
    phase = Phase.PENDING if number % 4 else Phase.COMMITTED
    commit = Published("e", number, location, None, None, at_ms, Source())
    key = commit_key(location, number)
    receipt = Receipt("arco.receipt", 1, phase, table, str(key), commit)
    return receipt_name(SCOPE, phase, key, at_ms), msgspec.json.encode(receipt)


def folder_of(table: str) -> str:
    return f"file:///lake/default/default/data/t-{table}/metadata"


def objects(folder: Path) -> int:
    return sum(len(files) for place, _, files in os.walk(folder) if "/.arco" not in place)


def a_pass(folder: Path, killed_at: int | None = None) -> tuple[float, float, float]:
    """Seconds by the clock, of the processor, and the greatest memory in MB, of one pass in a process of its own."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", PASS, str(folder)], stdout=subprocess.DEVNULL)
    while killed_at is not None and process.poll() is None and objects(folder) > killed_at:
        time.sleep(0.2)
    if killed_at is not None:
        process.send_signal(signal.SIGKILL)
    _, _, used = os.wait4(process.pid, 0)
    process.returncode = 0
    took_s = time.perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return took_s, cpu_s, used.ru_maxrss / 1024


class Counted:
    """A store that counts what is asked of it."""

    def __init__(self, inner: LocalStore) -> None:
        self._inner = inner
        self.asked: Counter[str] = Counter()

    def __getattr__(self, name: str) -> object:
        found = getattr(self._inner, name)
        if name in {"get", "head", "put", "delete", "list_page"}:
            self.asked[name] += 1
        return found


async def requests_of_a_pass(folder: Path) -> Counter[str]:
    clock, entropy = SystemClock(), SystemEntropy()
    store = LocalStore(str(folder), clock, entropy)
    counted = Counted(store)
    parts = Catalog.open(counted, f"file://{folder}", SCOPE, clock, entropy).parts  # type: ignore[arg-type]
    try:
        await upkeep_pass(Setting(parts))
    finally:
        await store.close()
    return counted.asked


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--quick", action="store_true")
    count = 10_000 if arguments.parse_args().quick else 100_000
    with tempfile.TemporaryDirectory(prefix="arco-bench-") as home:
        folder = Path(home) / "lake"
        fill(folder, count)
        first = a_pass(folder, killed_at=count // 2)
        half = objects(folder)
        second = a_pass(folder)
        left = objects(folder)
        third = a_pass(folder)
        small = Path(home) / "small"
        fill(small, 2000)
        asked = asyncio.run(requests_of_a_pass(small))
    rows = [
        ("killed half way", count, count - half, first),
        ("the next, to its end", half, half - left, second),
        ("once more: nothing to do", left, 0, third),
    ]
    print_all(rows, count, left, asked)


def print_all(
    rows: list[tuple[str, int, int, tuple[float, float, float]]], count: int, left: int, asked: Counter[str]
) -> None:
    lines = [
        f"# Upkeep over {count:,} objects",
        "",
        "| pass | objects | deleted | seconds | of the processor | deleted/s | greatest memory |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, there, gone, (took_s, cpu_s, memory_mb) in rows:
        rate = f"{gone / took_s:,.0f}" if gone else "–"
        verdict = "met" if memory_mb <= MEMORY_MB_MAX else "missed"
        memory = f"{memory_mb:.0f} MB (≤ {MEMORY_MB_MAX}: {verdict})"
        lines.append(f"| {name} | {there:,} | {gone:,} | {took_s:.1f} | {cpu_s:.1f} | {rate} | {memory} |")
    each = ", ".join(f"{number / 2000:.2f} {word.replace('_page', '')}" for word, number in sorted(asked.items()))
    lines += [
        "",
        f"Requests an object, of 2,000: {each}. {left:,} objects were young, or written by the passes, and stayed.",
        "",
        f"Load of the machine at the end: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors.",
        "",
    ]
    text = "\n".join(lines)
    print(text)
    if count == 100_000:
        (ROOT / "bench" / "results" / "upkeep.md").write_text(text)


if __name__ == "__main__":
    main()

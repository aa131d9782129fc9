"""Storage against its limits, in one run: our local swap against the bare system calls, our S3 calls against obstore.

Every figure is a ratio to a baseline measured in the same run, round by round in turn, so that the machine's noise falls on
both. `make bench` runs it; the table also goes to bench/results/storage.md.
"""

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import obstore
from obstore.store import S3Store

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from arco.kernel.clock import SystemClock  # noqa: E402
from arco.kernel.entropy import SystemEntropy  # noqa: E402
from arco.storage.disk import RealDisk  # noqa: E402
from arco.storage.local import LocalFiles, LocalStore  # noqa: E402
from arco.storage.port import Always, Landed, Matches, ObjectStore, Version  # noqa: E402
from arco.storage.roots import open_root  # noqa: E402
from arco_sim.runner import run_seed  # noqa: E402
from arco_sim.scenarios.registry import SCENARIOS  # noqa: E402
from servers.launch import seaweedfs  # noqa: E402 - the servers of the tests are the servers of the benchmark

CLOCK, ENTROPY = SystemClock(), SystemEntropy()
BODY = b"x" * 1024


@dataclass(frozen=True)
class Row:
    what: str
    ours_ms: float
    baseline: str
    baseline_ms: float
    goal: str
    spread: tuple[float, float]

    @property
    def ratio(self) -> float:
        return self.ours_ms / self.baseline_ms


def compare(
    what: str, ours: Callable[[], None], baseline: str, bare: Callable[[], None], goal: str, rounds: int, each: int
) -> Row:
    """Rounds of both in turn; medians of the rounds, and the least and greatest ratio of a round."""
    ours_s, bare_s = [], []
    for _ in range(rounds):
        for call, times in ((bare, bare_s), (ours, ours_s)):
            started = time.perf_counter()
            for _ in range(each):
                call()
            times.append((time.perf_counter() - started) / each)
    ratios = [a / b for a, b in zip(ours_s, bare_s, strict=True)]
    medians = statistics.median(ours_s) * 1000, statistics.median(bare_s) * 1000
    return Row(what, medians[0], baseline, medians[1], goal, (min(ratios), max(ratios)))


class Bare:
    """What nobody can do without: write, sync, rename, and sync the folder."""

    def __init__(self, folder: str, *, sync_folder: bool) -> None:
        self._folder = folder
        self._sync_folder = sync_folder
        Path(folder).mkdir(parents=True, exist_ok=True)

    def __call__(self) -> None:
        temporary, final = f"{self._folder}/temporary", f"{self._folder}/object"
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        os.write(handle, BODY)
        os.fsync(handle)
        os.close(handle)
        Path(temporary).rename(final)
        if self._sync_folder:
            handle = os.open(self._folder, os.O_RDONLY)
            os.fsync(handle)
            os.close(handle)


def local_rows(rounds: int, each: int) -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="arco-bench-") as folder:
        files = LocalFiles(f"{folder}/files", RealDisk(), CLOCK, ENTROPY)
        swing_files = _swinger(lambda data, version: files.put("t/object", data, Matches(version) if version else Always()))
        loop = asyncio.new_event_loop()
        store = LocalStore(f"{folder}/store", CLOCK, ENTROPY)
        swing_store = _swinger(
            lambda data, version: loop.run_until_complete(
                store.put("t/object", data, Matches(version) if version else Always())
            )
        )
        durable = Bare(f"{folder}/bare", sync_folder=True)
        threads = ThreadPoolExecutor(4)
        awaited = Bare(f"{folder}/awaited", sync_folder=True)

        def durable_on_a_thread() -> None:
            loop.run_until_complete(_hop(loop, threads, awaited))

        rows = [
            compare("local swap (steps)", swing_files, "write+fsync+rename+fsync folder", durable, "≤ 1.3", rounds, each),
            compare("local swap (store)", swing_store, "the same, on a thread", durable_on_a_thread, "≤ 1.3", rounds, each),
            compare("local swap (store)", swing_store, "the same, without an event loop", durable, "≤ 1.3", rounds, each),
            compare(
                "local swap (store)", swing_store, "write+fsync+rename, name not durable",
                Bare(f"{folder}/half", sync_folder=False), "≤ 1.3", rounds, each,
            ),
        ]  # fmt: skip
        loop.run_until_complete(store.close())
        loop.close()
        return rows


async def _hop(loop: asyncio.AbstractEventLoop, threads: ThreadPoolExecutor, work: Callable[[], None]) -> None:
    """What any event loop pays for waiting on a disk: another thread."""
    await loop.run_in_executor(threads, work)


def _swinger(put: Callable[[bytes, Version | None], object]) -> Callable[[], None]:
    """A call that swaps the object it swapped before."""
    version: Version | None = None

    def swing() -> None:
        nonlocal version
        outcome = put(BODY, version)
        assert isinstance(outcome, Landed), outcome
        version = outcome.version

    return swing


def s3_rows(rounds: int, each: int) -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="arco-bench-") as folder, seaweedfs(Path(folder)) as server:
        store = open_root(server.url, server.options, CLOCK, ENTROPY)
        direct = S3Store(
            server.url.removeprefix("s3://"),
            config={
                "endpoint": server.endpoint,
                "region": server.options["region"],
                "access_key_id": server.options["access_key_id"],
                "secret_access_key": server.options["secret_access_key"],
                "virtual_hosted_style_request": False,
            },
            client_options={"allow_http": True},
        )
        loop = asyncio.new_event_loop()

        def wait(make: Callable[[], Awaitable[object]]) -> Callable[[], None]:
            async def asked() -> None:
                await make()

            return lambda: loop.run_until_complete(asked())

        rows = list(_s3_pairs(store, direct, wait, rounds, each))
        loop.run_until_complete(store.close())
        loop.close()
        return rows


def _s3_pairs(
    store: ObjectStore,
    direct: S3Store,
    wait: Callable[[Callable[[], Awaitable[object]]], Callable[[], None]],
    rounds: int,
    each: int,
) -> list[Row]:
    async def read_direct() -> bytes:
        answer = await obstore.get_async(direct, "t/read")
        return bytes(await answer.bytes_async())

    wait(lambda: store.put("t/read", BODY, Always()))()
    goal = "≤ 1.15"
    return [
        compare(
            "S3 get", wait(lambda: store.get("t/read")), "obstore get", wait(read_direct), goal, rounds, each
        ),
        compare(
            "S3 put", wait(lambda: store.put("t/ours", BODY, Always())), "obstore put",
            wait(lambda: obstore.put_async(direct, "t/theirs", BODY)), goal, rounds, each,
        ),
    ]  # fmt: skip


def simulator_speed(seeds: int) -> str:
    started = time.perf_counter()
    for seed in range(1, seeds + 1):
        run_seed(SCENARIOS["cas_counter"], seed)
    rate = seeds / (time.perf_counter() - started)
    return f"simulator: {rate:.0f} seeds/s of 4 writers × 5 increments, one process (≥ 100)"


def import_time(rounds: int) -> str:
    """The import by itself: a bare interpreter is started as often, and taken off."""

    def started(code: str) -> float:
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - begin

    bare, full = [], []
    for _ in range(rounds):
        bare.append(started("pass"))
        full.append(started("import arco"))
    cost_ms = (statistics.median(full) - statistics.median(bare)) * 1000
    return f"import arco: {cost_ms:.0f} ms above a bare interpreter (goal < 60 ms)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--each", type=int, default=60)
    asked = parser.parse_args()
    rows = [*local_rows(asked.rounds, asked.each), *s3_rows(asked.rounds, asked.each)]
    lines = [
        "| what | ours | baseline | its time | ratio | least–greatest of a round | goal |",
        "|---|---|---|---|---|---|---|",
        *(
            f"| {row.what} | {row.ours_ms:.3f} ms | {row.baseline} | {row.baseline_ms:.3f} ms | {row.ratio:.2f} "
            f"| {row.spread[0]:.2f}–{row.spread[1]:.2f} | {row.goal} |"
            for row in rows
        ),
        "",
        f"Medians of {asked.rounds} rounds of {asked.each} calls each, objects of {len(BODY)} bytes.",
        "",
        simulator_speed(500) + ".  ",
        import_time(15) + ".",
    ]
    text = "\n".join(lines)
    print(text)
    (ROOT / "bench" / "results" / "storage.md").write_text(f"# Storage against its limits\n\n{text}\n")


if __name__ == "__main__":
    main()

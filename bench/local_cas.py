"""The raw rate of a compare-and-swap on this disk: what no durable commit of one writer can be faster than.

Twice, in turn: as bare system calls (write, sync, rename, sync the folder), and through our own store with its lock and its
versions. A commit is three rounds of such writes at most, so the goal for one writer is 0.8 of a third of this rate.
"""

import asyncio
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.storage.local import LocalStore
from arco.storage.port import Always, Landed, Matches, Version
from storage import Bare

ROUNDS_OF_A_COMMIT = 3
SHARE = 0.8
BODY = b"x" * 1024
BARE, STORE = "bare system calls", "through our store"


@dataclass
class LocalCas:
    """Rates of swaps in a folder, round by round."""

    folder: Path
    per_s: dict[str, list[float]] = field(default_factory=lambda: {BARE: [], STORE: []})

    def round(self, seconds: float) -> None:
        self.per_s[BARE].append(_rate(Bare(str(self.folder / "bare"), sync_folder=True), seconds))
        loop = asyncio.new_event_loop()
        store = LocalStore(str(self.folder / "store"), SystemClock(), SystemEntropy())
        version: Version | None = None

        def swap() -> None:
            nonlocal version
            condition = Always() if version is None else Matches(version)
            outcome = loop.run_until_complete(store.put("t/object", BODY, condition))
            assert isinstance(outcome, Landed), outcome
            version = outcome.version

        self.per_s[STORE].append(_rate(swap, seconds))
        loop.run_until_complete(store.close())
        loop.close()

    def goals(self) -> dict[str, tuple[float, float]]:
        """For each way, its rate and the rate of commits that follows from it."""
        medians = {how: statistics.median(rates) for how, rates in self.per_s.items() if rates}
        return {how: (rate, SHARE * rate / ROUNDS_OF_A_COMMIT) for how, rate in medians.items()}


def _rate(act: Callable[[], None], seconds: float) -> float:
    act()
    count, started = 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        act()
        count += 1
    return count / (time.perf_counter() - started)

"""Processes that increment one object on the local store while one after the other is killed with SIGKILL.

Nothing acknowledged may be missing, and nothing may be there twice: the counter must lie between the acknowledgements that
were read and those plus one for each kill (a process may die after its increment and before its word).
"""

import argparse
import asyncio
import os
import random
import selectors
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.storage.local import LocalStore

from .kill_worker import counter

_WORKER = Path(__file__).with_name("kill_worker.py")


@dataclass(frozen=True, slots=True)
class Outcome:
    rounds: int
    acknowledged: int
    counted: int
    temporaries_swept: int

    @property
    def lost(self) -> int:
        return max(0, self.acknowledged - self.counted)

    @property
    def doubled(self) -> int:
        return max(0, self.counted - self.acknowledged - self.rounds)

    def __str__(self) -> str:
        return (
            f"kill rounds {self.rounds}, acknowledged {self.acknowledged}, counted {self.counted}, "
            f"lost {self.lost}, doubled {self.doubled}, temporaries of the dead swept {self.temporaries_swept}"
        )


class Workers:
    """A few workers, each replaced when it is killed; acknowledgements are counted as they come in."""

    def __init__(self, root: str, count: int) -> None:
        self._root = root
        self._selector = selectors.DefaultSelector()
        self._running: list[subprocess.Popen[bytes]] = []
        self.acknowledged = 0
        for _ in range(count):
            self._start()

    def _start(self) -> None:
        worker = subprocess.Popen([sys.executable, str(_WORKER), self._root], stdout=subprocess.PIPE)
        assert worker.stdout is not None
        os.set_blocking(worker.stdout.fileno(), False)
        self._selector.register(worker.stdout, selectors.EVENT_READ)
        self._running.append(worker)

    def wait_for(self, count: int) -> None:
        """Read until so many more acknowledgements have come in."""
        wanted = self.acknowledged + count
        while self.acknowledged < wanted:
            for ready, _ in self._selector.select():
                self.acknowledged += os.read(ready.fd, 65536).count(b"ack\n")

    def kill(self, victim: int, *, replace: bool) -> None:
        worker = self._running.pop(victim)
        worker.kill()
        worker.wait()
        assert worker.stdout is not None
        while said := os.read(worker.stdout.fileno(), 65536):
            self.acknowledged += said.count(b"ack\n")
        self._selector.unregister(worker.stdout)
        worker.stdout.close()
        if replace:
            self._start()

    def kill_all(self) -> int:
        """The last kills; how many there were."""
        count = len(self._running)
        for _ in range(count):
            self.kill(0, replace=False)
        self._selector.close()
        return count


def run(rounds: int, workers: int = 4, seed: int = 1) -> Outcome:
    """So many kills, each after a random number of acknowledgements, so that it falls anywhere in an increment."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="arco-kill-") as root:
        running = Workers(root, workers)
        for _ in range(rounds):
            running.wait_for(chance.randint(1, 12))
            running.kill(chance.randrange(workers), replace=True)
        killed = rounds + running.kill_all()
        held = asyncio.run(counter(root).read())
        swept = asyncio.run(LocalStore(root, SystemClock(), SystemEntropy()).sweep_temporaries())
        return Outcome(killed, running.acknowledged, 0 if held is None else held.value, swept)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    outcome = run(asked.rounds, asked.workers, asked.seed)
    print(outcome)
    return 1 if outcome.lost or outcome.doubled else 0


if __name__ == "__main__":
    sys.exit(main())

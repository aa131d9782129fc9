"""One process that increments one object for ever, and says "ack" after each increment that was acknowledged."""

import asyncio
import sys

from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.storage.cas import CasObject, Held
from arco.storage.local import LocalStore

KEY = "t/w/counter.json"


class Count:
    format = "test.count"

    def encode(self, value: int) -> tuple[int, dict[str, object]]:
        return 1, {"value": value}

    def decode(self, format_version: int, fields: dict[str, object]) -> int:
        return int(str(fields["value"]))


def counter(root: str) -> CasObject[int]:
    clock, entropy = SystemClock(), SystemEntropy()
    return CasObject(LocalStore(root, clock, entropy), KEY, Count(), clock, entropy)


def add_one(held: Held[int] | None) -> int:
    return 1 if held is None else held.value + 1


async def work(root: str) -> None:
    shared = counter(root)
    while True:
        await shared.update(add_one)
        sys.stdout.write("ack\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1]))

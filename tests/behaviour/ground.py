"""Where a case of the contract runs: one store, a folder of its own, and a way to spoil replies."""

import asyncio
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.storage.cas import CasObject
from arco.storage.port import Absent, Condition, Landed, Lost, Object, ObjectStore, Outcome, Version
from arco.storage.readback import put_settled
from arco.storage.roots import open_root
from servers.fault_proxy import Fault, FaultProxy

CLOCK = SystemClock()
ENTROPY = SystemEntropy()
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Contention:
    """How many rivals a store is given. SeaweedFS waits in steps of a second, so it gets few."""

    creators: int = 32
    keys: int = 200
    workers: int = 16
    increments_each: int = 8


@dataclass
class Ground:
    """One case's own ground: keys that nobody else uses, on a store that others share."""

    adapter: str
    store: ObjectStore
    contention: Contention
    proxy: FaultProxy | None = None
    proxied: ObjectStore | None = None
    can_sign: bool = False
    folder: str = field(default_factory=lambda: f"t/case-{next(_numbers)}")

    def key(self, name: str) -> str:
        return f"{self.folder}/{name}"

    async def put(self, name: str, data: bytes, condition: Condition | None = None) -> Outcome:
        """One settled write."""
        return await self.settled(self.store, name, data, condition or Absent())

    async def settled(self, store: ObjectStore, name: str, data: bytes, condition: Condition) -> Outcome:
        return await put_settled(store, self.key(name), data, condition, clock=CLOCK, entropy=ENTROPY)

    async def landed(self, name: str, data: bytes, condition: Condition | None = None) -> Version:
        """A settled write that must land; its version."""
        outcome = await self.put(name, data, condition)
        assert isinstance(outcome, Landed), outcome
        assert outcome.version is not None
        return outcome.version

    async def lost(self, name: str, data: bytes, condition: Condition) -> None:
        outcome = await self.put(name, data, condition)
        assert isinstance(outcome, Lost), outcome

    async def got(self, name: str) -> Object:
        found = await self.store.get(self.key(name))
        assert found is not None, name
        return found

    async def names(self, prefix: str = "") -> list[str]:
        """Everything under a folder of this ground, page by page, without the ground's own prefix."""
        found: list[str] = []
        after = ""
        while True:
            page = await self.store.list_page(f"{self.folder}/{prefix}", after)
            found += [entry.key.removeprefix(f"{self.folder}/") for entry in page.entries]
            if page.next_after is None:
                return found
            after = page.next_after

    def number(self, name: str) -> CasObject[int]:
        return CasObject(self.store, self.key(name), Number(), CLOCK, ENTROPY)

    def spoil(self, fault: Fault, method: str = "PUT", times: int = 1, delay_s: float = 0.0) -> None:
        """The next request of this method about this ground meets a fault on its way through the proxy."""
        assert self.proxy is not None
        self.proxy.plan(lambda m, path, _: m == method and self.folder in path, fault, times, delay_s)


class Number:
    """The smallest document: a number."""

    format = "test.number"

    def encode(self, value: int) -> tuple[int, dict[str, Any]]:
        return 1, {"value": value}

    def decode(self, format_version: int, fields: dict[str, Any]) -> int:
        return int(fields["value"])


@contextmanager
def ground_of(
    adapter: str, url: str, options: dict[str, str], contention: Contention, proxy: FaultProxy | None = None
) -> Iterator[Callable[[], Ground]]:
    """Grounds on one store, all closed at the end."""
    store = open_root(url, options, CLOCK, ENTROPY, sync=False)
    proxied = None
    if proxy is not None:
        proxied = open_root(url, {**options, "endpoint": proxy.endpoint}, CLOCK, ENTROPY)
    can_sign = adapter in {"seaweedfs", "versitygw", "azurite"}
    try:
        yield lambda: Ground(adapter, store, contention, proxy, proxied, can_sign)
    finally:
        asyncio.run(store.close())

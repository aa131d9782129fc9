"""Real `arco serve` processes on one root, killed with SIGKILL and started again on another port."""

import asyncio
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from tests.hostile.process import workers_of
from tests.servers.launch import seaweedfs

_IMPATIENT = Path(__file__).with_name("impatient_server.py")


@dataclass(frozen=True, slots=True)
class Lake:
    """A root that servers share, a folder for their logs, and those that run."""

    root: str
    options: Mapping[str, str]
    logs: Path
    running: "set[ServerProcess]" = field(default_factory=set)

    def command(self, takeover_s: float | None, workers: int = 1) -> list[str]:
        """The command of a server; with another takeover time than the product's if one is given."""
        arco = [str(Path(sys.executable).with_name("arco"))]
        program = arco if takeover_s is None else [sys.executable, str(_IMPATIENT), str(takeover_s)]
        options = [part for word, value in self.options.items() for part in ("-o", f"{word}={value}")]
        return [*program, "serve", "--root", self.root, *options, "--port", "0", "--workers", str(workers)]


@contextmanager
def lake(store: str) -> Iterator[Lake]:
    """A new root: `local`, or `s3` on a server that lives as long as the block."""
    with tempfile.TemporaryDirectory(prefix="arco-kill-") as folder:
        logs = Path(folder) / "logs"
        logs.mkdir()
        if store == "local":
            yield Lake(f"{folder}/lake", {}, logs)
            return
        with seaweedfs(Path(folder) / "s3") as server:
            yield Lake(f"{server.url}/lake", server.options, logs)


class ServerProcess:
    """One server on a lake."""

    def __init__(self, where: Lake, takeover_s: float | None = None, workers: int = 1) -> None:
        self._lake = where
        self._workers = workers
        self._takeover_s = takeover_s
        self._process: asyncio.subprocess.Process | None = None
        self.address = ""

    async def start(self) -> str:
        """Return its address when it answers."""
        number = len(list(self._lake.logs.iterdir()))
        with (self._lake.logs / f"{number}.log").open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._lake.command(self._takeover_s, self._workers),
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, "COLUMNS": "400"},
            )
        self._lake.running.add(self)
        assert self._process.stdout is not None
        line = (await self._process.stdout.readline()).decode()
        assert " at http://" in line, f"the server did not start: {line!r}, and {complaints(self._lake.logs)}"
        self.address = line.rpartition(" at ")[2].strip().removesuffix("/iceberg")
        return self.address

    def kill_a_worker(self, chance: random.Random) -> bool:
        """One of several workers, with SIGKILL; whether there was one. Another one is started by their parent."""
        assert self._process is not None
        workers = workers_of(self._process.pid)
        if workers:
            os.kill(chance.choice(workers), signal.SIGKILL)
        return bool(workers)

    async def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        await self._process.wait()
        self._lake.running.discard(self)

    async def stop(self) -> bool:
        """Ask it to end; whether it ended well: by itself, or by the very signal once its work was done."""
        assert self._process is not None
        self._process.terminate()
        status = await self._process.wait()
        self._lake.running.discard(self)
        return status in {0, -signal.SIGTERM}


def complaints(logs: Path) -> list[str]:
    """What servers wrote about errors that are none of theirs: no kill may make one."""
    texts = ((path, path.read_text(errors="replace")) for path in sorted(logs.iterdir()))
    return [f"{path.name}: {text[-2000:]}" for path, text in texts if "Traceback" in text]


@dataclass
class Fleet:
    """Servers that live for a random number of acknowledgements each. Clients ask whom they find alive."""

    where: Lake
    chance: random.Random
    takeover_s: float | None = None
    workers: int = 1
    kills: int = 0
    _alive: dict[int, str] = field(default_factory=dict)
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    @classmethod
    def of(cls, where: Lake, address: str) -> Self:
        """One server that somebody else looks after."""
        return cls(where, random.Random(0), _alive={0: address})

    async def address(self) -> str:
        """Any server that is alive, as soon as there is one."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._alive)
            return self.chance.choice(sorted(self._alive.values()))

    async def run(self, servers: int, kills: int, acknowledgements: "Acknowledgements") -> list[ServerProcess]:
        """Kill so often in all, each time after some acknowledgements; the servers that are alive after that."""
        return await asyncio.gather(*(self._keep(slot, kills, acknowledgements) for slot in range(servers)))

    async def _keep(self, slot: int, kills: int, acknowledgements: "Acknowledgements") -> ServerProcess:
        while True:
            server = ServerProcess(self.where, self.takeover_s, self.workers)
            await self._announce(slot, await server.start())
            while True:
                await acknowledgements.wait_for(self.chance.randint(1, 80))
                if self.kills >= kills:
                    return server
                if self.workers == 1:
                    break
                self.kills += server.kill_a_worker(self.chance)
            self.kills += 1
            await server.kill()
            await self._announce(slot, None)

    async def _announce(self, slot: int, address: str | None) -> None:
        async with self._changed:
            if address is None:
                self._alive.pop(slot, None)
            else:
                self._alive[slot] = address
            self._changed.notify_all()


class Acknowledgements:
    """A count that tasks can wait on."""

    def __init__(self) -> None:
        self.count = 0
        self._grown = asyncio.Event()

    def add(self) -> None:
        self.count += 1
        self._grown.set()

    async def wait_for(self, more: int) -> None:
        wanted = self.count + more
        while self.count < wanted:
            self._grown.clear()
            await self._grown.wait()

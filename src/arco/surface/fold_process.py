"""The fold of a server: `arco fold --follow --all` in a process of its own, started, watched, woken and stopped by the server.

A server starts no JVM in its own process: one that runs out of memory, or is stopped by the machine, takes the fold with it and
nothing else. What ended is started again, after longer and longer waits while it keeps ending; the log and `/ready` say so. It
ends with the server, whatever becomes of that: it listens on a pipe, and ends where that ends. What must never enter: Spark.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from arco.kernel.clock import Clock
from arco.kernel.limits import FOLD_LINE_BYTES_MAX, FOLD_RESTART_S_MAX, FOLD_STEADY_S, GRACEFUL_STOP_S
from arco.kernel.scope import Scope

log = logging.getLogger("arco.fold")


class _Said(msgspec.Struct, frozen=True):
    """A line of the fold, as far as a server reads it."""

    warehouse: str | None = None
    error: str | None = None
    heads: dict[str, dict[str, int]] = {}
    failed: dict[str, str] = {}
    synced: tuple[tuple[str, float, int], ...] = ()


@dataclass(slots=True)
class FoldStatus:
    """How the fold is, for `/ready`. `restarts` counts how often it ended and was started again."""

    state: str = "starting"
    restarts: int = 0
    last_pass_ms: int | None = None

    def document(self) -> dict[str, Any]:
        at = None if self.last_pass_ms is None else datetime.fromtimestamp(self.last_pass_ms / 1000, UTC).isoformat()
        return {"state": self.state, "restarts": self.restarts, "last-pass": at}


class FoldProcess:
    """Keeps the process of a fold alive for as long as a server runs. `command` is what is started, in which environment.

    `synced` is told what can be seen now: in which workspace, events of which type, how many seconds after so many segments of
    them were appended.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        clock: Clock,
        synced: Callable[[Scope, str, float, int], None] = lambda _scope, _event_type, _seconds, _segments: None,
    ) -> None:
        self.status = FoldStatus()
        self._command = tuple(command)
        self._environment = environment
        self._clock = clock
        self._synced = synced
        self._process: asyncio.subprocess.Process | None = None
        self._keeping: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._keeping = asyncio.create_task(self._keep())

    def wake(self, scope: Scope) -> None:
        """There is something new in a workspace. A fold that is not there finds it when it starts."""
        pipe = None if self._process is None else self._process.stdin
        if pipe is not None and not pipe.is_closing():
            pipe.write(f"{scope.warehouse}\n".encode())

    async def stop(self) -> None:
        """Let it end by itself; what takes longer than a server may is ended."""
        self.status.state = "stopped"
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.wait({self._keeping})
        if self._process is not None:
            await self._end(self._process)

    async def _keep(self) -> None:
        wait_s = 1.0
        while True:
            begun_s = self._clock.monotonic_s()
            ended = await self._run()
            if self._clock.monotonic_s() - begun_s >= FOLD_STEADY_S:
                wait_s = 1.0
            log.warning("the fold ended (%s); it is started again in %.0f s", ended, wait_s)
            self.status.state = "restarting"
            await self._clock.sleep(wait_s)
            self.status.restarts += 1
            wait_s = min(2 * wait_s, FOLD_RESTART_S_MAX)

    async def _run(self) -> str:
        """One process from its beginning to its end; how it ended."""
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                env=self._environment,
                limit=FOLD_LINE_BYTES_MAX,
                # Ctrl-C in a terminal is for the server, which ends the fold.
                start_new_session=True,
            )
        except OSError as error:
            return f"it could not be started: {error}"
        self._process, self.status.state = process, "starting"
        if process.stdout is not None:
            async for line in process.stdout:
                self._hear(line)
        code = await process.wait()
        return f"exit code {code}" if code >= 0 else f"signal {-code}"

    def _hear(self, line: bytes) -> None:
        try:
            said = msgspec.json.decode(line, type=_Said)
        except msgspec.DecodeError:
            log.warning("the fold says: %s", line.decode(errors="replace").strip())
            return
        self.status.state, self.status.last_pass_ms = "following", self._clock.now_ms()
        if said.error is not None:
            log.warning("fold of %s: %s", said.warehouse or "the root", said.error)
        for head, one in said.heads.items():
            if one.get("segments"):
                log.info(
                    "fold of %s: %s, %d segments, %d events, %d refused",
                    said.warehouse, head, one["segments"], one.get("events", 0), one.get("refused", 0),
                )  # fmt: skip
        if said.warehouse is not None:
            for event_type, seconds, segments in said.synced:
                self._synced(Scope.parse_warehouse(said.warehouse), event_type, seconds, segments)
        for head, reason in said.failed.items():
            log.warning("fold of %s: %s: %s", said.warehouse, head, reason)

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        """The end of the pipe ends it. Nothing that it was folding is lost: the next fold does it again."""
        if process.returncode is not None:
            return
        if process.stdin is not None:
            process.stdin.close()
        for end in (process.terminate, process.kill):
            waiting = asyncio.ensure_future(process.wait())
            await asyncio.wait({waiting}, timeout=GRACEFUL_STOP_S)
            if waiting.done():
                return
            end()
        await process.wait()

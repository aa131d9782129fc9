"""The process of one task as its worker sees it: started with a clean environment, listened to, ended with all that it started.

It leads a session and a group of processes of its own, so that ending it ends its Spark too. What it prints goes to the
attempt's log. What must never enter: believing anything that it says.
"""

import asyncio
import os
import shutil
import signal
import sys
import tempfile
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

from arco.kernel.ids import clip
from arco.kernel.limits import TASK_LAST_WORDS_MAX, TASK_LAST_WORDS_S, TASK_LOG_LINE_CHARS_MAX
from arco.ledger.failure_kinds import Category
from arco.ledger.run_entries import Failure
from arco.servo.execute.computing import Listener, TaskRefused
from arco.servo.execute.failures import Severity
from arco.servo.execute.task_messages import Failed, Files, Made, Progress, Said, ToTask, framed, from_task, read_frame

COMMAND = (sys.executable, "-P", "-m", "arco.servo.execute.task_main")
SPARK_LOG = "spark.log"
_CHUNK_BYTES = 64 * 1024


class TaskProcess:
    """One process, until `end`."""

    def __init__(self, process: asyncio.subprocess.Process, scratch: Path, told: Listener) -> None:
        self._process = process
        self._scratch = scratch
        self._told = told
        self._last_words: deque[str] = deque(maxlen=TASK_LAST_WORDS_MAX)
        self._reader = asyncio.StreamReader()
        self._transports: list[asyncio.BaseTransport] = []
        self._writer: asyncio.StreamWriter | None = None
        self._overhearing: list[asyncio.Task[None]] = []
        self._has_ended = False

    @classmethod
    async def started(
        cls, environment: Mapping[str, str], scratch: Path, told: Listener, command: tuple[str, ...] = COMMAND
    ) -> Self:
        """Start it. It inherits two ends of pipes and nothing else; it finds its own folder where others find /tmp."""
        theirs, ours = os.pipe()
        mine, its = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                str(theirs),
                str(its),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env={**environment, "TMPDIR": str(scratch)},
                pass_fds=(theirs, its),
                start_new_session=True,
            )
        except BaseException:
            os.close(ours)
            os.close(mine)
            raise
        finally:
            os.close(theirs)
            os.close(its)
        found = cls(process, scratch, told)
        try:
            await found._connected(ours, mine)
        except BaseException:
            await found.end()
            raise
        return found

    @property
    def pid(self) -> int:
        return self._process.pid

    async def _connected(self, ours: int, mine: int) -> None:
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(self._reader), os.fdopen(mine, "rb", buffering=0)
        )
        out, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, os.fdopen(ours, "wb", buffering=0))
        self._writer = asyncio.StreamWriter(out, protocol, None, loop)
        self._transports = [transport, out]
        for stream, level in ((self._process.stdout, "info"), (self._process.stderr, "warning")):
            if stream is not None:
                self._overhearing.append(asyncio.ensure_future(self._overhear(stream, level)))

    async def send(self, message: ToTask) -> None:
        if self._writer is not None:
            self._writer.write(framed(message))
            with suppress(ConnectionError):  # it is gone, and the next answer says so
                await self._writer.drain()

    async def answer(self) -> Made | Files:
        """Its next answer; what it says meanwhile is told. TaskRefused if it failed, or is gone."""
        while True:
            match await self._message():
                case Said(level, text):
                    self._told.say(clip(text, TASK_LOG_LINE_CHARS_MAX), clip(level, 10))
                case Progress(facts):
                    self._told.progress(
                        {clip(word): clip(one) if isinstance(one, str) else one for word, one in facts.items()}
                    )
                case Failed(failure):
                    raise TaskRefused(_bounded(failure))
                case answer:
                    return answer

    async def _message(self) -> Said | Progress | Made | Files | Failed:
        reading = asyncio.ensure_future(read_frame(self._reader))
        ending = asyncio.ensure_future(self._process.wait())
        try:
            await asyncio.wait({reading, ending}, return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                # Whatever it started may hold the pipe open for ever.
                await asyncio.wait({reading}, timeout=TASK_LAST_WORDS_S)
            if reading.done():
                with suppress(asyncio.IncompleteReadError, ConnectionError):
                    return from_task(reading.result())
        finally:
            reading.cancel()
            ending.cancel()
        raise await self._gone()

    async def _gone(self) -> TaskRefused:
        """How it ended, with what it said last."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        code = await self._process.wait()
        await asyncio.wait(self._overhearing, timeout=TASK_LAST_WORDS_S)
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        said = " | ".join([*self._last_words, *_tail(self._scratch / SPARK_LOG)][-3:])
        return TaskRefused(
            Failure(
                kind=Category.RESOURCE_EXHAUSTED.value,
                message=f"the process of the task ended with {how}"
                + (f"; its log says: {clip(said, 1000)}" if said else ""),
                transient=True,
                hint="it may have run out of memory, or somebody ended it; it is tried again",
                severity="warning",
            )
        )

    async def _overhear(self, stream: asyncio.StreamReader, level: str) -> None:
        begun = ""
        while chunk := await stream.read(_CHUNK_BYTES):
            *lines, begun = (begun + chunk.decode(errors="replace")).split("\n")
            begun = begun[: TASK_LOG_LINE_CHARS_MAX + 1]
            for line in filter(str.strip, lines):
                self._told.say(line, level)
                self._last_words.append(line.strip())

    async def end(self) -> None:
        """End it and everything that it started, whatever it is doing. Its scratch goes with it."""
        if self._has_ended:
            return  # by now its number may be another's
        self._has_ended = True
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        for one in self._overhearing:
            one.cancel()
        for transport in self._transports:
            transport.close()
        # Cancelled or not: a process that nobody waits for stays as a zombie.
        await asyncio.shield(self._process.wait())
        shutil.rmtree(self._scratch, ignore_errors=True)


def new_scratch() -> Path:
    """A folder for one process alone; nobody else reads there."""
    return Path(tempfile.mkdtemp(prefix="arco-task-"))


def _bounded(said: Failure) -> Failure:
    """A failure as a run's log may have it, whatever the process wrote."""
    known = said.kind in {one.value for one in Category} - {Category.LOST_LEASE.value}
    return Failure(
        kind=said.kind if known else Category.TRANSFORM.value,
        message=clip(said.message, TASK_LOG_LINE_CHARS_MAX),
        transient=said.transient,
        hint=clip(said.hint, TASK_LOG_LINE_CHARS_MAX),
        severity=said.severity if said.severity in {one.value for one in Severity} else Severity.ERROR.value,
    )


def _tail(log: Path) -> list[str]:
    try:
        return [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()][
            -TASK_LAST_WORDS_MAX:
        ]
    except OSError:
        return []

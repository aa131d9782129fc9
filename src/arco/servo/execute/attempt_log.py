"""What an attempt says while it runs: its phases, what its code logs, and how it failed. For people; nothing depends on it.

Lines are kept in memory and written as objects of their own, part after part, now and then and at the end. A part that cannot
be written waits for the next; a store that stays silent costs lines, never the attempt. Code logs as Python does, with
`logging` or `print`: what it says on the thread of its attempt is the attempt's, wherever in the code it is said, and is shown
where it was shown before. What must never enter: anything that decides.
"""

import asyncio
import builtins
import functools
import logging
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import msgspec

from arco.catalog.workspace import Workspace
from arco.kernel.errors import AskHistory, RetryLater
from arco.kernel.ids import RunId, TaskId, clip
from arco.kernel.limits import TASK_LOG_EVERY_S, TASK_LOG_LINE_CHARS_MAX, TASK_LOG_LINES_MAX
from arco.kernel.scope import Scope
from arco.servo.execute.tracebacks import traced
from arco.storage.keys import TaskLogKey, parse, prefix_of
from arco.storage.paging import walk
from arco.storage.port import Absent, Landed, ObjectStore
from arco.storage.readback import put_settled

_SPEAKING: ContextVar["AttemptLog | None"] = ContextVar("speaking", default=None)
_CHATTER = ("py4j",)


class LogLine(msgspec.Struct, frozen=True):
    """One line."""

    at_ms: int
    level: str
    text: str


class AttemptLog:
    """The log of one attempt, while it runs."""

    def __init__(self, ws: Workspace, run: RunId, task: TaskId, attempt: int) -> None:
        self._ws = ws
        self._place = (run, task, attempt)
        self._lines: list[LogLine] = []
        self._said = 0
        self._begun = ""
        self._part = 1
        self._flushed_s = ws.clock.monotonic_s()
        self._flushing: asyncio.Task[None] | None = None

    def say(self, text: str, level: str = "info") -> None:
        """One line, from whatever thread. What is too much is left out, and that is said."""
        self._said += 1
        if self._said > TASK_LOG_LINES_MAX:
            return
        if self._said == TASK_LOG_LINES_MAX:
            text, level = "more lines were said, and are left out", "warning"
        self._lines.append(LogLine(self._ws.clock.now_ms(), level, clip(text, TASK_LOG_LINE_CHARS_MAX)))

    def printed(self, text: str) -> None:
        """What was printed, as it comes: a line is said when it ends."""
        *lines, self._begun = (self._begun + text).split("\n")
        self._begun = self._begun[: TASK_LOG_LINE_CHARS_MAX + 1]
        for line in lines:
            if line.strip():
                self.say(line)

    def failed(self, error: BaseException) -> None:
        for line in traced(error):
            self.say(line, "error")

    @contextmanager
    def listening(self) -> Iterator[None]:
        """What is logged or printed inside this block, on this thread, is this attempt's."""
        _listen()
        token = _SPEAKING.set(self)
        try:
            yield
        finally:
            _SPEAKING.reset(token)
            if self._begun:
                self.printed("\n")

    def flush_soon(self) -> None:
        """Write what was said, if it is time. Called on the loop."""
        is_busy = self._flushing is not None and not self._flushing.done()
        if is_busy or not self._lines or self._ws.clock.monotonic_s() - self._flushed_s < TASK_LOG_EVERY_S:
            return
        self._flushing = asyncio.get_running_loop().create_task(self._flush())

    async def flush(self) -> None:
        """Write what is left."""
        if self._flushing is not None and not self._flushing.done():
            await asyncio.wait({self._flushing})
        await self._flush()

    async def _flush(self) -> None:
        lines = list(self._lines)
        self._flushed_s = self._ws.clock.monotonic_s()
        if not lines:
            return
        store, clock, entropy = self._ws.tier1.store, self._ws.clock, self._ws.entropy
        data = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
        key = str(TaskLogKey(self._ws.scope, *self._place, self._part))
        self._part += 1  # whatever came of it: a name is used once
        try:
            outcome = await put_settled(store, key, data, Absent(), clock=clock, entropy=entropy)
        except (RetryLater, AskHistory):
            return
        if isinstance(outcome, Landed):
            del self._lines[: len(lines)]


async def read_log(
    store: ObjectStore, scope: Scope, run: RunId, task: TaskId, after: str = ""
) -> AsyncIterator[tuple[TaskLogKey, list[LogLine]]]:
    """The parts of a task's log, attempt by attempt, after the one of a name."""
    async for entry in walk(store, prefix_of(scope, "_catalog", "runs", run, "logs", task), after):
        key, found = parse(entry.key), await store.get(entry.key)
        if isinstance(key, TaskLogKey) and found is not None:
            yield key, decode_lines(found.data)


def decode_lines(data: bytes) -> list[LogLine]:
    """One part of a log."""
    return [msgspec.json.decode(line, type=LogLine) for line in data.splitlines()]


class _Listener(logging.Handler):
    """Hands what is logged to the attempt on whose thread it is."""

    def emit(self, record: logging.LogRecord) -> None:
        speaking = _SPEAKING.get()
        if speaking is not None and not record.name.startswith(_CHATTER):
            speaking.say(f"{record.name}: {record.getMessage()}", record.levelname.lower())


_LISTENER = _Listener(logging.INFO)


def _overheard(shown: Callable[..., None]) -> Callable[..., None]:
    """`print` as it was, that also hands what is printed to the attempt on whose thread it is.

    Not another standard output: whoever shows a run has put one of its own there, and draws through it.
    """

    @functools.wraps(shown)
    def printed(
        *values: object, sep: str | None = None, end: str | None = None, file: Any = None, flush: bool = False
    ) -> None:
        shown(*values, sep=sep, end=end, file=file, flush=flush)
        speaking = _SPEAKING.get()
        if speaking is not None and (file is None or file is sys.stdout):
            text = (" " if sep is None else sep).join(map(str, values))
            speaking.printed(text + ("\n" if end is None else end))

    return printed


_PRINT = _overheard(builtins.print)


def _listen() -> None:
    """Once a process. A logger that says nothing below warnings says more from now on, to whoever listens for it."""
    root = logging.getLogger()
    if _LISTENER not in root.handlers:
        root.addHandler(_LISTENER)
        root.setLevel(min(root.level or logging.INFO, logging.INFO))
        builtins.print = _PRINT

"""`arco serve --workers N`: one process that listens and watches, and N that serve.

The parent binds the addresses, tests the store, starts the workers and starts anew whoever dies. It takes no requests: a worker
that dies takes its own connections with it and no others. Told to stop, it tells all of them, and waits for what they finish.
What must never enter: anything about requests. Workers that lose their parent stop by themselves, as if told to.
"""

import logging
import multiprocessing
import multiprocessing.connection
import os
import signal
import socket
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from types import FrameType
from typing import Any

from prometheus_client.multiprocess import mark_process_dead

from arco.kernel.clock import Clock
from arco.kernel.errors import InvalidInput, Unavailable
from arco.kernel.ids import clip
from arco.kernel.limits import (
    GRACEFUL_STOP_S,
    HANDOVER_END_S,
    SOCKET_PATH_BYTES_MAX,
    WORKER_PAUSE_S_FIRST,
    WORKER_PAUSE_S_MAX,
    WORKER_SOUND_S,
)
from arco.surface.cli.settings import share_metrics
from arco.surface.cli.stdin_ends import has_ended

log = logging.getLogger("arco.http")

_PREFIX = "arco-"
# A stop in order takes two such times at most: for requests, and for what they left to do.
_STOP_S = 2 * GRACEFUL_STOP_S + 2 * HANDOVER_END_S


@dataclass(frozen=True, slots=True)
class Berth:
    """What one worker is told of itself and the others. `folder` has the sockets by which they reach each other."""

    number: int
    workers: int
    folder: Path
    link_key: str

    @property
    def sockets(self) -> tuple[Path, ...]:
        return tuple(self.folder / f"{number}.sock" for number in range(self.workers))


Work = Callable[[Berth, list[socket.socket], Connection], None]
"""What a worker process does, until it is told to stop. It says a word on the connection once it listens."""


@dataclass(slots=True)
class _Seat:
    """A worker's place, whoever sits there."""

    berth: Berth
    process: SpawnProcess
    listens: Connection
    started_s: float
    pause_s: float = WORKER_PAUSE_S_FIRST
    due_s: float | None = None


def need_short_folder(workers: int) -> None:
    """The system knows a socket by a name of few bytes: better said before anything is done."""
    folder = tempfile.gettempdir()
    longest = Path(folder) / f"{_PREFIX}12345678" / f"{workers - 1}.sock"
    over = len(os.fsencode(longest)) - SOCKET_PATH_BYTES_MAX
    if over > 0:
        raise InvalidInput(
            f"{clip(folder)} is {over} bytes too long for the sockets by which workers reach each other",
            hint="set TMPDIR to a folder with a shorter name, such as /tmp",
        )


class Watch:
    """The parent of the workers. The serving function and its arguments must be importable by a new interpreter."""

    def __init__(
        self,
        work: Work,
        sockets: list[socket.socket],
        workers: int,
        link_key: str,
        clock: Clock,
        stdin: int | None = None,
    ) -> None:
        """`stdin`: whose end tells it to stop, too."""
        self._work = work
        self._sockets = sockets
        self._workers = workers
        self._link_key = link_key
        self._clock = clock
        self._context = multiprocessing.get_context("spawn")
        self._told_to_stop = False
        self._bell, self._rope = socket.socketpair()
        self._stdin = stdin

    def run(self, announce: Callable[[], None]) -> None:
        """Until told to stop. `announce` is called once, when all workers listen."""
        self._bell.setblocking(False)
        self._rope.setblocking(False)
        earlier = {number: signal.signal(number, self._heard) for number in (signal.SIGTERM, signal.SIGINT)}
        with tempfile.TemporaryDirectory(prefix=_PREFIX) as folder:
            share_metrics(Path(folder))
            seats = [
                self._seated(Berth(number, self._workers, Path(folder), self._link_key)) for number in range(self._workers)
            ]
            try:
                if self._all_listen(seats):
                    announce()
                    self._watch(seats)
            finally:
                self._stop(seats)
                for number, handler in earlier.items():
                    signal.signal(number, handler)

    def _heard(self, _signal: int, _frame: FrameType | None) -> None:
        self._told_to_stop = True
        self._rope.send(b"!")

    def _wait(self, others: Iterable[Connection | int], timeout_s: float | None = None) -> list[Any]:
        """Those of the others of which there is something to hear; sooner if it is told to stop."""
        own = [self._bell] if self._stdin is None else [self._bell, self._stdin]
        ready = multiprocessing.connection.wait([*others, *own], timeout_s)
        if self._stdin in ready and has_ended(self._stdin):
            self._told_to_stop = True
        return [one for one in ready if one not in own]

    def _seated(self, berth: Berth) -> _Seat:
        mine, theirs = self._context.Pipe(duplex=False)
        process = self._context.Process(
            target=self._work, args=(berth, self._sockets, theirs), name=f"arco worker {berth.number}"
        )
        process.start()
        theirs.close()
        return _Seat(berth, process, mine, self._clock.monotonic_s())

    def _all_listen(self, seats: list[_Seat]) -> bool:
        """False if it was told to stop before. Raises if one died before it listened: so would the next."""
        waiting = {seat.listens: seat for seat in seats}
        while waiting and not self._told_to_stop:
            for ready in self._wait(waiting):
                seat = waiting.pop(ready)
                if not _is_heard(seat):
                    raise Unavailable(
                        f"worker {seat.berth.number} of {self._workers} did not start", hint="its own words are above"
                    )
        return not self._told_to_stop

    def _watch(self, seats: list[_Seat]) -> None:
        """Start anew who dies; one that dies right after its start, after a pause that grows."""
        while not self._told_to_stop:
            alive = [seat.process.sentinel for seat in seats if seat.due_s is None]
            due_s = min((seat.due_s for seat in seats if seat.due_s is not None), default=None)
            timeout_s = None if due_s is None else max(0.0, due_s - self._clock.monotonic_s())
            self._wait(alive, timeout_s)
            now_s = self._clock.monotonic_s()
            for number, seat in enumerate(seats):
                if seat.due_s is not None and seat.due_s <= now_s:
                    seats[number] = self._seated(seat.berth)
                    seats[number].pause_s = min(seat.pause_s * 2, WORKER_PAUSE_S_MAX)
                elif seat.due_s is None and not seat.process.is_alive():
                    if now_s - seat.started_s > WORKER_SOUND_S:
                        seat.pause_s = WORKER_PAUSE_S_FIRST
                    seat.due_s = now_s + seat.pause_s
                    seat.listens.close()
                    # What it counted stays; what it had open does not.
                    mark_process_dead(seat.process.pid, str(seat.berth.folder))  # type: ignore[no-untyped-call]
                    log.error("worker %d ended with %s; another one starts", seat.berth.number, seat.process.exitcode)

    def _stop(self, seats: list[_Seat]) -> None:
        for one in self._sockets:
            one.close()
        for seat in seats:
            if seat.process.is_alive():
                seat.process.terminate()
        until_s = self._clock.monotonic_s() + _STOP_S
        for seat in seats:
            seat.process.join(max(0.0, until_s - self._clock.monotonic_s()))
            if seat.process.is_alive():
                log.error("worker %d does not end, and is ended", seat.berth.number)
                seat.process.kill()
                seat.process.join()


def _is_heard(seat: _Seat) -> bool:
    try:
        seat.listens.recv()
    except EOFError:
        return False
    return True

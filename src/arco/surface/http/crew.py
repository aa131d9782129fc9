"""The workers of one server: what changes the same thing is done by the same one.

Commits to one table that are under way in two processes race, and all but one have prepared for nothing. In one process they
stand in line and share swings (ADR 0014, 0023). So each lane, a table or the names of a workspace, has an owner among the
workers, found from its name alone, and a request goes there (ADR 0039). Nothing rests on it: the swing decides, as between
servers. An owner that is not there, ends or is stuck is not asked, and the request is done where it came in. Only when an owner
dies or falls silent *after* it was sent the request does nobody know the outcome: it may have begun, or may find the request when
it moves again. The client is told so, as it would be of a server that died.

What must never enter: what a request means, and anything that decides whether a commit counts.
"""

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from arco.kernel.clock import Clock
from arco.kernel.errors import CorruptObject, OutcomeUnknown
from arco.kernel.limits import HANDED_OVER_BYTES_MAX, HANDOVER_END_S, HANDOVER_SILENCE_S
from arco.kernel.scope import Scope
from arco.surface.http.deadlines import Deadlines
from arco.surface.http.handover import Answer, Ask, Channel, Frame, NoMore, NotTaken, Taken, Wake
from arco.surface.http.server_state import ServerState

Work = Callable[[Ask], Awaitable[Answer]]


@dataclass(slots=True)
class _Waiting:
    """A request at its owner, whose client waits."""

    channel: Channel
    answered: "asyncio.Future[Answer | None]"


@dataclass(frozen=True, slots=True)
class _Unheard:
    """A request of which its owner has not said that it began, whether or not its client still waits."""

    channel: Channel
    since_s: float


class Owner:
    """Another worker, as this one sees it: asked over one connection, which is made when it is first needed."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._channel: Channel | None = None
        self._connecting: asyncio.Task[Channel | None] | None = None
        self._waiting: dict[int, _Waiting] = {}
        self._unheard: dict[int, _Unheard] = {}
        self._patience: Deadlines[int] = Deadlines(HANDOVER_SILENCE_S, self._give_up)
        self._number = 0

    async def ask(self, made: Callable[[int], Ask]) -> Answer | None:
        """Its answer; None if it never began, and never will. Raises if that is not known."""
        if self._is_stuck():
            return None
        channel = await self._connected()
        # It may have ended while we waited to be woken: nobody would tell us of it any more.
        if channel is None or not channel.is_open:
            return None
        self._number += 1
        number = self._number
        one = self._waiting[number] = _Waiting(channel, asyncio.get_running_loop().create_future())
        self._unheard[number] = _Unheard(channel, self._clock.monotonic_s())
        self._patience.begin(number)
        try:
            channel.send(made(number))
            return await one.answered
        finally:
            del self._waiting[number]

    async def tell(self, frame: Wake) -> None:
        channel = await self._connected()
        if channel is not None:
            channel.send(frame)

    def close(self) -> None:
        if self._channel is not None:
            self._channel.close()

    def _is_stuck(self) -> bool:
        """Whether something was sent to it a while ago, and it did not even say that it has begun."""
        oldest = next(iter(self._unheard.values()), None)
        return oldest is not None and self._clock.monotonic_s() - oldest.since_s > HANDOVER_SILENCE_S

    def _give_up(self, number: int) -> None:
        """Tell the client of a request that a stuck owner has; the owner may do it when it moves again."""
        one = self._waiting.get(number)
        if one is not None:
            _fail(one, "the worker that has this request does not say that it began")

    def _hear_of(self, number: int) -> None:
        """Its owner moves, or is gone."""
        self._unheard.pop(number, None)
        self._patience.end(number)

    async def _connected(self) -> Channel | None:
        if self._channel is not None and self._channel.is_open:
            return self._channel
        if self._connecting is None or self._connecting.done():
            self._connecting = asyncio.get_running_loop().create_task(self._connect())
        return await asyncio.shield(self._connecting)

    async def _connect(self) -> Channel | None:
        loop = asyncio.get_running_loop()
        try:
            _, made = await loop.create_unix_connection(lambda: Channel(self._heard, self._lost), str(self._path))
        except OSError:
            # It died, and its successor is not there yet.
            return None
        self._channel = made
        return made

    def _heard(self, channel: Channel, frame: Frame) -> None:
        if isinstance(frame, Taken | Answer | NotTaken):
            self._hear_of(frame.number)
        match frame:
            case Answer(number) if number in self._waiting:
                _settle(self._waiting[number], frame)
            case NotTaken(number) if number in self._waiting:
                _settle(self._waiting[number], None)
            case NoMore():
                # On this connection. When all is answered its owner closes it.
                if self._channel is channel:
                    self._channel = None
                channel.send(NoMore())
            case Ask() | Wake():
                raise CorruptObject("a worker that was asked asks back")
            case _:
                return  # the client of that request was answered already

    def _lost(self, channel: Channel) -> None:
        if self._channel is channel:
            self._channel = None
        for number in [number for number, unheard in self._unheard.items() if unheard.channel is channel]:
            self._hear_of(number)
        for one in self._waiting.values():
            if one.channel is channel:
                _fail(one, "the worker that had this request ended before it answered")


def _fail(one: _Waiting, why: str) -> None:
    if not one.answered.done():
        one.answered.set_exception(OutcomeUnknown(why))


def _settle(one: _Waiting, answer: Answer | None) -> None:
    if not one.answered.done():
        one.answered.set_result(answer)


class Desk:
    """Where this worker takes what others hand to it."""

    def __init__(self, path: Path, work: Work, wake: Callable[[str], None]) -> None:
        self._path = path
        self._work = work
        self._wake = wake
        self._server: asyncio.Server | None = None
        self._channels: set[Channel] = set()
        self._unaware: set[Channel] = set()
        self._asked: set[asyncio.Task[None]] = set()
        self._ends = False
        self._all_know = asyncio.Event()

    async def open(self) -> None:
        loop = asyncio.get_running_loop()
        # In the place of a worker that died and had the same number: whoever was connected to it has lost it already.
        self._server = await loop.create_unix_server(self._connection, str(self._path))

    def _connection(self) -> Channel:
        made = Channel(self._heard, self._lost)
        self._channels.add(made)
        return made

    async def close(self) -> None:
        """Take no more, finish what was taken, and go once everybody knows; who stays silent is not waited for long."""
        if self._server is None:
            return
        self._ends = True
        self._server.close()
        self._unaware = set(self._channels)
        for channel in self._unaware:
            channel.send(NoMore())
        if self._unaware:
            knowing = asyncio.ensure_future(self._all_know.wait())
            await asyncio.wait({knowing}, timeout=HANDOVER_END_S)
            knowing.cancel()
        if self._asked:
            await asyncio.wait(self._asked)
        for channel in self._channels:
            channel.close()

    def _heard(self, channel: Channel, frame: Frame) -> None:
        match frame:
            case Ask(number) if self._ends:
                channel.send(NotTaken(number))
            case Ask(number):
                channel.send(Taken(number))
                task = asyncio.get_running_loop().create_task(self._done(channel, frame))
                self._asked.add(task)
                task.add_done_callback(self._asked.discard)
            case Wake(warehouse):
                self._wake(warehouse)
            case NoMore():
                self._knows(channel)
            case Taken() | Answer() | NotTaken():
                raise CorruptObject("a worker answers what it was not asked")

    async def _done(self, channel: Channel, ask: Ask) -> None:
        channel.send(await self._work(ask))

    def _lost(self, channel: Channel) -> None:
        self._channels.discard(channel)
        self._knows(channel)

    def _knows(self, channel: Channel) -> None:
        self._unaware.discard(channel)
        if not self._unaware:
            self._all_know.set()


class Crew:
    """The workers of one server, as one of them sees them. One alone owns everything, and hands nothing over."""

    def __init__(self, clock: Clock, number: int = 0, sockets: Sequence[Path] = ()) -> None:
        self.number = number
        self._sockets = sockets
        self._owners = {at: Owner(path, clock) for at, path in enumerate(sockets) if at != number}
        self._desk: Desk | None = None

    @property
    def folder(self) -> Path | None:
        """What the workers share; None for one alone."""
        return self._sockets[0].parent if self._sockets else None

    @property
    def is_alone(self) -> bool:
        return not self._owners

    async def open(self, work: Work, wake: Callable[[str], None]) -> None:
        if not self.is_alone:
            self._desk = Desk(self._sockets[self.number], work, wake)
            await self._desk.open()

    async def close(self) -> None:
        if self._desk is not None:
            await self._desk.close()
        for owner in self._owners.values():
            owner.close()

    def owner(self, lane: Sequence[str], size_bytes: int) -> Owner | None:
        """Who does what changes this; None if this worker does it itself. A large request is not sent twice."""
        if self.is_alone or not lane or size_bytes > HANDED_OVER_BYTES_MAX:
            return None
        return self._owners.get(zlib.crc32("\x00".join(lane).encode()) % len(self._sockets))

    async def wake_first(self, warehouse: str) -> None:
        """Tell the worker that does what one of them does for all."""
        first = self._owners.get(0)
        if first is not None:
            await first.tell(Wake(warehouse))


class FoldElsewhere:
    """In a worker that does not fold: what is new is told to the one that does."""

    def __init__(self, state: ServerState, crew: Crew) -> None:
        self._state = state
        self._crew = crew
        self._telling: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        self._state.wake_fold = self._wake

    async def stop(self) -> None:
        if self._telling:
            await asyncio.wait(self._telling)

    def _wake(self, scope: Scope) -> None:
        task = asyncio.get_running_loop().create_task(self._crew.wake_first(scope.warehouse))
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

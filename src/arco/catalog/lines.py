"""Standing in line: commits to one table in one process go one after the other, in the order they came.

Committers that race for one pointer all prepare, and all but one have prepared for nothing. In a line each finds what the one
before it left in memory, and wins its swing. A line saves work and decides nothing: committers of other processes stand in no
line of ours, and the swing's own condition says who landed. So whoever is at the head for too long is passed by, a line that
is too long is not joined, and nobody is ever refused for want of a turn.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from arco.kernel.limits import LINE_HEAD_S_MAX, LINE_WAITING_MAX


class Place:
    """A place in a line. Leaving it lets the next one go on; leaving it twice is leaving it once."""

    def __init__(self, line: "_Line | None" = None) -> None:
        self._line = line

    def leave(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            line.pass_by(self)


@dataclass(eq=False, slots=True)
class _Line:
    """Who is at the head, and who waits behind. Empty lines are forgotten by `Lines`."""

    lines: dict[str, "_Line"]
    uuid: str
    head: Place | None = None
    timer: asyncio.TimerHandle | None = None
    waiting: deque[tuple[Place, "asyncio.Future[None]"]] = field(default_factory=deque)

    def call(self, place: Place) -> None:
        self.head = place
        self.timer = asyncio.get_running_loop().call_later(LINE_HEAD_S_MAX, self.pass_by, place)

    def pass_by(self, place: Place) -> None:
        """The next one, unless somebody else is at the head already."""
        if self.head is not place:
            return
        self.head = None
        if self.timer is not None:
            self.timer.cancel()
        while self.waiting and self.head is None:
            following, called = self.waiting.popleft()
            if not called.cancelled():
                called.set_result(None)
                self.call(following)
        if self.head is None:
            del self.lines[self.uuid]


class Lines:
    """The lines of one process, one a table."""

    def __init__(self) -> None:
        self._lines: dict[str, _Line] = {}

    def is_busy(self, uuid: str) -> bool:
        """Whether anybody is at the head of a line."""
        return uuid in self._lines

    @asynccontextmanager
    async def at_the_head(self, uuid: str) -> AsyncIterator[Place]:
        """Wait for one's turn at a table."""
        place = await self.place(uuid)
        try:
            yield place
        finally:
            place.leave()

    async def place(self, uuid: str) -> Place:
        """`at_the_head`, for who leaves the place itself."""
        line = self._lines.get(uuid)
        if line is None:
            line = self._lines[uuid] = _Line(self._lines, uuid)
            place = Place(line)
            line.call(place)
            return place
        if len(line.waiting) >= LINE_WAITING_MAX:
            return Place()
        place, called = Place(line), asyncio.get_running_loop().create_future()
        line.waiting.append((place, called))
        try:
            await called
        except asyncio.CancelledError:
            # The turn may have come in the same moment: then it is somebody else's now.
            place.leave()
            raise
        return place

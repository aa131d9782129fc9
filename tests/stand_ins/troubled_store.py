"""A memory store in a mood that a test sets and changes: outages that last longer than read-back tries."""

import asyncio
from enum import Enum, auto

from arco.kernel.errors import Unavailable
from arco.storage.memory import MemoryStore
from arco.storage.port import Condition, Object, Outcome, Unknown


class Mood(Enum):
    FINE = auto()
    DEAF = auto()  # nothing is done and nothing answered
    MUTE = auto()  # writes are done, and nothing is answered
    LATE = auto()  # writes are done when the test says `arrive`, and nothing is answered


class TroubledStore(MemoryStore):
    """`refusal`, if set, is raised by every write; `gate`, if set, holds every write back until it is opened."""

    def __init__(self, clock) -> None:
        super().__init__(clock)
        self.mood = Mood.FINE
        self.refusal: Exception | None = None
        self.gate: asyncio.Event | None = None
        self._late: list[tuple[str, bytes, Condition]] = []

    async def put(self, key: str, data: bytes, condition: Condition) -> Outcome:
        if self.gate is not None:
            await self.gate.wait()
        if self.refusal is not None:
            raise self.refusal
        if self.mood is Mood.FINE:
            return await super().put(key, data, condition)
        if self.mood is Mood.MUTE:
            await super().put(key, data, condition)
        if self.mood is Mood.LATE:
            self._late.append((key, data, condition))
        return Unknown("no reply")

    async def get(self, key: str) -> Object | None:
        if self.mood is not Mood.FINE:
            raise Unavailable("the store did not answer")
        return await super().get(key)

    async def arrive(self) -> None:
        """The writes that were late take effect."""
        late, self._late = self._late, []
        for key, data, condition in late:
            await super().put(key, data, condition)

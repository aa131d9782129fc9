"""A clock that a test moves by hand. Waiting takes no time: it is written down, and the hands jump."""

import asyncio
from collections.abc import Iterable

NEW_YEAR_2025_MS = 1_735_689_600_000


class HandClock:
    """Both hands start where the test says; `sleep` moves them and remembers how long it was."""

    def __init__(self, now_ms: int = NEW_YEAR_2025_MS) -> None:
        self.at_ms = now_ms
        self.elapsed_s = 0.0
        self.pauses: list[float] = []

    def now_ms(self) -> int:
        return self.at_ms

    def monotonic_s(self) -> float:
        return self.elapsed_s

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.at_ms += round(seconds * 1000)
        self.elapsed_s += seconds
        await asyncio.sleep(0)


class ReadingsClock(HandClock):
    """A clock that shows prepared readings one after the other, and then stands still at the last."""

    def __init__(self, readings_ms: Iterable[int]) -> None:
        super().__init__()
        self._readings = iter(readings_ms)

    def now_ms(self) -> int:
        self.at_ms = next(self._readings, self.at_ms)
        return self.at_ms


class ConstantEntropy:
    """Randomness at its worst: the same byte for ever."""

    def __init__(self, byte: int = 0, fraction: float = 0.5) -> None:
        self._byte = byte
        self._fraction = fraction

    def token_bytes(self, count: int) -> bytes:
        return bytes([self._byte]) * count

    def fraction(self) -> float:
        return self._fraction

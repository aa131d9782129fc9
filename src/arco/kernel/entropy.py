"""Randomness as a port, so that one seed decides everything in a simulation."""

import os
import random
from typing import Protocol

from arco.kernel.limits import ENTROPY_DRAWN_BYTES_MAX


class Entropy(Protocol):
    """A source of bytes nobody can predict (or, in a simulation, that one seed predicts)."""

    def token_bytes(self, count: int) -> bytes: ...

    def fraction(self) -> float:
        """A number in [0, 1), for jitter."""
        ...


class SystemEntropy:
    """The operating system's generator."""

    def token_bytes(self, count: int) -> bytes:
        return os.urandom(count)

    def fraction(self) -> float:
        return int.from_bytes(os.urandom(7), "big") / (1 << 56)


class DrawnAhead:
    """Another source, asked once for many names: each question to the operating system costs more than making the name.

    For one thread, and for what is no secret: what was drawn lies in memory until it is used.
    """

    def __init__(self, inner: Entropy) -> None:
        self._inner = inner
        self._drawn = b""
        self._used = 0

    def token_bytes(self, count: int) -> bytes:
        if count > ENTROPY_DRAWN_BYTES_MAX:
            return self._inner.token_bytes(count)
        if self._used + count > len(self._drawn):
            self._drawn, self._used = self._inner.token_bytes(ENTROPY_DRAWN_BYTES_MAX), 0
        start, self._used = self._used, self._used + count
        return self._drawn[start : self._used]

    def fraction(self) -> float:
        return self._inner.fraction()


class SeededEntropy:
    """The same bytes for the same seed; for simulations and reproducible fixtures only."""

    def __init__(self, seed: int | str) -> None:
        self._random = random.Random(seed)  # noqa: S311 - reproducibility is the point

    def token_bytes(self, count: int) -> bytes:
        return self._random.randbytes(count)

    def fraction(self) -> float:
        return self._random.random()

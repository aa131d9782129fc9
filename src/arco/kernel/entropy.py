"""Randomness as a port, so that one seed decides everything in a simulation."""

import os
import random
from typing import Protocol


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


class SeededEntropy:
    """The same bytes for the same seed; for simulations and reproducible fixtures only."""

    def __init__(self, seed: int | str) -> None:
        self._random = random.Random(seed)  # noqa: S311 - reproducibility is the point

    def token_bytes(self, count: int) -> bytes:
        return self._random.randbytes(count)

    def fraction(self) -> float:
        return self._random.random()

"""Where every decision of a simulation comes from: a seed, or a recorded list.

Each decision is a small number and 0 is always the harmless one (first in line, no fault, no jump). A run records its
decisions, so it can be replayed exactly, and a failure can be shrunk by setting decisions to 0 and looking whether it
still fails.
"""

import random
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate


class Choices:
    """Decisions drawn from a seed, or read from a record and harmless after its end."""

    def __init__(self, seed: int, replay: Sequence[int] | None = None) -> None:
        self.recorded: list[int] = []
        self._random = random.Random(seed)
        self._replay = replay

    def below(self, count: int) -> int:
        """One of `count` alternatives, all alike."""
        if count <= 1:
            return 0
        made = int(self._random.random() * count) if self._replay is None else min(self._next_replayed(), count - 1)
        self.recorded.append(made)
        return made

    def weighted(self, weights: "Weights") -> int:
        """One of several alternatives, by weight."""
        fresh = self._replay is None
        made = weights.index(self._random.random()) if fresh else min(self._next_replayed(), weights.count - 1)
        self.recorded.append(made)
        return made

    def _next_replayed(self) -> int:
        replay, place = self._replay or (), len(self.recorded)
        return replay[place] if place < len(replay) else 0


class Weights:
    """Relative weights of alternatives; the first is the harmless one."""

    def __init__(self, *weights: float) -> None:
        total = sum(weights)
        # Without the last: what lies above all others is of the last, whatever the sum is rounded to.
        self._bounds = [bound / total for bound in accumulate(weights)][:-1]
        self.count = len(weights)

    def index(self, fraction: float) -> int:
        return bisect_right(self._bounds, fraction)

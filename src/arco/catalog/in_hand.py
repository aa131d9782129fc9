"""What this process works on, so that its own leftovers need no patience.

A record of ours on which nobody of this process works any more was left unfinished: whoever finds it takes it over at once,
where a record of another process is taken over only after it was silent for long.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class InHand:
    """The requests of one process. `owner` is what their records name it by."""

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self._working: Counter[str] = Counter()

    @contextmanager
    def working(self, key: str) -> Iterator[None]:
        """While this process works on a key."""
        self._working[key] += 1
        try:
            yield
        finally:
            self._working[key] -= 1
            if not self._working[key]:
                del self._working[key]

    def left_by_us(self, owner: str | None, key: str) -> bool:
        """Whether a record is ours and only the one who asks works on its key now."""
        return owner == self.owner and self._working[key] <= 1

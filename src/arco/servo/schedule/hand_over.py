"""How one process hears that another has something for it: the port, and the adapter that only looks now and then.

A wake-up says which run has news; it carries nothing and decides nothing, so one that is lost costs a look, and one too many
costs a request. What must never enter: anything that has to arrive.
"""

from collections.abc import Callable
from typing import Protocol

ANYTHING = "*"
"""Said of no run in particular: a new run, or a pool that has room."""


class HandOver(Protocol):
    """Tells others, and hears them. `looks_every_s` is how often whoever listens looks all the same."""

    @property
    def looks_every_s(self) -> float: ...

    def tell(self, run: str) -> None:
        """There is news of a run. Returns at once, and never fails."""
        ...

    def listen(self, heard: Callable[[str], None]) -> None:
        """Call this with every run that others have news of, on the running loop."""
        ...

    def close(self) -> None: ...


class Looking:
    """For a bucket, where nobody can be told anything: everybody looks."""

    def __init__(self, every_s: float) -> None:
        self.looks_every_s = every_s

    def tell(self, run: str) -> None:
        """Nobody is told: they look."""

    def listen(self, heard: Callable[[str], None]) -> None:
        """Nobody calls."""

    def close(self) -> None:
        """Nothing is open."""

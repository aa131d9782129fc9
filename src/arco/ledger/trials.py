"""State that can be changed for a trial: what is written inside one is taken back at its end.

Trying costs what is changed, not what there is: nothing is copied. What must never enter: what the state means.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")
Place = tuple[int, str]


class Trials:
    """Dictionaries and sorted lists, written through here alone."""

    def __init__(self) -> None:
        self._journal: list[Callable[[], object]] | None = None

    @contextmanager
    def trial(self) -> Iterator[None]:
        """What is applied inside is taken back: to see whether entries hold, and what follows from them."""
        outer, self._journal = self._journal, []
        try:
            yield
        finally:
            for take_back in reversed(self._journal):
                take_back()
            self._journal = outer

    def _set(self, mapping: dict[K, V], key: K, value: V) -> None:
        if self._journal is not None:
            if key in mapping:
                self._journal.append(partial(mapping.__setitem__, key, mapping[key]))
            else:
                self._journal.append(partial(mapping.__delitem__, key))
        mapping[key] = value

    def _drop(self, mapping: dict[K, V], key: K) -> None:
        if key in mapping:
            if self._journal is not None:
                self._journal.append(partial(mapping.__setitem__, key, mapping[key]))
            del mapping[key]

    def _insert(self, places: list[Place], place: Place) -> None:
        insort(places, place)
        if self._journal is not None:
            self._journal.append(partial(places.remove, place))

    def _remove(self, places: list[Place], place: Place) -> None:
        del places[bisect_left(places, place)]
        if self._journal is not None:
            self._journal.append(partial(insort, places, place))

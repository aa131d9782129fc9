"""What a process keeps to save itself work: what was used last, within so many things and so many bytes.

What must never enter: whether something kept still holds, and where it came from.
"""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Kept(Generic[K, V]):
    """Each thing comes with its size. The newest stays whatever that is: what is used all the time is not made every time."""

    def __init__(self, *, bytes_max: int, things_max: int | None = None) -> None:
        self._bytes_max = bytes_max
        self._things_max = things_max
        self._kept: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._kept)

    def items(self) -> Iterator[tuple[K, V]]:
        return ((key, value) for key, (value, _) in self._kept.items())

    def get(self, key: K) -> V | None:
        found = self._kept.get(key)
        if found is None:
            return None
        self._kept.move_to_end(key)
        return found[0]

    def put(self, key: K, value: V, size_bytes: int) -> None:
        self.forget(key)
        self._kept[key] = (value, size_bytes)
        self.size_bytes += size_bytes
        while len(self._kept) > 1 and self._is_full():
            _, (_, freed_bytes) = self._kept.popitem(last=False)
            self.size_bytes -= freed_bytes

    def forget(self, key: K) -> None:
        _, freed_bytes = self._kept.pop(key, (None, 0))
        self.size_bytes -= freed_bytes

    def _is_full(self) -> bool:
        too_many = self._things_max is not None and len(self._kept) > self._things_max
        return too_many or self.size_bytes > self._bytes_max

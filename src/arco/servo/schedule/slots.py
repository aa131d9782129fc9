"""How many tasks a process has at once, shared by the runs that it works on.

Each run is granted some of the slots and claims no more tasks than that, so that two runs that decide in the same moment do not
take the same slot. While another run has nothing, no run is given more than its share. What must never enter: which task is
claimed, and anything about other processes.
"""

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True)
class _Part:
    wake: Callable[[], None]
    granted: int = 0
    wants: int = 0


@dataclass(slots=True)
class Slots:
    """The slots of one process."""

    total: int
    _parts: dict[object, _Part] = field(default_factory=dict)

    def join(self, who: object, wake: Callable[[], None]) -> None:
        """A run that wants slots. `wake` is called when some may have become free."""
        self._parts[who] = _Part(wake)

    def leave(self, who: object) -> None:
        if self._parts.pop(who, None) is not None:
            self._wake_the_hungry()

    @property
    def used(self) -> int:
        return sum(part.granted for part in self._parts.values())

    def limit(self, who: object) -> int:
        """How many tasks a run may have now."""
        part = self._parts[who]
        return min(part.granted, self._share(who)) if self._others_wait(who) else part.granted

    def adjust(self, who: object, *, busy: int, wants: int, may_shrink: bool) -> None:
        """What a run has under way, and would have if it could. Only one that has no decision under way gives slots back."""
        part = self._parts[who]
        before, was_hungry = part.granted, part.wants > part.granted
        part.wants = max(wants, busy)
        if may_shrink:
            part.granted = max(busy, min(part.granted, part.wants))
            if self._others_wait(who):
                part.granted = max(busy, min(part.granted, self._share(who)))
        if part.granted < before or (was_hungry and part.wants <= part.granted):
            self._wake_the_hungry(but=part)
        most = self._share(who) if self._others_wait(who) else self.total
        part.granted += max(0, min(min(part.wants, most) - part.granted, self.total - self.used))

    def _others_wait(self, who: object) -> bool:
        """Whether a run that could use a slot has none."""
        return any(part.wants > 0 and not part.granted for one, part in self._parts.items() if one is not who)

    def _share(self, who: object) -> int:
        wanting = sum(part.wants > 0 for one, part in self._parts.items() if one is not who) + 1
        return max(1, self.total // wanting)

    def _wake_the_hungry(self, but: _Part | None = None) -> None:
        for part in list(self._parts.values()):
            if part is not but and part.wants > part.granted:
                part.wake()

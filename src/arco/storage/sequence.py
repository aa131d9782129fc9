"""Densely numbered records, each created only if absent, beside a collector that deletes old ones.

The failure this prevents (hazard 13), in order:
  1. a writer decides to create record 7, and stalls
  2. others create 7, 8, 9; a collector folds them into state and deletes them
  3. the writer wakes up and creates 7: the name is free, the store says it won, and nobody will ever read it

So the collector raises a durable boundary before it deletes, and a writer looks at the boundary after it has tried: at or
below it the store's word means nothing. "Created" may be a ghost that nobody reads. "Taken" may be somebody else's ghost,
standing where our own record was folded before its reply got lost. Only the folded state can tell, and that is the caller's
history to ask. What must never enter: what the records mean.
"""

from collections.abc import Awaitable, Callable

from arco.kernel.clock import Clock
from arco.kernel.entropy import Entropy
from arco.kernel.errors import ArcoError
from arco.storage.port import Absent, ObjectStore, Outcome, Unknown
from arco.storage.readback import put_settled


class Sequence:
    """Records 1, 2, 3, … of one sequence. `boundary` reads the number up to which records may have been deleted."""

    def __init__(
        self,
        store: ObjectStore,
        name_of: Callable[[int], str],
        boundary: Callable[[], Awaitable[int]],
        clock: Clock,
        entropy: Entropy,
    ) -> None:
        self._store = store
        self._name_of = name_of
        self._boundary = boundary
        self._clock = clock
        self._entropy = entropy

    async def read(self, number: int) -> bytes | None:
        """A record's bytes. None if there is none, which for a number at or below the boundary means nothing."""
        found = await self._store.get(self._name_of(number))
        return None if found is None else found.data

    async def append(self, number: int, data: bytes) -> Outcome:
        """Create one record. `Unknown` also when the boundary has passed it: ask the folded state."""
        outcome = await put_settled(
            self._store, self._name_of(number), data, Absent(), clock=self._clock, entropy=self._entropy
        )
        if isinstance(outcome, Unknown):
            return outcome
        try:
            boundary = await self._boundary()
        except ArcoError as error:
            return Unknown(f"the boundary could not be read: {error.message}")
        if number <= boundary:
            return Unknown(f"record {number} is not above the boundary {boundary}")
        return outcome

"""Telling the ledger what became of names: whoever folds begins by telling what nobody has told yet.

The failure this prevents, in order:
  1. a process commits to tier 1, answers its client, and dies before it has said so to the ledger
  2. everybody who asks the catalog sees the table, and nobody who asks the folded state ever does
So nobody who commits says anything. The chain of commits is the list of what there is to tell; a mark says how far it was told:

    mark → manifest → commits after the mark → segments → mark

The mark moves only when the segments are durable. Who dies in between leaves events that are told again under the same ids, and
readers keep one of each. Two who tell at once tell the same. A look without anything new is one request.

What must never enter: what a commit says (`name_events.py`), and anything on the way of a request.
"""

from collections.abc import Sequence

from arco.catalog.manifest import Commit
from arco.catalog.name_events import name_events
from arco.catalog.untold import Mark, NameChain
from arco.kernel.clock import Clock
from arco.kernel.crash_points import reach
from arco.kernel.entropy import Entropy
from arco.kernel.ids import EventId, UlidSource
from arco.kernel.limits import TOLD_COMMITS_MAX
from arco.kernel.position import HybridClock
from arco.kernel.scope import Scope
from arco.ledger.drafts import Draft, seal
from arco.ledger.envelope import encode
from arco.ledger.segment import segment_sized
from arco.ledger.writer import SegmentWriter
from arco.storage.cas import Held
from arco.storage.keys import Domain
from arco.storage.port import ObjectStore, Version


class Teller:
    """Tells the ledger of one workspace. Any number may do so at the same time."""

    def __init__(
        self, store: ObjectStore, scope: Scope, clock: Clock, entropy: Entropy, *, commits_max: int = TOLD_COMMITS_MAX
    ) -> None:
        self._scope = scope
        self._clock = clock
        self._chain = NameChain(store, scope, clock, entropy, commits_max=commits_max)
        self._writer = SegmentWriter(store, scope, Domain.CATALOG, clock, entropy)
        self._positions = HybridClock(clock, entropy)
        self._ulids = UlidSource(clock, entropy)
        self._told: Version | None = None

    async def tell(self) -> tuple[str, ...]:
        """Tell everything that is new; the names of the segments that were written for it."""
        if await self._chain.version() == self._told:
            return ()
        untold = await self._chain.untold()
        written: list[str] = []
        async for commits in untold.groups():
            written += await self._append(commits)
            reach("tell.appended")
            await self._move_mark(commits[-1])
        self._told = untold.version
        return tuple(written)

    async def _append(self, commits: Sequence[Commit]) -> list[str]:
        lines = ((draft, self._line(draft)) for commit in commits for draft in name_events(commit))
        return [str(await self._writer.write([line for _, line in group])) for group in segment_sized(lines)]

    def _line(self, draft: Draft) -> bytes:
        fresh = draft.id or EventId(self._ulids.next())
        now_ms = self._clock.now_ms()
        return encode(seal(draft, self._scope, fresh_id=fresh, position=self._positions.next(), now_ms=now_ms))

    async def _move_mark(self, last: Commit) -> None:
        """Forward only: another teller may be further."""
        ours = Mark(last.sequence, last.id)

        def further(held: Held[Mark] | None) -> Mark:
            return ours if held is None or held.value.sequence < ours.sequence else held.value

        await self._chain.mark.update(further)
        reach("tell.marked")

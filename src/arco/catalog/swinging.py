"""The swing: one write of the pointer that makes a commit, or a whole group of them, visible; and the receipts after it.

What must never enter: whether to swing, and what to do about one that did not land. That is for each request to know.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from arco.catalog.afterwards import together
from arco.catalog.bases import Base, Bases
from arco.catalog.pointer import Pointer
from arco.catalog.subject import Subject
from arco.catalog.versions import Prepared
from arco.catalog.workspace import Workspace
from arco.kernel.crash_points import reach
from arco.kernel.tallies import Tallied
from arco.ledger.receipts import Published
from arco.storage.cas import Overtaken, SwapOutcome, Swung
from arco.storage.port import Lost, Unknown

M = TypeVar("M")

_COUNTED: dict[type, Tallied] = {
    Swung: Tallied.SWING_LANDED,
    Overtaken: Tallied.SWING_LANDED,
    Lost: Tallied.SWING_LOST,
    Unknown: Tallied.SWING_UNKNOWN,
}


@dataclass(frozen=True, slots=True)
class Swings(Generic[M]):
    """The swings of the tables, or of the views, of one workspace."""

    ws: Workspace
    subject: Subject[M, Any, Any]
    bases: Bases[M]

    async def swing(self, chain: Sequence[tuple[Prepared[M], Published]]) -> SwapOutcome[Pointer]:
        """Make commits visible, each computed on the one before it: exactly the pointer under the first is swung."""
        first, last = chain[0][0], chain[-1][0]
        facts = self.subject.facts(last.metadata)
        published = tuple(one for _, one in chain)
        base = first.base.pointer
        outcome = await self.ws.pointers.swing(base, base.value.after(published, facts.refs, facts.last_sequence_number))
        reach("commit.swung")
        self.ws.tallies.add(_COUNTED[type(outcome)])
        if isinstance(outcome, Swung):
            self.bases.remember(Base(outcome.held, last.metadata))
        else:
            self.bases.forget(base.value.table_uuid)
        return outcome

    def write_receipts(self, uuid: str, published: Sequence[Published]) -> Awaitable[None]:
        """What the next swing of this table would write first, if we did not come to it (invariant R). It begins at once."""
        writes = [self.ws.receipts.begin(uuid, one) for one in published]
        return self._written(uuid, tuple(published), writes)

    async def _written(self, uuid: str, published: tuple[Published, ...], writes: "Sequence[asyncio.Future[None]]") -> None:
        await together(*map(asyncio.shield, writes))
        reach("commit.receipt_written")
        known = self.bases.known(uuid)
        if known is not None and known.pointer.value.published == published:
            self.bases.remember(Base(known.pointer, known.metadata, receipts_exist=True))

    def receipts_owed(self, base: Base[M]) -> list[Awaitable[None]]:
        """What makes sure of the receipts of the last swing of this table: to be awaited before the next (invariant R)."""
        if not base.receipts_exist:
            return [self.ws.receipts.ensure_published(base.pointer.value)]
        return []

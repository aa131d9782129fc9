"""What is not folded yet, as contributions: fresh reads add it to a cut and follow the same rules.

The heads are read first, the ledger after them: a segment that is folded in between is in neither the old cut nor consumed by it,
so it is read here, and joining it twice changes nothing. What runs have not told the ledger yet is read from their logs, what
nobody has told of names from the chain of their commits, and what nobody has told of tables from the receipts of theirs.
Servers may read this; browsers never do.
"""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from arco.catalog.name_events import name_events
from arco.catalog.untold import NameChain
from arco.fold.consumed import ConsumedLists
from arco.fold.contributions import Contribution
from arco.fold.finding import Finder, key_of
from arco.fold.heads import Heads
from arco.fold.manifests import Manifest, RootManifest
from arco.fold.receipt_events import ReceiptEvents
from arco.fold.segment_rows import shred_segment
from arco.fold.shredding import shred_for
from arco.fold.tables import FOLDED_FROM
from arco.fold.vocabulary import Row
from arco.kernel.errors import InvalidInput, UnknownFormat
from arco.kernel.ids import EventId, RunId
from arco.kernel.limits import LEDGER_READS_MAX
from arco.kernel.position import HybridClock
from arco.ledger.drafts import seal
from arco.ledger.outstanding import outstanding, run_ids
from arco.read.unannounced import Found, Unannounced
from arco.storage.keys import Domain, Head, SegmentKey

Rows = dict[str, list[Row]]


@dataclass(frozen=True, slots=True)
class TailRows:
    """Contributions by the name of their table. `left_out` is how many commits of tables were too many to be looked at."""

    rows: Rows
    left_out: int = 0


class Tails:
    """The tails of one workspace. What a cut has consumed is remembered. Without `receipts`, commits wait for the fold."""

    def __init__(self, heads: Heads, receipts: ReceiptEvents | None = None) -> None:
        self._heads = heads
        self._lists = ConsumedLists(heads.store, heads.scope, heads.clock, heads.entropy)
        self._names = NameChain(heads.store, heads.scope, heads.clock, heads.entropy)
        self._positions = HybridClock(heads.clock, heads.entropy)
        self._finder = Finder(heads.store, heads.scope, self._lists, heads.clock, heads.entropy, listing=True)
        self._commits = None if receipts is None else Unannounced(heads, self._lists, receipts)

    async def of(
        self,
        root: RootManifest | None,
        heads: Sequence[Head] = tuple(FOLDED_FROM),
        *,
        told: Collection[str] = frozenset(),
    ) -> TailRows:
        """Everything that a cut does not have, by the name of its table. `told` are runs whose end the cut has."""
        found: Rows = defaultdict(list)
        # Before the ledger: what is told from now on is found in a run's log, after the mark of names, or in the ledger.
        ids, names = await asyncio.gather(run_ids(self._heads.store, self._heads.scope), self._of_names(heads))
        runs = [run for run in ids if run not in told]
        for table, some in names.items():
            found[table] += some
        for rows in await asyncio.gather(*(self._of_head(root, head) for head in heads)):
            for table, some in rows.items():
                found[table] += some
        for table, some in (await self._of_runs(runs, heads)).items():
            found[table] += some
        commits = await self._of_commits(root, heads)
        for about, row in commits.rows:
            found[about.name].append(row)
        return TailRows(dict(found), commits.left_out)

    async def oldest_ms(self, root: RootManifest | None) -> int | None:
        """When the oldest segment was written that a cut does not have; None if it has all."""
        found = [name for head in FOLDED_FROM for name in await self._unfolded(root, head)]
        keys = [key_of(self._lists.full(name)) for name in found]
        return min((key.segment.time_ms for key in keys if isinstance(key, SegmentKey)), default=None)

    async def _of_head(self, root: RootManifest | None, head: Head) -> Rows:
        names = await self._unfolded(root, head)
        found: Rows = defaultdict(list)
        for start in range(0, len(names), LEDGER_READS_MAX):
            keys = [self._lists.full(name) for name in names[start : start + LEDGER_READS_MAX]]
            for key, stored in zip(keys, await asyncio.gather(*map(self._heads.store.get, keys)), strict=True):
                if stored is not None:  # else it was folded and moved aside meanwhile: the next cut has it
                    await asyncio.to_thread(_add, found, head, key, stored.data)  # servers answer others meanwhile
        return found

    async def _unfolded(self, root: RootManifest | None, head: Head) -> list[str]:
        """The short names of the segments that a head has not consumed."""
        consumed = await self._lists.of(head, await self._manifest(root, head))
        return list((await self._finder.find(head, consumed, receipts=False)).segments)

    async def _manifest(self, root: RootManifest | None, head: Head) -> Manifest | None:
        link = next((one.manifest for one in (root.heads if root else ()) if one.head == head.value), None)
        return None if link is None else await self._heads.manifest(head, link)

    async def _of_commits(self, root: RootManifest | None, heads: Sequence[Head]) -> Found:
        """What became of tables that the ledger was not told of."""
        if self._commits is None:
            return Found()
        manifest = await self._manifest(root, Head.ICEBERG)
        consumed = await self._lists.of(Head.ICEBERG, manifest)
        return await self._commits.of(consumed, 0 if manifest is None else manifest.published_ms, heads)

    async def _of_names(self, heads: Sequence[Head]) -> Rows:
        """What became of names that the ledger was not told of."""
        found: Rows = defaultdict(list)
        owed = [head for head in heads if Domain.CATALOG in FOLDED_FROM[head]]
        if not owed:
            return found
        async for commits in (await self._names.untold()).groups():
            for draft in (draft for commit in commits for draft in name_events(commit)):
                fresh, position = draft.id or EventId(self._positions.next()), self._positions.next()
                event = seal(draft, self._heads.scope, fresh_id=fresh, position=position, now_ms=self._heads.clock.now_ms())
                for table, row in (one for head in owed for one in shred_for(head, event)):
                    found[table.name].append(row)
        return found

    async def _of_runs(self, runs: Iterable[RunId], heads: Sequence[Head]) -> Rows:
        """What runs did that the ledger may not say yet."""
        found: Rows = defaultdict(list)
        owed = {domain: head for head in heads for domain in FOLDED_FROM[head] if domain in _OWED_BY_RUNS}
        told = await outstanding(
            self._heads.store, self._heads.scope, runs, tuple(owed), self._heads.clock, self._heads.entropy
        )
        for event in told.happened:
            try:
                contributed = shred_for(owed[Domain(event.type.domain)], event)
            except (InvalidInput, UnknownFormat):
                continue  # the fold will refuse it and say so
            for table, row in contributed:
                found[table.name].append(row)
        return found


_OWED_BY_RUNS = (Domain.EXECUTION, Domain.QUALITY, Domain.LINEAGE)


def _add(found: Rows, head: Head, key: str, data: bytes) -> None:
    def take(contributed: Sequence[Contribution]) -> None:
        for table, row in contributed:
            found[table.name].append(row)

    shred_segment(head, key, data, take)

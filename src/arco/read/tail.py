"""What is not folded yet, as contributions: fresh reads add it to a cut and follow the same rules.

A cut is found together with the segments that it does not have (`unfolded.py`): a segment that is folded meanwhile is read here,
and joining it twice changes nothing. What runs have not told the ledger yet is read from their logs, what nobody has told of
names from the chain of their commits, and what nobody has told of tables from the receipts of theirs. Servers may read this;
browsers never do.
"""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from arco.catalog.name_events import name_events
from arco.catalog.untold import NameChain
from arco.fold.consumed import ConsumedLists
from arco.fold.contributions import Contribution
from arco.fold.heads import Heads, Standing
from arco.fold.manifests import Manifest, RootManifest
from arco.fold.receipt_events import ReceiptEvents
from arco.fold.segment_rows import shred_segment
from arco.fold.shredding import shred_for
from arco.fold.tables import FOLDED_FROM
from arco.fold.vocabulary import Row
from arco.kernel.errors import Busy, InvalidInput, UnknownFormat
from arco.kernel.ids import EventId, RunId
from arco.kernel.position import HybridClock
from arco.ledger.drafts import seal
from arco.ledger.outstanding import outstanding, run_ids
from arco.read.unannounced import Found, Unannounced
from arco.read.unfolded import Unfolded, on_steady_ground
from arco.storage.keys import Domain, Head, SegmentKey

Rows = dict[str, list[Row]]


@dataclass(frozen=True, slots=True)
class Tail:
    """The current cut, and where that lies which it does not have."""

    root: RootManifest | None
    segments: Mapping[Head, Sequence[SegmentKey]]
    runs: Sequence[RunId]
    names: Rows


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
        self._unfolded = Unfolded(heads, self._lists)
        self._commits = None if receipts is None else Unannounced(heads, self._lists, receipts)

    async def find(self) -> Tail:
        """The cut that counts now, and what it does not have."""
        # Before the ledger: what is told from now on is found in a run's log, after the mark of names, or in the ledger.
        runs, names = await asyncio.gather(run_ids(self._heads.store, self._heads.scope), self._of_names())
        # No segment is moved aside that the root does not say was consumed: it is enough to look at the root again.
        seen = await on_steady_ground(self._heads.read_root, self._segments, lambda one, other: one.link == other.link)
        if seen is None:
            raise Busy("events are folded and moved aside faster than they can be listed", hint="ask again after a pause")
        root, segments = seen
        return Tail(root.manifest, segments, runs, names)

    async def rows(self, tail: Tail, *, told: Collection[str] = frozenset()) -> TailRows:
        """Everything that a cut does not have, by the name of its table. `told` are runs whose end the cut has."""
        found: Rows = defaultdict(list)
        for table, some in tail.names.items():
            found[table] += some
        for rows in await asyncio.gather(*(self._of_head(head, keys) for head, keys in tail.segments.items())):
            for table, some in rows.items():
                found[table] += some
        for table, some in (await self._of_runs([run for run in tail.runs if run not in told])).items():
            found[table] += some
        commits = await self._of_commits(tail.root)
        for about, row in commits.rows:
            found[about.name].append(row)
        return TailRows(dict(found), commits.left_out)

    async def oldest_ms(self, root: RootManifest | None) -> int | None:
        """When the oldest segment was written that a cut does not have; None if it has all."""
        found = [
            key for head in FOLDED_FROM for key in await self._unfolded.segments(head, await self._manifest(root, head))
        ]
        return min((key.segment.time_ms for key in found), default=None)

    async def _segments(self, root: Standing[RootManifest]) -> dict[Head, list[SegmentKey]]:
        async def of(head: Head) -> list[SegmentKey]:
            return await self._unfolded.segments(head, await self._manifest(root.manifest, head))

        return dict(zip(FOLDED_FROM, await asyncio.gather(*map(of, FOLDED_FROM)), strict=True))

    async def _of_head(self, head: Head, keys: Sequence[SegmentKey]) -> Rows:
        found: Rows = defaultdict(list)

        def take(contributed: Sequence[Contribution]) -> None:
            for table, row in contributed:
                found[table.name].append(row)

        async for key, data in self._unfolded.read(keys):
            await asyncio.to_thread(shred_segment, head, str(key), data, take)  # servers answer others meanwhile
        return found

    async def _manifest(self, root: RootManifest | None, head: Head) -> Manifest | None:
        link = next((one.manifest for one in (root.heads if root else ()) if one.head == head.value), None)
        return None if link is None else await self._heads.manifest(head, link)

    async def _of_commits(self, root: RootManifest | None) -> Found:
        """What became of tables that the ledger was not told of."""
        if self._commits is None:
            return Found()
        manifest = await self._manifest(root, Head.ICEBERG)
        consumed = await self._lists.of(Head.ICEBERG, manifest)
        return await self._commits.of(consumed, 0 if manifest is None else manifest.published_ms, tuple(FOLDED_FROM))

    async def _of_names(self) -> Rows:
        """What became of names that the ledger was not told of."""
        found: Rows = defaultdict(list)
        owed = [head for head, domains in FOLDED_FROM.items() if Domain.CATALOG in domains]
        async for commits in (await self._names.untold()).groups():
            for draft in (draft for commit in commits for draft in name_events(commit)):
                fresh, position = draft.id or EventId(self._positions.next()), self._positions.next()
                event = seal(draft, self._heads.scope, fresh_id=fresh, position=position, now_ms=self._heads.clock.now_ms())
                for table, row in (one for head in owed for one in shred_for(head, event)):
                    found[table.name].append(row)
        return found

    async def _of_runs(self, runs: Iterable[RunId]) -> Rows:
        """What runs did that the ledger may not say yet."""
        found: Rows = defaultdict(list)
        owed = {domain: head for head, domains in FOLDED_FROM.items() for domain in domains if domain in _OWED_BY_RUNS}
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

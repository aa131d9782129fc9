"""One round of the fold for one head: from segments that nobody has folded to a published manifest.

  read the head → list → difference → fold into files of their own → dead letters → list of what was consumed → manifest → swing

Nothing counts before the swing, and the swing is conditional on exactly the head that was read: whoever dies, stalls or loses on
the way leaves objects that nobody names. Who loses reads and lists again, and publishes what it has if all of that still waits,
or folds the difference. A round without anything new costs the head and the listing.

What must never enter: how events become rows (`Work`), and deleting (`moving.py` takes away what it has copied).
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from arco.fold.consumed import Consumed, ConsumedLists, Loaded
from arco.fold.dead_letters import write_letters
from arco.fold.finding import Batches, Crowd, Finder, Found
from arco.fold.gaps import gaps_of, still_open
from arco.fold.heads import Heads, Standing
from arco.fold.manifests import FORMAT, Caps, Gap, Made, Manifest, TableState
from arco.fold.notifying import notify
from arco.fold.receipt_events import ReceiptEvents
from arco.fold.tables import FOLDED_FROM, tables_of
from arco.fold.work import Appended, Folded, StateFile, Work
from arco.kernel.crash_points import reach
from arco.kernel.errors import Conflict, Fenced, NotFound
from arco.kernel.ids import UlidSource
from arco.kernel.limits import (
    CONSUMED_LISTS_MAX,
    FOLD_CROWD_SEGMENTS_MAX,
    FOLD_GAPS_MAX,
    SWAP_ATTEMPTS_MAX,
    UPKEEP_GRACE_S,
)
from arco.ledger.segment_numbers import Ranges, united
from arco.storage.keys import Head
from arco.storage.readback import pause_s

Tell = Callable[[], Awaitable[Sequence[str]]]
"""Tells the ledger what tier 1 and dead deployers have not told it; the names of the segments that tier 1 took."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How a folder works. `listing` off: only what was notified is folded.

    Past `crowd_max` consumed segments that are older than `grace_s` the fold moves them aside (`moving.py`).
    """

    listing: bool = True
    crowd_max: int = FOLD_CROWD_SEGMENTS_MAX
    grace_s: float = UPKEEP_GRACE_S
    batches: Batches = field(default_factory=Batches)
    caps: Caps = field(default_factory=Caps)
    lists_max: int = CONSUMED_LISTS_MAX


@dataclass(frozen=True, slots=True)
class Round:
    """What one round came to. `segments` and `receipts` are those it consumed; `more`, whether it left some for the next.

    `unreadable` are receipts that say nothing: they are left where they are, and `arco verify` explains them. `crowd` is what was
    consumed earlier and lies there still.
    """

    standing: Standing[Manifest]
    segments: int = 0
    receipts: int = 0
    events: int = 0
    refused: int = 0
    more: bool = False
    unreadable: tuple[str, ...] = ()
    appended: tuple[Appended, ...] = ()
    crowd: Crowd = field(default_factory=Crowd)


@dataclass(frozen=True, slots=True)
class _Ready:
    """Files and a list that wait to be published."""

    folded: Folded
    consumed: Loaded
    segments: int
    receipts: int
    unreadable: tuple[str, ...]

    def still_waits(self, found: Found) -> bool:
        """Whether nobody has folded any of it. What is not listed any more was folded, moved aside and maybe forgotten."""
        return self.consumed.names <= found.segments.keys() | set(found.receipts)


class Folding:
    """Folds the heads of one workspace. Any number may run at the same time."""

    def __init__(
        self,
        heads: Heads,
        work: Work,
        settings: Settings | None = None,
        *,
        receipts: ReceiptEvents | None = None,
        tell: Tell | None = None,
    ) -> None:
        self.heads = heads
        self.work = work
        self.settings = settings or Settings()
        self.epoch: int | None = None
        """Of whoever has the turn to fold (`turns.py`). Without one, heads are swung with the epoch that they have."""
        self._receipts = receipts
        self._tell = tell
        store, scope, clock, entropy = heads.store, heads.scope, heads.clock, heads.entropy
        self.lists = ConsumedLists(store, scope, clock, entropy, lists_max=self.settings.lists_max)
        self._finder = Finder(store, scope, self.lists, clock, entropy, listing=self.settings.listing)
        self.ulids = UlidSource(clock, entropy)

    async def round(self, head: Head) -> Round:
        """Fold what is new, at most one batch of it."""
        ready: _Ready | None = None
        for attempt in range(SWAP_ATTEMPTS_MAX):
            if attempt:
                await self.heads.clock.sleep(pause_s(min(attempt, 6), self.heads.entropy))
            standing = await self.heads.read(head)
            self._need_turn(standing)
            consumed = await self.lists.of(head, standing.manifest)
            found = await self._finder.find(head, consumed, receipts=self._receipts is not None and head is Head.ICEBERG)
            if not found.segments and not found.receipts:
                told = await self._report_gaps(standing, consumed, found)
                if told is not None:
                    return Round(told, crowd=found.crowd(self.settings.grace_s))
                continue
            if ready is None or not ready.still_waits(found):
                ready = await self._prepare(head, found)
            if ready is None:
                continue
            published = await self._publish(standing, consumed, found, ready)
            if published is not None:
                return _round(published, found, ready, found.crowd(self.settings.grace_s))
        raise Conflict(f"the head {head} was swung by others {SWAP_ATTEMPTS_MAX} times in a row")

    def _need_turn(self, standing: Standing[Manifest]) -> None:
        """Its swing would be refused: the work before it need not be done."""
        if self.epoch is not None and standing.epoch > self.epoch:
            raise Fenced(f"the head {standing.head} has epoch {standing.epoch}, this folder only {self.epoch}")

    async def hear_names(self) -> None:
        """Begin with what was done to names and assets and nobody told the ledger. Who does not list is notified of it."""
        await self._say(await self._tell() if self._tell is not None else ())

    async def _say(self, segments: Sequence[str]) -> None:
        """Other heads read the same domain. Who does not list hears of what was written for them."""
        if segments and not self.settings.listing:
            await notify(self.heads.store, self.heads.scope, segments, self.heads.clock, self.heads.entropy)

    async def catch_up(self, head: Head) -> Round:
        """Rounds until nothing is left that was there when the last one looked."""
        done = await self.round(head)
        while done.more:
            done = _after(done, await self.round(head))
        return done

    async def _report_gaps(
        self, standing: Standing[Manifest], consumed: Consumed, found: Found
    ) -> Standing[Manifest] | None:
        """Nothing is new. Where only notified segments were folded before, this may be the first listing to see a gap."""
        before = standing.manifest
        if before is None or found.seen is None:
            return standing
        gaps = reported(gaps_of(consumed.writers))
        if (before.gaps, before.more_gaps) == (gaps["gaps"], gaps["more_gaps"]):
            return standing
        place = self.heads.place(standing, self.epoch)
        manifest = msgspec.structs.replace(before, made=Made.FOLD, added=None, **gaps, **place)
        return await self.heads.publish(standing, manifest)

    async def _prepare(self, head: Head, found: Found) -> _Ready | None:
        """Fold one batch. None: a segment is gone, so the head must have moved."""
        names, receipts = found.batch(self.settings.batches)
        told: list[str] = []
        if receipts and self._receipts is not None:
            # Durable before the receipts count as consumed: from now on the segments say everything that they said.
            announced = await self._receipts.append([self.lists.full(name) for name in receipts])
            told = [name for name in receipts if self.lists.full(name) in announced.receipts]
            names += map(self.lists.short, announced.segments)
            reach("fold.receipts_appended")
            await self._say(announced.segments)
        try:
            folded = await self.fold_segments(head, names)
        except NotFound:
            return None
        await self.write_letters(head, folded)
        loaded = await self.lists.add(head, [*names, *told], folded.writers)
        unreadable = tuple(name for name in receipts if name not in told)
        return _Ready(folded, loaded, len(names), len(told), unreadable)

    async def fold_segments(self, head: Head, names: Iterable[str]) -> Folded:
        folded = await self.work.fold(head, [self.lists.full(name) for name in names], self.ulids.next())
        reach("fold.folded")
        return folded

    async def write_letters(self, head: Head, folded: Folded) -> None:
        heads = self.heads
        await write_letters(heads.store, heads.scope, head, folded.refused, heads.clock, heads.entropy)
        reach("fold.letters_written")

    async def _publish(
        self, standing: Standing[Manifest], consumed: Consumed, found: Found, ready: _Ready
    ) -> Standing[Manifest] | None:
        refs = await self.lists.tidied(standing.head, consumed, found.seen)
        place = self.heads.place(standing, self.epoch)
        before = standing.manifest
        writers = joined_writers(consumed.writers, ready.consumed.writers)
        complete = found.seen is not None and found.segments.keys() <= ready.consumed.names
        gaps = gaps_of(writers) if complete else still_open(before.gaps if before else (), writers)
        manifest = Manifest(
            format=FORMAT,
            head=standing.head.value,
            made=Made.FOLD,
            tables=with_deltas(before.tables if before else (), ready.folded.files, place["published_ms"]),
            consumed=(*refs, ready.consumed.ref),
            added=ready.consumed.ref.list,
            caps=self.settings.caps,
            whole=whole_of(before) if before else all_tables(standing.head),
            **counts(before, ready.folded),
            **reported(gaps),
            **place,
        )
        return await self.heads.publish(standing, manifest)


def _round(published: Standing[Manifest], found: Found, ready: _Ready, crowd: Crowd) -> Round:
    known = ready.consumed.names | set(ready.unreadable)
    return Round(
        published,
        ready.segments,
        ready.receipts,
        ready.folded.events,
        len(ready.folded.refused),
        more=bool(found.segments.keys() - known or set(found.receipts) - known),
        unreadable=ready.unreadable,
        appended=ready.folded.appended,
        crowd=crowd,
    )


def _after(before: Round, done: Round) -> Round:
    """Two rounds as one."""
    return replace(
        done,
        segments=before.segments + done.segments,
        receipts=before.receipts + done.receipts,
        events=before.events + done.events,
        refused=before.refused + done.refused,
        unreadable=tuple(dict.fromkeys((*before.unreadable, *done.unreadable))),
        appended=(*before.appended, *done.appended),
    )


def with_deltas(tables: Iterable[TableState], files: Iterable[StateFile], published_ms: int) -> tuple[TableState, ...]:
    """The tables with some more deltas."""
    known = {one.table: one for one in tables}
    for file in files:
        table = known.get(file.table, TableState(table=file.table))
        since_ms = published_ms if table.deltas_since_ms is None else table.deltas_since_ms
        known[file.table] = msgspec.structs.replace(table, deltas=(*table.deltas, file), deltas_since_ms=since_ms)
    return tuple(known[name] for name in sorted(known))


def all_tables(head: Head) -> tuple[str, ...]:
    """The tables that a head has every event in that is folded from its first one on."""
    return tuple(table.whole_as for table in tables_of(head))


def whole_of(manifest: Manifest) -> tuple[str, ...]:
    """The tables that have every event of a head. One without a file has lost nothing to an earlier edition of its key."""
    empty = {table.name: table.whole_as for table in tables_of(Head(manifest.head)) if not manifest.table(table.name).files}
    return tuple(empty.get(name, name) for name in manifest.whole)


def counts(before: Manifest | None, folded: Folded) -> dict[str, Any]:
    """What a manifest says of events, with some more of them."""
    unknown = sum(one.unknown for one in folded.refused)
    positions = [*_positions(folded.files), *((before.first_position, before.last_position) if before else ())]
    present = [one for one in positions if one is not None]
    return {
        "events": folded.events + (before.events if before else 0),
        "refused": len(folded.refused) - unknown + (before.refused if before else 0),
        "set_aside": unknown + (before.set_aside if before else 0),
        "beside_plans": sum(one.beside_plans for one in folded.refused) + (before.beside_plans if before else 0),
        "first_position": min(present, default=None),
        "last_position": max(present, default=None),
    }


def reported(gaps: list[Gap]) -> dict[str, Any]:
    return {"gaps": tuple(gaps[:FOLD_GAPS_MAX]), "more_gaps": max(0, len(gaps) - FOLD_GAPS_MAX)}


def joined_writers(*several: dict[str, Ranges]) -> dict[str, Ranges]:
    names = {writer for one in several for writer in one}
    return {writer: united(one.get(writer, ()) for one in several) for writer in names}


def _positions(files: Iterable[StateFile]) -> Iterable[str | None]:
    for file in files:
        yield file.first_position
        yield file.last_position


ALL_HEADS: tuple[Head, ...] = tuple(FOLDED_FROM)

"""Rebuilding a head from the ledger: the same folding, of all segments or of those since a manifest, into a new base.

What others publish meanwhile is not lost: after the head is read, everything that it may have consumed is listed, and what is
new there is folded on top; only then is exactly that head replaced. Who loses goes on with the difference.

The ledger is listed before the archive. A segment that is moved in between is copied before it is taken away, so it is found in
one of the two; the other way round it might be found in neither.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from arco.fold.consumed import Loaded
from arco.fold.finding import key_of
from arco.fold.folding import Folding, all_tables, joined_writers, reported, with_deltas
from arco.fold.gaps import gaps_of
from arco.fold.heads import Standing
from arco.fold.manifests import FORMAT, Link, ListRef, Made, Manifest, TableState
from arco.fold.tables import FOLDED_FROM
from arco.fold.work import Folded, StateFile
from arco.kernel.crash_points import reach
from arco.kernel.errors import AskOperator, Conflict, InvalidInput, NotFound
from arco.kernel.ids import SegmentId
from arco.kernel.limits import CONSUMED_LIST_NAMES_MAX, SWAP_ATTEMPTS_MAX
from arco.ledger.segment_numbers import Ranges, ranges_of
from arco.storage.keys import ArchivedSegmentKey, Domain, Head, SegmentKey, prefix_of
from arco.storage.paging import walk
from arco.storage.readback import pause_s

_HEADS_AT_ONCE = 2


@dataclass(slots=True)
class _Sources:
    """Where every segment lies, by its id: in the ledger, in the archive, or in both."""

    ledger: dict[SegmentId, tuple[str, int]] = field(default_factory=dict)
    archive: dict[SegmentId, tuple[str, int]] = field(default_factory=dict)

    def where(self, segment: SegmentId) -> tuple[str, int]:
        return self.ledger.get(segment) or self.archive[segment]


@dataclass(slots=True)
class _Built:
    """What was folded so far, on top of what it started from. It is kept through lost swings."""

    start: Manifest | None = None
    base: tuple[StateFile, ...] = ()
    deltas: tuple[StateFile, ...] = ()
    done: set[SegmentId] = field(default_factory=set)
    writers: dict[str, Ranges] = field(default_factory=dict)
    events: int = 0
    refused: int = 0
    set_aside: int = 0
    beside_plans: int = 0

    def add(self, segments: Iterable[SegmentId], folded: Folded) -> None:
        self.done.update(segments)
        self.deltas += folded.files
        numbers: dict[str, list[int]] = {}
        for writer, number in folded.writers:
            numbers.setdefault(writer, []).append(number)
        self.writers = joined_writers(self.writers, {one: ranges_of(some) for one, some in numbers.items()})
        unknown = sum(one.unknown for one in folded.refused)
        self.events += folded.events
        self.refused += len(folded.refused) - unknown
        self.set_aside += unknown
        self.beside_plans += sum(one.beside_plans for one in folded.refused)


async def rebuild_several(
    folding: Folding, heads: Iterable[Head], since: Mapping[Head, Link] | None = None
) -> list[Standing[Manifest]]:
    """Publish heads anew, some at a time: where one has work for a single core, another uses the rest.

    The first that fails ends the others; what was published by then counts.
    """
    places, start = asyncio.Semaphore(_HEADS_AT_ONCE), since or {}

    async def rebuilt(head: Head) -> Standing[Manifest]:
        async with places:
            return await rebuild(folding, head, start.get(head))

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(rebuilt(head)) for head in heads]
    except BaseExceptionGroup as several:
        raise several.exceptions[0] from None
    return [task.result() for task in tasks]


async def rebuild(folding: Folding, head: Head, since: Link | None = None) -> Standing[Manifest]:
    """Publish the head anew, from every segment there is, or from a manifest of its chain and what was consumed after it."""
    heads = folding.heads
    built: _Built | None = None
    for attempt in range(SWAP_ATTEMPTS_MAX):
        if attempt:
            await heads.clock.sleep(pause_s(min(attempt, 6), heads.entropy))
        standing = await heads.read_to_replace(head)
        sources = await _sources(folding, head)
        built = built or await _begin(folding, head, since)
        try:
            await _fold_rest(folding, head, sources, built)
        except NotFound:
            continue  # moved aside since it was listed
        published = await heads.publish(standing, await _manifest(folding, standing, sources, built))
        if published is not None:
            return published
    raise Conflict(f"the head {head} was swung by others {SWAP_ATTEMPTS_MAX} times in a row")


async def _sources(folding: Folding, head: Head) -> _Sources:
    found = _Sources()
    for domain in FOLDED_FROM[head]:
        found.ledger |= await _listed(folding, "ledger", domain)
        found.archive |= await _listed(folding, "archive", domain)
    return found


async def _listed(folding: Folding, place: str, domain: Domain) -> dict[SegmentId, tuple[str, int]]:
    found, heads = {}, folding.heads
    async for entry in walk(heads.store, prefix_of(heads.scope, "_catalog", place, domain.value)):
        key = key_of(entry.key)
        if isinstance(key, SegmentKey | ArchivedSegmentKey):
            found[key.segment] = (entry.key, entry.size_bytes)
    return found


async def _begin(folding: Folding, head: Head, since: Link | None) -> _Built:
    if since is None:
        return _Built()
    start = await folding.heads.manifest(head, since)
    lists = await folding.lists.load(head, start.consumed)
    return _Built(
        start,
        done=_segments(lists) | await _forgotten(folding, head, since),
        writers=joined_writers(*(one.writers for one in lists)),
        events=start.events,
        refused=start.refused,
        set_aside=start.set_aside,
        beside_plans=start.beside_plans,
    )


async def _forgotten(folding: Folding, head: Head, since: Link) -> set[SegmentId]:
    """Archived segments that a manifest had consumed and its lists no longer name: all that later manifests did not add.

    The archive is listed before the head is read: what lies there was consumed by that head. Past a rebuild nobody can tell,
    because it consumes everything again: then nothing is taken for consumed, and joins make that harmless.
    """
    aside: set[SegmentId] = set()
    for domain in FOLDED_FROM[head]:
        aside |= (await _listed(folding, "archive", domain)).keys()
    standing = await folding.heads.read(head)
    later: list[ListRef] = []
    current, link = standing.manifest, standing.link
    while link != since:
        if current is None or current.previous is None:
            raise InvalidInput(f"{since.snapshot} is not in the chain of {head}", hint="name a manifest that counted")
        if current.made is Made.REBUILD:
            return set()
        later += [ref for ref in current.consumed if ref.list == current.added]
        link = current.previous
        current = await folding.heads.manifest(head, link)
    return aside - _segments(await folding.lists.load(head, later))


def _segments(lists: Iterable[Loaded]) -> set[SegmentId]:
    names = (name for one in lists for name in one.names if name.startswith("ledger/"))
    return {SegmentId(name.rpartition("/")[2].removesuffix(".jsonl")) for name in names}


async def _fold_rest(folding: Folding, head: Head, sources: _Sources, built: _Built) -> None:
    """Fold what was not folded yet, batch by batch, oldest first. The first time, the batches become one base."""
    begins = built.start is None and not built.base
    waiting = sorted((sources.ledger.keys() | sources.archive.keys()) - built.done)
    while waiting:
        some = _batch(folding, waiting, sources)
        folded = await folding.work.fold(head, [sources.where(one)[0] for one in some], folding.ulids.next())
        await folding.write_letters(head, folded)
        built.add(some, folded)
        reach("fold.rebuilt")
        waiting = waiting[len(some) :]
    if begins and built.deltas:
        built.base = await _joined(folding, head, built.deltas)
        built.deltas = ()


async def _joined(folding: Folding, head: Head, deltas: tuple[StateFile, ...]) -> tuple[StateFile, ...]:
    """Deltas as a base, which has every key once: tables with several files are merged, the others are there already."""
    count = Counter(file.table for file in deltas)
    several = [file for file in deltas if count[file.table] > 1]
    merged = await folding.work.merge(head, several, folding.ulids.next()) if several else ()
    return (*(file for file in deltas if count[file.table] == 1), *merged)


def _batch(folding: Folding, waiting: Sequence[SegmentId], sources: _Sources) -> Sequence[SegmentId]:
    limits, size_bytes = folding.settings.batches, 0
    for count, segment in enumerate(waiting):
        size_bytes += sources.where(segment)[1]
        if count and (count >= limits.segments or size_bytes > limits.bytes):
            return waiting[:count]
    return waiting


async def _manifest(folding: Folding, standing: Standing[Manifest], sources: _Sources, built: _Built) -> Manifest:
    """The manifest of a rebuild: new files, and everything that still lies in the ledger is consumed."""
    head, before = standing.head, standing.manifest
    place = folding.heads.place(standing, folding.epoch)
    start = built.start
    tables = with_deltas(start.tables if start else _as_base(built.base), built.deltas, place["published_ms"])
    names = [folding.lists.short(key) for key, _ in sources.ledger.values()]
    # Receipts are not read again: their events are in segments. Those that were announced stay so.
    names += await _announced(folding, head, before)
    files = (*built.base, *built.deltas)
    spans = [(file.first_position, file.last_position) for file in files]
    spans += [(start.first_position, start.last_position)] if start else []
    positions = [one for span in spans for one in span if one is not None]
    return Manifest(
        format=FORMAT,
        head=head.value,
        made=Made.REBUILD,
        tables=tables,
        consumed=await _lists(folding, head, sorted(names), built.writers),
        events=built.events,
        refused=built.refused,
        set_aside=built.set_aside,
        beside_plans=built.beside_plans,
        first_position=min(positions, default=None),
        last_position=max(positions, default=None),
        caps=folding.settings.caps,
        whole=start.whole if start else all_tables(head),
        **reported(gaps_of(built.writers)),
        **place,
    )


async def _announced(folding: Folding, head: Head, before: Manifest | None) -> list[str]:
    """Receipts that were announced. Where nobody can tell, they are announced again, under the same ids."""
    try:
        consumed = await folding.lists.of(head, before)
    except AskOperator:
        return []
    return [name for name in consumed.names() if name.startswith("events/")]


def _as_base(files: Iterable[StateFile]) -> tuple[TableState, ...]:
    known: dict[str, TableState] = {}
    for file in files:
        table = known.get(file.table, TableState(table=file.table))
        known[file.table] = msgspec.structs.replace(table, base=(*table.base, file))
    return tuple(known[name] for name in sorted(known))


async def _lists(folding: Folding, head: Head, names: list[str], writers: dict[str, Ranges]) -> tuple[ListRef, ...]:
    """The names in lists of bounded size; the numbers of writers go into the first."""
    pieces = [names[at : at + CONSUMED_LIST_NAMES_MAX] for at in range(0, len(names), CONSUMED_LIST_NAMES_MAX)] or [[]]
    written = [await folding.lists.write(head, piece, writers if not place else {}) for place, piece in enumerate(pieces)]
    return tuple(one.ref for one in written)

"""What a head has consumed: the names of segments and receipts, in immutable lists that its manifest names.

The failure this prevents (hazard 4), in order:
  1. a folder remembers the newest segment it has folded, and looks only for newer ones
  2. a writer whose clock is behind, or whose reply was lost, stores a segment with an older name
  3. nobody ever folds it
So there is no watermark. A round adds one list; when there are many, small ones are merged into one. A name is forgotten in a
merge when a listing that was begun after the head was read does not show it: its segment was moved aside, and whoever lists
from now on does not find it either (PROTOCOLS F3). The numbers of writers' segments are kept: without them every moved
segment would look lost.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from arco.fold.manifests import ListRef, Manifest
from arco.kernel.clock import Clock
from arco.kernel.crash_points import reach
from arco.kernel.entropy import Entropy
from arco.kernel.errors import BrokenInvariant, CorruptObject, OutcomeUnknown, UnknownFormat
from arco.kernel.fingerprint import content_hash
from arco.kernel.ids import ConsumedListId, UlidSource
from arco.kernel.limits import CONSUMED_LIST_NAMES_MAX, CONSUMED_LISTS_MAX, FOLD_NAME_ATTEMPTS_MAX, FOLD_READS_MAX
from arco.kernel.scope import Scope
from arco.ledger.segment_numbers import Ranges, ranges_of, united
from arco.storage.keys import ConsumedKey, Head, prefix_of
from arco.storage.port import Absent, Landed, Lost, ObjectStore, Unknown
from arco.storage.readback import put_settled

FORMAT = "arco.fold_consumed"
FORMAT_VERSION = 1
_WRITTEN_MAX = 16


class WriterNumbers(msgspec.Struct, frozen=True, kw_only=True):
    """Which segments of one writer were consumed: ranges of their numbers, both ends included."""

    writer_id: str
    ranges: tuple[tuple[int, int], ...]


class ConsumedList(msgspec.Struct, frozen=True, kw_only=True):
    """Some of what a head has consumed. Names are those of objects, from `_catalog/` on."""

    format: str = FORMAT
    format_version: int = FORMAT_VERSION
    head: str
    list: str
    names: tuple[str, ...]
    writers: tuple[WriterNumbers, ...] = ()


@dataclass(frozen=True, slots=True)
class Loaded:
    """A list in memory."""

    ref: ListRef
    names: frozenset[str]
    writers: dict[str, Ranges]


@dataclass(frozen=True, slots=True)
class Consumed:
    """Everything that the lists of one manifest say."""

    lists: tuple[Loaded, ...] = ()
    writers: dict[str, Ranges] = field(default_factory=dict)

    def __contains__(self, name: str) -> bool:
        return any(name in one.names for one in self.lists)

    def names(self) -> set[str]:
        return set().union(*(one.names for one in self.lists))


class ConsumedLists:
    """The lists of one workspace. They never change, so those of the newest manifest of each head are remembered."""

    def __init__(
        self, store: ObjectStore, scope: Scope, clock: Clock, entropy: Entropy, *, lists_max: int = CONSUMED_LISTS_MAX
    ) -> None:
        self._store = store
        self._scope = scope
        self._clock = clock
        self._entropy = entropy
        self._lists_max = lists_max
        self._ulids = UlidSource(clock, entropy)
        self._remembered: dict[Head, Consumed] = {}
        self._written: dict[str, Loaded] = {}
        self._folder = prefix_of(scope, "_catalog")

    def short(self, key: str) -> str:
        """An object's name as lists spell it."""
        return key.removeprefix(self._folder)

    def full(self, name: str) -> str:
        return f"{self._folder}{name}"

    async def of(self, head: Head, manifest: Manifest | None) -> Consumed:
        """What a manifest says was consumed. Costs a request for each list that is new to this process."""
        refs = () if manifest is None else manifest.consumed
        known = self._remembered.get(head)
        if known is None or tuple(one.ref for one in known.lists) != refs:
            lists = await self.load(head, refs)
            known = self._remembered[head] = Consumed(lists, _writers(lists))
        return known

    async def load(self, head: Head, refs: Sequence[ListRef]) -> tuple[Loaded, ...]:
        """Lists by what names them, in that order."""
        found = self._written | {one.ref.list: one for one in self._remembered.get(head, Consumed()).lists}
        missing = [ref for ref in refs if ref.list not in found]
        for start in range(0, len(missing), FOLD_READS_MAX):
            some = missing[start : start + FOLD_READS_MAX]
            for one in await asyncio.gather(*(self._read(head, ref) for ref in some)):
                found[one.ref.list] = one
        return tuple(found[ref.list] for ref in refs)

    async def _read(self, head: Head, ref: ListRef) -> Loaded:
        key = self.key(head, ref.list)
        stored = await self._store.get(key)
        if stored is None:
            raise CorruptObject(f"{key} is gone, and a manifest names it", hint="rebuild the head, or restore the object")
        return _loaded(ref, decode_list(stored.data, ref, key))

    async def add(self, head: Head, names: Iterable[str], writers: Iterable[tuple[str, int]]) -> Loaded:
        """Write the list of one round."""
        numbers: dict[str, list[int]] = {}
        for writer, number in writers:
            numbers.setdefault(writer, []).append(number)
        return await self.write(head, names, {writer: ranges_of(some) for writer, some in numbers.items()})

    async def write(self, head: Head, names: Iterable[str], writers: dict[str, Ranges]) -> Loaded:
        kept = tuple(WriterNumbers(writer_id=one, ranges=writers[one]) for one in sorted(writers))
        for _ in range(FOLD_NAME_ATTEMPTS_MAX):
            made = ConsumedList(head=head.value, list=self._ulids.next(), names=tuple(sorted(names)), writers=kept)
            key, data = self.key(head, made.list), msgspec.json.encode(made, enc_hook=str, order="deterministic")
            outcome = await put_settled(self._store, key, data, Absent(), clock=self._clock, entropy=self._entropy)
            match outcome:
                case Landed():
                    reach("fold.list_written")
                    ref = ListRef(list=made.list, checksum=content_hash(data), names=len(made.names))
                    return self._remember(_loaded(ref, made))
                case Unknown(reason):
                    raise OutcomeUnknown(f"{key} may be stored: {reason}", hint="run the fold again: it counts for nothing")
                case Lost():
                    continue
        raise BrokenInvariant(
            f"{FOLD_NAME_ATTEMPTS_MAX} new names in a row for a list of {head} were taken",
            hint="check the machine's clock and its source of randomness",
        )

    async def tidied(self, head: Head, consumed: Consumed, seen: set[str] | None) -> tuple[ListRef, ...]:
        """The lists for the next manifest. Where there are many, the small ones and the dead become one.

        `seen` are the consumed names that a complete listing after the head still shows; None if there was no such listing.
        """
        refs = tuple(one.ref for one in consumed.lists)
        if len(refs) < self._lists_max:
            return refs
        chosen = _worth_merging(consumed.lists, seen, self._lists_max)
        if len(chosen) < 2:
            return refs
        names = set().union(*(one.names for one in chosen))
        if seen is not None:
            names &= seen
        merged = await self.write(head, names, _writers(chosen))
        gone = {one.ref.list for one in chosen}
        return (merged.ref, *(ref for ref in refs if ref.list not in gone))

    def _remember(self, loaded: Loaded) -> Loaded:
        """A list that was just written: most likely the next manifest names it."""
        self._written[loaded.ref.list] = loaded
        while len(self._written) > _WRITTEN_MAX:
            self._written.pop(next(iter(self._written)))
        return loaded

    def key(self, head: Head, list_id: str) -> str:
        """Where a list lies."""
        return str(ConsumedKey(self._scope, head, ConsumedListId(list_id)))


def decode_list(data: bytes, ref: ListRef, key: str) -> ConsumedList:
    if content_hash(data) != ref.checksum:
        raise CorruptObject(f"{key} is not what was written: its checksum does not fit")
    try:
        found = msgspec.json.decode(data, type=ConsumedList)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CorruptObject(f"{key} is no list of what was consumed: {error}") from error
    if (found.format, found.format_version) != (FORMAT, FORMAT_VERSION):
        raise UnknownFormat(f"{key} is {found.format} version {found.format_version}")
    return found


def _loaded(ref: ListRef, one: ConsumedList) -> Loaded:
    return Loaded(ref, frozenset(one.names), {writer.writer_id: writer.ranges for writer in one.writers})


def _writers(lists: Iterable[Loaded]) -> dict[str, Ranges]:
    found: dict[str, list[Ranges]] = {}
    for one in lists:
        for writer, ranges in one.writers.items():
            found.setdefault(writer, []).append(ranges)
    return {writer: several[0] if len(several) == 1 else united(several) for writer, several in found.items()}


def _worth_merging(lists: Sequence[Loaded], seen: set[str] | None, lists_max: int) -> list[Loaded]:
    """The smallest lists, by what is left of them, until half of what is allowed remains."""
    left = {one.ref.list: len(one.names if seen is None else one.names & seen) for one in lists}
    chosen: list[Loaded] = []
    total = 0
    for one in sorted(lists, key=lambda some: left[some.ref.list]):
        total += left[one.ref.list]
        if total > CONSUMED_LIST_NAMES_MAX or (left[one.ref.list] and len(lists) - len(chosen) < lists_max // 2):
            break
        chosen.append(one)
    return chosen

"""What there is to fold: the difference between what lies in the ledger and what a head has consumed.

The head is read first, and what lies there is listed after it (PROTOCOLS F1). The other way round, a segment may be listed,
then consumed by another folder, moved aside and forgotten, and only then the head is read: it would be folded again.

A listing takes all days, because a late segment may have any name. Where listing is off, only segments and receipts that were
notified are looked at, each asked for by name.
"""

from dataclasses import dataclass, field

from arco.fold.consumed import Consumed, ConsumedLists
from arco.fold.notifying import hinted
from arco.fold.tables import FOLDED_FROM
from arco.kernel.clock import Clock
from arco.kernel.entropy import Entropy
from arco.kernel.errors import InvalidInput
from arco.kernel.limits import FOLD_BATCH_BYTES_MAX, FOLD_BATCH_RECEIPTS_MAX, FOLD_BATCH_SEGMENTS_MAX
from arco.kernel.scope import Scope
from arco.storage.keys import Domain, Head, Key, Phase, ReceiptKey, SegmentKey, parse, prefix_of
from arco.storage.paging import walk
from arco.storage.port import ObjectStore

_LEDGER = "ledger/"
_PENDING = f"/iceberg/{Phase.PENDING.value}/"


@dataclass(frozen=True, slots=True)
class Batches:
    """How much one round takes."""

    segments: int = FOLD_BATCH_SEGMENTS_MAX
    bytes: int = FOLD_BATCH_BYTES_MAX
    receipts: int = FOLD_BATCH_RECEIPTS_MAX


@dataclass(frozen=True, slots=True)
class Crowd:
    """Segments that were consumed and lie in the ledger still, of those written before a moment of the store's own clock."""

    segments: int = 0
    before_ms: int = 0


@dataclass(slots=True)
class Found:
    """What a look at the ledger showed. Names are short, as lists spell them.

    `seen` are consumed names that are still there; None if the look was no complete listing. `consumed_ms` is when each segment
    among them was written, `newest_ms` when anything was.
    """

    segments: dict[str, int] = field(default_factory=dict)
    receipts: list[str] = field(default_factory=list)
    seen: set[str] | None = None
    consumed_ms: list[int] = field(default_factory=list)
    newest_ms: int = 0

    def crowd(self, grace_s: float) -> Crowd:
        before_ms = self.newest_ms - int(grace_s * 1000)
        return Crowd(sum(one < before_ms for one in self.consumed_ms), before_ms)

    def batch(self, limits: Batches) -> tuple[list[str], list[str]]:
        """The oldest segments and receipts, as many as one round takes; at least one of each that there is."""
        chosen: list[str] = []
        size_bytes = 0
        for name, its_bytes in self.segments.items():
            size_bytes += its_bytes
            if chosen and (len(chosen) >= limits.segments or size_bytes > limits.bytes):
                break
            chosen.append(name)
        return chosen, self.receipts[: limits.receipts]


class Finder:
    """Looks for what a head has not consumed."""

    def __init__(
        self, store: ObjectStore, scope: Scope, lists: ConsumedLists, clock: Clock, entropy: Entropy, *, listing: bool
    ) -> None:
        self._store = store
        self._scope = scope
        self._lists = lists
        self._clock = clock
        self._entropy = entropy
        self._listing = listing

    async def find(self, head: Head, consumed: Consumed, *, receipts: bool) -> Found:
        """Look now; what was consumed must have been read before."""
        if not self._listing:
            return await self._notified(head, consumed, receipts=receipts)
        found = Found(seen=set())
        for domain in FOLDED_FROM[head]:
            await self._list(prefix_of(self._scope, "_catalog", "ledger", domain.value), consumed, found)
        if receipts:
            await self._list(prefix_of(self._scope, "_catalog", "events"), consumed, found)
        return found

    async def _list(self, prefix: str, consumed: Consumed, found: Found) -> None:
        async for entry in walk(self._store, prefix):
            if _PENDING in entry.key:
                continue  # there are as many of these as commits: none is worth reading its name
            name = self._lists.short(entry.key)
            found.newest_ms = max(found.newest_ms, entry.modified_ms)
            if name in consumed:
                if found.seen is not None:
                    found.seen.add(name)
                if name.startswith(_LEDGER):
                    found.consumed_ms.append(entry.modified_ms)
                continue
            match key_of(entry.key):
                case SegmentKey():
                    found.segments[name] = entry.size_bytes
                case ReceiptKey(phase=Phase.COMMITTED):
                    found.receipts.append(name)
                case _:
                    continue

    async def _notified(self, head: Head, consumed: Consumed, *, receipts: bool) -> Found:
        found = Found()
        for domain in FOLDED_FROM[head]:
            for name in await self._unconsumed_hints(domain, consumed):
                # It may have been moved aside and forgotten, or not be there yet.
                is_receipt = isinstance(key_of(self._lists.full(name)), ReceiptKey)
                info = None if is_receipt and not receipts else await self._store.head(self._lists.full(name))
                if info is not None and is_receipt:
                    found.receipts.append(name)
                elif info is not None:
                    found.segments[name] = info.size_bytes
        return found

    async def _unconsumed_hints(self, domain: Domain, consumed: Consumed) -> list[str]:
        keys = await hinted(self._store, self._scope, domain, self._clock, self._entropy)
        return [name for name in map(self._lists.short, keys) if name not in consumed]


def key_of(name: str) -> Key | None:
    """The key of a name; None for what is none of ours."""
    try:
        return parse(name)
    except InvalidInput:
        return None

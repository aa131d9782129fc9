"""Commits of tables that nobody has announced in the ledger yet, as contributions: fresh reads see them before the fold does.

Their receipts are read by the same rules as the fold reads them, and nothing is written. The cost is bounded: receipts are looked
for from the day before the fold last published on, at most some hundred newest of them, and what a receipt says is remembered,
since receipts never change. One that is written later than that is missed here, and found by the fold, which looks everywhere.
"""

from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass

from arco.fold.consumed import Consumed, ConsumedLists
from arco.fold.contributions import Contribution
from arco.fold.finding import key_of
from arco.fold.heads import Heads
from arco.fold.receipt_events import ReceiptEvents
from arco.fold.shredding import shred_for
from arco.fold.tables import FOLDED_FROM
from arco.kernel.clock import utc_date
from arco.kernel.errors import InvalidInput, UnknownFormat
from arco.kernel.limits import FRESH_RECEIPTS_MAX
from arco.storage.keys import Domain, Head, Phase, ReceiptKey, prefix_of
from arco.storage.paging import walk

_DAY_MS = 86_400_000
_ABOUT_COMMITS = tuple(head for head, domains in FOLDED_FROM.items() if Domain.ICEBERG in domains)


@dataclass(frozen=True, slots=True)
class Found:
    """What commits contribute. `left_out` is how many older ones were not looked at."""

    rows: tuple[Contribution, ...] = ()
    left_out: int = 0


class Unannounced:
    """The unannounced commits of one workspace."""

    def __init__(self, heads: Heads, lists: ConsumedLists, receipts: ReceiptEvents) -> None:
        self._heads = heads
        self._lists = lists
        self._receipts = receipts
        self._known: OrderedDict[str, tuple[tuple[Head, Contribution], ...]] = OrderedDict()

    async def of(self, consumed: Consumed, folded_ms: int, heads: Sequence[Head]) -> Found:
        """Of receipts that a head has not consumed which was published at `folded_ms`; 0: of all."""
        names, left_out = await self._names(consumed, folded_ms)
        new = [name for name in names if name not in self._known]
        for name, event in await self._receipts.events(new):
            contributed = []
            for head in _ABOUT_COMMITS:
                try:
                    contributed += [(head, one) for one in shred_for(head, event)]
                except (InvalidInput, UnknownFormat):
                    continue  # the fold will refuse it and say so
            self._known[name] = tuple(contributed)
        rows = tuple(one for name in names for head, one in self._known.get(name, ()) if head in heads)
        while len(self._known) > FRESH_RECEIPTS_MAX:
            self._known.popitem(last=False)
        return Found(rows, left_out)

    async def _names(self, consumed: Consumed, folded_ms: int) -> tuple[list[str], int]:
        prefix = prefix_of(self._heads.scope, "_catalog", "events")
        since = f"{prefix}{utc_date(max(0, folded_ms - _DAY_MS))}" if folded_ms else ""
        # Names begin with the day: the last ones are the newest.
        found: deque[str] = deque(maxlen=FRESH_RECEIPTS_MAX)
        seen = 0
        async for entry in walk(self._heads.store, prefix, since):
            key = key_of(entry.key)
            if (
                isinstance(key, ReceiptKey)
                and key.phase is Phase.COMMITTED
                and self._lists.short(entry.key) not in consumed
            ):
                found.append(entry.key)
                seen += 1
        return list(found), seen - len(found)

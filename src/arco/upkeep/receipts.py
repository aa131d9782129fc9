"""Receipts that nobody needs any more.

    pending     of a commit that was only about to happen: after a day
    committed   once they are folded and older than any marker that could ask for them; after 90 days in any case

Where somebody follows the feed of events, none goes before it is in the feed. Those of a table's last swing stay: the next swing
looks for them. They go in the order in which they were written, so that below the first that is left none is missing (`arco
verify --deep` would call it a gap). A receipt that is written again, by a server that loaded its table before, is folded under
the same event id, told by the feed no second time, and goes again; a commit too old to be told from one that never happened is
said to be unknown (`catalog/history.py`).
"""

import asyncio
import heapq
from collections.abc import AsyncIterator, Sequence

from arco.catalog.feed import Feed
from arco.fold.consumed import Consumed
from arco.kernel.errors import AskOperator
from arco.kernel.limits import (
    COMMITTED_RECEIPT_S,
    IDEMPOTENCY_LIFETIME_S,
    MARKER_GRACE_S,
    PENDING_RECEIPT_S,
    UPKEEP_CLOCKS_S,
    UPKEEP_DELETES_MAX,
    UPKEEP_RECEIPTS_MAX,
)
from arco.ledger.receipts import Receipt, decode_receipt
from arco.storage.keys import Head, Phase, ReceiptKey, prefix_of
from arco.storage.port import Listed
from arco.upkeep.sweep import STRANGE, Sweep

_PENDING_S = PENDING_RECEIPT_S + UPKEEP_CLOCKS_S
_FOLDED_S = IDEMPOTENCY_LIFETIME_S + MARKER_GRACE_S + UPKEEP_CLOCKS_S
_WAITS = "not folded yet"


async def collect(sweep: Sweep) -> None:
    # What was consumed is read before the listing: what is listed and consumed stays consumed.
    consumed = Consumed()
    with sweep.apart(kept="what was folded is not known"):
        consumed = await sweep.lists.of(Head.ICEBERG, (await sweep.heads.read(Head.ICEBERG)).manifest)
    told: frozenset[str] | None = frozenset()
    with sweep.apart(kept="what is in the feed of events is not known"):
        told = await _told(sweep)
    oldest_first = await _committed(sweep)
    tables = _Tables(sweep, told)
    for start in range(0, len(oldest_first), UPKEEP_DELETES_MAX):
        group = oldest_first[start : start + UPKEEP_DELETES_MAX]
        async for entry, receipt in _read(sweep, [Listed(key, size, at_ms) for at_ms, key, size in group]):
            folded = sweep.lists.short(entry.key) in consumed
            if await tables.may_go(entry, receipt, folded=folded):
                await sweep.remove(
                    entry, "folded, and older than any marker that could ask for it" if folded else "90 days old"
                )


async def _told(sweep: Sweep) -> frozenset[str] | None:
    """Receipts that are in the feed of events, brought up to date; None if nobody has ever asked for one.

    A dry run has told nothing, and says what is so once everything is.
    """
    feed = Feed(sweep.parts)
    if not (await feed.fed()).number or sweep.dry_run:
        return None
    await feed.refresh()
    folder = prefix_of(sweep.scope, "_catalog", "events")
    return frozenset(f"{folder}{name}" for name in (await feed.fed()).receipts)


async def _committed(sweep: Sweep) -> list[tuple[int, str, int]]:
    """Committed receipts that are old enough to be looked at, the oldest first; pending ones go at once."""
    chosen: list[tuple[int, str, int]] = []
    async for entry, key in sweep.walk("events"):
        if not isinstance(key, ReceiptKey):
            sweep.keep(STRANGE)
        elif key.phase is Phase.PENDING:
            if sweep.is_older(entry, _PENDING_S):
                await sweep.remove(entry, "its commit happened or never will")
            else:
                sweep.keep("its commit may be under way")
        elif not sweep.is_older(entry, _FOLDED_S):
            sweep.keep("a marker may still ask for it")
        else:
            # Newest out first, so that the oldest stay within the bound.
            heapq.heappush(chosen, (-entry.modified_ms, entry.key, entry.size_bytes))
            if len(chosen) > UPKEEP_RECEIPTS_MAX:
                heapq.heappop(chosen)
                sweep.keep("the next pass looks at it")
    return sorted((-at_ms, key, size) for at_ms, key, size in chosen)


async def _read(sweep: Sweep, entries: Sequence[Listed]) -> AsyncIterator[tuple[Listed, Receipt]]:
    found = await asyncio.gather(*(sweep.store.get(entry.key) for entry in entries))
    for entry, one in zip(entries, found, strict=True):
        if one is None:
            continue
        receipt = sweep.decoded(decode_receipt, one.data, entry.key)
        if receipt is not None:
            yield entry, receipt


class _Tables:
    """What is known of the tables whose receipts were met."""

    def __init__(self, sweep: Sweep, told: frozenset[str] | None) -> None:
        self._sweep = sweep
        self._told = told
        self._last: dict[str, frozenset[str]] = {}
        self._blocked: set[str] = set()

    async def may_go(self, entry: Listed, receipt: Receipt, *, folded: bool) -> bool:
        uuid = receipt.table_uuid
        if not folded and not self._sweep.is_older(entry, COMMITTED_RECEIPT_S):
            self._blocked.add(uuid)
            self._sweep.keep(_WAITS)
            return False
        if self._told is not None and entry.key not in self._told:
            self._blocked.add(uuid)
            self._sweep.keep("not in the feed of events yet")
            return False
        if uuid in self._blocked:
            self._sweep.keep("an older one of its table has to stay")
            return False
        if uuid not in self._last:
            self._last[uuid] = await self._last_swing(uuid)
        if entry.key in self._last[uuid]:
            self._sweep.keep("of its table's last swing")
            return False
        return True

    async def _last_swing(self, uuid: str) -> frozenset[str]:
        """The receipts that the next swing of a table looks for."""
        parts = self._sweep.parts
        try:
            pointer = await parts.pointers.read(uuid)
        except AskOperator as error:
            self._sweep.tell(error)
            self._blocked.add(uuid)
            return frozenset()
        return frozenset() if pointer is None else frozenset(parts.receipts.name(one) for one in pointer.value.published)

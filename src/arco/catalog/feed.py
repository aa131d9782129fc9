"""The feed of events: what became of names and tables, in one order that is decided once and for all.

The failure this prevents, in order:
  1. a reader follows receipts by their date, or by their names, and remembers how far it came
  2. a slow process writes the receipt of a commit that happened before: behind the reader
  3. the reader never sees it
So nobody follows receipts. A look finds those that are in no page yet, and the commits of tier 1 after the last page, arranges
them (`feed_order.py`) and writes them as the next page (`feed_pages.py`), if nobody else has. A reader's cursor is a place in the
pages: behind it everything is settled, before it nothing was shown.

    pages of others → receipts there are → names → what the records of transactions say → page

Receipts are complete below the head of each table (invariant R), and a look lists them before it reads the names: so what a
commit needs before it is there to be found. Where it was not, the look is repeated over all dates, and after that a commit whose
predecessor is not there has none: it was collected before the feed began.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace

from arco.catalog.feed_events import Callings, Document, events_of_commits, events_of_names, is_told_by_its_name, mentioned
from arco.catalog.feed_order import (
    Found,
    Item,
    Together,
    arranged,
    by_number,
    completed,
    gaps_after,
    incomplete,
    is_gap,
    is_past,
    unmade,
)
from arco.catalog.feed_pages import Fed, FeedPage, FeedPages, size_of
from arco.catalog.manifest import Commit
from arco.catalog.past_names import forgotten, pasts_of
from arco.catalog.transaction_records import Part, Record, Status
from arco.catalog.untold import Mark, NameChain, Untold
from arco.catalog.workspace import Workspace
from arco.iceberg import metadata_file
from arco.iceberg.differences import table_updates, view_updates
from arco.kernel.clock import utc_date
from arco.kernel.crash_points import reach
from arco.kernel.errors import (
    ArcoError,
    AskOperator,
    CorruptObject,
    FixRequest,
    InvalidInput,
    OutcomeUnknown,
    UnknownFormat,
)
from arco.kernel.kept import Kept
from arco.kernel.limits import (
    FEED_CHECKPOINT_PAGES_MAX,
    FEED_FULL_LOOK_S,
    FEED_LIST_S,
    FEED_LOOK_COMMITS_MAX,
    FEED_PAGE_BYTES_MAX,
    FEED_PAGE_EVENTS_MAX,
    FEED_PAGES_REMEMBERED_BYTES_MAX,
    FEED_PAGES_REMEMBERED_MAX,
    FEED_READS_MAX,
    FEED_REQUEST_UPDATES_BYTES_MAX,
    FEED_ROUNDS_MAX,
    FEED_UPDATES_BYTES_MAX,
    FOLD_READS_MAX,
)
from arco.ledger.receipts import Receipt, decode_receipt
from arco.storage.cas import Held
from arco.storage.keys import Phase, prefix_of
from arco.storage.paging import walk
from arco.storage.port import Landed, Lost

log = logging.getLogger("arco.feed")
_DAY_MS = 86_400_000
_COMMITTED = f"/iceberg/{Phase.COMMITTED.value}/"


class Feed:
    """The feed of one workspace, as one process reads and writes it."""

    def __init__(self, workspace: Workspace) -> None:
        self._ws = workspace
        self._store = workspace.tier1.store
        self._folder = prefix_of(workspace.scope, "_catalog", "events")
        self._pages = FeedPages(self._store, workspace.scope, workspace.clock, workspace.entropy)
        self._chain = NameChain(self._store, workspace.scope, workspace.clock, workspace.entropy)
        self._fed: Fed | None = None
        self._read: dict[str, Receipt] = {}
        self._unreadable: set[str] = set()
        """Transactions whose records are damaged, or of a later version: they wait, and what comes after them."""
        self._remembered: Kept[int, FeedPage] = Kept(
            bytes_max=FEED_PAGES_REMEMBERED_BYTES_MAX, things_max=FEED_PAGES_REMEMBERED_MAX
        )
        self._full_look_s: float | None = None
        self._listed_s: float | None = None
        self._untold: Untold | None = None
        self._walked_from = 0
        self._lock = asyncio.Lock()
        self._looks = 0

    # Reading

    async def page(self, number: int) -> FeedPage | None:
        """A page; None if there is none of this number."""
        known = self._remembered.get(number)
        if known is not None:
            return known
        found = await self._pages.read(number)
        return None if found is None else self._remember(found)

    def _remember(self, page: FeedPage) -> FeedPage:
        self._remembered.put(page.number, page, size_of(page.events))
        return page

    async def refresh(self) -> None:
        """A look that began after this call. Who asks while one is under way shares the next with all others."""
        seen = self._looks
        async with self._lock:
            if self._looks == seen:
                self._looks += 1
                await self._look()

    async def fed(self) -> Fed:
        """What the feed holds now."""
        if self._fed is None:
            self._fed = await self._pages.opened()
        await self._pages.read_on(self._fed)
        return self._fed

    # Looking

    async def _look(self) -> None:
        """Write what is new. Not all of it, if there is very much: who reads that far looks again."""
        for _ in range(FEED_ROUNDS_MAX):
            fed = await self.fed()
            found, is_all = await self._find(fed)
            written = await self._write(fed, arranged(found, fed.tables))
            if written is not None and is_all:
                return

    async def _find(self, fed: Fed) -> tuple[Found, bool]:
        """What is in no page yet, and whether that is all.

        A table that a transaction made is told by its first receipt. Others may have written that since we looked, and what
        became of its name is there at once: so we look again.
        """
        found, is_all = await self._found(fed, full=self._full_look_is_due())
        made = unmade(found, fed.tables) if is_all else set()
        if not made:
            return found, is_all
        await self._ensure_last(made)
        self._listed_s = None
        return await self._found(fed, full=False)

    async def _found(self, fed: Fed, *, full: bool) -> tuple[Found, bool]:
        receipts = await self._news(fed, full=full)
        found = Found((), receipts, parts=await self._parts(receipts, full=full))
        if not self._is_whole(found, fed):
            receipts = completed(found, await self._complete(found, fed), self._unreadable)
            again = await self._news(fed, full=True)
            found = Found((), again, frozenset(receipts), await self._parts(again, full=True))
        # After the receipts: what made a table that has commits is among the names then.
        names, is_all = await self._names_after(fed.names)
        # Tables whose making is still to come may have commits already: names first.
        return (replace(found, names=names) if is_all else Found(names, {})), is_all

    def _full_look_is_due(self) -> bool:
        return self._full_look_s is None or self._ws.clock.monotonic_s() - self._full_look_s >= FEED_FULL_LOOK_S

    def _is_whole(self, found: Found, fed: Fed) -> bool:
        """Whether nothing of what was found waits for something that was not."""
        there, some = by_number(found.receipts), found.receipts.values()
        gaps = any(is_gap(one, there, fed.tables) for one in some)
        transactions = {one.commit.transaction for one in some if one.commit.transaction is not None}
        return not gaps and transactions <= found.parts.keys() | self._unreadable and not incomplete(found)

    async def _news(self, fed: Fed, *, full: bool) -> dict[str, Receipt]:
        """Receipts that nobody was told of. One that was written again counts as told, so that upkeep collects it again."""
        found = await self._receipts(await self._listed(fed, full=full))
        past = {name for name, one in found.items() if is_past(one, fed.tables, fed.gaps)}
        fed.receipts |= past
        return {name: one for name, one in found.items() if name not in past}

    async def _listed(self, fed: Fed, *, full: bool) -> list[str]:
        """Committed receipts that are in no page: of these days, or of all. Between two listings, those of this process.

        A look that did not list is as one whose listing missed them: what waits for one of those has them listed.
        """
        known, begun_s = frozenset(fed.receipts), self._ws.clock.monotonic_s()
        there = self._written()
        if not full and self._listed_s is not None and begun_s - self._listed_s < FEED_LIST_S:
            return sorted(there.difference(fed.receipts))
        for folder in [self._folder] if full else self._these_days():
            async for entry in walk(self._store, folder):
                if _COMMITTED in entry.key:
                    there.add(entry.key.removeprefix(self._folder))
        if full:
            # What was told and is not there any more needs no name: should it be written again, its number is known.
            fed.receipts -= known - there
            self._full_look_s = begun_s
        self._listed_s = begun_s
        return sorted(there - fed.receipts)

    def _written(self) -> set[str]:
        return {name.removeprefix(self._folder) for name in self._ws.receipts.written}

    def _these_days(self) -> list[str]:
        """Where receipts are expected. Clocks differ, and midnight passes."""
        now_ms = self._ws.clock.now_ms()
        days = (utc_date(now_ms + days * _DAY_MS) for days in (-1, 0, 1))
        return [f"{self._folder}{day}{_COMMITTED}" for day in days]

    async def _receipts(self, names: Sequence[str]) -> dict[str, Receipt]:
        """Receipts by name. One that cannot be read is left for who can, and told of."""
        self._read = {name: self._read[name] for name in names if name in self._read}
        unread = [name for name in names if name not in self._read]
        for start in range(0, len(unread), FOLD_READS_MAX):
            some = unread[start : start + FOLD_READS_MAX]
            objects = await asyncio.gather(*(self._store.get(f"{self._folder}{name}") for name in some))
            for name, one in zip(some, objects, strict=True):
                try:
                    if one is not None:
                        self._read[name] = decode_receipt(one.data, name)
                except AskOperator as error:
                    _tell(error)
        return dict(self._read)

    async def _names_after(self, mark: Mark) -> tuple[list[Commit], bool]:
        """Commits of tier 1 that are in no page, oldest first; and whether these are all of them."""
        await self._ws.tier1.current()
        manifest = await self._chain.manifest()
        if manifest is None:
            return [], True
        if self._untold is None or self._untold.version != manifest.version or mark.sequence < self._walked_from:
            self._walked_from = mark.sequence
            self._untold = Untold(self._store, self._ws.scope, manifest, mark, commits_max=FEED_LOOK_COMMITS_MAX)
        commits = await self._untold.after(mark.sequence)
        last = commits[-1].sequence if commits else mark.sequence
        return commits, last == manifest.value.sequence

    async def _parts(self, receipts: dict[str, Receipt], *, full: bool) -> dict[str, frozenset[Part] | None]:
        """What the records of the transactions say, of those that were found."""
        wanted = sorted({one.commit.transaction for one in receipts.values() if one.commit.transaction is not None})
        records = await asyncio.gather(*map(self._record, wanted))
        parts: dict[str, frozenset[Part] | None] = {}
        self._unreadable = set()
        for transaction, held in zip(wanted, records, strict=True):
            if isinstance(held, ArcoError):
                _tell(held)
                self._unreadable.add(transaction)
            elif held is not None and held.value.status is Status.COMMITTED:
                parts[transaction] = held.value.changes
            elif held is None and full:
                # A record goes long after its receipts were written: all of them were found.
                parts[transaction] = None
        return parts

    async def _record(self, transaction: str) -> Held[Record] | ArcoError | None:
        try:
            return await self._ws.records.read(transaction)
        except (CorruptObject, InvalidInput, UnknownFormat) as error:
            return error

    async def _complete(self, found: Found, fed: Fed) -> set[str]:
        """Write the receipts that a dead process left unwritten and others wait for: of parts of transactions, of groups. The
        tables of which that cannot be done.

        Those of a group are written side by side, so a commit may have its receipt before the one that it stands behind. Both are
        of their table's last swing then, and the pointer says all of them.
        """
        there = by_number(found.receipts)
        tables = {part.table_uuid for parts in incomplete(found).values() for part in parts}
        tables |= {one.table_uuid for one in found.receipts.values() if is_gap(one, there, fed.tables)}
        return await self._ensure_last(tables)

    async def _ensure_last(self, tables: set[str]) -> set[str]:
        """The receipts of the last swings of some tables. Returns the tables whose pointers cannot be read."""
        unsure: set[str] = set()
        for uuid in sorted(tables):
            try:
                pointer = await self._ws.pointers.read(uuid)
            except (CorruptObject, UnknownFormat) as error:
                _tell(error)
                unsure.add(uuid)
                continue
            if pointer is not None:
                await self._ws.receipts.ensure_published(pointer.value)
        return unsure

    # Writing

    async def _write(self, fed: Fed, items: Sequence[Item]) -> int | None:
        """Write what was found; how many pages that were. None if somebody else wrote first, and all is to be found anew."""
        names, written, size_bytes = await self._callings(fed, items), 0, 0
        pending: list[Item] = []
        events: list[Document] = []
        for place, item in enumerate(items):
            pending.append(item)
            said = await self._events(item, names)
            events += said
            size_bytes += size_of(said)
            is_full = len(events) >= FEED_PAGE_EVENTS_MAX or size_bytes >= FEED_PAGE_BYTES_MAX
            is_last = place == len(items) - 1
            # What nobody is told of can wait for something that somebody is.
            if is_full or len(pending) >= FEED_LOOK_COMMITS_MAX or (is_last and events):
                if not await self._append(fed, pending, events):
                    return None
                pending, events, written, size_bytes = [], [], written + 1, 0
        return written

    async def _callings(self, fed: Fed, items: Sequence[Item]) -> Callings:
        tier1 = self._ws.tier1
        told_of = mentioned(item if isinstance(item, Commit) else item.receipts for item in items)
        unsure = forgotten([item for item in items if isinstance(item, Commit)], told_of, tier1.names)
        return Callings(tier1.names, await pasts_of(tier1, unsure, fed.names.sequence))

    async def _append(self, fed: Fed, items: Sequence[Item], events: Sequence[Document]) -> bool:
        page = self._page_of(fed, items, events)
        match await self._pages.append(page):
            case Landed():
                fed.take(self._remember(page))
                reach("feed.page_written")
                if page.number % FEED_CHECKPOINT_PAGES_MAX == 0:
                    await self._pages.write_checkpoint(fed)
                return True
            case Lost():
                return False
            case unknown:
                raise OutcomeUnknown(f"page {page.number} of the feed could not be written: {unknown.reason}")

    def _page_of(self, fed: Fed, items: Sequence[Item], events: Sequence[Document]) -> FeedPage:
        commits = [item for item in items if isinstance(item, Commit)]
        told = [one for item in items if isinstance(item, Together) for one in item.receipts]
        tables: dict[str, int] = {}
        for one in told:
            before = max(tables.get(one.table_uuid, -1), fed.tables.get(one.table_uuid, -1))
            tables[one.table_uuid] = max(one.commit.commit_number, before)
        return FeedPage(
            number=fed.number + 1,
            at_ms=self._ws.clock.now_ms(),
            names=Mark(commits[-1].sequence, commits[-1].id) if commits else fed.names,
            receipts=tuple(sorted(self._ws.receipts.name(one.commit).removeprefix(self._folder) for one in told)),
            tables=tables,
            gaps=gaps_after(told, fed.tables, fed.gaps),
            events=tuple(events),
        )

    async def _events(self, item: Item, names: Callings) -> list[Document]:
        if isinstance(item, Commit):
            return events_of_names(item, names)
        changed = [one for one in item.receipts if not is_told_by_its_name(one)]
        updates: dict[str, list[Document]] = {}
        left_bytes = FEED_REQUEST_UPDATES_BYTES_MAX
        # Some at a time: each reads two metadata files.
        for start in range(0, len(changed), FEED_READS_MAX):
            some = changed[start : start + FEED_READS_MAX]
            for one, said in zip(some, await asyncio.gather(*map(self._updates, some)), strict=True):
                left_bytes -= size_of(said)
                updates[one.commit_key] = said if left_bytes >= 0 else []
        return events_of_commits(item.receipts, names, updates)

    async def _updates(self, receipt: Receipt) -> list[Document]:
        """What a commit changed. Nothing, if a file is gone, or if it is more than an event should carry."""
        commit = receipt.commit
        after = await self._document(commit.metadata_location)
        before = (
            {} if commit.previous_metadata_location is None else await self._document(commit.previous_metadata_location)
        )
        if after is None or before is None:
            return []
        try:
            said = (view_updates if "view-uuid" in after else table_updates)(before, after)
        except (AttributeError, KeyError, TypeError):
            return []
        return said if size_of(said) <= FEED_UPDATES_BYTES_MAX else []

    async def _document(self, location: str) -> Document | None:
        try:
            data = await self._ws.files.find(location)
            found = None if data is None else metadata_file.from_bytes(data, location)
        except (AskOperator, FixRequest):
            return None
        return found if isinstance(found, dict) else None


def _tell(error: ArcoError) -> None:
    """To whoever can mend it. The feed goes on without it."""
    log.error("%s: %s", error.code, error.one_line())

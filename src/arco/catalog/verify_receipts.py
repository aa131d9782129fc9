"""All committed receipts: one for every commit below each table's head, each once, none beyond it.

Invariant R makes them complete below the head, and so the feed of events. Upkeep may take old ones away, from the oldest on:
what is missing below the first that is there is no gap. One that it took away may be written again, by a server that loaded the
table long before: it is not the first.
"""

import asyncio
from collections import Counter, defaultdict

from arco.catalog.catalog import Catalog
from arco.catalog.model import Entry
from arco.catalog.pointer import Pointer
from arco.catalog.spelling import spelled
from arco.kernel.errors import AskOperator, InvalidInput
from arco.kernel.limits import UPKEEP_GRACE_S, VERIFY_READ_AHEAD_MAX
from arco.ledger.receipts import Published, Receipt, SourceKind, decode_receipt
from arco.storage.findings import Progress, Report, way_out
from arco.storage.keys import Phase, ReceiptKey, parse, prefix_of
from arco.storage.paging import walk

_RESTORE = "restore it from a backup or a copy of the root"
_LOST = (
    "run arco verify --repair, which writes those that can be derived, and restore the others from a backup or a copy of the "
    "root; readers of the feed of events have not seen these commits"
)


class ReceiptCheck:
    """One look at the receipts of a workspace, against pointers that were read before."""

    def __init__(self, catalog: Catalog, report: Report, progress: Progress) -> None:
        self._ws = catalog.parts
        self._report = report
        self._progress = progress
        self._found: dict[str, list[Published]] = defaultdict(list)
        self._written_ms: dict[str, dict[int, int]] = defaultdict(dict)

    async def check(self, entries: list[Entry], pointers: dict[str, Pointer]) -> None:
        await self._read_all()
        for entry in entries:
            pointer = pointers.get(entry.uuid)
            if pointer is not None:
                await self._check_table(entry, pointer, self._found.get(entry.uuid, []))

    async def _read_all(self) -> None:
        folder = prefix_of(self._ws.scope, "_catalog", "events")
        keys = [one.key async for one in walk(self._ws.tier1.store, folder) if _is_committed(one.key)]
        for start in range(0, len(keys), VERIFY_READ_AHEAD_MAX):
            group = keys[start : start + VERIFY_READ_AHEAD_MAX]
            found = await asyncio.gather(*(self._ws.tier1.store.get(key) for key in group))
            for one in found:
                if one is not None:
                    self._take(one.info.key, one.info.modified_ms, one.data)
            self._progress("receipts", start + len(group), len(keys))
        self._report.count("receipts", len(keys))

    def _take(self, key: str, written_ms: int, data: bytes) -> None:
        try:
            receipt = decode_receipt(data, key)
        except AskOperator as error:
            self._report.find("receipt_unreadable", key, error.message, way_out(error, _RESTORE))
            return
        if not self._is_named_right(receipt, key):
            what = f"receipt {key} does not say what its name says"
            self._report.find("receipt_altered", key, what, _RESTORE)
            return
        self._found[receipt.table_uuid].append(receipt.commit)
        self._written_ms[receipt.table_uuid][receipt.commit.commit_number] = written_ms

    def _is_named_right(self, receipt: Receipt, key: str) -> bool:
        try:
            return self._ws.receipts.name(receipt.commit) == key
        except InvalidInput:
            return False

    async def _check_table(self, entry: Entry, pointer: Pointer, found: list[Published]) -> None:
        called = spelled(entry.namespace, entry.name)
        for number, times in sorted(_forks(found).items()):
            what = f"{times} commits of {called} have number {number} and the same base"
            self._report.find("commit_twice", called, what, "report this with the receipts: a commit happened twice")
        numbers = {commit.commit_number for commit in found}
        first = _first(self._written_ms.get(entry.uuid, {}))
        missing = [number for number in range(first, pointer.commit_number) if number not in numbers]
        if numbers and missing:
            what = f"the receipts of commits {_ranges(missing)} of {called} are missing"
            self._report.find("receipt_gap", called, what, _LOST)
        if numbers and max(numbers) > pointer.commit_number:
            await self._check_ahead(entry.uuid, called, max(numbers))

    async def _check_ahead(self, uuid: str, called: str, number: int) -> None:
        """Receipts beyond the head: commits that landed while we were reading, or a pointer that was set back."""
        pointer = await self._ws.pointers.read(uuid)
        if pointer is None or pointer.value.commit_number < number:
            at = "missing" if pointer is None else f"at commit {pointer.value.commit_number}"
            what = f"{called} has a receipt of commit {number}, and its pointer is {at}"
            todo = "its pointer was set back: restore it from a newer backup; commits after it are not visible"
            self._report.find("pointer_set_back", called, what, todo)


def _first(written_ms: dict[int, int]) -> int:
    """The number from which on none may be missing.

    A receipt is there before those of later commits are (invariant R): one that came more than a day after any of them was
    collected and written again. A copy of a root is made within the day.
    """
    first, earliest_ms = 0, None
    for number in sorted(written_ms, reverse=True):
        if earliest_ms is None or written_ms[number] <= earliest_ms + UPKEEP_GRACE_S * 1000:
            first = number
        earliest_ms = written_ms[number] if earliest_ms is None else min(earliest_ms, written_ms[number])
    return first


def _forks(commits: list[Published]) -> dict[int, int]:
    """Numbers that several commits on one base have. A table that is registered anew counts from its beginning."""
    made = [commit for commit in commits if commit.source.kind != SourceKind.REGISTER]
    bases = Counter((commit.commit_number, commit.previous_metadata_location) for commit in made)
    return {number: times for (number, _), times in bases.items() if times > 1}


def _is_committed(key: str) -> bool:
    try:
        parsed = parse(key)
    except InvalidInput:
        return False
    return isinstance(parsed, ReceiptKey) and parsed.phase is Phase.COMMITTED


def _ranges(numbers: list[int]) -> str:
    """Numbers that follow each other as one: 3, 5 to 8."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and spans[-1][-1] == number - 1:
            spans[-1] = [spans[-1][0], number]
        else:
            spans.append([number])
    return ", ".join(str(span[0]) if len(span) == 1 else f"{span[0]} to {span[1]}" for span in spans)

"""`verify --repair`: what can be made again from what is there, and nothing else. Nothing is ever guessed, and nothing deleted.

    state       files of the last checkpoint, from a chain of commits that is whole
    under way   drops, restores and registrations whose writer died
    receipts    of a table's last swing, from its pointer; below it, from what was written just before each commit, if the table's
                own history names that commit

What is not here cannot be derived: a commit of the chain, a pointer, a metadata file, a manifest or a data file.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import msgspec

from arco.catalog.catalog import Catalog
from arco.catalog.checkpoint import write_base
from arco.catalog.model import Entry, Format, Kind
from arco.catalog.pointer import Pointer
from arco.catalog.spelling import spelled
from arco.catalog.standing import in_step
from arco.catalog.verify_chain import Chain, replayed
from arco.catalog.verify_state import load_state
from arco.kernel.errors import ArcoError, AskOperator, CorruptObject, NoSuchTable, NoSuchView
from arco.kernel.limits import UPKEEP_HISTORY_READS_MAX
from arco.ledger.receipts import Published, decode_receipt
from arco.storage.findings import Report, nobody
from arco.storage.keys import Phase, prefix_of
from arco.storage.paging import walk


class Repairs(msgspec.Struct, frozen=True):
    """What was made again, in words, and what could not be."""

    done: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


class _Work:
    """What came of it so far. What is wrong with one table keeps no other from being repaired, and is told once."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self._failed: dict[str, None] = {}

    @property
    def repairs(self) -> Repairs:
        return Repairs(tuple(self.done), tuple(self._failed))

    @contextmanager
    def apart(self, entry: Entry | None = None) -> Iterator[None]:
        try:
            yield
        except ArcoError as error:
            called = "" if entry is None else f"{spelled(entry.namespace, entry.name)}: "
            self._failed[called + error.one_line()] = None


async def repair(catalog: Catalog) -> Repairs:
    """Make again what can be. Others may write meanwhile: each step holds only for what it looked at."""
    work = _Work()
    for step in (_state, _under_way, _last_receipts, _receipts_below):
        with work.apart():
            await step(catalog, work)
    return work.repairs


async def _state(catalog: Catalog, work: _Work) -> None:
    tier1 = catalog.parts.tier1
    held = await tier1.head.read()
    if held is None or await load_state(tier1.store, held.value, Report()) is not None:
        return
    found = Report()
    commits = await Chain(tier1.store, catalog.parts.scope, held.value, found, nobody).walk()
    rebuilt = None if commits is None else replayed(commits, found, nobody)
    if rebuilt is None or not found.clean:
        raise CorruptObject("the state is damaged and the chain of commits is not whole: it cannot be made again")
    await write_base(tier1, held, rebuilt, catalog.parts.clock, catalog.parts.entropy)
    work.done.append(f"the state of {held.value.sequence:,} commits was made again from their chain")


def _live(catalog: Catalog) -> list[Entry]:
    return [one for one in catalog.parts.tier1.names.entries.values() if one.format is Format.ICEBERG]


async def _under_way(catalog: Catalog, work: _Work) -> None:
    await catalog.parts.tier1.current()
    for entry in _live(catalog):
        with work.apart(entry):
            await _finish(catalog, entry, work)


async def _finish(catalog: Catalog, entry: Entry, work: _Work) -> None:
    pointer = await catalog.parts.pointers.read(entry.uuid)
    if (pointer is None and entry.start is None) or in_step(entry, pointer):
        return
    relations: Any = catalog.views if entry.kind is Kind.VIEW else catalog.tables
    with suppress(NoSuchTable, NoSuchView):  # it was a drop
        await relations.load(entry.namespace, entry.name)
    work.done.append(f"what was begun with {spelled(entry.namespace, entry.name)} was finished")


async def _last_receipts(catalog: Catalog, work: _Work) -> None:
    receipts = catalog.parts.receipts
    for entry in _live(catalog):
        with work.apart(entry):
            pointer = await catalog.parts.pointers.read(entry.uuid)
            published = () if pointer is None else pointer.value.published
            absent = [one for one in published if await receipts.committed(one) is None]
            if pointer is not None and absent:
                await receipts.ensure_published(pointer.value)
                numbers = ", ".join(str(one.commit_number) for one in absent)
                work.done.append(f"the receipt of commit {numbers} of {spelled(entry.namespace, entry.name)} was written")


async def _receipts_below(catalog: Catalog, work: _Work) -> None:
    """Gaps below a table's last swing."""
    numbers: dict[str, set[int]] = defaultdict(set)
    pending: dict[tuple[str, int], list[Published]] = defaultdict(list)
    store = catalog.parts.tier1.store
    async for listed in walk(store, prefix_of(catalog.parts.scope, "_catalog", "events")):
        found = await store.get(listed.key)
        if found is None:
            continue
        try:
            receipt = decode_receipt(found.data, listed.key)
        except AskOperator:
            continue
        if receipt.phase is Phase.PENDING:
            pending[receipt.table_uuid, receipt.commit.commit_number].append(receipt.commit)
        else:
            numbers[receipt.table_uuid].add(receipt.commit.commit_number)
    for entry in _live(catalog):
        with work.apart(entry):
            await _fill(catalog, entry, numbers[entry.uuid], pending, work)


async def _fill(
    catalog: Catalog,
    entry: Entry,
    numbers: Collection[int],
    pending: Mapping[tuple[str, int], Sequence[Published]],
    work: _Work,
) -> None:
    """The gaps of one table, of which receipts of these numbers are there."""
    pointer = await catalog.parts.pointers.read(entry.uuid)
    if pointer is None or not numbers:
        return
    missing = [one for one in range(min(numbers), pointer.value.commit_number) if one not in numbers]
    history = await _history(catalog, entry, pointer.value) if missing else {}
    for number in missing:
        for commit in pending.get((entry.uuid, number), ()):
            # Attempts of one request share a file, and what a later one had computed itself, perhaps a day later, never counted.
            if commit.metadata_location in history and history[commit.metadata_location] in {commit.at_ms, None}:
                await catalog.parts.receipts.ensure(Phase.COMMITTED, entry.uuid, commit)
                work.done.append(f"the receipt of commit {number} of {spelled(entry.namespace, entry.name)} was written")


async def _history(catalog: Catalog, entry: Entry, pointer: Pointer) -> dict[str, int | None]:
    """The metadata files that a table's own logs name, as far back as they can be followed, each with its time if they say it."""
    subject: Any = catalog.views.subject if entry.kind is Kind.VIEW else catalog.tables.subject
    named = (pointer.metadata_location, pointer.previous_metadata_location)
    known: dict[str, int | None] = {one: None for one in named if one is not None}
    location = pointer.metadata_location
    for _ in range(UPKEEP_HISTORY_READS_MAX):
        data = await catalog.parts.files.fetch(location)
        log = () if data is None else subject.facts(subject.decode(data, location)).metadata_log
        if not log or log[0]["metadata-file"] == location:
            break
        known.update((one["metadata-file"], one["timestamp-ms"]) for one in log)
        location = log[0]["metadata-file"]
    return known

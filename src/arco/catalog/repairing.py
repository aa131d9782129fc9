"""`verify --repair`: what can be made again from what is there, and nothing else. Nothing is ever guessed, and nothing deleted.

    state       files of the last checkpoint, from a chain of commits that is whole
    under way   drops, restores and registrations whose writer died
    receipts    of a table's last swing, from its pointer; below it, from what was written just before each commit, if the table's
                own history names that commit

What is not here cannot be derived: a commit of the chain, a pointer, a metadata file, a manifest or a data file.
"""

from collections import defaultdict
from contextlib import suppress
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
from arco.kernel.errors import ArcoError, AskOperator, CorruptObject, NotFound
from arco.kernel.limits import UPKEEP_HISTORY_READS_MAX
from arco.ledger.receipts import Published, decode_receipt
from arco.storage.findings import Report, nobody
from arco.storage.keys import Phase, prefix_of
from arco.storage.paging import walk


class Repairs(msgspec.Struct, frozen=True):
    """What was made again, in words, and what could not be."""

    done: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


async def repair(catalog: Catalog) -> Repairs:
    """Make again what can be. Others may write meanwhile: each step holds only for what it looked at."""
    done: list[str] = []
    failed: list[str] = []
    for step in (_state, _under_way, _last_receipts, _receipts_below):
        try:
            done += await step(catalog)
        except ArcoError as error:
            failed.append(error.one_line())
    return Repairs(tuple(done), tuple(failed))


async def _state(catalog: Catalog) -> list[str]:
    tier1 = catalog.parts.tier1
    held = await tier1.head.read()
    if held is None or await load_state(tier1.store, held.value, Report()) is not None:
        return []
    found = Report()
    commits = await Chain(tier1.store, catalog.parts.scope, held.value, found, nobody).walk()
    rebuilt = None if commits is None else replayed(commits, found, nobody)
    if rebuilt is None or not found.clean:
        raise CorruptObject("the state is damaged and the chain of commits is not whole: it cannot be made again")
    await write_base(tier1, held, rebuilt, catalog.parts.clock, catalog.parts.entropy)
    return [f"the state of {held.value.sequence:,} commits was made again from their chain"]


def _live(catalog: Catalog) -> list[Entry]:
    return [one for one in catalog.parts.tier1.names.entries.values() if one.format is Format.ICEBERG]


async def _under_way(catalog: Catalog) -> list[str]:
    await catalog.parts.tier1.current()
    done = []
    for entry in _live(catalog):
        pointer = await catalog.parts.pointers.read(entry.uuid)
        if (pointer is None and entry.start is None) or in_step(entry, pointer):
            continue
        relations: Any = catalog.views if entry.kind is Kind.VIEW else catalog.tables
        with suppress(NotFound):  # it was a drop
            await relations.load(entry.namespace, entry.name)
        done.append(f"what was begun with {spelled(entry.namespace, entry.name)} was finished")
    return done


async def _last_receipts(catalog: Catalog) -> list[str]:
    done = []
    for entry in _live(catalog):
        pointer = await catalog.parts.pointers.read(entry.uuid)
        if pointer is None:
            continue
        receipts = catalog.parts.receipts
        absent = [one for one in pointer.value.published if await receipts.committed(one) is None]
        if absent:
            await receipts.ensure_published(pointer.value)
            numbers = ", ".join(str(one.commit_number) for one in absent)
            done.append(f"the receipt of commit {numbers} of {spelled(entry.namespace, entry.name)} was written")
    return done


async def _receipts_below(catalog: Catalog) -> list[str]:
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
    done: list[str] = []
    for entry in _live(catalog):
        pointer = await catalog.parts.pointers.read(entry.uuid)
        if pointer is None or not numbers[entry.uuid]:
            continue
        missing = [
            one for one in range(min(numbers[entry.uuid]), pointer.value.commit_number) if one not in numbers[entry.uuid]
        ]
        history = await _history(catalog, entry, pointer.value) if missing else set()
        for number in missing:
            for commit in pending[entry.uuid, number]:
                if commit.metadata_location in history:
                    await catalog.parts.receipts.ensure(Phase.COMMITTED, entry.uuid, commit)
                    done.append(f"the receipt of commit {number} of {spelled(entry.namespace, entry.name)} was written")
    return done


async def _history(catalog: Catalog, entry: Entry, pointer: Pointer) -> set[str]:
    """The metadata files that a table's own logs name, as far back as they can be followed."""
    subject: Any = catalog.views.subject if entry.kind is Kind.VIEW else catalog.tables.subject
    known = {one for one in (pointer.metadata_location, pointer.previous_metadata_location) if one is not None}
    location = pointer.metadata_location
    for _ in range(UPKEEP_HISTORY_READS_MAX):
        data = await catalog.parts.files.fetch(location)
        before = () if data is None else subject.facts(subject.decode(data, location)).previous_locations
        if not before or before[0] == location:
            break
        known.update(before)
        location = before[0]
    return known

"""What planning stands on, read from the folded state and from what is not folded yet: its cost does not grow with history.

The failure this prevents, in order:
  1. the head is read, and names what was consumed
  2. a folder consumes one segment more, and it is moved aside
  3. the ledger is listed: the segment is neither there, nor in the state that was read
So the heads are read again after the ledger was: if they stand where they stood, nothing was consumed in between.

Rows are contributions of any layer; joining them is the caller's. What must never enter: what is stale, and what runs owe.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module

from arco.fold.consumed import ConsumedLists
from arco.fold.finding import Finder, key_of
from arco.fold.heads import Heads, Standing
from arco.fold.manifests import Manifest
from arco.fold.publish_table import PUBLISHES
from arco.fold.shredding_planning import PLANNED_ON
from arco.fold.tables import HELD_OUTPUTS, QUARANTINES, SETTLED_OUTPUTS
from arco.fold.vocabulary import Row, Table, bucket_of
from arco.kernel.errors import InvalidInput
from arco.kernel.limits import LEDGER_READS_MAX, STATE_FETCHES_MAX
from arco.ledger.envelope import Event
from arco.ledger.payloads import SERVO
from arco.ledger.reading import events, read_at
from arco.ledger.segment import decode_segment
from arco.read.files import fetched
from arco.storage.keys import Domain, Head, SegmentKey

_HEADS = (Head.EXECUTION, Head.QUALITY)
_TABLES = (PUBLISHES, HELD_OUTPUTS, SETTLED_OUTPUTS, QUARANTINES)
_ATTEMPTS_MAX = 3


@dataclass(slots=True)
class PlanningRows:
    """Contributions by the name of their table. `state` is the manifest that they are from, nothing if it is the ledger alone."""

    state: str = ""
    read_up_to: str = ""
    rows: dict[str, list[Row]] = field(default_factory=lambda: {table.name: [] for table in _TABLES})

    def add(self, told: Iterable[Event]) -> None:
        """What events say. Of runs and outputs only Servo knows; what people hold back anybody may say."""
        for event in told:
            shred = PLANNED_ON.get(event.type)
            if shred is None or (event.type.domain == Domain.EXECUTION and event.source != SERVO):
                continue
            try:
                contributed = list(shred(event))
            except InvalidInput:
                if event.source == SERVO:
                    raise
                continue  # the fold refuses it and says so
            for table, row in contributed:
                self.rows[table.name].append(row)
            if event.type.domain == Domain.EXECUTION:
                self.read_up_to = max(self.read_up_to, str(event.position))


async def rows_of_ledger(heads: Heads) -> tuple[PlanningRows, list[Event]]:
    """The same from everything that was ever told, and the events of runs."""
    runs, quality = await asyncio.gather(
        *(events(heads.store, heads.scope, domain) for domain in (Domain.EXECUTION, Domain.QUALITY))
    )
    found = PlanningRows()
    found.add((*runs, *quality))
    return found, [one for one in runs if one.source == SERVO]


async def rows_of_state(heads: Heads, asset_ids: Collection[str]) -> PlanningRows | None:
    """What is known of some assets. None: the state does not have all of it, and the ledger must be asked."""
    lists = ConsumedLists(heads.store, heads.scope, heads.clock, heads.entropy)
    finder = Finder(heads.store, heads.scope, lists, heads.clock, heads.entropy, listing=True)
    standing = await _standing(heads)
    for _ in range(_ATTEMPTS_MAX):
        manifest = standing[Head.EXECUTION].manifest
        if manifest is None or not all(_is_complete(one.manifest) for one in standing.values()):
            return None
        found = PlanningRows(manifest.snapshot, manifest.last_position or "")
        tails = await asyncio.gather(*(_tail(lists, finder, one, heads) for one in standing.values()))
        after = await _standing(heads)
        if [one.link for one in after.values()] == [one.link for one in standing.values()]:
            for told in tails:
                found.add(told)
            await _add_folded(heads, standing, set(asset_ids), found)
            return found
        standing = after
    return None


async def _standing(heads: Heads) -> dict[Head, Standing[Manifest]]:
    return dict(zip(_HEADS, await asyncio.gather(*map(heads.read, _HEADS)), strict=True))


def _is_complete(manifest: Manifest | None) -> bool:
    """Whether every event that was consumed is in the tables: none refused, none set aside, no table that came later."""
    if manifest is None:
        return True
    wanted = {table.name for table in _TABLES if table.head == manifest.head}
    return wanted <= set(manifest.whole) and not manifest.refused and not manifest.set_aside


async def _tail(lists: ConsumedLists, finder: Finder, standing: Standing[Manifest], heads: Heads) -> list[Event]:
    """The events of the segments that a head has not consumed."""
    consumed = await lists.of(standing.head, standing.manifest)
    names = list((await finder.find(standing.head, consumed, receipts=False)).segments)
    keys = [key for key in (key_of(lists.full(name)) for name in names) if isinstance(key, SegmentKey)]
    told: list[Event] = []
    for start in range(0, len(keys), LEDGER_READS_MAX):
        some = keys[start : start + LEDGER_READS_MAX]
        read = await asyncio.gather(*(read_at(heads.store, key, str(key)) for key in some))
        told += [event for key, data in zip(some, read, strict=True) for event in decode_segment(key, data).events]
    return told


async def _add_folded(
    heads: Heads, standing: Mapping[Head, Standing[Manifest]], asset_ids: set[str], found: PlanningRows
) -> None:
    buckets = {bucket_of(one) for one in asset_ids}
    wanted = [
        (table, file)
        for table in _TABLES
        if (manifest := standing[table.head].manifest) is not None
        for file in manifest.table(table.name).files
        if not buckets.isdisjoint(file.buckets)
    ]
    for start in range(0, len(wanted), STATE_FETCHES_MAX):
        some = wanted[start : start + STATE_FETCHES_MAX]
        read = await asyncio.gather(*(fetched(heads.store, file) for _, file in some))
        for (table, _), data in zip(some, read, strict=True):
            found.rows[table.name] += [row for row in _rows(table, data) if row["asset_id"] in asset_ids]


def _rows(table: Table, data: bytes) -> Iterable[Row]:
    arrow_rows = import_module("arco.fold.arrow_rows")  # it brings pyarrow: where nothing is folded, planning does without
    parquet = import_module("pyarrow.parquet")
    reader = import_module("pyarrow").BufferReader(data)
    rows: Iterable[Row] = arrow_rows.rows_of(table, arrow_rows.conformed(table, parquet.ParquetFile(reader).read()))
    return rows

"""What planning stands on, read from the folded state and from what is not folded yet: its cost does not grow with history.

The two are looked at so that what is consumed and moved aside meanwhile is in one of them (`unfolded.py`).

Rows are contributions of any layer; joining them is the caller's. What must never enter: what is stale, and what runs owe.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module

from arco.fold.consumed import ConsumedLists
from arco.fold.folding import whole_of
from arco.fold.heads import Heads, Standing
from arco.fold.manifests import Manifest
from arco.fold.publish_table import PUBLISHES
from arco.fold.shredding_planning import PLANNED_ON
from arco.fold.tables import HELD_OUTPUTS, QUARANTINES, SETTLED_OUTPUTS
from arco.fold.vocabulary import Row, Table, bucket_of
from arco.kernel.errors import InvalidInput
from arco.kernel.limits import STATE_FETCHES_MAX
from arco.ledger.envelope import Event
from arco.ledger.payloads import SERVO
from arco.ledger.reading import events
from arco.ledger.segment import decode_segment
from arco.read.files import fetched
from arco.read.unfolded import Unfolded, on_steady_ground
from arco.storage.keys import Domain, Head, SegmentKey

_HEADS = (Head.EXECUTION, Head.QUALITY)
_TABLES = (PUBLISHES, HELD_OUTPUTS, SETTLED_OUTPUTS, QUARANTINES)
_Standings = Mapping[Head, Standing[Manifest]]


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
    unfolded = Unfolded(heads, ConsumedLists(heads.store, heads.scope, heads.clock, heads.entropy))

    async def look(standing: _Standings) -> list[SegmentKey] | None:
        if standing[Head.EXECUTION].manifest is None or not all(_is_complete(one.manifest) for one in standing.values()):
            return None
        keys = await asyncio.gather(*(unfolded.segments(one.head, one.manifest) for one in standing.values()))
        return [key for some in keys for key in some]

    seen = await on_steady_ground(lambda: _standing(heads), look, _is_same)
    if seen is None:
        return None
    standing, keys = seen
    manifest = standing[Head.EXECUTION].manifest
    if manifest is None or keys is None:
        return None
    found = PlanningRows(manifest.snapshot, manifest.last_position or "")
    async for key, data in unfolded.read(keys):
        found.add(decode_segment(key, data).events)
    await _add_folded(heads, standing, set(asset_ids), found)
    return found


async def _standing(heads: Heads) -> _Standings:
    return dict(zip(_HEADS, await asyncio.gather(*map(heads.read, _HEADS)), strict=True))


def _is_same(before: _Standings, after: _Standings) -> bool:
    return [one.link for one in before.values()] == [one.link for one in after.values()]


def _is_complete(manifest: Manifest | None) -> bool:
    """Whether every event that a plan may stand on is in the tables: none refused or set aside, no table that came later."""
    if manifest is None:
        return True
    wanted = {table.whole_as for table in _TABLES if table.head == manifest.head}
    unfolded = manifest.refused + manifest.set_aside - manifest.beside_plans
    return wanted <= set(whole_of(manifest)) and not unfolded


async def _add_folded(heads: Heads, standing: _Standings, asset_ids: set[str], found: PlanningRows) -> None:
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

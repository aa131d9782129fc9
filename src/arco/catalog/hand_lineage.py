"""Lineage that people say: an edge between two tables, or between a table and something outside, and that it is no longer so.

The names are looked up as they are now, so that an edge is about tables and not about names; what is said goes to the ledger.
Whether the edge was said before is not asked: saying it again changes nothing but the words, and removing what nobody said
changes nothing at all. What must never enter: reading lineage.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import msgspec

from arco.catalog.answers import Answer
from arco.catalog.catalog import Catalog
from arco.catalog.idempotency import Marker, RequestKey
from arco.catalog.inventory import Inventory, Place
from arco.catalog.model import dotted
from arco.catalog.once import once
from arco.catalog.overview import overview_of
from arco.kernel.errors import ArcoError, Conflict, InvalidInput, OutcomeUnknown
from arco.kernel.ids import EdgeId, EventId
from arco.ledger.appender import Appender
from arco.ledger.drafts import Draft
from arco.ledger.envelope import EventType
from arco.ledger.lineage_events import (
    LINEAGE_RECORDED,
    LINEAGE_REMOVED,
    ColumnLineage,
    ColumnMapping,
    Edge,
    LineageRecorded,
    LineageRemoved,
)
from arco.ledger.payloads import Payload, derived_event_id
from arco.storage.keys import Domain

SOURCE = "arco/lineage"
KIND = "hand"

Saying = Callable[[], Awaitable[tuple[EventType, Payload, EdgeId]]]


@dataclass(frozen=True, slots=True)
class End:
    """A table by its name, and if that is to be sure by its uuid; or what lies outside, in its own words."""

    place: Place | None = None
    uuid: str | None = None
    external: str | None = None


@dataclass(frozen=True, slots=True)
class Words:
    """Who says it, and why."""

    who: str
    why: str | None = None


class Said(msgspec.Struct, frozen=True):
    """What was recorded, and in which segment of the ledger; null where it was recorded by a version that did not say so."""

    edge_id: str
    event_id: str
    position: str
    segment: str | None = None


@dataclass(frozen=True, slots=True)
class _Found:
    """An end as it is now."""

    name: str
    asset_id: str | None = None
    uuid: str | None = None


class HandLineage:
    """Lineage by hand in one workspace."""

    def __init__(self, catalog: Catalog, appender: Appender) -> None:
        self._catalog = catalog
        self._appender = appender

    async def record(
        self, upstream: End, downstream: End, columns: tuple[ColumnMapping, ...], words: Words, key: RequestKey
    ) -> Said:
        """Say that one is made of the other."""

        async def said() -> tuple[EventType, Payload, EdgeId]:
            edge = await self._edge(upstream, downstream)
            if columns:
                await self._check_columns(upstream, downstream, columns)
                edge = msgspec.structs.replace(edge, columns=ColumnLineage(mappings=columns, reason="user_override"))
            recorded = LineageRecorded(edges=(edge,), method="hand", who=words.who, why=words.why)
            return LINEAGE_RECORDED, recorded, edge.identity()

        return await self._once(said, key)

    async def remove(self, upstream: End, downstream: End, words: Words, key: RequestKey) -> Said:
        """Take back what was said of two ends."""

        async def said() -> tuple[EventType, Payload, EdgeId]:
            return self._removed((await self._edge(upstream, downstream)).identity(), words)

        return await self._once(said, key)

    async def remove_edge(self, edge: EdgeId, words: Words, key: RequestKey) -> Said:
        """Take back an edge by its id; also one whose tables are gone."""

        async def said() -> tuple[EventType, Payload, EdgeId]:
            return self._removed(edge, words)

        return await self._once(said, key)

    def _removed(self, edge: EdgeId, words: Words) -> tuple[EventType, Payload, EdgeId]:
        return LINEAGE_REMOVED, LineageRemoved(edge_ids=(edge,), who=words.who, why=words.why), edge

    async def _edge(self, upstream: End, downstream: End) -> Edge:
        if upstream.external is not None and downstream.external is not None:
            raise InvalidInput("neither end is a table of the catalog", hint="name at least one by namespace and name")
        source, target = await self._found(upstream), await self._found(downstream)
        if source == target:
            raise InvalidInput(f"{source.name} is both ends", hint="an edge leads from one table to another")
        edge = Edge(
            upstream=source.name,
            upstream_id=source.asset_id,
            upstream_table=source.uuid,
            kind=KIND,
            downstream=target.name,
            downstream_id=target.asset_id,
            downstream_table=target.uuid,
        )
        return msgspec.structs.replace(edge, edge_id=edge.identity())

    async def _found(self, end: End) -> _Found:
        if end.place is None:
            return _Found(end.external or "")
        entry = await Inventory(self._catalog).find(end.place)
        if end.uuid is not None and entry.uuid != end.uuid:
            raise Conflict(
                f"{dotted(*end.place)} is another table now: {entry.uuid}",
                hint="look at it again, then say what is true of it",
            )
        return _Found(entry.full_name, entry.asset_id, entry.uuid)

    async def _check_columns(self, upstream: End, downstream: End, columns: tuple[ColumnMapping, ...]) -> None:
        await self._check_known(downstream, [mapping.column for mapping in columns])
        await self._check_known(upstream, [one.column for mapping in columns for one in mapping.sources])

    async def _check_known(self, end: End, wanted: list[str]) -> None:
        if end.place is None:
            return
        known = {column.path for column in (await overview_of(self._catalog, end.place)).columns}
        # A table of another format may have been registered without its columns.
        missing = [column for column in wanted if known and column not in known]
        if missing:
            raise InvalidInput(f"{dotted(*end.place)} has no column {missing[0]!r}", hint="name columns by their path")

    async def _once(self, said: Saying, key: RequestKey) -> Said:
        ws, ready = self._catalog.parts, None

        async def begin() -> Marker:
            nonlocal ready
            ready = await said()
            return ws.markers.fresh(key, ws.tier1.seen.sequence)

        async def act(marker: Marker) -> Answer:
            try:
                kind, payload, edge = ready or await said()
            except ArcoError as error:
                if marker.attempt > 1:
                    raise OutcomeUnknown("an earlier attempt of this request may have been recorded") from error
                raise
            event_id = EventId(derived_event_id(marker.minted_ms, "lineage by hand", key.hash))
            # Said when it was first asked: another attempt says the same, however late it comes.
            draft = Draft(
                type=kind, source=SOURCE, subject=edge, id=event_id, data=payload.data(), time_ms=marker.minted_ms
            )
            (stored,) = await self._appender.append(Domain.LINEAGE, [draft])
            recorded = Said(str(edge), str(stored.id), str(stored.position), str(stored.segment))
            return Answer(200, body=msgspec.json.encode(recorded).decode())

        answer = await once(ws, key, begin, act)
        return msgspec.json.decode(answer.body or "", type=Said)

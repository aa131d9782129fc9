"""The events of the domain `lineage`: what was made of what, by whose word, and what of it was taken back.

An edge leads from what was read to what was made. An end is an asset, or a table, or only a name: files, topics, the datasets of
other systems. Its identity follows from the most lasting of these that is known, so an edge keeps its id through renames. What
must never enter: finding out lineage (that is the room `lineage`), and reading state.
"""

import re
from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from arco.kernel.fingerprint import fingerprint
from arco.kernel.identity import dependency_fingerprint, edge_id
from arco.kernel.ids import EdgeId
from arco.ledger.envelope import EventType, identifier
from arco.ledger.payloads import Payload

LINEAGE_RECORDED = EventType("lineage.lineage_recorded.v1")
LINEAGE_REMOVED = EventType("lineage.lineage_removed.v1")
OPENLINEAGE_RECEIVED = EventType("lineage.openlineage_received.v1")

Method = Literal["servo", "hand", "openlineage", "sql", "plan"]
"""Whose word an edge is: a run's own, a person's, another system's, an analysis of SQL or of a Spark plan."""
BY_HAND: Method = "hand"

Confidence = Literal["high", "medium", "low"]

_NAME_ALONE = re.compile("[0-9a-f]{64}")  # a fingerprint; assets have ULIDs, tables UUIDs


class ColumnSource(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One column that another one is made of; it lies in the upstream of its edge."""

    column: str
    column_id: str | None = None
    field_id: int | None = None


class ColumnMapping(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one column of the downstream is made of."""

    column: str
    sources: tuple[ColumnSource, ...]
    column_id: str | None = None
    field_id: int | None = None
    transform: str | None = None
    confidence: Confidence | None = None


class ColumnLineage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The columns of one edge. `coverage` is the share of the downstream's columns that are mapped, if it is known."""

    mappings: tuple[ColumnMapping, ...]
    confidence: Confidence | None = None
    reason: str | None = None
    coverage: float | None = None
    unmapped: tuple[str, ...] = ()


class DatasetName(msgspec.Struct, frozen=True, kw_only=True):
    """A name that a dataset has in some system."""

    namespace: str
    name: str


class Edge(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """From what was read to what was made. Partitions are ranges, as runs write them; ids are null where they are not known."""

    upstream: str = msgspec.field(name="from")
    upstream_id: str | None = msgspec.field(default=None, name="from_id")
    upstream_table: str | None = msgspec.field(default=None, name="from_table")
    upstream_namespace: str | None = msgspec.field(default=None, name="from_namespace")
    upstream_aliases: tuple[str, ...] = msgspec.field(default=(), name="from_aliases")
    upstream_symlinks: tuple[DatasetName, ...] = msgspec.field(default=(), name="from_symlinks")
    upstream_partitions: list[dict[str, Any]] | None = msgspec.field(default=None, name="from_partitions")
    upstream_snapshot: int | None = msgspec.field(default=None, name="from_snapshot")
    kind: str
    downstream: str = msgspec.field(name="to")
    downstream_id: str | None = msgspec.field(default=None, name="to_id")
    downstream_table: str | None = msgspec.field(default=None, name="to_table")
    downstream_namespace: str | None = msgspec.field(default=None, name="to_namespace")
    downstream_aliases: tuple[str, ...] = msgspec.field(default=(), name="to_aliases")
    downstream_symlinks: tuple[DatasetName, ...] = msgspec.field(default=(), name="to_symlinks")
    downstream_partitions: list[dict[str, Any]] | None = msgspec.field(default=None, name="to_partitions")
    edge_id: EdgeId | None = None
    transform: str | None = None
    columns: ColumnLineage | None = None

    def identity(self) -> EdgeId:
        """Its own id, or the one that its ends and its kind make."""
        if self.edge_id is not None:
            return self.edge_id
        source = end_identity(self.upstream, self.upstream_id, self.upstream_table, self.upstream_namespace)
        target = end_identity(self.downstream, self.downstream_id, self.downstream_table, self.downstream_namespace)
        return edge_between(source, target, self.kind)


class LineageRecorded(Payload, frozen=True, kw_only=True):
    """Edges that were seen, or said. An execution has a run; what people say, and what only a job's definition says, has none."""

    run_id: str | None = None
    task_id: str | None = None
    materialization_id: str | None = None
    edges: tuple[Edge, ...]
    method: Method = "servo"
    who: str | None = None
    why: str | None = None


class LineageRemoved(Payload, frozen=True, kw_only=True):
    """Edges that were said by hand and are no longer so. What runs have seen stays seen."""

    edge_ids: tuple[EdgeId, ...]
    who: str
    why: str | None = None


class OpenLineageReceived(Payload, frozen=True, kw_only=True):
    """An event of OpenLineage as it came, so that what is not read out of it today can be read later.

    `omitted` are facets that were left out, because the event would have been too large with them.
    """

    event: dict[str, Any]
    omitted: tuple[str, ...] = ()


def end_identity(name: str, asset_id: str | None, table_uuid: str | None, namespace: str | None) -> str:
    """What an end of an edge is, for ever if it is an asset or a table."""
    return asset_id or table_uuid or fingerprint("dataset", namespace or "", name)


def is_place_outside(identity: str) -> bool:
    """Whether an end is only a name: files, a dataset of another system, what people call external."""
    return _NAME_ALONE.fullmatch(identity) is not None


def edge_between(source: str, target: str, kind: str) -> EdgeId:
    """The edge of one kind between two ends."""
    return edge_id(source, target, dependency_fingerprint(source, target, "", kind, ""))


def edges_of(documents: Iterable[dict[str, Any]]) -> tuple[Edge, ...]:
    """Edges from documents of their fields, as tasks describe them."""
    return tuple(msgspec.convert(one, Edge, dec_hook=identifier) for one in documents)

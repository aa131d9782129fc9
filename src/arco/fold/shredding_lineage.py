"""What was made of what as rows: edges, the tasks that went along them, their columns, and what other systems call their ends."""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from arco.fold.contributions import Contribution, RowMaker, ranges_text, told, told_at
from arco.fold.dataset_table import DATASETS
from arco.fold.tables import LINEAGE_COLUMNS, LINEAGE_EDGES, LINEAGE_EXECUTIONS
from arco.ledger import lineage_events as said
from arco.ledger.envelope import Event

_EDGE, _EXECUTION, _COLUMN = RowMaker(LINEAGE_EDGES), RowMaker(LINEAGE_EXECUTIONS), RowMaker(LINEAGE_COLUMNS)
_DATASET = RowMaker(DATASETS)


def lineage_recorded(event: Event) -> Iterator[Contribution]:
    it = said.LineageRecorded.of(event)
    seen_at, first, last = event.time.time_ms, told(event), told_at(event, event.time.time_ms)
    for edge in it.edges:
        source, target = _ends(edge)
        edge_id = edge.edge_id or _edge_between(source, target, edge.kind)
        # What a person says stands until a person takes it back; what a run saw needs nobody's word, and nobody takes it back.
        more: dict[str, Any] = (
            {"removed": False, "owner": it.who, "description": it.why, "standing_order": last}
            if it.method == said.BY_HAND
            else {"seen_by": it.method, "seen_order": first}
        )
        if edge.columns is not None:
            unmapped = list(edge.columns.unmapped)
            more |= {"column_coverage": edge.columns.coverage, "unmapped_columns": unmapped, "mapped_order": last}
        yield _EDGE(
            {"edge_id": edge_id},
            source_id=source,
            source=edge.upstream,
            source_kind=_source_kind(edge),
            target_id=target,
            target=edge.downstream,
            edge_kind=edge.kind,
            recorded_by=it.method,
            about_order=first,
            first_run_id=it.run_id,
            first_seen_at=seen_at,
            first_order=first,
            last_run_id=it.run_id,
            last_seen_at=seen_at,
            last_order=last,
            **more,
        )
        if it.run_id is not None:
            yield _EXECUTION(
                {"target_id": target, "edge_id": edge_id, "run_id": it.run_id, "task_id": it.task_id or ""},
                source_id=source,
                materialization_id=it.materialization_id,
                source_snapshot_id=edge.upstream_snapshot,
                source_partitions=None if edge.upstream_partitions is None else ranges_text(edge.upstream_partitions),
                target_partitions=None if edge.downstream_partitions is None else ranges_text(edge.downstream_partitions),
                at=seen_at,
                position=event.position,
                went_order=first,
            )
        yield from _columns(event, edge, edge_id)
        for end, called in ((source, _source_names(edge)), (target, _target_names(edge))):
            for one in called:
                key = {"dataset_id": end, "namespace": one.namespace, "name": one.name}
                yield _DATASET(key, first_called_at=seen_at, called_order=first)


def lineage_removed(event: Event) -> Iterator[Contribution]:
    it, last = said.LineageRemoved.of(event), told_at(event, event.time.time_ms)
    for edge_id in it.edge_ids:
        yield _EDGE({"edge_id": edge_id}, removed=True, owner=it.who, description=it.why, standing_order=last)


def as_it_came(_event: Event) -> Iterator[Contribution]:
    """What others sent is kept in the ledger; what was read out of it has events of its own."""
    return iter(())


SHREDDERS: dict[str, Callable[[Event], Iterator[Contribution]]] = {
    said.LINEAGE_RECORDED: lineage_recorded,
    said.LINEAGE_REMOVED: lineage_removed,
    said.OPENLINEAGE_RECEIVED: as_it_came,
}


def _columns(event: Event, edge: said.Edge, edge_id: str) -> Iterator[Contribution]:
    if edge.columns is None:
        return
    for mapping in edge.columns.mappings:
        for source in mapping.sources:
            yield _COLUMN(
                {"edge_id": edge_id, "target_column": mapping.column, "source_column": source.column},
                transform=mapping.transform,
                confidence=mapping.confidence or edge.columns.confidence,
                reason=edge.columns.reason,
                transform_fingerprint=edge.transform,
                seen_at=event.time.time_ms,
                mapping_order=told_at(event, event.time.time_ms),
            )


def _source_names(edge: said.Edge) -> tuple[said.DatasetName, ...]:
    known = edge.upstream_id or edge.upstream_table
    aliases, symlinks = edge.upstream_aliases, edge.upstream_symlinks
    return () if known else _names(edge.upstream_namespace, edge.upstream, aliases, symlinks)


def _target_names(edge: said.Edge) -> tuple[said.DatasetName, ...]:
    known = edge.downstream_id or edge.downstream_table
    aliases, symlinks = edge.downstream_aliases, edge.downstream_symlinks
    return () if known else _names(edge.downstream_namespace, edge.downstream, aliases, symlinks)


def _names(
    namespace: str | None, name: str, aliases: tuple[str, ...], symlinks: tuple[said.DatasetName, ...]
) -> tuple[said.DatasetName, ...]:
    """What an end is called. One with a name alone is what somebody said it is: a place outside."""
    if namespace is None and not aliases and not symlinks:
        return ()
    others = tuple(said.DatasetName(namespace="", name=one) for one in aliases)
    return (said.DatasetName(namespace=namespace or "", name=name), *others, *symlinks)


def _source_kind(edge: said.Edge) -> str:
    if edge.upstream_id is not None:
        return "asset"
    if edge.upstream_table is not None:
        return "table"
    return "files" if edge.kind == "files" else "external"


def _ends(edge: said.Edge) -> tuple[str, str]:
    return (
        said.end_identity(edge.upstream, edge.upstream_id, edge.upstream_table, edge.upstream_namespace),
        said.end_identity(edge.downstream, edge.downstream_id, edge.downstream_table, edge.downstream_namespace),
    )


_edge_between = lru_cache(maxsize=8192)(said.edge_between)

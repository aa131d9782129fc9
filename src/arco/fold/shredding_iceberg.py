"""Commits of tables, their schemas and columns, and what clients measured, as rows.

An event of a commit may be announced twice, and by then its metadata file may be gone: the one that has it wins. Views have
commits, and nothing else here.
"""

from collections.abc import Callable, Iterator
from typing import Any, assert_never

from arco.fold.contributions import Contribution, RowMaker, json_text, told, told_at
from arco.fold.tables import COLUMNS, ICEBERG_COMMITS, ICEBERG_TABLES, METRICS_REPORTS, SCHEMAS
from arco.iceberg.schemas import columns
from arco.ledger import iceberg_events as said
from arco.ledger.envelope import Event
from arco.ledger.receipts import SourceKind

_COMMIT, _TABLE, _REPORT = RowMaker(ICEBERG_COMMITS), RowMaker(ICEBERG_TABLES), RowMaker(METRICS_REPORTS)
_SCHEMA, _COLUMN = RowMaker(SCHEMAS), RowMaker(COLUMNS)

_TABLE_KIND = "table"


def table_committed(event: Event) -> Iterator[Contribution]:
    it = said.TableCommitted.of(event)
    yield _commit(event, it)
    if it.kind != _TABLE_KIND:
        return
    yield _table(event, it)
    for schema in it.metadata.schemas if it.metadata is not None else ():
        yield from _schema(event, it, schema)


def metrics_reported(event: Event) -> Iterator[Contribution]:
    it = said.MetricsReported.of(event)
    snapshot_id = it.report.get("snapshot-id")
    yield _REPORT(
        {"table_uuid": it.table_uuid or "", "event_id": event.id},
        table=".".join((*it.namespace, it.table)),
        report_type=it.report_type,
        snapshot_id=snapshot_id if isinstance(snapshot_id, int) else None,
        report=json_text(it.report),
        reported_at=event.time.time_ms,
        reported_order=told(event),
    )


SHREDDERS: dict[str, Callable[[Event], Iterator[Contribution]]] = {
    said.TABLE_COMMITTED: table_committed,
    said.METRICS_REPORTED: metrics_reported,
}


def asset_of(it: said.TableCommitted) -> tuple[str, str] | None:
    """The asset that a commit of Servo was made for: its id and its name then."""
    if it.source != SourceKind.SERVO or it.metadata is None or it.metadata.current is None:
        return None
    summary = it.metadata.current.summary
    asset_id, asset = summary.get("arco.asset-id"), summary.get("arco.asset")
    return None if asset_id is None or asset is None else (asset_id, asset)


def _commit(event: Event, it: said.TableCommitted) -> Contribution:
    metadata = it.metadata
    added = _added(it)
    summary = {} if added is None else added.summary
    return _COMMIT(
        {"table_uuid": it.table_uuid, "commit_key": it.commit_key},
        commit_number=it.commit_number,
        metadata_location=it.metadata_location,
        snapshot_id=it.snapshot_id if added is None else added.snapshot_id,
        parent_snapshot_id=None if added is None else added.parent_snapshot_id,
        sequence_number=None if metadata is None else metadata.last_sequence_number,
        schema_id=None if metadata is None else metadata.current_schema_id,
        operation=None if added is None else added.operation,
        source=_source(it.source),
        principal=it.principal,
        client=it.client,
        run_id=summary.get("arco.run-id"),
        materialization_id=summary.get("arco.materialization-id"),
        added_rows=_count(summary, "added-records"),
        deleted_rows=_count(summary, "deleted-records"),
        added_files=_count(summary, "added-data-files"),
        deleted_files=_count(summary, "deleted-data-files"),
        summary=None if added is None else json_text(summary),
        committed_at=it.committed_ms,
        transaction=it.transaction,
        committed_order=told(event, 0 if metadata is not None else 1),
    )


def _table(event: Event, it: said.TableCommitted) -> Contribution:
    metadata = it.metadata
    current = None if metadata is None else metadata.current
    summary = {} if current is None else current.summary
    newest = told_at(event, it.committed_ms, it.commit_number, 1 if metadata is not None else 0)
    more: dict[str, Any] = {}
    made_for = asset_of(it)
    if made_for is not None:
        more |= {"asset_id": made_for[0], "asset": made_for[1], "made_for_order": newest}
    # Upkeep writes the same rows into other files: what a run published is still what is read.
    if it.source not in {SourceKind.SERVO, SourceKind.UPKEEP} and metadata is not None and _moved(it):
        more |= {
            "external_sequence_number": _standing_number(it, metadata),
            "external_commit_at": it.committed_ms,
            "external_principal": it.principal,
            "outside_order": newest,
        }
    return _TABLE(
        {"table_uuid": it.table_uuid},
        first_commit_at=it.committed_ms,
        first_order=told(event, it.commit_number),
        commit_number=it.commit_number,
        metadata_location=it.metadata_location,
        snapshot_id=it.snapshot_id,
        sequence_number=None if metadata is None else metadata.last_sequence_number,
        schema_id=None if metadata is None else metadata.current_schema_id,
        location=None if metadata is None else metadata.location,
        format_version=None if metadata is None else metadata.format_version,
        total_rows=_count(summary, "total-records"),
        total_bytes=_count(summary, "total-files-size"),
        total_files=_count(summary, "total-data-files"),
        committed_at=it.committed_ms,
        newest_order=newest,
        **more,
    )


def _schema(event: Event, it: said.TableCommitted, schema: dict[str, Any]) -> Iterator[Contribution]:
    key = {"table_uuid": it.table_uuid, "schema_id": int(schema.get("schema-id", 0))}
    seen = told(event)
    found = list(columns(schema))
    yield _SCHEMA(key, columns=len(found), document=json_text(schema), first_seen_at=it.committed_ms, seen_order=seen)
    for ordinal, column in enumerate(found):
        yield _COLUMN(
            {**key, "field_id": column.field_id},
            name=column.path[-1],
            path=".".join(column.path),
            type=column.type if isinstance(column.type, str) else json_text(column.type),
            required=column.required,
            doc=column.doc,
            ordinal=ordinal,
            seen_order=seen,
        )


def _source(kind: str) -> str:
    try:
        known = SourceKind(kind)
    except ValueError:
        return "external"  # a later version's own: what it did was checked by nobody here
    match known:
        case SourceKind.SERVO:
            return "servo"
        case SourceKind.REGISTER | SourceKind.UPKEEP:
            return "admin"
        case SourceKind.ICEBERG_REST:
            return "external"
        case _:
            assert_never(known)


def _moved(it: said.TableCommitted) -> bool:
    """Whether other rows are read on main since a commit. One that wrote to a branch alone changed none there, and one that went
    back to an old snapshot, or on to one of a branch, did, though it added none."""
    if it.metadata is None:
        return False
    if it.metadata.moved is not None:
        return it.metadata.moved
    return any(one.snapshot_id == it.snapshot_id for one in it.metadata.added)


def _standing_number(it: said.TableCommitted, metadata: said.CommittedMetadata) -> int:
    """Where a commit stands among the publishes of its table: everything with a smaller number was there before it.

    One that went to a snapshot that was there has no number of its own; it stands before the next that is given.
    """
    is_new = any(one.snapshot_id == it.snapshot_id for one in metadata.added)
    return metadata.last_sequence_number + (0 if is_new else 1)


def _added(it: said.TableCommitted) -> said.CommittedSnapshot | None:
    """The snapshot that a commit added: the current one if it is new, or else the last of those on branches."""
    if it.metadata is None or not it.metadata.added:
        return None
    by_id = {one.snapshot_id: one for one in it.metadata.added}
    return by_id.get(it.snapshot_id or 0, it.metadata.added[-1])


def _count(summary: dict[str, str], word: str) -> int | None:
    """A number of a summary. Writers may say anything there: what is no count is not known."""
    text = summary.get(word, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else None

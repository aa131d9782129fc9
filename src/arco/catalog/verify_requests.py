"""What the catalog remembers of requests, looked at again: transactions, staged tables, markers of keys, and its small documents.

Each must be readable, and be the one that its name says. Whether a transaction that a name or a pointer speaks of is there is
looked at with the tables.
"""

from arco.catalog.idempotency import MarkerCodec, RequestKey
from arco.catalog.staging import decode_intent
from arco.catalog.transaction_records import RecordCodec
from arco.catalog.untold import MarkCodec
from arco.catalog.workspaces import WorkspaceCodec
from arco.kernel.errors import CorruptObject
from arco.storage.cas import decoded
from arco.storage.keys import (
    LeaseKey,
    MarkerKey,
    StagedIntentKey,
    ToldKey,
    TransactionKey,
    WorkspaceKey,
)
from arco.storage.lease import LeaseCodec
from arco.storage.looking import Look, readable
from arco.storage.port import Object


async def verify_requests(look: Look) -> None:
    await look.each("transaction_unreadable", "transactions", {TransactionKey: _judge_transaction}, "iceberg_transactions")
    await look.each("intent_unreadable", "staged_intents", {StagedIntentKey: _judge_intent}, "iceberg_staged")
    await look.each("marker_unreadable", "markers", {MarkerKey: _judge_marker}, "iceberg_idempotency")
    await look.each("lease_unreadable", "leases", {LeaseKey: readable(LeaseCodec())}, "core", "locks")
    await look.one("told_unreadable", "documents", ToldKey(look.scope), readable(MarkCodec()))
    await look.one("workspace_unreadable", "documents", WorkspaceKey(look.scope), readable(WorkspaceCodec()))


def _judge_transaction(key: TransactionKey, found: Object) -> None:
    decoded(found, RecordCodec(key.transaction), str(key))


def _judge_intent(key: StagedIntentKey, found: Object) -> None:
    intent = decode_intent(found.data, str(key))
    if intent.table_uuid != key.table:
        raise CorruptObject(f"{key} is the note of staged table {intent.table_uuid}")


def _judge_marker(key: MarkerKey, found: Object) -> None:
    marker = decoded(found, MarkerCodec(), str(key)).value
    if RequestKey(marker.key, marker.operation, marker.request_hash).hash != key.key_hash:
        raise CorruptObject(f"{key} is the marker of another key")

"""Settling attempts through the catalog."""

from typing import Protocol

from arco.catalog.idempotency import RequestKey
from arco.catalog.settling import DidLand, Settled, Trace, settle
from arco.catalog.workspace import Workspace
from arco.ledger.run_entries import Publish

__all__ = ["CatalogSettler", "DidLand", "Settled", "Settler"]


class Settler(Protocol):
    """Whoever can say for certain what became of a publish."""

    async def settle(self, publish: Publish, reason: str) -> Settled: ...


class CatalogSettler:
    """Settles commits to the tables of one workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self._ws = workspace

    async def settle(self, publish: Publish, reason: str) -> Settled:
        trace = None
        if publish.table_uuid is not None and publish.snapshot_id is not None:
            trace = Trace(publish.table_uuid, publish.snapshot_id)
        return await settle(self._ws, RequestKey(publish.key, publish.operation, publish.request_hash), reason, trace)

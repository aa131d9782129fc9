"""Settling attempts through the catalog: all keys of an attempt, in the order in which it uses them."""

from typing import Protocol

from arco.catalog.idempotency import RequestKey
from arco.catalog.settling import DidLand, NeverLands, Settled, Trace, settle
from arco.catalog.workspace import Workspace
from arco.kernel.ids import RunId
from arco.kernel.limits import PUBLISH_REBASES_MAX
from arco.ledger.run_entries import OutputStaged, Publish
from arco.servo.schedule.publish_keys import aside_of, publish_key


class Settler(Protocol):
    """Whoever can say for certain what became of what an attempt staged."""

    async def settle(self, run: RunId, staged: OutputStaged, reason: str) -> Settled: ...


class CatalogSettler:
    """Settles commits to the tables of one workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self._ws = workspace

    async def settle(self, run: RunId, staged: OutputStaged, reason: str) -> Settled:
        """What became of the output. Where it never lands, the rows that were set aside do not land any more either."""
        publish = staged.publish
        if publish is None:
            return NeverLands()
        trace = None
        if publish.table_uuid is not None and publish.snapshot_id is not None:
            trace = Trace(publish.table_uuid, publish.snapshot_id)
        settled = await self._commit(run, staged.task, staged, publish, reason, trace)
        if isinstance(settled, NeverLands) and publish.aside is not None:
            beside = Trace(publish.aside.table_uuid, publish.aside.snapshot_id)
            await self._commit(run, aside_of(staged.task), staged, publish, reason, beside)
        return settled

    async def _commit(
        self, run: RunId, task: str, staged: OutputStaged, publish: Publish, reason: str, trace: Trace | None
    ) -> Settled:
        """An attempt goes on to its next key only after one was refused: the first that nobody had used is the last."""
        for rebase in range(PUBLISH_REBASES_MAX):
            key = publish_key(run, task, staged.attempt, rebase, staged.at_ms)
            request = RequestKey(key, publish.operation, publish.request_hash)
            settled = await settle(self._ws, request, reason, trace)
            if isinstance(settled, DidLand) or settled.was_free:
                return settled
        return NeverLands()

"""An atomic run's commits through the catalog's own transactions, and settling them there."""

from collections.abc import Sequence

from arco.catalog.catalog import Catalog
from arco.catalog.idempotency import RequestKey
from arco.catalog.settling import Settled, Trace
from arco.iceberg import changes
from arco.ledger.receipts import Source
from arco.ledger.run_entries import StagedCommit
from arco.servo.schedule.staged_tables import hash_of, request_of
from arco.txn.settling import settle_transaction
from arco.txn.transactions import Transactions

_OPERATION = "publish together"


class CatalogTogether:
    """Commits to the tables of one workspace, at most so many at once."""

    def __init__(self, catalog: Catalog, tables_max: int, source: Source) -> None:
        self._ws = catalog.parts
        self._transactions = Transactions(catalog, tables_max)
        self._source = source

    async def commit(self, key: str, commits: Sequence[StagedCommit]) -> None:
        # Not through the markers, which know a key for an hour: a transaction's record is its own memory.
        request = RequestKey(key, _OPERATION, hash_of(commits))
        assets = {one.table: one.asset_id for one in commits if one.asset_id is not None}
        await self._transactions.commit([request_of(one) for one in commits], request, self._source, assets)

    async def settle(self, key: str, commits: Sequence[StagedCommit], reason: str) -> Settled:
        request = RequestKey(key, _OPERATION, hash_of(commits))
        return await settle_transaction(self._ws, request, reason, _trace(commits))


def _trace(commits: Sequence[StagedCommit]) -> Trace | None:
    """What the transaction leaves in the first of its tables that says which one it is."""
    for one in commits:
        request = request_of(one)
        said = [*request.requirements, *request.updates]
        uuids = [part.uuid for part in said if isinstance(part, changes.AssertTableUuid | changes.AssignUuid)]
        added = [part.snapshot for part in request.updates if isinstance(part, changes.AddSnapshot)]
        if uuids and added:
            return Trace(uuids[0], int(added[-1]["snapshot-id"]))
    return None

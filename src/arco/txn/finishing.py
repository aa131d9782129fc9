"""Finishing for a transaction what its own process did not come to: each table's pointer without the pending change.

What was decided is true already, whoever finishes it; what was not decided is never touched before its record says so. So anybody
may do this at any time, and two at once come to the same.
"""

from arco.catalog.transaction_records import Record
from arco.catalog.workspace import Workspace
from arco.kernel.crash_points import reach
from arco.storage.cas import Overtaken, Swung


async def is_in_pointer(ws: Workspace, uuid: str, tx_id: str) -> bool:
    """Whether a table's pointer names this transaction, whatever became of it."""
    raw = await ws.pointers.object(uuid).read()
    return raw is not None and raw.value.pending is not None and raw.value.pending.tx_id == tx_id


async def finish_pointer(ws: Workspace, uuid: str, tx_id: str) -> bool:
    """Write one pointer as it counts, receipts first. Whether this was what wrote it; undecided changes stay."""
    if not await is_in_pointer(ws, uuid, tx_id):
        return False
    counting = await ws.pointers.read(uuid)
    if counting is None or counting.value.pending is not None:
        return False
    await ws.receipts.ensure_published(counting.value)
    outcome = await ws.pointers.swing(counting, counting.value)
    reach("txn.finalized")
    return isinstance(outcome, Swung | Overtaken)


async def leaves_no_trace(ws: Workspace, record: Record) -> bool:
    """Whether no pointer of its tables, tombstones included, and no name that is kept speaks of it any more (T10)."""
    if any(one.tx_id == record.tx_id for one in ws.tier1.names.reserved.values()):
        return False
    for uuid in record.tables:
        if await is_in_pointer(ws, uuid, record.tx_id):
            return False
    return True

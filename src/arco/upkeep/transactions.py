"""Transactions: the decided ones are finished, those that fell silent are sent back, and records that nobody needs go (T10).

A record goes 30 days after it was last written, and only after every pointer of its tables, tombstones included, and every name
that is kept was seen without it: a pointer that names a record which is gone would show the table as it was before. Its name is
its key's, which is past its lifetime by then; a claim that arrives all the same is not acted upon (`txn/claims.py`).

Whoever writes a table finishes what it finds there. This is for tables that nobody writes.
"""

import msgspec

from arco.catalog.transaction_records import Record, Status
from arco.kernel.ids import TransactionId
from arco.kernel.limits import TRANSACTION_KEPT_S, TRANSACTION_STALE_S, UPKEEP_CLOCKS_S, UPKEEP_GRACE_S
from arco.storage.cas import Held, Swung
from arco.storage.keys import TransactionKey
from arco.storage.port import Listed
from arco.txn.finishing import finish_pointer, is_in_pointer, leaves_no_trace
from arco.upkeep.sweep import STRANGE, Sweep

_YOUNG_S = 2 * UPKEEP_GRACE_S
_STALE_S = TRANSACTION_STALE_S + UPKEEP_CLOCKS_S


async def collect(sweep: Sweep) -> None:
    await sweep.parts.tier1.current()
    async for entry, key in sweep.walk("iceberg_transactions"):
        if not isinstance(key, TransactionKey):
            sweep.keep(STRANGE)
        elif sweep.is_older(entry, TRANSACTION_KEPT_S):
            await _collect(sweep, entry, key.transaction)
        elif sweep.is_older(entry, _YOUNG_S):
            sweep.keep("it was looked at when it was young")
        elif await _finish(sweep, entry, key.transaction) is not None:
            sweep.keep("a retry may still ask for it")


async def _collect(sweep: Sweep, entry: Listed, tx_id: TransactionId) -> None:
    record = await _finish(sweep, entry, tx_id)
    if record is None:
        return
    if record.status is Status.PREPARING:
        sweep.keep("it is not decided")
        return
    with sweep.apart(entry.key, "whether anything speaks of it is not known"):
        if await _leaves_no_trace(sweep, record):
            await sweep.remove(entry, "30 days old, and nothing speaks of it")
        else:
            sweep.keep("a pointer or a name still speaks of it")


async def _leaves_no_trace(sweep: Sweep, record: Record) -> bool:
    """Whether nothing speaks of it. A dry run has finished nothing, and says what is so once everything is."""
    if not sweep.dry_run:
        return await leaves_no_trace(sweep.parts, record)
    for uuid in record.tables:
        await is_in_pointer(sweep.parts, uuid, record.tx_id)  # a pointer that cannot be read keeps the record
    return True


async def _finish(sweep: Sweep, entry: Listed, tx_id: TransactionId) -> Record | None:
    """Leave nothing of it half done; the record, if it can be read. A pointer that cannot keeps none of the others."""
    record: Record | None = None
    with sweep.apart():
        held = await sweep.parts.records.read(tx_id)
        record = None if held is None else await _sent_back(sweep, entry, held)
    if record is None or record.status is Status.PREPARING:
        return record
    finish = is_in_pointer if sweep.dry_run else finish_pointer
    for uuid in record.tables:
        with sweep.apart(entry.key, "a pointer of its tables cannot be read"):
            sweep.tally.changed += await finish(sweep.parts, uuid, record.tx_id)
    if any(one.tx_id == record.tx_id for one in sweep.parts.tier1.names.reserved.values()):
        with sweep.apart(entry.key, "a name that it keeps was not decided about"):
            if not sweep.dry_run:
                await sweep.parts.committer.bring_in_names()
            sweep.tally.changed += 1
    return record


async def _sent_back(sweep: Sweep, entry: Listed, held: Held[Record]) -> Record:
    """An attempt that was not heard of for long is ended: whoever writes its tables need not wait for it."""
    if held.value.status is not Status.PREPARING or not sweep.is_older(entry, _STALE_S):
        return held.value
    if sweep.dry_run:
        sweep.tally.changed += 1
        return msgspec.structs.replace(held.value, status=Status.WAITING)
    outcome = await sweep.parts.records.send_back(held)
    if not isinstance(outcome, Swung):
        return held.value
    sweep.tally.changed += 1
    return outcome.held.value

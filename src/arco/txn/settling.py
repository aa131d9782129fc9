"""Settling a transaction: making it certain that it never lands, or learning that it did (PROTOCOLS P2).

Whoever gives up on a transaction that somebody may still be sending needs this first. The record decides, so there is one step:
where there is no record it is created as aborted, and the claim of whoever wakes up loses; where one is under way it is swapped
to aborted, and the decision, which swings exactly the record that its attempt was begun with, loses. Aborted is final. Nothing is
done to pointers: what was prepared there counts no more, and whoever comes next writes over it.
"""

import msgspec

from arco.catalog.answers import Refusal
from arco.catalog.idempotency import RequestKey
from arco.catalog.settling import DidLand, NeverLands, Settled, Trace, traced
from arco.catalog.transaction_records import Record, Status
from arco.catalog.workspace import Workspace
from arco.kernel.crash_points import reach
from arco.kernel.errors import Fenced, OutcomeUnknown
from arco.kernel.ids import TransactionId
from arco.kernel.limits import SWAP_ATTEMPTS_MAX, TRANSACTION_KEPT_S
from arco.storage.cas import Overtaken, Swung
from arco.storage.port import Lost, Unknown
from arco.storage.readback import pause_s


async def settle_transaction(ws: Workspace, key: RequestKey, reason: str, trace: Trace | None = None) -> Settled:
    """What became of a transaction, for certain and for ever. `reason` is what its sender hears if it is still alive.

    `trace` is what it would have left in one of its tables, for when its record is gone. Raises OutcomeUnknown where nobody can
    know: ask again later.
    """
    verdict = Refusal.of(Fenced(reason))
    for attempt in range(SWAP_ATTEMPTS_MAX):
        if attempt:
            await ws.clock.sleep(pause_s(min(attempt, 5), ws.entropy))
        held = await ws.records.read(key.key)
        if held is None and _may_be_forgotten(ws, key):
            return await traced(ws, trace)
        if held is not None and held.value.status is Status.COMMITTED:
            return DidLand(None)
        if held is not None and held.value.status is Status.ABORTED:
            return NeverLands()
        before = _unclaimed(ws, key) if held is None else held.value
        no = msgspec.structs.replace(before, status=Status.ABORTED, decided_ms=ws.clock.now_ms(), refusal=verdict)
        found = ws.records.object(key.key)
        outcome = await (found.create(no) if held is None else found.swap(held, no))
        reach("txn.aborted")
        match outcome:
            case Swung() | Overtaken():
                return NeverLands(was_free=held is None)
            case Lost():
                continue
            case Unknown(silence):
                raise OutcomeUnknown(f"the record of this transaction could not be written: {silence}")
    raise OutcomeUnknown("this transaction was worked on by others all the time; it may still land")


def _unclaimed(ws: Workspace, key: RequestKey) -> Record:
    return Record(
        tx_id=str(TransactionId(key.key)),
        request_hash=key.request_hash,
        status=Status.ABORTED,
        attempt=1,
        started_ms=ws.clock.now_ms(),
        owner="",
        principal="",
    )


def _may_be_forgotten(ws: Workspace, key: RequestKey) -> bool:
    """Whether the absence of a record proves nothing: records of that age may have been collected."""
    age_s = (ws.clock.now_ms() - TransactionId(key.key).time_ms) / 1000
    return age_s > TRANSACTION_KEPT_S / 2

"""When two transactions meet: the smaller id goes on and sends the other back, the larger waits.

So of transactions that meet in any order one always gets through: the one with the smallest id waits for nobody. One that fell
silent is sent back by anybody. Its record comes first: only when that says so may what it left be written over.
"""

from arco.catalog.workspace import Workspace
from arco.kernel.errors import RetryLater
from arco.kernel.limits import TRANSACTION_POLL_S, TRANSACTION_STALE_S, TRANSACTION_WAIT_S


async def come_to_terms(ws: Workspace, ours: str, other: str, attempt: int, waited_s: float) -> float:
    """With an attempt of another transaction in our way. How long we waited this time."""
    record = await ws.records.read(other)
    if record is None or not record.value.may_decide(attempt):
        return 0.0
    is_stale = ws.clock.now_ms() - record.value.started_ms > TRANSACTION_STALE_S * 1000
    if ours < other or is_stale:
        await ws.records.send_back(record)
        return 0.0
    if waited_s >= TRANSACTION_WAIT_S:
        raise RetryLater(f"transaction {other} was there first and is not finished", hint="try again in a moment")
    await ws.clock.sleep(TRANSACTION_POLL_S)
    return TRANSACTION_POLL_S

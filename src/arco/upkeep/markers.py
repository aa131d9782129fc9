"""Markers of keys whose lifetime is long past. A key says its own time, and one past its lifetime is refused: its marker's name
is used by nobody again. A claim that arrives later all the same is not acted upon (`catalog/idempotency.py`).

Only deletes: a marker that was left unfinished is never called failed here, for nobody knows.
"""

from arco.kernel.limits import IDEMPOTENCY_LIFETIME_S, MARKER_GRACE_S
from arco.storage.keys import MarkerKey
from arco.upkeep.sweep import STRANGE, Sweep

_KEPT_S = IDEMPOTENCY_LIFETIME_S + MARKER_GRACE_S


async def collect(sweep: Sweep) -> None:
    async for entry, key in sweep.walk("iceberg_idempotency"):
        if not isinstance(key, MarkerKey):
            sweep.keep(STRANGE)
        elif sweep.is_older(entry, _KEPT_S):
            await sweep.remove(entry, "the lifetime of its key ended more than a day ago")
        else:
            sweep.keep("a retry may still ask for it")

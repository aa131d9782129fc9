"""What time it is by the store's own clock. No clock of a machine decides what is old enough to go.

A tiny object is written and looked at. What the store says of it is never later than now, so whatever goes wrong (the write is
lost, or somebody else's is seen) things look younger than they are, and stay.
"""

from arco.kernel.errors import Unavailable
from arco.kernel.scope import Scope
from arco.storage.keys import UpkeepKey, Word
from arco.storage.port import Always, ObjectStore

_BODY = b'{"format":"arco.upkeep_clock","format_version":1}'


async def store_now_ms(store: ObjectStore, scope: Scope) -> int:
    """A moment that has passed, by the store's clock."""
    key = str(UpkeepKey(scope, Word("clock")))
    await store.put(key, _BODY, Always())
    info = await store.head(key)
    if info is None:
        raise Unavailable(f"the store does not show {key}, which was just written", hint="upkeep is tried again later")
    return info.modified_ms

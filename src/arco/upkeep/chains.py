"""Finding a place in a chain of manifests, also beyond what readers may ask for."""

from collections.abc import Awaitable, Callable

from arco.fold.manifests import C, Link
from arco.kernel.errors import BeyondReach


async def counting_at(newest: C, at_ms: int, load: Callable[[Link], Awaitable[C]]) -> C | None:
    """The manifest that counted at a moment; None if there was none.

    Where older ones were collected already, the last one that was found on the way there.
    """
    current = newest
    while current.published_ms > at_ms:
        before = current.previous
        if before is None:
            return None
        # The farthest that is still too new; if none is, the one before is the answer.
        links = (*reversed(current.earlier), before)
        try:
            current = await load(next((one for one in links if one.published_ms > at_ms), before))
        except BeyondReach:
            return current
    return current

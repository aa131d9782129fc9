"""The past: which manifest counted at a moment.

Times of a chain never go back, and far links make the way short. What lies beyond the reach, or was collected, is said to be
beyond reach, with the oldest moment that can be asked for.
"""

from collections.abc import Awaitable, Callable

from arco.fold.heads import Heads
from arco.fold.manifests import C, Link, Manifest, RootManifest
from arco.kernel.errors import BeyondReach
from arco.ledger.envelope import EventTime
from arco.storage.keys import Head


async def manifest_as_of(heads: Heads, head: Head, at_ms: int) -> Manifest:
    """What a head had published at a moment."""
    standing = await heads.read(head)
    return await _as_of(standing.manifest, at_ms, heads.clock.now_ms(), lambda link: heads.manifest(head, link))


async def cut_as_of(heads: Heads, at_ms: int) -> RootManifest:
    """The cut through all heads that readers saw at a moment."""
    root = await heads.read_root()
    return await _as_of(root.manifest, at_ms, heads.clock.now_ms(), heads.root_manifest)


async def _as_of(newest: C | None, at_ms: int, now_ms: int, load: Callable[[Link], Awaitable[C]]) -> C:
    if newest is None:
        raise BeyondReach("nothing has been published yet", hint="run the fold")
    oldest_ms = newest.oldest_ms(now_ms)
    current = newest
    while current.published_ms > at_ms:
        if current.previous is None or at_ms < oldest_ms:
            raise _beyond(at_ms, oldest_ms)
        # The farthest that is still too new; if none is, the one before is the answer.
        links = (*reversed(current.earlier), current.previous)
        link = next((one for one in links if one.published_ms > at_ms), current.previous)
        try:
            current = await load(link)
        except BeyondReach:
            raise _beyond(at_ms, current.published_ms) from None
    return current


def _beyond(at_ms: int, oldest_ms: int) -> BeyondReach:
    said = f"the state at {EventTime.at(at_ms)} is beyond reach: the oldest there is is that of {EventTime.at(oldest_ms)}"
    return BeyondReach(said, oldest_ms=oldest_ms)

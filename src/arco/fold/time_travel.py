"""The past: which manifest counted at a moment.

Times of a chain never go back, and far links make the way short. What lies beyond the reach, or was collected, is said to be
beyond reach, with the oldest moment that can be asked for.
"""

from collections.abc import Awaitable, Callable

from arco.fold.heads import Heads
from arco.fold.manifests import C, Link, Manifest, RootManifest, number_in
from arco.kernel.errors import BeyondReach, NotFound
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


async def cut_at_sequence(heads: Heads, newest: RootManifest, sequence: int) -> RootManifest | None:
    """The cut with a number, from the chain that ends in a newer one. None: it was collected."""
    try:
        return await _at(newest, sequence, heads.root_manifest)
    except BeyondReach:
        return None


async def cut_by_id(heads: Heads, snapshot: str) -> RootManifest:
    """A cut by its id. One that was written and never counted is none."""
    newest = (await heads.read_root()).manifest
    key = heads.manifest_key(Head.ROOT, snapshot)
    stored = await heads.store.get(key)
    if newest is None or stored is None:
        raise NotFound(f"there is no snapshot {snapshot}", hint="ask for the current one, or by its time")
    sequence = number_in(stored.data, key)
    found = await cut_at_sequence(heads, newest, sequence) if 1 <= sequence <= newest.sequence else None
    if found is None or found.snapshot != snapshot:
        raise NotFound(f"there is no snapshot {snapshot}", hint="ask for the current one, or by its time")
    return found


async def _at(newest: C, sequence: int, load: Callable[[Link], Awaitable[C]]) -> C:
    current = newest
    while current.sequence > sequence and current.previous is not None:
        links = (*reversed(current.earlier), current.previous)
        current = await load(next((one for one in links if one.sequence >= sequence), current.previous))
    return current


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

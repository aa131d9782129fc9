"""One mutation of tier 1, done once however often it is sent.

The chain of commits is the memory: every operation carries its key, so a retry looks for it there before it does anything.
The marker adds what the chain cannot know: the identity that the first attempt minted, the answer, and the refusal that every
retry must hear again.
"""

from collections.abc import Awaitable, Callable

import msgspec

from arco.catalog.answers import Answer, Refusal
from arco.catalog.commits import replayed_error
from arco.catalog.idempotency import Marker, RequestKey, State
from arco.catalog.workspace import Workspace
from arco.kernel.errors import FixRequest, OutcomeUnknown, Refresh
from arco.storage.cas import Held

Act = Callable[[Marker], Awaitable[Answer]]


async def once(ws: Workspace, key: RequestKey, first: Marker, act: Act) -> Answer:
    """Claim the key and act, or hear what came of it before. `act` gets the marker of the first attempt, also in a retry."""
    if not key.durable:
        return await act(first)
    held = await ws.markers.claim(key, first)
    if held is None:
        found = await _earlier(ws, key)
        if isinstance(found, Answer):
            return found
        held = found
    try:
        answer = await act(held.value)
    except (FixRequest, Refresh) as refusal:
        failed = msgspec.structs.replace(held.value, state=State.FAILED, refusal=Refusal(refusal.code, refusal.message))
        await ws.markers.renew(key, held, failed)
        raise
    await ws.markers.object(key).swap(held, msgspec.structs.replace(held.value, state=State.COMMITTED, answer=answer))
    return answer


async def _earlier(ws: Workspace, key: RequestKey) -> Answer | Held[Marker]:
    """The answer of an earlier attempt, or its marker, taken over, to go on with."""
    held = await ws.markers.existing(key)
    if held.value.state is State.IN_PROGRESS:
        await ws.tier1.current()
        if await ws.tier1.landed_at(key.hash, held.value.since) is None:
            held = await ws.markers.wait(key)
    marker = held.value
    if marker.refusal is not None:
        raise replayed_error(marker.refusal)
    if marker.answer is not None:
        return marker.answer
    if marker.state is not State.IN_PROGRESS:
        raise OutcomeUnknown("the record of this request has no answer")
    return await ws.markers.renew(key, held, ws.markers.taken_over(marker))

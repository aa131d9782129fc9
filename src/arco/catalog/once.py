"""One mutation of tier 1, done once however often it is sent.

The chain of commits is the memory: every operation carries its key, so a retry looks for it there before it does anything.
The marker adds what the chain cannot know: the identity that the first attempt found or minted, the answer, and the refusal
that every retry must hear again. A refusal is durable before it is sent; an answer that is true by the chain need not be.
"""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from arco.catalog.answers import Answer, Refusal, replayed_error
from arco.catalog.doubt import doubt
from arco.catalog.idempotency import Marker, RequestKey, State
from arco.catalog.manifest import Author
from arco.catalog.operations import Operation
from arco.catalog.workspace import Workspace
from arco.kernel.errors import ArcoError, Conflict, FixRequest, GivenUp, OutcomeUnknown, Refresh
from arco.kernel.limits import REQUEST_FRESH_S
from arco.storage.cas import Held

_LOOKS_MAX = 3
GIVEN_UP = "this request could not be finished, and was given up"

Begin = Callable[[], Awaitable[Marker]]
Stage = Callable[[Marker], Awaitable[None]]
Act = Callable[[Marker], Awaitable[Answer]]


async def nothing(_: Marker) -> None:
    """For what has nothing to prepare."""


async def once(ws: Workspace, key: RequestKey, begin: Begin, act: Act, stage: Stage = nothing) -> Answer:
    """Claim the key and act, or hear what came of it before.

    `begin` finds what the request is about, and may refuse. `stage` prepares what nobody can see yet, beside the claim.
    `act` makes it visible. All three get, or make, the marker of the first attempt, also in a retry.
    """
    came_s = ws.clock.monotonic_s()
    with ws.markers.working(key):
        if not key.durable:
            await _known(ws, key)
            first = await begin()
            await stage(first)
            return await act(first)
        with doubt():
            # The key may have been sent before: only our own claim says that nothing was done under it.
            await _known(ws, key)
            begun = await _begun(ws, key, begin, stage)
            if begun is None:
                return await _again(ws, key, act, stage, came_s)
        return await _acted(ws, key, *begun, act)


async def submit_once(
    ws: Workspace, key: RequestKey, begin: Begin, operation: Callable[[Marker], Operation], author: Author
) -> Answer:
    """For what is one operation of tier 1 and no more."""

    async def act(marker: Marker) -> Answer:
        await ws.committer.submit(operation(marker), since=marker.since, author=author)
        return Answer(200)

    return await once(ws, key, begin, act)


async def _known(ws: Workspace, key: RequestKey) -> None:
    """A process that has read nothing would look for the key in the whole chain; one that has not looked for long would take
    what was done under a key of long ago for this request."""
    if ws.tier1.held is None or ws.markers.may_come_again(key):
        await ws.tier1.current()


async def _begun(
    ws: Workspace, key: RequestKey, begin: Begin, stage: Stage
) -> tuple[Held[Marker], "asyncio.Future[None]"] | None:
    """The marker that is ours, and what was staged beside its claim; None if the key was used before.

    A refusal to begin is heard only by who is first: a retry hears what it heard before, whatever the names say now.
    """
    try:
        first = await begin()
    except (FixRequest, Refresh) as refusal:
        failed = refused(ws.markers.fresh(key, ws.tier1.seen.sequence), refusal)
        if await ws.markers.claim(key, failed) is not None:
            raise
        return None
    claim = asyncio.ensure_future(ws.markers.claim(key, first))
    staging = asyncio.ensure_future(stage(first))
    await asyncio.wait([claim, staging])
    staging.exception()
    held = claim.result()
    return None if held is None else (held, staging)


async def _again(ws: Workspace, key: RequestKey, act: Act, stage: Stage, came_s: float) -> Answer:
    """The key is in use: its answer, or its marker taken over and acted on."""
    found = await _earlier(ws, key, came_s)
    if isinstance(found, Answer):
        return found
    return await _acted(ws, key, found, stage(found.value), act)


async def _acted(ws: Workspace, key: RequestKey, held: Held[Marker], staging: Awaitable[None], act: Act) -> Answer:
    try:
        await staging
        answer = await act(held.value)
    except (FixRequest, Refresh) as refusal:
        # An earlier attempt may be at work on it still, or its swing on its way.
        if held.value.attempt > 1 and not await ws.committer.give_up(key.hash, held.value.since):
            raise OutcomeUnknown("an earlier attempt of this request was done meanwhile") from refusal
        await ws.markers.renew(key, held, refused(held.value, refusal))
        raise
    except GivenUp as given_up:
        no = Conflict(GIVEN_UP)
        await ws.markers.renew(key, held, refused(held.value, no))
        raise no from given_up
    done = msgspec.structs.replace(held.value, state=State.COMMITTED, answer=answer)
    ws.afterwards.do(ws.markers.object(key).swap(held, done))
    return answer


async def _earlier(ws: Workspace, key: RequestKey, came_s: float) -> Answer | Held[Marker]:
    """The answer of an earlier attempt, or its marker, taken over, to go on with.

    A first attempt answers before its marker is finished: a retry that comes right after it may see the marker unfinished, and
    lose the takeover to that very end. Then it looks again, and finds the answer.
    """
    for _ in range(_LOOKS_MAX):
        held = await ws.markers.existing(key)
        if not held.value.state.is_final:
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
        if ws.clock.monotonic_s() - came_s > REQUEST_FRESH_S:
            # Whoever fell silent may have told our client, which has asked again since, that nothing was done (C8).
            raise OutcomeUnknown("a later request of this key may have been told that it was not done")
        ours = await ws.markers.take_over(key, held)
        if ours is not None:
            return ours
    raise OutcomeUnknown("other attempts of this request took over, one after the other")


def refused(marker: Marker, refusal: ArcoError) -> Marker:
    """A marker that will say the same no to every retry."""
    return msgspec.structs.replace(marker, state=State.FAILED, refusal=Refusal.of(refusal))

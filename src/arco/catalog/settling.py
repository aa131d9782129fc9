"""Settling a key: making it certain that its commit never lands, or learning that it did.

Whoever gives up on somebody else's attempt needs this first. An attempt that is silent may be dead, or may wake up in an hour
and go on with its next step. The failure this prevents, in order:
  1. an attempt claims its key, prepares its swing, and stalls
  2. it is declared dead, and its task recorded as failed, or given to another
  3. it wakes up and swings: what was reported as failed is published, or published twice

    marker absent        → create it as failed: the attempt's own claim will lose
    marker in progress   → swap it to settling: from here on the attempt can write no further marker, and so no further swing
                         → read the pointer → look in history → touch the pointer: the one swing under way is dead
                         → only then swap the marker to failed

The order matters. A verdict before the touch is heard while the swing can still land; a look at history before the marker was
taken away misses the next swing; a touch of a newer pointer than the one whose history was asked leaves a gap between.

A request that gives a new table its name is decided in tier 1 instead. There the chain of commits takes the place of the
pointer: a void operation under the request's key refuses it, and the commit that carries it kills the swing under way.
"""

from dataclasses import dataclass

import msgspec

from arco.catalog.answers import Answer
from arco.catalog.history import Landing, landing
from arco.catalog.idempotency import Marker, RequestKey, State
from arco.catalog.once import refused
from arco.catalog.operations import Void
from arco.catalog.pointer import Pointer
from arco.catalog.subject import Tables
from arco.catalog.workspace import Workspace
from arco.kernel.crash_points import reach
from arco.kernel.errors import Fenced, OutcomeUnknown
from arco.kernel.ids import TimedIdempotencyKey
from arco.kernel.limits import IDEMPOTENCY_LIFETIME_S, MARKER_GRACE_S, SWAP_ATTEMPTS_MAX
from arco.storage.cas import Held, Overtaken, Swung
from arco.storage.port import Lost, Unknown
from arco.storage.readback import pause_s


@dataclass(frozen=True, slots=True)
class DidLand:
    """The commit is in the table's history. The location is None if it made the table."""

    metadata_location: str | None


@dataclass(frozen=True, slots=True)
class NeverLands:
    """The commit is not in the table's history and can no longer get there. `was_free`: nobody had used its key."""

    was_free: bool = False


Settled = DidLand | NeverLands


@dataclass(frozen=True, slots=True)
class Trace:
    """What a commit leaves in its table, for when its marker is gone."""

    table_uuid: str
    snapshot_id: int


async def settle(ws: Workspace, key: RequestKey, reason: str, trace: Trace | None = None) -> Settled:
    """What became of a commit, for certain and for ever. `reason` is what its attempt hears if it is still alive.

    Raises OutcomeUnknown where that cannot be known: ask again later.
    """
    if _may_be_forgotten(ws, key) and await ws.markers.object(key).read() is None:
        return await traced(ws, trace)
    for attempt in range(SWAP_ATTEMPTS_MAX):
        if attempt:
            await ws.clock.sleep(pause_s(min(attempt, 5), ws.entropy))
        settled = await _try(ws, key, Fenced(reason))
        if settled is not None:
            return settled
    raise OutcomeUnknown("this commit was worked on by others all the time; it may still land")


def _may_be_forgotten(ws: Workspace, key: RequestKey) -> bool:
    """Whether the absence of a marker proves nothing: markers of that age may have been collected.

    Half of the time that a marker is kept beyond its lifetime is left for clocks that differ.
    """
    age_s = (ws.clock.now_ms() - TimedIdempotencyKey(key.key).time_ms) / 1000
    return age_s > IDEMPOTENCY_LIFETIME_S + MARKER_GRACE_S / 2


async def traced(ws: Workspace, trace: Trace | None) -> Settled:
    """A commit without a marker, long ago: it landed if its snapshot is there. Its absence may mean that it expired."""
    pointer = None if trace is None else await ws.pointers.read(trace.table_uuid)
    if trace is not None and pointer is not None:
        location = pointer.value.metadata_location
        metadata = Tables().decode(await ws.files.read(location), location)
        if any(one["snapshot-id"] == trace.snapshot_id for one in metadata.snapshots):
            return DidLand(location)
    raise OutcomeUnknown(
        "this commit was begun so long ago that its record may be gone", hint="look at the table, then start a new run"
    )


async def _try(ws: Workspace, key: RequestKey, verdict: Fenced) -> Settled | None:
    """One pass. None if somebody else wrote meanwhile: look again."""
    if await _poisoned(ws, key, verdict):
        return NeverLands(was_free=True)
    reach("settle.key_in_use")
    held = await ws.markers.object(key).read()
    if held is None:
        raise OutcomeUnknown("the record of this commit is gone")
    match held.value.state:
        case State.COMMITTED:
            return DidLand(held.value.metadata_location)
        case State.FAILED:
            return NeverLands()
        case State.IN_PROGRESS | State.SETTLING:
            pass
    taken = await _swapped(ws, key, held, msgspec.structs.replace(held.value, state=State.SETTLING))
    if taken is None:
        return None
    reach("settle.marker_taken")
    if taken.value.base_commit_number is None:
        return await _judge_name(ws, key, taken, verdict)
    return await _judge(ws, key, taken, verdict)


async def _poisoned(ws: Workspace, key: RequestKey, verdict: Fenced) -> bool:
    """Whether nobody had claimed the key, and nobody will."""
    failed = refused(ws.markers.fresh(key, ws.tier1.seen.sequence), verdict)
    match await ws.markers.object(key).create(failed):
        case Swung() | Overtaken():
            return True
        case Lost():
            return False
        case Unknown(reason):
            raise OutcomeUnknown(f"the record of this commit could not be written: {reason}")


async def _judge(ws: Workspace, key: RequestKey, held: Held[Marker], verdict: Fenced) -> Settled | None:
    """The marker is ours: no swing can be prepared any more, and at most one is under way."""
    marker = held.value
    for _ in range(SWAP_ATTEMPTS_MAX):
        pointer = await ws.pointers.settled(marker.table_uuid or "")
        found = await landing(marker.tried, pointer, ws, Tables())
        if found is Landing.LANDED:
            return await _landed(ws, key, held, pointer)
        if found is Landing.NEVER or pointer is None or await _touched(ws, pointer):
            reach("settle.swing_dead")
            failed = await _swapped(ws, key, held, refused(marker, verdict))
            return None if failed is None else NeverLands()
    raise OutcomeUnknown("this table was changed by others all the time; the commit may still land")


async def _judge_name(ws: Workspace, key: RequestKey, held: Held[Marker], verdict: Fenced) -> Settled | None:
    """As above, for what is decided in tier 1. One that landed is left for its owner's retry to finish."""
    await ws.committer.submit(Void(key_hash=key.hash), since=held.value.since)
    if await ws.tier1.landed_at(key.hash, held.value.since) is not None:
        await _swapped(ws, key, held, msgspec.structs.replace(held.value, state=State.IN_PROGRESS))
        return DidLand(None)
    reach("settle.swing_dead")
    failed = await _swapped(ws, key, held, refused(held.value, verdict))
    return None if failed is None else NeverLands()


async def _touched(ws: Workspace, pointer: Held[Pointer]) -> bool:
    """Whether exactly the pointer whose history was asked has a new version now."""
    match await ws.pointers.touch(pointer):
        case Swung() | Overtaken():
            return True
        case Lost():
            return False
        case Unknown(reason):
            raise OutcomeUnknown(f"the commit may still land: {reason}")


async def _landed(ws: Workspace, key: RequestKey, held: Held[Marker], pointer: Held[Pointer] | None) -> Settled:
    """Finish what its owner did not come to: the receipts, and the marker's answer."""
    location = held.value.metadata_location or ""
    if pointer is not None:
        await ws.receipts.ensure_published(pointer.value)
    done = msgspec.structs.replace(held.value, state=State.COMMITTED, answer=Answer(200, metadata_location=location))
    await ws.markers.object(key).swap(held, done)
    return DidLand(location)


async def _swapped(ws: Workspace, key: RequestKey, held: Held[Marker], marker: Marker) -> Held[Marker] | None:
    """The marker as we wrote it; None if somebody else did."""
    match await ws.markers.object(key).swap(held, marker):
        case Swung(after):
            return after
        case Overtaken() | Lost():
            return None
        case Unknown(reason):
            raise OutcomeUnknown(f"the record of this commit could not be written: {reason}")

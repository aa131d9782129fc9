"""The lost reply: turning `Unknown` into what really happened, by reading back.

The failure this prevents, in order:
  1. a writer sends a conditional write; the store applies it; the reply is lost
  2. somebody sends it again; the store answers "already exists" or "does not match"
  3. the writer believes it lost, and does its work a second time: a commit is doubled
  or: the writer cleans up what it believes failed: a landed commit loses its files

Two rules. A body that must have one winner carries an identity nobody else can write (`cas.py` stamps one). And the answer
comes from what the object says, never from the reply alone: our bytes there means landed; the base still there means not
yet, so put the same bytes again; anything else is judged by the history that the body carries, and if that does not reach
back far enough the answer stays `Unknown`. A second attempt carries the same bytes under the same condition, so an earlier
one that was only slow cannot add a second effect.
"""

from collections.abc import Callable
from dataclasses import dataclass

from arco.kernel.clock import Clock
from arco.kernel.entropy import Entropy
from arco.kernel.errors import ArcoError, RetryLater
from arco.kernel.limits import READBACK_ATTEMPTS_MAX, READBACK_PAUSE_S_FIRST, READBACK_PAUSE_S_MAX
from arco.storage.port import (
    Absent,
    Always,
    Condition,
    Landed,
    Lost,
    Matches,
    Object,
    ObjectStore,
    Outcome,
    Unknown,
)

Judge = Callable[[Object], Outcome]
"""Decides from the object that stands there now whether our write landed before it."""


async def put_settled(
    store: ObjectStore,
    key: str,
    data: bytes,
    condition: Condition,
    *,
    clock: Clock,
    entropy: Entropy,
    judge: Judge | None = None,
) -> Outcome:
    """Write once in effect, whatever replies are lost.

    `Unknown` only if the store stays silent or history is too short. Raises only when surely nothing was written. Without
    a judge, an object that is created is taken to be immutable, and one that is replaced to carry no history.
    """
    doubt: Unknown | None = None
    failure: RetryLater | None = None
    for attempt in range(READBACK_ATTEMPTS_MAX):
        if attempt:
            await clock.sleep(pause_s(attempt, entropy))
        try:
            outcome = await store.put(key, data, condition)
            if isinstance(outcome, Landed) or (isinstance(outcome, Lost) and doubt is None):
                return outcome
            doubt = Unknown(outcome.reason)
            seen = await _read_back(store, key, data, condition, judge)
        except RetryLater as error:
            failure = error
        except ArcoError as error:
            if doubt is None:
                raise
            # Refused now, but an attempt before may have landed: "nothing happened" would be a lie.
            return Unknown(error.message)
        else:
            if not isinstance(seen, _NotThere):
                return seen
    if doubt is None and failure is not None:
        raise failure
    reason = doubt.reason if doubt else "the store did not answer"
    return Unknown(f"no definite answer after {READBACK_ATTEMPTS_MAX} attempts: {reason}")


@dataclass(frozen=True, slots=True)
class _NotThere:
    """Not stored so far: the same write may be sent again."""


async def _read_back(
    store: ObjectStore, key: str, data: bytes, condition: Condition, judge: Judge | None
) -> Outcome | _NotThere:
    current = await store.get(key)
    if current is not None and current.data == data:
        return Landed(current.version)
    match condition:
        case Always():
            return _NotThere()
        case Absent():
            if current is None:
                return _NotThere()
            return judge(current) if judge else Lost("the object exists")
        case Matches(version):
            if current is None:
                # An object with a version to match was there. Whoever removed it may have removed our write.
                return Unknown("the object is gone")
            if current.version == version:
                return _NotThere()
            return judge(current) if judge else Unknown("the object was overwritten, and does not say by whom before")


def pause_s(attempt: int, entropy: Entropy) -> float:
    """A pause that doubles with each attempt, shortened at random so that rivals do not meet again."""
    longest = min(READBACK_PAUSE_S_MAX, READBACK_PAUSE_S_FIRST * (1 << attempt - 1))
    return longest * (0.5 + entropy.fraction() / 2)

"""The names of one attempt's publish, derived so that everybody who looks at the run finds the same.

A publish is keyed by run, task and attempt, and by the moment at which it was staged. The key is a UUID of version 7 because
the catalog refuses keys that are older than their lifetime, and keeps their markers for a day after it. The moment is the one
that `OutputStaged` records just before the commit is sent: the attempt itself may have begun hours earlier, and a key made then
would be refused. Whoever settles the attempt reads the key from the log and need not derive anything.

An attempt that stalls between the two for longer than the lifetime is refused by the catalog before it writes anything, and
is then settled like any other.
"""

import uuid

from arco.kernel.fingerprint import fingerprint
from arco.kernel.ids import MaterializationId, RunId, TaskId, TimedIdempotencyKey, encode_ulid

_TIME_BITS = 48
_RANDOM_BITS = 80


def publish_key(run: RunId, task: TaskId, attempt: int, at_ms: int) -> TimedIdempotencyKey:
    """The idempotency key of one publish."""
    drawn = int(fingerprint("publish", run, task, str(attempt), str(at_ms))[:20], 16)
    value = (at_ms & (1 << _TIME_BITS) - 1) << _RANDOM_BITS | drawn
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return TimedIdempotencyKey(str(uuid.UUID(int=value)))


def materialization_id(run: RunId, task: TaskId) -> MaterializationId:
    """One for all attempts of a task in a run: an attempt that finds it in the table's history has nothing left to do."""
    drawn = int(fingerprint("materialization", run, task)[:20], 16)
    return MaterializationId(encode_ulid(run.time_ms << _RANDOM_BITS | drawn))

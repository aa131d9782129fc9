"""The names of one attempt's publish, derived so that everybody who looks at the run finds the same.

A publish is keyed by run, task and attempt. The key is a UUID of version 7, because the catalog refuses keys that are older than
their lifetime (an hour) and forgets them a day later. Its time is the one that `OutputStaged` records just before the commit is
sent: the attempt itself may have begun hours earlier, and a key made then would be refused. Whoever settles the attempt reads
that moment from the log.

A commit that is refused because others committed meanwhile is drafted again on the new base, as a commit of its own with the
next key: a refusal is remembered under its key for ever. The keys of an attempt are used in order, each only after the one
before it was refused; so settling them in order, up to the first that nobody had used, settles the attempt.

Rows that are set aside are committed first, under keys of the same attempt and moment. An attempt is settled when neither of its
commits can land any more.

An attempt that stalls between staging and committing for longer than the lifetime is refused by the catalog before it writes
anything, and is then settled like any other.
"""

import uuid

from arco.kernel.fingerprint import fingerprint

_HASH_BITS = 80


def publish_key(run: str, task: str, attempt: int, rebase: int, at_ms: int) -> str:
    """The idempotency key of one commit of one attempt: a UUID of version 7 whose random part says whose it is."""
    return _key_of(fingerprint("publish", run, task, str(attempt), str(rebase)), at_ms)


def aside_of(task: str) -> str:
    """What the rows that a task sets aside are keyed by instead of the task: they are a commit of their own, to another table."""
    return f"{task}/quarantine"


def together_key(run: str, number: int, at_ms: int) -> str:
    """The key of the transaction that publishes an atomic run."""
    return _key_of(fingerprint("publish together", run, str(number)), at_ms)


def _key_of(digest: str, at_ms: int) -> str:
    drawn = int(digest[:32], 16)
    value = (at_ms & (1 << 48) - 1) << _HASH_BITS | drawn & (1 << _HASH_BITS) - 1
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return str(uuid.UUID(int=value))


def snapshot_id(run: str, task: str, attempt: int) -> int:
    """The snapshot that an attempt makes, whatever base it lands on: so events can name it before the commit is sent."""
    return int(fingerprint("snapshot", run, task, str(attempt))[:16], 16) >> 1 or 1

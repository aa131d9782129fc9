"""What happens so often that it is counted: words for it, and somebody who counts. Nobody, unless a server is told to.

What must never enter: anything that decides by a count.
"""

from enum import StrEnum
from typing import Protocol


class Tallied(StrEnum):
    """What is counted. `QUEUED` goes up and down: commits that wait for their turn at a table."""

    COMMIT_LANDED = "commit_landed"
    COMMIT_REFUSED = "commit_refused"
    COMMIT_RETRIED = "commit_retried"
    SWING_LOST = "swing_lost"
    SWING_UNKNOWN = "swing_unknown"
    SWING_LANDED = "swing_landed"
    GROUPED = "grouped"
    QUEUED = "queued"
    QUEUE_FULL = "queue_full"
    QUEUE_TOO_OLD = "queue_too_old"
    NAMES_HIT = "names_hit"
    NAMES_MISS = "names_miss"
    TABLE_HIT = "table_hit"
    TABLE_MISS = "table_miss"
    ANSWER_HIT = "answer_hit"
    ANSWER_MISS = "answer_miss"
    STAGED = "staged"
    STAGED_CREATED = "staged_created"
    STAGED_REFUSED = "staged_refused"
    STAGED_EXPIRED = "staged_expired"
    STAGED_ABANDONED = "staged_abandoned"

    # Every request looks some of these up; the hash of an enumeration is computed in Python, that of its text is kept.
    __hash__ = str.__hash__


class Tallies(Protocol):
    def add(self, what: Tallied, by: int = 1) -> None: ...


class Uncounted:
    """Nobody counts."""

    def add(self, what: Tallied, by: int = 1) -> None:
        return


UNCOUNTED = Uncounted()

"""What the fold asks of whoever executes it, and what it gets back: inputs to files.

The protocol (which inputs, which manifest, who publishes) knows nothing of Spark, and Spark knows nothing of heads. Files are
written under names that nobody has; they count when a manifest names them, and not before: an attempt that is killed, or runs
twice, leaves files that nobody refers to.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from arco.storage.keys import Head


class StateFile(msgspec.Struct, frozen=True, kw_only=True):
    """One Parquet file of state, as a manifest names it. `checksum` is the SHA-256 of its bytes.

    `buckets` are those that it has rows of, ascending; `least` and `greatest` are the bounds of its key columns in the order of
    the table, as JSON values; positions are those of the events it was made from.
    """

    table: str
    key: str
    checksum: str
    rows: int
    bytes: int
    buckets: tuple[int, ...]
    least: tuple[Any, ...]
    greatest: tuple[Any, ...]
    first_position: str | None = None
    last_position: str | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """An event, or a whole segment, that cannot be folded, and why. It is kept beside the ledger, and counted."""

    segment: str
    event_id: str | None
    reason: str
    line: bytes
    unknown: bool = False
    """Its type or its version is not known to this Arco: it is set aside for one that knows it."""
    beside_plans: bool = False
    """No plan stands on it, in whatever version: another system said it, of a run, or in words that nobody understands."""


@dataclass(frozen=True, slots=True)
class Appended:
    """A segment that was folded: when the first of its events was told, and the types of them all."""

    segment: str
    at_ms: int
    types: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Folded:
    """What some inputs came to."""

    files: tuple[StateFile, ...]
    events: int
    refused: tuple[Refused, ...] = ()
    writers: tuple[tuple[str, int], ...] = ()
    """The writer and number of every segment that was read, for the search for gaps."""
    appended: tuple[Appended, ...] = ()
    """What was folded, for those who ask how soon it could be seen."""


class Work(Protocol):
    """Executes the fold. `into` is a folder name that no other attempt has."""

    async def fold(self, head: Head, segments: Sequence[str], into: str) -> Folded:
        """Read segments by their names, join what their events contribute, write one delta.

        NotFound: a segment is no longer there, because another folder consumed it and it was moved aside meanwhile.
        """
        ...

    async def merge(self, head: Head, files: Sequence[StateFile], into: str) -> tuple[StateFile, ...]:
        """Join files of one head, base and deltas alike, into a new base."""
        ...

"""Identifiers: ULIDs that grow within a process, UUIDv7 with validation, and one type per kind of identifier.

Each identifier is a `str` subclass that validates on construction, so a value of the type is always well formed, prints and
sorts as text, and cannot be passed where another kind is expected. What must never enter: anything that derives an
identifier from other values (that is `identity.py`) or places one in an object name (that is `storage/keys.py`).
"""

import re
import uuid
from typing import TYPE_CHECKING, ClassVar, Self

from arco.kernel.errors import InvalidInput

if TYPE_CHECKING:  # a clock brings asyncio along, and whoever only reads an id needs neither
    from arco.kernel.clock import Clock
    from arco.kernel.entropy import Entropy

ULID_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""The characters of a ULID, in their order: Crockford's base 32."""
_CROCKFORD_VALUE = {char: value for value, char in enumerate(ULID_ALPHABET)}
_ULID_CHARS = 26
# Two characters at a time, and numbers of a size that the processor has: every request gets an id.
_PAIRS = tuple(first + second for first in ULID_ALPHABET for second in ULID_ALPHABET)
_40_BITS = (1 << 40) - 1
_ULID_RANDOM_BITS = 80
_ULID_RANDOM_MASK = (1 << _ULID_RANDOM_BITS) - 1
_ULID_MAX = (1 << 128) - 1


def encode_ulid(value: int) -> str:
    """128 bits as 26 characters of Crockford's base 32; text order equals number order."""
    if not 0 <= value <= _ULID_MAX:
        raise InvalidInput(f"a ULID has 128 bits, not {value.bit_length()}")
    pair, first, middle, last = _PAIRS, value >> 80, value >> 40 & _40_BITS, value & _40_BITS
    return (
        f"{pair[first >> 40]}{pair[first >> 30 & 1023]}{pair[first >> 20 & 1023]}{pair[first >> 10 & 1023]}{pair[first & 1023]}"
        f"{pair[middle >> 30]}{pair[middle >> 20 & 1023]}{pair[middle >> 10 & 1023]}{pair[middle & 1023]}"
        f"{pair[last >> 30]}{pair[last >> 20 & 1023]}{pair[last >> 10 & 1023]}{pair[last & 1023]}"
    )


def decode_ulid(text: str) -> int:
    """The 128 bits of a ULID in its one canonical spelling: upper case, no look-alike letters, no overflow."""
    if len(text) != _ULID_CHARS or text[0] > "7" or any(char not in _CROCKFORD_VALUE for char in text):
        raise InvalidInput(f"{clip(text)!r} is not a ULID", hint="26 characters of 0-9 and A-Z without I, L, O, U")
    value = 0
    for char in text:
        value = value << 5 | _CROCKFORD_VALUE[char]
    return value


def clip(text: str, limit_chars: int = 80) -> str:
    """Text short enough for a message, so that a hostile value cannot flood a log."""
    return text if len(text) <= limit_chars else f"{text[:limit_chars]}…"


class Identifier(str):
    """A validated identifier. Subclasses say which pattern they take."""

    __slots__ = ()
    what: ClassVar[str] = "identifier"
    pattern: ClassVar[re.Pattern[str]] = re.compile(r"[\x21-\x7e]{1,200}")
    form: ClassVar[str] = "1 to 200 printable ASCII characters without spaces"

    def __new__(cls, text: str) -> Self:
        if type(text) is cls:
            return text  # it is one already
        if cls.pattern.fullmatch(text) is None:
            article = "an" if cls.what[0] in "aeio" else "a"
            raise InvalidInput(f"{clip(text)!r} is not {article} {cls.what}", hint=f"it must be {cls.form}")
        return str.__new__(cls, text)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"


class UlidIdentifier(Identifier):
    """An identifier that is a ULID: unique, and close to the order of its making."""

    __slots__ = ()
    what = "ULID"
    pattern = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")
    form = "a ULID: 26 characters of 0-9 and A-Z without I, L, O, U"

    @property
    def time_ms(self) -> int:
        return decode_ulid(self) >> _ULID_RANDOM_BITS


class UuidIdentifier(Identifier):
    """An identifier that is a UUID in canonical lower-case form."""

    __slots__ = ()
    what = "UUID"
    pattern = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
    form = "a UUID in canonical form, lower case with hyphens"


class Uuid7Identifier(UuidIdentifier):
    """A UUID of version 7 (RFC 9562): its first 48 bits are the milliseconds it was made at."""

    __slots__ = ()
    what = "UUIDv7"
    pattern = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
    form = "a UUID of version 7 in canonical form, lower case with hyphens"

    @property
    def time_ms(self) -> int:
        return int(self[:8] + self[9:13], 16)


class AssetId(UlidIdentifier):
    """An asset, for ever: given at first deploy, kept through renames, drops and re-creations."""

    __slots__ = ()
    what = "asset id"


class ColumnId(UlidIdentifier):
    """A column of the schema registry; survives renames."""

    __slots__ = ()
    what = "column id"


class NamespaceId(UlidIdentifier):
    """A namespace; survives renames."""

    __slots__ = ()
    what = "namespace id"


class MaterializationId(UlidIdentifier):
    """One publish of one task."""

    __slots__ = ()
    what = "materialization id"


class RunId(UlidIdentifier):
    """One execution of a plan."""

    __slots__ = ()
    what = "run id"


class EventId(UlidIdentifier):
    """One event of the ledger."""

    __slots__ = ()
    what = "event id"


class SegmentId(UlidIdentifier):
    """One object of the ledger."""

    __slots__ = ()
    what = "segment id"


class CommitId(UlidIdentifier):
    """One commit of tier 1."""

    __slots__ = ()
    what = "commit id"


class SnapshotId(UlidIdentifier):
    """One published state of the catalog (a manifest), not an Iceberg snapshot."""

    __slots__ = ()
    what = "snapshot id"


class ConsumedListId(UlidIdentifier):
    """One list of what the fold has consumed."""

    __slots__ = ()
    what = "consumed list id"


class DeploymentId(UlidIdentifier):
    """One deployment of a project."""

    __slots__ = ()
    what = "deployment id"


class WriteId(UlidIdentifier):
    """One write of a compare-and-swap object; the identity that read-back looks for."""

    __slots__ = ()
    what = "write id"


class WriterId(UlidIdentifier):
    """One writer of one domain of the ledger; its segments are numbered without gaps."""

    __slots__ = ()
    what = "writer id"


class HolderId(UlidIdentifier):
    """One holder of a lease."""

    __slots__ = ()
    what = "holder id"


class DropId(UlidIdentifier):
    """One drop of a table; a tombstone names it."""

    __slots__ = ()
    what = "drop id"


class TableUuid(UuidIdentifier):
    """A table of any format, as Iceberg names it."""

    __slots__ = ()
    what = "table uuid"


class ViewUuid(UuidIdentifier):
    """A view, as Iceberg names it."""

    __slots__ = ()
    what = "view uuid"


class TransactionId(Uuid7Identifier):
    """A multi-table transaction; its time decides where its record lies."""

    __slots__ = ()
    what = "transaction id"


class IdempotencyKey(UuidIdentifier):
    """A client's key for one mutation, any UUID in canonical form."""

    __slots__ = ()
    what = "idempotency key"
    form = "a UUID in canonical form, with hyphens"


class TimedIdempotencyKey(IdempotencyKey, Uuid7Identifier):
    """A client's key that also says when it was made, so that one past its lifetime can be refused."""

    __slots__ = ()
    what = "idempotency key (UUIDv7)"
    form = "a UUID of version 7 in canonical form, with hyphens"
    pattern = Uuid7Identifier.pattern


class KeyHash(Identifier):
    """The SHA-256 of an idempotency key or of a commit key."""

    __slots__ = ()
    what = "key hash"
    pattern = re.compile(r"[0-9a-f]{64}")
    form = "64 lower-case hexadecimal digits"


class PartitionId(Identifier):
    """A partition of an asset, derived from the asset and the canonical key."""

    __slots__ = ()
    what = "partition id"
    pattern = re.compile(r"part_[0-9a-f]{16}")
    form = "part_ and 16 lower-case hexadecimal digits"


class EdgeId(Identifier):
    """A lineage edge, derived from its ends and its dependency."""

    __slots__ = ()
    what = "edge id"
    pattern = re.compile(r"edge_[0-9a-f]{16}")
    form = "edge_ and 16 lower-case hexadecimal digits"


class TaskId(Identifier):
    """A task of a plan, derived from the asset, the partition range and the code version."""

    __slots__ = ()
    what = "task id"
    pattern = re.compile(r"task_[0-9a-f]{16}")
    form = "task_ and 16 lower-case hexadecimal digits"


class PlanId(Identifier):
    """A plan; its fingerprint is part of its name, so equal plans have equal names."""

    __slots__ = ()
    what = "plan id"
    pattern = re.compile(r"plan_[0-9a-f]{64}")
    form = "plan_ and 64 lower-case hexadecimal digits"


class PlanningSnapshotId(Identifier):
    """The facts that a plan was made from, by what they say."""

    __slots__ = ()
    what = "planning snapshot id"
    pattern = re.compile(r"facts_[0-9a-f]{64}")
    form = "facts_ and 64 lower-case hexadecimal digits"


class VersionId(Identifier):
    """A partition's version number for people; never an identity, because a late event renumbers."""

    __slots__ = ()
    what = "version id"
    pattern = re.compile(r"v_(?:[0-9]{5}|[1-9][0-9]{5,9})")
    form = "v_ and a number of at least five digits"

    @classmethod
    def of(cls, number: int) -> Self:
        return cls(f"v_{number:05}")


class CodeVersionId(Identifier):
    """A deployed revision: a git revision or an artifact digest."""

    __slots__ = ()
    what = "code version"
    pattern = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+:-]{0,127}")
    form = "1 to 128 letters, digits and . _ + : -"


class ScheduleName(Identifier):
    """A schedule of a project."""

    __slots__ = ()
    what = "schedule name"
    pattern = re.compile(r"[a-z][a-z0-9_]{0,62}")
    form = "a lower-case letter, then up to 62 of a-z, 0-9 and _"


class CheckId(Identifier):
    """A quality check of an asset, stable across deployments."""

    __slots__ = ()
    what = "check id"
    pattern = re.compile(r"[a-z][a-z0-9_]{0,63}(?:\.[a-z0-9_]{1,64}){0,3}")
    form = "lower-case words joined by dots"


class GivenIdentifier(Identifier):
    """An identifier that somebody else chose, within what is safe to store and to print."""

    __slots__ = ()
    what = "given identifier"
    pattern = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+:-]{0,199}")
    form = "1 to 200 letters, digits and . _ @ + : -, starting with a letter or digit"


class PipelineId(GivenIdentifier):
    """A pipeline of another system that reports what it did."""

    __slots__ = ()
    what = "pipeline id"


class PrincipalId(GivenIdentifier):
    """Who asks: a person, a service or a key."""

    __slots__ = ()
    what = "principal id"


class ClientId(GivenIdentifier):
    """The program that asks, in its own words."""

    __slots__ = ()
    what = "client id"


class StreamId(GivenIdentifier):
    """What a sequence of events is about."""

    __slots__ = ()
    what = "stream id"


class CorrelationId(GivenIdentifier):
    """What ties the events of one request together."""

    __slots__ = ()
    what = "correlation id"


class WorkerId(UlidIdentifier):
    """One process that executes tasks."""

    __slots__ = ()
    what = "worker id"


class RequestId(UlidIdentifier):
    """One request to a server."""

    __slots__ = ()
    what = "request id"


class ResultId(UlidIdentifier):
    """One result of one check."""

    __slots__ = ()
    what = "result id"


class TraceId(Identifier):
    """A trace, as W3C Trace Context writes it."""

    __slots__ = ()
    what = "trace id"
    pattern = re.compile(r"(?!0{32})[0-9a-f]{32}")
    form = "32 lower-case hexadecimal digits, not all zero"


class UlidSource:
    """Makes ULIDs that grow strictly within one process, even when its clock stands still or jumps back."""

    def __init__(self, clock: "Clock", entropy: "Entropy") -> None:
        self._clock = clock
        self._entropy = entropy
        self._last = 0

    def next(self) -> str:
        fresh = self._clock.now_ms() << _ULID_RANDOM_BITS | int.from_bytes(self._entropy.token_bytes(10), "big")
        if fresh >> _ULID_RANDOM_BITS <= self._last >> _ULID_RANDOM_BITS:
            # A step of random size, so that two processes that share a millisecond do not walk in each other's path.
            fresh = self._last + 1 + int.from_bytes(self._entropy.token_bytes(4), "big")
        self._last = fresh
        return encode_ulid(fresh)


def is_uuid(text: str) -> bool:
    """Whether this is a UUID in canonical form."""
    return UuidIdentifier.pattern.fullmatch(text) is not None


def is_uuid7(value: UuidIdentifier) -> bool:
    """Whether a UUID says its own time."""
    return value[14] == "7"


def time_said(text: str) -> int | None:
    """When a UUID of version 7 says that it was made; None for any other text."""
    return Uuid7Identifier(text).time_ms if Uuid7Identifier.pattern.fullmatch(text) else None


def new_uuid7(clock: "Clock", entropy: "Entropy") -> str:
    """A UUID of version 7 in canonical form."""
    random = int.from_bytes(entropy.token_bytes(10), "big")
    value = (clock.now_ms() & (1 << 48) - 1) << 80 | random & _ULID_RANDOM_MASK
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return str(uuid.UUID(int=value))


def new_uuid4(entropy: "Entropy") -> str:
    """A random UUID in canonical form, for table and view identities."""
    return str(uuid.UUID(bytes=entropy.token_bytes(16), version=4))

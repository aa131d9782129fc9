"""One generic compare-and-swap object: a small JSON document that many writers swing.

`CasObject` gives typed values a header that makes swinging safe:

  format, format_version   what it is; a version that is not known is refused, never guessed
  generation               grows by one with every write, so two states never have equal bytes (hazard 14)
  write_id                 fresh for every write: the identity that read-back looks for
  recent_write_ids         the ids before it, newest first: a lost reply is resolved even after others have written
  epoch                    the owner's fencing number; it never decreases

What the caller does with each outcome of `create` and `swap`: `Landed`: go on. `Lost`: read again and decide again on the new
state. `Unknown`: the store stayed silent, or more than CAS_RECENT_WRITES_MAX writes passed; ask the history of the protocol
above, or report that the outcome is unknown. Keep this module generic: nothing about any particular document enters.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from arco.kernel.clock import Clock
from arco.kernel.entropy import Entropy
from arco.kernel.errors import (
    Conflict,
    CorruptObject,
    Fenced,
    InvalidInput,
    OutcomeUnknown,
    TooLarge,
    UnknownFormat,
)
from arco.kernel.ids import Identifier, UlidSource, WriteId, clip
from arco.kernel.limits import CAS_OBJECT_BYTES_MAX, CAS_RECENT_WRITES_MAX, SWAP_ATTEMPTS_MAX
from arco.storage.port import (
    Absent,
    Condition,
    Landed,
    Lost,
    Matches,
    Object,
    ObjectStore,
    Outcome,
    Unknown,
    Version,
)
from arco.storage.readback import pause_s, put_settled

T = TypeVar("T")

_HEADER = ("format", "format_version", "generation", "write_id", "recent_write_ids", "epoch")


class Codec(Protocol[T]):
    """How one kind of document becomes fields and back. Field names must not be those of the header."""

    format: str

    def encode(self, value: T) -> tuple[int, dict[str, Any]]:
        """The format version to write this value as, and its fields."""
        ...

    def decode(self, format_version: int, fields: dict[str, Any]) -> T:
        """The value. Raises UnknownFormat for a version it does not know, CorruptObject for wrong fields."""
        ...


@dataclass(frozen=True, slots=True)
class Held(Generic[T]):
    """A value as it was read or written, with everything needed to swing exactly that state."""

    value: T
    version: Version
    generation: int
    write_id: WriteId
    recent_write_ids: tuple[WriteId, ...]
    epoch: int

    @property
    def oldest_remembered_generation(self) -> int:
        return self.generation - len(self.recent_write_ids)


@dataclass(frozen=True, slots=True)
class Swung(Generic[T]):
    """Our write landed and is this state."""

    held: Held[T]


@dataclass(frozen=True, slots=True)
class Overtaken(Generic[T]):
    """Our write landed, and others have written since: this is what stands there now."""

    held: Held[T]


SwapOutcome = Swung[T] | Overtaken[T] | Lost | Unknown


class CasObject(Generic[T]):
    """One object of one kind. Holds no state: what was read is in `Held`."""

    def __init__(self, store: ObjectStore, key: str, codec: Codec[T], clock: Clock, entropy: Entropy) -> None:
        self.key = key
        self._store = store
        self._codec = codec
        self._clock = clock
        self._entropy = entropy
        self._ulids = UlidSource(clock, entropy)

    async def read(self) -> Held[T] | None:
        found = await self._store.get(self.key)
        return None if found is None else self._decode(found)

    async def create(self, value: T, *, epoch: int = 0) -> SwapOutcome[T]:
        """Write the first state, if there is none."""
        first = Held(value, Version(""), 1, WriteId(self._ulids.next()), (), epoch)
        return await self._write(first, Absent(), base_generation=0)

    async def swap(self, base: Held[T], value: T, *, epoch: int | None = None) -> SwapOutcome[T]:
        """Replace exactly the state that was read."""
        if epoch is not None and epoch < base.epoch:
            raise Fenced(f"{self.key} has epoch {base.epoch}, this owner only {epoch}")
        recent = (base.write_id, *base.recent_write_ids)[:CAS_RECENT_WRITES_MAX]
        own_epoch = base.epoch if epoch is None else epoch
        after = Held(value, base.version, base.generation + 1, WriteId(self._ulids.next()), recent, own_epoch)
        return await self._write(after, Matches(base.version), base.generation)

    async def update(self, change: Callable[[Held[T] | None], Awaitable[T] | T], *, epoch: int | None = None) -> Held[T]:
        """Read, change, swing, until it lands. The change may run many times and must decide on what it is given."""
        for attempt in range(SWAP_ATTEMPTS_MAX):
            if attempt:
                await self._clock.sleep(pause_s(min(attempt, 6), self._entropy))
            base = await self.read()
            changed = change(base)
            value = await changed if isinstance(changed, Awaitable) else changed
            if base is None:
                outcome = await self.create(value, epoch=epoch or 0)
            else:
                outcome = await self.swap(base, value, epoch=epoch)
            match outcome:
                case Swung(held) | Overtaken(held):
                    # Not read again: a failing read would report a write that landed as one that did not.
                    return held
                case Unknown(reason):
                    raise OutcomeUnknown(f"{self.key}: {reason}")
                case Lost():
                    continue
        raise Conflict(f"{self.key} was changed by others {SWAP_ATTEMPTS_MAX} times in a row")

    async def _write(self, after: Held[T], condition: Condition, base_generation: int) -> SwapOutcome[T]:
        data = self._encode(after)
        overtaking: list[Held[T]] = []

        def judge(current: Object) -> Outcome:
            overtaking.append(self._decode(current))
            return _judge(overtaking[-1], after.write_id, base_generation)

        outcome = await put_settled(
            self._store,
            self.key,
            data,
            condition,
            clock=self._clock,
            entropy=self._entropy,
            judge=judge,
        )
        if not isinstance(outcome, Landed):
            return outcome
        if outcome.version is None:
            return Overtaken(overtaking[-1])
        return Swung(
            Held(after.value, outcome.version, after.generation, after.write_id, after.recent_write_ids, after.epoch)
        )

    def _encode(self, held: Held[T]) -> bytes:
        format_version, fields = self._codec.encode(held.value)
        taken = [name for name in _HEADER if name in fields]
        if taken:
            raise InvalidInput(f"{self._codec.format} uses the header's field {taken[0]!r}")
        header = {
            "format": self._codec.format,
            "format_version": format_version,
            "generation": held.generation,
            "write_id": str(held.write_id),
            "recent_write_ids": [str(one) for one in held.recent_write_ids],
            "epoch": held.epoch,
        }
        data = msgspec.json.encode(header | fields, enc_hook=_plain, order="sorted")
        if len(data) > CAS_OBJECT_BYTES_MAX:
            raise TooLarge(f"{self.key} would have {len(data)} bytes", hint=f"at most {CAS_OBJECT_BYTES_MAX}")
        return data

    def _decode(self, found: Object) -> Held[T]:
        return decoded(found, self._codec, self.key)


def decoded(found: Object, codec: Codec[T], key: str) -> Held[T]:
    """A document with its header, from the object that lies there. Raises what names the object."""
    fields = _fields(found, key)
    try:
        header = {name: fields.pop(name) for name in _HEADER}
        recent = tuple(WriteId(one) for one in header["recent_write_ids"])
        write_id = WriteId(header["write_id"])
        format_version, generation, epoch = (_whole(header[name]) for name in ("format_version", "generation", "epoch"))
    except (KeyError, TypeError, ValueError, InvalidInput) as error:
        raise CorruptObject(f"{key} has no valid header: {error}") from error
    if header["format"] != codec.format:
        raise UnknownFormat(f"{key} is {header['format']!r}, not {codec.format!r}")
    try:
        value = codec.decode(format_version, fields)
    except (CorruptObject, UnknownFormat) as error:
        # What is wrong is the document's business; which object it is of, only we know.
        raise type(error)(f"{key}: {error.message}", hint=error.hint) from error
    return Held(value, found.version, generation, write_id, recent, epoch)


def _whole(number: object) -> int:
    # `true` counts as a number to Python, and 2.0 as 2.
    if type(number) is not int:
        raise ValueError(f"{clip(str(number))} is no whole number")
    return number


def _fields(found: Object, key: str) -> dict[str, Any]:
    try:
        fields = msgspec.json.decode(found.data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CorruptObject(f"{key} does not parse: {error}") from error
    if not isinstance(fields, dict):
        raise CorruptObject(f"{key} is not a JSON object")
    return fields


def _plain(value: object) -> str:
    """Identifiers are text in a document."""
    if isinstance(value, Identifier):
        return str(value)
    raise InvalidInput(f"a {type(value).__name__} cannot be stored in a document")


def _judge(current: Held[T], ours: WriteId, base_generation: int) -> Outcome:
    """Did our write land before the one that stands there now?"""
    if ours == current.write_id or ours in current.recent_write_ids:
        return Landed(None)
    if current.oldest_remembered_generation <= base_generation + 1 <= current.generation:
        # The ids of all writes since our base are there, and ours is not among them.
        return Lost("another write came first")
    return Unknown("the object does not remember the writes since our base")

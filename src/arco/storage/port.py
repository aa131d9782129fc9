"""The object-store port: the only way Arco reads or writes anything.

A conditional write has three outcomes and they are three types. `Landed`: it is stored. `Lost`: it is not stored and never
will be. `Unknown`: the reply did not say; the write may be stored, or may still arrive. Nothing may fold `Unknown` into one
of the others; `readback.py` is the one place that resolves it.

There is no conditional delete: some servers ignore the header and obstore has none. An object that several writers swing
dies by a tombstone swung with `Matches`; upkeep removes the tombstone later.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import StrEnum
from functools import lru_cache
from typing import NewType, Protocol, runtime_checkable

import msgspec

from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip
from arco.kernel.limits import KEY_BYTES_MAX, KEY_SEGMENT_BYTES_MAX, KEYS_CHECKED_KEPT_MAX

Version = NewType("Version", str)
"""What a store says about one write of one object: an ETag or a generation. Compared for equality, never read."""


class Always(msgspec.Struct, frozen=True):
    """Write whatever is there."""


class Absent(msgspec.Struct, frozen=True):
    """Write only if no object has this key."""


class Matches(msgspec.Struct, frozen=True):
    """Write only if the object still is this version."""

    version: Version


Condition = Always | Absent | Matches


class Landed(msgspec.Struct, frozen=True):
    """Stored. `version` is None if it was stored and has been overwritten since."""

    version: Version | None


class Lost(msgspec.Struct, frozen=True):
    """Not stored, and never will be: the condition did not hold."""

    reason: str


class Unknown(msgspec.Struct, frozen=True):
    """The reply did not say. The write may be stored, or may still arrive."""

    reason: str


Outcome = Landed | Lost | Unknown


class ObjectInfo(msgspec.Struct, frozen=True, gc=False):
    """What a store knows of an object without its bytes. `modified_ms` is by the store's clock."""

    key: str
    size_bytes: int
    version: Version
    modified_ms: int


class Object(msgspec.Struct, frozen=True):
    """An object's bytes with the version they belong to."""

    info: ObjectInfo
    data: bytes

    @property
    def version(self) -> Version:
        return self.info.version


class Listed(msgspec.Struct, frozen=True):
    """One line of a listing. It has no version: not every store's listing gives one that a write accepts."""

    key: str
    size_bytes: int
    modified_ms: int


class Page(msgspec.Struct, frozen=True):
    """Some keys, and where to go on (None: nothing follows).

    The keys of one folder come in the order of their bytes. Where a folder stands among its siblings is the store's own
    rule: most compare whole keys, SeaweedFS puts `a/b` before `a-b`.
    """

    entries: tuple[Listed, ...]
    next_after: str | None


class SignedMethod(StrEnum):
    GET = "GET"
    PUT = "PUT"


class ObjectStore(Protocol):
    """One root of one store. A definite absence is None; anything that is not definite raises."""

    async def get(self, key: str) -> Object | None: ...

    async def get_range(self, key: str, start: int, length: int) -> bytes | None:
        """Bytes `start` to `start + length`, fewer at the end of the object, none past it."""
        ...

    async def head(self, key: str) -> ObjectInfo | None: ...

    async def put(self, key: str, data: bytes, condition: Condition) -> Outcome:
        """One attempt. It is never repeated below this line."""
        ...

    async def delete(self, key: str) -> None:
        """Remove the object if it is there. Only upkeep calls this."""
        ...

    async def list_page(self, prefix: str, after: str = "", limit: int = 1000) -> Page:
        """Keys under `prefix` (empty, or ending in a slash) that come after `after`.

        `after` is where an earlier page ended, or any name in a folder that has no folders in it.
        """
        ...

    async def sign(self, key: str, method: SignedMethod, ttl_s: int) -> str:
        """A link that needs no credentials until it expires. Raises InvalidInput where a store cannot."""
        ...

    async def close(self) -> None: ...


@runtime_checkable
class HasFolders(Protocol):
    """A store whose names lie in real folders: clients that write beside Arco may expect them to be there."""

    async def make_folder(self, prefix: str) -> None: ...


class LooksAtOnce(ABC):
    """A store that can look at objects without waiting: a folder on a disk of this machine."""

    @abstractmethod
    def look(self, keys: Sequence[str]) -> list[ObjectInfo | None] | None:
        """The heads of some objects; None while that would keep everybody else waiting."""


_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_=.\-]*(?:/[A-Za-z0-9_][A-Za-z0-9_=.\-]*)*")
"""What nearly every name is; there is nothing to object to as long as it is short."""
_RESERVED_ROOT = ".arco"
"""The local adapter's own folder: temporaries and locks. Reserved everywhere, so that a bucket can be copied to a folder."""


def check_key(key: str) -> str:
    """The key, if it can be the name of an object in every store; otherwise InvalidInput with the reason."""
    reason = _objection(key)
    if reason is not None:
        raise InvalidInput(f"object name {clip(key)!r} {reason}", hint="names are made by storage/keys.py")
    return key


def is_key(key: str) -> bool:
    """Whether an object can have this name."""
    return _objection(key) is None


def objection(key: str) -> str | None:
    """Why no object can have this name, for whoever knows what people call the thing; None if one can."""
    return _objection(key)


def check_range(start: int, length: int) -> None:
    """A range starts inside an object or after it, never before."""
    if start < 0 or length < 0:
        raise InvalidInput(f"a range from {start} of {length} bytes", hint="both count from 0")


def check_prefix(prefix: str) -> str:
    """The prefix, if it is empty or names a folder."""
    if prefix and not prefix.endswith("/"):
        raise InvalidInput(f"prefix {clip(prefix)!r} does not end in a slash", hint="list whole folders")
    if prefix:
        check_key(prefix[:-1])
    return prefix


def _objection(key: str) -> str | None:
    """Names that are long are what clients wrote, and none of a store's: they are not kept."""
    return _checked(key) if len(key) <= KEY_BYTES_MAX else _checked.__wrapped__(key)


@lru_cache(KEYS_CHECKED_KEPT_MAX)
def _checked(key: str) -> str | None:
    if len(key) <= KEY_SEGMENT_BYTES_MAX and _PLAIN.fullmatch(key):
        return None
    if not key:
        return "is empty"
    try:
        encoded = key.encode()
    except UnicodeEncodeError:
        return "has a lone surrogate"
    if len(encoded) > KEY_BYTES_MAX:
        return f"is longer than {KEY_BYTES_MAX} bytes"
    if _CONTROL.search(key):
        return "has a control character"
    if "\\" in key:
        return "has a backslash"
    segments = key.split("/")
    if segments[0] == _RESERVED_ROOT:
        return f"lies in {_RESERVED_ROOT}/, which the local store keeps for itself"
    for segment in segments:
        if segment == "":
            return "has an empty segment"
        if segment in {".", ".."}:
            return f"has a segment {segment!r}"
        if len(segment.encode()) > KEY_SEGMENT_BYTES_MAX:
            return f"has a segment longer than {KEY_SEGMENT_BYTES_MAX} bytes"
    return None

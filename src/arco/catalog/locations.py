"""Between the locations that clients see and the keys that the store takes.

Clients get absolute URIs (`file:///srv/lake/…`, `s3://bucket/…`) because Iceberg's metadata is full of them. Everything that
Arco places lies under the root; a location outside is another store's business and has no key here.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip
from arco.kernel.limits import LOCATION_CHARS_MAX, METADATA_CACHE_FILES_MAX
from arco.storage.port import objection

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Locations:
    """The URIs of one root. `base` has no slash at its end."""

    base: str

    def uri(self, key: str) -> str:
        return f"{self.base}/{key}"

    def key(self, uri: str) -> str | None:
        """The key of a location inside the root, None for one outside. Refuses what only looks inside."""
        # A cache bounds how many texts it keeps, not how long they are: a client may write a property of any length.
        look = _key_under if len(uri) <= LOCATION_CHARS_MAX else _key_under.__wrapped__
        return look(self.base, uri)


@lru_cache(maxsize=METADATA_CACHE_FILES_MAX)
def _key_under(base: str, uri: str) -> str | None:
    plain, prefix = normal_uri(uri), f"{normal_uri(base)}/"
    return key_of(uri, plain.removeprefix(prefix)) if plain.startswith(prefix) else None


def key_of(uri: str, key: str) -> str:
    """The key that a location comes to. Whoever gave the location knows nothing of keys, and hears of the location."""
    reason = objection(key)
    if reason is not None:
        raise InvalidInput(
            f"location {clip(uri, 300)!r} {reason.replace('segment', 'step')}",
            hint="write a plain path: no step is empty, '.' or '..', none is longer than a file name can be",
        )
    return key


def normal_uri(uri: str) -> str:
    """One spelling for the ways clients write one location: `file:/a`, `file:///a` and `/a`; `s3a://b` and `s3://b`."""
    return _normal(uri) if len(uri) <= LOCATION_CHARS_MAX else _normal.__wrapped__(uri)


@lru_cache(maxsize=METADATA_CACHE_FILES_MAX)
def _normal(uri: str) -> str:
    if _CONTROL.search(uri):
        raise InvalidInput(f"location {clip(uri)!r} has a control character")
    scheme, colon, rest = uri.partition(":")
    if not colon or "/" in scheme:
        # A path, whose names may have colons.
        scheme, rest = "file", uri
    if scheme == "file":
        return f"file:///{rest.lstrip('/')}"
    if scheme in {"s3a", "s3n"}:
        scheme = "s3"
    return f"{scheme}:{rest}"

"""Which locations outside the managed ones a workspace accepts, and the stores behind them.

The default is none: Arco places tables itself. An operator may list prefixes: a folder here, a bucket, a folder of one.
What lies in one is read and written through a store of its own, with the same conditions as everything else. It may be
registered there and written to; it is no reason to hand out credentials for it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from arco.catalog.locations import key_of, normal_uri
from arco.iceberg.locations import inside, is_winding
from arco.kernel.clock import Clock
from arco.kernel.entropy import Entropy
from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip
from arco.storage.port import ObjectStore
from arco.storage.roots import open_root

_HINT = "name a folder (file:/path), or a bucket and perhaps a folder of it: s3://, gs://, abfss://container@account…"
_FILES = "file:///"
_BUCKETS = ("s3://", "gs://")
_AZURE_PLACE = re.compile(r"abfss://([^/@]+)@([^/@]+)(/.*)?")
_AZURE_PUBLIC = re.compile(r"([a-z0-9]+)\.dfs\.core\.windows\.net")


@dataclass(frozen=True, slots=True)
class _Listed:
    prefix: str
    store: ObjectStore


class LocationPolicy:
    """The listed prefixes."""

    def __init__(self, listed: Sequence[_Listed] = ()) -> None:
        self._listed = tuple(listed)

    @classmethod
    def of(
        cls,
        prefixes: Sequence[str],
        clock: Clock,
        entropy: Entropy,
        base: str = "",
        options: Mapping[str, str] | None = None,
    ) -> Self:
        """`base` is what the URIs of the root begin with, and `options` are the settings of its store."""
        listed = []
        for prefix in prefixes:
            plain = normal_uri(prefix).rstrip("/")
            # `file:x` would mean `/x`, wherever whoever wrote it stands.
            if is_winding(plain) or (prefix.startswith("file:") and not prefix.startswith("file:/")):
                raise _not_a_place(prefix)
            url, settings = opening_of(plain, base, options or {})
            listed.append(_Listed(plain, open_root(url, settings, clock, entropy)))
        return cls(listed)

    @property
    def prefixes(self) -> tuple[str, ...]:
        return tuple(one.prefix for one in self._listed)

    def allows(self, location: str) -> bool:
        return self._find(location) is not None

    def outside(self, location: str) -> tuple[ObjectStore, str] | None:
        """The store and the key of a location that is listed."""
        found = self._find(location)
        if found is None:
            return None
        return found.store, key_of(location, normal_uri(location).removeprefix(f"{found.prefix}/"))

    def _find(self, location: str) -> _Listed | None:
        plain = normal_uri(location)
        return next((one for one in self._listed if inside(plain, one.prefix)), None)


def opening_of(plain: str, base: str, options: Mapping[str, str]) -> tuple[str, Mapping[str, str]]:
    """The URL that opens a listed place, and its settings: the root's own, if it is the same store. No other gets its keys."""
    if plain.startswith(_FILES):
        return plain.removeprefix("file://"), {}
    if plain.startswith(_BUCKETS):
        scheme = plain.partition("://")[0]
        return plain, options if base.startswith(f"{scheme}://") else {}
    place, root = _AZURE_PLACE.fullmatch(plain), _AZURE_PLACE.fullmatch(base)
    public = None if place is None else _AZURE_PUBLIC.fullmatch(place[2])
    if place is not None and root is not None and place[2] == root[2]:
        return f"az://{place[1]}{place[3] or ''}", options
    if place is None or public is None:
        raise _not_a_place(plain)
    return f"az://{place[1]}{place[3] or ''}", {"account_name": public[1]}


def _not_a_place(prefix: str) -> InvalidInput:
    return InvalidInput(f"location {clip(prefix)!r} cannot be allowed", hint=_HINT)

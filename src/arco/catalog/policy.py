"""Which locations outside the managed ones a workspace accepts, and the stores behind them.

The default is none: Arco places tables itself. An operator may list prefixes, each of them a folder of this machine; what
lies in one is read and written through a store of its own, with the same conditions as everything else.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from arco.catalog.locations import normal_uri
from arco.iceberg.locations import inside, is_winding
from arco.kernel.clock import Clock
from arco.kernel.entropy import Entropy
from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip
from arco.storage.local import LocalStore
from arco.storage.port import ObjectStore, check_key


@dataclass(frozen=True, slots=True)
class _Listed:
    prefix: str
    store: ObjectStore


class LocationPolicy:
    """The listed prefixes."""

    def __init__(self, listed: Sequence[_Listed] = ()) -> None:
        self._listed = tuple(listed)

    @classmethod
    def of(cls, prefixes: Sequence[str], clock: Clock, entropy: Entropy) -> Self:
        listed = []
        for prefix in prefixes:
            plain = normal_uri(prefix).rstrip("/")
            if not plain.startswith("file:///") or is_winding(plain):
                raise InvalidInput(f"location {clip(prefix)!r} cannot be allowed", hint="name a folder: file:/path")
            listed.append(_Listed(plain, LocalStore(plain.removeprefix("file://"), clock, entropy)))
        return cls(listed)

    def allows(self, location: str) -> bool:
        return self._find(location) is not None

    def outside(self, location: str) -> tuple[ObjectStore, str] | None:
        """The store and the key of a location that is listed."""
        found = self._find(location)
        if found is None:
            return None
        return found.store, check_key(normal_uri(location).removeprefix(f"{found.prefix}/"))

    def _find(self, location: str) -> _Listed | None:
        plain = normal_uri(location)
        return next((one for one in self._listed if inside(plain, one.prefix)), None)

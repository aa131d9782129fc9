"""Between the locations that clients see and the keys that the store takes.

Clients get absolute URIs (`file:///srv/lake/…`, `s3://bucket/…`) because Iceberg's metadata is full of them. Everything that
Arco places lies under the root; a location outside is another store's business and has no key here.
"""

from dataclasses import dataclass
from functools import lru_cache

from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip
from arco.kernel.limits import METADATA_CACHE_FILES_MAX
from arco.storage.port import check_key


@dataclass(frozen=True, slots=True)
class Locations:
    """The URIs of one root. `base` has no slash at its end."""

    base: str

    def uri(self, key: str) -> str:
        return f"{self.base}/{key}"

    def key(self, uri: str) -> str | None:
        """The key of a location inside the root, None for one outside. Refuses what only looks inside."""
        plain = normal_uri(uri)
        prefix = f"{normal_uri(self.base)}/"
        if not plain.startswith(prefix):
            return None
        return check_key(plain.removeprefix(prefix))


@lru_cache(maxsize=METADATA_CACHE_FILES_MAX)
def normal_uri(uri: str) -> str:
    """One spelling for the ways clients write one location: `file:/a`, `file:///a` and `/a`; `s3a://b` and `s3://b`."""
    if any(character < " " or character == "\x7f" for character in uri):
        raise InvalidInput(f"location {clip(uri)!r} has a control character")
    scheme, colon, rest = uri.partition(":")
    if not colon:
        scheme, rest = "file", uri
    if scheme == "file":
        return f"file:///{rest.lstrip('/')}"
    if scheme in {"s3a", "s3n"}:
        scheme = "s3"
    return f"{scheme}:{rest}"

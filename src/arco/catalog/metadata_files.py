"""Metadata files: written once under a name that says which commit of which request they are, read back as bytes.

The name is the commit's number and a hash over the key and the request. So two attempts of one request on one base share a
name, and whoever finds the file there adopts its bytes: a stalled attempt and its successor converge on one commit. Two
different requests can never share one. In a group the hash also covers the file that the commit stands behind.
"""

from collections import OrderedDict

from arco.catalog.idempotency import RequestKey
from arco.catalog.locations import Locations
from arco.catalog.policy import LocationPolicy
from arco.kernel.clock import Clock
from arco.kernel.entropy import Entropy
from arco.kernel.errors import InvalidInput, NotFound, OutcomeUnknown
from arco.kernel.fingerprint import fingerprint
from arco.kernel.ids import clip
from arco.kernel.limits import METADATA_CACHE_BYTES_MAX, METADATA_CACHE_FILES_MAX
from arco.storage.port import Absent, HasFolders, Landed, Lost, ObjectStore
from arco.storage.readback import put_settled

_REQUEST_DIGITS = 20
"""So many digits of a name say which request it is, in whatever group."""


class MetadataFiles:
    """The metadata files under one root. Files never change, so what was read once is remembered."""

    def __init__(
        self, store: ObjectStore, locations: Locations, policy: LocationPolicy, clock: Clock, entropy: Entropy
    ) -> None:
        self._store = store
        self._locations = locations
        self._policy = policy
        self._clock = clock
        self._entropy = entropy
        self._cache: OrderedDict[str, bytes] = OrderedDict()
        self._cached_bytes = 0

    def name(self, key: RequestKey, commit_number: int, behind: str | None = None) -> str:
        """The file name of one commit of one request. `behind`: the file of the commit before it, if that has not landed yet.

        The same request behind another commit is another file: bytes that are adopted must be computed on the same version.
        """
        told = fingerprint("metadata file", key.key, key.request_hash)[:32]
        if behind is not None:
            told = told[:_REQUEST_DIGITS] + fingerprint("behind", told, behind)[: 32 - _REQUEST_DIGITS]
        return f"{commit_number:05}-{told}.metadata.json"

    async def write(self, location: str, data: bytes) -> bytes:
        """Write a file, or adopt the one that is there: the bytes that count from now on."""
        store, key = self._where(location)
        outcome = await put_settled(store, key, data, Absent(), clock=self._clock, entropy=self._entropy)
        match outcome:
            case Landed():
                self._remember(location, data)
                return data
            case Lost():
                return await self.read(location)
            case unknown:
                raise OutcomeUnknown(f"{location} could not be written: {unknown.reason}")

    async def make_room(self, place: str) -> None:
        """The folders of a table that its client writes before Arco does. DuckDB makes none, and buckets have none."""
        for part in ("data", "metadata"):
            store, key = self._where(f"{place}/{part}")
            if isinstance(store, HasFolders):
                await store.make_folder(f"{key}/")

    async def read(self, location: str) -> bytes:
        """A file's bytes. NotFound only if it definitely is not there."""
        found = await self.find(location)
        if found is None:
            raise _no_file(location)
        return found

    async def need(self, location: str) -> None:
        """That the file is still there: an answer from memory about a table whose file is gone would help nobody."""
        store, key = self._where(location)
        if await store.head(key) is None:
            raise _no_file(location)

    async def written_ms(self, location: str) -> int | None:
        """When a file was written, by the store's clock."""
        store, key = self._where(location)
        info = await store.head(key)
        return None if info is None else info.modified_ms

    async def find(self, location: str) -> bytes | None:
        if location in self._cache:
            self._cache.move_to_end(location)
            return self._cache[location]
        store, key = self._where(location)
        found = await store.get(key)
        if found is None:
            return None
        self._remember(location, found.data)
        return found.data

    async def size_bytes(self, location: str) -> int | None:
        """How large a file of a table is; None only if it definitely is not there."""
        store, key = self._where(location)
        info = await store.head(key)
        return None if info is None else info.size_bytes

    async def fetch(self, location: str) -> bytes | None:
        """Any file of a table, for who reads it once: it is not remembered."""
        store, key = self._where(location)
        found = await store.get(key)
        return None if found is None else found.data

    def _where(self, location: str) -> tuple[ObjectStore, str]:
        key = self._locations.key(location)
        if key is not None:
            return self._store, key
        outside = self._policy.outside(location)
        if outside is None:
            raise InvalidInput(f"location {clip(location, 300)!r} is outside the root", hint="use a location inside it")
        return outside

    def _remember(self, location: str, data: bytes) -> None:
        if len(data) > METADATA_CACHE_BYTES_MAX:
            return
        self._cached_bytes += len(data) - len(self._cache.pop(location, b""))
        self._cache[location] = data
        while len(self._cache) > METADATA_CACHE_FILES_MAX or self._cached_bytes > METADATA_CACHE_BYTES_MAX:
            self._cached_bytes -= len(self._cache.popitem(last=False)[1])


def _no_file(location: str) -> NotFound:
    """In the words of Iceberg's own file access, which clients match on."""
    return NotFound(f"Failed to open input stream for file: {clip(location, 300)}", hint="its metadata file was removed")

"""Metadata files: written once under a name that says which commit of which request they are, read back as bytes.

The name is the commit's number and a hash over the key, the request and the table. So two attempts of one request on one base
share a name, and whoever finds the file there adopts its bytes: a stalled attempt and its successor converge on one commit. Two
different requests can never share one, nor can two tables of one request that keep their files in one folder. In a group the
hash also covers the file that the commit stands behind.
"""

from arco.catalog.idempotency import RequestKey
from arco.catalog.locations import Locations
from arco.catalog.policy import LocationPolicy
from arco.kernel.clock import Clock
from arco.kernel.entropy import Entropy
from arco.kernel.errors import FixRequest, InvalidInput, NotFound, OutcomeUnknown
from arco.kernel.fingerprint import fingerprint
from arco.kernel.ids import clip
from arco.kernel.kept import Kept
from arco.kernel.limits import METADATA_CACHE_BYTES_MAX, METADATA_CACHE_FILES_MAX
from arco.storage.port import Absent, HasFolders, Landed, Lost, ObjectStore
from arco.storage.readback import put_settled

_REQUEST_DIGITS = 20
"""So many digits of a name say which request it is, of whatever table and in whatever group."""


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
        self._kept: Kept[str, bytes] = Kept(bytes_max=METADATA_CACHE_BYTES_MAX, things_max=METADATA_CACHE_FILES_MAX)

    def name(self, key: RequestKey, commit_number: int, table_uuid: str, behind: str = "") -> str:
        """The file name of one commit of one request. `behind`: the file of the commit before it, if that has not landed yet.

        The same request behind another commit is another file, and so it is for another table, which may lie in the same place:
        bytes that are adopted must be computed on the same version.
        """
        request = fingerprint("metadata file", key.key, key.request_hash)[:_REQUEST_DIGITS]
        version = fingerprint("version", request, table_uuid, behind)[: 32 - _REQUEST_DIGITS]
        return f"{commit_number:05}-{request}{version}.metadata.json"

    async def write(self, location: str, data: bytes) -> bytes:
        """Write a file, or adopt the one that is there: the bytes that count from now on."""
        store, key = self.where(location)
        outcome = await put_settled(store, key, data, Absent(), clock=self._clock, entropy=self._entropy)
        match outcome:
            case Landed():
                self._remember(location, data)
                return data
            case Lost():
                found = await self.find(location)
                if found is None:
                    # Upkeep took it: its base is long past, which only memory took for the current one. That refuses nothing.
                    raise OutcomeUnknown(f"{location} was written by an earlier attempt, and is gone")
                return found
            case unknown:
                raise OutcomeUnknown(f"{location} could not be written: {unknown.reason}")

    async def make_room(self, place: str) -> None:
        """The folders of a table that its client writes before Arco does. DuckDB makes none, and buckets have none."""
        for part in ("data", "metadata"):
            store, key = self.where(f"{place}/{part}")
            if isinstance(store, HasFolders):
                await store.make_folder(f"{key}/")

    async def read(self, location: str) -> bytes:
        """A file's bytes. NotFound only if it definitely is not there."""
        found = await self.find(location)
        if found is None:
            raise no_file(location)
        return found

    async def answered(self, location: str) -> bytes:
        """The bytes of a file that an answer names. Its request was done: that the file is gone since, or out of reach, is no
        refusal, after which a client would delete what it has committed."""
        try:
            return await self.read(location)
        except FixRequest as gone:
            raise OutcomeUnknown(f"what this request came to cannot be shown any more: {gone.message}") from gone

    async def written_ms(self, location: str) -> int | None:
        """When a file was written, by the store's clock."""
        store, key = self.where(location)
        info = await store.head(key)
        return None if info is None else info.modified_ms

    async def find(self, location: str) -> bytes | None:
        kept = self._kept.get(location)
        if kept is not None:
            return kept
        store, key = self.where(location)
        found = await store.get(key)
        if found is None:
            return None
        self._remember(location, found.data)
        return found.data

    async def size_bytes(self, location: str) -> int | None:
        """How large a file of a table is; None only if it definitely is not there."""
        store, key = self.where(location)
        info = await store.head(key)
        return None if info is None else info.size_bytes

    async def fetch(self, location: str) -> bytes | None:
        """Any file of a table, for who reads it once: it is not remembered."""
        store, key = self.where(location)
        found = await store.get(key)
        return None if found is None else found.data

    def where(self, location: str) -> tuple[ObjectStore, str]:
        """The store and the key of a location; raises for one that is neither in the root nor allowed."""
        key = self._locations.key(location)
        if key is not None:
            return self._store, key
        outside = self._policy.outside(location)
        if outside is None:
            raise InvalidInput(f"location {clip(location, 300)!r} is outside the root", hint="use a location inside it")
        return outside

    def kept(self, location: str) -> bytes | None:
        """A file's bytes, if they are at hand."""
        return self._kept.get(location)

    def _remember(self, location: str, data: bytes) -> None:
        self._kept.put(location, data, len(data))


def no_file(location: str) -> NotFound:
    """In the words of Iceberg's own file access, which clients match on."""
    return NotFound(f"Failed to open input stream for file: {clip(location, 300)}", hint="its metadata file was removed")

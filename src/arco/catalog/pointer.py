"""The pointer: the one object of a table (or view) that says which metadata file is current.

Swinging it is the commit. One function reads it for everybody, `Pointers.read`: when transactions put a pending change into
a pointer, that function alone will decide what counts. A pointer dies as a tombstone that names its drop, so that commits
under way fail; it is never deleted while a name, an undrop or a slow writer could still need it.
"""

from typing import Any

import msgspec

from arco.catalog.model import Kind
from arco.catalog.operations import Create
from arco.kernel.clock import Clock
from arco.kernel.entropy import Entropy
from arco.kernel.errors import CorruptObject, UnknownFormat
from arco.kernel.ids import TableUuid
from arco.kernel.scope import Scope
from arco.ledger.receipts import Published, Source
from arco.storage.cas import CasObject, Held, SwapOutcome
from arco.storage.keys import PointerKey
from arco.storage.port import ObjectStore

_FORMAT_VERSION = 1


class Tombstone(msgspec.Struct, frozen=True):
    """A drop that has begun: whoever meets it finishes it, if the name still has this binding.

    `successor` is what takes the name in the same step, where a table is registered over another.
    """

    drop_id: str
    binding: int
    purge: bool
    principal: str
    key_hash: str
    successor: Create | None = None


class Ref(msgspec.Struct, frozen=True):
    snapshot_id: int
    type: str


class Pointer(msgspec.Struct, frozen=True):
    """What is current. `commit_number` counts the table's commits and names its metadata files.

    `binding` is the one that the pointer was last brought to life for: a drop of an older one is too late.
    """

    table_uuid: str
    kind: Kind
    commit_number: int
    metadata_location: str
    previous_metadata_location: str | None
    snapshot_id: int | None
    refs: dict[str, Ref]
    last_sequence_number: int
    updated_at_ms: int
    updated_by: Source
    published: tuple[Published, ...]
    created_by: str
    binding: int = 1
    tombstone: Tombstone | None = None


class _PointerCodec:
    format = "arco.pointer"

    def encode(self, value: Pointer) -> tuple[int, dict[str, Any]]:
        fields: dict[str, Any] = msgspec.to_builtins(value)
        return _FORMAT_VERSION, fields

    def decode(self, format_version: int, fields: dict[str, Any]) -> Pointer:
        if format_version != _FORMAT_VERSION:
            raise UnknownFormat(f"a pointer of format version {format_version}")
        try:
            return msgspec.convert(fields, Pointer)
        except msgspec.ValidationError as error:
            raise CorruptObject(f"a pointer with wrong fields: {error}") from error


class Pointers:
    """The pointers of one workspace."""

    def __init__(self, store: ObjectStore, scope: Scope, clock: Clock, entropy: Entropy) -> None:
        self._store = store
        self._scope = scope
        self._clock = clock
        self._entropy = entropy

    def object(self, uuid: str) -> CasObject[Pointer]:
        key = str(PointerKey(self._scope, TableUuid(uuid)))
        return CasObject(self._store, key, _PointerCodec(), self._clock, self._entropy)

    async def read(self, uuid: str) -> Held[Pointer] | None:
        """The pointer as it counts. None only if there definitely is none."""
        return await self.object(uuid).read()

    async def is_unchanged(self, held: Held[Pointer]) -> bool:
        info = await self._store.head(self.object(held.value.table_uuid).key)
        return info is not None and info.version == held.version

    async def create(self, pointer: Pointer) -> SwapOutcome[Pointer]:
        return await self.object(pointer.table_uuid).create(pointer)

    async def swing(self, base: Held[Pointer], pointer: Pointer) -> SwapOutcome[Pointer]:
        return await self.object(pointer.table_uuid).swap(base, pointer)

    async def touch(self, base: Held[Pointer]) -> SwapOutcome[Pointer]:
        """The same content under a new write: every swing prepared against the old version is dead."""
        return await self.object(base.value.table_uuid).swap(base, base.value)

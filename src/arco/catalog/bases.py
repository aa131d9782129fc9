"""What a process remembers of its tables: the pointer as it was read or written, with the metadata it points to.

Memory is only ever a guess. A load checks it with the store before it answers, a commit proves it by the condition of its
swing, and a refusal is never made from it.
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from arco.catalog.pointer import Pointer
from arco.catalog.subject import Subject
from arco.catalog.workspace import Workspace
from arco.kernel.limits import POINTER_CACHE_PARTS_MAX, POINTER_CACHE_TABLES_MAX
from arco.storage.cas import Held

M = TypeVar("M")


@dataclass(frozen=True, slots=True)
class Base(Generic[M]):
    """A pointer with its metadata. `receipts_exist` if this process knows that the receipts of its last swing do."""

    pointer: Held[Pointer]
    metadata: M
    receipts_exist: bool = False

    @property
    def location(self) -> str:
        return self.pointer.value.metadata_location


class Bases(Generic[M]):
    """The tables, or the views, of one workspace, as far as this process knows them."""

    def __init__(self, workspace: Workspace, subject: Subject[M, Any, Any]) -> None:
        self._ws = workspace
        self._subject = subject
        self._known: OrderedDict[str, Base[M]] = OrderedDict()
        self._parts: dict[str, int] = {}
        self._parts_in_all = 0

    def known(self, uuid: str) -> Base[M] | None:
        return self._known.get(uuid)

    def remember(self, base: Base[M]) -> None:
        """Never what a transaction may change without touching the pointer."""
        if base.pointer.value.pending is not None:
            return
        uuid = base.pointer.value.table_uuid
        known = self._known.get(uuid)
        if known is not None and known.pointer.generation > base.pointer.generation:
            return
        same = known is not None and known.metadata is base.metadata
        parts = self._parts[uuid] if same else self._subject.parts(base.metadata)
        self.forget(uuid)
        self._known[uuid], self._parts[uuid] = base, parts
        self._parts_in_all += parts
        while len(self._known) > POINTER_CACHE_TABLES_MAX or self._parts_in_all > POINTER_CACHE_PARTS_MAX:
            self.forget(next(iter(self._known)))

    def forget(self, uuid: str) -> None:
        if self._known.pop(uuid, None) is not None:
            self._parts_in_all -= self._parts.pop(uuid)

    async def read(self, uuid: str) -> Base[M] | None:
        """The table as it is now, from the store."""
        pointer = await self._ws.pointers.read(uuid)
        return None if pointer is None else await self.at(pointer)

    async def settled(self, uuid: str) -> Base[M] | None:
        """The same for who will swing it: nothing is pending there."""
        pointer = await self._ws.pointers.settled(uuid)
        return None if pointer is None else await self.at(pointer)

    async def at(self, pointer: Held[Pointer]) -> Base[M]:
        """The table at a pointer that was just read."""
        known = self._known.get(pointer.value.table_uuid)
        if known is not None and known.pointer.version == pointer.version:
            return known
        location = pointer.value.metadata_location
        base = Base(pointer, self._subject.decode(await self._ws.files.read(location), location))
        self.remember(base)
        return base

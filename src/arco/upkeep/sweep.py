"""One run of one job: what it may look at, the time it goes by, and the one door through which objects leave.

`Sweep` is the only place of Arco that deletes an object of a workspace. There is no conditional delete, and a request to
delete may arrive long after it was sent: so what is removed must have a name that nobody will ever use again, or one whose next
use is refused. Each job says in its first lines why that is so.

Whoever stops a job at any place loses nothing: what is left is found again by the next run.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from arco.catalog.boundary import raise_boundary
from arco.catalog.names import Names
from arco.catalog.workspace import Workspace
from arco.fold.consumed import ConsumedLists
from arco.fold.heads import Heads
from arco.kernel.crash_points import reach
from arco.kernel.errors import ArcoError, InvalidInput, RetryLater
from arco.kernel.ids import time_said
from arco.kernel.limits import UPKEEP_CLOCKS_S, UPKEEP_DELETES_MAX, UPKEEP_GRACE_S
from arco.kernel.retention import Retention
from arco.kernel.scope import Scope
from arco.storage.keys import Key, parse, prefix_of
from arco.storage.paging import walk
from arco.storage.port import Listed, ObjectInfo, ObjectStore, is_key
from arco.upkeep.report import Tally

T = TypeVar("T")

YOUNG = "younger than the grace"
STRANGE = "no name that Arco gives"
UNSPEAKABLE = "no name that an object can have in every store, such as one longer than a file's can be"
FOLDER_MARK = "an empty object that stands for a folder, or was taken away meanwhile"
LOOK = "run arco verify"


@dataclass(frozen=True, slots=True)
class Setting:
    """What upkeep of one workspace works on. `dry_run`: nothing is deleted, moved or changed.

    `asked` are the tables, by their identity, that somebody wants maintained whatever they say of themselves; then no others are.
    """

    parts: Workspace
    retention: Retention = field(default_factory=Retention)
    dry_run: bool = False
    asked: frozenset[str] = frozenset()

    @property
    def store(self) -> ObjectStore:
        return self.parts.tier1.store

    @property
    def scope(self) -> Scope:
        return self.parts.scope


class Sweep:
    """One run of one job. `now_ms` is a moment by the store's clock before anything was looked at."""

    def __init__(self, setting: Setting, kind: str, now_ms: int) -> None:
        parts = setting.parts
        self.parts = parts
        self.store = setting.store
        self.scope = setting.scope
        self.retention = setting.retention
        self.dry_run = setting.dry_run
        self.asked = setting.asked
        self.now_ms = now_ms
        self.tally = Tally(kind, dry_run=setting.dry_run)
        self.heads = Heads(self.store, self.scope, parts.clock, parts.entropy)
        self.lists = ConsumedLists(self.store, self.scope, parts.clock, parts.entropy)
        self._leaving: list[tuple[Listed, str]] = []

    # Looking

    async def walk(self, *folders: str) -> AsyncIterator[tuple[Listed, Key]]:
        """Everything in a folder of the catalog, with its key. What has no name of ours is counted and left alone."""
        async for entry in walk(self.store, prefix_of(self.scope, "_catalog", *folders)):
            self.tally.looked_at += 1
            try:
                key = parse(entry.key)
            except InvalidInput:
                self.tally.keep(STRANGE)
                continue
            yield entry, key

    async def files(self, folder: str) -> AsyncIterator[Listed]:
        """Everything in a folder that tables own, whatever it is called. What no folder could hold is counted and left alone.

        Clients write such names on buckets: long values of partitions, for one. No object of Arco is asked for by one, to be
        deleted neither, and who tried would come no further in any pass. Others make empty objects of folders, whose names end in
        a slash: a listing shows them without it, and nothing has the name that it shows.
        """
        async for entry in walk(self.store, folder):
            self.tally.looked_at += 1
            if not is_key(entry.key):
                self.tally.keep(UNSPEAKABLE)
            elif not entry.size_bytes and await self.store.head(entry.key) is None:
                self.tally.keep(FOLDER_MARK)
            else:
                yield entry

    def age_s(self, entry: Listed | ObjectInfo) -> int:
        return max(0, self.now_ms - entry.modified_ms) // 1000

    def is_older(self, entry: Listed | ObjectInfo, seconds: float) -> bool:
        """Whether an object was last written so long ago, by the store's clock on both sides."""
        return self.now_ms - entry.modified_ms > seconds * 1000

    # Deciding

    def keep(self, why: str) -> None:
        self.tally.keep(why)

    @contextmanager
    def apart(self, name: str = "", kept: str = "it cannot be read") -> Iterator[None]:
        """Around one table, record or object of many: what is wrong with it is told, it stays, and the others come next."""
        try:
            yield
        except ArcoError as error:
            self.keep(kept)
            self.tell(error, name)

    def decoded(self, decode: Callable[[bytes, str], T], data: bytes, key: str) -> T | None:
        """What an object says; None if it says nothing that can be understood, which is told, and it stays."""
        try:
            return decode(data, key)
        except ArcoError as error:
            self.keep("it cannot be read")
            self.tell(error)
            return None

    def tell(self, error: ArcoError, name: str = "") -> None:
        """Say what is wrong with one of many, and the command that says more."""
        said = f"{name}: {error.one_line()}" if name else error.one_line()
        self.tally.trouble.append(said if "run " in error.hint or isinstance(error, RetryLater) else f"{said}; {LOOK}")

    async def names_after_boundary(self) -> Names:
        """The names, after which no creation that was begun before a grace ago can add to them any more (U1).

        A creation whose identity was made before the boundary is refused by the swing itself. A dry run raises nothing, and
        what it shows is what would go if nobody came between.
        """
        if not self.dry_run:
            await raise_boundary(self.parts.tier1, self._boundary_ms)
            reach("upkeep.boundary_raised")
        return (await self.parts.tier1.current()).names

    def is_below_boundary(self, uuid: str) -> bool:
        """Whether an identity says that it was made before that boundary: no creation can give it a name any more.

        Clients choose identities too, of any version and by any clock: one that says no time, or one that has not come, is
        refused by no boundary.
        """
        made_ms = time_said(uuid)
        return made_ms is not None and made_ms < self._boundary_ms

    @property
    def _boundary_ms(self) -> int:
        return self.now_ms - (UPKEEP_GRACE_S + UPKEEP_CLOCKS_S) * 1000

    # Deleting

    async def remove(self, entry: Listed, why: str) -> None:
        """Take one object away. Some go side by side: `settle` waits for the last of them."""
        if self.dry_run:
            self.tally.gone(entry, self.age_s(entry), why)
            return
        self._leaving.append((entry, why))
        if len(self._leaving) >= UPKEEP_DELETES_MAX:
            await self.settle()

    async def moved(self, key: str) -> None:
        """Take away what was copied to another place, where it counts from now on."""
        if not self.dry_run:
            await self.store.delete(key)

    async def settle(self) -> None:
        """Until everything that was removed is gone: before what depends on that, and at the end of a job."""
        leaving, self._leaving = self._leaving, []
        if leaving:
            # All are waited for, also where one fails: what the report counts is what went.
            ends = await asyncio.gather(*(self._delete(entry, why) for entry, why in leaving), return_exceptions=True)
            for error in ends:
                if error is not None:
                    raise error
            reach("upkeep.deleted")

    async def _delete(self, entry: Listed, why: str) -> None:
        await self.store.delete(entry.key)
        self.tally.gone(entry, self.age_s(entry), why)

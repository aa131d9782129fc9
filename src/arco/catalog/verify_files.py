"""Every Iceberg table down to its files: manifest lists, manifests, data files and files of deletes, statistics.

What all snapshots name is looked at, each manifest once, some files at a time: memory does not grow with a table. Files of the
table's own folder are looked up in one listing of it, as far as that is remembered; all others are asked for, side by side. That
a file has the size its manifest says is all that is looked at inside it.

Who lets snapshots expire may take their files away at once, while they are looked for. So what is missed counts only if the table
still is what was looked at; else it is looked at again.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

from arco.catalog.catalog import Catalog
from arco.catalog.model import Entry
from arco.catalog.pointer import Pointer
from arco.catalog.spelling import spelled
from arco.catalog.subject import Tables
from arco.iceberg.metadata import TableMetadata
from arco.kernel.errors import ArcoError, AskOperator, CorruptObject, InvalidInput
from arco.kernel.limits import VERIFY_FILES_LISTED_MAX, VERIFY_MANIFESTS_AHEAD_MAX, VERIFY_READ_AHEAD_MAX
from arco.storage.findings import Progress, Report
from arco.storage.paging import walk

_RESTORE = "restore it from a backup or a copy of the root; or roll the table back to a snapshot that is whole"
_SHOWN_MAX = 20
_LOOKS_MAX = 3


class FilesCheck:
    """One look at the files of some tables, by pointers that were read before."""

    def __init__(self, catalog: Catalog, report: Report, progress: Progress) -> None:
        self._catalog = catalog
        self._ws = catalog.parts
        self._report = report
        self.progress = progress

    async def check(self, entries: list[Entry], pointers: dict[str, Pointer]) -> None:
        wanted = [(entry, pointers[entry.uuid]) for entry in entries if entry.uuid in pointers]
        for done, (entry, pointer) in enumerate(wanted, 1):
            self._report.take(await self._of(entry, pointer.metadata_location))
            self.progress("files of tables", done, len(wanted))

    async def _of(self, entry: Entry, location: str) -> Report:
        found = Report()
        for _ in range(_LOOKS_MAX):
            found = Report()
            try:
                metadata = Tables().decode(await self._ws.files.read(location), location)
            except ArcoError:
                return found  # found and told where pointers are looked at
            await _Table(FilesCheck(self._catalog, found, self.progress), entry, metadata).check()
            now = location if found.clean else await self._location_now(entry, location)
            if now == location:
                return found
            location = now
        found.note(f"{spelled(entry.namespace, entry.name)} is changed all the time: verify again before you act on it")
        return found

    async def _location_now(self, entry: Entry, before: str) -> str:
        try:
            pointer = await self._ws.pointers.read(entry.uuid)
        except AskOperator:
            return before  # damaged since: whoever verifies next hears of it
        return before if pointer is None else pointer.value.metadata_location

    async def fetch(self, location: str) -> bytes | None:
        return await self._ws.files.fetch(location)

    async def size_of(self, location: str) -> int | None:
        return await self._ws.files.size_bytes(location)

    async def sizes_below(self, location: str) -> dict[str, int]:
        """What lies in a folder inside the root, by its key; of a very large one the first."""
        key, found = self.key_of(location), dict[str, int]()
        if key is not None:
            async for one in walk(self._ws.tier1.store, f"{key}/"):
                found[one.key] = one.size_bytes
                if len(found) >= VERIFY_FILES_LISTED_MAX:
                    break
        return found

    def key_of(self, location: str) -> str | None:
        try:
            return self._ws.locations.key(location)
        except InvalidInput:
            return None

    def find(self, code: str, entry: Entry, what: str) -> None:
        self._report.find(code, spelled(entry.namespace, entry.name), what, _RESTORE)

    def count(self, word: str, by: int = 1) -> None:
        self._report.count(word, by)


class _Table:
    """The files of one table."""

    def __init__(self, checks: FilesCheck, entry: Entry, metadata: TableMetadata) -> None:
        self._checks = checks
        self._entry = entry
        self._called = f"{entry.kind} {spelled(entry.namespace, entry.name)}"
        self._metadata = metadata
        self._told = 0
        self._listed: dict[str, int] = {}
        self._met: set[str] = set()
        self._asked: dict[str, int] = {}

    async def check(self) -> None:
        # Only here: it loads PyIceberg.
        from arco.iceberg import manifest_files  # noqa: PLC0415

        snapshots = self._metadata.snapshots
        self._checks.count("snapshots", len(snapshots))
        lists = {str(one["manifest-list"]): one["snapshot-id"] for one in snapshots if "manifest-list" in one}
        manifests = {str(path): one["snapshot-id"] for one in snapshots for path in one.get("manifests") or ()}
        async for location, data in self._each(lists, "snapshot_list"):
            with self._readable(lists[location], "snapshot_list"):
                for one in manifest_files.manifests_in(data, location):
                    manifests.setdefault(one.manifest_path, lists[location])
        self._checks.count("manifests", len(manifests))
        self._checks.count("data_files", 0)
        # After the metadata was read: whatever it names was written before.
        if snapshots:
            self._listed = await self._checks.sizes_below(self._metadata.location)
        async for location, data in self._each(manifests, "snapshot_manifest"):
            with self._readable(manifests[location], "snapshot_manifest"):
                for file, said in manifest_files.sizes_in(data, location):
                    await self._look_for(file, said, "data_files")
        for kind in ("statistics", "partition-statistics"):
            for one in self._metadata.document[kind]:
                await self._look_for(str(one["statistics-path"]), int(one["file-size-in-bytes"]), "statistics")
        await self._found()

    async def _each(self, locations: dict[str, int], code: str) -> AsyncIterator[tuple[str, bytes]]:
        """The bytes of some files, a few read side by side; those that are gone are told."""
        wanted = list(locations)
        for start in range(0, len(wanted), VERIFY_MANIFESTS_AHEAD_MAX):
            group = wanted[start : start + VERIFY_MANIFESTS_AHEAD_MAX]
            for location, data in zip(group, await asyncio.gather(*map(self._fetched, group)), strict=True):
                if data is None:
                    self._tell(
                        f"{code}_missing", f"snapshot {locations[location]} of {self._called} needs {location}, gone"
                    )
                elif data:
                    yield location, data
            self._checks.progress(f"{code.replace('_', ' ')}s of a table", start + len(group), len(wanted))

    @contextmanager
    def _readable(self, snapshot_id: int, code: str) -> Iterator[None]:
        try:
            yield
        except CorruptObject as error:
            self._tell(f"{code}_unreadable", f"snapshot {snapshot_id} of {self._called}: {error.message}")

    async def _fetched(self, location: str) -> bytes | None:
        """The bytes; None if they are gone; nothing if they lie where nobody may look."""
        try:
            return await self._checks.fetch(location)
        except InvalidInput:
            self._checks.count("files_out_of_reach")
            return b""

    async def _look_for(self, location: str, said: int, word: str) -> None:
        """Look for a file that has the size that is said of it, with others that are asked for side by side."""
        if location in self._met:
            return
        if len(self._met) < VERIFY_FILES_LISTED_MAX:
            self._met.add(location)
        self._checks.count(word)
        self._asked[location] = said
        if len(self._asked) >= VERIFY_READ_AHEAD_MAX:
            await self._found()

    async def _found(self) -> None:
        asked, self._asked = self._asked, {}
        await asyncio.gather(*(self._exists(location, said) for location, said in asked.items()))

    async def _exists(self, location: str, said: int) -> None:
        try:
            size = await self._size_of(location)
        except InvalidInput:
            self._checks.count("files_out_of_reach")
            return
        if size is None:
            self._tell("file_missing", f"{self._called} names {location}, which is gone")
        elif size != said:
            self._tell("file_altered", f"{location} of {self._called} has {size} bytes, its manifest says {said}")

    async def _size_of(self, location: str) -> int | None:
        key = self._checks.key_of(location)
        size = self._listed.get(key) if key is not None else None
        return await self._checks.size_of(location) if size is None else size

    def _tell(self, code: str, what: str) -> None:
        """The first few of each table: the rest would say the same."""
        self._told += 1
        if self._told <= _SHOWN_MAX:
            self._checks.find(code, self._entry, what)
        elif self._told == _SHOWN_MAX + 1:
            self._checks.find("more_files", self._entry, f"more files of {self._called} are missing or damaged")

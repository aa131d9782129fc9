"""Every Iceberg table down to its files: manifest lists, manifests, data files and files of deletes, statistics.

What all snapshots name is looked at, each manifest once. Files of the table's own folder are looked up in one listing of it; only
what is not found there is asked for by itself. That a file has the size its manifest says is all that is looked at inside it.
"""

import asyncio
from collections.abc import Iterable
from typing import Any

from arco.catalog.catalog import Catalog
from arco.catalog.model import Entry
from arco.catalog.pointer import Pointer
from arco.catalog.spelling import spelled
from arco.catalog.subject import Tables
from arco.iceberg.metadata import TableMetadata
from arco.kernel.errors import ArcoError, CorruptObject, InvalidInput
from arco.kernel.limits import VERIFY_READ_AHEAD_MAX
from arco.storage.findings import Progress, Report
from arco.storage.paging import walk

_RESTORE = "restore it from a backup or a copy of the root; or roll the table back to a snapshot that is whole"
_SHOWN_MAX = 20


class FilesCheck:
    """One look at the files of some tables, by pointers that were read before."""

    def __init__(self, catalog: Catalog, report: Report, progress: Progress) -> None:
        self._ws = catalog.parts
        self._report = report
        self._progress = progress

    async def check(self, entries: list[Entry], pointers: dict[str, Pointer]) -> None:
        wanted = [(entry, pointers[entry.uuid]) for entry in entries if entry.uuid in pointers]
        for done, (entry, pointer) in enumerate(wanted, 1):
            try:
                location = pointer.metadata_location
                metadata = Tables().decode(await self._ws.files.read(location), location)
            except ArcoError:
                continue  # found and told where pointers are looked at
            await _Table(self, entry, metadata).check()
            self._progress("files of tables", done, len(wanted))

    async def fetch(self, location: str) -> bytes | None:
        return await self._ws.files.fetch(location)

    async def size_of(self, location: str) -> int | None:
        return await self._ws.files.size_bytes(location)

    async def sizes_below(self, location: str) -> dict[str, int]:
        """What lies in a folder inside the root, by location."""
        try:
            key = self._ws.locations.key(location)
        except InvalidInput:
            return {}
        if key is None:
            return {}
        return {one.key: one.size_bytes async for one in walk(self._ws.tier1.store, f"{key}/")}

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

    async def check(self) -> None:
        # Only here: it loads PyIceberg.
        from arco.iceberg import manifest_files  # noqa: PLC0415

        snapshots = self._metadata.snapshots
        self._checks.count("snapshots", len(snapshots))
        lists = {str(one["manifest-list"]): one["snapshot-id"] for one in snapshots if "manifest-list" in one}
        manifests = {str(path): one["snapshot-id"] for one in snapshots for path in one.get("manifests") or ()}
        for location, found in await self._each(lists, "snapshot_list", manifest_files.manifests_in):
            manifests |= {one.manifest_path: lists[location] for one in found if one.manifest_path not in manifests}
        self._checks.count("manifests", len(manifests))
        files: dict[str, int] = {}
        for _, found in await self._each(manifests, "snapshot_manifest", manifest_files.live_files_in):
            files |= {one.file_path: one.file_size_in_bytes for one in found}
        self._checks.count("data_files", len(files))
        for kind in ("statistics", "partition-statistics"):
            files |= {str(one["statistics-path"]): int(one["file-size-in-bytes"]) for one in self._metadata.document[kind]}
        await self._exist(files)

    async def _each(self, locations: dict[str, Any], code: str, read: Any) -> Iterable[tuple[str, Any]]:
        """What is in some files, some side by side; those that cannot be read are told."""
        found = []
        wanted = list(locations)
        for start in range(0, len(wanted), VERIFY_READ_AHEAD_MAX):
            group = wanted[start : start + VERIFY_READ_AHEAD_MAX]
            for location, data in zip(group, await asyncio.gather(*map(self._fetched, group)), strict=True):
                if data is None:
                    self._tell(
                        f"{code}_missing", f"snapshot {locations[location]} of {self._called} needs {location}, gone"
                    )
                elif data:
                    try:
                        found.append((location, read(data, location)))
                    except CorruptObject as error:
                        self._tell(
                            f"{code}_unreadable", f"snapshot {locations[location]} of {self._called}: {error.message}"
                        )
        return found

    async def _fetched(self, location: str) -> bytes | None:
        """The bytes; None if they are gone; nothing if they lie where nobody may look."""
        try:
            return await self._checks.fetch(location)
        except InvalidInput:
            self._checks.count("files_out_of_reach")
            return b""

    async def _exist(self, files: dict[str, int]) -> None:
        listed = await self._checks.sizes_below(self._metadata.location) if files else {}
        for location, said in files.items():
            key = self._checks.key_of(location)
            size = listed.get(key) if key is not None else None
            if size is None:
                try:
                    size = await self._checks.size_of(location)
                except InvalidInput:
                    self._checks.count("files_out_of_reach")
                    continue
            if size is None:
                self._tell("file_missing", f"{self._called} names {location}, which is gone")
            elif size != said:
                self._tell("file_altered", f"{location} of {self._called} has {size} bytes, its manifest says {said}")

    def _tell(self, code: str, what: str) -> None:
        """The first few of each table: the rest would say the same."""
        self._told += 1
        if self._told <= _SHOWN_MAX:
            self._checks.find(code, self._entry, what)
        elif self._told == _SHOWN_MAX + 1:
            self._checks.find("more_files", self._entry, f"more files of {self._called} are missing or damaged")

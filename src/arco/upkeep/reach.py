"""All that a table's versions in reach name: what a reader may hold in hand, and what a slow commit may still make current.

    now        the version that the pointer names, and one that a transaction has put there
    a day ago  the version that was current then, and every one since: what was removed meanwhile is still being read
    ahead      versions that were written and not swung to: a swing may still land (U2)

Names are compared by what comes after the table's own folder, whatever a client calls the root, and however it spells special
characters: two names that could mean one file are one name. What is named in a way that is not understood is an error, and then
nothing of the table goes; nor does anything while one of these versions cannot be read (`versions.py`), or something is gone that
the current one names, or one ahead.

Names are held as digests: sixteen bytes each, so that a table of a million files fits into memory.
"""

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from urllib.parse import unquote

from arco.iceberg.metadata import TableMetadata
from arco.iceberg.shape import JsonObject
from arco.kernel.errors import CorruptObject
from arco.kernel.limits import UPKEEP_MANIFEST_READS_MAX
from arco.upkeep.sweep import Sweep
from arco.upkeep.versions import HistoryEnds, Versions, version_at

_SLASHES = re.compile("/+")

Seen = Callable[[str, TableMetadata], None]


class Missing(Exception):
    """A list or a manifest is gone that a version names which is current, or may become so."""

    def __init__(self, location: str) -> None:
        super().__init__(location)
        self.location = location


class Folder:
    """The own folder of a table, and how its files are known."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self._mark = f"/{prefix.rstrip('/').rpartition('/')[2]}/"

    def digest(self, location: str) -> bytes | None:
        """What a file is known by; None if it lies somewhere else."""
        _, found, inside = f"/{_SLASHES.sub('/', location)}".partition(self._mark)
        return _digest(inside) if found else None


def _digest(inside: str) -> bytes:
    # Engines escape values of partitions in the names of folders, and whoever writes a location as a URL escapes that once more.
    return hashlib.blake2b(unquote(unquote(inside)).encode(), digest_size=16).digest()


class Reach:
    """What is named, as far as it was read. `seen` is told each version that was current within the day."""

    def __init__(self, sweep: Sweep, folder: Folder, seen: Seen | None = None) -> None:
        self._sweep = sweep
        self._folder = folder
        self._seen = seen
        self._named: set[bytes] = set()
        self._read: set[str] = set()
        """Versions, manifest lists and manifests whose content is in it."""

    def has(self, location: str) -> bool:
        return self._folder.digest(location) in self._named

    async def add_version(self, location: str, *, is_past: bool = False) -> TableMetadata | None:
        """One version, and all that it names; None if it was read before.

        `is_past`: another took its place. Clients that expire snapshots take their files away at once: a list or a manifest that
        is gone is then nobody's loss, and those who still read it have lost it already. One that is damaged nobody took away.
        """
        if location in self._read:
            return None
        metadata = await version_at(self._sweep, location)
        self._read.add(location)
        self._name([location, *statistics_of(metadata)])
        try:
            await self._add_snapshots(metadata.snapshots, is_past=is_past)
        except CorruptObject as error:
            if not is_past:
                raise
            raise HistoryEnds(location, error.one_line()) from error
        return metadata

    async def add_in_reach(self, versions: Versions) -> None:
        """Every version that may be in somebody's hands. One that came and went within the day named what no other does."""
        async for location in versions.in_reach():
            metadata = await self.add_version(location, is_past=location != versions.current)
            if metadata is not None and self._seen is not None:
                self._seen(location, metadata)

    async def _add_snapshots(self, snapshots: Iterable[JsonObject], *, is_past: bool) -> None:
        lists = [str(one["manifest-list"]) for one in snapshots if "manifest-list" in one]
        manifests = dict.fromkeys(str(path) for one in snapshots for path in one.get("manifests") or ())
        self._name(lists)
        async for name, data in self._unread(lists, is_past=is_past):
            # A manifest stands in the lists of many snapshots: it is remembered once.
            manifests.update((one, None) for one in listed_in(data, name) if one not in self._read)
        self._name(manifests)
        async for name, data in self._unread(manifests, is_past=is_past):
            self._name(live_in(data, name))

    async def _unread(self, locations: Iterable[str], *, is_past: bool) -> AsyncIterator[tuple[str, bytes]]:
        """What was not read before. What is gone is not: a version that needs it may come."""
        async for name, data in read_each(self._sweep, [one for one in dict.fromkeys(locations) if one not in self._read]):
            if data is not None:
                yield name, data
                self._read.add(name)
            elif not is_past:
                raise Missing(name)

    def _name(self, locations: Iterable[str]) -> None:
        self._named.update(digest for one in locations if (digest := self._folder.digest(one)) is not None)


def statistics_of(metadata: TableMetadata) -> list[str]:
    """The files of statistics that a version names."""
    found = [*metadata.document["statistics"], *metadata.document["partition-statistics"]]
    return [str(one["statistics-path"]) for one in found]


async def read_each(sweep: Sweep, locations: Sequence[str]) -> AsyncIterator[tuple[str, bytes | None]]:
    """The bytes of manifests or lists, None for one that is not there. A few are read side by side, and no more are held: a table
    may have thousands of megabytes of them."""
    for start in range(0, len(locations), UPKEEP_MANIFEST_READS_MAX):
        some = locations[start : start + UPKEEP_MANIFEST_READS_MAX]
        held = await asyncio.gather(*(sweep.parts.files.fetch(one) for one in some))
        for name in some:
            yield name, held.pop(0)


def listed_in(data: bytes, name: str) -> list[str]:
    # Only here: it loads PyIceberg, and most passes meet no table that wants it.
    from arco.iceberg.manifest_files import manifests_in  # noqa: PLC0415

    return [one.manifest_path for one in manifests_in(data, name)]


def live_in(data: bytes, name: str) -> Iterator[str]:
    from arco.iceberg.manifest_files import sizes_in  # noqa: PLC0415 - as above

    return (path for path, _ in sizes_in(data, name))

"""All that a table's versions in reach name: what a reader may hold in hand, and what a slow commit may still make current.

    now        the version that the pointer names, and one that a transaction has put there
    a day ago  the version that was current then, and every one since: what was removed meanwhile is still being read
    ahead      versions that were written and not swung to: a swing may still land (U2)

Names are compared by what comes after the table's own folder, whatever a client calls the root, and however it spells special
characters: two names that could mean one file are one name. What is named in a way that is not understood is an error, and then
nothing of the table goes; nor does anything while one of these versions cannot be read (`versions.py`).

Names are held as digests: sixteen bytes each, so that a table of a million files fits into memory.
"""

import asyncio
import hashlib
import re
from collections.abc import Iterable
from urllib.parse import unquote

from arco.iceberg.metadata import TableMetadata
from arco.iceberg.shape import JsonObject
from arco.kernel.errors import NotFound
from arco.kernel.ids import clip
from arco.kernel.limits import UPKEEP_MANIFEST_READS_MAX
from arco.upkeep.sweep import Sweep
from arco.upkeep.versions import Versions, version_at

_SLASHES = re.compile("/+")


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
    return hashlib.blake2b(unquote(inside).encode(), digest_size=16).digest()


class Reach:
    """What is named, as far as it was read."""

    def __init__(self, sweep: Sweep, folder: Folder) -> None:
        self._sweep = sweep
        self._folder = folder
        self._named: set[bytes] = set()
        self._read: set[str] = set()
        """Versions, manifest lists and manifests whose content is in it."""

    def has(self, location: str) -> bool:
        return self._folder.digest(location) in self._named

    async def add_version(self, location: str) -> None:
        """One version, and all that it names."""
        if location in self._read:
            return
        metadata = await version_at(self._sweep, location)
        self._read.add(location)
        self._name([location, *statistics_of(metadata)])
        await self._add_snapshots(metadata.snapshots)

    async def add_in_reach(self, versions: Versions) -> None:
        """Every version that may be in somebody's hands. One that came and went within the day named what no other does."""
        async for location in versions.in_reach():
            await self.add_version(location)

    async def _add_snapshots(self, snapshots: Iterable[JsonObject]) -> None:
        lists = [str(one["manifest-list"]) for one in snapshots if "manifest-list" in one]
        manifests = [str(path) for one in snapshots for path in one.get("manifests") or ()]
        self._name(lists)
        for found in await read_each(self._sweep, self._unread(lists)):
            manifests += listed_in(*found)
        self._name(manifests)
        for found in await read_each(self._sweep, self._unread(manifests)):
            self._name(live_in(*found))

    def _unread(self, locations: Iterable[str]) -> list[str]:
        fresh = [one for one in dict.fromkeys(locations) if one not in self._read]
        self._read.update(fresh)
        return fresh

    def _name(self, locations: Iterable[str]) -> None:
        self._named.update(digest for one in locations if (digest := self._folder.digest(one)) is not None)


def statistics_of(metadata: TableMetadata) -> list[str]:
    """The files of statistics that a version names."""
    found = [*metadata.document["statistics"], *metadata.document["partition-statistics"]]
    return [str(one["statistics-path"]) for one in found]


async def read_each(sweep: Sweep, locations: list[str]) -> list[tuple[bytes, str]]:
    """The bytes of some manifests or lists, some side by side. One that is not there is an error: nothing is known without it."""
    found: list[tuple[bytes, str]] = []
    for start in range(0, len(locations), UPKEEP_MANIFEST_READS_MAX):
        some = locations[start : start + UPKEEP_MANIFEST_READS_MAX]
        found += zip(await asyncio.gather(*(_bytes(sweep, one) for one in some)), some, strict=True)
    return found


async def _bytes(sweep: Sweep, location: str) -> bytes:
    data = await sweep.parts.files.fetch(location)
    if data is None:
        raise NotFound(f"{clip(location, 300)} is gone, and its table names it", hint="run arco verify")
    return data


def listed_in(data: bytes, name: str) -> list[str]:
    # Only here: it loads PyIceberg, and most passes meet no table that wants it.
    from arco.iceberg.manifest_files import manifests_in  # noqa: PLC0415

    return [one.manifest_path for one in manifests_in(data, name)]


def live_in(data: bytes, name: str) -> list[str]:
    from arco.iceberg.manifest_files import live_files_in  # noqa: PLC0415 - as above

    return [one.file_path for one in live_files_in(data, name)]

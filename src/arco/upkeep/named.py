"""What the versions of a table named, noted before those versions go: its manifest lists and its statistics, until they are gone.

    a pass of `files`   notes what every version since the last pass names
    the next ones       what is noted, and no version in reach names, has expired, whoever let it
    `versions`          notes what a metadata file names before it goes, if no pass of `files` has

Only so an expired file is told from one that nobody ever committed. Nothing of safety depends on the note: what is in reach is
read anew in every pass (`reach.py`). Where it is lost, or a client takes a version away before it was looked at, files stay that
only orphan collection finds. A pass reads a limited number of versions of one table; the next goes on where it ended.
"""

import re
from collections.abc import Callable
from uuid import UUID

import msgspec

from arco.iceberg.metadata import TableMetadata
from arco.kernel.errors import CorruptObject, UnknownFormat
from arco.kernel.ids import clip
from arco.kernel.limits import UPKEEP_CLOCKS_S, UPKEEP_GRACE_S, UPKEEP_VERSIONS_MAX
from arco.storage.keys import Key, UpkeepKey, Word
from arco.storage.port import Absent, Landed, Listed, Matches, Version
from arco.upkeep.places import is_named
from arco.upkeep.reach import statistics_of
from arco.upkeep.sweep import Sweep
from arco.upkeep.versions import HistoryEnds, Versions, number_of, version_at

NAME = "arco.upkeep_named"
_PREFIX = "named_"
_TABLE = re.compile(f"{_PREFIX}([0-9a-f]{{32}})")
_NEVER = -1


class _Rest(msgspec.Struct, frozen=True):
    """Versions that are still to be looked at: this one, and those before it whose number is above."""

    location: str
    above: int


class _Note(msgspec.Struct, frozen=True):
    """`newest`: up to which commit number everything was looked at, but for the rest."""

    format: str
    format_version: int
    newest: int
    rest: tuple[_Rest, ...]
    lists: tuple[str, ...]
    statistics: tuple[str, ...]


_NOTHING = _Note(NAME, 1, _NEVER, (), (), ())


class Named:
    """What is noted of one table. It is written once, at the end of a pass: a pass that dies has noted nothing."""

    def __init__(self, sweep: Sweep, uuid: str, note: _Note = _NOTHING, version: Version | None = None) -> None:
        self._sweep = sweep
        self._key = _key(sweep, uuid)
        self._note = note
        self._version = version
        self._newest = note.newest
        self._rest = note.rest
        self._looked: set[str] = set()
        self._reads = 0
        self.lists = dict.fromkeys(note.lists)
        self.statistics = dict.fromkeys(note.statistics)

    @classmethod
    async def read(cls, sweep: Sweep, uuid: str) -> "Named":
        key = _key(sweep, uuid)
        found = await sweep.store.get(key)
        return cls(sweep, uuid) if found is None else cls(sweep, uuid, _decode(found.data, key), found.version)

    @property
    def looked_at(self) -> int:
        """Up to which commit number all that versions named is noted."""
        return min([self._newest, *(rest.above for rest in self._rest)])

    def take(self, location: str, metadata: TableMetadata) -> None:
        """Note what a version names that was current at some time. One that never was names what nobody committed."""
        self._looked.add(location)
        self.lists.update(dict.fromkeys(str(one["manifest-list"]) for one in metadata.snapshots if "manifest-list" in one))
        self.statistics.update(dict.fromkeys(statistics_of(metadata)))

    async def look_back(self, versions: Versions, number: int) -> None:
        """Take every version up to a current one, of this number, that was not looked at in an earlier pass. The oldest come
        first: they go first."""
        rests = self._rest if number <= self._newest else (*self._rest, _Rest(versions.current, self._newest))
        followed = [await self._follow(versions, rest) for rest in rests]
        self._rest = tuple(rest for rest in followed if rest is not None)
        self._newest = max(self._newest, number)

    async def _follow(self, versions: Versions, rest: _Rest) -> _Rest | None:
        """What is still to be looked at of a rest. What cannot be read is passed over; one that is gone ends it."""
        reached = rest.location
        number = number_of(rest.location)
        try:
            await self._look_at(rest.location)
            async for version in versions.before(rest.location):
                before = number_of(version.location)
                if before is None or before <= rest.above or (number is not None and before >= number):
                    return None
                if self._reads >= UPKEEP_VERSIONS_MAX and version.location not in self._looked:
                    return _Rest(reached, rest.above)
                if await self._look_at(version.location):
                    reached = version.location
                number = before
        except HistoryEnds:
            return None
        except (CorruptObject, UnknownFormat) as error:
            self._pass_over(error)
        return None

    async def _look_at(self, location: str) -> bool:
        """False for a version that cannot be read."""
        if location in self._looked:
            return True
        self._reads += 1
        try:
            self.take(location, await version_at(self._sweep, location))
        except (CorruptObject, UnknownFormat) as error:
            self._pass_over(error)
            return False
        return True

    def _pass_over(self, error: CorruptObject | UnknownFormat) -> None:
        self._sweep.tally.notes.append(f"{error.one_line()}: what only it named is an orphan now")

    def forget(self, is_gone: Callable[[str], bool]) -> None:
        self.lists = {one: None for one in self.lists if not is_gone(one)}
        self.statistics = {one: None for one in self.statistics if not is_gone(one)}

    async def save(self) -> bool:
        """Write what is known now; False if another process wrote meanwhile, or nobody knows. What that noted holds by itself."""
        note = _Note(NAME, 1, self._newest, self._rest, tuple(self.lists), tuple(self.statistics))
        if self._sweep.dry_run or note == self._note:
            return True
        condition = Absent() if self._version is None else Matches(self._version)
        return isinstance(await self._sweep.store.put(self._key, msgspec.json.encode(note), condition), Landed)


async def collect_notes(sweep: Sweep) -> None:
    """Take away the notes of tables that are no more. One that a slow pass writes again is found by the next."""
    old: list[tuple[Listed, str]] = []
    async for entry, key in sweep.walk("upkeep"):
        sweep.tally.looked_at -= 1
        uuid = _uuid_in(key)
        if uuid is not None and sweep.is_older(entry, UPKEEP_GRACE_S + UPKEEP_CLOCKS_S):
            old.append((entry, uuid))
    names = (await sweep.parts.tier1.current()).names
    for entry, uuid in old:
        if not is_named(names, uuid):
            await sweep.remove(entry, "a note of a table that is no more")


def _key(sweep: Sweep, uuid: str) -> str:
    return str(UpkeepKey(sweep.scope, Word(f"{_PREFIX}{UUID(uuid).hex}")))


def _uuid_in(key: Key) -> str | None:
    found = _TABLE.fullmatch(key.name) if isinstance(key, UpkeepKey) else None
    return None if found is None else str(UUID(hex=found[1]))


def _decode(data: bytes, key: str) -> _Note:
    try:
        note = msgspec.json.decode(data, type=_Note)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CorruptObject(f"{key} is no note of upkeep: {error}") from error
    if note.format != NAME:
        raise CorruptObject(f"{key} is {clip(note.format)!r}, and no note of what a table named")
    if note.format_version != 1:
        raise UnknownFormat(f"{key} has format version {note.format_version}")
    return note

"""Files of tables that nothing names any more: those that only expired snapshots named, and those that nobody ever committed.

    list the folder → ask the notes of those at work → read the pointer → decide, by what the table says now → delete

In this order, and the whole folder before the first deletion (`specs/collector.py`): a file that is listed as old, is in nobody's
note and is named by no version in reach (`reach.py`) can no longer get into the table. Its name is its writer's own and is not
used again. A table whose folder is shared, or that was registered from elsewhere, is left alone, and so is everything whose time
has not come: a day for what a version named that was superseded, three days for what none did. Whoever writes for longer than
that without a note loses its files: docs/upkeep.md says so.

Data goes before manifests and manifests before lists, so that what is left after a crash is still known by its list.
"""

import re
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace

from arco.catalog.staging import decode_intent
from arco.catalog.standing import STARTED
from arco.catalog.subject import Tables
from arco.iceberg.metadata import TableMetadata
from arco.iceberg.updates import PREVIOUS_VERSIONS_DEFAULT, PREVIOUS_VERSIONS_PROPERTY
from arco.kernel.errors import Conflict, CorruptObject, InvalidInput, NotFound
from arco.kernel.ids import clip
from arco.kernel.limits import ORPHAN_FILE_S, UPKEEP_FILES_MAX
from arco.storage.keys import StagedIntentKey
from arco.storage.port import Listed
from arco.upkeep.maintained import (
    DELETE_METADATA,
    EXPIRE_SNAPSHOTS,
    FORBIDDEN,
    ORPHAN_FILES,
    Maintained,
    forbids_garbage,
    maintained,
)
from arco.upkeep.open_runs import OpenRuns
from arco.upkeep.places import Places, own_folder
from arco.upkeep.reach import Folder, Reach, listed_in, live_in, read_each, statistics_of
from arco.upkeep.sweep import YOUNG, Sweep
from arco.upkeep.versions import KEPT_MS, HistoryEnds, Versions, is_missed, number_of

_MADE = re.compile(r"(?:^|/)([0-9A-HJKMNP-TV-Z]{26})[/-]")
_WORDS = (EXPIRE_SNAPSHOTS, ORPHAN_FILES)
_VERSIONS_MAX = 200
"""Versions of one table whose expired snapshots are looked for in one pass. What stays behind them is an orphan."""

_RESTORE = "restore it from a copy, or run upkeep again a day after the version that came next: nobody needs it then"
_NAMED = "a version of its table in reach names it"


async def collect(sweep: Sweep) -> None:
    places: Places | None = None
    async for table in maintained(sweep, *_WORDS):
        places = places or Places((await sweep.parts.tier1.current()).names, sweep.parts.locations)
        folder = own_folder(sweep.parts, table.entry.uuid, table.pointer.value.metadata_location)
        if folder is None or table.pointer.value.created_by == STARTED:
            sweep.keep("its table lies elsewhere, or was registered: its files are left alone")
        elif not places.is_alone(folder, table.entry.uuid):
            sweep.keep("another table lies in its folder")
        else:
            await _collect(sweep, table, folder)


async def _collect(sweep: Sweep, table: Maintained, folder: str) -> None:
    with sweep.apart(table.name, "what its table names is not known, so nothing of it goes"):
        try:
            await _Garbage(sweep, table, folder).collect()
        except HistoryEnds as end:
            if await is_missed(sweep, table.entry.uuid, end.location):
                raise NotFound(f"{clip(end.location, 300)} is gone, and its table names it", hint=_RESTORE) from end
            sweep.keep("what its table named within the day is not known, so nothing of it goes")
            sweep.tally.notes.append(_unknown(table))


def _unknown(table: Maintained) -> str:
    """No damage: clients may delete what the log no longer names. It ends when a day's versions are in the log."""
    kept = table.metadata.properties.get(PREVIOUS_VERSIONS_PROPERTY, str(PREVIOUS_VERSIONS_DEFAULT))
    return (
        f"{table.name}: not all versions of the last day can be read, so no file of it goes now; "
        f"set {PREVIOUS_VERSIONS_PROPERTY} ({kept} now) to more than it has commits in a day: "
        f"where {DELETE_METADATA} is on, PyIceberg deletes all others at once"
    )


class _Garbage:
    """What of one table's folder nobody can reach."""

    def __init__(self, sweep: Sweep, table: Maintained, folder: str) -> None:
        self._sweep = sweep
        self._table = table
        self._folder = Folder(folder)
        self._reach = Reach(sweep, self._folder)
        self._candidates: dict[bytes, Listed] = {}
        self._ahead: list[Listed] = []

    async def collect(self) -> None:
        sweep, pointer = self._sweep, self._table.pointer.value
        versions = Versions(sweep, pointer)
        # Most of what is there is named: what is not is all that has to be remembered of the listing.
        await self._reach.add_in_reach(versions)
        await self._list(pointer.commit_number)
        if not self._candidates:
            return
        theirs = await self._of_others()
        await self._read_pointer_again()
        if not self._is_still_wanted():
            return
        expired = await self._expired(versions)
        for place in ("data", "manifests", "lists"):
            for digest, why in expired[place].items():
                await self._remove(digest, why, theirs)
            await sweep.settle()
        for digest in list(self._candidates):
            await self._judge_orphan(digest, theirs)

    # Listing

    async def _list(self, commit_number: int) -> None:
        sweep = self._sweep
        async for entry in sweep.files(self._folder.prefix):
            number = number_of(f"/{entry.key}")
            if number is not None:
                # Metadata files are not judged here. One above the pointer may still become current.
                if number > commit_number:
                    self._ahead.append(entry)
            elif self._reach.has(entry.key):
                sweep.keep(_NAMED)
            elif not sweep.is_older(entry, KEPT_MS / 1000):
                sweep.keep(YOUNG)
            elif len(self._candidates) >= UPKEEP_FILES_MAX:
                sweep.keep("the next pass looks at it")
            elif (digest := self._folder.digest(entry.key)) is not None:
                self._candidates[digest] = entry

    # Who may still want something

    async def _of_others(self) -> frozenset[str]:
        """What runs under way make; an error if somebody is about to create a table in this folder."""
        await self._refuse_staged()
        made = {found for entry in self._candidates.values() for found in _made_in(self._inside(entry))}
        return await OpenRuns(self._sweep).makes(made)

    async def _refuse_staged(self) -> None:
        sweep = self._sweep
        async for entry, key in sweep.walk("iceberg_staged"):
            sweep.tally.looked_at -= 1
            found = await sweep.store.get(entry.key)
            if found is None or not isinstance(key, StagedIntentKey):
                continue
            try:
                place = sweep.parts.locations.key(decode_intent(found.data, entry.key).location)
            except InvalidInput as error:
                raise CorruptObject(f"{entry.key} is not a note of a staged table: {error}") from error
            if place is not None and f"{place}/".startswith(self._folder.prefix):
                raise Conflict(f"{entry.key} is about to create a table in the folder of {self._table.name}")

    async def _read_pointer_again(self) -> None:
        """After the notes: whoever closed one has committed before."""
        sweep = self._sweep
        pointer = await sweep.parts.pointers.read(self._table.entry.uuid)
        if pointer is None or pointer.value.tombstone is not None:
            raise Conflict(f"{self._table.name} is being dropped")
        location = pointer.value.metadata_location
        metadata = Tables().decode(await sweep.parts.files.read(location), location)
        self._table = replace(self._table, pointer=pointer, metadata=metadata)
        await self._reach.add_in_reach(Versions(sweep, pointer.value))
        if pointer.value.pending is not None:
            await self._reach.add_version(pointer.value.pending.change.metadata_location)
        for entry in self._ahead:
            if (number_of(f"/{entry.key}") or 0) > pointer.value.commit_number:
                await self._reach.add_version(sweep.parts.locations.uri(entry.key))

    def _is_still_wanted(self) -> bool:
        """Reading a large table takes long, and whoever owns it may have changed their mind: what it says now counts."""
        if forbids_garbage(self._table.metadata):
            self._sweep.keep(FORBIDDEN)
            return False
        if not any(self._table.wants(word) for word in _WORDS):
            self._sweep.keep("its table does not ask for it any more")
            return False
        return True

    # What is garbage

    async def _expired(self, versions: Versions) -> dict[str, dict[bytes, str]]:
        """What versions named that are no longer in reach, as far as their lists are still there."""
        found: dict[str, dict[bytes, str]] = {"data": {}, "manifests": {}, "lists": {}}
        looked: set[str] = set()
        async for metadata in self._past_reach(versions):
            self._take(found["lists"], statistics_of(metadata), "statistics of a snapshot that expired")
            lists = [str(one.get("manifest-list")) for one in metadata.snapshots]
            fresh = [one for one in dict.fromkeys(lists) if one not in looked and self._is_candidate(one)]
            looked.update(lists)
            await self._take_lists(found, fresh)
        return found

    async def _past_reach(self, versions: Versions) -> AsyncIterator[TableMetadata]:
        """Versions that nobody reads any more, the newest first, as far as they are there."""
        read = 0
        async for version, successor in versions.past():
            if read or await versions.is_long_ago(successor):
                data = await self._sweep.parts.files.fetch(version.location)
                if data is None or read >= _VERSIONS_MAX:
                    return  # deleted after its commit, as the table asks: what it named was looked at before
                read += 1
                yield Tables().decode(data, version.location)

    async def _take_lists(self, found: dict[str, dict[bytes, str]], lists: list[str]) -> None:
        self._take(found["lists"], lists, "the list of a snapshot that expired")
        named = [path for data, name in await read_each(self._sweep, lists) for path in listed_in(data, name)]
        manifests = [one for one in dict.fromkeys(named) if self._is_candidate(one)]
        self._take(found["manifests"], manifests, "only expired snapshots named it")
        for data, name in await read_each(self._sweep, [one for one in manifests if self._is_inside_root(one)]):
            self._take(found["data"], live_in(data, name), "only expired snapshots named it")

    def _take(self, into: dict[bytes, str], locations: Iterable[str], why: str) -> None:
        for location in locations:
            digest = self._folder.digest(location)
            if digest is not None and digest in self._candidates and not self._reach.has(location):
                into[digest] = why

    def _is_candidate(self, location: str) -> bool:
        return self._folder.digest(location) in self._candidates and not self._reach.has(location)

    def _is_inside_root(self, location: str) -> bool:
        return self._sweep.parts.locations.key(location) is not None

    async def _judge_orphan(self, digest: bytes, theirs: frozenset[str]) -> None:
        sweep, entry = self._sweep, self._candidates[digest]
        if not self._table.wants(ORPHAN_FILES):
            self._candidates.pop(digest)
            sweep.keep(f"nothing names it, and its table does not say {ORPHAN_FILES}")
        elif not sweep.is_older(entry, ORPHAN_FILE_S):
            self._candidates.pop(digest)
            sweep.keep("nothing names it, and its writer may still commit it")
        else:
            await self._remove(digest, "no version of its table in reach names it", theirs)

    async def _remove(self, digest: bytes, why: str, theirs: frozenset[str]) -> None:
        entry = self._candidates.pop(digest, None)
        if entry is None:
            return
        if self._reach.has(entry.key):
            self._sweep.keep(_NAMED)
        elif not theirs.isdisjoint(_made_in(self._inside(entry))):
            self._sweep.keep("of a run that has not ended")
        else:
            await self._sweep.remove(entry, why)

    def _inside(self, entry: Listed) -> str:
        return entry.key.removeprefix(self._folder.prefix)


def _made_in(path: str) -> set[str]:
    """What a path says of who made it: the names of what runs make are in it as folders, or before a dash."""
    return set(_MADE.findall(path))

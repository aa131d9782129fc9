"""Files of tables that nothing names any more: those that only expired snapshots named, and those that nobody ever committed.

    list the folder → ask the notes of those at work → read the pointer → decide, by what the table says now → delete

In this order, and the whole folder before the first deletion (`specs/collector.py`): a file that is listed as old, is in nobody's
note and is named by no version in reach (`reach.py`) can no longer get into the table. Its name is its writer's own and is not
used again. A table whose folder is shared, or that was registered from elsewhere, is left alone, and so is everything whose time
has not come: a day for what a version named that was superseded, three days for what none did. Whoever writes for longer than
that without a note loses its files: docs/upkeep.md says so.

What versions named is known from a note (`named.py`) that is older than what they let go of. Data goes before manifests and
manifests before lists, so that what is left after a crash is still known by its list.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from arco.catalog.staging import decode_intent
from arco.catalog.standing import STARTED
from arco.catalog.subject import Tables
from arco.iceberg.updates import PREVIOUS_VERSIONS_DEFAULT, PREVIOUS_VERSIONS_PROPERTY
from arco.kernel.errors import ArcoError, Conflict, CorruptObject, InvalidInput, NotFound, UnknownFormat
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
from arco.upkeep.named import Named, collect_notes
from arco.upkeep.open_runs import OpenRuns
from arco.upkeep.places import Places, own_folder
from arco.upkeep.reach import Folder, Missing, Reach, listed_in, live_in, read_each
from arco.upkeep.staged import KEPT_S as STAGED_KEPT_S
from arco.upkeep.sweep import LOOK, YOUNG, Sweep
from arco.upkeep.versions import KEPT_MS, HistoryEnds, Versions, is_missed, number_of

_MADE = re.compile(r"(?:^|/)([0-9A-HJKMNP-TV-Z]{26})[/-]")
_WORDS = (EXPIRE_SNAPSHOTS, ORPHAN_FILES)
_RESTORE = "restore it from a copy, or run upkeep again a day after the version that came next: nobody needs it then"
_NAMED = "a version of its table in reach names it"
_NEXT = "the next pass looks at it"

Expired = tuple[dict[bytes, str], dict[bytes, str], dict[bytes, str]]
"""Data, manifests, and lists, each with why it is garbage: in the order in which they go."""


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
    if not sweep.asked:
        await collect_notes(sweep)


async def _collect(sweep: Sweep, table: Maintained, folder: str) -> None:
    with sweep.apart(table.name, "what its table names is not known, so nothing of it goes"):
        named = await Named.read(sweep, table.entry.uuid)
        try:
            await _Garbage(sweep, table, folder, named).collect()
        except HistoryEnds as end:
            if await is_missed(sweep, table.entry.uuid, end.location):
                raise NotFound(f"{clip(end.location, 300)} is gone, and its table names it", hint=_RESTORE) from end
            sweep.keep("what its table named within the day is not known, so nothing of it goes")
            sweep.tally.notes.append(_unknown(table, end))
        except Missing as missing:
            if await _is_still_missing(sweep, table, folder, missing.location):
                raise NotFound(f"{clip(missing.location, 300)} is gone, and its table names it", hint=LOOK) from missing
            sweep.keep("its table has moved on meanwhile, so the next pass looks at it")
        finally:
            await named.save()


async def _is_still_missing(sweep: Sweep, table: Maintained, folder: str, location: str) -> bool:
    """Whether the table as it is now needs it: a client may have let its snapshot expire while the version before was read."""
    pointer = await sweep.parts.pointers.read(table.entry.uuid)
    if pointer is None or pointer.value.metadata_location == table.pointer.value.metadata_location:
        return pointer is not None
    try:
        await Reach(sweep, Folder(folder)).add_version(pointer.value.metadata_location)
    except Missing as missing:
        return missing.location == location
    except HistoryEnds:
        return False
    return False


def _unknown(table: Maintained, end: HistoryEnds) -> str:
    """No damage: clients may delete what the log no longer names. It ends when a day's versions are in the log."""
    kept = table.metadata.properties.get(PREVIOUS_VERSIONS_PROPERTY, str(PREVIOUS_VERSIONS_DEFAULT))
    return f"{table.name}: not all versions of the last day can be read, so no file of it goes now; " + (
        end.why
        or f"set {PREVIOUS_VERSIONS_PROPERTY} ({kept} now) to more than it has commits in a day: "
        f"where {DELETE_METADATA} is on, PyIceberg deletes all others at once"
    )


class _Garbage:
    """What of one table's folder nobody can reach."""

    def __init__(self, sweep: Sweep, table: Maintained, folder: str, named: Named) -> None:
        self._sweep = sweep
        self._table = table
        self._folder = Folder(folder)
        self._reach = Reach(sweep, self._folder, named.take)
        self._named = named
        self._candidates: dict[bytes, Listed] = {}
        self._ahead: list[Listed] = []
        self._is_more = False
        """Whether more data has expired than a pass takes."""
        self._there: set[bytes] = set()
        """Of what is noted, what the listing showed and was not taken away."""

    async def collect(self) -> None:
        sweep, pointer = self._sweep, self._table.pointer.value
        versions = Versions(sweep, pointer)
        # Most of what is there is named: what is not is all that has to be remembered of the listing.
        try:
            await self._reach.add_in_reach(versions)
        finally:
            await self._named.look_back(versions, pointer.commit_number)
        expired = await self._expired()
        await self._list(pointer.commit_number, expired)
        if self._candidates:
            theirs = await self._of_others()
            await self._read_pointer_again()
            if self._is_still_wanted():
                await self._collect_candidates(expired, theirs)
            await sweep.settle()
        self._named.forget(
            lambda location: not self._reach.has(location) and self._folder.digest(location) not in self._there
        )

    async def _collect_candidates(self, expired: Expired, theirs: frozenset[str]) -> None:
        for found in expired:
            for digest, why in found.items():
                await self._remove(digest, why, theirs)
            await self._sweep.settle()
            if self._is_more:
                break  # its manifests stay until the last of it is gone
        for digest in list(self._candidates):
            await self._judge_orphan(digest, theirs)

    # Listing

    async def _list(self, commit_number: int, expired: Expired) -> None:
        sweep, noted = self._sweep, {self._folder.digest(one) for one in (*self._named.lists, *self._named.statistics)}
        data, manifests, lists = expired
        async for entry in sweep.files(self._folder.prefix):
            number, digest = number_of(f"/{entry.key}"), self._folder.digest(entry.key)
            if digest is not None and digest in noted:
                self._there.add(digest)
            if number is not None:
                # Metadata files are not judged here. One above the pointer may still become current.
                if number > commit_number:
                    self._ahead.append(entry)
            elif self._reach.has(entry.key):
                sweep.keep(_NAMED)
            elif not sweep.is_older(entry, KEPT_MS / 1000):
                sweep.keep(YOUNG)
            elif not self._table.wants(ORPHAN_FILES) and not any(digest in found for found in expired):
                sweep.keep(f"nothing names it, and its table does not say {ORPHAN_FILES}")
            elif len(self._candidates) >= UPKEEP_FILES_MAX and digest not in manifests and digest not in lists:
                sweep.keep(_NEXT)
                self._is_more = self._is_more or digest in data
            elif digest is not None:
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
            except (CorruptObject, UnknownFormat, InvalidInput) as error:
                await self._refuse_unless_past(entry, error)
                continue
            if place is not None and f"{place}/".startswith(self._folder.prefix):
                raise Conflict(f"{entry.key} is about to create a table in the folder of {self._table.name}")

    async def _refuse_unless_past(self, entry: Listed, error: ArcoError) -> None:
        """A note that cannot be read may speak of any folder, until nobody can create its table any more (`staged.py`)."""
        sweep = self._sweep
        if not sweep.is_older(entry, STAGED_KEPT_S):
            raise CorruptObject(f"{entry.key} is not a note of a staged table: {error}") from error
        places = Places(await sweep.names_after_boundary(), sweep.parts.locations)
        if not places.is_alone(self._folder.prefix, self._table.entry.uuid):
            raise Conflict(f"{entry.key} has created a table in the folder of {self._table.name}") from error

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

    async def _expired(self) -> Expired:
        """What versions named that are no longer in reach, as far as their lists are still there."""
        data, manifests, lists = dict[bytes, str](), dict[bytes, str](), dict[bytes, str]()
        self._take(lists, self._named.statistics, "statistics of a snapshot that expired")
        self._take(lists, self._named.lists, "the list of a snapshot that expired")
        names: dict[str, None] = {}
        async for name, content in read_each(self._sweep, self._readable(self._named.lists)):
            names.update((path, None) for path in self._told(listed_in, name, content) if not self._reach.has(path))
        self._take(manifests, names, "only expired snapshots named it")
        async for name, content in read_each(self._sweep, self._readable(names)):
            self._take(data, self._told(live_in, name, content), "only expired snapshots named it")
        return data, manifests, lists

    def _told(self, reader: Callable[[bytes, str], Iterable[str]], name: str, data: bytes | None) -> Iterator[str]:
        """What a list or a manifest names that nobody needs any more. Another collector, or a client, may have been quicker."""
        try:
            yield from () if data is None else reader(data, name)
        except CorruptObject as error:
            said = f"{self._table.name}: {error.one_line()}; it has expired, and what it named is an orphan now"
            self._sweep.tally.notes.append(said)

    def _take(self, into: dict[bytes, str], locations: Iterable[str], why: str) -> None:
        for location in locations:
            digest = self._folder.digest(location)
            if digest is not None and not self._reach.has(location):
                into[digest] = why

    def _readable(self, locations: Iterable[str]) -> list[str]:
        """Those beyond reach that are in the table's own folder: in one that others share, nothing is looked at."""
        inside = self._sweep.parts.locations.key
        return [
            one for one in locations if not self._reach.has(one) and (inside(one) or "").startswith(self._folder.prefix)
        ]

    async def _judge_orphan(self, digest: bytes, theirs: frozenset[str]) -> None:
        sweep, entry = self._sweep, self._candidates[digest]
        if not self._table.wants(ORPHAN_FILES):
            self._candidates.pop(digest)
            sweep.keep(_NEXT)
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
            self._there.discard(digest)
            await self._sweep.remove(entry, why)

    def _inside(self, entry: Listed) -> str:
        return entry.key.removeprefix(self._folder.prefix)


def _made_in(path: str) -> set[str]:
    """What a path says of who made it: the names of what runs make are in it as folders, or before a dash."""
    return set(_MADE.findall(path))

"""Metadata files of commits that never happened: written before a swing that was lost (PROTOCOLS U2).

A file is garbage if its number is not above the pointer's, the history of its table has another file under that number, and it is
older than the grace. While its number is above the pointer's, a commit that is only slow may still swing to it. Its name holds
its number and a hash of the request: only an attempt on a base that is long past would write it again.

History is the table's own: the current file names those before it, and the oldest of them names those before itself. Where that
trail ends, nothing is known and everything stays. So nothing is taken for garbage because a list was cut short (trap T20). A
table that was registered may have lived elsewhere under other numbers: its files are left alone. So are those of a table that was
dropped or unregistered: that is how clients move a table, and whoever has it now may write files of the same numbers.
"""

import re
from collections import Counter
from typing import Any

from arco.catalog.model import Entry, Format, Kind
from arco.catalog.pointer import Pointer
from arco.catalog.standing import STARTED
from arco.catalog.subject import Tables, Views
from arco.kernel.errors import AskOperator, InvalidInput
from arco.kernel.limits import UPKEEP_CLOCKS_S, UPKEEP_GRACE_S, UPKEEP_HISTORY_READS_MAX
from arco.storage.port import Listed
from arco.upkeep.places import Places, own_folder
from arco.upkeep.sweep import YOUNG, Sweep

_KEPT_S = UPKEEP_GRACE_S + UPKEEP_CLOCKS_S
_FILE = re.compile(r"/([0-9]{5,20})-[0-9a-f]{32}(?:\.gz)?\.metadata\.json$")


async def collect(sweep: Sweep) -> None:
    names = (await sweep.parts.tier1.current()).names
    places = Places(names, sweep.parts.locations)
    for entry in list(names.entries.values()):
        if entry.format is Format.ICEBERG:
            with sweep.apart(entry.full_name, "its files could not be looked at"):
                await _collect(sweep, entry, places)


async def _collect(sweep: Sweep, entry: Entry, places: Places) -> None:
    pointer = await sweep.parts.pointers.read(entry.uuid)
    if pointer is None or pointer.value.created_by == STARTED:
        return
    folder = own_folder(sweep.parts, entry.uuid, pointer.value.metadata_location)
    if folder is None or not places.is_alone(folder, entry.uuid):
        return
    # The pointer was read before the folder: what is in it and not above that pointer can never be swung to any more.
    found = [one async for one in sweep.files(f"{folder}metadata/") if _FILE.search(one.key)]
    several = Counter(map(_number, found))
    old = [one for one in found if _is_candidate(sweep, one, several[_number(one)])]
    if not old:
        return  # no number has two files, so each is that of its commit: nothing has to be read
    history = _History(sweep, entry, pointer.value)
    await history.begin()
    for one in sorted(old, key=_number, reverse=True):
        landed = await history.at(_number(one))
        if _number(one) > pointer.value.commit_number:
            sweep.keep("a commit may still swing to it")
        elif landed is None:
            sweep.keep("the history of its table does not reach so far back")
        elif _name(one.key) in landed:
            sweep.keep("a commit of its table")
        else:
            await sweep.remove(one, "its commit never happened: another has its number")


def _is_candidate(sweep: Sweep, one: Listed, files_of_its_number: int) -> bool:
    if not sweep.is_older(one, _KEPT_S):
        sweep.keep(YOUNG)
    elif files_of_its_number == 1:
        sweep.keep("the only file of its number")
    else:
        return True
    return False


def _name(location: str) -> str:
    """The last part of a location: clients spell the rest in several ways."""
    return location.rpartition("/")[2]


def _number(one: Listed) -> int:
    found = _FILE.search(one.key)
    return -1 if found is None else int(found[1])


class _History:
    """Which file each commit of a table wrote, as far back as was asked."""

    def __init__(self, sweep: Sweep, entry: Entry, pointer: Pointer) -> None:
        self._sweep = sweep
        self._subject: Any = Views() if entry.kind is Kind.VIEW else Tables()
        self._known: dict[int, set[str]] = {}
        self._next: str | None = pointer.metadata_location
        self._reads = 0
        for location in (pointer.metadata_location, pointer.previous_metadata_location):
            self._learn(location)
        for one in pointer.published:
            self._known.setdefault(one.commit_number, set()).add(_name(one.metadata_location))

    async def begin(self) -> None:
        """What the current file says of those before it."""
        await self._read_on()

    async def at(self, number: int) -> set[str] | None:
        """The names of the files that a number is known to stand for; None if nobody knows."""
        while number not in self._known and self._next is not None and self._reads < UPKEEP_HISTORY_READS_MAX:
            await self._read_on()
        return self._known.get(number)

    async def _read_on(self) -> None:
        location, self._next = self._next or "", None
        self._reads += 1
        try:
            data = await self._sweep.parts.files.find(location)
            facts = None if data is None else self._subject.facts(self._subject.decode(data, location))
        except InvalidInput:
            return  # out of reach: the trail ends here
        except AskOperator as error:
            self._sweep.tell(error)  # damaged: here too
            return
        if facts is None:
            return
        for previous in facts.previous_locations:
            self._learn(previous)
        oldest = facts.previous_locations[0] if facts.previous_locations else None
        self._next = None if oldest == location else oldest

    def _learn(self, location: str | None) -> None:
        found = None if location is None else _FILE.search(location)
        if found is not None and location is not None:
            self._known.setdefault(int(found[1]), set()).add(_name(location))

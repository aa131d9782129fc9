"""Keys for one attempt: they read what it reads, write to its own directory of its output's table, and open nothing else.

    inputs         read    the folder of each table, and of each set of files in the root's bucket
    output         write   data/{materialization}/{attempt}…: its directory, and beside it the one of rows that stay of files
                           that are replaced
                   read    the folder of the table, only where rows of it may have to stay
    set aside      write   data/{materialization}/{attempt} of the table for such rows

No folder of `_catalog` is among them, no other table, and no earlier version of the task's own. Every place is validated before
keys are asked for (`govern/places.py`). What must never enter: a place by its text alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Protocol

from arco.govern.places import ValidatedPlace, Validation
from arco.govern.vending import Access, Credential, Grant
from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip
from arco.kernel.limits import VENDED_SHORTEST_S
from arco.kernel.scope import Scope
from arco.servo.execute.computing import Assignment, Room, Rooms
from arco.servo.execute.file_access import plain_path
from arco.servo.execute.replacing import replaces_all
from arco.servo.execute.target import directory_of
from arco.servo.sdk.definitions import WriteMode

_OPTIONS = {
    "s3.access-key-id": "access_key_id",
    "s3.secret-access-key": "secret_access_key",
    "s3.session-token": "session_token",
}
_BUCKET_STEPS = 3  # s3:, nothing, the bucket


class VendsTogether(Protocol):
    """Makes one credential for several places."""

    async def vend_together(self, grants: tuple[Grant, ...], about: str, duration_s: int) -> Credential: ...


@dataclass(frozen=True, slots=True)
class _Lies:
    """As much of a table as says where it lies."""

    location: str
    properties: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskKeys:
    """Asks for keys, attempt by attempt. `options` are the store's without secrets; `duration_s` is the longest that it gives."""

    validation: Validation
    vendor: VendsTogether
    scope: Scope
    bucket: str
    options_without_keys: Mapping[str, str]
    duration_s: int

    async def options(self, given: Assignment, rooms: Rooms) -> dict[str, str]:
        """The options of the store for one attempt."""
        about = f"{given.run}/{given.task.id}/{given.attempt}"
        # An attempt has the time that its asset gives it; what it does not say, the store's longest is enough for or nothing is.
        wanted_s = self.duration_s if given.asset.timeout_s is None else round(given.asset.timeout_s) + 1
        duration_s = max(VENDED_SHORTEST_S, min(wanted_s, self.duration_s))
        made = await self.vendor.vend_together(self.grants(given, rooms), about, duration_s)
        return {**self.options_without_keys, **{_OPTIONS[word]: one.reveal() for word, one in made.hidden.items()}}

    def grants(self, given: Assignment, rooms: Rooms) -> tuple[Grant, ...]:
        """What an attempt may touch. AccessDenied where a table does not lie in its own folder."""
        found = [Grant(place, Access.READ) for place in (*self._tables(given), *self._files(given))]
        found += self._output(given, rooms.output)
        if rooms.aside is not None:
            found.append(self._writes(given, rooms.aside))
        return tuple(found)

    def _tables(self, given: Assignment) -> list[ValidatedPlace]:
        places = []
        for one in given.tables:
            if one.table is not None and one.pinned.snapshot_id is not None:
                lender = one.pinned.planned.workspace
                scope = Scope.parse_warehouse(lender) if lender else self.scope
                places.append(self.validation.table(scope, one.table.table_uuid, one.table))
        return places

    def _files(self, given: Assignment) -> list[ValidatedPlace]:
        """The folders of files in the root's bucket. Files elsewhere need no keys of this store, or have none here."""
        bucket = f"s3://{self.bucket}/"
        own = [
            [name for one in planned.files if (name := plain_path(one)).startswith(bucket)] for _, planned in given.files
        ]
        return [self.validation.beside_the_root(_folder(names)) for names in own if names]

    def _output(self, given: Assignment, room: Room) -> list[Grant]:
        found, asset = [self._writes(given, room)], given.asset
        if room.table is not None and asset.write.mode is not WriteMode.APPEND and not replaces_all(asset, {}):
            found.append(Grant(self._place(room), Access.READ))
        return found

    def _writes(self, given: Assignment, room: Room) -> Grant:
        """The directory of the attempt, and what begins with its name: that is where rows go that stay. (Of ten attempts the
        first could also write where the tenth does: policies are short.)"""
        directory = directory_of(room.location, room.properties, given.materialization_id, given.attempt)
        return Grant(self.validation.within(self._place(room), directory), Access.WRITE, stem=True)

    def _place(self, room: Room) -> ValidatedPlace:
        return self.validation.table(self.scope, room.uuid, _Lies(room.location, dict(room.properties)))


def _folder(names: list[str]) -> str:
    """The innermost folder that all these files lie in."""
    steps = names[0].split("/")[:-1]
    for name in names:
        alike = zip(steps, name.split("/")[:-1], strict=False)
        steps = [one for one, _ in takewhile(lambda pair: pair[0] == pair[1], alike)]
    if len(steps) <= _BUCKET_STEPS:
        raise InvalidInput(
            f"{clip(names[0], 300)} lies in no folder, and a task gets no keys for a whole bucket",
            hint="put files that are read into a folder",
        )
    return "/".join(steps)

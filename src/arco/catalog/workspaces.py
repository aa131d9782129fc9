"""Workspaces as people make and give them up: one small document in each, beside which everything else in it lies.

A workspace needs no document: whoever writes to one has it. The document says who made it and what for, and that it was given up.
Giving one up deletes nothing, and is refused while it holds tables or views: those are dropped first, and upkeep deletes their
files after their hold, as always. What must never enter: deleting.
"""

from dataclasses import dataclass
from typing import Any

import msgspec

from arco.kernel.clock import Clock
from arco.kernel.entropy import Entropy
from arco.kernel.errors import AlreadyExists, Conflict, CorruptObject, NotFound, UnknownFormat
from arco.kernel.scope import Scope
from arco.storage.cas import CasObject, Held
from arco.storage.keys import WorkspaceKey
from arco.storage.port import ObjectStore


class GivenUp(msgspec.Struct, frozen=True, kw_only=True):
    """That nobody is to work in a workspace any more."""

    who: str
    why: str
    at_ms: int


class WorkspaceRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Who made a workspace and what for; `given_up` if it is not used any more."""

    created_by: str
    created_ms: int
    description: str = ""
    given_up: GivenUp | None = None


class WorkspaceCodec:
    format = "arco.workspace"

    def encode(self, value: WorkspaceRecord) -> tuple[int, dict[str, Any]]:
        return 1, msgspec.to_builtins(value)

    def decode(self, format_version: int, fields: dict[str, Any]) -> WorkspaceRecord:
        if format_version != 1:
            raise UnknownFormat(f"a workspace of format version {format_version}")
        try:
            return msgspec.convert(fields, WorkspaceRecord)
        except msgspec.ValidationError as error:
            raise CorruptObject(f"a workspace with wrong fields: {error}") from error


@dataclass(frozen=True, slots=True)
class Workspaces:
    """The workspaces of one root."""

    store: ObjectStore
    clock: Clock
    entropy: Entropy

    async def read(self, scope: Scope) -> WorkspaceRecord | None:
        held = await self._object(scope).read()
        return None if held is None else held.value

    async def create(self, scope: Scope, who: str, description: str = "") -> WorkspaceRecord:
        """Say that a workspace is there. One that was given up is taken up again."""
        made = WorkspaceRecord(created_by=who, created_ms=self.clock.now_ms(), description=description)

        def change(now: Held[WorkspaceRecord] | None) -> WorkspaceRecord:
            if now is not None and now.value.given_up is None:
                raise AlreadyExists(f"workspace {scope.warehouse} is there, made by {now.value.created_by}")
            return made

        return (await self._object(scope).update(change)).value

    async def give_up(self, scope: Scope, who: str, why: str) -> WorkspaceRecord:
        """Mark a workspace as given up. Whoever asks has looked whether it is empty."""
        given_up = GivenUp(who=who, why=why, at_ms=self.clock.now_ms())

        def change(now: Held[WorkspaceRecord] | None) -> WorkspaceRecord:
            record = WorkspaceRecord(created_by="", created_ms=0) if now is None else now.value
            return record if record.given_up is not None else msgspec.structs.replace(record, given_up=given_up)

        return (await self._object(scope).update(change)).value

    async def need_in_use(self, scope: Scope) -> None:
        """Refuse to work in a workspace that was given up."""
        record = await self.read(scope)
        if record is not None and record.given_up is not None:
            gone = record.given_up
            raise Conflict(
                f"workspace {scope.warehouse} was given up by {gone.who}: {gone.why}",
                hint=f"arco workspace create {scope.workspace} takes it up again",
            )

    def _object(self, scope: Scope) -> CasObject[WorkspaceRecord]:
        return CasObject(self.store, str(WorkspaceKey(scope)), WorkspaceCodec(), self.clock, self.entropy)


def need_known(record: WorkspaceRecord | None, scope: Scope, *, holds_anything: bool) -> None:
    """Refuse what nobody ever made or wrote to: most likely a name that is misspelt."""
    if record is None and not holds_anything:
        raise NotFound(f"there is no workspace {scope.warehouse}", hint="arco workspace list shows what there is")

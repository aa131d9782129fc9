"""How far a schedule is: one compare-and-swap document, which decides every tick.

`through_ms` says up to which moment everything is decided; `open` are the ticks that were decided and whose runs have not ended.
The two change in one swing, so a tick is never passed over without being taken up, and never taken up twice. What must never
enter: deciding (`tick_decisions.py`), and runs (`ticking.py`).
"""

from typing import Any

import msgspec

from arco.kernel.clock import Clock
from arco.kernel.entropy import Entropy
from arco.kernel.errors import CorruptObject, UnknownFormat
from arco.kernel.ids import ScheduleName
from arco.kernel.scope import Scope
from arco.servo.deploy.manifest import DeployedSchedule
from arco.storage.cas import CasObject
from arco.storage.keys import ScheduleKey, Word
from arco.storage.port import ObjectStore


class Paused(msgspec.Struct, frozen=True, kw_only=True):
    """Who paused it, why and when."""

    who: str
    why: str
    at_ms: int


class Tick(msgspec.Struct, frozen=True, kw_only=True):
    """One decided tick. `id` is its moment, or its number where it has none; with the version it makes the key of its run."""

    id: str
    version: str
    trigger: str
    cause: str
    decided_ms: int
    make: tuple[str, ...] = ()
    partitions: dict[str, str] = {}
    mode: str = "stale"
    parameters: dict[str, str] = {}
    due_by_ms: int | None = None

    def key(self, project: str, schedule: str) -> str:
        """The idempotency key of its run: whoever starts it, and however often, starts one."""
        return f"schedule {project} {schedule} {self.version} {self.id}"


class EndedTick(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a tick: `ran`, `nothing` to do, or `refused`."""

    id: str
    version: str
    outcome: str
    ended_ms: int
    run: str | None = None
    message: str = ""


class ScheduleState(msgspec.Struct, frozen=True, kw_only=True):
    """The whole document. `definition` is that of `version`; `seen` are the tables of sources as they were last acted upon."""

    version: str
    definition: dict[str, Any]
    through_ms: int
    decisions: int = 0
    open: tuple[Tick, ...] = ()
    ended: tuple[EndedTick, ...] = ()
    paused: Paused | None = None
    seen: dict[str, str] = {}
    asked: str | None = None
    asked_ms: int | None = None

    @classmethod
    def first(cls, deployed: DeployedSchedule) -> "ScheduleState":
        """Of a schedule that nobody has looked at."""
        return cls(version=deployed.version, definition=deployed.definition, through_ms=deployed.since_ms)


class StateCodec:
    format = "arco.schedule"

    def encode(self, value: ScheduleState) -> tuple[int, dict[str, Any]]:
        return 1, msgspec.to_builtins(value)

    def decode(self, format_version: int, fields: dict[str, Any]) -> ScheduleState:
        if format_version != 1:
            raise UnknownFormat(f"a schedule of format version {format_version}")
        try:
            return msgspec.convert(fields, ScheduleState)
        except msgspec.ValidationError as error:
            raise CorruptObject(f"a schedule with wrong fields: {error}") from error


def schedule_object(
    store: ObjectStore, scope: Scope, project: str, name: str, clock: Clock, entropy: Entropy
) -> CasObject[ScheduleState]:
    key = str(ScheduleKey(scope, Word(project), ScheduleName(name)))
    return CasObject(store, key, StateCodec(), clock, entropy)

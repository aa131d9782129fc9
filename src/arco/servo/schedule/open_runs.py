"""Which runs of a workspace have not ended: one small document, so that whoever looks for work asks one object.

A run is noted here before its log begins, and struck off after its log says that it has ended and owes nothing: a crash between
two steps leaves a note too many, never a run that nobody finds. The document decides nothing. Whether a run is open is what its
own log says; a note of one that has ended is struck off by whoever meets it. What must never enter: the state of a run.
"""

from collections.abc import Collection
from typing import Any

import msgspec

from arco.kernel.clock import Clock
from arco.kernel.entropy import Entropy
from arco.kernel.errors import CorruptObject, TooLarge, UnknownFormat
from arco.kernel.limits import OPEN_RUNS_MAX
from arco.kernel.scope import Scope
from arco.storage.cas import CasObject, Held
from arco.storage.keys import OpenRunsKey
from arco.storage.port import ObjectStore


class OpenRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run: which project made it, and for which code, so that whoever has another need not open it."""

    run: str
    project: str
    code_version: str
    noted_ms: int


class OpenRuns(msgspec.Struct, frozen=True):
    """The document: the runs in the order in which they were noted."""

    runs: tuple[OpenRun, ...] = ()


class OpenRunsCodec:
    format = "arco.open_runs"

    def encode(self, value: OpenRuns) -> tuple[int, dict[str, Any]]:
        return 1, msgspec.to_builtins(value)

    def decode(self, format_version: int, fields: dict[str, Any]) -> OpenRuns:
        if format_version != 1:
            raise UnknownFormat(f"open runs of format version {format_version}")
        try:
            return msgspec.convert(fields, OpenRuns)
        except msgspec.ValidationError as error:
            raise CorruptObject(f"open runs with wrong fields: {error}") from error


class OpenRunsNote:
    """The document of one workspace."""

    def __init__(self, store: ObjectStore, scope: Scope, clock: Clock, entropy: Entropy) -> None:
        self._object = CasObject(store, str(OpenRunsKey(scope)), OpenRunsCodec(), clock, entropy)

    async def read(self) -> tuple[OpenRun, ...]:
        """One request."""
        return _runs(await self._object.read())

    async def add(self, note: OpenRun) -> None:
        """Note a run; nothing if it is there. After OutcomeUnknown, note it again."""
        if _has(_runs(await self._object.read()), note.run):
            return

        def change(now: Held[OpenRuns] | None) -> OpenRuns:
            there = _runs(now)
            if _has(there, note.run):
                return OpenRuns(there)
            if len(there) >= OPEN_RUNS_MAX:
                raise TooLarge(
                    f"{len(there)} runs are open", hint="arco runs --status pending lists them; arco cancel ends one"
                )
            return OpenRuns((*there, note))

        await self._object.update(change)

    async def strike(self, runs: Collection[str]) -> None:
        """Take away runs that have ended."""
        if not any(one.run in runs for one in _runs(await self._object.read())):
            return
        await self._object.update(lambda now: OpenRuns(tuple(one for one in _runs(now) if one.run not in runs)))


def _runs(held: Held[OpenRuns] | None) -> tuple[OpenRun, ...]:
    return () if held is None else held.value.runs


def _has(runs: tuple[OpenRun, ...], run: str) -> bool:
    return any(one.run == run for one in runs)

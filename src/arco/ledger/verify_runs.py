"""The logs of runs, looked at again: each entry can be read, none is missing, they fold on the plan; and runs that were wanted.

A run that is deleted leaves a closed marker, and what is left of its objects may be any part of them: then nothing is missed. A
run that was planned and never created has a plan and no log.
"""

import asyncio

import msgspec

from arco.kernel.errors import ArcoError, CorruptObject, UnknownFormat
from arco.kernel.ids import RunId
from arco.ledger.asked_runs import AskedRun, AskedVerdict, decode_asked
from arco.ledger.asked_troubles import AskedTroubleCodec
from arco.ledger.run_entries import decode_batch
from arco.ledger.run_outline import Outline
from arco.ledger.run_state import RunState
from arco.storage.findings import nobody, way_out
from arco.storage.keys import (
    AskedRunKey,
    AskedTroubleKey,
    AskedVerdictKey,
    Key,
    RunClosedKey,
    RunLogKey,
    RunPlanKey,
    prefix_of,
)
from arco.storage.looking import RESTORE, Judge, Look, explained, readable
from arco.storage.paging import walk
from arco.storage.port import Object

_RUNS_AT_ONCE = 8


class _Closed(msgspec.Struct, frozen=True):
    format: str
    format_version: int
    run: str


async def verify_runs(look: Look) -> None:
    runs = await _runs(look)
    quiet = Look(look.store, look.scope, look.report, nobody)
    for start in range(0, len(runs), _RUNS_AT_ONCE):
        some = runs[start : start + _RUNS_AT_ONCE]
        await asyncio.gather(*(_Run(quiet, run).check() for run in some))
        look.progress("runs", start + len(some), len(runs))
    look.report.count("runs", len(runs))
    asked: dict[type[Key], Judge] = {
        AskedRunKey: _judge_asked,
        AskedVerdictKey: _judge_verdict,
        AskedTroubleKey: readable(AskedTroubleCodec()),
    }
    await look.each("asked_run_unreadable", "asked_runs", asked, "asked_runs")


async def _runs(look: Look) -> list[RunId]:
    """Every run there is. What lies beside them is no run."""
    found: dict[RunId, None] = {}
    async for listed in walk(look.store, prefix_of(look.scope, "_catalog", "runs")):
        key = explained(listed.key)
        if isinstance(key, RunPlanKey | RunLogKey | RunClosedKey):
            found[key.run] = None
    return list(found)


class _Run:
    """One run. After an entry that is missing or damaged those behind it are read, and not folded."""

    def __init__(self, look: Look, run: RunId) -> None:
        self._look = look
        self._run = run
        self._closed = RunClosedKey(look.scope, run)
        self._state: RunState | None = None
        self._last = 0
        self._missing: list[int] = []

    async def check(self) -> None:
        await self._plan()
        await self._look.each("run_entry_unreadable", "run_entries", {RunLogKey: self._take}, "runs", self._run, "log")
        await self._look.one("run_closed_unreadable", "runs_closed", self._closed, _judge_closed)
        if self._missing and await self._look.store.head(str(self._closed)) is None:
            for number in self._missing:
                name = str(RunLogKey(self._look.scope, self._run, number))
                what = f"entry {number} of run {self._run} is missing, and entry {self._last} is there ({name})"
                self._look.find("run_entry_missing", name, what, RESTORE)

    async def _plan(self) -> None:
        name = str(RunPlanKey(self._look.scope, self._run))
        found = await self._look.store.get(name)
        if found is None:
            if await self._look.store.head(str(self._closed)) is None:
                self._look.find("run_plan_missing", name, f"run {self._run} has no plan ({name})", RESTORE)
            return
        try:
            self._state = RunState(Outline.of_plan(found.data))
        except ArcoError as error:
            self._look.find("run_plan_unreadable", name, error.message, way_out(error, RESTORE))

    def _take(self, key: RunLogKey, found: Object) -> None:
        missing = range(self._last + 1, key.sequence)
        self._missing += missing
        self._last = key.sequence
        state, self._state = (None if missing else self._state), None
        batch = decode_batch(key.run, key.sequence, found.data)
        if state is not None:
            state.fold(batch)
            self._state = state


def _judge_closed(key: RunClosedKey, found: Object) -> None:
    try:
        closed = msgspec.json.decode(found.data, type=_Closed)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CorruptObject(f"{key} does not say which run is closed: {error}") from error
    if (closed.format, closed.format_version) != ("arco.run_closed", 1):
        raise UnknownFormat(f"{key} is {closed.format} version {closed.format_version}")
    if closed.run != key.run:
        raise CorruptObject(f"{key} says that run {closed.run} is closed")


def _judge_asked(key: AskedRunKey, found: Object) -> None:
    asked = decode_asked(str(key), found.data, AskedRun)
    if asked.id != key.key_hash:
        raise CorruptObject(f"{key} is the request {asked.id}")


def _judge_verdict(key: AskedVerdictKey, found: Object) -> None:
    verdict = decode_asked(str(key), found.data, AskedVerdict)
    if verdict.asked.id != key.key_hash:
        raise CorruptObject(f"{key} is about the request {verdict.asked.id}")

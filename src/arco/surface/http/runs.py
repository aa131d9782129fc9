"""One run: `GET /api/v1/runs/{run}` as it is this moment, and `POST` of `/cancel`, `/pause` and `/resume` below it.

A run that has not ended for all that is folded is answered from its log, so nobody waits for a fold to see it go on. What must
never enter: driving a run. What is asked of one is an entry of its log, which whoever drives it reads within seconds.
"""

from typing import Annotated

import msgspec
from msgspec import Meta

from arco.iceberg.shape import read
from arco.kernel.errors import Conflict, InvalidInput, NotFound
from arco.kernel.ids import RunId, clip
from arco.kernel.scope import Scope
from arco.ledger.run_log import RunLog
from arco.read import runs
from arco.read.library import Binding
from arco.read.live_runs import live_run
from arco.read.runs import RunPage
from arco.servo.schedule.interventions import request_cancel, request_pause, request_resume
from arco.surface.http.ask_runs import ONE_RUN, RUN, OfRun
from arco.surface.http.asking import RunName, answered
from arco.surface.http.declaring import Asked, Endpoint, endpoint, scope_of
from arco.surface.http.exchange import Request, Response, json_response
from arco.surface.http.resource import Resource

_NOW = (Binding(), Binding(fresh=True))


class ToRun(Asked, frozen=True, kw_only=True):
    run: RunName


class Cancellation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why a run ends."""

    reason: Annotated[str, Meta(min_length=1, max_length=1000)] = "cancelled"


class CancelledRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run that was asked to end. `state` is what it is by now, `reason` what the first who asked said."""

    run: str
    state: str
    reason: str


class Pause(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why a run is to rest."""

    why: Annotated[str, Meta(min_length=1, max_length=1000)] = "paused"


class PausedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run that rests, or goes on. `why` is what the first who paused it said; null while it is not paused."""

    run: str
    state: str
    paused: bool
    why: str | None


class Runs(Resource):
    def endpoints(self) -> list[Endpoint]:
        return [
            endpoint(
                "GET", RUN, ONE_RUN.about, self.get, asked=ONE_RUN.asked, answers={200: (ONE_RUN.answer,)}, tagged=True
            ),
            endpoint(
                "POST",
                f"{RUN}/cancel",
                "Ask a run to end, wherever it is driven. What it has published stays",
                self.cancel,
                asked=ToRun,
                body=(Cancellation,),
                answers={202: (CancelledRun,)},
            ),
            endpoint(
                "POST",
                f"{RUN}/pause",
                "Let nothing more of a run begin, wherever it is driven. What runs finishes",
                self.pause,
                asked=ToRun,
                body=(Pause,),
                answers={202: (PausedRun,)},
            ),
            endpoint(
                "POST",
                f"{RUN}/resume",
                "Let a paused run go on",
                self.resume,
                asked=ToRun,
                answers={202: (PausedRun,)},
            ),
        ]

    def scope(self, request: Request) -> Scope:
        return scope_of(request)

    async def get(self, request: Request, asked: OfRun) -> Response:
        if asked.binding() in _NOW:
            live = await self._live(asked)
            if live is not None:
                return json_response(live, headers={"Cache-Control": "no-store"})
        return await answered(self._state, ONE_RUN, request, asked)

    async def _live(self, asked: OfRun) -> RunPage | None:
        """The run as its log has it, unless it is known to have ended."""
        reader = (await self._state.libraries.of(asked.scope).open(Binding())).reader
        try:
            folded = await runs.run(reader, asked.run)
        except NotFound:
            pass
        else:
            if folded.run.ended_at is not None:
                return None
        state = self._state
        return await live_run(state.store, asked.scope, asked.run, reader.cut.snapshot_id, state.clock, state.entropy)

    async def cancel(self, request: Request, asked: ToRun) -> Response:
        reason = read(request.json() if request.body else {}, Cancellation, "cancel").reason
        state, log = self._state, await self._log(asked)
        if not await request_cancel(log, request.principal, reason, state.clock, state.entropy):
            raise Conflict(
                f"run {asked.run} has finished: {log.state.run.status.value}", hint="there is nothing left to cancel"
            )
        cancel = log.state.run.cancel
        told = CancelledRun(
            run=asked.run, state=log.state.run.status.value, reason=reason if cancel is None else cancel.reason
        )
        return json_response(told, 202)

    async def pause(self, request: Request, asked: ToRun) -> Response:
        why = read(request.json() if request.body else {}, Pause, "pause").why
        log = await self._log(asked)
        if not await request_pause(log, request.principal, why, self._state.clock, self._state.entropy):
            raise Conflict(
                f"run {asked.run} does not go on: {log.state.run.status.value}", hint="there is nothing to pause"
            )
        return json_response(_rests(log), 202)

    async def resume(self, request: Request, asked: ToRun) -> Response:
        log = await self._log(asked)
        if not await request_resume(log, request.principal, self._state.clock, self._state.entropy):
            raise Conflict(f"run {asked.run} is not paused: {log.state.run.status.value}", hint="it goes on, or has ended")
        return json_response(_rests(log), 202)

    async def _log(self, asked: ToRun) -> RunLog:
        state = self._state
        try:
            log, _ = await RunLog.open(state.store, asked.scope, RunId(asked.run), state.clock, state.entropy)
        except InvalidInput:
            raise NotFound(f"there is no run {clip(asked.run)!r} of Servo's", hint="GET /api/v1/runs lists them") from None
        return log


def _rests(log: RunLog) -> PausedRun:
    paused = log.state.run.paused
    return PausedRun(
        run=str(log.run),
        state=log.state.run.status.value,
        paused=paused is not None,
        why=None if paused is None else paused.why,
    )

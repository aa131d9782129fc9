"""Runs asked for by who has no project at hand: `POST /api/v1/runs/trigger`, and what became of such a request.

The server writes the request down and no more: it imports no project's code and starts no Spark. Whoever has the project takes it
(`servo/execute/asking.py`). What must never enter: planning.
"""

from datetime import UTC, datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from arco.iceberg.shape import read
from arco.kernel.errors import Conflict, InvalidInput, NotFound
from arco.kernel.ids import KeyHash, UlidSource, clip
from arco.kernel.limits import ASKED_RUN_WORD_CHARS_MAX, ASKED_RUN_WORDS_MAX, RUN_PARALLELISM_MAX, RUN_TIMEOUT_S_MAX
from arco.kernel.scope import Scope
from arco.ledger.asked_runs import AskedRun, AskedRuns, AskedVerdict, Decided, request_id
from arco.ledger.asked_troubles import AskedTroubles
from arco.ledger.run_entries import OnFailure
from arco.servo.schedule.seals import sealed_request
from arco.servo.sdk.definitions import Mode
from arco.storage.keys import DeploymentHeadKey, RunLogKey
from arco.storage.keys import Word as ProjectWord
from arco.surface.http.ask_runs import RUNS
from arco.surface.http.declaring import API, Asked, Endpoint, endpoint, scope_of
from arco.surface.http.exchange import Request, Response, json_response
from arco.surface.http.resource import Resource

REQUESTS = f"{API}/run-requests"
REQUEST = f"{REQUESTS}/{{request}}"

_ASKED = "asked"
_KEY_CHARS_MAX = 200
_KEY_HEADER = {"Idempotency-Key": "Any text: sent again with the same one, it is one request, and one run."}
_Word = Annotated[str, Meta(min_length=1, max_length=ASKED_RUN_WORD_CHARS_MAX)]
_Words = Annotated[dict[_Word, _Word], Meta(max_length=ASKED_RUN_WORDS_MAX)]


class RunTrigger(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to be made, in the words of `arco run`: assets, and of them the partitions that are named."""

    project: Annotated[str, Meta(min_length=1, max_length=63)]
    assets: Annotated[tuple[_Word, ...], Meta(max_length=ASKED_RUN_WORDS_MAX)] = ()
    partitions: _Words = {}
    mode: Mode = Mode.STALE
    parameters: _Words = {}
    parallelism: Annotated[int, Meta(ge=1, le=RUN_PARALLELISM_MAX)] = 4
    timeout_s: Annotated[float, Meta(gt=0, le=RUN_TIMEOUT_S_MAX)] | None = None
    on_failure: OnFailure = OnFailure.KEEP_GOING
    idempotency_key: Annotated[str, Meta(min_length=1, max_length=_KEY_CHARS_MAX)] | None = None


class RunAskedFor(msgspec.Struct, frozen=True, kw_only=True):
    """A request that is durable. The same key always gives the same answer."""

    request: str
    project: str
    asked_at: datetime


class RunRequestState(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a request: `asked`, or `started` as a run, `nothing_to_do`, `refused` with the reason, `withdrawn`.

    `message`: why it was refused; of one that waits, and whose run has not begun, what keeps it, if somebody looked.
    """

    request: str
    state: str
    run: str | None
    message: str
    project: str
    assets: tuple[str, ...]
    partitions: dict[str, str]
    mode: str
    asked_at: datetime
    asked_by: str
    decided_at: datetime | None
    decided_by: str | None


class OfRequest(Asked, frozen=True, kw_only=True):
    request: Annotated[str, Meta(max_length=64, description="A request for a run, by its id.")]


class RunRequests(Resource):
    def endpoints(self) -> list[Endpoint]:
        return [
            endpoint(
                "POST",
                f"{RUNS}/trigger",
                "Ask for a run. It is started by whoever has the project",
                self.trigger,
                body=(RunTrigger,),
                answers={202: (RunAskedFor,)},
                headers=_KEY_HEADER,
            ),
            endpoint(
                "GET",
                REQUEST,
                "What became of a request for a run",
                self.get,
                asked=OfRequest,
                answers={200: (RunRequestState,)},
            ),
            endpoint(
                "POST",
                f"{REQUEST}/withdraw",
                "Take a request for a run back that nobody has begun",
                self.withdraw,
                asked=OfRequest,
                answers={200: (RunRequestState,)},
            ),
        ]

    def scope(self, request: Request) -> Scope:
        return scope_of(request)

    async def trigger(self, request: Request, asked: Asked) -> Response:
        form = read(request.json(), RunTrigger, "trigger")
        await self._check_project(asked.scope, form.project)
        wanted = AskedRun(
            id=request_id(self._key(request, form)),
            project=form.project,
            make=form.assets,
            partitions=dict(form.partitions),
            mode=form.mode.value,
            parameters=dict(form.parameters),
            max_parallelism=form.parallelism,
            timeout_s=form.timeout_s,
            on_failure=form.on_failure,
            who=request.principal,
            asked_ms=self._state.clock.now_ms(),
        )
        wanted = sealed_request(self._state.task_keys, asked.scope, wanted)
        found = await self._requests(asked.scope).ask(wanted)
        told = RunAskedFor(request=found.id, project=found.project, asked_at=_moment(found.asked_ms))
        return json_response(told, 202, {"Location": f"{REQUESTS}/{found.id}"})

    async def get(self, _: Request, asked: OfRequest) -> Response:
        found, verdict = await self._find(asked)
        state = _state_of(found, verdict, await self._kept_by(asked.scope, found, verdict))
        return json_response(state, headers={"Cache-Control": "no-store"})

    async def _kept_by(self, scope: Scope, asked: AskedRun, verdict: AskedVerdict | None) -> str:
        """What keeps a request from being a run, as far as whoever takes requests has said."""
        if verdict is not None and verdict.run is None:
            return verdict.message
        state = self._state
        trouble = await AskedTroubles(state.store, scope, state.clock, state.entropy).read(KeyHash(asked.id))
        if trouble is None or await state.store.head(str(RunLogKey(scope, asked.run, 1))) is not None:
            return ""
        return trouble.message

    async def withdraw(self, request: Request, asked: OfRequest) -> Response:
        found, verdict = await self._find(asked)
        if verdict is None:
            verdict = await self._requests(asked.scope).withdraw(found, request.principal)
        if verdict.decided is not Decided.WITHDRAWN:
            raise Conflict(
                f"request {asked.request} is decided: {verdict.decided.value}",
                hint="its run can be cancelled" if verdict.run else "there is nothing to take back",
            )
        return json_response(_state_of(found, verdict, verdict.message))

    async def _find(self, asked: OfRequest) -> tuple[AskedRun, AskedVerdict | None]:
        try:
            found, verdict = await self._requests(asked.scope).find(KeyHash(asked.request))
        except InvalidInput:
            found, verdict = None, None
        if found is None:
            raise NotFound(f"there is no request {clip(asked.request)!r} for a run")
        return found, verdict

    async def _check_project(self, scope: Scope, project: str) -> None:
        """A project that nobody ever deployed here has nobody who would take the request."""
        if await self._state.store.head(str(DeploymentHeadKey(scope, ProjectWord(project)))) is None:
            raise NotFound(
                f"no project {project!r} is deployed in {scope.warehouse}", hint="arco deploy, or arco run, publishes it"
            )

    def _key(self, request: Request, form: RunTrigger) -> str:
        given = [one for one in (request.headers.get("idempotency-key"), form.idempotency_key) if one is not None]
        if len(set(given)) > 1:
            raise InvalidInput("the header Idempotency-Key and idempotency_key differ", hint="give one of them")
        if not given:
            return UlidSource(self._state.clock, self._state.entropy).next()
        if not 0 < len(given[0]) <= _KEY_CHARS_MAX:
            raise InvalidInput(f"an idempotency key has 1 to {_KEY_CHARS_MAX} characters")
        return given[0]

    def _requests(self, scope: Scope) -> AskedRuns:
        return AskedRuns(self._state.store, scope, self._state.clock, self._state.entropy)


def _state_of(asked: AskedRun, verdict: AskedVerdict | None, message: str) -> RunRequestState:
    return RunRequestState(
        request=asked.id,
        state=_ASKED if verdict is None else verdict.decided.value,
        run=None if verdict is None else verdict.run,
        message=message,
        project=asked.project,
        assets=asked.make,
        partitions=asked.partitions,
        mode=asked.mode,
        asked_at=_moment(asked.asked_ms),
        asked_by=asked.who,
        decided_at=None if verdict is None else _moment(verdict.at_ms),
        decided_by=None if verdict is None else verdict.by,
    )


def _moment(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, UTC)

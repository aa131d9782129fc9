"""Starting a run: its plan is stored, its log begins, and the same key always means the same run.

The key names an object that is created only if absent and says which run it stands for; nobody looks first. So two requests
with one key, in one moment or a day apart, start one run, and a request whose sender died half way is finished by the next.
The key lives as long as its run.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from arco.kernel.clock import Clock
from arco.kernel.crash_points import reach
from arco.kernel.entropy import Entropy
from arco.kernel.errors import CorruptObject, Fenced, InvalidInput, KeyReused, NotFound, OutcomeUnknown, UnknownFormat
from arco.kernel.fingerprint import fingerprint
from arco.kernel.ids import KeyHash, RunId, UlidSource
from arco.kernel.limits import (
    RUN_PARALLELISM_MAX,
    RUN_TIMEOUT_S_MAX,
    TRANSACTION_TABLES_EVER_MAX,
    TRANSACTION_TABLES_MAX,
)
from arco.kernel.scope import Scope
from arco.ledger.drafts import Draft
from arco.ledger.run_entries import OnFailure, RunCreated, Trigger
from arco.ledger.run_log import RunLog, write_plan
from arco.ledger.run_outline import Outline
from arco.servo.plan.document import Plan, decode_plan
from arco.servo.schedule.envelopes import EnvelopeKeys
from arco.servo.schedule.open_runs import OpenRun, OpenRunsNote
from arco.servo.schedule.outbox import named
from arco.servo.schedule.seals import need_sealed_plan, sealed_beginning, sealed_plan
from arco.storage.keys import RunClosedKey, RunRequestKey
from arco.storage.port import Absent, Landed, Lost, ObjectStore, Unknown
from arco.storage.readback import put_settled

_KEY_CHARS_MAX = 200
_FORMAT, _FORMAT_VERSION = "arco.run_request", 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """How a plan is to be run. `about` is what the key was given for: the same key for something else is refused.

    `project`: whose run it is, for workers and schedulers to find it by; without one nobody is told of it. `keys`: what its plan
    and its beginning are sealed with.
    """

    trigger: Trigger = Trigger.MANUAL
    who: str = "anonymous"
    max_parallelism: int = 4
    timeout_s: float | None = None
    on_failure: OnFailure = OnFailure.KEEP_GOING
    idempotency_key: str | None = None
    about: str = ""
    project: str | None = None
    atomic: bool = False
    transaction_tables: int = TRANSACTION_TABLES_MAX
    announce: Callable[[RunId], tuple[Draft, ...]] = lambda _: ()
    keys: EnvelopeKeys | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.max_parallelism <= RUN_PARALLELISM_MAX:
            raise InvalidInput(f"a run of {self.max_parallelism} tasks at once", hint=f"1 to {RUN_PARALLELISM_MAX}")
        if self.timeout_s is not None and not 0 < self.timeout_s <= RUN_TIMEOUT_S_MAX:
            raise InvalidInput(
                f"a run that may take {self.timeout_s:g} s",
                hint=f"give it some time, at most {RUN_TIMEOUT_S_MAX} s, or leave it out",
            )
        if self.idempotency_key is not None and not 0 < len(self.idempotency_key) <= _KEY_CHARS_MAX:
            raise InvalidInput("an idempotency key has 1 to 200 characters")
        if not 1 <= self.transaction_tables <= TRANSACTION_TABLES_EVER_MAX:
            raise InvalidInput(
                f"a transaction over {self.transaction_tables} tables", hint=f"1 to {TRANSACTION_TABLES_EVER_MAX}"
            )


class RunKeyed(msgspec.Struct, frozen=True):
    """Which run a key stands for."""

    format: str
    format_version: int
    run: str
    about: str


@dataclass(frozen=True, slots=True)
class Started:
    """A run that exists, with the plan that it has: another's, if the key was used before."""

    log: RunLog
    plan: Plan
    is_new: bool


async def start_run(
    store: ObjectStore, scope: Scope, plan: Plan, request: RunRequest, clock: Clock, entropy: Entropy
) -> Started:
    """Start a run, or find the one that the request's key started before.

    After OutcomeUnknown, ask again with the same key; without a key, a run may have been created that nobody drives.
    """
    run = RunId(UlidSource(clock, entropy).next())
    if request.idempotency_key is not None:
        fresh, run = run, await _run_of(store, scope, run, request, clock, entropy)
        reach("run.key_bound")
        if run != fresh:
            await _refuse_deleted(store, scope, run)
    stored, _ = await asyncio.gather(
        write_plan(store, scope, run, sealed_plan(request.keys, scope, str(run), plan).encode(), clock, entropy),
        note_run(store, scope, run, plan, request, clock, entropy),
    )
    reach("run.plan_written")
    return await begin_run(store, scope, run, stored, request, clock, entropy)


async def begin_run(
    store: ObjectStore, scope: Scope, run: RunId, stored: bytes, request: RunRequest, clock: Clock, entropy: Entropy
) -> Started:
    """Let a run begin whose plan is stored, or find it begun."""
    ulids = UlidSource(clock, entropy)
    plan = decode_plan(stored)
    log = RunLog(store, scope, run, Outline.of_plan(stored), clock, entropy)
    if (await log.catch_up()).sequence:
        return Started(log, plan, is_new=False)
    need_sealed_plan(request.keys, scope, str(run), plan)
    created = RunCreated(
        plan_id=plan.fingerprint,
        tasks=len(plan.spec.tasks),
        trigger=request.trigger,
        who=request.who,
        max_parallelism=request.max_parallelism,
        timeout_s=request.timeout_s,
        on_failure=request.on_failure,
        idempotency_key=request.idempotency_key,
        atomic=request.atomic,
        transaction_tables=request.transaction_tables,
        events=named(request.announce(run), scope, ulids, clock.now_ms()),
    )
    sealed = sealed_beginning(request.keys, scope, str(run), plan, created)
    return Started(log, plan, is_new=await log.append([sealed]))


async def note_run(
    store: ObjectStore, scope: Scope, run: RunId, plan: Plan, request: RunRequest, clock: Clock, entropy: Entropy
) -> None:
    """Before the log begins: a run that nobody finds would never end."""
    if request.project is not None:
        code = plan.spec.code_version
        note = OpenRun(run=str(run), project=request.project, code_version=code, noted_ms=clock.now_ms())
        await OpenRunsNote(store, scope, clock, entropy).add(note)


async def open_run(store: ObjectStore, scope: Scope, run: RunId, clock: Clock, entropy: Entropy) -> Started:
    """A run that was started before, to be resumed, looked at or cancelled."""
    log, plan = await RunLog.open(store, scope, run, clock, entropy)
    return Started(log, decode_plan(plan), is_new=False)


async def listed_run(store: ObjectStore, scope: Scope, run: RunId, clock: Clock, entropy: Entropy) -> Started | None:
    """A run that a listing has; None if whoever planned it stopped before it began, or if it is being deleted."""
    try:
        return await open_run(store, scope, run, clock, entropy)
    except (NotFound, Fenced):
        return None


async def find_run(store: ObjectStore, scope: Scope, request: RunRequest) -> RunId | None:
    """The run that the request's key stands for, if it was used before. The run itself may not have begun."""
    name = _key_name(scope, request)
    found = await store.get(name)
    return None if found is None else _meant(name, found.data, request)


async def _run_of(
    store: ObjectStore, scope: Scope, fresh: RunId, request: RunRequest, clock: Clock, entropy: Entropy
) -> RunId:
    """The run that a key stands for: the fresh one, if nobody used the key before."""
    name = _key_name(scope, request)
    ours = RunKeyed(_FORMAT, _FORMAT_VERSION, str(fresh), fingerprint("run about", request.about))
    match await put_settled(store, name, msgspec.json.encode(ours), Absent(), clock=clock, entropy=entropy):
        case Landed():
            return fresh
        case Unknown(reason):
            raise OutcomeUnknown(f"the key of this run may be taken: {reason}")
        case Lost():
            pass
    found = await store.get(name)
    if found is None:
        raise OutcomeUnknown("the key of this run was taken and is gone")
    return _meant(name, found.data, request)


async def _refuse_deleted(store: ObjectStore, scope: Scope, run: RunId) -> None:
    """Before anything is written into its place: who came next would find a run that has begun."""
    if await store.head(str(RunClosedKey(scope, run))) is not None:
        raise Fenced(f"run {run} was deleted", hint="start a new run, with a new key")


def _key_name(scope: Scope, request: RunRequest) -> str:
    return str(RunRequestKey(scope, KeyHash(fingerprint("run request", request.idempotency_key or ""))))


def decode_request(data: bytes, name: str) -> RunKeyed:
    try:
        theirs = msgspec.json.decode(data, type=RunKeyed)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CorruptObject(f"{name} does not say which run it stands for: {error}") from error
    if (theirs.format, theirs.format_version) != (_FORMAT, _FORMAT_VERSION):
        raise UnknownFormat(f"{name} is {theirs.format} version {theirs.format_version}")
    return theirs


def _meant(name: str, data: bytes, request: RunRequest) -> RunId:
    """The run that a stored key says, if it was given for the same."""
    theirs = decode_request(data, name)
    if theirs.about != fingerprint("run about", request.about):
        raise KeyReused("this idempotency key was used for another run", hint="use a new key for a new run")
    return RunId(theirs.run)

"""A run as its own log has it at this moment, before anything of it is folded: in the words of `runs.py`.

Of the plan only as much is read as an answer shows. What must never enter: writing, and deciding anything about a run.
"""

from collections import Counter
from datetime import UTC, datetime
from typing import Any

import msgspec

from arco.kernel.clock import Clock
from arco.kernel.entropy import Entropy
from arco.kernel.errors import CorruptObject, Fenced, InvalidInput, NotFound
from arco.kernel.ids import RunId
from arco.kernel.scope import Scope
from arco.ledger.execution_events import RUN_CREATED
from arco.ledger.run_log import RunLog
from arco.ledger.run_state import RunState
from arco.read.runs import Run, RunPage, Task
from arco.storage.port import ObjectStore


class _TaskSketch(msgspec.Struct, frozen=True):
    id: str
    asset: str
    partitions: list[dict[str, Any]] = []


class _SpecSketch(msgspec.Struct, frozen=True):
    tasks: tuple[_TaskSketch, ...]
    deployment: str | None = None
    code_version: str | None = None
    selection: tuple[str, ...] = ()


class _PlanSketch(msgspec.Struct, frozen=True):
    fingerprint: str
    spec: _SpecSketch


async def live_run(
    store: ObjectStore, scope: Scope, run_id: str, snapshot_id: str, clock: Clock, entropy: Entropy
) -> RunPage | None:
    """A run with its tasks, in the order they began; None if there is no log of it here."""
    try:
        log, plan = await RunLog.open(store, scope, RunId(run_id), clock, entropy)
    except (InvalidInput, NotFound, Fenced):
        return None  # another system's, one that was never begun, or one that was deleted
    sketch = _sketch(plan, run_id)
    tasks = [_task(run_id, one, log.state) for one in sketch.spec.tasks]
    last = datetime.max.replace(tzinfo=UTC)
    tasks.sort(key=lambda one: (one.started_at or last, one.asset or "", one.task_id))
    rests = None if log.state.is_finished else log.state.run.paused
    return RunPage(
        snapshot_id=snapshot_id,
        live=True,
        paused=None if rests is None else rests.why,
        run=_run(run_id, sketch, log.state),
        tasks=tuple(tasks),
    )


def _sketch(plan: bytes, run_id: str) -> _PlanSketch:
    try:
        return msgspec.json.decode(plan, type=_PlanSketch)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CorruptObject(f"the plan of run {run_id} does not parse: {error}") from error


def _run(run_id: str, plan: _PlanSketch, state: RunState) -> Run:
    created, facts = state.run.created, state.run
    told = next((one.data for one in (() if created is None else created.events) if one.type == RUN_CREATED), {})
    counted = Counter(its.status.value for its in state.tasks.values())
    return Run(
        run_id=run_id,
        project=told.get("project"),
        deployment=plan.spec.deployment,
        code_version=plan.spec.code_version,
        trigger=None if created is None else created.trigger.value,
        triggered_by=None if created is None else created.who,
        state=facts.status.value,
        tasks_planned=len(plan.spec.tasks),
        task_states=dict(sorted(counted.items())),
        assets=plan.spec.selection,
        plan_fingerprint=plan.fingerprint,
        created_at=_moment(facts.created_ms),
        started_at=_moment(facts.started_ms),
        ended_at=_moment(facts.ended_ms),
    )


def _task(run_id: str, sketch: _TaskSketch, state: RunState) -> Task:
    its = state.task(sketch.id)
    return Task(
        run_id=run_id,
        task_id=sketch.id,
        asset=sketch.asset,
        asset_id=None,
        partitions=sketch.partitions,
        state=its.status.value,
        attempt=its.attempt or None,
        worker=its.worker,
        started_at=_moment(its.started_ms),
        ended_at=_moment(its.ended_ms),
        failure_class=None if its.failure is None else its.failure.kind,
        message=its.reason or (None if its.failure is None else its.failure.message),
    )


def _moment(at_ms: int | None) -> datetime | None:
    return None if not at_ms else datetime.fromtimestamp(at_ms / 1000, UTC)

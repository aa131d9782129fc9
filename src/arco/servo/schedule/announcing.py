"""Which events a run owes the ledger beside those of its outputs: that it was created, what began, how everything ended."""

from collections import Counter
from collections.abc import Mapping

from arco.kernel.ids import RunId
from arco.ledger.drafts import Draft
from arco.ledger.envelope import EventType
from arco.ledger.execution_events import (
    PLAN_GENERATED,
    RUN_COMPLETED,
    RUN_CREATED,
    TASK_ENDED,
    TASK_STARTED,
    PlanGenerated,
    RunCompleted,
    RunCreated,
    TaskBegun,
    TaskEnded,
)
from arco.ledger.payloads import Payload, derived_event_id
from arco.ledger.run_entries import AnyEntry, RunFinished, TaskEntry, TaskStarted
from arco.ledger.run_state import ENDED, RunState
from arco.servo.plan.document import Plan


class Announcements:
    """The events of one run."""

    def __init__(self, run: RunId, plan: Plan, asset_ids: Mapping[str, str]) -> None:
        self._run = run
        self._tasks = {task.id: task for task in plan.spec.tasks}
        self._asset_ids = asset_ids

    def __call__(self, entry: AnyEntry, state: RunState) -> tuple[Draft, ...]:
        """What an entry owes, once it counts."""
        if isinstance(entry, TaskStarted):
            return (self._started(entry, state),)
        if isinstance(entry, RunFinished):
            return (self._completed(entry, state),)
        if isinstance(entry, TaskEntry) and state.task(entry.task).status in ENDED:
            return (self._ended(entry.task, state),)
        return ()

    def _started(self, entry: TaskStarted, state: RunState) -> Draft:
        its, task = state.task(entry.task), self._tasks[entry.task]
        payload = TaskBegun(
            run_id=str(self._run),
            task_id=task.id,
            attempt=entry.attempt,
            asset=task.asset,
            asset_id=self._asset_ids[task.asset],
            partitions=task.partitions,
            worker=its.worker or "",
            started_ms=its.started_ms or 0,
        )
        return self._draft(payload, TASK_STARTED, task.asset, f"{task.id} {entry.attempt}")

    def _ended(self, name: str, state: RunState) -> Draft:
        its, task = state.task(name), self._tasks[name]
        payload = TaskEnded(
            run_id=str(self._run),
            task_id=task.id,
            asset=task.asset,
            asset_id=self._asset_ids[task.asset],
            state=its.status.value,
            attempts=its.attempt,
            started_ms=its.started_ms or its.ended_ms or 0,
            ended_ms=its.ended_ms or 0,
            failure_class=None if its.failure is None else its.failure.kind,
            message=its.reason or (None if its.failure is None else its.failure.message),
        )
        return self._draft(payload, TASK_ENDED, task.asset, name)

    def _completed(self, entry: RunFinished, state: RunState) -> Draft:
        payload = RunCompleted(
            run_id=str(self._run),
            state=entry.status.value,
            tasks=dict(sorted(Counter(its.status.value for its in state.tasks.values()).items())),
            started_ms=state.run.created_ms,
            ended_ms=state.run.ended_ms or 0,
        )
        return self._draft(payload, RUN_COMPLETED, str(self._run), "")

    def _draft(self, payload: Payload, kind: EventType, subject: str, about: str) -> Draft:
        return payload.draft(
            kind, derived_event_id(self._run.time_ms, str(self._run), kind, about), subject=subject, run_id=str(self._run)
        )


def begun(run: RunId, plan: Plan, project: str, trigger: str, who: str) -> tuple[Draft, ...]:
    """That a run was created, and from what."""
    created = RunCreated(
        run_id=str(run),
        project=project,
        deployment=plan.spec.deployment,
        code_version=plan.spec.code_version,
        trigger=trigger,
        triggered_by=who,
        tasks=len(plan.spec.tasks),
    )
    planned = PlanGenerated(
        run_id=str(run),
        plan_fingerprint=plan.fingerprint,
        planning_snapshot=plan.spec.snapshot,
        tasks=len(plan.spec.tasks),
        assets=plan.spec.selection,
    )
    return (
        created.draft(RUN_CREATED, derived_event_id(run.time_ms, str(run), RUN_CREATED), subject=str(run), run_id=str(run)),
        planned.draft(
            PLAN_GENERATED, derived_event_id(run.time_ms, str(run), PLAN_GENERATED), subject=str(run), run_id=str(run)
        ),
    )

"""The plan of the run log's scenario, and an executor that publishes through the real commit path.

Every publish adds a snapshot whose summary says which task and which attempt made it. What a gate holds back goes to a branch.
So the tables' own history tells who published what, and how often.
"""

from dataclasses import dataclass
from typing import Any

from arco.catalog.bases import Bases
from arco.catalog.commits import Commits
from arco.catalog.subject import Tables
from arco.catalog.workspace import Workspace
from arco.iceberg import requests
from arco.iceberg.metadata import TableMetadata
from arco.iceberg.requests import CommitTable
from arco.kernel.canonical_json import request_hash
from arco.kernel.errors import Conflict, Unavailable
from arco.kernel.scope import Scope
from arco.ledger.drafts import Draft
from arco.ledger.envelope import EventType
from arco.ledger.receipts import Source
from arco.ledger.run_entries import AnyEntry, Failure, RunFinished
from arco.ledger.run_state import RunState
from arco.quality.gates import EFFECTS, Action
from arco.servo.plan.document import Estimate, Plan, PlannedTask, PlanSpec
from arco.servo.schedule.executor import Attempt, Commit, Done, Failed, Outcome, Output, Ticket
from arco.servo.schedule.publish_keys import publish_key, snapshot_id
from arco_sim.world import Env

SCOPE = Scope.of("t", "w")
NAMESPACE = ("db",)
MADE = EventType("execution.materialization_completed.v1")
ENDED = EventType("execution.run_completed.v1")
_REBASES_MAX = 4


@dataclass(frozen=True, slots=True)
class Job:
    """One task: the table it publishes to, what it reads, and what its gate says of it in this world."""

    table: str
    reads: tuple[int, ...]
    action: Action


def jobs_of(seed: int, *, small: bool) -> list[Job]:
    """Two tasks on one table in the small world; four on two in the other, where some are held back."""
    if small:
        return [Job("a", (), Action.CONTINUE), Job("a", (0,), Action.CONTINUE)]
    held = {3: Action.BLOCK_DOWNSTREAM, 5: Action.QUARANTINE, 7: Action.FAIL_TASK, 9: Action.FAIL_RUN}
    gates = [held.get((seed // 4 + place) % 24, Action.CONTINUE) for place in range(4)]
    shape = [("a", ()), ("a", ()), ("b", (0,)), ("b", (1, 2))]
    return [Job(table, reads, gate) for (table, reads), gate in zip(shape, gates, strict=True)]


def task_name(place: int) -> str:
    return f"task_{place:016x}"


def plan_of(jobs: list[Job]) -> Plan:
    tasks = tuple(
        PlannedTask(
            id=task_name(place),
            asset=f"db.{job.table}{place}",
            partitions=[],
            partition_count=1,
            stage=len(job.reads),
            priority=0,
            depends_on=tuple(task_name(one) for one in job.reads),
            inputs=(),
            because=(),
            estimate=Estimate(partitions=1),
        )
        for place, job in enumerate(jobs)
    )
    spec = PlanSpec(
        format=1,
        deployment="d",
        code_version="c",
        snapshot="s",
        mode="standard",
        selection=(),
        partitions={},
        tasks=tasks,
    )
    return Plan.of(spec)


def announce(entry: AnyEntry, _state: RunState) -> tuple[Draft, ...]:
    if isinstance(entry, RunFinished):
        return (Draft(type=ENDED, source="sim", data={"status": entry.status.value}),)
    return ()


class PublishingExecutor:
    """Takes its time, fails now and then, and publishes."""

    def __init__(self, env: Env, ws: Workspace, jobs: list[Job], uuids: dict[str, str], *, small: bool) -> None:
        self._env = env
        self._ws = ws
        self._jobs = {task_name(place): job for place, job in enumerate(jobs)}
        self._uuids = uuids
        self._small = small
        self._bases: Bases[TableMetadata] = Bases(ws, Tables())
        self._commits: Commits[TableMetadata, CommitTable] = Commits(ws, Tables(), self._bases)

    async def run(self, task: PlannedTask, attempt: Attempt) -> Outcome:
        job, drawn = self._jobs[task.id], self._env.entropy.fraction
        attempt.progress({"share": drawn()})
        await self._env.clock.sleep(1.0 if self._small else drawn() * 40.0)
        chance = 1.0 if self._small else drawn()
        if chance < 0.08:
            raise Unavailable("the source did not answer")
        if chance < 0.11:
            return Failed(Failure(kind="transform", message="division by zero"))
        going = _Going(snapshot_id(attempt.run, attempt.task, attempt.number))
        for _ in range(_REBASES_MAX):
            try:
                return await self._publish(job, attempt, going)
            except Conflict:
                # Under the next key of this ticket, or with another ticket: executors may do either.
                going.rebase += 1
                going.ticket = going.ticket if drawn() < 0.5 else None
        raise Unavailable("others publish to this table all the time")

    async def _publish(self, job: Job, attempt: Attempt, going: "_Going") -> Outcome:
        """One commit on one base, unless what this run makes of the task is in that base's history."""
        base = await self._bases.read(self._uuids[job.table])
        if base is None:
            raise Unavailable("the table's pointer is gone")
        events = (Draft(type=MADE, source="sim", data={"task": str(attempt.task), "attempt": attempt.number}),)
        found = _of_materialization(base.metadata, str(attempt.materialization_id))
        if found is not None:
            await attempt.stage(Output(action=job.action, commit=None, events=events))
            return Done(found)
        body = _body(base.metadata, job, attempt, going.snapshot_id, self._env.clock.now_ms())
        hashed = request_hash(body)
        if going.ticket is None:
            commit = Commit("updateTable", hashed, self._uuids[job.table], going.snapshot_id)
            going.ticket = await attempt.stage(Output(action=job.action, commit=commit, events=events))
            going.rebase = 0
        if not self._small:
            await self._env.clock.sleep(self._env.entropy.fraction() * 15.0)
        key = publish_key(attempt.run, attempt.task, attempt.number, going.rebase, going.ticket.at_ms)
        request_key = self._ws.markers.request_key(key, "updateTable", hashed)
        await self._commits.commit(NAMESPACE, job.table, requests.parse_commit_table(body), request_key, Source())
        return Done(going.snapshot_id)


@dataclass(slots=True)
class _Going:
    """An attempt on its way to being seen."""

    snapshot_id: int
    ticket: Ticket | None = None
    rebase: int = 0


def _of_materialization(metadata: TableMetadata, made: str) -> int | None:
    for snapshot in metadata.snapshots:
        if snapshot["summary"].get("arco.materialization-id") == made:
            return int(snapshot["snapshot-id"])
    return None


def _body(base: TableMetadata, job: Job, attempt: Attempt, snapshot_id: int, now_ms: int) -> dict[str, Any]:
    """A snapshot on main, or on a branch if it is held back, if main is still what was looked at."""
    effect = EFFECTS[job.action]
    ref = "main" if effect.main_moves else f"held_{attempt.task}"
    main = base.refs.get("main", {}).get("snapshot-id")
    snapshot = {
        "snapshot-id": snapshot_id,
        "sequence-number": base.last_sequence_number + 1,
        "timestamp-ms": max(now_ms, base.last_updated_ms),
        "manifest-list": f"{base.location}/metadata/snap-{snapshot_id}.avro",
        "schema-id": base.current_schema_id,
        "summary": {
            "operation": "append",
            "arco.materialization-id": str(attempt.materialization_id),
            "arco.task": str(attempt.task),
            "arco.attempt": str(attempt.number),
            "arco.ref": "main" if effect.main_moves else "held",
        },
    }
    if main is not None:
        snapshot["parent-snapshot-id"] = main
    return {
        "requirements": [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": main}],
        "updates": [
            {"action": "add-snapshot", "snapshot": snapshot},
            {"action": "set-snapshot-ref", "ref-name": ref, "type": "branch", "snapshot-id": snapshot_id},
        ],
    }

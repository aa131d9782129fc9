"""What the tasks of an atomic run do in the simulator: they stage a snapshot, on top of what the run staged before, in its log.

Every snapshot's summary says which task and which attempt made it, so the tables' own histories tell what became visible.
"""

from collections.abc import Callable
from typing import Any

from arco.catalog.catalog import Catalog
from arco.iceberg import requests
from arco.iceberg.metadata import TableMetadata
from arco.iceberg.requests import CreateTable
from arco.kernel.errors import Conflict, NoSuchTable, Unavailable
from arco.ledger.drafts import Draft
from arco.ledger.run_entries import Failure
from arco.ledger.run_state import RunState
from arco.quality.gates import EFFECTS, Action
from arco.servo.plan.document import PlannedTask
from arco.servo.schedule.executor import Attempt, Done, Failed, Outcome, Output
from arco.servo.schedule.publish_keys import snapshot_id
from arco.servo.schedule.staged_tables import TableMoved, staged_commit, with_staged
from arco_sim.scenarios.run_log_work import MADE, NAMESPACE, Job, task_name
from arco_sim.world import Env

FIELD = {"id": 1, "name": "x", "type": "long", "required": False}
CREATED = "c"
"""The table that the run creates."""

_REBASES_MAX = 6


def atomic_jobs_of(seed: int, *, small: bool) -> list[Job]:
    """Two tasks on a table that is there and one that is not; four on three tables, where a gate may refuse one."""
    if small:
        return [Job("a", (), Action.CONTINUE), Job(CREATED, (0,), Action.CONTINUE)]
    gates = [Action.QUARANTINE if (seed // 4 + place) % 40 == 3 else Action.CONTINUE for place in range(4)]
    shape = [("a", ()), ("a", ()), ("b", (0,)), (CREATED, (1, 2))]
    return [Job(table, reads, gate) for (table, reads), gate in zip(shape, gates, strict=True)]


class StagingExecutor:
    """Takes its time, fails now and then, and stages."""

    def __init__(self, env: Env, catalog: Catalog, jobs: list[Job], state: Callable[[], RunState], *, small: bool) -> None:
        self._env = env
        self._catalog = catalog
        self._jobs = {task_name(place): job for place, job in enumerate(jobs)}
        self._state = state
        self._small = small

    async def run(self, task: PlannedTask, attempt: Attempt) -> Outcome:
        job, drawn = self._jobs[task.id], self._env.entropy.fraction
        await self._env.clock.sleep(1.0 if self._small else drawn() * 40.0)
        if not self._small and drawn() < 0.06:
            raise Unavailable("the source did not answer")
        if not EFFECTS[job.action].main_moves:
            return Failed(Failure(kind="data_quality", message="checks failed"))
        for _ in range(_REBASES_MAX):
            try:
                return await self._staged(job, attempt)
            except TableMoved as moved:
                return Failed(Failure(kind="upstream", message=str(moved)))
            except Conflict:
                continue
        raise Unavailable("others stage for this table all the time")

    async def _staged(self, job: Job, attempt: Attempt) -> Outcome:
        table = (NAMESPACE, job.table)
        there = self._state().staged_commits.get(table, ())
        base = with_staged(await self._loaded(job.table), there, self._env.clock.now_ms())
        creates = base is None
        if base is None:
            wanted = CreateTable(job.table, {"type": "struct", "fields": [FIELD]})
            key = self._catalog.parts.markers.request_key(None, "stage", "")
            base = await self._catalog.staging.stage(NAMESPACE, wanted, key)
        made = snapshot_id(attempt.run, attempt.task, attempt.number)
        body = _body(base, attempt, made, self._env.clock.now_ms(), creates=creates)
        commit = staged_commit(table, requests.parse_commit_table(body), len(there), "asset" if creates else None)
        event = Draft(type=MADE, source="sim", data={"task": str(attempt.task), "attempt": attempt.number})
        if not self._small:
            await self._env.clock.sleep(self._env.entropy.fraction() * 15.0)
        output = Output(action=job.action, commit=None, events=(event,), commits=(commit,), snapshot_id=made)
        await attempt.stage(output)
        return Done(made)

    async def _loaded(self, name: str) -> TableMetadata | None:
        try:
            _, base = await self._catalog.tables.load(NAMESPACE, name)
        except NoSuchTable:
            return None
        return base.metadata


def snapshot_body(base: TableMetadata, snapshot_id: int, now_ms: int, summary: dict[str, str]) -> dict[str, Any]:
    """A commit of one more snapshot on main, if main is still what was looked at."""
    main = base.refs.get("main", {}).get("snapshot-id")
    snapshot = {
        "snapshot-id": snapshot_id,
        "sequence-number": base.last_sequence_number + 1,
        "timestamp-ms": max(now_ms, base.last_updated_ms),
        "manifest-list": f"{base.location}/metadata/snap-{snapshot_id}.avro",
        "schema-id": base.current_schema_id,
        "summary": {"operation": "append", **summary},
    }
    if main is not None:
        snapshot["parent-snapshot-id"] = main
    return {
        "requirements": [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": main}],
        "updates": [
            {"action": "add-snapshot", "snapshot": snapshot},
            {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": snapshot_id},
        ],
    }


def _body(base: TableMetadata, attempt: Attempt, made: int, now_ms: int, *, creates: bool) -> dict[str, Any]:
    body = snapshot_body(base, made, now_ms, {"arco.task": str(attempt.task), "arco.attempt": str(attempt.number)})
    if not creates:
        return body
    created = [
        {"action": "assign-uuid", "uuid": base.table_uuid},
        {"action": "set-location", "location": base.location},
        {"action": "add-schema", "schema": {"type": "struct", "fields": [FIELD]}},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
    ]
    return {"requirements": [{"type": "assert-create"}], "updates": [*created, *body["updates"]]}

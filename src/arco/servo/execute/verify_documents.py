"""What projects and runs keep beside the logs, looked at again: deployments, plans, schedules, claims, pools, facts, decisions,
and what tasks said.

Each must be readable, and be the one that its name says. Plans and planning facts are called by a hash of what they say, and that
is taken over the bytes as they lie in the store: so one that older code wrote stays right, and no byte of it changes unseen.
"""

import msgspec

from arco.kernel.errors import CorruptObject
from arco.kernel.fingerprint import fingerprint
from arco.kernel.ids import DeploymentId, RunId
from arco.servo.deploy.dynamic_values import DynamicValuesCodec
from arco.servo.deploy.head import DeploymentHead, HeadCodec
from arco.servo.deploy.manifest import decode_deployment
from arco.servo.execute.attempt_log import decode_lines
from arco.servo.execute.desk_decisions import DecisionCodec
from arco.servo.plan.document import decode_plan
from arco.servo.plan.facts import decode_snapshot
from arco.servo.schedule.claims import ClaimCodec
from arco.servo.schedule.open_runs import OpenRunsCodec
from arco.servo.schedule.pools import PoolCodec
from arco.servo.schedule.schedule_state import StateCodec
from arco.servo.schedule.starting import decode_request
from arco.storage.cas import decoded
from arco.storage.keys import (
    DeploymentHeadKey,
    DeploymentKey,
    DynamicValuesKey,
    HeldDecisionKey,
    Key,
    OpenRunsKey,
    PlanningSnapshotKey,
    PoolKey,
    RunClaimKey,
    RunPlanKey,
    RunRequestKey,
    ScheduleKey,
    TaskLogKey,
)
from arco.storage.looking import RESTORE, Judge, Look, readable
from arco.storage.port import Object

_TALK = "restore it from a backup or a copy of the root, or delete it: it is for people, and nothing depends on it"
_DEPLOY = "deploy the project again, or restore it from a backup or a copy of the root"


class _StoredPlan(msgspec.Struct, frozen=True):
    fingerprint: str
    spec: msgspec.Raw


class _StoredFacts(msgspec.Struct, frozen=True):
    id: str
    at_ms: int
    assets: msgspec.Raw


async def verify_documents(look: Look) -> None:
    await _verify_deployments(look)
    await look.each("run_plan_unreadable", "run_plans", {RunPlanKey: _judge_plan}, "runs")
    await look.each("run_claim_unreadable", "run_claims", {RunClaimKey: readable(ClaimCodec())}, "runs")
    await look.each("task_log_unreadable", "task_logs", {TaskLogKey: _judge_task_log}, "runs", todo=_TALK)
    await look.each("run_request_unreadable", "run_requests", {RunRequestKey: _judge_request}, "run_requests")
    await look.each("planning_facts_unreadable", "planning_facts", {PlanningSnapshotKey: _judge_facts}, "planning")
    await look.each("schedule_unreadable", "schedules", {ScheduleKey: readable(StateCodec())}, "schedules")
    await look.each("pool_unreadable", "pools", {PoolKey: readable(PoolCodec())}, "pools")
    await look.each("decision_unreadable", "decisions", {HeldDecisionKey: readable(DecisionCodec())}, "quarantine")
    await look.each("dynamic_values_unreadable", "dynamic_values", {DynamicValuesKey: _judge_values}, "dynamic_partitions")
    await look.one("open_runs_unreadable", "documents", OpenRunsKey(look.scope), readable(OpenRunsCodec()))


async def _verify_deployments(look: Look) -> None:
    heads: dict[str, DeploymentHead] = {}

    def judge_head(key: DeploymentHeadKey, found: Object) -> None:
        heads[str(key)] = decoded(found, HeadCodec(), str(key)).value

    kinds: dict[type[Key], Judge] = {DeploymentKey: _judge_deployment, DeploymentHeadKey: judge_head}
    await look.each("deployment_unreadable", "deployments", kinds, "deployments")
    for name, head in heads.items():
        for wanted in (head.deployment, *head.history):
            key = str(DeploymentKey(look.scope, DeploymentId(wanted)))
            if await look.store.head(key) is None:
                what = f"deployment {wanted}, which {name} names, is missing ({key})"
                look.find("deployment_missing", key, what, _DEPLOY if wanted == head.deployment else RESTORE)


def _judge_deployment(key: DeploymentKey, found: Object) -> None:
    deployment = decode_deployment(found.data, str(key))
    if deployment.id != key.deployment:
        raise CorruptObject(f"{key} is deployment {deployment.id}")


def _judge_plan(key: RunPlanKey, found: Object) -> None:
    decode_plan(found.data)
    stored = msgspec.json.decode(found.data, type=_StoredPlan)
    if stored.fingerprint != f"plan_{fingerprint('plan', bytes(stored.spec))}":
        raise CorruptObject(f"{key} is not what was planned: its fingerprint is wrong")


def _judge_task_log(key: TaskLogKey, found: Object) -> None:
    try:
        decode_lines(found.data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CorruptObject(f"{key} is not what a task said: {error}") from error


def _judge_facts(key: PlanningSnapshotKey, found: Object) -> None:
    decode_snapshot(found.data, str(key))
    stored = msgspec.json.decode(found.data, type=_StoredFacts)
    content = b"[%d,%b]" % (stored.at_ms, bytes(stored.assets))
    if (stored.id, f"facts_{fingerprint('planning snapshot', content)}") != (key.snapshot, key.snapshot):
        raise CorruptObject(f"{key} is not what was found when it was planned: its hash is wrong")


def _judge_request(key: RunRequestKey, found: Object) -> None:
    RunId(decode_request(found.data, str(key)).run)


def _judge_values(key: DynamicValuesKey, found: Object) -> None:
    values = decoded(found, DynamicValuesCodec(), str(key)).value
    if fingerprint("dynamic dimension", values.dimension) != key.dimension:
        raise CorruptObject(f"{key} has the values of dimension {values.dimension}")

"""What can be wrong with an asset, and what to type about it. Facts come in, causes go out; nothing is read here."""

from collections.abc import Collection
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from arco.read.facts import Facts
from arco.read.health import PASS_RATE_MIN, Quality, freshness_of
from arco.read.quarantines import Quarantine
from arco.read.runs import HeldOutput, Task


class CauseKind(StrEnum):
    FAILED_TASK = "failed_task"
    CANCELLED_TASK = "cancelled_task"
    HELD_OUTPUT = "held_output"
    QUARANTINED = "quarantined"
    LATE_SOURCE = "late_source"
    NEVER_PUBLISHED = "never_published"
    NOT_RUN = "not_run"
    MISSING_PARTITIONS = "missing_partitions"
    FAILING_CHECKS = "failing_checks"
    EXTERNAL_COMMIT = "external_commit"


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """Where it begins. `path` leads from what was asked about to the asset that is wrong.

    `missing` and `held` are keys of partitions: those that were never published, and those that `who` holds back.
    """

    kind: CauseKind
    asset: str
    asset_id: str
    path: tuple[str, ...]
    summary: str
    since: datetime | None = None
    run_id: str | None = None
    task_id: str | None = None
    failure_class: str | None = None
    message: str | None = None
    checks: tuple[str, ...] = ()
    partitions: list[dict[str, Any]] = []
    missing: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    who: str | None = None


class Priority(StrEnum):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Recommendation(msgspec.Struct, frozen=True, kw_only=True):
    """What to do, and what to type where that is enough."""

    priority: Priority
    action: str
    command: str | None
    reason: str


HINTS = {
    "schema_violation": "make the output fit the declared columns, or declare the new ones and deploy",
    "data_quality": "look at what the check refused: `arco quarantine list`",
    "missing_dependency": "publish what it reads first",
    "resource_exhausted": "give Spark more memory, or let a task cover fewer partitions",
    "timeout": "try it again, with more time if it takes long every time",
    "storage": "see whether the store can be reached: `arco doctor`",
    "transform": "correct the code of the asset at the line that the message names",
    "configuration": "correct the settings that the message names",
    "upstream": "others changed the same partitions meanwhile: run it on what is there now",
    "rate_limited": "run fewer tasks at once",
    "lost_lease": "another worker took the task over: look at what it did",
}
_KEYS_MAX = 100
_ENDED_BADLY = {"failed", "cancelled", "blocked", "quarantined"}


def own_causes(known: Facts, path: tuple[str, ...]) -> list[Cause]:
    """What went wrong at the asset itself, if anything did: its task failed, or something of it is held back."""
    found = [held_cause(one, known.name, path) for one in known.held[:1]]
    found += [quarantined_cause(one, known, path) for one in known.quarantined]
    last = known.last_task.task if known.last_task is not None else None
    if last is not None and last.state in _ENDED_BADLY and not (known.held and last.state in {"blocked", "quarantined"}):
        found.append(task_cause(last, known.name, path))
    return found


def task_cause(task: Task, name: str, path: tuple[str, ...]) -> Cause:
    kind = {"cancelled": CauseKind.CANCELLED_TASK, "failed": CauseKind.FAILED_TASK}.get(task.state, CauseKind.HELD_OUTPUT)
    said = f": {task.message}" if task.message else ""
    words = {CauseKind.HELD_OUTPUT: "its output was held back", CauseKind.CANCELLED_TASK: "its task was cancelled"}
    what = words.get(kind, f"its task failed ({task.failure_class or 'no class'})")
    return Cause(
        kind=kind,
        asset=name,
        asset_id=task.asset_id or "",
        path=path,
        summary=f"{name}: {what}{said}",
        since=task.ended_at or task.started_at,
        run_id=task.run_id,
        task_id=task.task_id,
        failure_class=task.failure_class,
        message=task.message,
        partitions=task.partitions,
    )


def held_cause(held: HeldOutput, name: str, path: tuple[str, ...]) -> Cause:
    return Cause(
        kind=CauseKind.HELD_OUTPUT,
        asset=name,
        asset_id=held.asset_id,
        path=path,
        summary=f"{name}: an output is held back ({held.action}) by {', '.join(held.reasons) or 'its gate'}",
        since=held.held_at,
        run_id=held.run_id,
        task_id=held.task_id,
        checks=held.reasons,
        partitions=held.partitions,
    )


def quarantined_cause(held: Quarantine, known: Facts, path: tuple[str, ...]) -> Cause:
    many = "1 partition is" if len(held.partitions) == 1 else f"{len(held.partitions)} partitions are"
    return Cause(
        kind=CauseKind.QUARANTINED,
        asset=known.name,
        asset_id=known.asset_id,
        path=path,
        summary=f"{known.name}: {many} held back by {held.who}: {held.why}",
        since=held.said_at,
        message=held.why,
        who=held.who,
        held=held.partitions[:_KEYS_MAX],
    )


def resting_cause(known: Facts, path: tuple[str, ...], now_ms: int) -> Cause:
    """Nothing went wrong and nothing above is late: it was not run, or nobody fed it."""
    fresh = freshness_of(known, now_ms)
    name = known.name
    if known.row["kind"] == "source":
        kind, summary = CauseKind.LATE_SOURCE, f"{name}: nothing was written to it"
    elif fresh.last_materialized_at is None:
        kind, summary = CauseKind.NEVER_PUBLISHED, f"{name}: it was never published"
    else:
        kind, summary = CauseKind.NOT_RUN, f"{name}: it was not run"
    if fresh.last_materialized_at is not None:
        summary += f" since {fresh.last_materialized_at:%Y-%m-%d %H:%M} UTC"
    run_id = known.last_task.task.run_id if known.last_task is not None else None
    return Cause(
        kind=kind,
        asset=name,
        asset_id=known.asset_id,
        path=path,
        summary=summary,
        since=fresh.deadline or fresh.last_materialized_at,
        run_id=run_id,
    )


def missing_cause(known: Facts, missing: list[str]) -> Cause:
    names = ", ".join(missing[:3]) + (" …" if len(missing) > 3 else "")
    many = "1 partition was" if len(missing) == 1 else f"{len(missing)} partitions were"
    return Cause(
        kind=CauseKind.MISSING_PARTITIONS,
        asset=known.name,
        asset_id=known.asset_id,
        path=(known.name,),
        summary=f"{known.name}: {many} never published: {names}",
        missing=tuple(missing[:_KEYS_MAX]),
    )


def failing_cause(known: Facts, quality: Quality, explained: Collection[str]) -> Cause | None:
    """Checks that failed and held nothing back, if they are why it is not well; `explained` are checks that others tell of."""
    if quality.pass_rate is None or quality.pass_rate >= PASS_RATE_MIN:
        return None
    failed = [one for one in known.checks if one.passed is False and (one.check_name or one.check_id) not in explained]
    if not failed:
        return None
    newest = max(failed, key=lambda one: (one.checked_at is not None, one.checked_at, one.check_id))
    names = tuple(sorted(one.check_name or one.check_id for one in failed))
    words = ", ".join(names[:3]) + (" …" if len(names) > 3 else "")
    return Cause(
        kind=CauseKind.FAILING_CHECKS,
        asset=known.name,
        asset_id=known.asset_id,
        path=(known.name,),
        summary=f"{known.name}: {quality.pass_rate:.1%} of its checks passed; {words} failed and did not hold it back",
        since=min((one.checked_at for one in failed if one.checked_at is not None), default=None),
        run_id=newest.run_id,
        task_id=newest.task_id,
        message=newest.message,
        checks=names[:_KEYS_MAX],
        partitions=newest.partitions,
    )


def outside_cause(known: Facts) -> Cause | None:
    """What others wrote to its table since it was published: no check has seen it."""
    if known.outside is None:
        return None
    return Cause(
        kind=CauseKind.EXTERNAL_COMMIT,
        asset=known.name,
        asset_id=known.asset_id,
        path=(known.name,),
        summary=f"{known.name}: its table was changed from outside by {known.outside.words}; those rows were not checked",
        since=known.outside.at,
        who=known.outside.who,
    )


def recommendations(asked: str, causes: list[Cause]) -> tuple[Recommendation, ...]:
    """What to do about each cause, most important first, and at the end for what was asked about."""
    found = [one for cause in causes for one in _about(cause)]
    if any(cause.asset != asked for cause in causes):
        found.append(
            Recommendation(
                priority=Priority.MEDIUM,
                action=f"then make {asked} and what it needs",
                command=f"arco run +{asked}",
                reason="it waits for what is above it",
            )
        )
    order = list(Priority)
    return tuple(sorted(dict.fromkeys(found), key=lambda one: order.index(one.priority)))


def _about(cause: Cause) -> list[Recommendation]:
    look = Recommendation(
        priority=Priority.LOW,
        action=f"look at the run of {cause.asset}",
        command=f"arco runs {cause.run_id}" if cause.run_id else "arco runs",
        reason="its tasks, with what they said",
    )
    # What was published all the same can wait for what was not.
    urgent = Priority.MEDIUM if cause.kind in {CauseKind.FAILING_CHECKS, CauseKind.EXTERNAL_COMMIT} else Priority.HIGH
    act = Recommendation(priority=urgent, action=_action(cause), command=_command(cause), reason=cause.summary)
    with_a_run = {CauseKind.FAILED_TASK, CauseKind.CANCELLED_TASK, CauseKind.HELD_OUTPUT, CauseKind.FAILING_CHECKS}
    return [act, look] if cause.kind in with_a_run else [act]


def _action(cause: Cause) -> str:
    match cause.kind:
        case CauseKind.FAILED_TASK:
            return HINTS.get(cause.failure_class or "", "see what its message says, correct it and run it again")
        case CauseKind.CANCELLED_TASK:
            return "run it again: a run that was cancelled has ended"
        case CauseKind.HELD_OUTPUT:
            return (
                f"see why {', '.join(cause.checks) or 'its checks'} refused it; correct its code or inputs and run it again"
            )
        case CauseKind.QUARANTINED:
            return f"ask {cause.who} what is wrong; once it is right, let it go with quality.partition_released.v1"
        case CauseKind.LATE_SOURCE:
            return f"ask whoever writes {cause.asset} for new data"
        case CauseKind.NEVER_PUBLISHED | CauseKind.NOT_RUN:
            return f"run {cause.asset}"
        case CauseKind.MISSING_PARTITIONS:
            return "make the partitions that were never published"
        case CauseKind.FAILING_CHECKS:
            return f"review failing checks: {', '.join(cause.checks[:3])}"
        case CauseKind.EXTERNAL_COMMIT:
            return (
                f"see what {cause.who} wrote (`arco history {cause.asset}`); made again, it is checked and takes its place"
            )


def _command(cause: Cause) -> str | None:
    match cause.kind:
        case CauseKind.HELD_OUTPUT | CauseKind.EXTERNAL_COMMIT:
            return f"arco run {cause.asset} --force"
        case CauseKind.QUARANTINED:
            return None
        case CauseKind.LATE_SOURCE:
            return f"arco history {cause.asset}"
        case CauseKind.MISSING_PARTITIONS:
            return f"arco run {cause.asset} --backfill"
        case CauseKind.FAILING_CHECKS:
            return f"arco assets {cause.asset}"
        case _:
            return f"arco run {cause.asset}"

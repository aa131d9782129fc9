"""Health of an asset: freshness, quality and the last run, computed when it is asked for and never stored.

    unhealthy   past its deadline, or an output is held back, or somebody holds back what was published
    warning     the last run failed, or fewer than 95 % of its checks passed when they last ran, or others changed what it
                published, which nobody checked
    unknown     nothing was ever published, run or checked
    healthy     everything else

What must never enter: reading. Facts come in, a verdict goes out.
"""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from enum import StrEnum

import msgspec

from arco.read.answers import Answer
from arco.read.facts import Facts

PASS_RATE_MIN = 0.95


class Status(StrEnum):
    HEALTHY = "healthy"
    WARNING = "warning"
    UNHEALTHY = "unhealthy"
    UNKNOWN = "unknown"


class Freshness(msgspec.Struct, frozen=True, kw_only=True):
    """The SLA of an asset and where it stands. Without one, `within_sla` is null."""

    last_materialized_at: datetime | None
    fresh_within_s: int | None
    deadline: datetime | None
    within_sla: bool | None
    staleness_s: int | None


class SlaState(StrEnum):
    MET = "met"
    MISSED = "missed"
    NONE = "none"


class Sla(msgspec.Struct, frozen=True, kw_only=True):
    """Whether an asset is as new as it promises to be. `late_s` is for how long it has not been; null if it never was."""

    asset: str
    asset_id: str
    state: SlaState
    late_s: int | None
    freshness: Freshness


class Quality(msgspec.Struct, frozen=True, kw_only=True):
    """The newest result of each check. `quarantined` are current partitions that people hold back by hand."""

    checks: int
    passed: int
    pass_rate: float | None
    failing: tuple[str, ...]
    held_outputs: int
    quarantined: int


class LastRun(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the asset in the newest run that it was part of."""

    run_id: str
    task_id: str
    outcome: str
    ended_at: datetime | None
    duration_s: float | None
    failure_class: str | None
    message: str | None


class Health(msgspec.Struct, frozen=True, kw_only=True):
    asset: str
    asset_id: str
    status: Status
    reasons: tuple[str, ...]
    freshness: Freshness
    quality: Quality
    last_run: LastRun | None


class HealthPage(Answer, frozen=True, kw_only=True):
    """`computed_at` is the time it was computed for: health of the same facts changes with it."""

    computed_at: datetime
    health: tuple[Health, ...]
    next_cursor: str | None = None


class SlaPage(Answer, frozen=True, kw_only=True):
    """`computed_at` is the time it was computed for."""

    computed_at: datetime
    sla: tuple[Sla, ...]
    next_cursor: str | None = None


def health_of(known: Facts, now_ms: int) -> Health:
    fresh = freshness_of(known, now_ms)
    quality = _quality(known)
    last_run = _last_run(known)
    status, reasons = _verdict(known, fresh, quality, last_run)
    return Health(
        asset=known.name,
        asset_id=known.asset_id,
        status=status,
        reasons=reasons,
        freshness=fresh,
        quality=quality,
        last_run=last_run,
    )


def freshness_of(known: Facts, now_ms: int) -> Freshness:
    """What others write is as fresh as its last commit, whoever made it. All else is as fresh as its last publish."""
    last = known.last_change if known.written_by_others else known.published.last_at
    within = known.row["fresh_within_s"]
    now = datetime.fromtimestamp(now_ms / 1000, UTC)
    deadline = None if last is None or within is None else last + timedelta(seconds=within)
    return Freshness(
        last_materialized_at=last,
        fresh_within_s=within,
        deadline=deadline,
        within_sla=None if within is None else deadline is not None and now <= deadline,
        staleness_s=None if last is None else max(0, int((now - last).total_seconds())),
    )


def sla_of(known: Facts, now_ms: int) -> Sla:
    fresh = freshness_of(known, now_ms)
    state = SlaState.NONE if fresh.within_sla is None else SlaState.MET if fresh.within_sla else SlaState.MISSED
    now = datetime.fromtimestamp(now_ms / 1000, UTC)
    late = None if fresh.deadline is None or state is not SlaState.MISSED else int((now - fresh.deadline).total_seconds())
    return Sla(asset=known.name, asset_id=known.asset_id, state=state, late_s=late, freshness=fresh)


def worst(found: Collection[Health]) -> Status:
    """Of many assets together."""
    order = (Status.UNHEALTHY, Status.WARNING, Status.UNKNOWN, Status.HEALTHY)
    return next((status for status in order if any(one.status is status for one in found)), Status.UNKNOWN)


def _verdict(known: Facts, fresh: Freshness, quality: Quality, last_run: LastRun | None) -> tuple[Status, tuple[str, ...]]:
    if fresh.last_materialized_at is None and last_run is None and not quality.checks and not known.held:
        return Status.UNKNOWN, ("nothing of it was published yet",)
    bad, warnings = [], []
    if fresh.within_sla is False:
        bad.append("it is past its deadline" if fresh.deadline else "it has a deadline and was never published")
    if quality.held_outputs:
        bad.append(f"{_many(quality.held_outputs, 'output is', 'outputs are')} held back")
    if quality.quarantined:
        who = ", ".join(dict.fromkeys(one.who for one in known.quarantined))
        bad.append(f"{_many(quality.quarantined, 'partition is', 'partitions are')} held back by {who}")
    if last_run is not None and last_run.outcome in {"failed", "cancelled", "skipped"}:
        warnings.append(f"its task in the last run {'was ' if last_run.outcome != 'failed' else ''}{last_run.outcome}")
    if quality.pass_rate is not None and quality.pass_rate < PASS_RATE_MIN:
        warnings.append(f"{_many(len(quality.failing), 'check', 'checks')} of {quality.checks} failed")
    if known.outside is not None:
        many = _many(known.published.marked, "partition", "partitions")
        warnings.append(f"{many} changed from outside, unchecked, by {known.outside.words}")
    status = Status.UNHEALTHY if bad else Status.WARNING if warnings else Status.HEALTHY
    return status, (*bad, *warnings)


def _quality(known: Facts) -> Quality:
    decided = [one for one in known.checks if one.passed is not None]
    passed = sum(1 for one in decided if one.passed)
    return Quality(
        checks=len(decided),
        passed=passed,
        pass_rate=passed / len(decided) if decided else None,
        failing=tuple(sorted(one.check_name or one.check_id for one in decided if not one.passed)),
        held_outputs=len(known.held),
        quarantined=sum(len(one.partitions) for one in known.quarantined),
    )


def _last_run(known: Facts) -> LastRun | None:
    if known.last_task is None:
        return None
    its = known.last_task.task
    took = None if its.started_at is None or its.ended_at is None else (its.ended_at - its.started_at).total_seconds()
    return LastRun(
        run_id=its.run_id,
        task_id=its.task_id,
        outcome=its.state,
        ended_at=its.ended_at,
        duration_s=took,
        failure_class=its.failure_class,
        message=its.message,
    )


def _many(number: int, one: str, more: str) -> str:
    return f"{number} {one if number == 1 else more}"

"""What a schedule owes, decided on its state, its definition, what is known of the world, and a time. Pure.

Ticks of a cron expression are moments, and each of them is decided once: `through_ms` only grows. Commits and deadlines have no
moments of their own; their ticks are numbered in the order in which they are decided. Only `catch_up = "all"` lets ticks wait
behind one another: everything else decides again when the tick before it has ended, and then on what is true by then.

A definition that changes ends at the moment when the next one was deployed: what the old one owes up to there and is to catch up
is taken up first, as the old one says it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from arco.kernel.errors import CorruptObject
from arco.kernel.fingerprint import fingerprint
from arco.kernel.limits import SCHEDULE_ENDED_TICKS_MAX, SCHEDULE_OPEN_TICKS_MAX
from arco.ledger.run_entries import Trigger
from arco.servo.deploy.manifest import DeployedSchedule
from arco.servo.plan.freshness import Urgent
from arco.servo.plan.ticks import Due, due
from arco.servo.schedule.schedule_state import EndedTick, ScheduleState, Tick
from arco.servo.sdk.cron import Cron
from arco.servo.sdk.schedules import CatchUp, zone


@dataclass(frozen=True, slots=True)
class Known:
    """What was found out for a schedule: which content its sources have, by asset; or what is due soon, if anything."""

    sources: Mapping[str, str] | None = None
    urgent: Urgent | None = None


def decided(state: ScheduleState | None, deployed: DeployedSchedule, known: Known, now_ms: int) -> ScheduleState:
    """The state after everything that can be decided now; the same one if that is nothing."""
    now = ScheduleState.first(deployed) if state is None else state
    if now.paused is not None:
        return now
    if now.version != deployed.version:
        now, is_over = _ended_definition(now, deployed.since_ms)
        if not is_over:
            return now
        now = msgspec.structs.replace(
            now,
            version=deployed.version,
            definition=deployed.definition,
            through_ms=max(now.through_ms, deployed.since_ms),
            seen={},
            asked=None,
            asked_ms=None,
        )
    match now.definition["when"]["kind"]:
        case "cron":
            return _by_clock(now, now_ms, now_ms)
        case "source":
            return _by_commits(now, known.sources or {}, now_ms)
        case "freshness":
            return _by_deadlines(now, known.urgent, now_ms)
        case kind:
            raise CorruptObject(f"a schedule fires by {kind!r}, which is not known")


def is_news(state: ScheduleState | None, after: ScheduleState) -> bool:
    """Whether there is anything to write down: a definition alone is not."""
    return bool(after.open or after.ended) if state is None else state != after


def ended(state: ScheduleState, tick: Tick, result: EndedTick) -> ScheduleState:
    """The state without a tick that has ended. One that somebody else ended before stays as it was."""
    left = tuple(one for one in state.open if (one.version, one.id) != (tick.version, tick.id))
    if len(left) == len(state.open):
        return state
    return msgspec.structs.replace(state, open=left, ended=(result, *state.ended)[:SCHEDULE_ENDED_TICKS_MAX])


def resumed(state: ScheduleState, now_ms: int) -> ScheduleState:
    """As before the pause. What would have been due in it is not."""
    return msgspec.structs.replace(state, paused=None, through_ms=max(state.through_ms, now_ms))


def _by_clock(state: ScheduleState, until_ms: int, now_ms: int) -> ScheduleState:
    when = state.definition["when"]
    policy = CatchUp(when["catch_up"])
    room = SCHEDULE_OPEN_TICKS_MAX - len(state.open)
    if room <= 0 or (state.open and policy is not CatchUp.ALL):
        return state
    owed = due(Cron.parse(when["cron"]), zone(when["timezone"]), policy, state.through_ms, until_ms)
    if owed is None:
        return state
    if len(owed.ticks) > room:
        owed = Due(owed.ticks[:room], owed.ticks[room - 1])
    ticks = (
        _tick(state, str(at_ms), Trigger.SCHEDULED, f"{when['cron']} at {_said(at_ms)}", now_ms) for at_ms in owed.ticks
    )
    return msgspec.structs.replace(
        state,
        open=(*state.open, *ticks),
        through_ms=owed.through_ms,
        decisions=state.decisions + len(owed.ticks),
    )


def _by_commits(state: ScheduleState, sources: Mapping[str, str], now_ms: int) -> ScheduleState:
    changed = {name: version for name, version in sources.items() if state.seen.get(name) != version}
    if state.open or not changed:
        return state
    cause = f"new in {', '.join(sorted(changed))}"
    return _numbered(state, Trigger.SOURCE, cause, now_ms, seen={**state.seen, **changed})


def _by_deadlines(state: ScheduleState, urgent: Urgent | None, now_ms: int) -> ScheduleState:
    if state.open or urgent is None:
        return state
    base = fingerprint("urgent", *urgent.assets, *urgent.published)
    is_asked = state.asked == base and state.asked_ms is not None
    if is_asked and now_ms < (state.asked_ms or 0) + urgent.again_after_s * 1000:
        return state  # it was made, or tried, on exactly these facts
    after = _numbered(state, Trigger.FRESHNESS, urgent.cause, now_ms, asked=base, asked_ms=now_ms)
    tick = msgspec.structs.replace(after.open[-1], make=urgent.assets, due_by_ms=urgent.due_by_ms)
    return msgspec.structs.replace(after, open=(tick,))


def _numbered(state: ScheduleState, trigger: Trigger, cause: str, now_ms: int, **also: Any) -> ScheduleState:
    number = state.decisions + 1
    tick = _tick(state, f"number {number}", trigger, cause, now_ms)
    return msgspec.structs.replace(state, open=(tick,), decisions=number, **also)


def _ended_definition(state: ScheduleState, until_ms: int) -> tuple[ScheduleState, bool]:
    """What the definition before owes up to the moment when it was replaced; and whether that is all of it."""
    when = state.definition["when"]
    if when["kind"] != "cron" or when["catch_up"] != CatchUp.ALL or until_ms <= state.through_ms:
        return state, True
    after = _by_clock(state, until_ms, until_ms)
    return after, len(after.open) < SCHEDULE_OPEN_TICKS_MAX and _by_clock(after, until_ms, until_ms) == after


def _tick(state: ScheduleState, identity: str, trigger: Trigger, cause: str, now_ms: int) -> Tick:
    definition = state.definition
    return Tick(
        id=identity,
        version=state.version,
        trigger=trigger.value,
        cause=cause,
        decided_ms=now_ms,
        make=tuple(definition["make"]),
        partitions=definition["partitions"],
        mode=definition["mode"],
        parameters=definition["parameters"],
    )


def _said(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%MZ")

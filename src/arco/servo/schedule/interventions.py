"""What others may do to a run without driving it: ask for its end, pause it, and pay what it owes the ledger.

All are entries of the log like any other, so they need no driver to be alive, and no permission from one that is.
"""

from arco.kernel.clock import Clock
from arco.kernel.entropy import Entropy
from arco.ledger.appender import Appender
from arco.ledger.run_entries import AnyEntry, EventsAppended, RunCancelRequested, RunPaused, RunResumed
from arco.ledger.run_log import RunLog
from arco.ledger.run_state import RunState
from arco.servo.schedule.log_writer import LogWriter
from arco.servo.schedule.outbox import deliver


async def request_cancel(log: RunLog, who: str, reason: str, clock: Clock, entropy: Entropy) -> bool:
    """Ask for a run to be cancelled; drivers hear of it when they look. False if it has ended without being asked to."""
    asked = RunCancelRequested(who=who, reason=reason)

    def decide(state: RunState) -> list[AnyEntry]:
        return [] if state.is_finished or state.run.cancel is not None else [asked]

    await _writer(log, clock, entropy).propose(decide, on_news=True)
    return log.state.run.cancel is not None


async def request_pause(log: RunLog, who: str, why: str, clock: Clock, entropy: Entropy) -> bool:
    """Let nothing more be claimed; what runs goes on to its end. False if it has ended or is stopping."""
    asked = RunPaused(who=who, why=why)

    def decide(state: RunState) -> list[AnyEntry]:
        return [asked] if _may_pause(state) and state.run.paused is None else []

    await _writer(log, clock, entropy).propose(decide, on_news=True)
    return log.state.run.paused is not None and _may_pause(log.state)


async def request_resume(log: RunLog, who: str, clock: Clock, entropy: Entropy) -> bool:
    """Let the run go on. False if it was not paused."""
    was_paused = False

    def decide(state: RunState) -> list[AnyEntry]:
        nonlocal was_paused
        was_paused = was_paused or (state.run.paused is not None and _may_pause(state))
        return [RunResumed(who=who)] if state.run.paused is not None and _may_pause(state) else []

    await _writer(log, clock, entropy).propose(decide, on_news=True)
    return was_paused


def _may_pause(state: RunState) -> bool:
    return not state.is_finished and state.run.stopping is None


async def pay_what_is_owed(log: RunLog, appender: Appender, clock: Clock, entropy: Entropy) -> None:
    """Append the events that a run owes and write that it was done, for whoever finds a run left like that."""
    await log.catch_up()
    if not log.state.owed:
        return
    through = await deliver(appender, log.state)

    def decide(state: RunState) -> list[AnyEntry]:
        return [EventsAppended(through=through)] if any(one <= through for one in state.owed) else []

    await _writer(log, clock, entropy).propose(decide)


def _writer(log: RunLog, clock: Clock, entropy: Entropy) -> LogWriter:
    return LogWriter(log, lambda _: [], lambda entry, _: entry, clock, entropy)

"""Runs that were asked for from outside, planned and started by a process that has the project.

What is asked for is written down by whoever asks (`ledger/asked_runs.py`); this is the other half. What must never enter: how
requests are found and decided about (`schedule/asked.py`), and driving what was started.
"""

from dataclasses import dataclass

from arco.kernel.errors import InvalidInput, NotFound, TooLarge
from arco.ledger.asked_runs import AskedRun, AskedRuns
from arco.ledger.run_entries import Trigger
from arco.servo.execute.gathering import store_snapshot
from arco.servo.execute.pipeline import Pipeline
from arco.servo.plan.document import Plan
from arco.servo.plan.planner import Mode, PlanRequest
from arco.servo.schedule.announcing import begun as announced
from arco.servo.schedule.asked import Mind, Taker
from arco.servo.schedule.starting import RunRequest, Started
from arco.servo.schedule.ticking import NothingToDo, Refused


async def start_asked(pipeline: Pipeline, mind: Mind | None = None) -> list[Started]:
    """Start a run for every open request of this project: those that began here, and those found that nobody drives.

    One listing where nothing is asked for. Whoever calls it again and again gives the same `mind` each time: what needs nothing
    more is not looked at again, and what is wrong with a request is said once. Safe in many processes at once.
    """
    taker = Taker(requests_of(pipeline), _OfProject(pipeline), pipeline.by, mind or Mind(), pipeline.keys)
    begun = await taker.take()
    # One that somebody else planned, on other code, is for whoever has that.
    return [one for one in begun if one.plan.spec.code_version == pipeline.project.code_version]


def requests_of(pipeline: Pipeline) -> AskedRuns:
    parts = pipeline.catalog.parts
    return AskedRuns(parts.tier1.store, parts.scope, parts.clock, parts.entropy)


@dataclass(frozen=True, slots=True)
class _OfProject:
    """Plans of one project."""

    pipeline: Pipeline

    @property
    def project(self) -> str:
        return self.pipeline.project.name

    async def plan(self, asked: AskedRun) -> Plan | NothingToDo | Refused:
        try:
            prepared = await self.pipeline.prepare(_plan_request(asked))
            self.recorded_as(asked, prepared.plan)  # numbers that no run may have are refused before anything is decided
        except (InvalidInput, NotFound, TooLarge) as error:
            return Refused(error.one_line())
        if not prepared.plan.spec.tasks:
            return NothingToDo()
        await store_snapshot(self.pipeline.catalog, prepared.snapshot)
        return prepared.plan

    def recorded_as(self, asked: AskedRun, plan: Plan) -> RunRequest:
        who = f"{asked.who}, asked from outside"
        trigger = Trigger.BACKFILL if asked.mode == Mode.BACKFILL else Trigger.EVENT
        return RunRequest(
            trigger=trigger,
            who=who,
            max_parallelism=asked.max_parallelism,
            timeout_s=asked.timeout_s,
            on_failure=asked.on_failure,
            project=self.project,
            keys=self.pipeline.keys,
            announce=lambda run: announced(run, plan, self.project, trigger.value, who),
        )


def _plan_request(asked: AskedRun) -> PlanRequest:
    try:
        mode = Mode(asked.mode)
    except ValueError:
        raise InvalidInput(f"a run in mode {asked.mode!r}", hint=f"one of {', '.join(Mode)}") from None
    return PlanRequest(words=asked.make, partitions=asked.partitions, mode=mode, parameters=asked.parameters)

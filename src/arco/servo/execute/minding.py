"""A scheduler: one process that drives open runs, signs their tasks for workers, and does chores beside it; it executes nothing.

Driving means deciding what follows, taking over what died and settling what fell silent. Any number of schedulers may do all of
it at once: the log of a run takes each decision once, and each chore is decided by one swing of its own document.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial

from arco.kernel.errors import ArcoError, Superseded
from arco.ledger.run_state import RunState
from arco.servo.execute.asking import requests_of, start_asked
from arco.servo.execute.pipeline import HowToRun, Nobody, Pipeline
from arco.servo.execute.scheduled import ScheduledRuns, known_of
from arco.servo.execute.working import other_code, signer_of, unsealed, ways_of
from arco.servo.schedule.asked import Mind
from arco.servo.schedule.crew import Crew, Refused, Told, unforeseen
from arco.servo.schedule.driver import Driver
from arco.servo.schedule.envelopes import EnvelopeKeys
from arco.servo.schedule.open_runs import OpenRun
from arco.servo.schedule.starting import Started
from arco.servo.schedule.ticking import Schedules

TICK_EVERY_S = 10.0
ASKED_EVERY_S = 5.0

Troubled = Callable[[str, ArcoError], None]


@dataclass(frozen=True, slots=True)
class Chore:
    """Something that a scheduler does now and then, beside driving runs. What it starts it leaves to workers.

    `look` asks for what it asks for when there is nothing to do.
    """

    name: str
    every_s: float
    do: Callable[[Pipeline, Troubled], Awaitable[object]]
    look: Callable[[Pipeline], Awaitable[object]]


async def tick_schedules(pipeline: Pipeline, troubled: Troubled) -> None:
    """Start the runs of ticks that are due. A tick is struck off when its run has ended, by whoever ticks then.

    What is wrong with one schedule is said of that one, and the others tick. Schedules tick as they are deployed: by a scheduler
    that has that code.
    """
    try:
        deployment = await pipeline.deployments.counting(pipeline.project)
    except Superseded as error:
        troubled("schedules", error)
        return
    if deployment is None:
        return
    schedules = _schedules(pipeline)
    runs = ScheduledRuns(pipeline, HowToRun(), _left_to_workers, here=False)
    for one in deployment.schedules.values():
        what = f"schedule {one.name}"
        try:
            await schedules.tick(one, partial(known_of, pipeline, deployment, one), runs)
        except ArcoError as error:
            troubled(what, error)
        except Exception as error:  # noqa: BLE001 - it is said, and done again in its time
            troubled(what, unforeseen(what, error))


async def look_at_schedules(pipeline: Pipeline) -> None:
    try:
        deployment = await pipeline.deployments.counting(pipeline.project)
    except Superseded:
        return
    if deployment is None:
        return
    for one in deployment.schedules.values():
        await known_of(pipeline, deployment, one)
        await _schedules(pipeline).state(one.name)


def _schedules(pipeline: Pipeline) -> Schedules:
    parts = pipeline.catalog.parts
    return Schedules(parts.tier1.store, parts.scope, pipeline.project.name, parts.clock, parts.entropy)


async def take_requests(pipeline: Pipeline, _troubled: Troubled, mind: Mind) -> None:
    """Start what was asked for from outside; what is wrong with one request is said of that one."""
    await start_asked(pipeline, mind)


async def look_at_requests(pipeline: Pipeline) -> None:
    async for _ in requests_of(pipeline).open():
        continue


async def requests_an_hour(pipeline: Pipeline, sent: Callable[[], int]) -> float:
    """What the chores ask of the store in an hour in which nothing is due. `sent`: how many requests there were so far.

    They are sent, and counted, as they are sent later: the second time, when what can be kept in mind is.
    """
    total = 0.0
    for chore in chores():
        await chore.look(pipeline)
        before = sent()
        await chore.look(pipeline)
        total += (sent() - before) * 3600 / chore.every_s
    return total


async def _left_to_workers(started: Started) -> RunState:
    return started.log.state


def chores() -> tuple[Chore, ...]:
    """Everything that one scheduler does beside driving: what starts runs belongs here."""
    return (
        Chore("schedules", TICK_EVERY_S, tick_schedules, look_at_schedules),
        Chore("requests", ASKED_EVERY_S, partial(take_requests, mind=Mind()), look_at_requests),
    )


class Scheduler:
    """`keys`: with them tasks are signed for workers."""

    def __init__(self, pipeline: Pipeline, *, keys: EnvelopeKeys | None, told: Told) -> None:
        self._pipeline = pipeline
        self._keys = keys
        self._told = told
        parts = pipeline.catalog.parts
        self._clock = parts.clock
        self._appender = parts.appender()
        self._crew = Crew(ways_of(pipeline, told), self._take)

    def stop(self) -> None:
        self._crew.stop()

    async def serve(self, *, once: bool) -> None:
        """Until told to stop; once: every chore once, then until no run is open. Raises what ended a chore, or a part of one."""
        try:
            if once:
                await self._serve_once()
            else:
                await self._serve()
        finally:
            await self._appender.close()

    async def _serve_once(self) -> None:
        failed: list[ArcoError] = []

        def troubled(what: str, error: ArcoError) -> None:
            self._told.troubled(what, error)
            failed.append(error)

        for chore in chores():
            await chore.do(self._pipeline, troubled)
        await self._crew.serve(once=True)
        if failed:
            raise failed[0]

    async def _serve(self) -> None:
        """A process whose chores have ended would look alive and start nothing: it ends with them."""
        loop = asyncio.get_running_loop()
        serving = loop.create_task(self._crew.serve())
        beside = [loop.create_task(self._now_and_then(chore)) for chore in chores()]
        try:
            ended, _ = await asyncio.wait([serving, *beside], return_when=asyncio.FIRST_COMPLETED)
            self._crew.stop()
            await serving
            for one in ended:
                one.result()
        finally:
            for running in (serving, *beside):
                running.cancel()

    async def _now_and_then(self, chore: Chore) -> None:
        """A chore that fails is said, and done again in its time: the runs do not wait for it."""
        while True:
            try:
                await chore.do(self._pipeline, self._told.troubled)
            except ArcoError as error:
                self._told.troubled(chore.name, error)
            await self._clock.sleep(chore.every_s)

    async def _take(self, _note: OpenRun, started: Started) -> Driver | Refused:
        """Any run of the project, also one of other code: it may have to be cancelled. Only tasks of this code are signed.

        With a key, none that nobody with the key has started: a signature would vouch for it.
        """
        pipeline = self._pipeline
        if (why := unsealed(pipeline, started, self._keys)) is not None:
            return Refused(why)
        deployment = await pipeline.deployments.load(started.plan.spec.deployment)
        is_ours = other_code(pipeline, started) is None
        options = replace(
            pipeline.driving(started, deployment),
            slots=0,
            poll_s=pipeline.hand_over.looks_every_s,
            hands_out=signer_of(pipeline, started, self._keys) if is_ours else None,
        )
        return Driver(pipeline.ground(self._appender, started), started.log, started.plan, Nobody(), options)

"""`arco worker` and `arco scheduler`: processes that stay, and say in a line each what becomes of the runs they have in hand."""

import asyncio
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Protocol

from arco.fold.spark_threads import any_left
from arco.kernel.errors import ArcoError, Conflict
from arco.kernel.limits import TASK_LEASE_S
from arco.ledger.run_state import RunState
from arco.quality.gates import exit_code
from arco.servo.execute.minding import Scheduler, requests_an_hour
from arco.servo.execute.pipeline import Pipeline
from arco.servo.execute.working import Worker
from arco.servo.schedule.local_wake_ups import LocalWakeUps
from arco.surface.cli.isolating import isolation_of
from arco.surface.cli.printing import counted, say, say_aside
from arco.surface.cli.projects import At, read_project
from arco.surface.cli.running import EXIT_INTERRUPTED, at_work, task_keys

_HOUR_S = 3600


class Service(Protocol):
    def stop(self) -> None: ...

    async def serve(self, *, once: bool) -> None: ...


Serving = Callable[[Callable[[Service], None]], Coroutine[Any, Any, int]]


@dataclass(slots=True)
class _Said:
    """Lines for whoever looks at the process; and the worst end of all its runs."""

    code: int = 0
    _troubles: Counter[str] = field(default_factory=Counter)

    def took(self, run: str, tasks: int) -> None:
        say(f"run {run}: {counted(tasks, 'task')}")

    def refused(self, run: str, why: str) -> None:
        say(f"run {run} is not for this process: {why}")

    def ended(self, run: str, state: RunState) -> None:
        counts = Counter(its.status.value for its in state.tasks.values())
        listed = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
        say(f"run {run} {state.run.status.value}: {listed}")
        self.code = max(self.code, exit_code(its.status.value for its in state.tasks.values()))
        self._troubles.clear()

    def troubled(self, what: str, error: ArcoError) -> None:
        """The first time, and then ever more rarely: a store that is gone for a night is not a line a second."""
        self._troubles[what] += 1
        if (times := self._troubles[what]) & (times - 1) == 0:
            say_aside(f"arco: {what}: {error.one_line()}; it is tried again")


def work(at: At, *, slots: int, once: bool, poll_s: float, lease_s: float = TASK_LEASE_S, isolate: bool = False) -> Serving:
    async def serving(begun: Callable[[Service], None]) -> int:
        file = read_project(at.folder)
        keys = task_keys(file)
        # Before anything of the project is imported: what it does then, it does in this process.
        apart = isolation_of(file, at) if isolate or file.workers.isolate else None
        async with at_work(at, poll_s) as (pipeline, _):
            said = _Said()
            home = pipeline.home or pipeline.new_home()
            worker = Worker(pipeline, home, slots=slots, keys=keys, told=said, lease_s=lease_s, apart=apart)
            begun(worker)
            signed = ", and runs only what a scheduler signed" if keys is not None else ""
            alone = ", each in a process of its own with keys of its own" if apart is not None else ""
            say(f"worker of {pipeline.project.name} at {pipeline.root}: {counted(slots, 'task')} at once{alone}{signed}")
            say(_idle(pipeline))
            await worker.serve(once=once)
            return said.code if once else 0

    return serving


def mind(at: At, *, once: bool, poll_s: float) -> Serving:
    async def serving(begun: Callable[[Service], None]) -> int:
        keys = task_keys(read_project(at.folder))
        sent = _Sent()
        async with at_work(at, poll_s, sent, goes_back=False) as (pipeline, _):
            schedules = await _its_schedules(pipeline)
            said = _Said()
            scheduler = Scheduler(pipeline, keys=keys, told=said)
            begun(scheduler)
            signed = ", and signs tasks for workers" if keys is not None else ""
            say(f"scheduler of {pipeline.project.name} at {pipeline.root}: {schedules}{signed}")
            say(_idle(pipeline, await requests_an_hour(pipeline, lambda: sent.requests)))
            await scheduler.serve(once=once)
            return said.code if once else 0

    return serving


async def _its_schedules(pipeline: Pipeline) -> str:
    """What a scheduler begins with. One whose code was superseded says why when it is to tick, and open runs may need it.

    So does one that is overtaken by somebody who deploys other code in this moment.
    """
    try:
        return counted(len((await pipeline.deploy()).schedules), "schedule")
    except Conflict:
        return "it starts nothing, and goes on with open runs"


@dataclass(slots=True)
class _Sent:
    """How many requests went to the store."""

    requests: int = 0

    def store_requests(self, operation: str, kind: str, count: int, took_s: float) -> None:
        self.requests += count


def _idle(pipeline: Pipeline, chores: float = 0) -> str:
    """What waiting costs: a look for open runs each time, and what the chores ask for in an hour."""
    every_s = pipeline.hand_over.looks_every_s
    woken = "it is woken by sockets, and looks" if isinstance(pipeline.hand_over, LocalWakeUps) else "it looks"
    return f"{woken} every {every_s:g} s: {round(_HOUR_S / every_s + chores):,} requests an hour while nothing is open"


def served(serving: Serving) -> int:
    """Run a service until it ends. The first signal asks it to end in order, the second ends it."""

    async def main() -> int:
        services: list[Service] = []
        task = asyncio.ensure_future(serving(services.append))
        times = 0

        def signalled() -> None:
            nonlocal times
            times += 1
            if times == 1 and services:
                say_aside("arco: claims nothing more, and ends when its tasks have; once more leaves at once")
                services[0].stop()
            else:
                task.cancel()

        loop = asyncio.get_running_loop()
        for one in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(one, signalled)
        try:
            return await task
        except asyncio.CancelledError:
            say_aside("arco: left at once; others settle what was under way when it has been silent for 30 s")
            return EXIT_INTERRUPTED

    code = asyncio.run(main())
    if any_left():
        # Code of an asset that could not be stopped: its attempt is settled, and Python would wait for it.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code

"""Several processes tick a schedule that follows a table of others, while that table moves on and the processes die and sleep.

The table only moves forward. So each of its contents is acted upon at most once, however many look, however late whoever looked
first comes to decide; and when everything is quiet the last content was acted upon, by the run of a tick that was decided on it.
"""

from typing import Any

from arco.kernel.errors import AskHistory, Conflict, RetryLater
from arco.servo.deploy.manifest import DeployedSchedule
from arco.servo.schedule.tick_decisions import Known
from arco.servo.schedule.ticking import Schedules
from arco_sim import invariants
from arco_sim.faults import Fault, FaultProfile
from arco_sim.scenario import violate
from arco_sim.scenarios.run_log_work import SCOPE, jobs_of
from arco_sim.scenarios.schedule_ticks import PROJECT, SimRuns, runs_by_key
from arco_sim.world import Env, World

_NAME, _SOURCE = "new_orders", "shop.raw"
_ASLEEP_S = 1000.0


def _deployed(since_ms: int) -> DeployedSchedule:
    when = {"kind": "source", "sources": [_SOURCE]}
    definition: dict[str, Any] = {"when": when, "make": [], "partitions": {}, "mode": "force", "parameters": {}}
    return DeployedSchedule(name=_NAME, version="v1", since_ms=since_ms, definition=definition)


def _schedules(env: Env) -> Schedules:
    return Schedules(env.store, SCOPE, PROJECT, env.clock, env.entropy)


class SourceTicksScenario:
    name = "source_ticks"
    promise = "each content of a source has at most one tick and run, and the last one has been acted upon"
    profile = FaultProfile.of(fault_share=0.08, crash_share=0.02, stall_s=900.0)
    faults = tuple(Fault)

    async def prepare(self, world: World, env: Env) -> None:
        world.notes.update(content=1, ran=[], deployed=_deployed(env.clock.now_ms()))

    def start(self, world: World, *, small: bool) -> None:
        for number in range(2 if small else 3):
            world.spawn(f"ticker{number}", lambda env: self._tick(env, 2 if small else 6), lives=2 if small else 4)
        world.spawn("writer", lambda env: self._write(env, 1 if small else 4))

    async def _write(self, env: Env, commits: int) -> None:
        for _ in range(commits):
            await env.clock.sleep(env.entropy.fraction() * 400.0)
            env.world.notes["content"] += 1

    async def _look(self, env: Env) -> Known:
        """As the table stands when it is asked; the answer takes a while."""
        content = env.world.notes["content"]
        await env.clock.sleep(env.entropy.fraction() * 5.0)
        return Known(sources={_SOURCE: f"t/{content}"})

    async def _ticked(self, env: Env) -> int:
        runs = SimRuns(env, jobs_of(1, small=True))
        return len(await _schedules(env).tick(env.world.notes["deployed"], lambda: self._look(env), runs))

    async def _tick(self, env: Env, rounds: int) -> None:
        for _ in range(rounds):
            await env.clock.sleep(env.entropy.fraction() * 300.0)
            try:
                await self._ticked(env)
            except (AskHistory, RetryLater, Conflict):
                continue

    # Afterwards

    async def verify(self, world: World, env: Env) -> None:
        await env.clock.sleep(_ASLEEP_S)
        for _ in range(20):
            if not await self._ticked(env):
                break
        state = await _schedules(env).state(_NAME)
        content = world.notes["content"]
        if state is None or state.open:
            violate(world, invariants.PROGRESS, "a tick waits though nobody is left to carry it out")
            return
        if state.seen != {_SOURCE: f"t/{content}"}:
            violate(world, invariants.NOTHING_LOST, f"content {content} was not acted upon: {state.seen}")
        if state.decisions > content:
            violate(world, invariants.NOTHING_DOUBLED, f"{state.decisions} ticks for {content} contents")
        runs = runs_by_key(world)
        if len(runs) != state.decisions or max(runs.values()) > 1:
            violate(world, invariants.NOTHING_DOUBLED, f"{state.decisions} ticks and these runs: {dict(runs)}")

"""Several processes tick one schedule while they die, sleep, lose replies, and their clocks are set forward and back.

Every tick that is due has one run under `all`, however late; under `latest` every decision has one. In some worlds the schedule
is defined anew while it is ticked, in some it is paused for a while. At last one more process, who knows nothing but the store,
ticks until nothing waits; then runs and ticks are counted against the calendar.
"""

from collections import Counter
from typing import Any

from arco.kernel.errors import AskHistory, Conflict, RetryLater
from arco.ledger.run_entries import RunCreated, Trigger, decode_batch
from arco.servo.deploy.manifest import DeployedSchedule
from arco.servo.plan.ticks import ticks_between
from arco.servo.schedule.schedule_state import Tick
from arco.servo.schedule.starting import RunRequest, start_run
from arco.servo.schedule.ticking import Carried, Elsewhere, Ran, Schedules, nothing
from arco.servo.sdk.cron import Cron
from arco.servo.sdk.schedules import zone
from arco.storage.keys import RunLogKey, parse
from arco_sim import invariants
from arco_sim.faults import Fault, FaultProfile
from arco_sim.scenario import violate
from arco_sim.scenarios.run_log_work import SCOPE, Job, jobs_of, plan_of
from arco_sim.world import Env, World

_CRON = "*/5 * * * *"
_ZONE = "Europe/Berlin"
_TICK_MS = 300_000
PROJECT = "shop"
_NAME = "often"
_ASLEEP_S = 1000.0


def _deployed(version: str, since_ms: int, catch_up: str) -> DeployedSchedule:
    when = {"kind": "cron", "cron": _CRON, "timezone": _ZONE, "catch_up": catch_up}
    definition: dict[str, Any] = {"when": when, "make": [], "partitions": {}, "mode": "stale", "parameters": {}}
    return DeployedSchedule(name=_NAME, version=version, since_ms=since_ms, definition=definition)


def _schedules(env: Env) -> Schedules:
    return Schedules(env.store, SCOPE, PROJECT, env.clock, env.entropy)


class SimRuns:
    """Runs that take a while and do nothing; who comes second may find the first at work."""

    def __init__(self, env: Env, jobs: list[Job]) -> None:
        self._env = env
        self._plan = plan_of(jobs)

    async def carry_out(self, schedule: str, tick: Tick, key: str) -> Carried:
        env = self._env
        request = RunRequest(trigger=Trigger(tick.trigger), who=schedule, idempotency_key=key, about=PROJECT)
        started = await start_run(env.store, SCOPE, self._plan, request, env.clock, env.entropy)
        await env.clock.sleep(env.entropy.fraction() * 200.0)
        if not started.is_new and env.entropy.fraction() < 0.2:
            return Elsewhere(str(started.log.run))
        env.world.notes["ran"].append(key)
        return Ran(str(started.log.run), "succeeded")


class ScheduleTicksScenario:
    name = "schedule_ticks"
    promise = "a tick has at most one run; under `all` every tick has one, under `latest` every decision"
    profile = FaultProfile.of(fault_share=0.08, crash_share=0.02, stall_s=900.0, jump_s=1500.0)
    faults = tuple(Fault)

    async def prepare(self, world: World, env: Env) -> None:
        """A schedule that was ticked once: a definition that nobody ever looked at owes nothing when it is replaced."""
        policy, since_ms = "all" if world.seed % 2 else "latest", env.clock.now_ms() - _TICK_MS
        world.notes.update(policy=policy, since=since_ms, ran=[], paused=False)
        world.notes["deployed"] = _deployed("v1", since_ms, policy)
        await _schedules(env).decide(world.notes["deployed"])

    def start(self, world: World, *, small: bool) -> None:
        rounds = 1 if small else 4
        for number in range(2 if small else 3):
            world.spawn(f"ticker{number}", lambda env: self._tick(env, rounds), lives=2 if small else 4)
        if small:
            return
        if world.seed % 3 == 0:
            world.spawn("deployer", self._deploy)
        if world.seed % 5 == 0:
            world.notes["paused"] = True
            world.spawn("pauser", self._pause)

    async def _tick(self, env: Env, rounds: int) -> None:
        for _ in range(rounds):
            await env.clock.sleep(60.0 + env.entropy.fraction() * 700.0)
            try:
                await _schedules(env).tick(env.world.notes["deployed"], nothing, SimRuns(env, jobs_of(1, small=True)))
            except (AskHistory, RetryLater, Conflict):
                continue

    async def _deploy(self, env: Env) -> None:
        await env.clock.sleep(400.0 + env.entropy.fraction() * 1500.0)
        env.world.notes["deployed"] = _deployed("v2", env.clock.now_ms(), env.world.notes["policy"])

    async def _pause(self, env: Env) -> None:
        await env.clock.sleep(env.entropy.fraction() * 1000.0)
        await _schedules(env).pause(env.world.notes["deployed"], "somebody", "to look at it")
        await env.clock.sleep(env.entropy.fraction() * 1000.0)
        await _schedules(env).resume(_NAME)

    # Afterwards

    async def verify(self, world: World, env: Env) -> None:
        await env.clock.sleep(_ASLEEP_S)
        schedules = _schedules(env)
        await schedules.resume(_NAME)
        for _ in range(20):
            done = await schedules.tick(world.notes["deployed"], nothing, SimRuns(env, jobs_of(1, small=True)))
            if not done:
                break
        state = await schedules.state(_NAME)
        if state is None or state.open:
            violate(world, invariants.PROGRESS, "ticks wait though nobody is left to carry them out")
            return
        runs = runs_by_key(world)
        self._check_runs(world, runs)
        moments = sorted({int(key.rpartition(" ")[2]) for key in runs})
        expected = ticks_between(Cron.parse(_CRON), zone(_ZONE), world.notes["since"], state.through_ms)
        if set(moments) - set(expected):
            violate(world, invariants.OUTCOMES_TRUE, "a moment that is no tick has a run")
        if world.notes["policy"] == "all" and not world.notes["paused"] and moments != expected:
            missing = len(set(expected) - set(moments))
            violate(world, invariants.NOTHING_LOST, f"{missing} of {len(expected)} ticks have no run")
        if len(runs) != state.decisions:
            violate(world, invariants.NOTHING_LOST, f"{state.decisions} ticks were decided, and {len(runs)} have a run")

    def _check_runs(self, world: World, runs: Counter[str]) -> None:
        for key, count in runs.items():
            if count > 1:
                violate(world, invariants.NOTHING_DOUBLED, f"{count} runs of {key}")
        for moment, count in Counter(key.rpartition(" ")[2] for key in runs).items():
            if count > 1:
                violate(world, invariants.NOTHING_DOUBLED, f"the tick {moment} counts for {count} definitions")
        for key in world.notes["ran"]:
            if key not in runs:
                violate(world, invariants.NOTHING_LOST, f"the run of {key}, which ended, is not there")


def runs_by_key(world: World) -> Counter[str]:
    """The keys of all runs that were created, each as often as there are runs of it."""
    found: Counter[str] = Counter()
    for name, data in world.everything().items():
        key = parse(name)
        if isinstance(key, RunLogKey) and key.sequence == 1:
            created = decode_batch(key.run, 1, data).entries[0]
            if isinstance(created, RunCreated) and created.idempotency_key is not None:
                found[created.idempotency_key] += 1
    return found

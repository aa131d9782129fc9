"""Clients ask for runs under keys, several processes take what was asked for, one sweeps, and one watches what clients are told.

Whoever plans finds what it finds: one sees work where another sees nothing to do, as processes do that look at different moments.
Some clients take their request back. At last one more process, who knows nothing but the store, takes until nothing waits; then
runs and verdicts are counted against what was acknowledged.
"""

from collections import Counter
from dataclasses import dataclass
from functools import partial

import msgspec

from arco.kernel.errors import AskHistory, Conflict, RetryLater
from arco.kernel.ids import KeyHash
from arco.ledger.asked_runs import AskedRun, AskedRuns, Decided, request_id
from arco.ledger.run_entries import RunCreated, Trigger, decode_batch
from arco.servo.plan.document import Plan
from arco.servo.schedule.asked import Taker
from arco.servo.schedule.starting import RunRequest
from arco.servo.schedule.ticking import NothingToDo, Refused
from arco.storage.keys import RunLogKey, parse
from arco.upkeep.passes import jobs_named, upkeep_pass
from arco.upkeep.sweep import Setting
from arco_sim import invariants
from arco_sim.faults import Fault, FaultProfile
from arco_sim.scenario import violate
from arco_sim.scenarios.run_log_work import SCOPE, jobs_of, plan_of
from arco_sim.scenarios.table_commits import open_catalog
from arco_sim.world import Env, World

_PROJECT = "shop"
_ROUNDS = 3


def _asked(env: Env) -> AskedRuns:
    return AskedRuns(env.store, SCOPE, env.clock, env.entropy)


@dataclass(frozen=True, slots=True)
class _Planner:
    """Somebody with the project. What it finds differs from one look to the next."""

    env: Env

    @property
    def project(self) -> str:
        return _PROJECT

    async def plan(self, asked: AskedRun) -> Plan | NothingToDo | Refused:
        await self.env.clock.sleep(self.env.entropy.fraction() * 5.0)
        draw = self.env.entropy.fraction()
        if draw < 0.25:
            return NothingToDo()
        return Refused("there is no such asset") if draw < 0.4 else plan_of(jobs_of(1, small=True))

    def recorded_as(self, asked: AskedRun, plan: Plan) -> RunRequest:
        return RunRequest(trigger=Trigger.EVENT, who=asked.id)


class AskedRunsScenario:
    name = "asked_runs"
    promise = "a request that was acknowledged has one verdict for ever, and exactly as many runs as that says"
    profile = FaultProfile.of(fault_share=0.08, crash_share=0.03, stall_s=120.0, jump_s=60.0)
    faults = tuple(Fault)

    async def prepare(self, world: World, env: Env) -> None:
        world.notes.update(acknowledged={}, told={})

    def start(self, world: World, *, small: bool) -> None:
        for number in range(1 if small else 3):
            world.spawn(f"client{number}", partial(self._ask, number), lives=2 if small else 4)
        for number in range(2):
            world.spawn(f"taker{number}", lambda env: self._take(env, 1 if small else _ROUNDS), lives=2 if small else 4)
        if not small:
            world.spawn("sweeper", self._sweep, lives=3)
            world.spawn("watcher", self._watch, lives=2)

    # Who is there

    async def _ask(self, number: int, env: Env) -> None:
        """The same request until it is acknowledged, and sometimes once more; a client that died begins again."""
        key = f"key {number % 2} of {env.world.seed}"
        wanted = AskedRun(id=request_id(key), project=_PROJECT, make=("orders",), who=f"client{number}")
        requests = _asked(env)
        for _ in range(4):
            try:
                found = await requests.ask(msgspec.structs.replace(wanted, asked_ms=env.clock.now_ms()))
            except (AskHistory, RetryLater):
                await env.clock.sleep(1.0)
                continue
            env.world.notes["acknowledged"][found.id] = found
            if env.entropy.fraction() < 0.2:
                await self._withdraw(env, found)
            if env.entropy.fraction() < 0.5:
                return
            await env.clock.sleep(env.entropy.fraction() * 60.0)

    async def _withdraw(self, env: Env, asked: AskedRun) -> None:
        try:
            verdict = await _asked(env).withdraw(asked, "client")
        except (AskHistory, RetryLater):
            return
        _tell(env.world, asked.id, verdict.decided)

    async def _take(self, env: Env, rounds: int) -> None:
        taker = Taker(_asked(env), _Planner(env), "taker")
        for _ in range(rounds):
            await env.clock.sleep(env.entropy.fraction() * 20.0)
            try:
                await taker.take()
            except (AskHistory, RetryLater, Conflict):
                continue

    async def _sweep(self, env: Env) -> None:
        for _ in range(_ROUNDS):
            await env.clock.sleep(env.entropy.fraction() * 30.0)
            try:
                await upkeep_pass(Setting(open_catalog(env).parts), jobs_named(("asked",)))
            except (AskHistory, RetryLater, Conflict):
                continue

    async def _watch(self, env: Env) -> None:
        for _ in range(3 * _ROUNDS):
            await env.clock.sleep(env.entropy.fraction() * 20.0)
            for request in list(env.world.notes["acknowledged"]):
                try:
                    _, verdict = await _asked(env).find(KeyHash(request))
                except RetryLater:
                    continue
                if verdict is not None:
                    _tell(env.world, request, verdict.decided)

    # Afterwards

    async def verify(self, world: World, env: Env) -> None:
        await env.clock.sleep(200.0)
        for _ in range(2):
            await Taker(_asked(env), _Planner(env), "last").take()
        runs = _runs(world)
        for request in world.notes["acknowledged"]:
            _, verdict = await _asked(env).find(KeyHash(request))
            if verdict is None:
                violate(world, invariants.NOTHING_LOST, f"nobody took request {request}, which was acknowledged")
                continue
            told = world.notes["told"].get(request, set())
            if told - {verdict.decided}:
                violate(
                    world, invariants.OUTCOMES_TRUE, f"request {request} is {verdict.decided}, and was told to be {told}"
                )
            wanted = 1 if verdict.decided is Decided.STARTED else 0
            if runs[request] < wanted:
                violate(world, invariants.NOTHING_LOST, f"request {request} is started, and has no run")
        for request, count in runs.items():
            _, verdict = await _asked(env).find(KeyHash(request))
            if count > 1:
                violate(world, invariants.NOTHING_DOUBLED, f"{count} runs of request {request}")
            if verdict is None or verdict.decided is not Decided.STARTED:
                violate(world, invariants.OUTCOMES_TRUE, f"request {request} has a run, and its verdict is {verdict}")


def _tell(world: World, request: str, decided: Decided) -> None:
    world.notes["told"].setdefault(request, set()).add(decided)


def _runs(world: World) -> Counter[str]:
    """The requests that have runs, each as often as there are runs of it."""
    found: Counter[str] = Counter()
    for name, data in world.everything().items():
        key = parse(name)
        if isinstance(key, RunLogKey) and key.sequence == 1:
            created = decode_batch(key.run, 1, data).entries[0]
            if isinstance(created, RunCreated):
                found[created.who] += 1
    return found

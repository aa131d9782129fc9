"""Three schedulers and five workers on one workspace die, sleep for ten leases and more, lose replies, and their clocks jump.

Every process has whatever runs are open in hand, as the real commands do, and knows nothing but the store. In half of the worlds
workers run only what a scheduler signed, and somebody writes envelopes of his own into the logs, and runs of his own beside them;
in most, tasks share a pool. At last one more process brings everything to its end; then publishes, slots and notes are counted.
"""

import asyncio
from dataclasses import dataclass, field

import msgspec

from arco.kernel.errors import ArcoError, AskHistory, RetryLater
from arco.kernel.ids import RunId, UlidSource
from arco.kernel.secret import Secret
from arco.ledger.appender import Appender
from arco.ledger.run_entries import RunCreated, Seal, TaskClaimed, TaskDispatched, TaskEnvelope, Trigger
from arco.ledger.run_log import RunLog, write_plan
from arco.ledger.run_outline import Outline
from arco.ledger.run_state import RunState, TaskStatus
from arco.quality.gates import Action
from arco.servo.schedule.crew import Crew, Refused, Ways
from arco.servo.schedule.driver import Driver, Ground, Options
from arco.servo.schedule.envelopes import EnvelopeKeys, Signer
from arco.servo.schedule.executor import TaskPolicy
from arco.servo.schedule.hand_over import Looking
from arco.servo.schedule.open_runs import OpenRun, OpenRunsNote
from arco.servo.schedule.pools import Holding, Need, Pools
from arco.servo.schedule.reserving import is_over_elsewhere
from arco.servo.schedule.seals import run_refusal, sealed_beginning
from arco.servo.schedule.slots import Slots
from arco.servo.schedule.starting import RunRequest, Started, note_run, open_run, start_run
from arco.servo.sdk.definitions import Retry
from arco_sim import invariants
from arco_sim.faults import Fault, FaultProfile
from arco_sim.scenario import violate
from arco_sim.scenarios.run_log_work import SCOPE, Job, plan_of
from arco_sim.scenarios.workers_work import ObjectPublisher, ObjectSettler, published
from arco_sim.world import Env, World

_LEASE_S = 12.0
_LOOKS_EVERY_S = 45.0
_SIGNED_S = 60.0
_SHIFT_S = 400.0
_LAST_SHIFT_S = 6000.0
_ASLEEP_S = 5000.0
_PROJECT = "shop"
_KEYS = EnvelopeKeys((Secret("k" * 40),))
_KEY_ID = _KEYS.seal("").key_id
_FORGED = Secret("f" * 40)
_POOL = "warehouse"


class _Nobody:
    """Nobody is told: the store says it all."""

    def took(self, run: str, tasks: int) -> None:
        return

    def refused(self, run: str, why: str) -> None:
        return

    def ended(self, run: str, state: RunState) -> None:
        return

    def troubled(self, what: str, error: ArcoError) -> None:
        return


@dataclass(frozen=True, slots=True)
class _NotingSigner(Signer):
    """Signs, and lets the judge know what was signed, and until when."""

    signed: dict[tuple[str, str, int], int] = field(default_factory=dict)

    def sign(self, task: str, attempt: int, now_ms: int) -> TaskEnvelope:
        made = Signer.sign(self, task, attempt, now_ms)
        mark = (self.run, task, attempt)
        self.signed[mark] = max(made.expires_ms, self.signed.get(mark, 0))
        return made


class WorkersScenario:
    name = "workers"
    promise = "a task is published once, no task is lost, no slot leaks, and a worker with a key runs only what was signed"
    profile = FaultProfile.of(
        fault_share=0.05,
        crash_share=0.012,
        stall_s=10 * _LEASE_S,
        longer_stalls_s=(900.0,),
        jump_s=240.0,
        wrong_s_max=480.0,
    )
    faults = tuple(Fault)

    async def prepare(self, world: World, env: Env) -> None:
        world.notes.update(signed={}, runs=set(), forged=set(), is_keyed=world.seed % 2 == 0, has_pool=world.seed % 3 != 0)

    def start(self, world: World, *, small: bool) -> None:
        runs = 1 if small or world.seed % 8 else 2
        jobs = [Job("a", (), Action.CONTINUE), Job("a", (0,) if world.seed % 5 == 0 else (), Action.CONTINUE)]
        world.notes.update(small=small, wanted=runs, jobs=jobs)
        world.spawn("starter", lambda env: self._start(env, runs), lives=3)
        for number in range(1 if small else 3):
            world.spawn(f"scheduler{number}", lambda env: self._serve(env, works=False), lives=2)
        for number in range(1 if small else 5):
            world.spawn(f"worker{number}", lambda env: self._serve(env, works=True), lives=2)
        if world.notes["is_keyed"] and not small:
            world.spawn("forger", self._forge, lives=1)
            world.spawn("forger of runs", self._forge_run, lives=1)

    async def _start(self, env: Env, runs: int) -> None:
        keys = _KEYS if env.world.notes["is_keyed"] else None
        for number in range(runs):
            request = RunRequest(max_parallelism=2, idempotency_key=f"run {number}", project=_PROJECT, keys=keys)
            while True:
                try:
                    plan = plan_of(env.world.notes["jobs"])
                    started = await start_run(env.store, SCOPE, plan, request, env.clock, env.entropy)
                    env.world.notes["runs"].add(started.log.run)
                    break
                except (AskHistory, RetryLater):
                    await env.clock.sleep(5.0)

    async def _serve(self, env: Env, *, works: bool) -> None:
        """One shift of a process: until nothing is open, or for so long. Some begin when others have ended."""
        await env.clock.sleep(env.entropy.fraction() * 150.0)
        while not env.world.notes["runs"]:
            await env.clock.sleep(5.0)
            if env.clock.monotonic_s() > _SHIFT_S:
                return
        crew, appender = self._crew(env, hands_out=not works, slots=Slots(2) if works else 0)
        going = asyncio.get_running_loop().create_task(_until(env, crew, _SHIFT_S))
        try:
            await crew.serve(once=True)
        finally:
            going.cancel()
        await appender.close()

    def _crew(self, env: Env, *, hands_out: bool, slots: Slots | int) -> tuple[Crew, Appender]:
        appender = Appender(env.store, SCOPE, env.clock, env.entropy)
        ground = Ground(env.store, ObjectSettler(env), appender, env.clock, env.entropy)

        async def take(_note: OpenRun, started: Started) -> Driver | Refused:
            keys, created = _KEYS if env.world.notes["is_keyed"] else None, started.log.state.run.created
            if (why := run_refusal(keys, SCOPE, str(started.log.run), started.plan, created)) is not None:
                return Refused(why)
            signer = None if keys is None else _signer(env, started)
            needs = _needs(env.world, started)
            options = Options(
                policies={task.id: TaskPolicy(Retry(attempts=3, pause_s=2.0)) for task in started.plan.spec.tasks},
                slots=slots,
                needs=needs,
                lease_s=_LEASE_S,
                poll_s=_LOOKS_EVERY_S,
                hands_out=signer if hands_out else None,
                asks_for=signer if slots else None,
            )
            return Driver(ground, started.log, started.plan, ObjectPublisher(env, signer, needs), options)

        ways = Ways(
            store=env.store,
            scope=SCOPE,
            project=_PROJECT,
            clock=env.clock,
            entropy=env.entropy,
            hand_over=Looking(_LOOKS_EVERY_S),
            told=_Nobody(),
        )
        return Crew(ways, take), appender

    async def _forge(self, env: Env) -> None:
        """Writes envelopes into logs without the key, some of them under its name."""
        await env.clock.sleep(15.0 + env.entropy.fraction() * 40.0)
        for run in sorted(env.world.notes["runs"]):
            opened = await open_run(env.store, SCOPE, run, env.clock, env.entropy)
            forged = Signer(EnvelopeKeys((_FORGED,)), SCOPE, run, opened.plan.fingerprint, "c", 10**6)
            for task, its in opened.log.state.tasks.items():
                if its.status is not TaskStatus.READY:
                    continue
                made = forged.sign(task, its.attempt + 1, env.clock.now_ms())
                if env.entropy.fraction() < 0.5:
                    # The name of the right key, and the signature of another.
                    made = msgspec.structs.replace(made, key_id=_KEY_ID)
                await opened.log.append([TaskDispatched(task=task, attempt=its.attempt + 1, envelope=made)])

    async def _forge_run(self, env: Env) -> None:
        """Writes a run as one is started: without a seal, with another's key, or with what a true run has."""
        await env.clock.sleep(15.0 + env.entropy.fraction() * 40.0)
        true = sorted(env.world.notes["runs"])
        theirs = (await open_run(env.store, SCOPE, true[0], env.clock, env.entropy)) if true else None
        plan, run = plan_of(env.world.notes["jobs"]), RunId(UlidSource(env.clock, env.entropy).next())
        env.world.notes["forged"].add(str(run))
        created = RunCreated(
            plan_id=plan.fingerprint, tasks=len(plan.spec.tasks), trigger=Trigger.MANUAL, who="", max_parallelism=2
        )
        drawn = env.entropy.fraction()
        if drawn < 0.4:
            created = sealed_beginning(EnvelopeKeys((_FORGED,)), SCOPE, run, plan, created)
            named = msgspec.structs.replace(created.seal or Seal(key_id="", signature=""), key_id=_KEY_ID)
            created = msgspec.structs.replace(created, seal=named) if drawn < 0.2 else created
        elif drawn < 0.7 and theirs is not None and theirs.log.state.run.created is not None:
            created = theirs.log.state.run.created
        stored = await write_plan(env.store, SCOPE, run, plan.encode(), env.clock, env.entropy)
        request = RunRequest(project=_PROJECT)
        await note_run(env.store, SCOPE, run, plan, request, env.clock, env.entropy)
        await RunLog(env.store, SCOPE, run, Outline.of_plan(stored), env.clock, env.entropy).append([created])

    # Afterwards

    async def verify(self, world: World, env: Env) -> None:
        runs = await self._open_runs(world, env)
        await self._finish(env)
        await self._check_pool(world, env, sorted(runs))
        await env.clock.sleep(_ASLEEP_S)
        await self._finish(env)  # what slept may have noted what had ended by then
        there = published(world.everything())
        for run, task, _ in there:
            if run in world.notes["forged"]:
                violate(world, invariants.ONLY_SIGNED, f"{task} of a run that nobody with the key started was published")
        for run in sorted(runs):
            log = (await open_run(env.store, SCOPE, run, env.clock, env.entropy)).log
            _check_run(world, run, log.state, there)
        left = {one.run for one in await OpenRunsNote(env.store, SCOPE, env.clock, env.entropy).read()}
        if left & set(map(str, runs)):  # one that never began may be begun yet
            violate(world, invariants.NO_LITTER, f"{len(left)} runs that have ended are noted as open")

    async def _finish(self, env: Env) -> None:
        crew, appender = self._crew(env, hands_out=True, slots=Slots(4))
        going = asyncio.get_running_loop().create_task(_until(env, crew, _LAST_SHIFT_S))
        await crew.serve(once=True)
        going.cancel()
        await appender.close()

    async def _open_runs(self, world: World, env: Env) -> set[RunId]:
        """Every run that was begun, whoever knows of it; each of them is noted, or it has ended."""
        begun = {name.split("/")[4] for name in world.everything() if name.endswith("/log/00000001.json")}
        begun -= world.notes["forged"]
        if set(map(str, world.notes["runs"])) - begun:
            violate(world, invariants.NOTHING_LOST, "a run that was started is not there")
        if len(begun) > world.notes["wanted"]:
            violate(world, invariants.NOTHING_DOUBLED, f"{world.notes['wanted']} keys started {len(begun)} runs")
        return {RunId(one) for one in begun}

    async def _check_pool(self, world: World, env: Env, runs: list[RunId]) -> None:
        """After the end, whoever comes gets all of it, whatever the dead have left behind and however long they sleep."""
        if not world.notes["has_pool"] or not runs:
            return
        log = (await open_run(env.store, SCOPE, runs[0], env.clock, env.entropy)).log

        async def over(holding: Holding) -> bool:
            return await is_over_elsewhere(env.store, SCOPE, log, holding, env.clock, env.entropy)

        pools = Pools(env.store, SCOPE, "", "last", _LEASE_S, env.clock, env.entropy, over)
        if not await pools.take("task", 1, [Need(_POOL, 1.0, 1.0)]):
            violate(world, invariants.POOLS_HOLD, "a slot of the pool leaked")


async def _until(env: Env, crew: Crew, seconds: float) -> None:
    await env.clock.sleep(seconds)
    crew.stop()


def _signer(env: Env, started: Started) -> Signer:
    plan_id, signed = started.plan.spec.fingerprint(), env.world.notes["signed"]
    return _NotingSigner(_KEYS, SCOPE, str(started.log.run), plan_id, "c", _SIGNED_S, signed)


def _needs(world: World, started: Started) -> dict[str, tuple[Need, ...]]:
    if not world.notes["has_pool"]:
        return {}
    return {task.id: (Need(_POOL, 1.0),) for task in started.plan.spec.tasks}


def _check_run(world: World, run: RunId, state: RunState, there: list[tuple[str, str, int]]) -> None:
    for one in state.ignored:
        kind = "a claim" if isinstance(one.entry, TaskClaimed) else "an entry"
        violate(world, invariants.VALID_LOG, f"entry {one.sequence}: {kind} does not count: {one.reason}")
    if not state.is_finished:
        violate(world, invariants.PROGRESS, f"run {run} did not finish")
    for task, its in state.tasks.items():
        mine = [attempt for of, name, attempt in there if (of, name) == (str(run), task)]
        if its.status is TaskStatus.SUCCEEDED and not mine:
            violate(world, invariants.NOTHING_LOST, f"{task} succeeded, and its output is not there")
        if its.status is not TaskStatus.SUCCEEDED and mine:
            violate(world, invariants.OUTCOMES_TRUE, f"{task} is recorded as {its.status}, and attempt {mine[0]} published")
        if len(mine) > 1:
            violate(world, invariants.PUBLISHED_ONCE, f"{task} was published {len(mine)} times")
        if its.status is TaskStatus.SUCCEEDED and mine and mine != [its.attempt]:
            violate(world, invariants.NO_FENCED_WRITE, f"{task} ended with attempt {its.attempt}, {mine[0]} published")
        if its.status is TaskStatus.PENDING:
            violate(world, invariants.NOTHING_LOST, f"{task} was never run")

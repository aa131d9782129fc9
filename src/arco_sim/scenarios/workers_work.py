"""What the tasks of the workers' scenario do: they take their time, and publish by creating one object.

A publish is one object created only if absent, named by its key; settling creates the same object with another word in it. So a
publish lands or is dead, and the objects tell who published what, however often. How real tables do it is tried elsewhere.
"""

from arco.catalog.settling import DidLand, NeverLands, Settled
from arco.kernel.errors import Fenced, OutcomeUnknown, Unavailable
from arco.kernel.ids import RunId
from arco.ledger.run_entries import OutputStaged
from arco.quality.gates import Action
from arco.servo.plan.document import PlannedTask
from arco.servo.schedule.envelopes import Signer
from arco.servo.schedule.executor import Attempt, Commit, Done, Outcome, Output
from arco.servo.schedule.pools import Need, pool_object
from arco.storage.port import Absent, Landed, Lost, Unknown
from arco.storage.readback import put_settled
from arco_sim import invariants
from arco_sim.scenario import violate
from arco_sim.scenarios.run_log_work import SCOPE
from arco_sim.world import Env

PUBLISHED = "t/w/published/"
_LANDED, _DEAD = "landed", "dead"
_CLOCK_JUMPS_MS = 481_000
"""How far a clock may be set between the moment that a worker looks at an envelope and the first line of the task."""


async def _create(env: Env, key: str, word: str, who: str) -> str:
    """Create the object of a key with a word; the word that stands there."""
    body = f"{word} {who} {env.incarnation} {env.entropy.token_bytes(6).hex()}".encode()
    match await put_settled(env.store, PUBLISHED + key, body, Absent(), clock=env.clock, entropy=env.entropy):
        case Landed():
            return word
        case Unknown(reason):
            raise OutcomeUnknown(f"{key} may be published: {reason}")
        case Lost():
            found = await env.store.get(PUBLISHED + key)
            if found is None:
                raise Unavailable(f"{key} was taken and is gone")
            return found.data.decode().partition(" ")[0]


class ObjectSettler:
    """Settles publishes that are objects."""

    def __init__(self, env: Env) -> None:
        self._env = env

    async def settle(self, run: RunId, staged: OutputStaged, reason: str) -> Settled:
        if staged.publish is None:
            return NeverLands()
        found = await _create(self._env, staged.publish.key, _DEAD, f"{staged.task} {reason}")
        return DidLand(None) if found == _LANDED else NeverLands()


class ObjectPublisher:
    """Executes for one driver; looks at what a worker must have made sure of before it runs anything."""

    def __init__(self, env: Env, signer: Signer | None, needs: dict[str, tuple[Need, ...]]) -> None:
        self._env = env
        self._signer = signer
        self._needs = needs

    async def run(self, task: PlannedTask, attempt: Attempt) -> Outcome:
        env = self._env
        self._look_at_envelope(task.id, attempt)
        self._look_at_pools(task.id, attempt)
        drawn = env.entropy.fraction
        await env.clock.sleep(drawn() * 12.0)
        if drawn() < 0.1:
            raise Unavailable("the source did not answer")
        ticket = await attempt.stage(Output(action=Action.CONTINUE, commit=Commit("publish")))
        await env.clock.sleep(drawn() * 5.0)
        if await _create(env, ticket.key, _LANDED, f"{attempt.run} {attempt.task} {attempt.number}") != _LANDED:
            raise Fenced("this attempt is over")
        return Done()

    def _look_at_envelope(self, task: str, attempt: Attempt) -> None:
        """What runs was signed by a scheduler for this very attempt, and not too long ago. Looking is no step of the story."""
        world, now_ms = self._env.world, self._env.clock.now_ms()
        if self._signer is None:
            return
        expires_ms = world.notes["signed"].get((str(attempt.run), task, attempt.number))
        if expires_ms is None:
            violate(world, invariants.ONLY_SIGNED, f"attempt {attempt.number} of {task} runs, and nobody signed it")
        elif now_ms >= expires_ms + _CLOCK_JUMPS_MS:
            violate(world, invariants.ONLY_SIGNED, f"attempt {attempt.number} of {task} was signed until {expires_ms}")

    def _look_at_pools(self, task: str, attempt: Attempt) -> None:
        """A pool is never overdrawn, and nobody has two shares of one attempt."""
        env = self._env
        for need in self._needs.get(task, ()):
            pool = pool_object(env.store, SCOPE, need.pool, env.clock, env.entropy)
            found = env.world.stored(pool.key)
            held = None if found is None else pool._decode(found)
            shares = () if held is None else held.value.holdings
            if sum(one.units for one in shares) > need.size:
                violate(
                    env.world, invariants.POOLS_HOLD, f"{len(shares)} shares of pool {need.pool}, which has {need.size:g}"
                )
            marks = [(one.run, one.task, one.attempt, one.worker) for one in shares]
            if len(marks) != len(set(marks)):
                violate(env.world, invariants.POOLS_HOLD, f"an attempt has two shares of pool {need.pool}")


def published(objects: dict[str, bytes]) -> list[tuple[str, str, int]]:
    """Run, task and attempt of everything that landed."""
    words = (data.decode().split() for name, data in objects.items() if name.startswith(PUBLISHED))
    return [(one[1], one[2], int(one[3])) for one in words if one[0] == _LANDED]

"""Several who follow one ledger, dying, stalling for longer than their turns, and coming back; and a lease that got lost.

Of those who follow one folds, and whoever comes after it takes over. In the end everything is folded, by whoever is left and
without anybody's help; and along the chain of a head epochs only grow: who stalled past its turn publishes nothing after its
successor has.
"""

from arco.fold.folding import Folding
from arco.fold.following import Following
from arco.fold.heads import Heads
from arco.fold.passes import Pass
from arco.kernel.errors import ArcoError, AskHistory, Refresh, RetryLater
from arco.kernel.limits import FOLD_LEASE_S
from arco.ledger.appender import Appender
from arco.ledger.drafts import Draft
from arco.storage.keys import Domain, Head
from arco_sim import invariants
from arco_sim.faults import Fault, FaultProfile
from arco_sim.scenario import violate
from arco_sim.scenarios.fold import Known
from arco_sim.scenarios.fold_audit import FoldAudit
from arco_sim.scenarios.fold_work import HAPPENED, SCOPE, PlainWork
from arco_sim.world import Env, World

HEADS = (Head.ICEBERG, Head.SEARCH)
_TRIES_MAX = 8
_LONG_AGO = 5
_LEASES = 20


class FoldTurnsScenario:
    name = "fold_turns"
    promise = (
        "of those who follow a ledger one folds; another takes over, and who had its turn before publishes nothing after it"
    )
    profile = FaultProfile.of(fault_share=0.05, crash_share=0.01, stall_s=4 * FOLD_LEASE_S, lingers=True)
    faults = tuple(Fault)

    async def prepare(self, world: World, env: Env) -> None:
        """In some worlds there was a fold before, and its lease is gone."""
        world.notes["known"] = Known()
        if world.seed % 2:
            await self._append(env, "before")
            folding = _folding(env)
            folding.epoch = _LONG_AGO
            for head in HEADS:
                await folding.catch_up(head)

    def start(self, world: World, *, small: bool) -> None:
        world.spawn("writer", lambda env: self._write(env, 1 if small else 8))
        for number in range(2 if small else 3):
            world.spawn(f"follower{number}", lambda env: self._follow(env, 2 if small else 14), lives=3)

    async def _write(self, env: Env, rounds: int) -> None:
        for number in range(rounds):
            await self._append(env, f"{env.incarnation}/{number}")
            await env.clock.sleep(12.0)

    async def _append(self, env: Env, label: str) -> None:
        appender = Appender(env.store, SCOPE, env.clock, env.entropy)
        data = {"label": label, "value": label, "thing": f"thing{len(label) % 3}"}
        for _ in range(_TRIES_MAX):
            try:
                await appender.append(Domain.ICEBERG, [Draft(type=HAPPENED, source="sim", data=data, idempotencykey=label)])
            except (AskHistory, RetryLater):
                await env.clock.sleep(5.0)
                continue
            env.world.notes["known"].acknowledged.add(label)
            break
        await appender.close()

    async def _follow(self, env: Env, looks: int) -> None:
        following = Following(_folding(env), 10.0, lambda _done: None)
        for _ in range(looks):
            _judge(env, await following.look())
            await env.clock.sleep(4.0 + 3.0 * env.world.choices.below(4))

    async def verify(self, world: World, env: Env) -> None:
        """Who comes now waits for its turn, while others follow and then as long as a lease lasts, and folds what is left."""
        folding = _folding(env)
        following = Following(folding, 10.0, lambda _done: None)
        done = await following.look()
        for _ in range(_LEASES):
            if done is None:
                await env.clock.sleep(1.1 * FOLD_LEASE_S)
                done = await following.look()
        if not isinstance(done, Pass) or done.failed:
            violate(world, invariants.PROGRESS, f"nobody folds any more: {done}")
            return
        try:
            await FoldAudit(world, env, folding).check(HEADS)
            for head in HEADS:
                await _check_epochs(world, folding.heads, head)
        except ArcoError as error:
            violate(world, invariants.UNEXPECTED, f"what is stored cannot be read: {error.one_line()}")


async def _check_epochs(world: World, heads: Heads, head: Head) -> None:
    manifest = (await heads.read(head)).manifest
    while manifest is not None and manifest.previous is not None:
        before = await heads.manifest(head, manifest.previous)
        if before.epoch > manifest.epoch:
            stands = f"{head} {manifest.sequence} of epoch {manifest.epoch} stands on one of epoch {before.epoch}"
            violate(world, invariants.NO_FENCED_WRITE, stands)
        manifest = before


def _judge(env: Env, done: Pass | ArcoError | None) -> None:
    """The store and others may be in the way; anything else is a finding."""
    errors = [done] if isinstance(done, ArcoError) else list(done.failed.values()) if done is not None else []
    for error in errors:
        if not isinstance(error, RetryLater | AskHistory | Refresh):
            violate(env.world, invariants.UNEXPECTED, f"{env.name}: {error.one_line()}")


def _folding(env: Env) -> Folding:
    return Folding(Heads(env.store, SCOPE, env.clock, env.entropy), PlainWork(env))

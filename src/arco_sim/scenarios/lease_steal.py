"""Holders of a lease write to one state object; some stall for ten leases and wake up believing they still hold it."""

from typing import Any

from arco.kernel.errors import ArcoError, Fenced
from arco.kernel.ids import HolderId, UlidSource
from arco.storage.cas import CasObject, Held, Overtaken, SwapOutcome, Swung
from arco.storage.lease import Lease
from arco.storage.port import Lost, Unknown
from arco_sim import invariants
from arco_sim.faults import Fault, FaultProfile
from arco_sim.scenario import violate
from arco_sim.world import Env, World

STATE = "t/w/state.json"
LEASE = "t/w/lease.json"
TTL_S = 30.0

Entry = tuple[int, str]


class EntriesCodec:
    format = "sim.entries"

    def encode(self, value: tuple[Entry, ...]) -> tuple[int, dict[str, Any]]:
        return 1, {"entries": [list(entry) for entry in value]}

    def decode(self, format_version: int, fields: dict[str, Any]) -> tuple[Entry, ...]:
        return tuple((entry[0], entry[1]) for entry in fields["entries"])


class LeaseSteal:
    name = "lease_steal"
    promise = "after a new holder has written, nothing of an older holder lands, and no acknowledged entry is lost"
    profile = FaultProfile.of(fault_share=0.10, crash_share=0.02, stall_s=10 * TTL_S)
    faults = tuple(Fault)

    async def prepare(self, world: World, env: Env) -> None:
        """Nothing is there at first."""

    def start(self, world: World, *, small: bool) -> None:
        world.notes.update(acknowledged=set(), refused=set(), epochs={})
        holders, rounds = (2, 1) if small else (3, 3)
        for number in range(holders):
            world.spawn(f"holder{number}", lambda env: self._hold(env, rounds))

    async def _hold(self, env: Env, rounds: int) -> None:
        holder = HolderId(UlidSource(env.clock, env.entropy).next())
        lease = Lease(env.store, LEASE, holder, env.clock, env.entropy, ttl_s=TTL_S)
        state = CasObject(env.store, STATE, EntriesCodec(), env.clock, env.entropy)
        for number in range(rounds):
            try:
                await self._tenure(env, lease, state, number)
            except ArcoError:
                await env.clock.sleep(TTL_S / 3)

    async def _tenure(self, env: Env, lease: Lease, state: CasObject[tuple[Entry, ...]], number: int) -> None:
        tenure = await lease.try_acquire()
        if tenure is None:
            await env.clock.sleep(TTL_S / 2)
            return
        owners = env.world.notes["epochs"].setdefault(tenure.epoch, str(env.incarnation))
        if owners != str(env.incarnation):
            violate(
                env.world, invariants.NO_FENCED_WRITE, f"epoch {tenure.epoch} was given to {owners} and {env.incarnation}"
            )
        for part in range(2):
            await self._enter(env, state, tenure.epoch, f"{env.incarnation}/{number}/{part}")
        await lease.release(tenure)

    async def _enter(self, env: Env, state: CasObject[tuple[Entry, ...]], epoch: int, label: str) -> None:
        """Write one entry, on what was read; tell what is known of it."""
        base = await state.read()
        try:
            outcome = await self._swing(state, base, (epoch, label))
        except Fenced:
            env.world.notes["refused"].add(label)
            raise
        match outcome:
            case Swung() | Overtaken():
                env.world.notes["acknowledged"].add(label)
            case Lost():
                env.world.notes["refused"].add(label)
            case Unknown():
                pass

    async def _swing(
        self, state: CasObject[tuple[Entry, ...]], base: Held[tuple[Entry, ...]] | None, entry: Entry
    ) -> SwapOutcome[tuple[Entry, ...]]:
        if base is None:
            return await state.create((entry,), epoch=entry[0])
        return await state.swap(base, (*base.value, entry), epoch=entry[0])

    async def verify(self, world: World, env: Env) -> None:
        held = await CasObject(env.store, STATE, EntriesCodec(), env.clock, env.entropy).read()
        entries = () if held is None else held.value
        epochs = [epoch for epoch, _ in entries]
        if epochs != sorted(epochs):
            violate(world, invariants.NO_FENCED_WRITE, f"an older epoch wrote after a newer one: {epochs}")
        labels = [label for _, label in entries]
        missing = sorted(world.notes["acknowledged"] - set(labels))
        if missing:
            violate(world, invariants.NOTHING_LOST, f"{missing[0]} was acknowledged and is not there")
        false = sorted(world.notes["refused"] & set(labels))
        if false:
            violate(world, invariants.OUTCOMES_TRUE, f"{false[0]} was reported as lost and is there")
        doubled = sorted({label for label in labels if labels.count(label) > 1})
        if doubled:
            violate(world, invariants.NOTHING_DOUBLED, f"{doubled[0]} is there more than once")

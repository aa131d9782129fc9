"""Writers that add to one compare-and-swap counter while replies are lost.

The body is only a number, so nothing but the header's write ids tells one increment from another: read-back that trusts the
reply, the head alone, or equal bytes is found out by the sum.
"""

from typing import Any

from arco.kernel.errors import ArcoError, OutcomeUnknown
from arco.storage.cas import CasObject, Held
from arco_sim import invariants
from arco_sim.faults import ROUGH, Fault
from arco_sim.models import Counter
from arco_sim.scenario import check_linearizable, violate
from arco_sim.world import Env, World

KEY = "t/w/counter.json"


class NumberCodec:
    format = "sim.number"

    def encode(self, value: int) -> tuple[int, dict[str, Any]]:
        return 1, {"value": value}

    def decode(self, format_version: int, fields: dict[str, Any]) -> int:
        return int(fields["value"])


def counter(env: Env) -> CasObject[int]:
    return CasObject(env.store, KEY, NumberCodec(), env.clock, env.entropy)


class CasCounter:
    name = "cas_counter"
    promise = "a counter that many writers swing shows every acknowledged increment exactly once"
    profile = ROUGH
    faults = tuple(Fault)

    def change(self, current: Held[int] | None) -> int:
        return 1 if current is None else current.value + 1

    async def prepare(self, world: World, env: Env) -> None:
        """Nothing is there at first."""

    def start(self, world: World, *, small: bool) -> None:
        world.notes.update(acknowledged=0, in_doubt=0)
        writers, each = (2, 2) if small else (4, 5)
        for number in range(writers):
            world.spawn(f"writer{number}", lambda env: self._write(env, each))
        if not small:
            world.spawn("reader", lambda env: self._read(env, 4))

    async def _write(self, env: Env, times: int) -> None:
        shared = counter(env)
        notes = env.world.notes
        for _ in range(times):
            # Counted before the first step: a writer that dies in between leaves one increment in doubt.
            notes["in_doubt"] += 1
            call = env.call(KEY, "increment")
            try:
                await shared.update(self.change)
            except OutcomeUnknown:
                continue
            except ArcoError:
                # Every other error says that nothing happened.
                call.never_happened()
                notes["in_doubt"] -= 1
                continue
            notes["in_doubt"] -= 1
            notes["acknowledged"] += 1
            call.returns("ok")

    async def _read(self, env: Env, times: int) -> None:
        for _ in range(times):
            await env.clock.sleep(0.1)
            call = env.call(KEY, "read")
            try:
                held = await counter(env).read()
            except ArcoError:
                call.never_happened()
                continue
            call.returns(0 if held is None else held.value)

    async def verify(self, world: World, env: Env) -> None:
        call = env.call(KEY, "read")
        final = await counter(env).read()
        value = 0 if final is None else final.value
        call.returns(value)
        acknowledged, in_doubt = world.notes["acknowledged"], world.notes["in_doubt"]
        if value < acknowledged:
            violate(world, invariants.NOTHING_LOST, f"{acknowledged} increments acknowledged, the counter shows {value}")
        if value > acknowledged + in_doubt:
            violate(
                world,
                invariants.NOTHING_DOUBLED,
                f"{acknowledged} increments acknowledged and {in_doubt} in doubt, the counter shows {value}",
            )
        check_linearizable(world, Counter())


class CasFlip(CasCounter):
    """The same with a body that returns to what it was: only the header keeps a late write from matching it."""

    name = "cas_flip"
    promise = "a switch that many writers flip ends where the acknowledged flips leave it, though its states repeat"

    def change(self, current: Held[int] | None) -> int:
        return 1 if current is None else 1 - current.value

    async def verify(self, world: World, env: Env) -> None:
        final = await counter(env).read()
        value = 0 if final is None else final.value
        acknowledged = world.notes["acknowledged"]
        if not world.notes["in_doubt"] and value != acknowledged % 2:
            violate(world, invariants.NOTHING_DOUBLED, f"{acknowledged} flips acknowledged, and the switch is at {value}")

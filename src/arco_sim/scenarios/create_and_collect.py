"""Writers append numbered records while a collector folds and deletes old ones, and everybody may stall."""

from dataclasses import dataclass
from typing import Any

from arco.kernel.errors import ArcoError
from arco.storage.cas import CasObject
from arco.storage.port import Landed, Lost, Unknown
from arco.storage.sequence import Sequence
from arco_sim import invariants
from arco_sim.faults import Fault, FaultProfile
from arco_sim.scenario import violate
from arco_sim.world import Env, World

FOLDED = "t/w/folded.json"
RECORDS = "t/w/records/"


def record_name(number: int) -> str:
    return f"{RECORDS}{number:08}.json"


@dataclass(frozen=True, slots=True)
class Folded:
    """What the collector has taken in: all records up to the boundary."""

    boundary: int
    payloads: tuple[str, ...]


class FoldedCodec:
    format = "sim.folded"

    def encode(self, value: Folded) -> tuple[int, dict[str, Any]]:
        return 1, {"boundary": value.boundary, "payloads": list(value.payloads)}

    def decode(self, format_version: int, fields: dict[str, Any]) -> Folded:
        return Folded(fields["boundary"], tuple(fields["payloads"]))


class Records:
    """The sequence and its folded state, as one actor sees them."""

    def __init__(self, env: Env) -> None:
        self.store = env.store
        self.folded = CasObject(env.store, FOLDED, FoldedCodec(), env.clock, env.entropy)
        self.sequence = Sequence(env.store, record_name, self._boundary, env.clock, env.entropy)

    async def state(self) -> Folded:
        held = await self.folded.read()
        return Folded(0, ()) if held is None else held.value

    async def _boundary(self) -> int:
        return (await self.state()).boundary

    async def tail(self) -> int:
        """The greatest number in use. The listing comes first: what it misses, the boundary covers."""
        page = await self.store.list_page(RECORDS)
        numbers = [int(entry.key[len(RECORDS) : -len(".json")]) for entry in page.entries]
        return max([(await self.state()).boundary, *numbers])

    async def above(self, boundary: int) -> list[str]:
        """The payloads of the unbroken run of records after the boundary."""
        payloads: list[str] = []
        while (data := await self.sequence.read(boundary + len(payloads) + 1)) is not None:
            payloads.append(data.decode())
        return payloads


class CreateAndCollect:
    name = "create_and_collect"
    promise = (
        "a numbered record that was acknowledged is folded exactly once, however long its writer or the collector stalls"
    )
    profile = FaultProfile.of(fault_share=0.24, crash_share=0.01, stall_s=40.0)
    faults = tuple(Fault)

    async def prepare(self, world: World, env: Env) -> None:
        """Nothing is there at first."""

    def start(self, world: World, *, small: bool) -> None:
        world.notes.update(acknowledged=set(), in_doubt=set())
        writers, each, rounds = (1, 2, 2) if small else (3, 4, 6)
        for number in range(writers):
            world.spawn(f"writer{number}", lambda env: self._write(env, each))
        world.spawn("collector", lambda env: self._collect(env, rounds))

    async def _write(self, env: Env, times: int) -> None:
        records = Records(env)
        for number in range(times):
            payload = f"{env.incarnation}/{number}"
            env.world.notes["in_doubt"].add(payload)
            try:
                landed = await self._append(records, payload)
            except ArcoError:
                continue
            if landed:
                env.world.notes["in_doubt"].discard(payload)
                env.world.notes["acknowledged"].add(payload)
            await env.clock.sleep(1.0)

    async def _append(self, records: Records, payload: str) -> bool:
        """Append under the first free number. False if the store leaves it in doubt."""
        while True:
            number = await records.tail() + 1
            match await records.sequence.append(number, payload.encode()):
                case Landed():
                    return True
                case Lost():
                    continue
                case Unknown():
                    state = await records.state()
                    if payload in state.payloads:
                        return True
                    if number > state.boundary:
                        return False
                    # Below the boundary and not folded: a ghost that nobody will read. Append again.

    async def _collect(self, env: Env, rounds: int) -> None:
        records = Records(env)
        for _ in range(rounds):
            await env.clock.sleep(2.0)
            try:
                await self._collect_once(records)
            except ArcoError:
                continue

    async def _collect_once(self, records: Records) -> None:
        held = await records.folded.read()
        state = Folded(0, ()) if held is None else held.value
        fresh = await records.above(state.boundary)
        after = Folded(state.boundary + len(fresh), (*state.payloads, *fresh))
        if fresh and held is None:
            await records.folded.create(after)
        elif fresh and held is not None:
            await records.folded.swap(held, after)
        boundary = (await records.state()).boundary
        for entry in (await records.store.list_page(RECORDS)).entries:
            if int(entry.key[len(RECORDS) : -len(".json")]) <= boundary:
                await records.store.delete(entry.key)

    async def verify(self, world: World, env: Env) -> None:
        records = Records(env)
        state = await records.state()
        everything = [*state.payloads, *await records.above(state.boundary)]
        missing = sorted(world.notes["acknowledged"] - set(everything))
        if missing:
            violate(world, invariants.NOTHING_LOST, f"{missing[0]} was acknowledged and is in no record")
        doubled = sorted({one for one in everything if everything.count(one) > 1})
        if doubled:
            violate(world, invariants.NOTHING_DOUBLED, f"{doubled[0]} is in more than one record")

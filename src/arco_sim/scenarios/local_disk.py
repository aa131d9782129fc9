"""The local store on a disk that loses its power at any step, and forgets what was not synced."""

from dataclasses import dataclass, field

from arco.storage.local import LocalFiles
from arco.storage.port import Absent, Always, Condition, Landed, Lost, Matches, Unknown
from arco_sim import invariants
from arco_sim.choices import Weights
from arco_sim.disk import PowerCutError, SimDisk
from arco_sim.faults import Fault, FaultProfile
from arco_sim.scenario import violate
from arco_sim.world import Env, Incarnation, World

_KEYS = ("t/w/a.json", "t/w/deep/er/b.json", "t/c.json")
_CUT = Weights(0.955, 0.01, 0.0, 0.0, 0.0, 0.01, 0.01, 0.015)


@dataclass(slots=True)
class _Expected:
    """What a key may hold: the last acknowledged body, or one of those still in doubt. None is absence."""

    possible: set[bytes | None] = field(default_factory=lambda: {None})


class LocalDisk:
    name = "local_disk"
    promise = "what the local store acknowledged survives a power cut, and no object is ever half written"
    profile = FaultProfile(_CUT, stall_s=0.0, jump_s=0.0)
    faults = (Fault.OK, Fault.ERROR_BEFORE, Fault.ERROR_AFTER, Fault.CRASH_BEFORE, Fault.CRASH_AFTER)

    async def prepare(self, world: World, env: Env) -> None:
        """Nothing is there at first."""

    def start(self, world: World, *, small: bool) -> None:
        machine = Incarnation("machine", 1)
        disk = SimDisk(lambda what, path: world.decide(machine, what, path), world.choices.below)
        disk.format("/lake")
        world.notes.update(disk=disk, expected={key: _Expected() for key in _KEYS})
        world.spawn("machine", lambda env: self._run(env, rounds=4 if small else 24), lives=1)

    async def _run(self, env: Env, rounds: int) -> None:
        world = env.world
        disk: SimDisk = world.notes["disk"]
        expected: dict[str, _Expected] = world.notes["expected"]
        files = LocalFiles("/lake", disk, env.clock, env.entropy)
        for number in range(rounds):
            try:
                self._one_write(world, files, expected, number)
            except PowerCutError:
                disk.cut()
                files = LocalFiles("/lake", disk, env.clock, env.entropy)
                _look(world, files, expected)
            except OSError:
                # A failing disk: the write may or may not be there, and was not acknowledged.
                continue

    def _one_write(self, world: World, files: LocalFiles, expected: dict[str, _Expected], number: int) -> None:
        key = _KEYS[world.choices.below(len(_KEYS))]
        kind = world.choices.below(4)
        hopes = expected[key]
        before = set(hopes.possible)
        if kind == 3:
            hopes.possible |= {None}
            files.delete(key)
            hopes.possible = {None}
            return
        body = f"{key} write {number} ".encode() * 8
        current = files.head(key)
        condition: Condition = Absent() if kind == 0 else Always()
        if kind == 2 and current is not None:
            condition = Matches(current.version)
        hopes.possible |= {body}
        match files.put(key, body, condition):
            case Landed():
                hopes.possible = {body}
            case Lost():
                # A creation that lost says that somebody's object is there, so it must be there after a cut too.
                hopes.possible = before - {None} if kind == 0 else before
            case Unknown():
                pass

    async def verify(self, world: World, env: Env) -> None:
        disk: SimDisk = world.notes["disk"]
        disk.cut()
        _look(world, LocalFiles("/lake", disk, env.clock, env.entropy), world.notes["expected"])


def _look(world: World, files: LocalFiles, expected: dict[str, _Expected]) -> None:
    """Compare every key with what it may hold, then take what is there for granted: a second cut must not undo it."""
    for key, hopes in expected.items():
        found = files.get(key)
        data = None if found is None else found.data
        if data not in hopes.possible:
            torn = data is not None and not any(one is not None and one == data for one in hopes.possible)
            complete = (
                data is not None and data.endswith(b" ") and len(data) % 8 == 0 and data[: len(data) // 8] * 8 == data
            )
            name = invariants.DURABLE if not torn or complete else invariants.NOT_TORN
            violate(world, name, f"{key} holds {data!r:.60} after a power cut")
        hopes.possible = {data}

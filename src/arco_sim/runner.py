"""Running one seed of a scenario, the same again, and the smallest schedule that still fails."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from arco.kernel import crash_points
from arco.kernel.errors import ArcoError
from arco_sim.faults import Fault
from arco_sim.invariants import UNEXPECTED
from arco_sim.loop import OWNER
from arco_sim.scenario import Scenario
from arco_sim.world import Env, Incarnation, Step, Violation, World

_SHRINK_RUNS_MAX = 3000
_YOUNG_OBJECTS_MAX = 100_000
"""More than most seeds make, and little memory: what a seed leaves behind is looked through once, when it is done."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """One seed's story."""

    scenario: str
    seed: int
    violations: tuple[Violation, ...]
    operations: int
    actor_operations: int
    choices: tuple[int, ...]
    trace: tuple[Step, ...]
    fingerprint: str
    labels: tuple[str, ...]

    @property
    def failed(self) -> bool:
        return bool(self.violations)


def run_seed(
    scenario: Scenario,
    seed: int,
    *,
    replay: list[int] | None = None,
    plan: dict[int, Fault] | None = None,
    small: bool = False,
    fingerprint: bool = False,
) -> RunResult:
    """One run. With a `plan` nothing is left to chance: the operations it names meet the faults it names."""
    world = World(seed, scenario.profile, replay=replay, plan=plan)
    crash_points.install(lambda point: world.say(str(OWNER.get()), "reaches", point, ""))
    with _seldom_collected():
        try:
            world.loop.run(_play(world, scenario, small=small))
        finally:
            world.end()
    return RunResult(
        scenario.name,
        seed,
        tuple(world.violations),
        world.operations,
        world.actor_operations,
        tuple(world.choices.recorded),
        tuple(world.trace),
        world.fingerprint() if fingerprint else "",
        tuple(world.labels),
    )


@contextmanager
def _seldom_collected() -> Iterator[None]:
    """The garbage collector would walk through the live objects of a seed dozens of times, and find next to nothing."""
    before = gc.get_threshold()
    gc.set_threshold(_YOUNG_OBJECTS_MAX, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


async def _play(world: World, scenario: Scenario, *, small: bool) -> None:
    world.calm()
    await scenario.prepare(world, Env(world, Incarnation("founder", 1)))
    world.unleash()
    scenario.start(world, small=small)
    await world.until_finished()
    world.calm()
    world.actor_operations = world.operations
    auditor = Env(world, Incarnation("auditor", 1))
    try:
        await scenario.verify(world, auditor)
    except ArcoError as error:
        # Nothing disturbs this: what is stored cannot be read.
        world.violations.append(Violation(UNEXPECTED, f"in the end: {error.code}: {error.message}"))


def replays_alike(scenario: Scenario, seed: int) -> bool:
    """Whether the same seed gives the same story to the last byte, and so does its record."""
    first = run_seed(scenario, seed, fingerprint=True)
    second = run_seed(scenario, seed, fingerprint=True)
    third = run_seed(scenario, seed, replay=list(first.choices), fingerprint=True)
    return first.fingerprint == second.fingerprint == third.fingerprint


def shrink(scenario: Scenario, failed: RunResult) -> RunResult:
    """The shortest story found that breaks the same promise: fewer faults, less reordering, fewer steps."""
    wanted = failed.violations[0].invariant
    best = failed
    budget = _SHRINK_RUNS_MAX

    def still_fails(choices: list[int]) -> RunResult | None:
        nonlocal budget
        budget -= 1
        result = run_seed(scenario, failed.seed, replay=choices)
        return result if any(one.invariant == wanted for one in result.violations) else None

    improved = True
    while improved and budget > 0:
        improved = False
        for candidate in _simpler(list(best.choices)):
            if budget <= 0:
                break
            result = still_fails(candidate)
            if result is not None and _size(result) < _size(best):
                best, improved = result, True
                break
    return best


def _size(result: RunResult) -> tuple[int, int, int]:
    return sum(1 for one in result.choices if one), len(result.trace), sum(result.choices)


def _simpler(choices: list[int]) -> Iterator[list[int]]:
    """Candidates, boldest first: cut the end off, clear whole blocks, clear single decisions."""
    length = len(choices)
    cut = length // 2
    while cut:
        yield choices[: length - cut]
        cut //= 2
    block = max(length // 2, 1)
    while block:
        for start in range(0, length, block):
            if any(choices[start : start + block]):
                yield [*choices[:start], *[0] * block, *choices[start + block :]]
        block //= 2

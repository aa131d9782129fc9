"""What a scenario is: some actors on one world, and what must be true when they are done."""

from collections.abc import Awaitable
from typing import Protocol

from arco.kernel.errors import ArcoError
from arco_sim.faults import Fault, FaultProfile
from arco_sim.invariants import LINEARIZABLE, NOT_HALF_GONE
from arco_sim.linearizability import Model, Operation, State, check, explain
from arco_sim.world import Env, Violation, World


class Scenario(Protocol):
    """One protocol under attack. `small` asks for the fewest actors and operations that still show it."""

    @property
    def name(self) -> str: ...

    @property
    def promise(self) -> str:
        """What must hold, in a sentence."""
        ...

    @property
    def profile(self) -> FaultProfile:
        """How rough the world is."""
        ...

    @property
    def faults(self) -> tuple[Fault, ...]:
        """The faults that its steps can meet."""
        ...

    async def prepare(self, world: World, env: Env) -> None:
        """Before the first fault: what the actors find when they start."""
        ...

    def start(self, world: World, *, small: bool) -> None:
        """Spawn the actors."""
        ...

    async def verify(self, world: World, env: Env) -> None:
        """With no more faults, look at what is stored and add violations."""
        ...


def violate(world: World, invariant: str, detail: str) -> None:
    """Report a broken promise."""
    world.violations.append(Violation(invariant, detail))


async def readable(world: World, judging: Awaitable[None]) -> None:
    """Look at what is stored. What cannot be read any more is a broken promise too."""
    try:
        await judging
    except ArcoError as error:
        violate(world, NOT_HALF_GONE, f"what is stored cannot be read any more: {error!r}")


def check_linearizable(world: World, model: Model[State], history: list[Operation] | None = None) -> None:
    """The recorded history must be explainable as one operation after another."""
    verdict = check(world.history if history is None else history, model, budget_states=200_000)
    if verdict.gave_up:
        world.notes["linearizability_undecided"] = True
    elif not verdict.linearizable:
        violate(world, LINEARIZABLE, explain(verdict))

"""Every step of a scenario × every fault, one at a time and then in pairs.

Random seeds find the unlikely; this finds the likely without luck. A first run without faults tells the steps. Then each
step meets each fault while everything else goes well; then each pair of a step with a fault and a later one with another,
where the later steps include those of recovery.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from arco_sim.faults import FAULT_NAMES, Fault
from arco_sim.runner import RunResult, run_seed
from arco_sim.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Cell:
    """One run: which steps met which faults, and what came of it."""

    plan: tuple[tuple[int, Fault], ...]
    result: RunResult


def singles(scenario: Scenario, seed: int, every: int = 1) -> tuple[RunResult, list[Cell]]:
    """The run without faults, and every run with one, or every n-th of those."""
    quiet = run_seed(scenario, seed, plan={}, small=True)
    places = [(step, fault) for step in range(quiet.actor_operations) for fault in scenario.faults]
    cells = [Cell((place,), run_seed(scenario, seed, plan=dict([place]), small=True)) for place in places[::every]]
    return quiet, cells


Plan = dict[int, Fault]


def pair_plans(scenario: Scenario, firsts: list[Cell]) -> list[Plan]:
    """Every second fault at a later step, counting the steps that the first fault brought about."""
    second_faults = [fault for fault in scenario.faults if fault is not Fault.OK]
    return [
        {step: fault, later: second}
        for first in firsts
        for step, fault in first.plan
        if fault is not Fault.OK
        for later in range(step + 1, first.result.actor_operations)
        for second in second_faults
    ]


def pairs(scenario: Scenario, seed: int, plans: list[Plan], runs_max: int) -> Iterator[Cell]:
    """Run every plan, or, if there are more than `runs_max`, every n-th of them."""
    for plan in plans[:: -(-len(plans) // runs_max) or 1]:
        yield Cell(tuple(plan.items()), run_seed(scenario, seed, plan=plan, small=True))


def matrix(scenario: Scenario, quiet: RunResult, cells: list[Cell]) -> str:
    """Steps down, faults across: a dot where every promise held, an X where one broke."""
    verdicts = {cell.plan[0]: "X" if cell.result.failed else "." for cell in cells}
    width = max(len(label) for label in quiet.labels)
    heads = [FAULT_NAMES[fault] for fault in scenario.faults]
    lines = [f"{'step':>4}  {'operation':<{width}}  " + "  ".join(heads)]
    for step, label in enumerate(quiet.labels[: quiet.actor_operations]):
        marks = "  ".join(
            f"{verdicts[(step, fault)]:^{len(head)}}" for fault, head in zip(scenario.faults, heads, strict=True)
        )
        lines.append(f"{step:>4}  {label:<{width}}  {marks}")
    return "\n".join(lines)

"""Every scenario holds under many seeds, under every single fault, and replays alike."""

import asyncio

import pytest

from arco.kernel.errors import RetryLater
from arco.storage.port import Absent, Landed
from arco_sim.crashpoints import pair_plans, pairs, singles
from arco_sim.faults import Fault
from arco_sim.runner import replays_alike, run_seed, shrink
from arco_sim.scenario import Scenario, violate
from arco_sim.scenarios.one_transaction import OneTransaction
from arco_sim.scenarios.registry import SCENARIOS

# Two thousand seeds take two minutes on an idle machine, and many times that on a busy one.
pytestmark = [pytest.mark.campaign, pytest.mark.timeout(3600)]
SEEDS = 1000
SEEDS_OF_LONG_SCENARIOS = 150
SEEDS_OF_WEEKS = 40
SEEDS_OF_EVERYBODY = 2000
LONG_SCENARIOS = {
    "table_commits",
    "grouped_commits",
    "maintenance",
    "more_names",
    "names",
    "names_told",
    "atomic_runs",
    "run_log",
    "schedule_ticks",
    "source_ticks",
    "asked_runs",
    "feed",
    "fold",
    "fold_turns",
    "ledger_append",
    "transactions",
    "upkeep",
    "everybody",
    "one_transaction",
    "workers",
}
ALL = pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=list(SCENARIOS))


def _seeds(scenario: Scenario) -> int:
    if scenario.name in {"maintenance", "upkeep"}:
        return SEEDS_OF_WEEKS
    if scenario.name == "everybody":
        return SEEDS_OF_EVERYBODY
    return SEEDS_OF_LONG_SCENARIOS if scenario.name in LONG_SCENARIOS else SEEDS


def _complaint(scenario: Scenario, seed: int) -> str:
    return f"python -m arco_sim replay {scenario.name} --seed {seed} --trace"


@ALL
def test_no_seed_breaks_a_promise(scenario: Scenario) -> None:
    for seed in range(1, _seeds(scenario) + 1):
        result = run_seed(scenario, seed)
        assert not result.failed, f"{result.violations[0]}; replay it: {_complaint(scenario, seed)}"


@ALL
def test_no_single_fault_at_any_step_breaks_a_promise(scenario: Scenario) -> None:
    """Of long scenarios every fourth: the nine faults take turns at each step. All of them: `make crashpoints`."""
    every = 4 if scenario.name in LONG_SCENARIOS else 1
    for seed in (1,) if every > 1 else (1, 2, 3):
        quiet, cells = singles(scenario, seed, every)
        assert not quiet.failed
        assert len(cells) == -(-quiet.actor_operations * len(scenario.faults) // every)
        broken = [(cell.plan, cell.result.violations[0]) for cell in cells if cell.result.failed]
        assert not broken


@pytest.mark.parametrize("name", ["cas_counter", "cas_flip", "lease_steal", "ledger_append"])
def test_no_pair_of_faults_breaks_a_promise(name: str) -> None:
    scenario = SCENARIOS[name]
    _, cells = singles(scenario, 1)
    broken = [cell.plan for cell in pairs(scenario, 1, pair_plans(scenario, cells), 100_000) if cell.result.failed]
    assert not broken


def test_no_pair_of_faults_breaks_a_transaction_over_two_tables() -> None:
    """Every fourth of them. All, over three tables: `make crashpoints`."""
    scenario = OneTransaction(tables=2)
    _, cells = singles(scenario, 1)
    plans = pair_plans(scenario, cells)
    broken = [cell.plan for cell in pairs(scenario, 1, plans, len(plans) // 4) if cell.result.failed]
    assert len(plans) > 10_000
    assert not broken


@ALL
def test_a_seed_decides_everything(scenario: Scenario) -> None:
    seeds = 3 if scenario.name in LONG_SCENARIOS else 8
    assert all(replays_alike(scenario, seed) for seed in range(1, seeds + 1))


@ALL
def test_different_seeds_tell_different_stories(scenario: Scenario) -> None:
    seeds = 8 if scenario.name in LONG_SCENARIOS else 20
    stories = {run_seed(scenario, seed, fingerprint=True).fingerprint for seed in range(1, seeds + 1)}
    assert len(stories) == seeds


def test_a_failing_story_shrinks_and_still_fails() -> None:
    scenario = _Doubtful()
    seed = next(seed for seed in range(1, 500) if run_seed(scenario, seed).failed)
    failed = run_seed(scenario, seed)
    short = shrink(scenario, failed)
    assert short.violations[0].invariant == failed.violations[0].invariant
    assert len(short.trace) <= len(failed.trace)
    assert sum(map(bool, short.choices)) < sum(map(bool, failed.choices))


class _Doubtful:
    """A writer that takes silence for failure: the mistake the simulator exists to find."""

    name = "doubtful"
    promise = "nothing happens twice"
    profile = SCENARIOS["cas_counter"].profile
    faults = SCENARIOS["cas_counter"].faults

    async def prepare(self, world, env):
        """Nothing is there at first."""

    def start(self, world, *, small):
        world.spawn("writer", self._write)

    async def _write(self, env):
        for number in range(20):
            for attempt in range(8):
                try:
                    outcome = await env.store.put(f"t/{number}/{attempt}", b"x", Absent())
                except RetryLater:
                    continue
                if isinstance(outcome, Landed):
                    break

    async def verify(self, world, env):
        page = await env.store.list_page("t/")
        numbers = [entry.key.split("/")[1] for entry in page.entries]
        if len(numbers) != len(set(numbers)):
            violate(world, "I2 nothing happens twice", "a number was written twice")


def test_nobody_begins_again_beside_those_who_judge() -> None:
    """An actor may die of what it has left to do when its work is done, and be the last of all."""
    left = _LeftOver()
    result = run_seed(left, 1, plan={0: Fault.CRASH_AFTER})
    assert not result.failed
    assert left.lives == 1


def test_who_begins_again_before_the_end_is_waited_for() -> None:
    left = _LeftOver(others_work_s=5.0)
    assert not run_seed(left, 1, plan={0: Fault.CRASH_AFTER}).failed
    assert left.lives == 2


class _LeftOver:
    """An actor that writes something behind its work, and judges who look whether it still works."""

    name = "left_over"
    promise = "nobody works any more when it is judged"
    profile = SCENARIOS["cas_counter"].profile
    faults = SCENARIOS["cas_counter"].faults

    def __init__(self, others_work_s: float = 0.0) -> None:
        self._others_work_s = others_work_s
        self.lives = self._at_work = 0

    async def prepare(self, world, env):
        """Nothing is there at first."""

    def start(self, world, *, small):
        world.spawn("one", self._work)
        world.spawn("other", lambda env: env.clock.sleep(self._others_work_s))

    async def _work(self, env):
        self.lives += 1
        self._behind = asyncio.ensure_future(env.store.put("t/0", b"x", Absent()))
        if self.lives > 1:
            self._at_work += 1
            await env.clock.sleep(20.0)
            self._at_work -= 1

    async def verify(self, world, env):
        at_first = self._at_work
        await env.clock.sleep(10.0)
        if at_first or self._at_work:
            violate(world, "NOBODY_WORKS", "somebody works beside the judges")


def test_a_process_that_two_replies_kill_dies_once_and_is_started_once() -> None:
    """Started twice there would be two of it at a time, and a story could be judged while one of them is still at work."""
    result = run_seed(_Hasty(), 1, plan={0: Fault.CRASH_AFTER, 1: Fault.CRASH_AFTER})
    assert not result.failed, result.violations[0]


class _Hasty(_Doubtful):
    """It asks for two things at once."""

    name = "hasty"

    async def _write(self, env):
        world = env.world
        world.notes["started"] = world.notes.get("started", 0) + 1
        await asyncio.gather(*(env.store.put(f"t/{number}", b"x", Absent()) for number in range(2)))

    async def verify(self, world, env):
        await env.clock.sleep(10.0)
        if world.notes["started"] != 2:
            violate(world, "one process is one process", f"it was started {world.notes['started']} times")

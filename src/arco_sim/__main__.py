"""The simulator's command line: run seeds, replay one, enumerate crash points, list scenarios."""

import argparse
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from arco_sim.crashpoints import Cell, matrix, pair_plans, pairs, singles
from arco_sim.faults import FAULT_NAMES, Fault
from arco_sim.mutants import load_all, note_seed
from arco_sim.runner import RunResult, replays_alike, run_seed, shrink
from arco_sim.scenarios.registry import SCENARIOS
from arco_sim.workshop import Workshop

_CHUNK_SEEDS = 250
_REPLAY_EVERY = 100
_LATE_SEED = 2
"""From here on it is worth while to write down where a planted bug was caught."""


def run(name: str, first: int, last: int, jobs: int) -> int:
    """Run a range of seeds; on the first failure print how to replay it."""
    started = time.monotonic()
    chunks = [(name, start, min(start + _CHUNK_SEEDS - 1, last)) for start in range(first, last + 1, _CHUNK_SEEDS)]
    operations = 0
    for done, failure, unlike in _each_chunk(chunks, jobs):
        operations += done
        if unlike is not None:
            print(f"seed {unlike} of {name} does not replay alike: something undecided by the seed has entered")
            return 1
        if failure is not None:
            _report(failure)
            return 1
    seconds = time.monotonic() - started
    seeds = last - first + 1
    print(
        f"{name}: {seeds} seeds, {operations} storage operations, 0 violations, every {_REPLAY_EVERY}th replayed alike "
        f"({seeds / seconds:.0f} seeds/s, {jobs} process{'es' if jobs > 1 else ''})"
    )
    return 0


def _each_chunk(chunks: list[tuple[str, int, int]], jobs: int) -> Iterable[tuple[int, RunResult | None, int | None]]:
    if jobs == 1:
        yield from map(_run_chunk, chunks)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(_run_chunk, chunks)


def _run_chunk(chunk: tuple[str, int, int]) -> tuple[int, RunResult | None, int | None]:
    """Operations done, the first failing run, the first seed that did not replay alike."""
    name, first, last = chunk
    scenario = SCENARIOS[name]
    operations = 0
    for seed in range(first, last + 1):
        result = run_seed(scenario, seed)
        operations += result.operations
        if result.failed:
            return operations, result, None
        if seed % _REPLAY_EVERY == 0 and not replays_alike(scenario, seed):
            return operations, None, seed
    return operations, None, None


def _report(failure: RunResult) -> None:
    print(f"seed {failure.seed} of {failure.scenario} breaks a promise:")
    for violation in failure.violations:
        print(f"  {violation}")
    print(f"replay it: python -m arco_sim replay {failure.scenario} --seed {failure.seed} --trace")


def replay(name: str, seed: int, *, trace: bool, whole: bool) -> int:
    """Run one seed again; if it fails, look for the shortest schedule that fails the same way."""
    scenario = SCENARIOS[name]
    result = run_seed(scenario, seed)
    if result.failed and not whole:
        found = result
        print(f"{found.violations[0]}; looking for a shorter story that ends so (--whole leaves it)", file=sys.stderr)
        result = shrink(scenario, found)
        print(f"shrunk from {len(found.trace)} to {len(result.trace)} steps", file=sys.stderr)
    if trace:
        print("\n".join(str(step) for step in result.trace))
    for violation in result.violations:
        print(f"violation: {violation}")
    if not result.failed:
        print(f"seed {seed} of {name}: {result.operations} storage operations, 0 violations")
    return 1 if result.failed else 0


def crashpoints(name: str, seed: int, pairs_max: int) -> int:
    """Every step × every fault, then every pair."""
    scenario = SCENARIOS[name]
    quiet, cells = singles(scenario, seed)
    print(f"{name}: {scenario.promise}")
    print(matrix(scenario, quiet, cells))
    failures = [cell for cell in cells if cell.result.failed]
    print(f"single faults: {len(cells)} runs, {len(failures)} violations")
    if pairs_max:
        plans = pair_plans(scenario, cells)
        count = 0
        for cell in pairs(scenario, seed, plans, pairs_max):
            count += 1
            if cell.result.failed:
                failures.append(cell)
        broken = sum(len(cell.plan) > 1 for cell in failures)
        print(f"pairs of faults: {count} runs of {len(plans)} pairs, {broken} violations")
    for cell in failures[:3]:
        _explain(cell)
    return 1 if failures else 0


def _explain(cell: Cell) -> None:
    faults = ", then ".join(f"{FAULT_NAMES[Fault(fault)]} at step {step}" for step, fault in cell.plan)
    print(f"\n{faults}:")
    print("\n".join(f"  {step}" for step in cell.result.trace))
    for violation in cell.result.violations:
        print(f"  violation: {violation}")


def mutants(folder: Path, source: Path, only: list[str], *, note: bool) -> int:
    """Plant every bug in turn, or those that are named; each must be caught."""
    planted = [mutant for mutant in load_all(folder) if not only or mutant.name in only]
    print(f"{'planted bug':<42} {'noticed by':<20} {'caught at seed':>14}  guard that was removed")
    survivors = 0
    with Workshop(source) as workshop:
        for mutant in planted:
            catch = workshop.hunt(mutant, anew=True)
            survivors += not catch.caught
            if note and catch.seed is not None and catch.seed >= _LATE_SEED:
                note_seed(folder, mutant, catch.seed)
            seed = "SURVIVED" if not catch.caught else str(catch.seed or "")
            print(f"{mutant.name:<42} {mutant.scenario or 'its test':<20} {seed:>14}  {mutant.guard}", flush=True)
    print(f"{len(planted)} planted, {survivors} survived")
    return 1 if survivors or not planted else 0


def scenarios() -> int:
    for scenario in SCENARIOS.values():
        print(f"{scenario.name:<22} {scenario.promise}")
    return 0


def _seeds(text: str) -> tuple[int, int]:
    first, dots, last = text.partition("..")
    try:
        return (int(first), int(last)) if dots else (1, int(first))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a range of seeds: write 1..1000") from None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m arco_sim", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    known = sorted(SCENARIOS)
    one = commands.add_parser("run", help="run a range of seeds of a scenario (or of all)")
    one.add_argument("scenario", choices=[*known, "all"])
    one.add_argument("--seeds", type=_seeds, default=(1, 1000), metavar="A..B")
    one.add_argument("--jobs", type=int, default=1, help="processes to share the seeds (default 1)")
    one = commands.add_parser("replay", help="run one seed again, and shrink it if it fails")
    one.add_argument("scenario", choices=known)
    one.add_argument("--seed", type=int, required=True)
    one.add_argument("--trace", action="store_true", help="print every step")
    one.add_argument("--whole", action="store_true", help="do not look for a shorter story that fails the same way")
    one = commands.add_parser("crashpoints", help="every step × every fault, then every pair")
    one.add_argument("scenario", choices=[*known, "all"])
    one.add_argument("--seed", type=int, default=1, help="decides the order of events")
    one.add_argument("--singles", action="store_true", help="leave the pairs out")
    one.add_argument(
        "--pairs-max", type=int, default=20_000, help="if there are more pairs, run every n-th (default 20000)"
    )
    one = commands.add_parser("mutants", help="plant known bugs in a copy of the source; each must be caught")
    one.add_argument("names", nargs="*", metavar="NAME", help="only these (default: all)")
    one.add_argument("--folder", type=Path, default=Path("tests/simulation/mutants"))
    one.add_argument("--source", type=Path, default=Path("src"))
    one.add_argument("--note", action="store_true", help="write down where each was caught that took long")
    commands.add_parser("scenarios", help="list the scenarios and what each promises")
    return parser


def main(arguments: list[str] | None = None) -> int:
    asked = _parser().parse_args(arguments)
    if asked.command == "scenarios":
        return scenarios()
    if asked.command == "mutants":
        return mutants(asked.folder, asked.source, asked.names, note=asked.note)
    if asked.command == "replay":
        return replay(asked.scenario, asked.seed, trace=asked.trace, whole=asked.whole)
    names = sorted(SCENARIOS) if asked.scenario == "all" else [asked.scenario]
    if asked.command == "run":
        return max(run(name, asked.seeds[0], asked.seeds[1], asked.jobs) for name in names)
    pairs_max = 0 if asked.singles else asked.pairs_max
    return max(crashpoints(name, asked.seed, pairs_max) for name in names)


if __name__ == "__main__":
    sys.exit(main())

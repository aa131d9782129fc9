"""Planted bugs: each removes one guard from a copy of the source, and a scenario must notice.

A mutant is a small TOML file: which guard, in which file, which text is replaced by which, and the scenario that must catch
it. A text that is no longer found is an error, so a mutant cannot silently stop meaning anything. The copy is run in a
process of its own; the seeds it takes to catch the bug say how strong the scenario is.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

from arco.kernel.errors import InvalidInput

_CATCH = """
import sys
from arco_sim.runner import run_seed
from arco_sim.scenarios.registry import SCENARIOS
name, last = sys.argv[1], int(sys.argv[2])
for seed in range(1, last + 1):
    result = run_seed(SCENARIOS[name], seed)
    if result.failed:
        print(seed, result.violations[0], sep="\\t")
        break
"""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One guard, and how to take it away."""

    name: str
    guard: str
    file: str
    find: str
    replace: str
    scenario: str
    seeds_max: int

    @classmethod
    def load(cls, path: Path) -> "Mutant":
        fields = tomllib.loads(path.read_text())
        return cls(
            path.stem,
            fields["guard"],
            fields["file"],
            fields["find"],
            fields["replace"],
            fields["scenario"],
            fields["seeds_max"],
        )


@dataclass(frozen=True, slots=True)
class Catch:
    """Whether a mutant was caught, at which seed, and by which broken promise."""

    mutant: Mutant
    seed: int | None
    violation: str


def load_all(folder: Path) -> list[Mutant]:
    return [Mutant.load(path) for path in sorted(folder.glob("*.toml"))]


def hunt(mutant: Mutant, source: Path) -> Catch:
    """Plant one bug in a copy of `source` and run its scenario until it is caught."""
    with tempfile.TemporaryDirectory(prefix="arco-mutant-") as folder:
        copy = Path(folder) / "src"
        shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
        _plant(mutant, copy)
        environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(  # noqa: S603 - our own interpreter on our own copy
            [sys.executable, "-c", _CATCH, mutant.scenario, str(mutant.seeds_max)],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode != 0:
        raise InvalidInput(f"mutant {mutant.name} does not run: {done.stderr.strip()[-300:]}", hint="mend its replacement")
    if not done.stdout:
        return Catch(mutant, None, "")
    seed, _, violation = done.stdout.strip().partition("\t")
    return Catch(mutant, int(seed), violation)


def _plant(mutant: Mutant, source: Path) -> None:
    path = source / mutant.file
    text = path.read_text()
    if text.count(mutant.find) != 1:
        raise InvalidInput(
            f"mutant {mutant.name}: its text is found {text.count(mutant.find)} times in {mutant.file}",
            hint="bring the mutant up to date with the code",
        )
    path.write_text(text.replace(mutant.find, mutant.replace))

"""Planted bugs: each removes one guard from a copy of the source, and a scenario or a test must notice.

A mutant is a small TOML file: which guard, in which file, which text is replaced by which, and what must catch it: a scenario
within so many seeds, or one test by its name. A text that is no longer found is an error, so a mutant cannot silently stop
meaning anything. The copy is run in a process of its own; the seeds it takes to catch the bug say how strong the scenario is.
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
import os
import sys
from arco_sim.runner import run_seed
from arco_sim.scenarios.registry import SCENARIOS
name, first, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for seed in (*([first] if first else []), *range(1, last + 1)):
    result = run_seed(SCENARIOS[name], seed)
    if result.failed:
        print(seed, result.violations[0], sep="\\t")
        break
sys.stdout.flush()
# Not through the interpreter's own end: Arrow's threads may still be there, and its library then aborts the process.
os._exit(0)
"""


# How pytest ends.
_PASSED, _FAILED = 0, 1


@dataclass(frozen=True, slots=True)
class Mutant:
    """One guard, how to take it away, and who must notice: a scenario within so many seeds, or a test.

    `seed` is where it was caught last, if that took long: who only asks whether it is caught looks there first.
    """

    name: str
    guard: str
    file: str
    find: str
    replace: str
    scenario: str = ""
    seeds_max: int = 0
    seed: int = 0
    test: str = ""

    @classmethod
    def load(cls, path: Path) -> "Mutant":
        return cls(path.stem, **tomllib.loads(path.read_text()))

    @property
    def watch(self) -> str:
        """Who must notice, in a few words."""
        return self.scenario or self.test.rpartition("::")[2]


@dataclass(frozen=True, slots=True)
class Catch:
    """Whether a mutant was caught, at which seed if by a scenario, and by which broken promise."""

    mutant: Mutant
    caught: bool
    seed: int | None = None
    violation: str = ""


def load_all(folder: Path) -> list[Mutant]:
    return [Mutant.load(path) for path in sorted(folder.glob("*.toml"))]


def note_seed(folder: Path, mutant: Mutant, seed: int) -> None:
    """Write down where a mutant was caught."""
    path = folder / f"{mutant.name}.toml"
    lines = [line for line in path.read_text().splitlines(keepends=True) if not line.startswith("seed = ")]
    at = next(number for number, line in enumerate(lines) if line.startswith("seeds_max"))
    path.write_text("".join([*lines[: at + 1], f"seed = {seed}\n", *lines[at + 1 :]]))


def hunt(mutant: Mutant, source: Path, *, anew: bool = False) -> Catch:
    """Plant one bug in a copy of `source` and run what must notice it: its scenario until it is caught, or its test.

    Anew: from the first seed on, so that the seed it takes says how strong the scenario is.
    """
    if bool(mutant.scenario) == bool(mutant.test):
        raise InvalidInput(f"mutant {mutant.name} names both or neither", hint="a scenario with seeds_max, or a test")
    with tempfile.TemporaryDirectory(prefix="arco-mutant-") as folder:
        copy = Path(folder) / "src"
        # Links, and what was compiled of the files before with them: all but the one file is as it was.
        shutil.copytree(source, copy, copy_function=_linked)
        _plant(mutant, copy)
        environment = {**os.environ, "PYTHONPATH": str(copy)}
        first = 0 if anew else mutant.seed
        return (
            _run_scenario(mutant, first, environment) if mutant.scenario else _run_test(mutant, source.parent, environment)
        )


def _run_scenario(mutant: Mutant, first: int, environment: dict[str, str]) -> Catch:
    done = _run([sys.executable, "-c", _CATCH, mutant.scenario, str(first), str(mutant.seeds_max)], environment)
    if done.returncode != 0:
        raise InvalidInput(f"mutant {mutant.name} does not run: {done.stderr.strip()[-300:]}", hint="mend its replacement")
    if not done.stdout:
        return Catch(mutant, caught=False)
    seed, _, violation = done.stdout.strip().partition("\t")
    return Catch(mutant, True, int(seed), violation)


def _run_test(mutant: Mutant, root: Path, environment: dict[str, str]) -> Catch:
    quiet = ["-q", "--tb=line", "-p", "no:cacheprovider", "--rootdir", str(root), "-c", str(root / "pyproject.toml")]
    # Only the plugin that the settings name: loading the others would take longer than the test.
    alone = {**environment, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = _run([sys.executable, "-m", "pytest", "-p", "pytest_timeout", *quiet, str(root / mutant.test)], alone)
    if done.returncode not in (_PASSED, _FAILED):
        raise InvalidInput(f"mutant {mutant.name} does not run: {done.stdout.strip()[-300:]}", hint="mend its replacement")
    return Catch(mutant, done.returncode == _FAILED, violation=f"{mutant.watch} fails")


def _run(command: list[str], environment: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(  # noqa: S603 - our own interpreter on our own copy
        command, env=environment, capture_output=True, text=True, check=False
    )


def _linked(file: str, to: str) -> None:
    try:
        os.link(file, to)
    except OSError:  # another file system, or one without links
        shutil.copy2(file, to)


def _plant(mutant: Mutant, source: Path) -> None:
    path = source / mutant.file
    text = path.read_text()
    if text.count(mutant.find) != 1:
        raise InvalidInput(
            f"mutant {mutant.name}: its text is found {text.count(mutant.find)} times in {mutant.file}",
            hint="bring the mutant up to date with the code",
        )
    path.unlink()
    path.write_text(text.replace(mutant.find, mutant.replace))
    for compiled in path.parent.glob(f"__pycache__/{path.stem}.*"):
        compiled.unlink()

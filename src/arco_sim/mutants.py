"""Planted bugs: each removes one guard from a copy of the source, and a scenario or a test must notice.

A mutant is a small TOML file: which guard, in which file, which text is replaced by which, and what must catch it: a scenario
within so many seeds, or one test by its name. A text that is no longer found is an error, so a mutant cannot silently stop
meaning anything. `workshop.py` plants them; the seeds it takes to catch one say how strong the scenario is.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Mutant:
    """One guard, how to take it away, and who must notice: a scenario within so many seeds, or a test.

    `seed` is where it was caught last, if not at the first: who only asks whether it is caught looks there first.
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

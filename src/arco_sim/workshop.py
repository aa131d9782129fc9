"""Where bugs are planted: a copy of the source, and a process that has imported it and runs what must notice them.

What must never enter: a second way to plant one. A bug is a file of the copy, so whatever a test starts has it too.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from arco.kernel.errors import InvalidInput
from arco_sim.mutants import Catch, Mutant

# How pytest ends.
_PASSED, _FAILED = 0, 1


class Workshop:
    """One bug at a time is planted in its copy of `source`, and taken out again."""

    def __init__(self, source: Path) -> None:
        self._source = source
        self._folder = tempfile.TemporaryDirectory(prefix="arco-mutants-")
        self._copy = Path(self._folder.name) / "src"
        # Links, and what was compiled of the files before with them: all but the one file is as it was.
        shutil.copytree(source, self._copy, copy_function=_linked)
        self._process: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()
        self._folder.cleanup()

    def hunt(self, mutant: Mutant, *, anew: bool = False) -> Catch:
        """Plant one bug and run what must notice it: its scenario until it is caught, or its test.

        Anew: from the first seed on, so that the seed it takes says how strong the scenario is.
        """
        if bool(mutant.scenario) == bool(mutant.test):
            raise InvalidInput(f"mutant {mutant.name} names both or neither", hint="a scenario with seeds_max, or a test")
        self._started()  # before there is a bug to be imported
        with self._planted(mutant):
            if mutant.scenario:
                return self._run_scenario(mutant, 0 if anew else mutant.seed)
            return self._run_test(mutant)

    def _run_scenario(self, mutant: Mutant, first: int) -> Catch:
        seeds = [*([first] if first else []), *range(1, mutant.seeds_max + 1)]
        code, said = self._ask(mutant, scenario=mutant.scenario, seeds=seeds, test=None)
        if code != 0:
            raise _does_not_run(mutant, said)
        seed, _, violation = said.strip().partition("\t")
        return Catch(mutant, True, int(seed), violation) if said else Catch(mutant, caught=False)

    def _run_test(self, mutant: Mutant) -> Catch:
        root = self._source.parent
        quiet = ["-q", "--tb=line", "-p", "no:cacheprovider", "--rootdir", str(root), "-c", str(root / "pyproject.toml")]
        # Only the plugin that the settings name, and assertions as they are: more would take longer than the test.
        code, said = self._ask(mutant, test=["-p", "pytest_timeout", "--assert=plain", *quiet, str(root / mutant.test)])
        if code not in (_PASSED, _FAILED):
            raise _does_not_run(mutant, said)
        return Catch(mutant, code == _FAILED, violation=f"{mutant.watch} fails")

    def _ask(self, mutant: Mutant, **wanted: object) -> tuple[int, str]:
        module = mutant.file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        process = self._started()
        try:
            process.stdin.write(json.dumps({"module": module, **wanted}) + "\n")
            process.stdin.flush()
            answer = json.loads(process.stdout.readline())
        except BaseException:
            self._end()  # or the answer to this would pass for that to the next
            raise
        return answer["code"], answer["said"]

    def _started(self) -> Any:
        if self._process is None:
            environment = {**os.environ, "PYTHONPATH": str(self._copy), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
            self._process = subprocess.Popen(
                [sys.executable, "-m", "arco_sim.workshop_process"],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
            self._process.stdout.readline()
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # with the child that is running
            process.communicate()

    @contextmanager
    def _planted(self, mutant: Mutant) -> Iterator[None]:
        path = self._copy / mutant.file
        text = path.read_text()
        if text.count(mutant.find) != 1:
            raise InvalidInput(
                f"mutant {mutant.name}: its text is found {text.count(mutant.find)} times in {mutant.file}",
                hint="bring the mutant up to date with the code",
            )
        aside = {file: Path(self._folder.name) / file.name for file in _made_of(path)}
        for file, place in aside.items():
            file.rename(place)
        try:
            path.write_text(text.replace(mutant.find, mutant.replace))
            yield
        finally:
            for file in _made_of(path):
                file.unlink()
            for file, place in aside.items():
                place.rename(file)


def _made_of(path: Path) -> list[Path]:
    """A file, and what was compiled of it."""
    return [path, *path.parent.glob(f"__pycache__/{path.stem}.*")]


def _linked(file: str, to: str) -> None:
    try:
        os.link(file, to)
    except OSError:  # another file system, or one without links
        shutil.copy2(file, to)


def _does_not_run(mutant: Mutant, said: str) -> InvalidInput:
    return InvalidInput(f"mutant {mutant.name} does not run: {said.strip()[-300:]}", hint="mend its replacement")

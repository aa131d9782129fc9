"""The processes of one project: schedulers and workers, started as in a shell, killed, and looked at from outside."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from arco.kernel.ids import RunId
from arco.ledger.run_state import RunState
from arco.servo.schedule.starting import open_run
from arco.surface.cli.opening import opened
from arco.surface.cli.projects import read_project

REPOSITORY = Path(__file__).resolve().parents[2]
COMMAND_S_MAX = 900.0  # also in fixtures, which no test's own limit covers
KEY = "0123456789abcdef0123456789abcdef"
_SHELL = "import sys; sys.argv[0] = 'arco'; from arco.surface.cli.main import run; run()"
Process = subprocess.Popen[bytes]


@dataclass(slots=True)
class Fleet:
    """One project in a folder, and the processes that work on it. All of them have the key that tasks are signed with."""

    folder: Path
    processes: list[Process] = field(default_factory=list)
    started: int = 0
    environment: dict[str, str] = field(default_factory=dict)
    """What its processes find in their environment, beside what is there and the key that tasks are signed with."""
    options: list[str] = field(default_factory=list)
    """Options of the store for whoever looks at it from here, where the project's file does not say them."""

    def write(self, toml: str, assets: str) -> None:
        (self.folder / "assets").mkdir(parents=True)
        (self.folder / "assets" / "assets.py").write_text(assets)
        (self.folder / "arco.toml").write_text(toml)

    def do(self, *words: str) -> bytes:
        """A command, to its end."""
        command = self._words((sys.executable, "-c", _SHELL), *words)
        ended = subprocess.run(
            command, cwd=REPOSITORY, check=True, stdout=subprocess.PIPE, env=self._environment(), timeout=COMMAND_S_MAX
        )
        return ended.stdout

    def begin(self, *words: str) -> RunId:
        """A run that is left to the workers."""
        return RunId(json.loads(self.do("run", *words, "--detach", "--json"))["run"])

    def start(self, *words: str, by: tuple[str, ...] = ("-c", _SHELL)) -> Process:
        """A process that stays. `by` is what Python is told to do with the words."""
        self.started += 1
        with self._log(self.started).open("wb") as out:
            process = subprocess.Popen(
                self._words((sys.executable, *by), *words),
                cwd=REPOSITORY,
                stdout=out,
                stderr=subprocess.STDOUT,
                env=self._environment(),
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    def lines(self) -> list[str]:
        """Everything that the processes have said so far."""
        return [line for one in range(1, self.started + 1) for line in self._log(one).read_text().splitlines()]

    def _log(self, number: int) -> Path:
        return self.folder / f"process-{number}.log"

    def _words(self, program: tuple[str, ...], *words: str) -> list[str]:
        return [*program, *words, "--project", str(self.folder)]

    def send(self, process: Process, what: signal.Signals) -> None:
        """To Spark's processes as well: a machine is gone, or asleep, as a whole."""
        os.killpg(process.pid, what)

    def kill(self, process: Process) -> None:
        self.send(process, signal.SIGKILL)
        process.wait()
        self.processes.remove(process)

    def dismiss(self, process: Process) -> int:
        """Ask one to end, and how it did."""
        self.processes.remove(process)
        process.terminate()
        try:
            return process.wait(120)
        except subprocess.TimeoutExpired:
            self.send(process, signal.SIGKILL)
            return process.wait()

    def stop(self) -> list[int]:
        """All of them, those that others wait for last."""
        return [self.dismiss(one) for one in reversed(self.processes[:])]

    async def state(self, run: RunId) -> RunState:
        async with opened(read_project(str(self.folder)).where(None, self.options)) as home:
            parts = home.catalog.parts
            return (await open_run(parts.tier1.store, parts.scope, run, parts.clock, parts.entropy)).log.state

    def until(self, run: RunId, true: Callable[[RunState], bool]) -> RunState:
        """The state of a run as soon as something is true of it. The processes must be there all the while."""
        try:
            while not true(state := asyncio.run(self.state(run))):
                gone = [one.args for one in self.processes if one.poll() is not None]
                assert not gone, f"{gone} ended before the run did"
                time.sleep(0.5)
        except BaseException:
            print("\n".join(self.lines()[-300:]))  # for whoever looks at a test that failed, or that took too long
            raise
        return state

    def ended(self, run: RunId) -> RunState:
        return self.until(run, lambda state: state.is_finished)

    def _environment(self) -> dict[str, str]:
        found = {name: value for name, value in os.environ.items() if name != "ARCO_ROOT"}
        return found | {"ARCO_TASK_KEY": KEY} | self.environment

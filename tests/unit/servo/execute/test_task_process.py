"""The process of a task is listened to, and ended with everything that it started; it finds around it what it is given."""

import asyncio
import os
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from arco.servo.execute.computing import TaskRefused
from arco.servo.execute.task_messages import Made
from arco.servo.execute.task_process import TaskProcess, new_scratch

SAYS = """
import os, sys
from arco.servo.execute.task_messages import *
from arco.ledger.run_entries import Failure
pipe = int(sys.argv[2])
def say(message):
    os.write(pipe, framed(message))
"""
MADE = "say(Made(columns={}, aside_columns=None, external=[], full_reads={}))\n"


@dataclass
class Heard:
    lines: list[tuple[str, str]] = field(default_factory=list)
    facts: list[Mapping[str, Any]] = field(default_factory=list)

    def progress(self, facts: Mapping[str, Any]) -> None:
        self.facts.append(facts)

    def say(self, text: str, level: str = "info") -> None:
        self.lines.append((level, text))

    def listening(self) -> AbstractContextManager[None]:
        return nullcontext()


async def started(script: str, heard: Heard, scratch: Path | None = None) -> TaskProcess:
    environment = {"PATH": os.environ.get("PATH", os.defpath), "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    return await TaskProcess.started(environment, scratch or new_scratch(), heard, (sys.executable, "-c", SAYS + script))


def answered(script: str) -> tuple[Made | BaseException, Heard]:
    """The first answer of a process, or what became of it."""
    heard = Heard()

    async def story() -> Made | BaseException:
        process = await started(script, heard)
        try:
            found = await process.answer()
            assert isinstance(found, Made)
            return found
        except (TaskRefused, Exception) as error:  # noqa: BLE001 - whatever it is, it is looked at
            return error
        finally:
            await process.end()

    return asyncio.run(story()), heard


def test_what_it_says_before_its_answer_is_told() -> None:
    said = 'say(Said("warning", "look")); say(Progress({"phase": "reading", "tasks": 2}))\n'
    found, heard = answered(said + MADE)
    assert isinstance(found, Made)
    assert ("warning", "look") in heard.lines
    assert heard.facts == [{"phase": "reading", "tasks": 2}]


def test_a_failure_crosses_as_data_and_is_bounded() -> None:
    found, _ = answered('say(Failed(Failure(kind="nonsense", message="x" * 100_000, transient=True, severity="loud")))')
    assert isinstance(found, TaskRefused)
    assert (found.failure.kind, found.failure.transient, found.failure.severity) == ("transform", True, "error")
    assert len(found.failure.message) < 5000


@pytest.mark.parametrize(
    ("script", "how"),
    [
        ("os.kill(os.getpid(), 9)", "ended with signal SIGKILL"),
        ('sys.stderr.write("no memory left\\n"); sys.exit(3)', "ended with exit code 3; its log says: "),
        ("os.close(pipe); import time; time.sleep(60)", "ended with signal SIGKILL"),
    ],
)
def test_a_process_that_is_gone_is_a_failure_that_may_pass(script: str, how: str) -> None:
    found, heard = answered(f"print('printed', flush=True); {script}")
    assert isinstance(found, TaskRefused)
    assert ("info", "printed") in heard.lines
    assert all(text in found.failure.message for _, text in heard.lines)
    assert how in found.failure.message
    assert found.failure.transient


def test_ending_it_ends_what_it_started_and_its_scratch(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    script = (
        "import subprocess, time\n"
        "one = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "say(Said('info', str(one.pid)))\n" + MADE + "time.sleep(600)"
    )
    heard = Heard()

    async def story() -> int:
        process = await started(script, heard, scratch)
        await process.answer()
        waiting = asyncio.ensure_future(process.answer())
        await asyncio.sleep(0)
        waiting.cancel()
        with suppress(asyncio.CancelledError):
            await waiting
        await process.end()
        return process.pid

    pid = asyncio.run(story())
    (other,) = [int(text) for level, text in heard.lines if level == "info"]
    assert _is_gone(pid)
    assert _is_gone(other)
    assert not scratch.exists()


def test_it_finds_in_its_environment_what_it_is_given_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_SECRET_ACCESS_KEY", "ARCO_TASK_KEY", "ARCO_TOKEN", "ANYTHING"):
        monkeypatch.setenv(name, "canary")
    _, heard = answered('say(Said("info", " ".join(sorted(os.environ)))); ' + MADE)
    (names,) = [text for level, text in heard.lines if level == "info"]
    assert set(names.split()) - {"LC_CTYPE"} == {"PATH", "PYTHONPATH", "TMPDIR"}


def test_a_worker_that_is_gone_takes_its_tasks_with_it(tmp_path: Path) -> None:
    """The task's own program, told nothing: the end of the pipe is its end."""
    theirs, ours = os.pipe()
    mine, its = os.pipe()

    async def story() -> int:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "arco.servo.execute.task_main", str(theirs), str(its)),
            pass_fds=(theirs, its),
            start_new_session=True,
        )
        os.close(theirs)
        os.close(its)
        os.close(ours)
        return await process.wait()

    assert asyncio.run(story()) == -9
    os.close(mine)


def _is_gone(pid: int) -> bool:
    """Whether a process has ended; who adopted it may not have asked how yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True

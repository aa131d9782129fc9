"""The process beside a server that folds: woken, heard, started again, never left behind. The processes are real, and small."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable

import pytest

from arco.kernel.limits import FOLD_RESTART_S_MAX
from arco.kernel.scope import Scope
from arco.surface.fold_process import FoldProcess
from stand_ins.hand_clock import HandClock

SHOP = Scope.of("acme", "shop")
# Says that it is there, then repeats what it hears; it ends where its input ends.
PARROT = """
import json, sys
print(json.dumps({"warehouse": None, "error": "hello"}), flush=True)
for line in sys.stdin:
    counts = {"segments": 1, "receipts": 0, "events": 7, "refused": 0}
    print(json.dumps({"warehouse": line.strip(), "heads": {"execution": counts}, "failed": {"search": "away"}}), flush=True)
"""


def played(script: str, play: Callable[[FoldProcess, HandClock], Awaitable[None]]) -> None:
    async def go() -> None:
        clock = HandClock()
        fold = FoldProcess([sys.executable, "-c", script], dict(os.environ), clock)
        fold.start()
        try:
            await play(fold, clock)
        finally:
            await fold.stop()
        assert fold._process is not None
        assert fold._process.returncode is not None, "nothing is left behind"

    asyncio.run(go())


async def until(is_so: Callable[[], bool]) -> None:
    """Processes take their time; a test that hangs is ended by its timeout."""
    while not is_so():  # noqa: ASYNC110 - another process does it
        await asyncio.sleep(0.01)


def test_it_is_woken_and_what_it_does_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def play(fold: FoldProcess, clock: HandClock) -> None:
        assert fold.status.document() == {"state": "starting", "restarts": 0, "last-pass": None}
        await until(lambda: fold.status.state == "following")
        fold.wake(SHOP)
        await until(lambda: "acme/shop" in caplog.text)
        assert clock.pauses == []
        assert fold.status.restarts == 0
        assert fold.status.document()["last-pass"] is not None

    with caplog.at_level("INFO", "arco.fold"):
        played(PARROT, play)
    assert "fold of the root: hello" in caplog.text
    assert "fold of acme/shop: execution, 1 segments, 7 events, 0 refused" in caplog.text
    assert "fold of acme/shop: search: away" in caplog.text


def test_one_that_ends_is_started_again_after_longer_and_longer_waits(caplog: pytest.LogCaptureFixture) -> None:
    async def play(fold: FoldProcess, clock: HandClock) -> None:
        fold.wake(SHOP)  # nobody is there yet: it is found at the next start
        await until(lambda: fold.status.restarts >= 8)
        assert clock.pauses[:8] == [1, 2, 4, 8, 16, 32, FOLD_RESTART_S_MAX, FOLD_RESTART_S_MAX]

    played("print('out of memory'); raise SystemExit(3)", play)
    assert "the fold ended (exit code 3); it is started again in 1 s" in caplog.text
    assert "the fold says: out of memory" in caplog.text


def test_one_that_was_killed_is_said_to_be(caplog: pytest.LogCaptureFixture) -> None:
    async def play(fold: FoldProcess, clock: HandClock) -> None:
        await until(lambda: fold.status.state == "following")
        assert fold._process is not None
        fold._process.kill()
        await until(lambda: fold.status.restarts == 1)
        assert "the fold ended (signal 9)" in caplog.text
        await until(lambda: fold.status.state == "following")

    played(PARROT, play)


def test_a_program_that_is_not_there_is_no_reason_to_stop_serving(caplog: pytest.LogCaptureFixture) -> None:
    async def go() -> None:
        fold = FoldProcess(["/nowhere/arco"], {}, HandClock())
        fold.start()
        await until(lambda: fold.status.restarts >= 1)
        await fold.stop()

    asyncio.run(go())
    assert "could not be started" in caplog.text

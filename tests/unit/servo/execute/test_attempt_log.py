"""What an attempt says: kept in parts, of its own thread alone, and never in the way of the attempt."""

import logging
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import arco
from arco.kernel.clock import SystemClock
from arco.kernel.errors import Unavailable
from arco.kernel.ids import RunId, TaskId
from arco.kernel.limits import TASK_LOG_EVERY_S, TASK_LOG_LINES_MAX
from arco.servo.execute.attempt_log import AttemptLog, LogLine, read_log
from arco.servo.execute.verify_documents import verify_documents
from arco.storage.findings import Report
from arco.storage.keys import TaskLogKey
from arco.storage.looking import Look
from arco.storage.memory import MemoryStore
from arco.storage.port import Always, Condition, Outcome
from fixtures.servo.lake import Lake

RUN, TASK = RunId("01JZ3V5Q0E8Y7M2K4T6B9N1D3F"), TaskId("task_00000000000000aa")


@pytest.fixture
def lake() -> Iterator[Lake]:
    with Lake() as lake:
        yield lake


def lines(lake: Lake) -> list[tuple[int, int, str, str]]:
    async def read() -> list[tuple[int, int, str, str]]:
        found = read_log(lake.store, lake.catalog.parts.scope, RUN, TASK)
        return [(key.attempt, key.part, one.level, one.text) async for key, some in found for one in some]

    return lake.run(read())


def test_lines_are_written_in_parts_attempt_by_attempt(lake: Lake) -> None:
    first, second = (AttemptLog(lake.catalog.parts, RUN, TASK, number) for number in (1, 2))
    first.say("reading")
    lake.run(first.flush())
    first.say("writing", "warning")
    lake.run(first.flush())
    lake.run(first.flush())  # nothing new, nothing written
    second.say("again")
    lake.run(second.flush())
    assert lines(lake) == [(1, 1, "info", "reading"), (1, 2, "warning", "writing"), (2, 1, "info", "again")]


def test_what_is_kept_is_looked_at_and_a_damaged_part_is_named(lake: Lake) -> None:
    log = AttemptLog(lake.catalog.parts, RUN, TASK, 1)
    for text in ("reading", "writing"):
        log.say(text)
        lake.run(log.flush())

    def looked_at() -> Report:
        report = Report()
        lake.run(verify_documents(Look(lake.store, lake.catalog.parts.scope, report)))
        return report

    assert (looked_at().findings, looked_at().counts["task_logs"]) == ([], 2)
    key = str(TaskLogKey(lake.catalog.parts.scope, RUN, TASK, 1, 2))
    lake.run(lake.store.put(key, b'{"at_ms":1,"level":"info","te', Always()))
    (finding,) = looked_at().findings
    assert (finding.code, finding.subject) == ("task_log_unreadable", key)
    assert "nothing depends on it" in finding.todo


def test_what_code_logs_on_the_thread_of_an_attempt_is_the_attempts(lake: Lake) -> None:
    log = AttemptLog(lake.catalog.parts, RUN, TASK, 1)
    with log.listening():
        logging.getLogger("shop.orders").info("%d orders", 3)
        logging.getLogger("py4j.clientserver").info("chatter")
        logging.getLogger("shop.orders").debug("too much")
    logging.getLogger("shop.orders").info("somebody else's")
    lake.run(log.flush())
    assert lines(lake) == [(1, 1, "info", "shop.orders: 3 orders")]


def test_what_code_prints_on_the_thread_of_an_attempt_is_the_attempts_and_still_shown(
    lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    log, other = (AttemptLog(lake.catalog.parts, RUN, TASK, number) for number in (1, 2))
    with log.listening():
        print("3", "orders", sep=" good ")
        print("to somebody else", file=sys.stderr)
        with ThreadPoolExecutor(1) as pool:
            pool.submit(print, "on a thread of nobody's").result()
            pool.submit(said_by, other, "of the other").result()
        print("a line that ", end="")
        print("comes in parts\n\nand one without an end", end="")
    print("after it")
    for one in (log, other):
        lake.run(one.flush())
    assert [(attempt, text) for attempt, _, _, text in lines(lake)] == [
        (1, "3 good orders"),
        (1, "a line that comes in parts"),
        (1, "and one without an end"),
        (2, "of the other"),
    ]
    shown = capsys.readouterr()
    assert shown.out == (
        "3 good orders\non a thread of nobody's\nof the other\na line that comes in parts\n\nand one without an end"
        "after it\n"
    )
    assert shown.err == "to somebody else\n"


def said_by(log: AttemptLog, text: str) -> None:
    with log.listening():
        print(text)


def test_a_failure_is_there_with_where_it_happened(lake: Lake) -> None:
    log = AttemptLog(lake.catalog.parts, RUN, TASK, 1)
    try:
        raise ValueError("no such day")
    except ValueError as error:
        log.failed(error)
    lake.run(log.flush())
    assert lines(lake)[-1] == (1, 1, "error", "ValueError: no such day")
    assert any("test_attempt_log.py" in text for *_, text in lines(lake))


OURS = """
def inside(work):
    return work()

def caught(pool, work):
    try:
        pool.submit(inside, work).result()
    except Exception as error:
        return error
"""


def test_a_failure_begins_where_the_code_of_the_asset_does(lake: Lake) -> None:
    """What Arco and its threads did before is left out, and so before what it came of."""
    ours: dict[str, Callable[..., Any]] = {}
    exec(compile(OURS, str(Path(arco.__file__).parent / "servo" / "execute" / "ours.py"), "exec"), ours)

    def code() -> None:
        try:
            ours["inside"](wrong)
        except KeyError as error:
            raise ValueError("no such day") from error

    def wrong() -> None:
        raise KeyError("day")

    log = AttemptLog(lake.catalog.parts, RUN, TASK, 1)
    with ThreadPoolExecutor(1) as pool:
        log.failed(ours["caught"](pool, code))
    lake.run(log.flush())
    said = [text.strip() for *_, text in lines(lake) if text.strip().startswith(("File", "KeyError", "ValueError"))]
    assert [line.rpartition(" ")[2] for line in said] == ["code", "inside", "wrong", "'day'", "code", "day"]


def test_a_failure_of_arcos_own_is_there_with_all_of_it(lake: Lake) -> None:
    ours: dict[str, Callable[..., Any]] = {}
    exec(compile(OURS, str(Path(arco.__file__).parent / "servo" / "execute" / "ours.py"), "exec"), ours)
    log = AttemptLog(lake.catalog.parts, RUN, TASK, 1)
    with ThreadPoolExecutor(1) as pool:
        log.failed(ours["caught"](pool, None))
    lake.run(log.flush())
    assert any("in inside" in text for *_, text in lines(lake))


def test_what_is_too_much_is_left_out_and_said_to_be(lake: Lake) -> None:
    log = AttemptLog(lake.catalog.parts, RUN, TASK, 1)
    for number in range(TASK_LOG_LINES_MAX + 10):
        log.say(str(number))
    lake.run(log.flush())
    found = lines(lake)
    assert len(found) == TASK_LOG_LINES_MAX
    assert found[-1][2:] == ("warning", "more lines were said, and are left out")


class _Silent(MemoryStore):
    silent = True

    async def put(self, key: str, data: bytes, condition: Condition) -> Outcome:
        if self.silent and "/logs/" in key:
            raise Unavailable("the store did not answer")
        return await super().put(key, data, condition)


def test_a_store_that_is_silent_costs_nothing_but_time() -> None:
    store = _Silent(SystemClock())
    with Lake(store=store) as lake:
        parts = lake.catalog.parts
        log = AttemptLog(parts, RUN, TASK, 1)
        log.say("first")
        lake.run(log.flush())
        store.silent = False
        log.say("second")
        lake.run(log.flush())

        async def read() -> list[LogLine]:
            return [one async for _, some in read_log(store, parts.scope, RUN, TASK) for one in some]

        assert [one.text for one in lake.run(read())] == ["first", "second"]


def test_while_it_runs_it_is_written_now_and_then(lake: Lake) -> None:
    log = AttemptLog(lake.catalog.parts, RUN, TASK, 1)
    log.say("reading")

    async def looked(after_s: float) -> None:
        log._flushed_s = lake.clock.monotonic_s() - after_s
        log.flush_soon()
        if log._flushing is not None:
            await log._flushing

    lake.run(looked(TASK_LOG_EVERY_S / 2))
    assert lines(lake) == []
    lake.run(looked(TASK_LOG_EVERY_S))
    assert [text for *_, text in lines(lake)] == ["reading"]

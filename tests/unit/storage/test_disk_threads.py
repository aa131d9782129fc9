"""Threads that wait for a disk: what they were asked to do is done, once, and whoever asked hears what came of it."""

import asyncio
import gc
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest

from arco.storage.disk_threads import DiskThreads

MEETING_S = 10.0


def test_work_runs_at_the_same_time_and_each_hears_its_own_result() -> None:
    meeting = threading.Barrier(3)

    def meet(number: int) -> int:
        meeting.wait(MEETING_S)
        return number

    async def run() -> list[int]:
        return await asyncio.gather(*(threads.run(meet, number) for number in range(3)))

    threads = DiskThreads(3, "test")
    assert asyncio.run(run()) == [0, 1, 2]
    threads.close()


def test_more_work_than_threads_waits_and_is_done_by_those_there_are() -> None:
    who: set[str] = set()

    def work() -> None:
        who.add(threading.current_thread().name)

    async def run() -> None:
        await asyncio.gather(*(threads.run(work) for _ in range(50)))

    threads = DiskThreads(2, "test")
    asyncio.run(run())
    threads.close()
    assert who <= {"test_0", "test_1"}


def test_a_thread_that_is_idle_is_asked_before_another_is_started() -> None:
    names: list[str] = []
    threads = DiskThreads(8, "test")
    pause = threading.Event()
    for _ in range(10):
        threads.submit(lambda: names.append(threading.current_thread().name))
        # It is done before the thread is back in its place.
        while not threads._desk.idle:
            pause.wait(0.001)
    threads.close()
    assert names == ["test_0"] * 10


def test_a_failure_is_raised_where_it_is_waited_for() -> None:
    def fail() -> None:
        raise OSError(28, "no space")

    async def run() -> None:
        with pytest.raises(OSError, match="no space"):
            await threads.run(fail)
        assert await threads.run(lambda: "goes on") == "goes on"

    threads = DiskThreads(1, "test")
    asyncio.run(run())
    threads.close()


def test_what_nobody_waits_for_any_more_is_not_begun() -> None:
    may_go = threading.Event()
    begun: list[int] = []

    async def run() -> None:
        first = threads.run(may_go.wait, MEETING_S)
        second = threads.run(begun.append, 2)
        second.cancel()
        may_go.set()
        await first
        await threads.run(begun.append, 3)

    threads = DiskThreads(1, "test")
    asyncio.run(run())
    threads.close()
    assert begun == [3]


def test_a_loop_that_has_ended_listens_no_more_and_the_thread_goes_on() -> None:
    may_go = threading.Event()

    async def run() -> None:
        threads.run(may_go.wait, MEETING_S)

    async def again() -> int:
        return await threads.run(lambda: 7)

    threads = DiskThreads(1, "test")
    asyncio.run(run())
    may_go.set()
    assert asyncio.run(again()) == 7
    threads.close()


def test_closing_waits_for_what_was_asked_and_takes_no_more() -> None:
    done: list[int] = []
    threads = DiskThreads(2, "test")
    for number in range(20):
        threads.submit(partial(done.append, number))
    threads.close()
    assert sorted(done) == list(range(20))
    with pytest.raises(RuntimeError):
        threads.submit(lambda: None)


def test_what_goes_together_meets_and_all_of_it_ends_before_a_failure_is_raised() -> None:
    meeting, ended = threading.Barrier(3), []

    def meet(number: int) -> None:
        meeting.wait(MEETING_S)
        if number == 0:
            raise OSError(5, "of the first")
        ended.append(number)

    threads = DiskThreads(2, "test")
    with pytest.raises(OSError, match="of the first"):
        threads.together([lambda: meet(0), lambda: meet(1), lambda: meet(2)])
    assert sorted(ended) == [1, 2]
    threads.together([])
    threads.together([lambda: ended.append(9)])
    assert ended[-1] == 9
    threads.close()


def test_threads_whose_owner_is_gone_end() -> None:
    threads = DiskThreads(1, "test")
    who: list[threading.Thread] = []
    begun = threading.Event()

    def work() -> None:
        who.append(threading.current_thread())
        begun.set()

    threads.submit(work)
    assert begun.wait(MEETING_S)
    del threads
    gc.collect()
    who[0].join(MEETING_S)
    assert not who[0].is_alive()


def test_a_process_that_closes_nothing_ends_and_has_done_what_was_asked(tmp_path: Path) -> None:
    said = """
import sys, threading
from pathlib import Path
from arco.storage.disk_threads import DiskThreads
threads, main_ended = DiskThreads(1, "test"), threading.main_thread().join
def work():
    main_ended()
    Path(sys.argv[1]).write_text("done")
threads.submit(work)
"""
    told = tmp_path / "told"
    subprocess.run([sys.executable, "-c", said, str(told)], check=True, timeout=60)
    assert told.read_text() == "done"

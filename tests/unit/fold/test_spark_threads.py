"""A Spark that takes its time to answer stops nobody else: heartbeats and everything beside it go on."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from arco.fold.spark_threads import SparkThreads

PATIENCE_S = 30


class SlowSession:
    """Answers, and stops jobs, when it is let: as a JVM that collects its garbage."""

    def __init__(self) -> None:
        self.let = threading.Event()
        self.asked = 0
        self.at_once = 0
        self.at_once_most = 0
        self.stopped = threading.Event()
        self.broken: Exception | None = None
        self._counting = threading.Lock()

    @contextmanager
    def job(self, group: str, description: str) -> Iterator[None]:
        yield

    def progress(self, group: str) -> str:
        self._held()
        if self.broken is not None:
            raise self.broken
        return f"how far {group} is"

    def cancel(self, group: str) -> None:
        self._held()
        self.stopped.set()

    def _held(self) -> None:
        with self._counting:
            self.asked += 1
            self.at_once += 1
            self.at_once_most = max(self.at_once_most, self.at_once)
        assert self.let.wait(PATIENCE_S)
        with self._counting:
            self.at_once -= 1


class Call:
    """A call under way, whose work ends when it is let; `told` is what was said of it."""

    def __init__(self, threads: SparkThreads, group: str = "one") -> None:
        self.end = threading.Event()
        self.told: list[Any] = []
        self._looked = asyncio.Event()
        self.task = asyncio.create_task(threads.call(group, "a job", self._work, self._tell))

    def _work(self) -> str:
        assert self.end.wait(PATIENCE_S)
        return "done"

    def _tell(self, found: Any) -> None:
        self.told.append(found)
        self._looked.set()

    async def looked(self, times: int) -> None:
        for _ in range(times):
            self._looked.clear()
            await self._looked.wait()

    async def result(self) -> Any:
        self.end.set()
        return await self.task


@pytest.fixture
def session() -> SlowSession:
    return SlowSession()


def threads_of(session: SlowSession) -> SparkThreads:
    return SparkThreads(session, 2, look_s=0.001)  # type: ignore[arg-type]


def story(tell: Any) -> None:
    asyncio.run(asyncio.wait_for(tell(), PATIENCE_S))


def test_what_spark_does_not_answer_stops_nobody_and_is_asked_once(session: SlowSession):
    async def tell() -> None:
        threads = threads_of(session)
        call = Call(threads)
        await call.looked(5)
        assert (set(call.told), session.asked) == ({None}, 1)
        session.let.set()
        while call.told[-1] is None:
            await call.looked(1)
        assert call.told[-1] == "how far one is"
        assert await call.result() == "done"
        threads.close()

    story(tell)


def test_what_spark_said_last_is_said_again_until_it_says_more(session: SlowSession):
    """Whoever counts looks, or sends what a task's code said with each of them, goes on."""

    async def tell() -> None:
        threads = threads_of(session)
        session.let.set()
        call = Call(threads)
        while not any(call.told):
            await call.looked(1)
        session.let.clear()
        await call.looked(5)
        assert call.told[-1] == "how far one is"
        session.let.set()
        await call.result()
        threads.close()

    story(tell)


def test_work_that_ends_does_not_wait_for_a_question(session: SlowSession):
    async def tell() -> None:
        threads = threads_of(session)
        call = Call(threads)
        await call.looked(1)
        assert await call.result() == "done"
        assert session.at_once == 1
        session.let.set()
        threads.close()

    story(tell)


def test_spark_is_asked_one_question_at_a_time(session: SlowSession):
    async def tell() -> None:
        threads = threads_of(session)
        calls = Call(threads, "one"), Call(threads, "two")
        for call in calls:
            await call.looked(3)
        session.let.set()
        for call in calls:
            while call.told[-1] is None:
                await call.looked(1)
            await call.result()
        assert session.at_once_most == 1
        threads.close()

    story(tell)


def test_a_question_that_fails_does_not_fail_the_work(session: SlowSession):
    async def tell() -> None:
        threads = threads_of(session)
        session.broken = OSError("the gateway is gone")
        session.let.set()
        call = Call(threads)
        await call.looked(5)
        assert await call.result() == "done"
        threads.close()

    story(tell)


def test_a_call_is_cancelled_while_spark_is_silent_and_the_loop_goes_on(session: SlowSession):
    async def tell() -> None:
        threads = threads_of(session)
        call = Call(threads)
        await call.looked(2)
        call.task.cancel()
        for _ in range(100):
            await asyncio.sleep(0)
        assert not call.task.done()
        session.let.set()
        assert await asyncio.to_thread(session.stopped.wait, PATIENCE_S)
        call.end.set()
        with pytest.raises(asyncio.CancelledError):
            await call.task
        threads.close()

    story(tell)

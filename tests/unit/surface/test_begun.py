"""Work that was begun without a task goes on in one: with what it waits for, what it is told, and what it raises."""

import asyncio
from typing import Any

import pytest

from arco.surface.http.begun import Rest


def begun(work: Any) -> Rest[Any]:
    return Rest(work, work.send(None))


def test_what_is_left_goes_on_where_the_work_stood() -> None:
    async def run() -> list[str]:
        told: list[str] = []
        first: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        async def work() -> str:
            told.append("begun")
            told.append(await first)
            await asyncio.sleep(0)
            return "ended"

        rest = begun(work())
        told.append("waits")
        first.set_result("heard")
        return [*told, await rest, *told[2:]]

    assert asyncio.run(run()) == ["begun", "waits", "ended", "heard"]


def test_what_it_waits_for_may_fail_and_so_may_it() -> None:
    async def run() -> None:
        first: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def work() -> None:
            try:
                await first
            except KeyError:
                await asyncio.sleep(0)
                raise ValueError("its own") from None

        rest = begun(work())
        first.set_exception(KeyError("first"))
        with pytest.raises(ValueError, match="its own"):
            await rest

    asyncio.run(run())


def test_who_is_cancelled_hears_it() -> None:
    async def run() -> list[str]:
        told: list[str] = []

        async def work() -> str:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                told.append("cancelled")
            return "ended"

        async def go_on(rest: Rest[str]) -> str:
            return await rest

        task = asyncio.ensure_future(go_on(begun(work())))
        await asyncio.sleep(0)
        task.cancel()
        return [*told, await task, *told]

    assert asyncio.run(run()) == ["ended", "cancelled"]

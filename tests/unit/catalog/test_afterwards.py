"""Things that are done beside one another: all of them end before anybody is answered, and what is let go of waits for nobody."""

import asyncio
from collections.abc import Generator

import pytest

from arco.catalog.afterwards import beside


class Waiting:
    """Something that does not come about."""

    def __await__(self) -> Generator[None, None, None]:
        yield


async def waiting() -> None:
    await Waiting()


def test_a_failure_is_told_when_the_others_have_ended() -> None:
    ended = []

    async def fails() -> None:
        raise ValueError("first")

    async def ends(number: int) -> None:
        await asyncio.sleep(0)
        ended.append(number)

    with pytest.raises(ValueError, match="first"):
        asyncio.run(beside(fails(), ends(1), ends(2)))
    assert ended == [1, 2]


def test_whoever_is_called_off_calls_off_the_others() -> None:
    async def called_off() -> bool:
        loop = asyncio.get_running_loop()
        other: asyncio.Future[None] = loop.create_future()
        whole = asyncio.ensure_future(beside(loop.create_future(), other))
        await asyncio.sleep(0)
        whole.cancel()
        await asyncio.wait([whole])
        return whole.cancelled() and other.cancelled()

    assert asyncio.run(called_off())


def test_what_is_let_go_of_in_the_middle_does_not_wait_for_the_rest() -> None:
    loop = asyncio.new_event_loop()
    try:
        work = beside(waiting(), loop.create_future())
        work.send(None)
        work.close()  # raises if it goes on
    finally:
        loop.close()

"""Workers that hand requests to each other: what is handed over is done once, or where it came in, or nobody claims to know."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from arco.kernel.errors import CorruptObject, OutcomeUnknown
from arco.kernel.limits import HANDED_OVER_BYTES_MAX, HANDOVER_SILENCE_S
from arco.surface.http import crew
from arco.surface.http.crew import Crew, Desk, Owner, Work
from arco.surface.http.handover import Answer, Ask, Channel, Taken
from stand_ins.hand_clock import HandClock

HEADERS = [(b"host", b"localhost")]


def a_request(number: int) -> Ask:
    return Ask(number, "POST", b"/x", b"", HEADERS, b"{}")


async def echo(ask: Ask) -> Answer:
    return Answer(ask.number, 200, ask.headers, ask.body)


def nobody_wakes(_warehouse: str) -> None:
    raise AssertionError("nobody was to be woken")


@asynccontextmanager
async def desk_at(path: Path, work: Work, wake: Callable[[str], None] = nobody_wakes) -> AsyncIterator[Desk]:
    desk = Desk(path, work, wake)
    await desk.open()
    yield desk
    await desk.close()


@pytest.fixture
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("crew") / "1.sock"


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


def run(work: Awaitable[None]) -> None:
    async def within() -> None:
        await asyncio.wait_for(work, 60)

    asyncio.run(within())


def test_what_is_handed_over_comes_back_answered_whatever_its_size_and_order(path: Path, clock: HandClock) -> None:
    async def work(ask: Ask) -> Answer:
        if ask.body == b"slow":
            await first_done.wait()
        first_done.set()
        return await echo(ask)

    async def scene() -> None:
        async with desk_at(path, work):
            owner = Owner(path, clock)
            bodies = [b"slow", b"x" * 3_000_000, b"{}"]
            asks = [owner.ask(lambda number, body=body: Ask(number, "POST", b"/x", b"q", HEADERS, body)) for body in bodies]
            answers = await asyncio.gather(*asks)
            assert [one.body for one in answers if one] == bodies
            owner.close()

    first_done = asyncio.Event()
    run(scene())


def test_an_owner_that_is_not_there_is_not_waited_for(path: Path, clock: HandClock) -> None:
    async def scene() -> None:
        owner = Owner(path, clock)
        assert await owner.ask(a_request) is None
        async with desk_at(path, echo):
            assert await owner.ask(a_request) is not None
            owner.close()

    run(scene())


def test_an_owner_that_ends_answers_what_it_has_begun_and_begins_nothing(path: Path, clock: HandClock) -> None:
    async def work(ask: Ask) -> Answer:
        begun.set()
        await go_on.wait()
        return await echo(ask)

    async def scene() -> None:
        desk = Desk(path, work, nobody_wakes)
        await desk.open()
        owner = Owner(path, clock)
        before = asyncio.create_task(owner.ask(a_request))
        await begun.wait()
        ending = asyncio.create_task(desk.close())
        # Sent before the other has heard that there is no more, or after: either way nobody begins it.
        assert await owner.ask(a_request) is None
        go_on.set()
        answer = await before
        assert answer is not None
        assert answer.status == 200
        await ending
        assert await owner.ask(a_request) is None

    begun, go_on = asyncio.Event(), asyncio.Event()
    run(scene())


def test_of_an_owner_that_dies_after_it_was_asked_nobody_claims_to_know_the_outcome(path: Path, clock: HandClock) -> None:
    """Done again where it came in, a commit without a key would be there twice."""
    channels: list[Channel] = []

    async def scene() -> None:
        loop = asyncio.get_running_loop()

        def heard(channel: Channel, _frame: object) -> None:
            channel.close()

        server = await loop.create_unix_server(lambda: Channel(heard, channels.append), str(path))
        with pytest.raises(OutcomeUnknown):
            await Owner(path, clock).ask(a_request)
        server.close()

    run(scene())


@pytest.mark.parametrize("steps", range(12))
def test_an_owner_that_dies_while_it_is_being_reached_is_not_waited_for(
    path: Path, clock: HandClock, steps: int, monkeypatch
) -> None:
    """The system lets a client connect to a worker that never accepts: the connection may end before anything is sent over it."""
    monkeypatch.setattr(crew, "HANDOVER_SILENCE_S", 60)  # it is gone, and not only silent

    async def scene() -> None:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        listener.listen()
        asking = asyncio.create_task(Owner(path, clock).ask(a_request))
        for _ in range(steps):
            await asyncio.sleep(0)
        listener.close()
        ended, _ = await asyncio.wait({asking}, timeout=5)
        assert ended, "it waits for somebody who is gone"
        # What was sent may have been begun, for all that is known; what was not sent was not.
        assert isinstance(asking.exception(), OutcomeUnknown) or asking.result() is None

    run(scene())


def test_an_owner_that_is_stuck_is_asked_no_more_until_it_moves(path: Path, clock: HandClock) -> None:
    asked: list[Channel] = []

    async def scene() -> None:
        loop = asyncio.get_running_loop()
        heard = asyncio.Event()

        def hear(channel: Channel, _frame: object) -> None:
            asked.append(channel)
            heard.set()

        server = await loop.create_unix_server(lambda: Channel(hear, lambda _channel: None), str(path))
        owner = Owner(path, clock)
        first = asyncio.create_task(owner.ask(a_request))
        await heard.wait()
        clock.elapsed_s += HANDOVER_SILENCE_S + 0.1
        assert await owner.ask(a_request) is None
        asked[0].send(Answer(1, 200, [], b"at last"))
        answer = await first
        assert answer is not None
        heard.clear()
        second = asyncio.create_task(owner.ask(a_request))
        await heard.wait()
        asked[0].send(Answer(2, 200, [], b""))
        assert await second is not None
        owner.close()
        server.close()

    run(scene())


def test_a_stuck_owners_requests_are_answered_as_unknown_and_not_waited_for(
    path: Path, clock: HandClock, monkeypatch
) -> None:
    """What it was sent lies in its socket: it may do it when it moves again, so nobody else may."""
    monkeypatch.setattr(crew, "HANDOVER_SILENCE_S", 0.3)

    async def scene() -> None:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        listener.listen()
        owner = Owner(path, clock)
        asking = [asyncio.create_task(owner.ask(a_request)) for _ in range(3)]
        ended, _ = await asyncio.wait(asking, timeout=10)
        assert len(ended) == 3, "it waits for somebody who is stuck"
        assert all(isinstance(one.exception(), OutcomeUnknown) for one in asking)
        clock.elapsed_s += 0.4
        assert await owner.ask(a_request) is None, "it was forgotten that it is stuck"
        # It moves: what it says of requests whose clients have gone is not news to anybody, but it is asked again.
        taken, _ = listener.accept()
        reader, writer = await asyncio.open_unix_connection(sock=taken)
        told = Channel(lambda _channel, _frame: None, lambda _channel: None)
        told.connection_made(writer.transport)
        for number in (1, 2, 3):
            told.send(Taken(number))
        told.send(Answer(1, 200, [], b"at last"))
        while owner._is_stuck():  # noqa: ASYNC110 - nobody is told of it
            await asyncio.sleep(0)
        again = asyncio.create_task(owner.ask(a_request))
        while b"/x" not in await reader.read(65536):
            pass
        told.send(Answer(4, 200, [], b""))
        assert await again is not None
        owner.close()
        listener.close()
        writer.close()

    run(scene())


def test_a_slow_owner_that_has_begun_is_not_taken_for_stuck(path: Path, clock: HandClock) -> None:
    async def work(ask: Ask) -> Answer:
        if not begun.is_set():
            begun.set()
            await go_on.wait()
        return await echo(ask)

    async def scene() -> None:
        async with desk_at(path, work):
            owner = Owner(path, clock)
            first = asyncio.create_task(owner.ask(a_request))
            await begun.wait()
            assert await owner.ask(a_request) is not None  # by now it has said that it began the first
            clock.elapsed_s += 10 * HANDOVER_SILENCE_S
            assert await owner.ask(a_request) is not None
            go_on.set()
            assert await first is not None
            owner.close()

    begun, go_on = asyncio.Event(), asyncio.Event()
    run(scene())


def test_the_workers_agree_on_who_owns_what_and_every_one_of_them_owns_something(tmp_path: Path, clock: HandClock) -> None:
    sockets = [tmp_path / f"{number}.sock" for number in range(3)]
    crews = [Crew(clock, number, sockets) for number in range(3)]
    owners = []
    for table in range(100):
        lane = ("default.default", "ns", f"t{table}")
        doing_it_themselves = [crew.number for crew in crews if crew.owner(lane, 10) is None]
        assert len(doing_it_themselves) == 1
        owners += doing_it_themselves
    assert min(owners.count(number) for number in range(3)) > 10


def test_what_changes_nothing_that_others_do_and_what_is_large_stays_where_it_came_in(
    tmp_path: Path, clock: HandClock
) -> None:
    crews = [Crew(clock, number, [tmp_path / "0", tmp_path / "1"]) for number in range(2)]
    assert all(crew.owner((), 10) is None for crew in crews)
    assert all(crew.owner(("a", "b", "c"), HANDED_OVER_BYTES_MAX + 1) is None for crew in crews)
    assert Crew(clock).owner(("a", "b", "c"), 10) is None


def test_the_worker_that_folds_is_told_what_others_hear(tmp_path: Path, clock: HandClock) -> None:
    told: list[str] = []

    async def scene() -> None:
        sockets = [tmp_path / "0.sock", tmp_path / "1.sock"]
        first, other = Crew(clock, 0, sockets), Crew(clock, 1, sockets)
        await first.open(echo, lambda warehouse: (told.append(warehouse), heard.set())[0])
        await other.open(echo, nobody_wakes)
        await other.wake_first("tenant.workspace")
        await heard.wait()
        await asyncio.gather(other.close(), first.close())

    heard = asyncio.Event()
    run(scene())
    assert told == ["tenant.workspace"]


def test_what_no_worker_says_is_an_error_and_not_a_guess() -> None:
    channel = Channel(lambda _channel, _frame: None, lambda _channel: None)
    with pytest.raises(CorruptObject):
        channel.data_received(b"\x00\x00\x00\x01\xc1")

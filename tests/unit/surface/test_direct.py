"""Reads are answered where they are heard, if they need not wait; and nothing else about them changes."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from arco.kernel.secret import Secret
from arco.surface.http.access import Access
from arco.surface.http.app import Setup
from arco.surface.http.bounds import Bounds
from arco.surface.http.direct import DirectProtocol, guarded
from arco.surface.http.exchange import Request, Response, Streamed, no_content
from arco.surface.http.routes import route
from stand_ins.asgi import make_app


class Socket(asyncio.Transport):
    """The other end of one connection: what the server wrote there."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 5), "sockname": ("127.0.0.1", 8181)})
        self.heard = b""
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.heard += bytes(data)

    def close(self) -> None:
        self.closed = True

    abort = close

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        return

    resume_reading = pause_reading

    @property
    def statuses(self) -> list[int]:
        return [int(one.split(b" ", 1)[0]) for one in self.heard.split(b"HTTP/1.1 ")[1:]]


class Line:
    """One connection to a server with four routes: /now, /later, /pieces, and /said, which takes a body."""

    def __init__(self, setup: Setup | None = None) -> None:
        self.go_on = asyncio.Event()
        self.asked: list[str] = []
        self.bodies: list[bytes] = []
        more = [
            route("GET", "/now", self.now),
            route("GET", "/later", self.later),
            route("GET", "/pieces", self.pieces),
            route("GET", "/bad", self.bad),
            route("POST", "/said", self.said),
        ]
        self.app = make_app(setup, more)
        self._kind = guarded((setup or Setup()).bounds, self.app, self.app.metrics)
        self.state = ServerState()
        self.protocol, self.socket = self.another()

    def another(self) -> tuple[DirectProtocol, Socket]:
        config = uvicorn.Config(self.app, http=self._kind, ws="none", log_config=None)
        protocol = self._kind(config=config, server_state=self.state, app_state={})
        protocol.connection_made(socket := Socket())
        return protocol, socket

    def hear(self, *said: bytes) -> list[int]:
        """What was answered to all that was said so far."""
        for one in said:
            self.protocol.data_received(one)
        return self.socket.statuses

    async def end(self) -> None:
        """Until nothing is under way."""
        while self.state.tasks:
            await asyncio.wait(set(self.state.tasks))

    async def now(self, request: Request) -> Response:
        self.asked.append(request.path)
        return Response(200, b"{}")

    async def later(self, request: Request) -> Response:
        self.asked.append(request.path)
        await self.go_on.wait()
        return no_content()

    async def pieces(self, _request: Request) -> Response:
        async def given() -> AsyncGenerator[bytes, None]:
            for piece in (b"one", b"two"):
                yield piece

        return Response(200, streamed=Streamed(6, given))

    async def bad(self, _request: Request) -> Response:
        return Response(200, headers={"ETag": "one\r\nset-cookie: two"})

    async def said(self, request: Request) -> Response:
        self.bodies.append(request.body)
        return no_content()


def get(path: str, *headers: str, method: str = "GET", version: str = "1.1") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/{version}", "Host: localhost", *headers, "", ""]).encode()


def on_line(scenario: Callable[[Line], Awaitable[None]], setup: Setup | None = None) -> None:
    async def run() -> None:
        await scenario(Line(setup))

    asyncio.run(run())


NOW, LATER = get("/now"), get("/later")


@pytest.mark.parametrize("said", [NOW, get("/now", method="HEAD"), get("/now", "Content-Length: 0"), get("/health")])
def test_what_need_not_wait_is_answered_before_anything_else_happens(said: bytes) -> None:
    async def scenario(line: Line) -> None:
        assert line.hear(said, said, said) == [200, 200, 200]
        assert not line.state.tasks
        assert line.state.total_requests == 3
        assert b"x-request-id: " in line.socket.heard

    on_line(scenario)


def test_a_head_has_the_headers_of_its_body_and_no_body() -> None:
    async def scenario(line: Line) -> None:
        line.hear(get("/now", method="HEAD"))
        head, _, body = line.socket.heard.partition(b"\r\n\r\n")
        assert (b"content-length: 2" in head, body) == (True, b"")

    on_line(scenario)


def test_what_has_to_wait_goes_on_as_a_task_that_the_end_of_a_server_waits_for() -> None:
    async def scenario(line: Line) -> None:
        assert line.hear(LATER) == []
        assert len(line.state.tasks) == 1
        line.protocol.shutdown()
        assert not line.socket.closed
        line.go_on.set()
        await line.end()
        assert line.hear() == [204]
        assert b"connection: close" in line.socket.heard
        assert (line.socket.closed, line.asked) == (True, ["/later"])

    on_line(scenario)


def test_a_client_that_went_away_is_not_written_to_and_its_request_is_done() -> None:
    async def scenario(line: Line) -> None:
        line.hear(LATER)
        line.protocol.connection_lost(None)
        line.go_on.set()
        await line.end()
        assert (line.hear(), line.asked) == ([], ["/later"])

    on_line(scenario)


@pytest.mark.parametrize(
    ("packets", "at_once", "in_the_end"),
    [
        ([LATER + NOW + NOW], [], [204, 200, 200]),
        ([LATER, NOW, NOW], [], [204, 200, 200]),
        ([NOW + LATER, NOW], [200], [200, 204, 200]),
        ([NOW, LATER, NOW], [200], [200, 204, 200]),
    ],
)
def test_what_comes_behind_one_that_waits_is_answered_after_it(
    packets: list[bytes], at_once: list[int], in_the_end: list[int]
) -> None:
    async def scenario(line: Line) -> None:
        other, _ = line.another()
        other.data_received(NOW)  # so that it came before
        assert line.hear(*packets) == at_once
        line.go_on.set()
        await line.end()
        assert line.hear() == in_the_end

    on_line(scenario)


def test_of_many_in_one_packet_one_is_answered_at_once_and_others_are_served_between() -> None:
    async def scenario(line: Line) -> None:
        assert line.hear(NOW * 20) == [200]
        other, socket = line.another()
        other.data_received(NOW)
        assert socket.statuses == [200]
        await line.end()
        assert line.hear() == [200] * 20

    on_line(scenario)


def test_the_same_bytes_are_parsed_once_and_asked_about_every_time() -> None:
    async def scenario(line: Line) -> None:
        line.hear(NOW)
        line.protocol.parser = None  # type: ignore[assignment]
        assert line.hear(NOW, NOW) == [200, 200, 200]
        assert line.asked == ["/now"] * 3
        assert len({part[:26] for part in line.socket.heard.split(b"x-request-id: ")[1:]}) == 3

    on_line(scenario)


def test_of_bytes_that_came_before_some_may_have_to_wait_this_time() -> None:
    async def scenario(line: Line) -> None:
        line.go_on.set()
        line.hear(LATER)
        await line.end()
        line.hear(LATER)
        line.go_on.clear()
        assert line.hear(LATER) == [204, 204]
        line.hear(NOW)
        line.go_on.set()
        await line.end()
        assert line.hear() == [204, 204, 204, 200]

    on_line(scenario)


@pytest.mark.parametrize(
    "said",
    [get("/now", "X-Request-Id: 0123456789"), get("/gone"), get("/now", "Connection: close"), get("/pieces"), NOW[:-1]],
)
def test_what_will_hardly_come_again_as_it_is_is_not_kept(said: bytes) -> None:
    async def scenario(line: Line) -> None:
        line.hear(said)
        await line.end()
        assert len(line.protocol.known) == 0

    on_line(scenario)


def test_bytes_that_came_before_are_no_request_in_the_middle_of_another() -> None:
    async def scenario(line: Line) -> None:
        line.hear(NOW)
        length = f"Content-Length: {len(NOW)}"
        line.hear(get("/said", length, method="POST"), NOW)
        await line.end()
        line.hear(get("/gone")[:-2] + b"X: ", NOW)
        await line.end()
        # The last one has a header with the first line in it, and names its host twice.
        assert line.hear() == [200, 204, 400]
        assert (line.asked, line.bodies) == (["/now"], [NOW])

    on_line(scenario)


def test_who_may_ask_is_looked_at_every_time() -> None:
    async def scenario(line: Line) -> None:
        told = get("/now", "Authorization: Bearer right")
        wrong = get("/now", "Authorization: Bearer wrong")
        assert line.hear(told, wrong, NOW, told, wrong, NOW) == [200, 401, 401, 200, 401, 401]
        assert len(line.protocol.known) == 1

    on_line(scenario, Setup(access=Access(Secret("right"))))


def test_room_is_looked_for_every_time_and_taken_by_what_waits_alone() -> None:
    async def scenario(line: Line) -> None:
        assert line.hear(NOW, NOW) == [200, 200]
        waiting, _ = line.another()
        waiting.data_received(LATER)
        assert line.hear(NOW) == [200, 200, 503]
        line.go_on.set()
        await line.end()
        assert line.hear(NOW) == [200, 200, 503, 200]

    on_line(scenario, Setup(bounds=Bounds(requests_at_once=1)))


def test_who_does_not_read_is_not_written_to() -> None:
    async def scenario(line: Line) -> None:
        line.hear(NOW)
        line.protocol.pause_writing()
        line.hear(NOW)
        await asyncio.sleep(0)
        assert line.hear() == [200]
        line.protocol.resume_writing()
        await line.end()
        assert line.hear() == [200, 200]

    on_line(scenario)


@pytest.mark.parametrize("last", [NOW, get("/said", "Content-Length: 2", method="POST") + b"{}"])
def test_a_connection_that_is_used_has_one_timer_and_that_is_of_its_last_answer(last: bytes) -> None:
    async def scenario(line: Line) -> None:
        for said in (NOW, get("/said", "Content-Length: 2", method="POST") + b"{}", NOW, last):
            line.hear(said)
            await line.end()
        rests = line.protocol._rest._due_s is not None
        assert (rests, line.protocol.timeout_keep_alive_task is not None) == (last == NOW, last != NOW)

    on_line(scenario)


def test_an_answer_in_pieces_comes_as_it_always_did() -> None:
    async def scenario(line: Line) -> None:
        line.hear(get("/pieces"))
        await line.end()
        assert line.socket.heard.endswith(b"content-length: 6\r\n\r\nonetwo")

    on_line(scenario)


@pytest.mark.parametrize("said", [get("/now", version="1.0"), get("/now", "Connection: close")])
def test_who_wants_no_more_is_answered_and_let_go(said: bytes) -> None:
    async def scenario(line: Line) -> None:
        line.hear(said)
        await line.end()
        assert (line.hear(), line.socket.closed) == ([200], True)

    on_line(scenario)


def test_an_answer_that_would_be_two_headers_is_not_sent(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(line: Line) -> None:
        with caplog.at_level(logging.ERROR, "arco.http"):
            line.hear(get("/bad"))
        assert (line.socket.heard, line.socket.closed) == (b"", True)
        assert "could not be given" in caplog.text

    on_line(scenario)


def test_requests_are_counted_and_logged_as_all_others(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(line: Line) -> None:
        with caplog.at_level(logging.INFO, "arco.http"):
            line.hear(NOW, NOW)
        facts: list[Any] = [record.__dict__["facts"] for record in caplog.records if "facts" in record.__dict__]
        assert [(one["status"], one["path"], one["client"]) for one in facts] == [(200, "/now", "127.0.0.1")] * 2
        assert b'arco_http_requests_total{operation="GET /now",status="200"} 2.0' in line.app.metrics.text()

    on_line(scenario)

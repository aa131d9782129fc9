"""Reads are answered where they are heard, if they need not wait; and nothing else about them changes."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import pytest

from arco.kernel.secret import Secret
from arco.surface.http.access import Access
from arco.surface.http.app import Setup
from arco.surface.http.bounds import Bounds
from arco.surface.http.exchange import Request, Response, Streamed, no_content
from arco.surface.http.origins import Origins
from arco.surface.http.routes import route
from stand_ins.asgi import make_app
from unit.surface.lines import Line, get


class Road(Line):
    """A server with some routes: /now, /later, /pieces, /bad, /said, which takes a body, and /lasting, which answers the same
    again for as long as it `lasts`; so does /across, for pages of other origins too.
    """

    def __init__(self, setup: Setup | None = None) -> None:
        self.go_on = asyncio.Event()
        self.asked: list[str] = []
        self.bodies: list[bytes] = []
        self.lasts = True
        more = [
            route("GET", "/now", self.now),
            route("GET", "/lasting", self.lasting),
            route("GET", "/across", self.lasting, across=True),
            route("GET", "/later", self.later),
            route("GET", "/pieces", self.pieces),
            route("GET", "/bad", self.bad),
            route("POST", "/said", self.said),
        ]
        super().__init__(make_app(setup, more), (setup or Setup()).bounds)

    async def now(self, request: Request) -> Response:
        self.asked.append(request.path)
        return Response(200, b"{}")

    async def lasting(self, request: Request) -> Response:
        said = await self.now(request)
        return Response(200, said.body, {"ETag": f"{len(self.asked)}"}, again=lambda: said if self.lasts else None)

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


def on_line(scenario: Callable[[Road], Awaitable[None]], setup: Setup | None = None) -> None:
    async def run() -> None:
        await scenario(Road(setup))

    asyncio.run(run())


NOW, LATER, LASTING = get("/now"), get("/later"), get("/lasting")


@pytest.mark.parametrize("said", [NOW, get("/now", method="HEAD"), get("/now", "Content-Length: 0"), get("/health")])
def test_what_need_not_wait_is_answered_before_anything_else_happens(said: bytes) -> None:
    async def scenario(line: Road) -> None:
        assert line.hear(said, said, said) == [200, 200, 200]
        assert not line.state.tasks
        assert line.state.total_requests == 3
        assert b"x-request-id: " in line.socket.heard

    on_line(scenario)


def test_a_head_has_the_headers_of_its_body_and_no_body() -> None:
    async def scenario(line: Road) -> None:
        line.hear(get("/now", method="HEAD"))
        head, _, body = line.socket.heard.partition(b"\r\n\r\n")
        assert (b"content-length: 2" in head, body) == (True, b"")

    on_line(scenario)


def test_what_has_to_wait_goes_on_as_a_task_that_the_end_of_a_server_waits_for() -> None:
    async def scenario(line: Road) -> None:
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
    async def scenario(line: Road) -> None:
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
    async def scenario(line: Road) -> None:
        other, _ = line.another()
        other.data_received(NOW)  # so that it came before
        assert line.hear(*packets) == at_once
        line.go_on.set()
        await line.end()
        assert line.hear() == in_the_end

    on_line(scenario)


def test_of_many_in_one_packet_one_is_answered_at_once_and_others_are_served_between() -> None:
    async def scenario(line: Road) -> None:
        assert line.hear(NOW * 20) == [200]
        other, socket = line.another()
        other.data_received(NOW)
        assert socket.statuses == [200]
        await line.end()
        assert line.hear() == [200] * 20

    on_line(scenario)


def test_the_same_bytes_are_parsed_once_and_asked_about_every_time() -> None:
    async def scenario(line: Road) -> None:
        line.hear(NOW)
        line.protocol.parser = None  # type: ignore[assignment]
        assert line.hear(NOW, NOW) == [200, 200, 200]
        assert line.asked == ["/now"] * 3
        assert len({part[:26] for part in line.socket.heard.split(b"x-request-id: ")[1:]}) == 3

    on_line(scenario)


def test_of_bytes_that_came_before_some_may_have_to_wait_this_time() -> None:
    async def scenario(line: Road) -> None:
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
    async def scenario(line: Road) -> None:
        line.hear(said)
        await line.end()
        assert len(line.protocol.known) == 0

    on_line(scenario)


def test_bytes_that_came_before_are_no_request_in_the_middle_of_another() -> None:
    async def scenario(line: Road) -> None:
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


@pytest.mark.parametrize("path", ["/now", "/lasting"])
def test_who_may_ask_is_looked_at_every_time(path: str) -> None:
    async def scenario(line: Road) -> None:
        told, wrong = get(path, "Authorization: Bearer right"), get(path, "Authorization: Bearer wrong")
        nobody = get(path)
        assert line.hear(told, wrong, nobody, told, wrong, nobody) == [200, 401, 401, 200, 401, 401]
        assert len(line.protocol.known) == 1

    on_line(scenario, Setup(access=Access(Secret("right"))))


@pytest.mark.parametrize("said", [NOW, LASTING])
def test_room_is_looked_for_every_time_and_taken_by_what_waits_alone(said: bytes) -> None:
    async def scenario(line: Road) -> None:
        assert line.hear(said, said) == [200, 200]
        waiting, _ = line.another()
        waiting.data_received(LATER)
        assert line.hear(said) == [200, 200, 503]
        line.go_on.set()
        await line.end()
        assert line.hear(said) == [200, 200, 503, 200]

    on_line(scenario, Setup(bounds=Bounds(requests_at_once=1)))


def test_who_does_not_read_is_not_written_to() -> None:
    async def scenario(line: Road) -> None:
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
    async def scenario(line: Road) -> None:
        for said in (NOW, get("/said", "Content-Length: 2", method="POST") + b"{}", NOW, last):
            line.hear(said)
            await line.end()
        rests = line.protocol._rest._due_s is not None
        assert (rests, line.protocol.timeout_keep_alive_task is not None) == (last == NOW, last != NOW)

    on_line(scenario)


def test_an_answer_that_lasts_is_made_anew_when_it_does_not() -> None:
    async def scenario(line: Road) -> None:
        for lasts in (True, True, False, True, True):
            line.lasts = lasts
            line.hear(LASTING)
        assert line.hear() == [200] * 5
        assert line.asked == ["/lasting"] * 2
        assert line.socket.heard.count(b"etag: ") == 2
        line.hear(get("/lasting", method="HEAD"), get("/lasting", method="HEAD"))
        assert line.socket.heard.endswith(b"\r\n\r\n")

    on_line(scenario)


def test_pages_of_other_origins_are_told_every_time_that_they_may_read_an_answer() -> None:
    page = "https://hub.example.com"

    async def scenario(line: Road) -> None:
        asked = get("/across", f"Origin: {page}")
        assert line.hear(asked, asked, asked) == [200] * 3
        assert line.socket.heard.lower().count(f"access-control-allow-origin: {page}".encode()) == 3

    on_line(scenario, Setup(access=Access(origins=Origins.of((page,)))))


def test_an_answer_in_pieces_comes_as_it_always_did() -> None:
    async def scenario(line: Road) -> None:
        line.hear(get("/pieces"))
        await line.end()
        assert line.socket.heard.endswith(b"content-length: 6\r\n\r\nonetwo")

    on_line(scenario)


@pytest.mark.parametrize("said", [get("/now", version="1.0"), get("/now", "Connection: close")])
def test_who_wants_no_more_is_answered_and_let_go(said: bytes) -> None:
    async def scenario(line: Road) -> None:
        line.hear(said)
        await line.end()
        assert (line.hear(), line.socket.closed) == ([200], True)

    on_line(scenario)


def test_an_answer_that_would_be_two_headers_is_not_sent(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(line: Road) -> None:
        with caplog.at_level(logging.ERROR, "arco.http"):
            line.hear(get("/bad"))
        assert (line.socket.heard, line.socket.closed) == (b"", True)
        assert "could not be given" in caplog.text

    on_line(scenario)


@pytest.mark.parametrize("path", ["/now", "/lasting"])
def test_requests_are_counted_and_logged_as_all_others(caplog: pytest.LogCaptureFixture, path: str) -> None:
    async def scenario(line: Road) -> None:
        with caplog.at_level(logging.INFO, "arco.http"):
            line.hear(get(path), get(path))
        facts: list[Any] = [record.__dict__["facts"] for record in caplog.records if "facts" in record.__dict__]
        assert [(one["status"], one["path"], one["client"]) for one in facts] == [(200, path, "127.0.0.1")] * 2
        assert f'arco_http_requests_total{{operation="GET {path}",status="200"}} 2.0' in line.app.metrics.text().decode()

    on_line(scenario)

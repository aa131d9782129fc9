"""One connection: what is not HTTP, what never ends, what comes too soon, and who does not read."""

import socket
import time
from contextlib import suppress
from urllib.parse import urlsplit

import pytest

from arco.kernel.limits import PIPELINED_MAX
from arco.surface.http.bounds import Bounds
from arco.surface.http.exchange import Request, Response
from arco.surface.http.routes import route

from .raw import Reply, head, request, wire
from .served import Gate, served, server_of

HEALTH = request("GET", "/health")


def is_refusal(reply: Reply, status: int) -> bool:
    return (
        reply.status == reply.json["error"]["code"] == status
        and reply.headers["connection"] == "close"
        and reply.headers["content-type"] == "application/json"
    )


NOT_HTTP = {
    "words": b"hello there\r\n\r\n",
    "nothing but lines": b"\n\n\n\nx\r\n\r\n",
    "a TLS greeting": bytes.fromhex("16030100a5010000a10303") + bytes(50),
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a strange version": b"GET /health HTTP/9.9\r\n\r\n",
    "an unknown method": b"BREW /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a space in the path": b"GET /hea lth HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "raw bytes in the path": b"GET /\xff\xfe HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a zero in the path": b"GET /a\x00b HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a zero in a header": b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: a\x00b\r\n\r\n",
    "a header without a name": b"GET /health HTTP/1.1\r\n: x\r\n\r\n",
    "a space before the colon": b"GET /health HTTP/1.1\r\nHost : localhost\r\n\r\n",
    "two lengths": b"POST /try HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "a length and chunks": head("POST", "/try", "Content-Length: 1", "Transfer-Encoding: chunked") + b"0\r\n\r\n",
    "a length below zero": b"POST /try HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
    "a length that is no number": b"POST /try HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
    "a length past all numbers": b"POST /try HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + b"9" * 30 + b"\r\n\r\n",
    "a chunk that is no number": b"POST /try HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "a chunk that is too long": head("POST", "/try", "Transfer-Encoding: chunked") + b"1\r\nabc\r\n0\r\n\r\n",
}


@pytest.fixture(scope="module")
def acted() -> list[bytes]:
    return []


@pytest.fixture(scope="module")
def address(acted):
    async def act(request: Request) -> Response:
        acted.append(request.body)
        return Response(200, request.body)

    with served(
        Bounds(url_bytes=2000, headers=20, headers_bytes=2000, body_bytes=100_000), [route("POST", "/try", act)]
    ) as found:
        yield found


@pytest.mark.parametrize("case", NOT_HTTP)
def test_what_is_not_http_is_refused_in_our_words_and_closed(address, acted, case):
    acted.clear()
    with wire(address) as connection:
        connection.send(NOT_HTTP[case])
        assert is_refusal(connection.reply(), 400)
        assert connection.is_closed()
    with wire(address) as connection:
        connection.send(HEALTH)
        assert connection.reply().status == 200
    assert acted == []


LARGE = {
    "a URL": (head("GET", "/" + "x" * 2001), 414),
    "a URL with no end": (b"GET /" + b"x" * 1_000_000, 414),
    "many headers": (head("GET", "/health", *(f"X-{n}: 1" for n in range(30))), 431),
    "a header": (head("GET", "/health", "X: " + "y" * 2001), 431),
    "a header with no end": (b"GET /health HTTP/1.1\r\nX: " + b"y" * 1_000_000, 431),
    "trailers": (
        head("POST", "/try", "Transfer-Encoding: chunked")
        + b"1\r\na\r\n0\r\n"
        + b"".join(b"X-%d: 1\r\n" % n for n in range(30)),
        431,
    ),
    "a trailer with no end": (
        head("POST", "/try", "Transfer-Encoding: chunked") + b"1\r\na\r\n0\r\nX: " + b"y" * 1_000_000,
        431,
    ),
}


@pytest.mark.parametrize("case", LARGE)
def test_a_head_that_is_too_large_is_refused_before_it_ends(address, acted, case):
    data, status = LARGE[case]
    acted.clear()
    with wire(address) as connection:
        # In pieces, as from a network: no limit may depend on seeing it all at once.
        for start in range(0, len(data), 10_000):
            connection.send_while_it_listens(data[start : start + 10_000])
        assert is_refusal(connection.reply(), status)
    assert acted == []


def test_a_head_within_the_limits_may_come_byte_by_byte(address):
    with wire(address) as connection:
        for byte in head("GET", "/health", *(f"X-{n}: {'y' * 80}" for n in range(15))):
            connection.send(bytes([byte]))
        assert connection.reply().status == 200


def test_a_body_over_the_limit_is_refused_and_its_sender_hears_it(address, acted):
    acted.clear()
    for length in (100_001, 40_000_000):
        with wire(address) as connection:
            # All of it can be sent: one who is cut off while sending may never get to read.
            connection.send(request("POST", "/try", b"x" * length))
            assert is_refusal(connection.reply(), 413)
            assert connection.is_closed()
    assert acted == []


def test_who_asks_first_need_not_send_what_would_be_refused(address, acted):
    acted.clear()
    with wire(address) as connection:
        connection.send(head("POST", "/try", "Content-Length: 100001", "Expect: 100-continue"))
        assert is_refusal(connection.reply(), 413)
    with wire(address) as connection:
        connection.send(head("POST", "/try", "Content-Length: 2", "Expect: 100-continue"))
        assert connection.reply().status == 100
        connection.send(b"ok")
        assert connection.reply().body == b"ok"
    assert acted == [b"ok"]


@pytest.mark.parametrize(
    "trailer", ["Host: elsewhere", "Content-Encoding: gzip", "Content-Type: text/plain", "Origin: http://x"]
)
def test_what_comes_behind_a_body_is_no_header_of_its_request(address, acted, trailer):
    """It would be one or not as the packets come, past whoever looked at the head on the way."""
    acted.clear()
    chunked = head("POST", "/try", "Transfer-Encoding: chunked") + f"1\r\na\r\n0\r\n{trailer}\r\n\r\n".encode()
    with wire(address) as connection:
        connection.send(chunked + chunked)
        assert [connection.reply().body for _ in range(2)] == [b"a", b"a"]
    assert acted == [b"a", b"a"]


# In the middle


@pytest.mark.parametrize("sent", [b"GET /hea", head("POST", "/try", "Content-Length: 10") + b"half"])
def test_a_client_that_leaves_in_the_middle_has_asked_nothing(address, acted, sent):
    acted.clear()
    with wire(address) as connection:
        connection.send(sent)
        connection.socket.shutdown(socket.SHUT_WR)
        assert connection.is_closed()
    assert acted == []


def test_pipelined_requests_are_answered_in_their_order(address, acted):
    acted.clear()
    with wire(address) as connection:
        connection.send(b"".join(request("POST", "/try", b"%d" % number) for number in range(50)))
        assert [connection.reply().body for _ in range(50)] == [b"%d" % number for number in range(50)]
    assert acted == [b"%d" % number for number in range(50)]


def test_an_offer_of_another_protocol_is_not_taken_and_does_no_harm(address):
    offer = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__")
    websocket = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: eA==")
    with wire(address) as connection:
        for lines in (offer, offer, websocket):
            connection.send(head("GET", "/health", *lines))
            assert connection.reply().status == 200


@pytest.mark.parametrize("cut", [None, 3, 60, -3])
def test_what_comes_behind_an_offer_is_the_next_request(address, acted, cut):
    """Left out, the answer to a later request would be taken for its own; its body, if that comes later, would be a request."""
    acted.clear()
    offer = head("GET", "/health", "Connection: Upgrade", "Upgrade: h2c")
    data = request("POST", "/try", request("POST", "/try", b"smuggled"))
    with wire(address) as connection:
        connection.send(offer + offer + data[:cut])
        assert [connection.reply().status for _ in range(2)] == [200, 200]
        connection.send((b"" if cut is None else data[cut:]) + offer + request("POST", "/try", b"last"))
        assert connection.reply().body.endswith(b"smuggled")
        assert connection.reply().status == 200
        assert connection.reply().body == b"last"
    assert len(acted) == 2


def test_many_offers_in_one_packet_are_all_answered(address):
    offer = head("GET", "/health", "Connection: Upgrade", "Upgrade: h2c")
    with wire(address) as connection:
        connection.send(offer * 100)
        assert [connection.reply().status for _ in range(100)] == [200] * 100


def test_requests_in_line_on_a_connection_are_bounded(address, acted):
    """A packet has room for thousands, each of them much larger in memory, and who sends them need not read an answer."""
    acted.clear()
    with wire(address) as connection:
        connection.send_while_it_listens(b"".join(request("POST", "/try", b"%d" % number) for number in range(5000)))
        answered = []
        with suppress(EOFError, ConnectionResetError):
            while True:
                answered.append(connection.reply().body)
    # At once it takes one and those in line; the packets may come in several pieces.
    assert PIPELINED_MAX < len(answered) < 5000
    assert acted == answered == [b"%d" % number for number in range(len(answered))]


def test_an_offer_that_comes_with_a_body_is_refused_and_the_body_is_not_taken_for_a_request(address, acted):
    """The parser stops at an offer: what follows it would be read as the next request."""
    acted.clear()
    inner = request("POST", "/try", b"smuggled")
    with wire(address) as connection:
        connection.send(request("POST", "/try", inner, "Connection: Upgrade", "Upgrade: h2c"))
        assert is_refusal(connection.reply(), 400)
        assert connection.is_closed()
    assert acted == []


def test_garbage_after_a_request_is_not_answered_in_its_place():
    """A refusal that overtakes the answer would tell the client that its commit was refused, though it lands."""
    gate = Gate()

    async def slow(_request: Request) -> Response:
        await gate.wait()
        return Response(200, b"done")

    with served(Bounds(), [route("POST", "/slow", slow)]) as address, wire(address) as connection:
        connection.send(request("POST", "/slow"))
        gate.entered.acquire()
        connection.send(b"garbage\r\n\r\n")
        with wire(address) as other:
            other.send(HEALTH)
            assert other.reply().status == 200
        gate.open()
        assert connection.reply().body == b"done"
        assert connection.is_closed()


def test_garbage_after_pipelined_requests_leaves_them_their_answers():
    gate = Gate()

    async def slow(_request: Request) -> Response:
        await gate.wait()
        return Response(200, b"done")

    half = head("POST", "/slow", "Transfer-Encoding: chunked") + b"zz\r\n"
    with served(Bounds(), [route("POST", "/slow", slow)]) as address, wire(address) as connection:
        connection.send(request("POST", "/slow"))
        gate.entered.acquire()
        connection.send(request("POST", "/slow") + half)
        gate.open()
        assert [connection.reply().body for _ in range(2)] == [b"done"] * 2
        assert connection.is_closed()
    assert gate.passed == 2


# Time


def test_a_head_that_does_not_arrive_is_not_waited_for():
    with served(Bounds(head_s=0.2)) as address:
        with wire(address) as silent, wire(address) as slow, wire(address) as lines:
            slow.send(b"GET /health HTTP/1.1\r\nHost: l")
            lines.send(b"\r\n")
            assert silent.is_closed()
            assert is_refusal(slow.reply(), 408)
            assert is_refusal(lines.reply(), 408)
        with wire(address) as connection:
            connection.send(HEALTH)
            assert connection.reply().status == 200


def test_a_connection_that_rests_is_closed_also_if_it_sent_an_empty_line():
    with served(Bounds(head_s=0.2), keep_alive_s=1) as address, wire(address) as resting, wire(address) as blank:
        for connection in (resting, blank):
            connection.send(HEALTH)
            assert connection.reply().status == 200
        blank.send(b"\r\n")
        assert is_refusal(blank.reply(), 408)
        assert resting.is_closed()


def test_a_body_that_does_not_arrive_is_not_waited_for():
    with served(Bounds(body_s=0.2, discard_s=0.1)) as address, wire(address) as connection:
        connection.send(head("POST", "/iceberg/v1/default.default/namespaces", "Content-Length: 100") + b"{")
        assert is_refusal(connection.reply(), 408)
        assert connection.is_closed()


def test_many_slow_clients_leave_the_server_to_the_others():
    with served(Bounds(requests_at_once=4)) as address:
        slow = [wire(address) for _ in range(100)]
        half = head("POST", "/iceberg/v1/default.default/namespaces", "Content-Length: 100") + b"{"
        connections = [one.__enter__() for one in slow]
        for number, connection in enumerate(connections):
            connection.send(half if number % 2 else b"GET /slow")
        with wire(address) as connection:
            for _ in range(20):
                connection.send(request("GET", "/iceberg/v1/default.default/namespaces"))
                assert connection.reply().status == 200
        for one in slow:
            one.__exit__(None, None, None)


def test_more_connections_than_there_is_room_for_hear_so():
    with served(Bounds(connections=3)) as address:
        with wire(address) as first, wire(address) as second, wire(address) as third:
            for connection in (first, second, third):
                connection.send(HEALTH)
                assert connection.reply().status == 200
            with wire(address) as fourth:
                reply = fourth.reply()
                assert is_refusal(reply, 504)  # what it would have asked is not known: it may be a retry
                assert reply.headers["retry-after"] == "1"
        with wire(address) as connection:
            connection.send(HEALTH)
            assert connection.reply().status in {200, 504}


@pytest.mark.parametrize("last", ["X: y", "Connection: close"])
@pytest.mark.parametrize(("answer_bytes", "send_bytes"), [(20_000_000, None), (60_000, 4096)])
def test_a_client_that_does_not_read_is_cut_off(last: str, answer_bytes: int, send_bytes: int | None) -> None:
    """Whether the rest of the answer is more than the server likes to hold, or so little that it could forget about it."""

    async def large(_request: Request) -> Response:
        return Response(200, bytes(answer_bytes))

    served_now = server_of(Bounds(answer_s=0.2), [route("GET", "/large", large)], keep_alive_s=1, send_bytes=send_bytes)
    with served_now as (server, address), socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        place = urlsplit(address)
        client.connect((place.hostname, place.port))
        client.sendall(head("GET", "/large", last))
        assert client.recv(1)
        while server.server_state.connections:
            time.sleep(0.01)
        received = 0
        while data := client.recv(65536):
            received += len(data)
        assert received < answer_bytes

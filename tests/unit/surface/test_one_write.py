"""An answer goes out in one piece: the head waits for its body, and for nothing else."""

import asyncio

from arco.kernel.limits import ANSWER_JOINED_BYTES_MAX
from arco.surface.http.one_write import OneWrite

HEAD = b"HTTP/1.1 200 OK\r\n\r\n"


class Written(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self.closed
        self.written.append(bytes(data))

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed


def one() -> tuple[Written, OneWrite]:
    transport = Written()
    return transport, OneWrite(transport)


def test_a_head_and_its_body_are_one_write() -> None:
    transport, answer = one()
    answer.begin()
    answer.write(HEAD)
    assert transport.written == []
    answer.write(b"body")
    answer.write(b"more")
    assert transport.written == [HEAD + b"body", b"more"]


def test_a_large_body_is_not_copied() -> None:
    transport, answer = one()
    answer.begin()
    answer.write(HEAD)
    answer.write(b"x" * (ANSWER_JOINED_BYTES_MAX + 1))
    assert [len(part) for part in transport.written] == [len(HEAD), ANSWER_JOINED_BYTES_MAX + 1]


def test_an_answer_without_a_body_goes_out_when_it_ends() -> None:
    transport, answer = one()
    answer.begin()
    answer.write(HEAD)
    answer.let_go()
    answer.let_go()
    assert transport.written == [HEAD]


def test_the_next_answer_of_a_connection_waits_for_its_body_again() -> None:
    transport, answer = one()
    for body in (b"one", b"two"):
        answer.begin()
        answer.write(HEAD)
        answer.write(body)
    assert transport.written == [HEAD + b"one", HEAD + b"two"]


def test_a_body_that_looks_like_a_head_is_a_body() -> None:
    transport, answer = one()
    answer.begin()
    answer.write(HEAD)
    answer.write(b"")
    answer.write(HEAD)
    assert transport.written == [HEAD, HEAD]


def test_a_client_that_asked_whether_to_go_on_is_told_at_once() -> None:
    transport, answer = one()
    answer.begin()
    answer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    answer.write(HEAD)
    answer.write(b"body")
    assert transport.written == [b"HTTP/1.1 100 Continue\r\n\r\n", HEAD + b"body"]


def test_an_answer_that_is_cut_off_after_its_head_shows_the_head() -> None:
    transport, answer = one()
    answer.begin()
    answer.write(HEAD)
    answer.close()
    assert transport.written == [HEAD]
    assert answer.is_closing()

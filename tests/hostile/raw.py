"""HTTP as bytes on a socket: requests that no client library would send, and answers as they come."""

import gzip
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

# Only so that a server that hangs fails the test and not the whole run.
PATIENCE_S = 60


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(gzip.decompress(self.body) if self.headers.get("content-encoding") == "gzip" else self.body)


class Wire:
    """One connection."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self._unread = b""

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def send_while_it_listens(self, data: bytes) -> None:
        """Send as much as the server takes before it closes."""
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            return

    def reply(self, *, to_head: bool = False) -> Reply:
        """The next answer."""
        while b"\r\n\r\n" not in self._unread:
            self._more()
        head, _, self._unread = self._unread.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = 0 if to_head else int(headers.get("content-length", 0))
        while len(self._unread) < length:
            self._more()
        body, self._unread = self._unread[:length], self._unread[length:]
        return Reply(int(first.split(" ")[1]), headers, body)

    def is_closed(self) -> bool:
        """Whether the server ends the connection, without another word. Waits for it."""
        try:
            return not self._unread and not self.socket.recv(65536)
        except ConnectionResetError:
            return True

    def _more(self) -> None:
        data = self.socket.recv(65536)
        if not data:
            raise EOFError(f"the server closed the connection after {self._unread[:200]!r}")
        self._unread += data


@contextmanager
def wire(address: str) -> Iterator[Wire]:
    """A connection to the server of an address such as http://127.0.0.1:8181/iceberg."""
    place = urlsplit(address)
    with socket.create_connection((place.hostname, place.port), timeout=PATIENCE_S) as connection:
        yield Wire(connection)


def head(method: str, path: str, *lines: str) -> bytes:
    """The head of a request."""
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", *lines, "", ""]).encode("latin-1")


def request(method: str, path: str, body: bytes = b"", *lines: str) -> bytes:
    return head(method, path, f"Content-Length: {len(body)}", *lines) + body


def ask(address: str, method: str, path: str, body: bytes = b"", *lines: str) -> Reply:
    """One request on its own connection, and its answer."""
    with wire(address) as connection:
        connection.send_while_it_listens(request(method, path, body, "Connection: close", *lines))
        return connection.reply(to_head=method == "HEAD")

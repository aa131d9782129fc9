"""Connections to an application, as bytes: what a client says, and what was written to it."""

import asyncio

import uvicorn
from uvicorn.server import ServerState

from arco.surface.http.app import App
from arco.surface.http.bounds import Bounds
from arco.surface.http.direct import DirectProtocol, guarded


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
    """One connection to a server; `another` makes more of them."""

    def __init__(self, app: App, bounds: Bounds | None = None) -> None:
        self.app = app
        self._kind = guarded(bounds or Bounds(), app, app.metrics)
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


def get(path: str, *headers: str, method: str = "GET", version: str = "1.1") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/{version}", "Host: localhost", *headers, "", ""]).encode()

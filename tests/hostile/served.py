"""The application on a real socket inside the test's own process, with limits and handlers of the test's choice."""

import asyncio
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import uvicorn

from arco.surface.http.app import Setup
from arco.surface.http.bounds import Bounds
from arco.surface.http.direct import guarded
from arco.surface.http.routes import Route
from stand_ins.asgi import make_app


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listens = threading.Event()

    async def startup(self, sockets=None):
        await super().startup(sockets)
        self.listens.set()


@contextmanager
def served(bounds: Bounds, more: Sequence[Route] = (), keep_alive_s: int = 75) -> Iterator[str]:
    """The address of a server that lives as long as the block."""
    with server_of(bounds, more, keep_alive_s) as (_, address):
        yield address


@contextmanager
def server_of(
    bounds: Bounds, more: Sequence[Route] = (), keep_alive_s: int = 75, send_bytes: int | None = None
) -> Iterator[tuple[uvicorn.Server, str]]:
    """The same with the server itself. `send_bytes` is what the system may hold of an answer that is not read."""
    app = make_app(Setup(bounds=bounds), more)
    config = uvicorn.Config(
        app, port=0, http=guarded(bounds, app), ws="none", lifespan="on", log_config=None, timeout_keep_alive=keep_alive_s
    )
    server = _Server(config)
    listener = socket.create_server(("127.0.0.1", 0))
    if send_bytes is not None:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_bytes)
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        server.listens.wait()
        port = server.servers[0].sockets[0].getsockname()[1]
        yield server, f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()


class Gate:
    """A handler that a test lets through, from another thread."""

    def __init__(self) -> None:
        self.entered = threading.Semaphore(0)
        self._open: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.passed = 0

    async def wait(self) -> None:
        self._open = self._open or asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self.entered.release()
        await self._open.wait()
        self.passed += 1

    def open(self) -> None:
        assert self._loop is not None
        assert self._open is not None
        self._loop.call_soon_threadsafe(self._open.set)

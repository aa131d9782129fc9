"""The least that a Python HTTP server can do: read a request, answer with so many bytes. What Arco's server is measured beside.

python bench/bare_server.py BYTES
"""

import socket
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import uvicorn


class Bare:
    """An ASGI application without routes, names or JSON."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    async def __call__(
        self, scope: dict[str, Any], receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
    ) -> None:
        while (await receive()).get("more_body"):
            pass
        length = str(len(self._body)).encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
        await send({"type": "http.response.body", "body": self._body})


class _Server(uvicorn.Server):
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        host, port = self.servers[0].sockets[0].getsockname()[:2]
        print(f"at http://{host}:{port}", flush=True)


if __name__ == "__main__":
    app = Bare(b"x" * int(sys.argv[1]))
    config = uvicorn.Config(app, port=0, log_level="warning", access_log=False, lifespan="off")
    _Server(config).run()

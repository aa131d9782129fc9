"""`arco serve`: the HTTP server on one root."""

import asyncio
import socket

import uvicorn
from rich.console import Console

from arco.catalog.policy import LocationPolicy
from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.kernel.ids import UlidSource
from arco.kernel.limits import GRACEFUL_STOP_S
from arco.storage.roots import open_root, parse_root
from arco.storage.selftest import require_suitable
from arco.surface.cli.settings import load_settings
from arco.surface.http.app import App
from arco.surface.http.client_config import base_uri, client_config
from arco.surface.http.server_state import ServerState


def serve(root: str | None, options: list[str], host: str, port: int, allowed: list[str]) -> None:
    """Test the store, then serve until interrupted."""
    settings = load_settings(root, options)
    clock, entropy = SystemClock(), SystemEntropy()
    store = open_root(settings.root, settings.options, clock, entropy)
    asyncio.run(require_suitable(store, clock, entropy))
    parsed = parse_root(settings.root)
    policy = LocationPolicy.of(allowed, clock, entropy)
    state = ServerState(
        store, base_uri(parsed, settings.known), client_config(parsed, settings.known), policy, clock, entropy
    )
    app = App(state, UlidSource(clock, entropy))
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        log_level="warning",
        access_log=False,
        lifespan="on",
        # Commits under way are finished; a request that hangs must not keep the server from ending.
        timeout_graceful_shutdown=GRACEFUL_STOP_S,
    )
    _Server(config, str(parsed)).run()


class _Server(uvicorn.Server):
    """Says where it listens once it does: people can read it, and a program can wait for it."""

    def __init__(self, config: uvicorn.Config, root: str) -> None:
        super().__init__(config)
        self._root = root

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            Console(highlight=False, soft_wrap=True).print(
                f"Arco serves {self._root} at http://{host}:{port}/iceberg", markup=False
            )

"""`arco serve`: the HTTP server on one root."""

import asyncio
import socket
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from types import FrameType

import uvicorn
from rich.console import Console

from arco.catalog.policy import LocationPolicy
from arco.catalog.workspace import Choices
from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.kernel.errors import InvalidInput
from arco.kernel.ids import UlidSource
from arco.kernel.limits import GRACEFUL_STOP_S, KEEP_ALIVE_S, REQUEST_TIMEOUT_S, REQUESTS_AT_ONCE_MAX
from arco.storage.roots import open_root, parse_root
from arco.storage.selftest import require_suitable
from arco.surface.cli.listening import Certificate, bind, load_certificate, require_token_outside
from arco.surface.cli.settings import Settings, load_link_key, load_settings, load_token
from arco.surface.http.access import Access
from arco.surface.http.app import App, Beside, Setup
from arco.surface.http.bounds import Bounds
from arco.surface.http.client_config import base_uri, client_config, client_defaults
from arco.surface.http.origins import Origins
from arco.surface.http.request_log import LogForm, LogLevel, configure, default_form
from arco.surface.http.server_state import ServerState
from arco.surface.http.welcome import About
from arco.surface.http.wire import guarded


@dataclass(frozen=True, slots=True)
class Flags:
    """What the command line says about the server itself."""

    host: str = "127.0.0.1"
    port: int = 8181
    allow_location: tuple[str, ...] = ()
    insecure: bool = False
    tls_cert: str | None = None
    tls_key: str | None = None
    oauth: bool = False
    log: str | None = None
    log_level: str = "info"
    timeout_s: float = REQUEST_TIMEOUT_S
    at_once: int = REQUESTS_AT_ONCE_MAX
    take_turns: bool = False
    any_key: bool = False
    allow_origin: tuple[str, ...] = ()
    fold: bool = False
    fold_every_s: float = 10


def serve(root: str | None, options: list[str], flags: Flags) -> None:
    """Check everything, test the store, then serve until told to stop."""
    settings = load_settings(root, options)
    certificate = load_certificate(flags.tls_cert, flags.tls_key)
    setup = _setup(settings, flags, certificate)
    sockets = bind(flags.host, flags.port)
    clock, entropy = SystemClock(), SystemEntropy()
    store = open_root(settings.root, settings.options, clock, entropy)
    asyncio.run(require_suitable(store, clock, entropy))
    import_module("arco.iceberg.reference")
    policy = LocationPolicy.of(flags.allow_location, clock, entropy)
    parsed = parse_root(settings.root)
    known = settings.known
    choices = Choices(take_turns=flags.take_turns, require_uuid7=not flags.any_key)
    told = client_config(parsed, known)
    state = ServerState(store, base_uri(parsed, known), told, policy, clock, entropy, choices, client_defaults(parsed))
    configure(LogForm(flags.log) if flags.log else default_form(), LogLevel(flags.log_level))
    beside = [_folds(state, settings, flags)] if flags.fold else []
    app = App(state, UlidSource(clock, entropy), setup, beside=beside)
    _Server(_uvicorn(app, setup, certificate), setup.about).run(sockets)


def _folds(state: ServerState, settings: Settings, flags: Flags) -> Beside:
    """The fold beside the server. Spark's classes are loaded only here."""
    if flags.fold_every_s <= 0:
        raise InvalidInput("a fold that looks all the time does nothing else", hint="give --fold-every seconds")
    folds = import_module("arco.surface.folds")
    home = import_module("arco.fold.spark_home").SparkHome
    session = home(folds.own_session("arco serve"))
    lake = folds.Lake(parse_root(settings.root).place, settings.known, settings.retention)
    found: Beside = folds.ServerFolds(state, lake, session, flags.fold_every_s)
    return found


def _setup(settings: Settings, flags: Flags, certificate: Certificate | None) -> Setup:
    """How to serve, or why not. Nothing is opened or written yet."""
    token = load_token()
    require_token_outside(flags.host, flags.port, has_token=token is not None, insecure=flags.insecure)
    if flags.oauth and token is None:
        raise InvalidInput("--oauth hands out the server's token, and there is none", hint="set ARCO_TOKEN")
    if flags.timeout_s <= 0 or flags.at_once < 1:
        raise InvalidInput("a server that gives its requests no time or no room does nothing", hint="use positive numbers")
    parsed = parse_root(settings.root)
    return Setup(
        access=Access(token, this_machine_only=not flags.insecure, origins=Origins.of(flags.allow_origin)),
        bounds=Bounds(request_s=flags.timeout_s, requests_at_once=flags.at_once),
        about=About(version("arco"), str(parsed), parsed.kind, "https" if certificate else "http"),
        oauth=flags.oauth,
        link_key=load_link_key(),
    )


def _uvicorn(app: App, setup: Setup, certificate: Certificate | None) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=guarded(setup.bounds),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        # A header that anybody can send must not decide who a client is.
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        # Commits under way are finished; a request that hangs must not keep the server from ending.
        timeout_graceful_shutdown=GRACEFUL_STOP_S,
        ssl_certfile=certificate.cert if certificate else None,
        ssl_keyfile=certificate.key if certificate else None,
    )


class _Server(uvicorn.Server):
    """Says where it listens once it does: people can read it, and a program can wait for it."""

    def __init__(self, config: uvicorn.Config, about: About) -> None:
        super().__init__(config)
        self._about = about

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            Console(highlight=False, soft_wrap=True).print(
                f"Arco serves {self._about.root} at {self._about.scheme}://{place}/iceberg", markup=False
            )

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        # Not to be raised again at the end: a server that was asked to stop and did has ended well.
        self._captured_signals.clear()

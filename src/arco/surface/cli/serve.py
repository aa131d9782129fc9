"""`arco serve`: the HTTP server on one root."""

import asyncio
import resource
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from importlib.metadata import version
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from types import FrameType

import uvicorn
from rich.console import Console

from arco.catalog.policy import LocationPolicy
from arco.catalog.workspace import Choices
from arco.kernel.clock import Clock, SystemClock
from arco.kernel.entropy import DrawnAhead, Entropy, SystemEntropy
from arco.kernel.errors import InvalidInput
from arco.kernel.ids import UlidSource
from arco.kernel.limits import (
    CONNECTIONS_MAX,
    CONNECTIONS_WAITING_MAX,
    GRACEFUL_STOP_S,
    KEEP_ALIVE_S,
    OPEN_FILES_MAX,
    OTHER_FILES_MAX,
    REQUEST_TIMEOUT_S,
    REQUESTS_AT_ONCE_MAX,
    TRANSACTION_TABLES_EVER_MAX,
    TRANSACTION_TABLES_MAX,
    WORKERS_MAX,
)
from arco.kernel.secret import Secret
from arco.servo.schedule.envelopes import EnvelopeKeys
from arco.storage.roots import Root, open_root, parse_root
from arco.storage.selftest import require_suitable
from arco.surface.cli.durations import is_time
from arco.surface.cli.listening import Certificate, bind, load_certificate, require_token_outside
from arco.surface.cli.settings import (
    Settings,
    childs_environment,
    load_link_key,
    load_settings,
    load_task_keys,
    load_token,
    placed,
)
from arco.surface.cli.stdin_ends import StdinEnds, stdin_held
from arco.surface.cli.vending import VendFlags, open_vending, told_to_clients
from arco.surface.cli.workers import Berth, Watch, need_short_folder
from arco.surface.fold_process import FoldProcess
from arco.surface.http.access import Access
from arco.surface.http.app import App, Beside, Setup
from arco.surface.http.bounds import Bounds
from arco.surface.http.client_config import base_uri, client_defaults
from arco.surface.http.crew import Crew, FoldElsewhere
from arco.surface.http.direct import guarded
from arco.surface.http.for_clients import ForClients
from arco.surface.http.metrics import Metrics
from arco.surface.http.origins import Origins
from arco.surface.http.request_log import LogForm, LogLevel, configure, default_form
from arco.surface.http.server_state import ServerState
from arco.surface.http.welcome import About


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
    workers: int = 1
    take_turns: bool = False
    any_key: bool = False
    transaction_tables: int = TRANSACTION_TABLES_MAX
    allow_origin: tuple[str, ...] = ()
    fold: bool = False
    fold_every_s: float = 10
    fold_listing: bool = True
    upkeep: bool = False
    upkeep_every_s: float = 900
    until_stdin_ends: bool = False
    vend: VendFlags = field(default_factory=VendFlags)


def serve(root: str | None, options: list[str], flags: Flags) -> None:
    """Check everything, test the store, then serve until told to stop: in this process, or in several that it watches."""
    settings = load_settings(root, options)
    certificate = load_certificate(flags.tls_cert, flags.tls_key)
    setup = _setup(settings, flags, certificate)
    if flags.workers > 1:
        need_short_folder(flags.workers)
    stdin = stdin_held() if flags.until_stdin_ends else None
    clock, entropy = SystemClock(), SystemEntropy()
    open_vending(flags.vend, settings, clock)
    _policy(settings, flags, clock, entropy)
    sockets = bind(flags.host, flags.port)
    asyncio.run(_tested(settings, clock, entropy))
    configure(LogForm(flags.log) if flags.log else default_form(), LogLevel(flags.log_level))
    if flags.workers == 1:
        app = _app(root, options, flags, setup, Crew(clock))
        _Server(_uvicorn(app, setup, certificate), partial(_announce, setup)).run(sockets)
        return
    key = setup.link_key.reveal() if setup.link_key else entropy.token_bytes(32).hex()
    watch = Watch(partial(work, root, options, flags), sockets, flags.workers, key, clock, stdin)
    for one in sockets:
        one.listen(CONNECTIONS_WAITING_MAX)
    watch.run(lambda: _announce(setup, sockets[0]))


async def _tested(settings: Settings, clock: Clock, entropy: Entropy) -> None:
    store = open_root(settings.root, settings.options, clock, entropy)
    await require_suitable(store, clock, entropy)
    await store.close()


def work(
    root: str | None,
    options: list[str],
    flags: Flags,
    berth: Berth,
    sockets: list[socket.socket],
    listens: Connection,
) -> None:
    """One of several workers, in a process of its own: what its parent checked is only read again."""
    settings = load_settings(root, options)
    certificate = load_certificate(flags.tls_cert, flags.tls_key)
    setup = replace(_setup(settings, flags, certificate), link_key=Secret(berth.link_key))
    configure(LogForm(flags.log) if flags.log else default_form(), LogLevel(flags.log_level))
    crew = Crew(SystemClock(), berth.number, berth.sockets)
    app = _app(root, options, flags, setup, crew)
    _Worker(_uvicorn(app, setup, certificate), lambda _socket: listens.send(True)).run(sockets)


def _app(root: str | None, options: list[str], flags: Flags, setup: Setup, crew: Crew) -> App:
    """What one process serves. What one does for all, the first worker does."""
    settings, clock, entropy = load_settings(root, options), SystemClock(), SystemEntropy()
    store = open_root(settings.root, settings.options, clock, entropy)
    import_module("arco.iceberg.reference")
    parsed, known = parse_root(settings.root), settings.known
    choices = Choices(
        take_turns=flags.take_turns, require_uuid7=not flags.any_key, transaction_tables_max=flags.transaction_tables
    )
    vending = open_vending(flags.vend, settings, clock)
    for_clients = ForClients(told_to_clients(flags.vend, parsed, known), client_defaults(parsed), vending)
    base = base_uri(parsed, known)
    policy = _policy(settings, flags, clock, entropy)
    metrics = Metrics(crew.folder)
    state = ServerState(store, base, for_clients, policy, clock, entropy, choices, metrics)
    keys = load_task_keys(())
    state.task_keys = EnvelopeKeys(keys) if keys else None
    state.fold_lists = settings.fold_lists and (flags.fold_listing or not flags.fold)
    is_first = crew.number == 0
    beside = [_fold(state, root, options, flags)] if flags.fold and is_first else []
    beside += [_upkeep(state, settings, flags)] if flags.upkeep and is_first else []
    beside += [FoldElsewhere(state, crew)] if flags.fold and not is_first else []
    beside += [StdinEnds(stdin_held())] if flags.until_stdin_ends and crew.is_alone else []
    return App(state, UlidSource(clock, DrawnAhead(entropy)), setup, beside=beside, crew=crew)


def _policy(settings: Settings, flags: Flags, clock: Clock, entropy: Entropy) -> LocationPolicy:
    """Which places are allowed; an error if one is none. Nothing is opened by it."""
    base = base_uri(parse_root(settings.root), settings.known)
    return LocationPolicy.of(placed(flags.allow_location), clock, entropy, base, settings.options)


def _fold(state: ServerState, root: str | None, options: list[str], flags: Flags) -> Beside:
    """The fold beside the server, in a process of its own: no JVM is started in this one."""
    words = ["fold", "--follow", "--all", "--watched", "--every", str(flags.fold_every_s)]
    words += ["--listing" if state.fold_lists else "--no-listing"]
    words += ["--root", root] if root is not None else []
    words += [word for option in options for word in ("-o", option)]
    command = [sys.executable, "-c", "from arco.surface.cli.main import run; run()", *words]
    process = FoldProcess(command, childs_environment(), state.clock, state.metrics.synced)
    state.wake_fold, state.fold_status = process.wake, process.status.document
    return process


def _upkeep(state: ServerState, settings: Settings, flags: Flags) -> Beside:
    found: Beside = import_module("arco.surface.upkeeps").ServerUpkeep(state, settings.retention, flags.upkeep_every_s)
    return found


def _setup(settings: Settings, flags: Flags, certificate: Certificate | None) -> Setup:
    """How to serve, or why not. Nothing is opened or written yet."""
    token = load_token()
    require_token_outside(flags.host, flags.port, has_token=token is not None, insecure=flags.insecure)
    if flags.oauth and token is None:
        raise InvalidInput("--oauth hands out the server's token, and there is none", hint="set ARCO_TOKEN")
    _need_times(flags)
    if flags.at_once < 1:
        raise InvalidInput("a server that gives its requests no room does nothing", hint="use positive numbers")
    if not 1 <= flags.workers <= WORKERS_MAX:
        raise InvalidInput(f"--workers {flags.workers}", hint=f"1 to {WORKERS_MAX}")
    if not 1 <= flags.transaction_tables <= TRANSACTION_TABLES_EVER_MAX:
        raise InvalidInput(f"--transaction-tables {flags.transaction_tables}", hint=f"1 to {TRANSACTION_TABLES_EVER_MAX}")
    parsed = parse_root(settings.root)
    return Setup(
        access=Access(token, this_machine_only=not flags.insecure, origins=Origins.of(flags.allow_origin)),
        bounds=Bounds(request_s=flags.timeout_s, requests_at_once=flags.at_once, connections=_connections()),
        about=About(version("arco"), shown(parsed), parsed.kind, "https" if certificate else "http"),
        oauth=flags.oauth,
        link_key=load_link_key(),
    )


def _need_times(flags: Flags) -> None:
    """A fold that looks all the time does nothing else, and upkeep that never rests neither."""
    given = {"--timeout": flags.timeout_s, "--fold-every": flags.fold_every_s, "--upkeep-every": flags.upkeep_every_s}
    for flag, seconds in given.items():
        if not is_time(seconds):
            raise InvalidInput(f"{flag} {seconds:g} is no length of time", hint="use positive numbers, of seconds")


def shown(root: Root) -> str:
    """The root as people can give it elsewhere: whoever reads it is in another folder."""
    return f"file://{root.place}" if root.kind == "file" else str(root)


def _uvicorn(app: App, setup: Setup, certificate: Certificate | None) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=guarded(setup.bounds, app, app.metrics),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        # A header that anybody can send must not decide who a client is.
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        backlog=CONNECTIONS_WAITING_MAX,
        # Commits under way are finished; a request that hangs must not keep the server from ending.
        timeout_graceful_shutdown=GRACEFUL_STOP_S,
        ssl_certfile=certificate.cert if certificate else None,
        ssl_keyfile=certificate.key if certificate else None,
    )


class _Server(uvicorn.Server):
    """Says where it listens once it does: people can read it, and a program can wait for it."""

    def __init__(self, config: uvicorn.Config, listens: Callable[[socket.socket], None]) -> None:
        super().__init__(config)
        self._listens = listens

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and sockets:
            self._listens(sockets[0])

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        # Not to be raised again at the end: a server that was asked to stop and did has ended well.
        self._captured_signals.clear()


class _Worker(_Server):
    """One that stops when its parent is gone: nobody else would tell it to, and the next server wants its port."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        parent = parent_process()
        if parent is not None:
            loop = asyncio.get_running_loop()
            loop.add_reader(parent.sentinel, self._orphaned, loop, parent.sentinel)
        await super().startup(sockets)

    def _orphaned(self, loop: asyncio.AbstractEventLoop, sentinel: int) -> None:
        loop.remove_reader(sentinel)
        self.should_exit = True


def _announce(setup: Setup, listening: socket.socket) -> None:
    host, port = listening.getsockname()[:2]
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    Console(highlight=False, soft_wrap=True).print(
        f"Arco serves {setup.about.root} at {setup.about.scheme}://{place}/iceberg", markup=False
    )


def _connections() -> int:
    """How many there may be: as many files as the system lets us open, less those for everything else."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(hard, OPEN_FILES_MAX) if hard != resource.RLIM_INFINITY else OPEN_FILES_MAX
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return CONNECTIONS_MAX if soft == resource.RLIM_INFINITY else max(1, min(CONNECTIONS_MAX, soft - OTHER_FILES_MAX))

"""`arco fold --all`: every workspace of a root, in one process and one Spark session; by itself, or watched by a server.

A server starts this as a process of its own (`--watched`), and never Spark in its own. They talk in lines: one on standard input
names a workspace with something new, and where the input ends the server has ended; one on standard output is a document that
says what became of a pass. What must never enter: HTTP.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from arco.catalog.catalog import Catalog
from arco.catalog.policy import LocationPolicy
from arco.catalog.workspace import Workspace
from arco.fold.folding import Settings as How
from arco.fold.passes import Pass
from arco.fold.spark_home import SparkHome
from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.kernel.errors import ArcoError
from arco.kernel.scope import Scope
from arco.storage.roots import open_root, parse_root
from arco.surface.cli.flags import Where
from arco.surface.cli.folding import how_to_find, pass_document, print_followed, print_pass
from arco.surface.cli.printing import print_json, say, say_aside
from arco.surface.cli.settings import load_settings
from arco.surface.folds import EveryFold, FoldedRoot, Lake, Told, own_session
from arco.surface.http.client_config import base_uri


async def fold(
    where: Where, *, master: str | None, follow: bool, every_s: float, listing: bool | None, json: bool, watched: bool
) -> bool:
    """Fold every workspace, once or again and again. True if everything is up to date."""
    told = _told_to_the_server if watched else _told_to_people(json=json)
    async with _everything(where, master, every_s, told, how_to_find(where, listing=listing)) as everything:
        if watched:
            await _until_the_server_ends(everything)
            return True
        if follow:
            await everything.go_on()
        return await _once(everything, json=json)


async def _once(everything: EveryFold, *, json: bool) -> bool:
    whole = True
    async for scope, done in everything.once():
        if json:
            print_json({"warehouse": scope.warehouse, **pass_document(done)})
        else:
            say(scope.warehouse)
            print_pass(done, json=False, quiet=False)
        whole &= not done.failed
    return whole


@asynccontextmanager
async def _everything(where: Where, master: str | None, every_s: float, told: Told, how: How) -> AsyncIterator[EveryFold]:
    settings = load_settings(where.root, list(where.options), where.folder)
    clock, entropy = SystemClock(), SystemEntropy()
    root = parse_root(settings.root)
    store = open_root(settings.root, settings.options, clock, entropy)
    base = base_uri(root, settings.known)
    policy = LocationPolicy.of(where.allowed, clock, entropy, base, settings.options)

    def parts(scope: Scope) -> Workspace:
        return Catalog.open(store, base, scope, clock, entropy, policy).parts

    home = SparkHome(own_session("arco fold", master), starting=lambda: say_aside("starting Spark …"))
    lake = Lake(root.place, settings.known, settings.retention)
    try:
        yield EveryFold(FoldedRoot(store, clock, lake, parts), home, every_s, told, how)
    finally:
        await home.stop()
        await store.close()


async def _until_the_server_ends(everything: EveryFold) -> None:
    """Fold, and listen who is woken, until there is nobody to listen to."""
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    going = asyncio.create_task(everything.go_on())
    try:
        while line := await lines.readline():
            everything.wake(Scope.parse_warehouse(line.decode().strip()))
    finally:
        going.cancel()
        await asyncio.wait({going})


def _told_to_the_server(scope: Scope | None, done: Pass | ArcoError) -> None:
    said = {"error": done.one_line()} if isinstance(done, ArcoError) else pass_document(done)
    document = {"warehouse": None if scope is None else scope.warehouse, **said}
    sys.stdout.write(msgspec.json.encode(document).decode() + "\n")
    sys.stdout.flush()


def _told_to_people(*, json: bool) -> Told:
    def told(scope: Scope | None, done: Pass | ArcoError) -> None:
        if not json and isinstance(done, Pass) and any(one.segments for one in done.rounds.values()):
            say("" if scope is None else scope.warehouse)
        print_followed(done, json=json)

    return told

"""The catalog of a workspace for the length of one command, straight from its store."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path

from arco.catalog.catalog import Catalog
from arco.catalog.idempotency import RequestKey
from arco.catalog.inventory import Inventory, Place
from arco.catalog.manifest import Author
from arco.catalog.model import Entry, Format, Kind
from arco.catalog.names import Names
from arco.catalog.policy import LocationPolicy
from arco.catalog.spelling import spelled
from arco.catalog.workspace import Workspace
from arco.fold.hinting import Hints
from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.kernel.errors import InvalidInput, NoSuchTable, NotFound
from arco.kernel.scope import Scope
from arco.storage.counted import Counter, counted
from arco.storage.keys import prefix_of
from arco.storage.paging import walk
from arco.storage.roots import Root, open_root, parse_root
from arco.surface.cli.flags import Where
from arco.surface.cli.settings import load_settings, person, placed
from arco.surface.http.client_config import base_uri


@dataclass(frozen=True, slots=True)
class Opened:
    """A workspace, and who works on it."""

    catalog: Catalog
    inventory: Inventory
    root: str
    warehouse: str
    author: Author
    folder: Path | None
    """The folder that the root is, if it is one."""

    @property
    def place(self) -> str:
        """The root as any process of this machine opens it, wherever it was started."""
        return self.root if self.folder is None else str(self.folder)

    def key(self, operation: str) -> RequestKey:
        """A command is not repeated by anybody, so its key leaves no marker."""
        return self.catalog.parts.markers.request_key(None, f"shell.{operation}", "")

    async def need_something(self) -> None:
        """Refuse a root or workspace in which nothing is: a job that runs by itself would go well for ever on a misspelt one."""
        parts, own = self.catalog.parts, prefix_of(self.catalog.parts.scope, "_catalog", "upkeep")
        async for listed in walk(parts.tier1.store, prefix_of(parts.scope, "_catalog")):
            if not listed.key.startswith(own):  # upkeep itself leaves notes, wherever it was sent
                return
        raise NotFound(f"there is no catalog {self.warehouse} in {self.root} yet", hint="check --root and --warehouse")

    async def need(self, place: Place) -> Entry:
        """What has this name; if nothing has, where it may have gone."""
        names = await self.inventory.names()
        found = names.entry(place)
        if found is None:
            raise NoSuchTable(f"there is no table or view {spelled(*place)}", hint=_where_it_went(names, place))
        return found

    async def need_iceberg_table(self, place: Place) -> Entry:
        """For whoever maintains tables: views have no files, and those of other formats are not Arco's."""
        entry = await self.need(place)
        if entry.format is not Format.ICEBERG or entry.kind is not Kind.TABLE:
            raise InvalidInput(f"{entry.full_name} is no Iceberg table")
        return entry


@asynccontextmanager
async def opened(where: Where, counter: Counter | None = None) -> AsyncIterator[Opened]:
    """`counter`: told of every request to the store."""
    settings, scope = load_settings(where.root, list(where.options), where.folder), Scope.parse_warehouse(where.warehouse)
    clock, entropy = SystemClock(), SystemEntropy()
    root = parse_root(settings.root)
    base = base_uri(root, settings.known)
    policy = LocationPolicy.of(placed(where.allowed), clock, entropy, base, settings.options)
    store = open_root(settings.root, settings.options, clock, entropy)
    store = store if counter is None else counted(store, counter, clock)
    try:
        catalog = Catalog.open(store, base, scope, clock, entropy, policy)
        if not settings.fold_lists:
            catalog.parts.receipts.hears = partial(_say, Hints(store, clock, entropy), catalog.parts)
        author = Author(person(), f"arco-cli/{version('arco')}")
        try:
            yield Opened(catalog, Inventory(catalog), str(root), scope.warehouse, author, _folder(root))
        finally:
            await catalog.parts.afterwards.settle()
    finally:
        await store.close()


def _say(hints: Hints, parts: Workspace, name: str) -> None:
    """What this command wrote, to folds that do not list. It ends when it was said."""
    hints.add(parts.scope, name)
    parts.afterwards.do(hints.settle())


def _folder(root: Root) -> Path | None:
    return Path(root.path).resolve() if root.kind == "file" else None


def _where_it_went(names: Names, place: Place) -> str:
    if names.last_dropped(*place) is not None:
        return f"it was dropped: arco undrop '{spelled(*place)}' restores it"
    renamed = (
        entry for entry in names.entries.values() if place in {(one.namespace, one.name) for one in entry.former_names}
    )
    entry = next(renamed, None)
    if entry is not None:
        return f"it is called {spelled(entry.namespace, entry.name)} now"
    if place[0] not in names.namespaces:
        return f"there is no namespace {spelled(place[0])}; arco ls lists what there is"
    return f"arco ls '{spelled(place[0])}' lists what there is"

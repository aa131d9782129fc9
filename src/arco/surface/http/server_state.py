"""What a server keeps between requests: a catalog and a library per tenant and workspace that was asked for."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from pathlib import Path

from arco.catalog.catalog import Catalog
from arco.catalog.checkpointer import Checkpointer
from arco.catalog.policy import LocationPolicy
from arco.catalog.workspace import Choices
from arco.kernel.clock import Clock
from arco.kernel.entropy import Entropy
from arco.kernel.errors import CorruptObject, UnknownFormat
from arco.kernel.limits import READY_WORKSPACES_MAX
from arco.kernel.scope import Scope
from arco.ledger.appender import Appender
from arco.storage.port import ObjectStore
from arco.storage.workspaces import workspaces
from arco.surface.http.libraries import Libraries

log = logging.getLogger("arco.http")


class ServerState:
    """The catalogs of one root, and the libraries."""

    def __init__(
        self,
        store: ObjectStore,
        base_uri: str,
        client_config: Mapping[str, str],
        policy: LocationPolicy,
        clock: Clock,
        entropy: Entropy,
        choices: Choices | None = None,
        client_defaults: Mapping[str, str] | None = None,
    ) -> None:
        self.store = store
        self.libraries = Libraries(store, clock, entropy, _folder(base_uri))
        self.client_defaults = dict(client_defaults or {})
        self.client_config = client_config
        self._base_uri = base_uri
        self._policy = policy
        self.clock = clock
        self._entropy = entropy
        self._choices = choices
        self._checkpointers: list[Checkpointer] = []
        self._open: dict[Scope, Catalog] = {}
        self._appenders: dict[Scope, Appender] = {}
        self._names_are_read = False
        self.wake_fold: Callable[[Scope], None] = lambda _scope: None
        """Called when something of a workspace was appended: a fold in this server, if there is one, looks soon."""

    async def read_names(self) -> None:
        """Once, before the first client: the names of the workspaces that are there. Raises if the store is silent."""
        if self._names_are_read:
            return
        for scope in await workspaces(self.store, READY_WORKSPACES_MAX):
            try:
                await self.catalog(scope).parts.tier1.current()
            except (CorruptObject, UnknownFormat) as error:
                # Who asks for it hears the same; the other workspaces are none the worse.
                log.error("the names of %s: %s: %s", scope.warehouse, error.code, error.one_line())  # noqa: TRY400
        self._names_are_read = True

    @property
    def entropy(self) -> Entropy:
        return self._entropy

    def catalog(self, scope: Scope) -> Catalog:
        found = self._open.get(scope)
        if found is None:
            found = self._opened(scope)
            self._open[scope] = found
        return found

    def appender(self, scope: Scope) -> Appender:
        """Where the events of a workspace go."""
        if scope not in self._appenders:
            self._appenders[scope] = Appender(self.store, scope, self.clock, self._entropy)
        return self._appenders[scope]

    def _opened(self, scope: Scope) -> Catalog:
        catalog = Catalog.open(
            self.store,
            self._base_uri,
            scope,
            self.clock,
            self._entropy,
            self._policy,
            self._choices,
        )
        parts = catalog.parts
        checkpointer = Checkpointer(parts.tier1, self.clock, self._entropy, asyncio.to_thread)
        parts.committer.after_commit = checkpointer.wake
        self._checkpointers.append(checkpointer)
        return catalog

    async def settle(self) -> None:
        """Finish what was left to do after answers."""
        for appender in self._appenders.values():
            await appender.close()
        for checkpointer in self._checkpointers:
            await checkpointer.stop()
        for catalog in self._open.values():
            await catalog.parts.afterwards.settle()


def _folder(base_uri: str) -> Path | None:
    """The folder that a root is, if it is one."""
    scheme, _, path = base_uri.partition("://")
    return Path(path) if scheme == "file" else None

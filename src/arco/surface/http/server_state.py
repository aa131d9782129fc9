"""What a server keeps between requests: a catalog and a library per tenant and workspace that was asked for."""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from arco.catalog.catalog import Catalog
from arco.catalog.checkpointer import Checkpointer
from arco.catalog.feed import Feed
from arco.catalog.policy import LocationPolicy
from arco.catalog.workspace import Choices
from arco.fold.hinting import Hints
from arco.kernel.clock import Clock
from arco.kernel.entropy import Entropy
from arco.kernel.errors import CorruptObject, UnknownFormat
from arco.kernel.limits import READY_WORKSPACES_MAX, WORKSPACES_OPEN_MAX
from arco.kernel.scope import Scope
from arco.ledger.appender import Appender
from arco.servo.schedule.envelopes import EnvelopeKeys
from arco.storage.counted import counted
from arco.storage.port import ObjectStore
from arco.storage.workspaces import workspaces
from arco.surface.http.for_clients import ForClients
from arco.surface.http.kept_answers import KeptAnswers
from arco.surface.http.libraries import Libraries
from arco.surface.http.metrics import Metrics
from arco.surface.receipts import receipts_of
from arco.txn.transactions import Transactions

log = logging.getLogger("arco.http")


class ServerState:
    """The catalogs of one root, and the libraries."""

    def __init__(
        self,
        store: ObjectStore,
        base_uri: str,
        for_clients: ForClients,
        policy: LocationPolicy,
        clock: Clock,
        entropy: Entropy,
        choices: Choices | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self.metrics = metrics or Metrics()
        self.store = store = counted(store, self.metrics, clock)
        self.libraries = Libraries(
            store, clock, entropy, _folder(base_uri), lambda one: receipts_of(self.catalog(one).parts)
        )
        self.for_clients = for_clients
        self.answers = KeptAnswers(tallies=self.metrics)
        self._base_uri = base_uri
        self._policy = policy
        self.clock = clock
        self._entropy = entropy
        self._choices = choices
        self._checkpointers: dict[Scope, Checkpointer] = {}
        self._open: dict[Scope, Catalog] = {}
        self._transactions: dict[Scope, Transactions] = {}
        self._feeds: dict[Scope, Feed] = {}
        self._appenders: dict[Scope, Appender] = {}
        self._names_are_read = False
        self.wake_fold: Callable[[Scope], None] = lambda _scope: None
        """Called when something of a workspace was appended: the fold of this server, if there is one, looks soon."""
        self.task_keys: EnvelopeKeys | None = None
        """What requests for runs are sealed with, if this server has the key of schedulers and workers."""
        self.fold_status: Callable[[], dict[str, Any]] | None = None
        """How the fold of this server is, if there is one."""
        self.fold_lists = True
        """Whether the fold of this server finds segments by itself. One that does not is told of those that are written here."""
        self._hints = Hints(store, clock, entropy, lambda one: self.wake_fold_here(one.warehouse))

    def wake_fold_here(self, warehouse: str) -> None:
        self.wake_fold(Scope.parse_warehouse(warehouse))

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
            if len(self._open) >= WORKSPACES_OPEN_MAX:
                self._forget_what_is_not_there()
            found = self._open[scope] = self._opened(scope)
        return found

    def _forget_what_is_not_there(self) -> None:
        """A client may name any workspace, and most names are of none. Opened anew, one knows what it knew before: nothing.

        Nor does an appender that has nothing to do: the next one writes under another writer's name.
        """
        for scope in [scope for scope in {**self._open, **self._appenders} if not self._is_needed(scope)]:
            for kept in (self._open, self._checkpointers, self._transactions, self._feeds, self._appenders):
                kept.pop(scope, None)

    def _is_needed(self, scope: Scope) -> bool:
        catalog, appender = self._open.get(scope), self._appenders.get(scope)
        return (catalog is not None and catalog.parts.is_in_use) or (appender is not None and not appender.is_idle)

    def transactions(self, scope: Scope) -> Transactions:
        if scope not in self._transactions:
            tables_max = (self._choices or Choices()).transaction_tables_max
            self._transactions[scope] = Transactions(self.catalog(scope), tables_max)
        return self._transactions[scope]

    def feed(self, scope: Scope) -> Feed:
        """The events of a workspace, for who follows them."""
        if scope not in self._feeds:
            self._feeds[scope] = Feed(self.catalog(scope).parts)
        return self._feeds[scope]

    def appender(self, scope: Scope) -> Appender:
        """Where the events of a workspace go."""
        if scope not in self._appenders:
            if len(self._appenders) >= WORKSPACES_OPEN_MAX:
                self._forget_what_is_not_there()
            self._appenders[scope] = Appender(
                self.store, scope, self.clock, self._entropy, stored=partial(self._hear, scope)
            )
        return self._appenders[scope]

    def _hear(self, scope: Scope, name: object) -> None:
        """A segment or a receipt was written."""
        if not self.fold_lists:
            self._hints.add(scope, str(name))

    def _opened(self, scope: Scope) -> Catalog:
        catalog = Catalog.open(
            self.store,
            self._base_uri,
            scope,
            self.clock,
            self._entropy,
            self._policy,
            self._choices,
            self.metrics,
        )
        parts = catalog.parts
        checkpointer = Checkpointer(parts.tier1, self.clock, self._entropy, asyncio.to_thread)
        parts.committer.after_commit = checkpointer.wake
        parts.receipts.hears = partial(self._hear, scope)
        self._checkpointers[scope] = checkpointer
        return catalog

    async def settle(self) -> None:
        """Finish what was left to do after answers."""
        for appender in self._appenders.values():
            await appender.close()
        for checkpointer in self._checkpointers.values():
            await checkpointer.stop()
        for catalog in self._open.values():
            await catalog.parts.afterwards.settle()
        await self._hints.settle()


def _folder(base_uri: str) -> Path | None:
    """The folder that a root is, if it is one."""
    scheme, _, path = base_uri.partition("://")
    return Path(path) if scheme == "file" else None

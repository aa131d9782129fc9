"""Segments and receipts that this process wrote, said to folds that do not list: kept in the store, and then a fold is woken.

It happens beside the work, and what gathers meanwhile goes out together, so a busy process writes one small object after the
other and nobody waits for it. One that dies in between has not said it: a hint may be missing, and a listing finds what hints
missed. Who must be sure says it again (`POST /api/v1/fold/notify`): answers name their segments.
"""

import asyncio
import logging
from collections.abc import Callable

from arco.fold.notifying import Notifier
from arco.kernel.clock import Clock
from arco.kernel.entropy import Entropy
from arco.kernel.errors import ArcoError
from arco.kernel.limits import WORKSPACES_OPEN_MAX
from arco.kernel.scope import Scope
from arco.storage.port import ObjectStore

log = logging.getLogger("arco.fold")


class Hints:
    """What waits to be said, a workspace at a time. `wake` is called once it was."""

    def __init__(
        self, store: ObjectStore, clock: Clock, entropy: Entropy, wake: Callable[[Scope], None] = lambda _scope: None
    ) -> None:
        self._store, self._clock, self._entropy = store, clock, entropy
        self._wake = wake
        self._waiting: dict[Scope, list[str]] = {}
        self._saying: dict[Scope, asyncio.Task[None]] = {}
        self._notifiers: dict[Scope, Notifier] = {}

    def add(self, scope: Scope, name: str) -> None:
        self._waiting.setdefault(scope, []).append(name)
        if scope not in self._saying:
            self._saying[scope] = asyncio.get_running_loop().create_task(self._say(scope))

    async def settle(self) -> None:
        """Until everything was said."""
        if self._saying:
            await asyncio.wait(self._saying.values())

    async def _say(self, scope: Scope) -> None:
        notifier = self._notifiers.setdefault(scope, Notifier(self._store, scope, self._clock, self._entropy))
        try:
            while names := self._waiting.pop(scope, []):
                try:
                    await notifier.notify(names)
                except ArcoError as error:
                    log.warning("the fold of %s was not told of %d objects: %s", scope.warehouse, len(names), error)
                    continue
                self._wake(scope)
        finally:
            del self._saying[scope]
            if len(self._notifiers) > WORKSPACES_OPEN_MAX:
                # What was said last is read again. Clients name the workspaces.
                self._notifiers = {one: kept for one, kept in self._notifiers.items() if one in self._saying}

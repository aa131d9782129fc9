"""Upkeep beside a server: one pass over every workspace of its root, again and again."""

import asyncio
import logging

from arco.kernel.errors import ArcoError
from arco.kernel.limits import WORKSPACES_LISTED_MAX
from arco.kernel.retention import Retention
from arco.kernel.scope import Scope
from arco.storage.workspaces import workspaces
from arco.surface.http.server_state import ServerState
from arco.upkeep.passes import due, upkeep_pass
from arco.upkeep.report import Report
from arco.upkeep.sweep import Setting

log = logging.getLogger("arco.upkeep")


class ServerUpkeep:
    """The upkeep of a server. Whoever stops it in the middle loses nothing: the next pass goes on."""

    def __init__(self, state: ServerState, retention: Retention, every_s: float) -> None:
        self._state = state
        self._retention = retention
        self._every_s = every_s
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._go_on())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _go_on(self) -> None:
        while True:
            try:
                for scope in await workspaces(self._state.store, WORKSPACES_LISTED_MAX):
                    await self._pass(scope)
            except ArcoError as error:
                log.warning("upkeep: %s", error.one_line())
            await self._state.clock.sleep(self._every_s)

    async def _pass(self, scope: Scope) -> None:
        try:
            setting = Setting(self._state.catalog(scope).parts, self._retention)
            await upkeep_pass(setting, await due(setting), told=lambda report: _log(scope, report))
        except Exception:
            # It is said, and the other workspaces come next.
            log.exception("upkeep of %s breaks", scope.warehouse)


def _log(scope: Scope, report: Report) -> None:
    if report.did_something:
        log.info(
            "upkeep of %s: %s, %d deleted, %d changed, %d bytes",
            scope.warehouse,
            report.kind,
            report.deleted,
            report.changed,
            report.bytes,
        )
    for text in (*report.trouble, *((report.failed,) if report.failed else ())):
        log.warning("upkeep of %s: %s: %s", scope.warehouse, report.kind, text)

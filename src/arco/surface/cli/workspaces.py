"""`arco workspace`: what workspaces a root holds, making one known, and giving one up."""

import sys
from typing import Any

import typer

from arco.catalog.catalog import Catalog
from arco.catalog.inventory import Inventory
from arco.catalog.model import Format
from arco.catalog.workspaces import Workspaces, need_known
from arco.kernel.errors import Conflict, InvalidInput
from arco.kernel.limits import WORKSPACES_LISTED_MAX
from arco.kernel.scope import Scope
from arco.ledger.outstanding import run_ids
from arco.servo.schedule.starting import listed_run
from arco.storage.workspaces import is_in_use, workspaces
from arco.surface.cli.opening import Opened, opened
from arco.surface.cli.printing import counted, print_grid, print_json, say, when
from arco.surface.cli.projects import At, scope_named
from arco.surface.cli.running import where_of


async def create(at: At, name: str, description: str) -> None:
    async with opened(where_of(at)) as home:
        scope = _scope(home, name)
        await _all(home).create(scope, home.author.principal, description)
    say(f"workspace {scope.warehouse} is there: arco run --workspace {scope.workspace}")


async def list_workspaces(at: At, *, everything: bool, json: bool) -> None:
    async with opened(where_of(at)) as home:
        scopes = await workspaces(_store(home), WORKSPACES_LISTED_MAX)
        found = [await _described(home, scope) for scope in scopes if await is_in_use(_store(home), scope)]
    shown = [one for one in found if everything or one["given_up"] is None]
    if json:
        print_json(shown)
        return
    rows = [
        (
            one["workspace"],
            counted(one["holds"], "table"),
            "" if one["created_ms"] is None else when(one["created_ms"]),
            one["created_by"] or "",
            one["description"] if one["given_up"] is None else f"given up by {one['given_up']}",
        )
        for one in shown
    ]
    print_grid(("workspace", "holds", "since (UTC)", "by", ""), rows, folds=(4,))
    if not rows:
        say("there is none yet: arco run makes the first, arco workspace create another")


async def delete(at: At, name: str, why: str, *, purge_tables: bool, yes: bool) -> None:
    if not why.strip():
        raise InvalidInput("a workspace is given up without a reason", hint='say why: --why "merged"')
    async with opened(where_of(at)) as home:
        scope = _scope(home, name)
        catalog = home.catalog.beside(scope)
        record = await _all(home).read(scope)
        names = await Inventory(catalog).names()
        need_known(record, scope, holds_anything=bool(names.entries or names.namespaces))
        if purge_tables and names.entries:
            if not yes and not _confirmed(scope, len(names.entries)):
                say("Nothing was changed.")
                return
            await _drop_all(home, catalog)
            names = await Inventory(catalog).names()
        if names.entries:
            raise Conflict(
                f"workspace {scope.warehouse} holds {counted(len(names.entries), 'table')}",
                hint="drop them first, or pass --purge-tables",
            )
        if open_runs := await _open_runs(catalog):
            raise Conflict(
                f"run {open_runs[0]} in {scope.warehouse} has not ended",
                hint="arco cancel ends it, arco resume finishes it",
            )
        await _all(home).give_up(scope, home.author.principal, why)
        await catalog.parts.afterwards.settle()
    say(f"workspace {scope.warehouse} is given up; arco workspace create {scope.workspace} takes it up again")
    say(f"Files of its dropped tables go with: arco upkeep --warehouse {scope.warehouse}, after their hold")


def _scope(home: Opened, name: str) -> Scope:
    return scope_named(name, home.catalog.parts.scope)


def _all(home: Opened) -> Workspaces:
    parts = home.catalog.parts
    return Workspaces(parts.tier1.store, parts.clock, parts.entropy)


def _store(home: Opened) -> Any:
    return home.catalog.parts.tier1.store


async def _described(home: Opened, scope: Scope) -> dict[str, Any]:
    record = await _all(home).read(scope)
    names = await Inventory(home.catalog.beside(scope)).names()
    given_up = None if record is None or record.given_up is None else record.given_up
    return {
        "workspace": scope.warehouse,
        "holds": len(names.entries),
        "created_ms": None if record is None or not record.created_ms else record.created_ms,
        "created_by": None if record is None else record.created_by,
        "description": "" if record is None else record.description,
        "given_up": None if given_up is None else f"{given_up.who}: {given_up.why}",
    }


async def _drop_all(home: Opened, catalog: Catalog) -> None:
    inventory = Inventory(catalog)
    for place, entry in sorted((await inventory.names()).entries.items(), key=lambda one: one[0]):
        key = catalog.parts.markers.request_key(None, "shell.drop", "")
        # Files of tables of other formats are not Arco's to delete.
        await inventory.drop(place, purge=entry.format is Format.ICEBERG, key=key, author=home.author)


async def _open_runs(catalog: Catalog) -> list[str]:
    parts = catalog.parts
    found = []
    for run in await run_ids(parts.tier1.store, parts.scope):
        opened_run = await listed_run(parts.tier1.store, parts.scope, run, parts.clock, parts.entropy)
        if opened_run is not None and not opened_run.log.state.is_finished:
            found.append(str(run))
    return found


def _confirmed(scope: Scope, count: int) -> bool:
    if not sys.stdin.isatty():
        raise InvalidInput("there is nobody to ask whether to drop its tables", hint="pass --yes")
    return typer.confirm(f"Drop {count} tables and views of {scope.warehouse} and delete their files?")

"""`arco deploy` and `arco rollback`: what a deployment changes, said before it is published."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import PurePath
from typing import Any

import msgspec

from arco.catalog.workspaces import Workspaces
from arco.servo.deploy.declaration import declared
from arco.servo.deploy.deploying import Deployments, Difference, Prepared, difference
from arco.servo.deploy.manifest import Deployment
from arco.servo.deploy.table_columns import columns_of_tables
from arco.surface.cli.opening import Opened, opened
from arco.surface.cli.printing import counted, print_grid, print_json, say, when
from arco.surface.cli.projects import ProjectFile, read_project

_HISTORY_SHOWN_MAX = 50


async def deploy(
    folder: str, root: str | None, options: list[str] | None, *, dry_run: bool, allow_breaking: bool, json: bool
) -> None:
    file = read_project(folder)
    project = file.load()
    published: Deployment | None = None
    async with _deployments(file, root, options) as (deployments, home):
        person = home.author.principal
        tables = await columns_of_tables(home.catalog, project)
        found = await deployments.prepare(project, by=person, tables=tables)
        if not json:
            for line in _lines(found):
                say(line)
        if not dry_run and found.is_news:
            if not allow_breaking:
                found.refuse_breaking()
            published, _ = await deployments.deploy(project, by=person, allow_breaking=allow_breaking, tables=tables)
    if json:
        print_json(_document(found, published, dry_run=dry_run))
    elif dry_run:
        say("nothing was written: this was a dry run")
    elif published is not None:
        say(f"deployed {published.project} as {published.id}, code version {published.code_version}")


async def declare(folder: str, root: str | None, options: list[str] | None, *, allow_breaking: bool) -> None:
    """What a server is sent to deploy the project, with the deployment that counts now."""
    file = read_project(folder)
    made = declared(file.load())
    shown = {key: msgspec.structs.replace(one, where=PurePath(one.where).name) for key, one in made.assets.items()}
    async with _deployments(file, root, options) as (deployments, _):
        before = next(iter(await deployments.history(file.name)), None)
    print_json(
        {
            "before": before,
            "declaration": msgspec.to_builtins(msgspec.structs.replace(made, assets=shown)),
            "allow_breaking": allow_breaking,
        }
    )


async def rollback(
    folder: str, root: str | None, options: list[str] | None, to: str | None, *, allow_breaking: bool, json: bool
) -> None:
    file = read_project(folder)
    async with _deployments(file, root, options) as (deployments, home):
        before = await deployments.current(file.name)
        after = await deployments.rollback(file.name, to, by=home.author.principal, allow_breaking=allow_breaking)
    changes = difference(before, after)
    if json:
        was = None if before is None else before.id
        print_json({"deployment": after.id, "before": was, "code_version": after.code_version, **_changes(changes)})
        return
    for line in _changed(changes):
        say(line)
    say(f"deployment {after.id} of {when(after.created_ms)} UTC counts again, code version {after.code_version}")
    say("Check out the code of that version before arco run: it deploys the code that it finds.")


async def history(folder: str, root: str | None, options: list[str] | None, *, json: bool) -> None:
    file = read_project(folder)
    async with _deployments(file, root, options) as (deployments, _):
        ids = await deployments.history(file.name)
        found = [await deployments.load(one) for one in sorted(ids, reverse=True)[:_HISTORY_SHOWN_MAX]]
    if json:
        current = ids[0] if ids else None
        print_json({"project": file.name, "current": current, "deployments": [_summary(one) for one in found]})
        return
    if not found:
        say(f"project {file.name} was never deployed")
        return
    rows = [
        (
            one.id,
            when(one.created_ms),
            one.created_by,
            one.code_version,
            counted(len(one.assets), "asset"),
            "counts" if one.id == ids[0] else "",
        )
        for one in found
    ]
    print_grid(("deployment", "when (UTC)", "by", "code version", "holds", ""), rows, folds=(2,))
    if len(ids) > len(found):
        say(f"and {len(ids) - len(found)} before")


@asynccontextmanager
async def _deployments(
    file: ProjectFile, root: str | None, options: list[str] | None
) -> AsyncIterator[tuple[Deployments, Opened]]:
    async with opened(file.where(root, options)) as home:
        parts = home.catalog.parts
        await Workspaces(parts.tier1.store, parts.clock, parts.entropy).need_in_use(parts.scope)
        yield Deployments(parts.tier1.store, parts.scope, parts.clock, parts.entropy, parts.heard), home


def _lines(found: Prepared) -> Iterator[str]:
    if not found.is_news:
        yield f"nothing changed: deployment {found.after.previous} says the same"
        return
    yield from _changed(found.difference)
    for key, verdict in sorted(found.after.verdicts.items()):
        yield f"schema of {key}, {verdict.compatibility} compatible:"
        refused = set(verdict.refused)
        for change in verdict.changes:
            reason = next((one for one in refused if one.startswith(f"{change}: ")), None)
            yield f"  refused  {reason}" if reason else f"  allowed  {change}"
        if not verdict.in_place:
            yield "  tables that have data cannot record this: every row has to be written again"


def _changed(changes: Difference) -> Iterator[str]:
    for word, names in (("added", changes.added), ("changed", changes.changed)):
        for name in names:
            yield f"{word:8} {name}"
    for before, after in changes.renamed:
        yield f"{'renamed':8} {before} to {after}"
    for name in changes.retired:
        yield f"{'retired':8} {name}"
    for name in changes.schedules:
        yield f"{'changed':8} schedule {name}"


def _changes(changes: Difference) -> dict[str, Any]:
    return {
        "added": list(changes.added),
        "changed": list(changes.changed),
        "renamed": [{"from": before, "to": after} for before, after in changes.renamed],
        "retired": list(changes.retired),
        "schedules": list(changes.schedules),
    }


def _document(found: Prepared, published: Deployment | None, *, dry_run: bool) -> dict[str, Any]:
    """What counts afterwards, and what that changed."""
    before = None if found.before is None else found.before.id
    return {
        "deployment": before if published is None else published.id,
        "before": before,
        "code_version": found.after.code_version,
        "news": found.is_news,
        "dry_run": dry_run,
        **_changes(found.difference),
        "verdicts": msgspec.to_builtins(found.after.verdicts),
        "breaking": list(found.after.breaking),
    }


def _summary(one: Deployment) -> dict[str, Any]:
    return {
        "deployment": one.id,
        "created_ms": one.created_ms,
        "created_by": one.created_by,
        "code_version": one.code_version,
        "previous": one.previous,
        "assets": sorted(one.assets),
        "breaking": list(one.breaking),
    }

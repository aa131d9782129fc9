"""`arco ls`: names, by name."""

import typer

from arco.catalog import listing
from arco.catalog.model import Dropped, Entry, Format, Kind, Levels
from arco.catalog.names import Names
from arco.catalog.overview import dropped_summary_of, summary_of
from arco.catalog.spelling import parse_namespace, spelled
from arco.kernel.errors import NoSuchNamespace
from arco.surface.cli.flags import Where
from arco.surface.cli.opening import Opened, opened
from arco.surface.cli.printing import counted, print_grid, print_json, say, when

Wanted = tuple[str | None, str | None, str | None]
"""Namespace, kind and format, as they were given."""


async def ls(where: Where, wanted: Wanted, *, dropped: bool, json: bool) -> bool:
    namespace, kind, table_format = wanted
    levels = None if namespace is None else parse_namespace(namespace)
    chosen = listing.Filter(
        levels, None if kind is None else Kind(kind), None if table_format is None else Format(table_format)
    )
    async with opened(where) as at:
        names = await at.inventory.names()
        if at.catalog.parts.tier1.held is None:
            typer.echo(f"arco: there is no catalog {at.warehouse} in {at.root} yet", err=True)
        if dropped:
            _show_dropped(listing.dropped(names, chosen), json=json)
            return True
        if levels is not None and levels not in names.namespaces:
            raise _no_namespace(at, names, levels)
        found = listing.tables(names, chosen)
    below = listing.namespaces(names, levels)
    if json:
        print_json({"tables": [summary_of(entry) for entry in found], "namespaces": below})
        return True
    _show(found)
    _sum_up(found, below, filtered=kind is not None or table_format is not None)
    return True


def _show(entries: list[Entry]) -> None:
    if not entries:
        return
    rows = [
        (
            spelled(entry.namespace, entry.name),
            entry.kind,
            entry.format,
            entry.governance.owner,
            " ".join(entry.governance.tags),
            when(entry.created_ms),
        )
        for entry in entries
    ]
    print_grid(("name", "kind", "format", "owner", "tags", "created (UTC)"), rows)


def _sum_up(entries: list[Entry], below: list[Levels], *, filtered: bool) -> None:
    views = sum(entry.kind is Kind.VIEW for entry in entries)
    say(f"{counted(len(entries) - views, 'table')}, {counted(views, 'view')} in {counted(len(below), 'namespace')}")
    inhabited = {entry.namespace[:depth] for entry in entries for depth in range(1, len(entry.namespace) + 1)}
    empty = [spelled(levels) for levels in below if levels not in inhabited]
    if empty and not filtered:
        say(f"Nothing in: {', '.join(empty)}")


def _show_dropped(dropped: list[Dropped], *, json: bool) -> None:
    if json:
        print_json({"dropped": [dropped_summary_of(one) for one in dropped]})
        return
    if not dropped:
        say("Nothing that was dropped can be restored.")
        return
    rows = [
        (
            spelled(one.entry.namespace, one.entry.name),
            f"{one.entry.format} {one.entry.kind}",
            when(one.dropped_ms),
            one.principal,
            one.drop_id,
            "unregistered" if one.unregistered else "to be purged" if one.purge else "",
        )
        for one in dropped
    ]
    print_grid(("name", "what", "dropped (UTC)", "by", "drop id", ""), rows, folds=(0, 3, 4))
    if not all(one.unregistered for one in dropped):
        say("Restore one with arco undrop NAME, or --drop-id ID.")
    if any(one.unregistered for one in dropped):
        say("What was unregistered comes back by registering it again; its files are never deleted.")


def _no_namespace(at: Opened, names: Names, levels: Levels) -> NoSuchNamespace:
    text = spelled(levels)
    if (levels[:-1], levels[-1]) in names.entries:
        return NoSuchNamespace(f"{text} is not a namespace", hint=f"arco show '{text}' shows it")
    return NoSuchNamespace(f"there is no namespace {text} in {at.warehouse}", hint="arco ls lists what there is")

"""`arco assets`: what is deployed, and the tables that no project made, in a list. One of them is in `showing_assets.py`."""

from collections.abc import AsyncIterator, Mapping
from datetime import datetime

import msgspec

from arco.kernel.limits import ANSWER_PAGE_ITEMS_MAX
from arco.read.assets import AssetLine, Filter, assets
from arco.read.facts import facts
from arco.read.health import Status, health_of
from arco.read.library import Binding
from arco.read.pages import Window
from arco.surface.cli.asking import Asked, asking
from arco.surface.cli.flags import Where
from arco.surface.cli.printing import counted, print_grid, print_json, say, stamp

Wanted = tuple[str | None, str | None, str | None]
"""Namespace, tag and owner, as they were given."""

COLOURS: Mapping[str, str] = {
    Status.HEALTHY: "green",
    Status.WARNING: "yellow",
    Status.UNHEALTHY: "bold red",
    Status.UNKNOWN: "dim",
}


class ListedAsset(AssetLine, frozen=True, kw_only=True):
    """An asset in the list, with what became of it."""

    partitions: int
    last_published_at: datetime | None
    status: Status


async def list_assets(where: Where, binding: Binding, wanted: Wanted, *, retired: bool, json: bool) -> bool:
    async with asking(where, binding) as asked:
        asked.say_if_empty()
        found = [one async for one in _listed(asked, msgspec.structs.replace(filter_of(wanted), retired=retired))]
        snapshot_id = asked.reader.cut.snapshot_id
    if json:
        print_json({"snapshot": snapshot_id, "items": found})
        return True
    if found:
        headers = ("name", "kind", "owner", "tags", "partitions", "last published (UTC)", "health")
        print_grid(headers, map(_row, found), folds=(0, 2, 3), paint={6: COLOURS})
    say(_counted(found) + nothing_fits(found, wanted))
    return True


def _counted(found: list[ListedAsset]) -> str:
    others = sum(1 for one in found if not one.made_by_project)
    deployed = counted(len(found) - others, "asset")
    return f"{deployed}; {counted(others, 'table')} that no project made" if others else deployed


def kind_of(line: AssetLine) -> str:
    """What something is, for people."""
    kind = line.kind or ""
    if line.made_by_project:
        return f"{kind}, retired" if line.retired else kind
    return f"{kind}, no project{', dropped' if line.retired else ''}"


def filter_of(wanted: Wanted) -> Filter:
    namespace, tag, owner = wanted
    return Filter(namespace=namespace, tag=tag, owner=owner)


def nothing_fits(found: object, wanted: Wanted) -> str:
    """What to try where a filter lets nothing through."""
    return "" if found or not any(wanted) else " of this namespace, tag and owner; `arco assets` lists all"


async def _listed(asked: Asked, wanted: Filter) -> AsyncIterator[ListedAsset]:
    cursor = None
    while True:
        page = await assets(asked.reader, wanted, Window(ANSWER_PAGE_ITEMS_MAX, cursor))
        known = await facts(asked.reader, [one.asset_id for one in page.items])
        for one in page.items:
            its = known[one.asset_id]
            healthy = health_of(its, asked.now_ms)
            yield ListedAsset(
                **msgspec.structs.asdict(one),
                partitions=its.published.partitions,
                last_published_at=healthy.freshness.last_materialized_at,
                status=healthy.status,
            )
        cursor = page.next_cursor
        if cursor is None:
            return


def _row(one: ListedAsset) -> tuple[str | None, ...]:
    owners, tags = ", ".join(one.owners), " ".join(one.tags)
    partitions = f"{one.partitions:,}" if one.partitions else ""
    return one.asset, kind_of(one), owners, tags, partitions, stamp(one.last_published_at), one.status

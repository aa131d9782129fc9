"""`arco lineage NAME --impact`: who is hit if an asset is late or wrong."""

from arco.kernel.limits import LINEAGE_DEPTH_MAX
from arco.read.impact import Affected, Impact, impact
from arco.read.library import Binding
from arco.surface.cli.asking import asking
from arco.surface.cli.flags import Where
from arco.surface.cli.partition_spelling import spelled_key, spelled_ranges
from arco.surface.cli.printing import print_grid, print_json, say, stamp


async def show_impact(
    where: Where, binding: Binding, name: str, *, partition: str | None, depth: int | None, json: bool
) -> bool:
    async with asking(where, binding) as asked:
        asked.need_state()
        far = LINEAGE_DEPTH_MAX if depth is None else depth
        found = await impact(asked.reader, name, partition=partition, depth=far)
    if json:
        print_json(found)
    else:
        _print(found)
    return True


def _print(found: Impact) -> None:
    of = found.asset if found.partition_key is None else f"{found.asset} {spelled_key(found.partition_key)}"
    if not found.affected:
        say(f"Nothing is made of {of}.")
        return
    headers = ("hit", "kind", "steps", "owner", "project", "last published (UTC)", "due (UTC)", "partitions")
    print_grid(headers, map(_row, found.affected), folds=(0, 3, 7))
    owners = f"; tell {', '.join(found.owners)}" if found.owners else ""
    say(f"{len(found.affected)} hit if {of} is late or wrong{owners}")
    if found.next_deadline is not None:
        say(f"The first of them is due {stamp(found.next_deadline)} UTC")
    if found.truncated:
        say("There is more: this is where looking ended.")


def _row(one: Affected) -> tuple[str | None, ...]:
    ranges = "; ".join(dict.fromkeys(spelled_ranges(some) for some in one.partitions or ()))
    return (
        one.asset,
        one.kind,
        str(one.depth),
        ", ".join(one.owners),
        one.project,
        stamp(one.last_publish),
        stamp(one.deadline),
        ranges,
    )

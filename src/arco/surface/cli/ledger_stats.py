"""`arco ledger stats`: how much the ledger holds, for people and for programs."""

from arco.ledger.stats import Amount, DomainStats, domain_stats
from arco.storage.keys import Domain
from arco.surface.cli.flags import Where
from arco.surface.cli.opening import opened
from arco.surface.cli.printing import counted, print_grid, print_json, say, size

_MISSING_SHOWN_MAX = 10


async def stats(where: Where, *, json: bool) -> bool:
    """Print what there is; True if nothing is missing or damaged."""
    async with opened(where) as at:
        parts = at.catalog.parts
        found = [await domain_stats(parts.tier1.store, parts.scope, domain) for domain in Domain]
    if json:
        print_json({"root": at.root, "warehouse": at.warehouse, "domains": found})
    else:
        _print(f"The ledger of {at.warehouse} in {at.root}", found)
    return all(one.is_whole for one in found)


def _print(title: str, found: list[DomainStats]) -> None:
    if not any(one.segments for one in found):
        say(f"{title} is empty.")
        return
    say(title)
    rows = [row for one in found if one.segments for row in _rows(one)]
    print_grid(("DOMAIN", "DAY", "SEGMENTS", "EVENTS", "SIZE", "WRITERS"), rows)
    for one in found:
        _print_trouble(one)


def _rows(one: DomainStats) -> list[tuple[str, ...]]:
    total = (one.domain, "", *_amount(one), f"{one.writers:,}")
    return [total, *(("", day.day, *_amount(day), "") for day in one.days)]


def _amount(one: Amount) -> tuple[str, str, str]:
    return f"{one.segments:,}", f"{one.events:,}", size(one.bytes)


def _print_trouble(one: DomainStats) -> None:
    for aside in one.set_aside:
        say(f"  {one.domain}: {counted(aside.events, 'event')} of {aside.type} set aside: {aside.reason.replace('_', ' ')}")
    for gap in one.gaps:
        ranges = [str(first) if first == last else f"{first} to {last}" for first, last in gap.missing]
        shown = ", ".join(ranges[:_MISSING_SHOWN_MAX])
        more = len(ranges) - _MISSING_SHOWN_MAX
        say(f"  {one.domain}: writer {gap.writer} lacks segment {shown}{f' and {more} more' if more > 0 else ''}")
    for damage in one.damaged:
        say(f"  {one.domain}: damaged: {damage.message}")

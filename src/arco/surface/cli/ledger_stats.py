"""`arco ledger stats`: how much the ledger holds, for people and for programs."""

from collections.abc import Callable

from arco.kernel.retention import Retention
from arco.ledger.envelope import EventTime
from arco.ledger.stats import Amount, DomainStats, domain_stats
from arco.storage.keys import Domain
from arco.surface.cli.flags import Where
from arco.surface.cli.opening import opened
from arco.surface.cli.printing import counted, print_grid, print_json, say, size
from arco.surface.cli.settings import load_settings

_MISSING_SHOWN_MAX = 10


async def stats(where: Where, *, json: bool) -> bool:
    """Print what there is; True if nothing is missing or damaged."""
    async with opened(where) as at:
        parts = at.catalog.parts
        found = [await domain_stats(parts.tier1.store, parts.scope, domain) for domain in Domain]
        now_ms = parts.clock.now_ms()
    retention = load_settings(where.root, list(where.options), where.folder).retention
    if json:
        policy = {domain.value: retention.of_domain(domain.value) for domain in Domain}
        print_json({"root": at.root, "warehouse": at.warehouse, "retention": policy, "domains": found})
    else:
        _print(f"The ledger of {at.warehouse} in {at.root}", found, lambda one, day: _kept(retention, one, day, now_ms))
    return all(one.is_whole for one in found)


def _kept(retention: Retention, domain: str, day: str, now_ms: int) -> str:
    """The class of what was appended on a day."""
    return retention.of_domain(domain).tier(now_ms - EventTime(f"{day}T00:00:00.000Z").time_ms).value


def _print(title: str, found: list[DomainStats], kept: Callable[[str, str], str]) -> None:
    if not any(one.segments for one in found):
        say(f"{title} is empty.")
        return
    say(title)
    rows = [row for one in found if one.segments for row in _rows(one, kept)]
    print_grid(("DOMAIN", "DAY", "SEGMENTS", "EVENTS", "SIZE", "WRITERS", "KEPT"), rows)
    for one in found:
        _print_notes(one)


def _rows(one: DomainStats, kept: Callable[[str, str], str]) -> list[tuple[str, ...]]:
    total = (one.domain, "", *_amount(one), f"{one.writers:,}", "")
    return [total, *(("", day.day, *_amount(day), "", kept(one.domain, day.day)) for day in one.days)]


def _amount(one: Amount) -> tuple[str, str, str]:
    return f"{one.segments:,}", f"{one.events:,}", size(one.bytes)


def _print_notes(one: DomainStats) -> None:
    if one.archived:
        say(f"  {one.domain}: {counted(one.archived, 'segment')} of these in the archive")
    for aside in one.set_aside:
        say(f"  {one.domain}: {counted(aside.events, 'event')} of {aside.type} set aside: {aside.reason.replace('_', ' ')}")
    for gap in one.gaps:
        ranges = [str(first) if first == last else f"{first} to {last}" for first, last in gap.missing]
        shown = ", ".join(ranges[:_MISSING_SHOWN_MAX])
        more = len(ranges) - _MISSING_SHOWN_MAX
        say(f"  {one.domain}: writer {gap.writer} lacks segment {shown}{f' and {more} more' if more > 0 else ''}")
    for damage in one.damaged:
        say(f"  {one.domain}: damaged: {damage.message}")

"""`arco health`: who is well, and for whoever is not: why, where it begins, and what to type next."""

from collections import Counter
from shlex import quote

from arco.kernel.limits import ANSWER_PAGE_ITEMS_MAX
from arco.read.assets import Filter, health_list
from arco.read.causes import Cause, Priority
from arco.read.explain import Explanation, explain
from arco.read.health import Health, HealthPage, Status
from arco.read.library import Binding
from arco.read.pages import Window
from arco.surface.cli.asking import Asked, asking
from arco.surface.cli.flags import Where
from arco.surface.cli.listing_assets import COLOURS, Wanted, filter_of, nothing_fits
from arco.surface.cli.partition_spelling import spelled_ranges
from arco.surface.cli.printing import counted, lasting, print_grid, print_json, say, say_painted, stamp

WORST_FIRST = (Status.UNHEALTHY, Status.WARNING, Status.UNKNOWN, Status.HEALTHY)
_PRIORITIES = {Priority.HIGH: "bold red", Priority.MEDIUM: "yellow", Priority.LOW: "dim"}


async def list_health(where: Where, binding: Binding, wanted: Wanted, *, json: bool) -> bool:
    async with asking(where, binding) as asked:
        asked.say_if_empty()
        page = await _everyone(asked, filter_of(wanted))
    counts = Counter(one.status for one in page.health)
    if json:
        print_json(page)
        return not counts[Status.UNHEALTHY]
    ordered = sorted(page.health, key=lambda one: (WORST_FIRST.index(one.status), one.asset))
    if ordered:
        rows = [
            (one.status, one.asset, stamp(one.freshness.last_materialized_at), "; ".join(one.reasons)) for one in ordered
        ]
        print_grid(("health", "name", "last published (UTC)", "why"), rows, folds=(1, 3), paint={0: COLOURS})
    many = ", ".join(f"{counts[status]:,} {status}" for status in WORST_FIRST if counts[status])
    say(f"{counted(len(ordered), 'asset')}{f': {many}' if many else ''}{nothing_fits(ordered, wanted)}")
    if ordered and ordered[0].status is not Status.HEALTHY:
        say(f"Next: arco health {quote(ordered[0].asset)}")
    return not counts[Status.UNHEALTHY]


async def _everyone(asked: Asked, wanted: Filter) -> HealthPage:
    found: list[Health] = []
    cursor = None
    while True:
        page = await health_list(asked.reader, asked.now_ms, wanted, Window(ANSWER_PAGE_ITEMS_MAX, cursor))
        found += page.health
        cursor = page.next_cursor
        if cursor is None:
            return HealthPage(snapshot_id=page.snapshot_id, computed_at=page.computed_at, health=tuple(found))


async def show_health(where: Where, binding: Binding, name: str, *, json: bool) -> bool:
    async with asking(where, binding) as asked:
        asked.need_state()
        found = await explain(asked.reader, name, asked.now_ms)
    if json:
        print_json(found)
    else:
        _print(found)
    return found.status is not Status.UNHEALTHY


def _print(found: Explanation) -> None:
    say_painted((found.asset, "bold"), ("  ", ""), (found.status, COLOURS[found.status]))
    for reason in found.reasons:
        say(f"  {reason}")
    for line in _facts(found):
        say_painted((f"  {line}", "dim"))
    if found.causes:
        say_painted(("Why", "bold"))
    for cause in found.causes:
        _print_cause(cause)
    if found.recommendations:
        say_painted(("What to do", "bold"))
    for one in found.recommendations:
        say_painted(("  " + (one.command or one.action), _PRIORITIES[one.priority]))
        if one.command:
            say_painted((f"      {one.action}", "dim"))
    if found.truncated:
        say("There is more upstream than was looked at.")


def _facts(found: Explanation) -> list[str]:
    fresh, quality, last = found.freshness, found.quality, found.last_run
    lines = []
    if fresh.last_materialized_at is not None:
        due = f", due {stamp(fresh.deadline)}" if fresh.deadline else ""
        lines.append(f"published {stamp(fresh.last_materialized_at)} UTC, {lasting(fresh.staleness_s)} ago{due}")
    if quality.checks:
        failing = f"; failing: {', '.join(quality.failing)}" if quality.failing else ""
        lines.append(f"{quality.passed} of {counted(quality.checks, 'check')} passed{failing}")
    if last is not None:
        lines.append(f"last run {last.run_id}: {last.outcome}{f', {stamp(last.ended_at)} UTC' if last.ended_at else ''}")
    return lines


def _print_cause(cause: Cause) -> None:
    say_painted(("  ✗ ", "red"), (cause.summary, ""))
    about = [
        " ◄ ".join(cause.path) if len(cause.path) > 1 else "",
        spelled_ranges(cause.partitions),
        f"since {stamp(cause.since)} UTC" if cause.since else "",
        f"run {cause.run_id}" if cause.run_id else "",
    ]
    if any(about):
        say_painted(("      " + ", ".join(part for part in about if part), "dim"))

"""`arco upkeep` and `arco purge`: what was done, for people and for programs."""

import sys
from collections.abc import Sequence

import typer

from arco.catalog.spelling import parse_name
from arco.kernel.errors import InvalidInput
from arco.surface.cli.durations import seconds_of
from arco.surface.cli.flags import Where
from arco.surface.cli.opening import opened
from arco.surface.cli.printing import counted, lasting, print_grid, print_json, say, say_aside, size
from arco.surface.cli.settings import load_settings
from arco.upkeep.passes import due, jobs_named, upkeep_pass
from arco.upkeep.purging import purge as purged
from arco.upkeep.report import Report
from arco.upkeep.sweep import Setting

_EXAMPLES_SHOWN_MAX = 50
_TROUBLE_SHOWN_MAX = 20


async def upkeep(
    where: Where, only: Sequence[str], tables: Sequence[str], *, every: str | None, dry_run: bool, json: bool
) -> bool:
    """One pass, or one after the other. True if every job was done, and found nothing that a person should look at."""
    jobs = jobs_named(only)
    pause_s = None if every is None else seconds_of(every)
    retention = load_settings(where.root, list(where.options), where.folder).retention
    async with opened(where) as at:
        await at.need_something()
        asked = [(await at.need_iceberg_table(parse_name(name))).uuid for name in tables]
        setting = Setting(at.catalog.parts, retention, dry_run, frozenset(asked))
        while True:
            reports = await upkeep_pass(setting, jobs if pause_s is None else await due(setting, jobs))
            _print(reports, json=json, quiet=pause_s is not None)
            if pause_s is None:
                return all(report.is_well for report in reports)
            await at.catalog.parts.clock.sleep(pause_s)


async def purge(where: Where, older_than: str, *, dry_run: bool, yes: bool, json: bool) -> bool:
    older_than_s = seconds_of(older_than)
    if not dry_run and not yes and not _confirmed(older_than):
        say("Nothing was changed.")
        return False
    async with opened(where) as at:
        await at.need_something()
        reports = await purged(Setting(at.catalog.parts, dry_run=dry_run), older_than_s)
    _print(reports, json=json, quiet=False)
    return all(report.is_well for report in reports)


def _confirmed(older_than: str) -> bool:
    if not sys.stdin.isatty():
        raise InvalidInput("there is nobody to ask whether to delete it for good", hint="pass --yes, or --dry-run")
    return typer.confirm(f"Delete dropped tables and logs of runs older than {older_than} for good?")


def _print(reports: Sequence[Report], *, json: bool, quiet: bool) -> None:
    if json:
        print_json({"reports": list(reports)})
        return
    shown = [one for one in reports if one.looked_at or one.did_something]
    if any(one.did_something for one in reports) or (shown and not quiet):
        dry = any(one.dry_run for one in reports)
        went = "WOULD GO" if dry else "DELETED"
        print_grid(("KIND", "LOOKED AT", went, "SIZE", "CHANGED", "AGE", "KEPT"), [_row(one) for one in shown], folds=(6,))
    elif not quiet and all(one.is_well for one in reports):
        say("there is nothing here to look after")
    for one in reports:
        _print_more(one)


def _row(one: Report) -> tuple[str, ...]:
    kept = ", ".join(f"{count:,} {why}" for why, count in sorted(one.kept.items(), key=lambda pair: -pair[1]))
    return (
        one.kind,
        f"{one.looked_at:,}",
        f"{one.deleted:,}" if one.deleted else "",
        size(one.bytes) if one.bytes else "",
        f"{one.changed:,}" if one.changed else "",
        _ages(one),
        kept,
    )


def _ages(one: Report) -> str:
    if one.oldest_s is None or one.youngest_s is None:
        return ""
    youngest, oldest = lasting(one.youngest_s), lasting(one.oldest_s)
    return oldest if youngest == oldest else f"{youngest} to {oldest}"


def _print_more(one: Report) -> None:
    for gone in one.examples[:_EXAMPLES_SHOWN_MAX]:
        say(f"  {gone.key}  {size(gone.size_bytes)}, {lasting(gone.age_s)} old: {gone.why}")
    if one.dry_run and one.deleted > _EXAMPLES_SHOWN_MAX:
        say(f"  and {one.deleted - _EXAMPLES_SHOWN_MAX:,} more of {one.kind}; --json has up to {len(one.examples):,}")
    for note in one.notes:
        say(f"  {note}")
    for text in one.trouble[:_TROUBLE_SHOWN_MAX]:
        say_aside(f"arco: {one.kind}: {text}")
    if len(one.trouble) > _TROUBLE_SHOWN_MAX:
        say_aside(f"arco: {one.kind}: {counted(len(one.trouble) - _TROUBLE_SHOWN_MAX, 'more line')} of trouble")
    if one.failed:
        say_aside(f"arco: {one.kind}: {one.failed}")

"""`arco explain`: what each partition of an asset is, and what to type next."""

from collections.abc import Iterator, Sequence

import msgspec

from arco.servo.plan.deferral import for_making
from arco.servo.plan.explanation import Differs, Explanation, Fresh, explain
from arco.servo.plan.staleness import World
from arco.servo.sdk.selection import find
from arco.surface.cli.last_tries import Tried, tried_in_vain
from arco.surface.cli.opening import opened
from arco.surface.cli.printing import counted, print_json, say, when
from arco.surface.cli.projects import At, read_project
from arco.surface.cli.surveying import surveyed

_CODE_CHARS = 12
_TRIED_SHOWN_MAX = 3


async def show_explanation(at: At, name: str, partitions: dict[str, str], *, json: bool) -> bool:
    survey = await surveyed(at)
    key = find(survey.project.assets, name)
    world = World(survey.project.graph, for_making(survey.snapshot, [key]))
    found = explain(world, key, partitions)
    tried: tuple[Tried, ...] = ()
    if found.stale:
        async with opened(read_project(at.folder).where(at.root, at.options)) as home:
            partitioning = world.partitioning(key)
            wanted = partitioning.select(partitions, survey.snapshot.at_ms)
            tried = await tried_in_vain(home, str(key), partitioning, wanted)
    survey.say_remarks()
    if json:
        print_json({**msgspec.to_builtins(found), "tried": msgspec.to_builtins(tried)})
        return True
    for line in described(found, tried, str(survey.project.folder)):
        say(line)
    return True


def described(one: Explanation, tried: Sequence[Tried] = (), folder: str = "") -> Iterator[str]:
    """The lines that people read. Files are named below the project's folder."""
    yield f"{one.asset}  {one.kind}, {one.where.removeprefix(f'{folder}/')}"
    if one.description:
        yield f"  {one.description.splitlines()[0]}"
    snapshot = "no snapshot yet" if one.snapshot_id is None else f"snapshot {one.snapshot_id}"
    yield f"  {one.published:,} of {counted(one.partitions, 'partition')} there, {snapshot}"
    if one.kind == "source":
        yield "  a table that others write: Servo reads it and never makes it"
    for fresh in one.fresh:
        yield from _fresh(fresh)
    for stale in one.stale:
        yield from _stale(stale)
    yield from _tried(tried)
    yield from _inputs(one)
    for held in one.held:
        yield f"held back  {held.text}"
        yield f"  {held.action} by run {held.run_id}: {', '.join(held.reasons) or 'no reason given'}"
        if held.branch:
            yield f"  kept on branch {held.branch} of the table"
    for note in one.notes:
        yield f"note  {note}"
    yield from _next(one)


def _fresh(fresh: Fresh) -> Iterator[str]:
    yield f"fresh  {fresh.text}"
    snapshot = "" if fresh.snapshot_id is None else f", snapshot {fresh.snapshot_id}"
    yield f"  since {when(fresh.published_ms)} UTC by run {fresh.run_id}{snapshot}, code {fresh.code[:_CODE_CHARS]}"
    if fresh.checks and not fresh.checks_failed:
        yield f"  {counted(len(fresh.checks), 'check')} passed then"
    if fresh.checks_failed:
        yield f"  checks that failed then: {', '.join(fresh.checks_failed)}"


def _stale(stale: Differs) -> Iterator[str]:
    yield f"stale  {stale.text}"
    yield f"  {stale.detail}{'; the version before can be read' if stale.published else ''}"


def _tried(tried: Sequence[Tried]) -> Iterator[str]:
    for one in tried[:_TRIED_SHOWN_MAX]:
        yield f"tried  {one.text}"
        ended = "" if one.ended_ms is None else f" at {when(one.ended_ms)} UTC"
        yield f"  {one.status}{ended} in run {one.run_id}: {one.said.removeprefix(f'{one.status}: ')}"
    if len(tried) > _TRIED_SHOWN_MAX:
        yield f"  and {counted(len(tried) - _TRIED_SHOWN_MAX, 'task')} more: arco runs show {tried[0].run_id}"


def _inputs(one: Explanation) -> Iterator[str]:
    if not one.inputs:
        return
    yield "reads"
    for given in one.inputs:
        where = "" if given.asset is None or given.asset.rpartition(".")[2] == given.parameter else f" = {given.asset}"
        snapshot = "" if given.snapshot_id is None else f", snapshot {given.snapshot_id}"
        versions = f", {counted(given.versions, 'version')}" if given.asset is not None else ""
        elsewhere = f", from {given.workspace}" if given.workspace else ""
        yield f"  {given.parameter}{where} ({given.kind}, {given.mapping}): {given.text}{versions}{snapshot}{elsewhere}"


def _next(one: Explanation) -> Iterator[str]:
    if one.kind == "source":
        return
    if one.stale and one.needs:
        yield f"Next: arco run +{one.asset} makes it and what it needs ({', '.join(one.needs)})"
    elif one.stale:
        yield f"Next: arco run {one.asset}"
    else:
        yield f"Nothing to do; arco run {one.asset} --force makes it all the same"

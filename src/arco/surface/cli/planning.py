"""`arco plan`: what would run and why, as a tree and as JSON."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

import typer

from arco.kernel.asset_key import AssetKey
from arco.servo.deploy.deploying import deployed
from arco.servo.partitions.partitioning import Partitioning
from arco.servo.partitions.sets import PartitionSet
from arco.servo.plan.document import Plan, PlannedTask
from arco.servo.plan.explanation import notes
from arco.servo.plan.planner import PlanRequest, plan
from arco.servo.plan.staleness import Reason, World
from arco.surface.cli.printing import counted, say, size
from arco.surface.cli.projects import At
from arco.surface.cli.surveying import Survey, surveyed

_SAID = {
    Reason.NEVER: "never published",
    Reason.CODE: "published by other code",
    Reason.INPUT: "an input has changed",
    Reason.UPSTREAM: "an input is made in this plan",
    Reason.QUARANTINED: "the last output was held back",
    Reason.DEADLINE: "older than it may be",
    Reason.FORCED: "asked for",
}
_NAMES_MAX = 8


async def show_plan(at: At, request: PlanRequest, *, why: bool, json: bool) -> bool:
    survey = await surveyed(at)
    made = plan(survey.project.graph, survey.snapshot, deployed(survey.deployment), request)
    survey.say_remarks()
    if json:
        typer.echo(made.encode().decode())
        return True
    for line in described(survey, made, request, why=why):
        say(line)
    return True


def described(survey: Survey, made: Plan, request: PlanRequest, *, why: bool) -> Iterator[str]:
    """The lines that people read."""
    world = World(survey.project.graph, survey.snapshot)
    tasks = made.spec.tasks
    by_asset: dict[str, list[PlannedTask]] = defaultdict(list)
    for task in tasks:
        by_asset[task.asset].append(task)
    idle = [name for name in made.spec.selection if name not in by_asset]
    if tasks:
        partitions = sum(task.partition_count for task in tasks)
        size_of_it = f"{counted(len(by_asset), 'asset')}, {counted(partitions, 'partition')}"
        yield f"This expands to {counted(len(tasks), 'task')}: {size_of_it}."
        yield from _stages(world, by_asset, why=why)
    if idle:
        more = f" and {len(idle) - _NAMES_MAX} more" if len(idle) > _NAMES_MAX else ""
        yield f"Up to date: {', '.join(idle[:_NAMES_MAX])}{more}."
    for one in dict.fromkeys(note for name in made.spec.selection for note in notes(world, AssetKey.parse(name))):
        yield f"Note: {one}."
    words = " ".join(request.words)
    if tasks:
        yield f"Next: arco run{f' {words}' if words else ''}{'' if why else '; arco plan --why says which facts differ'}"
    elif idle:
        yield "Nothing to do."


def _stages(world: World, by_asset: dict[str, list[PlannedTask]], *, why: bool) -> Iterator[str]:
    stages: dict[int, list[str]] = defaultdict(list)
    for name, tasks in by_asset.items():
        stages[tasks[0].stage].append(name)
    for stage in sorted(stages):
        yield f"stage {stage}"
        names = sorted(stages[stage])
        for name in names:
            last = name == names[-1]
            partitioning = world.partitioning(AssetKey.parse(name))
            head, *rest = _asset_lines(partitioning, name, by_asset[name], why=why)
            yield f"{'└─' if last else '├─'} {head}"
            yield from (f"{'  ' if last else '│ '}   {line}" for line in rest)


def _asset_lines(partitioning: Partitioning, name: str, tasks: list[PlannedTask], *, why: bool) -> Iterator[str]:
    whole = _union(partitioning, (task.partitions for task in tasks))
    yield f"{name}  {counted(len(tasks), 'task')}: {partitioning.text(whole)}"
    reasons: dict[tuple[str, str], list[list[dict[str, object]]]] = defaultdict(list)
    for task in tasks:
        for because in task.because:
            reasons[because.reason, because.detail if why else ""].append(because.partitions)
    for (reason, detail), documents in reasons.items():
        part = _union(partitioning, documents)
        said = detail or _SAID[Reason(reason)]
        yield said if part == whole and not why else f"{said}: {partitioning.text(part)}"
    rows = sum(task.estimate.rows for task in tasks)
    if rows:
        yield f"about {counted(rows, 'row')}, {size(sum(task.estimate.bytes for task in tasks))}"


def _union(partitioning: Partitioning, documents: Iterable[list[dict[str, object]]]) -> PartitionSet:
    whole = PartitionSet.nothing(len(partitioning.axes))
    for one in documents:
        whole |= partitioning.read(one)
    return whole

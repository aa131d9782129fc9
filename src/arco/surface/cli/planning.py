"""`arco plan`: what would run and why, as a tree and as JSON."""

import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator

import msgspec
import typer

from arco.kernel.asset_key import AssetKey
from arco.servo.deploy.deploying import deployed
from arco.servo.partitions.partitioning import Partitioning
from arco.servo.partitions.sets import PartitionSet
from arco.servo.plan.deferral import for_making
from arco.servo.plan.document import Plan, PlannedTask
from arco.servo.plan.explanation import notes, without_partitions
from arco.servo.plan.planner import Mode, PlanRequest, plan
from arco.servo.plan.staleness import Reason, World
from arco.servo.schedule.atomic_limits import refuse_too_many, sets_rows_aside, tables_of
from arco.surface.cli.printing import counted, say, size
from arco.surface.cli.projects import At
from arco.surface.cli.surveying import Survey, surveyed

_SAID = {
    Reason.NEVER: "never published",
    Reason.LAYOUT: "published in an earlier partitioning",
    Reason.CODE: "published by other code",
    Reason.INPUT: "an input has changed",
    Reason.UPSTREAM: "an input is made in this plan",
    Reason.QUARANTINED: "the last output was held back",
    Reason.DEADLINE: "older than it may be",
    Reason.FORCED: "asked for",
    Reason.WHOLE: "the table is replaced as a whole",
}
_NAMES_MAX = 8


async def show_plan(at: At, request: PlanRequest, *, why: bool, json: bool, atomic_tables: int | None = None) -> bool:
    """What would run. With `atomic_tables`, as one transaction over so many tables at most: a plan of more is refused."""
    survey = await surveyed(at)
    made = plan(survey.project.graph, survey.snapshot, deployed(survey.deployment), request)
    survey.say_remarks()
    if atomic_tables is not None:
        refuse_too_many(made, sets_rows_aside(survey.project.assets), atomic_tables)
    if json:
        # Nothing is written here, so there is no planning snapshot for the plan to name.
        typer.echo(Plan.of(msgspec.structs.replace(made.spec, snapshot="")).encode().decode())
        return True
    for line in described(survey, made, request, why=why, atomic=atomic_tables is not None):
        say(line)
    return True


def described(survey: Survey, made: Plan, request: PlanRequest, *, why: bool, atomic: bool = False) -> Iterator[str]:
    """The lines that people read."""
    chosen = [AssetKey.parse(name) for name in made.spec.selection]
    world = World(survey.project.graph, for_making(survey.snapshot, chosen))
    tasks = made.spec.tasks
    by_asset: dict[str, list[PlannedTask]] = defaultdict(list)
    for task in tasks:
        by_asset[task.asset].append(task)
    absent = without_partitions(world, made.spec)
    idle = [name for name in made.spec.selection if name not in by_asset and name not in absent]
    if tasks:
        partitions = sum(task.partition_count for task in tasks)
        size_of_it = f"{counted(len(by_asset), 'asset')}, {counted(partitions, 'partition')}"
        yield f"This expands to {counted(len(tasks), 'task')}: {size_of_it}."
        yield from _stages(world, by_asset, why=why)
        yield from _borrowed(tasks)
        if atomic:
            tables = tables_of(made, sets_rows_aside(survey.project.assets))
            yield f"All of it is published in one transaction over up to {counted(tables, 'table')}, or nothing."
    if idle:
        more = f" and {len(idle) - _NAMES_MAX} more" if len(idle) > _NAMES_MAX else ""
        yield f"Up to date: {', '.join(idle[:_NAMES_MAX])}{more}."
    yield from (f"{one}." for one in absent.values())
    for one in dict.fromkeys(note for name in made.spec.selection for note in notes(world, AssetKey.parse(name))):
        yield f"Note: {one}."
    if tasks:
        asked = f"{_asked(request)}{' --atomic' * atomic}"
        yield f"Next: arco run{asked}{'' if why else f'; arco plan{_asked(request)} --why says which facts differ'}"
    elif made.spec.selection:
        yield "Nothing to do."


def _borrowed(tasks: Iterable[PlannedTask]) -> Iterator[str]:
    """What is read from another workspace, since this one has not built it."""
    found = {(one.asset, one.workspace, one.snapshot_id) for task in tasks for one in task.inputs if one.workspace}
    for asset, workspace, snapshot_id in sorted(found, key=str):
        yield f"Reads {asset} from {workspace}, snapshot {snapshot_id}: it is not built here."


def _asked(request: PlanRequest) -> str:
    """The words and flags that ask for the same again."""
    modes = {Mode.STALE: [], Mode.FORCE: ["--force"], Mode.BACKFILL: ["--backfill"]}
    said = [*request.words, *modes[request.mode]]
    for flag, given in (("--partition", request.partitions), ("--param", request.parameters)):
        said += [word for name, value in given.items() for word in (flag, f"{name}={value}")]
    return f" {shlex.join(said)}" if said else ""


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

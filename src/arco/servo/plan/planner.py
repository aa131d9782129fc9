"""From a request to a plan. Pure: definitions, one planning snapshot and the request decide every byte of it.

Assets are visited upstream first. For each, what of the wanted partitions is stale (`staleness.py`) becomes tasks: one task
takes as many partitions as the asset allows (`tasks.py`). A task waits for the tasks of this plan that make what it reads;
what else it reads is pinned to the version that the planning snapshot says. Priorities come from deadlines: what must be fresh
soonest, and what that needs, goes first.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from arco.kernel.asset_key import AssetKey
from arco.kernel.errors import InvalidInput, TooLarge
from arco.kernel.ids import clip
from arco.kernel.limits import PLAN_TASKS_MAX
from arco.servo.partitions.sets import PartitionSet
from arco.servo.plan.deferral import for_making
from arco.servo.plan.document import PLAN_FORMAT, Plan, PlannedTask, PlanSpec
from arco.servo.plan.facts import PlanningSnapshot
from arco.servo.plan.parameters import overridden
from arco.servo.plan.staleness import Stale, World, stale
from arco.servo.plan.tasks import Deployed, Made, TaskMaker
from arco.servo.sdk.definitions import AssetDefinition, Mode
from arco.servo.sdk.graph import Graph
from arco.servo.sdk.selection import select

__all__ = ["Deployed", "Mode", "PlanRequest", "plan"]


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What somebody wants. `partitions` per dimension, as written on a command line.

    `due_by_ms`: what is fresh now, and not at that moment any more, is stale already. `partitions_per_task`: how many a task
    takes at most, where its asset does not say fewer.
    """

    words: tuple[str, ...] = ()
    partitions: Mapping[str, str] = field(default_factory=dict)
    mode: Mode = Mode.STALE
    parameters: Mapping[str, str] = field(default_factory=dict)
    tasks_max: int = PLAN_TASKS_MAX
    due_by_ms: int | None = None
    partitions_per_task: int | None = None

    def __post_init__(self) -> None:
        if self.partitions_per_task is not None and self.partitions_per_task < 1:
            raise InvalidInput(f"tasks of {self.partitions_per_task} partitions", hint="at least 1")


def plan(graph: Graph, snapshot: PlanningSnapshot, deployed: Deployed, request: PlanRequest) -> Plan:
    """The plan of a request. The same four give the same plan, whoever asks and whenever."""
    graph = overridden(graph, request.parameters)
    chosen = select(graph, request.words)
    if request.words and not chosen:
        raise InvalidInput(
            f"{clip(' '.join(request.words))}: there is nothing to make, it is all written by others",
            hint=f"name what reads it: {request.words[0].removesuffix('+')}+",
        )
    world = World(graph, for_making(snapshot, chosen))
    priorities = _priorities(graph, snapshot)
    made: dict[AssetKey, Made] = {}
    tasks: list[PlannedTask] = []
    for key in graph.order:
        if key in chosen:
            wanted = _wanted(world, graph.assets[key], request)
            found = _stale(world, key, wanted, request)
            anew = request.mode is Mode.FORCE
            maker = TaskMaker(world, key, deployed, priorities[key], made, request.partitions_per_task, anew=anew)
            mine, made[key] = maker.tasks(found)
            world.planned[key] = made[key].whole
            tasks.extend(mine)
            if len(tasks) > request.tasks_max:
                raise TooLarge(
                    f"this expands to more than {request.tasks_max} tasks",
                    hint="ask for fewer partitions, or let a task take more (partitions_per_task)",
                )
    _check_dimensions(world, chosen, request)
    return Plan.of(
        PlanSpec(
            format=PLAN_FORMAT,
            deployment=deployed.id,
            code_version=deployed.code_version,
            snapshot=snapshot.id,
            mode=request.mode.value,
            selection=tuple(sorted(str(key) for key in chosen)),
            partitions=dict(sorted(request.partitions.items())),
            tasks=tuple(tasks),
            parameters=dict(sorted(request.parameters.items())),
        )
    )


def _wanted(world: World, asset: AssetDefinition, request: PlanRequest) -> PartitionSet:
    partitioning = world.partitioning(asset.key)
    mine = {name: text for name, text in request.partitions.items() if name in partitioning.names}
    return partitioning.select(mine, world.snapshot.at_ms)


def _check_dimensions(world: World, chosen: set[AssetKey], request: PlanRequest) -> None:
    known = {name for key in chosen for name in world.partitioning(key).names}
    unknown = sorted(set(request.partitions) - known)
    if unknown:
        raise InvalidInput(
            f"no selected asset has a dimension {unknown[0]!r}", hint=f"there are {', '.join(sorted(known)) or 'none'}"
        )


def _stale(world: World, key: AssetKey, wanted: PartitionSet, request: PlanRequest) -> list[Stale]:
    if request.mode is Mode.BACKFILL:
        wanted -= world.present(key)
    return stale(world, key, wanted, force=request.mode is Mode.FORCE, due_by_ms=request.due_by_ms)


def _priorities(graph: Graph, snapshot: PlanningSnapshot) -> dict[AssetKey, int]:
    """The seconds that are left until an asset, or the most urgent thing that needs it, must be fresh. Smaller goes first.

    Less than nothing for what is late already. Facts from before deadlines were among them say how long it may be stale instead.
    """
    never = 10 * 365 * 24 * 3600
    urgent: dict[AssetKey, int] = {}
    for key in reversed(graph.order):
        own, until_ms = graph.assets[key].fresh_within_s, snapshot.of(key).fresh_until_ms
        if own is not None and until_ms is not None:
            own = (until_ms - snapshot.at_ms) // 1000
        below = min((urgent[reader] for reader in graph.readers[key]), default=never)
        urgent[key] = min(below, never if own is None else own)
    return urgent

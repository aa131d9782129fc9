"""From a request to a plan. Pure: definitions, one planning snapshot and the request decide every byte of it.

Assets are visited upstream first. For each, what of the wanted partitions is stale (`staleness.py`) becomes tasks: one task
takes as many partitions as the asset allows. A task waits for the tasks of this plan that make what it reads; everything else
it reads is pinned to the version that the planning snapshot says. Priorities come from deadlines: what must be fresh soonest,
and what that needs, goes first.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

from arco.kernel.asset_key import AssetKey
from arco.kernel.errors import InvalidInput, TooLarge
from arco.kernel.identity import task_id
from arco.kernel.ids import AssetId, CodeVersionId
from arco.kernel.limits import PLAN_TASKS_MAX
from arco.servo.partitions.sets import PartitionSet
from arco.servo.plan.document import PLAN_FORMAT, Because, Estimate, Plan, PlannedInput, PlannedTask, PlanSpec
from arco.servo.plan.facts import PlanningSnapshot
from arco.servo.plan.parameters import overridden
from arco.servo.plan.selection import select
from arco.servo.plan.staleness import Stale, World, stale
from arco.servo.sdk.definitions import AssetDefinition, InputDefinition, InputKind, WriteMode
from arco.servo.sdk.graph import Graph


class Mode(StrEnum):
    STALE = "stale"  # what is not as its inputs and its code are now
    FORCE = "force"  # everything that is asked for
    BACKFILL = "backfill"  # what was never published


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What somebody wants. `partitions` per dimension, as written on a command line."""

    words: tuple[str, ...] = ()
    partitions: Mapping[str, str] = field(default_factory=dict)
    mode: Mode = Mode.STALE
    parameters: Mapping[str, str] = field(default_factory=dict)
    tasks_max: int = PLAN_TASKS_MAX


@dataclass(frozen=True, slots=True)
class Deployed:
    """What the planner needs of a deployment: its names, and the identities that survive renames."""

    id: str
    code_version: str
    asset_ids: Mapping[AssetKey, str]


@dataclass(frozen=True, slots=True)
class _Made:
    """The tasks of one asset, each with what it makes, in the order of their first partitions."""

    whole: PartitionSet
    tasks: tuple[tuple[PartitionSet, str], ...]
    starts: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()

    @classmethod
    def of(cls, whole: PartitionSet, tasks: tuple[tuple[PartitionSet, str], ...]) -> Self:
        if not whole.axes:
            return cls(whole, tasks)
        starts = tuple(piece.ranges[0].first for piece, _ in tasks)
        return cls(whole, tasks, starts, tuple(piece.ranges[-1].end for piece, _ in tasks))

    def makers(self, needed: PartitionSet) -> tuple[str, ...]:
        """The tasks that make some of these partitions. Shares are cut along the first axis, so few have to be looked at."""
        if not needed.axes:
            return tuple(task for piece, task in self.tasks if piece & needed)
        found: set[str] = set()
        for one in needed.ranges:
            low, high = bisect_right(self.ends, one.first), bisect_left(self.starts, one.end)
            found.update(task for piece, task in self.tasks[low:high] if piece & needed)
        return tuple(sorted(found))


def plan(graph: Graph, snapshot: PlanningSnapshot, deployed: Deployed, request: PlanRequest) -> Plan:
    """The plan of a request. The same four give the same plan, whoever asks and whenever."""
    graph = overridden(graph, request.parameters)
    world = World(graph, snapshot)
    chosen = select(graph, request.words)
    priorities = _priorities(graph)
    made: dict[AssetKey, _Made] = {}
    tasks: list[PlannedTask] = []
    for key in graph.order:
        if key in chosen:
            wanted = _wanted(world, graph.assets[key], request)
            found = _stale(world, key, wanted, made, request.mode)
            mine = _Tasks(world, key, deployed, priorities[key]).build(found, made)
            made[key] = mine.made
            tasks.extend(mine.tasks)
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
        raise InvalidInput(f"no selected asset has a dimension {unknown[0]!r}", hint=f"there are {sorted(known) or 'none'}")


def _stale(world: World, key: AssetKey, wanted: PartitionSet, made: Mapping[AssetKey, _Made], mode: Mode) -> list[Stale]:
    if mode is Mode.BACKFILL:
        wanted -= world.present(key)
    planned = {upstream: one.whole for upstream, one in made.items()}
    return stale(world, key, wanted, planned, force=mode is Mode.FORCE)


def _priorities(graph: Graph) -> dict[AssetKey, int]:
    """The seconds within which an asset, or the most urgent thing that needs it, must be fresh. Smaller goes first."""
    never = 10 * 365 * 24 * 3600
    urgent: dict[AssetKey, int] = {}
    for key in reversed(graph.order):
        own = graph.assets[key].fresh_within_s
        below = min((urgent[reader] for reader in graph.readers[key]), default=never)
        urgent[key] = min(below, never if own is None else own)
    return urgent


class _Tasks:
    """The tasks of one asset."""

    def __init__(self, world: World, key: AssetKey, deployed: Deployed, priority: int) -> None:
        self._world = world
        self._key = key
        self._asset = world.graph.assets[key]
        self._partitioning = world.partitioning(key)
        self._deployed = deployed
        self._priority = priority
        self.tasks: list[PlannedTask] = []
        self.made = _Made(PartitionSet.nothing(len(self._partitioning.axes)), ())

    def build(self, found: list[Stale], made: Mapping[AssetKey, _Made]) -> "_Tasks":
        whole = PartitionSet.nothing(len(self._partitioning.axes))
        for one in found:
            whole |= one.partitions
        pieces: list[tuple[PartitionSet, str]] = []
        for piece in self._pieces(whole):
            task = self._task(piece, found, made)
            self.tasks.append(task)
            pieces.append((piece, task.id))
        self.made = _Made.of(whole, tuple(pieces))
        return self

    def _pieces(self, whole: PartitionSet) -> Iterator[PartitionSet]:
        """Shares of a set, each of at most as many partitions as a task takes."""
        limit = self._asset.partitions_per_task
        if not whole:
            return
        if limit is None or self._asset.write.mode is WriteMode.FULL or whole.count() <= limit:
            yield whole
            return
        for box in whole.boxes():
            yield from _shares(box, limit)

    def _task(self, piece: PartitionSet, found: list[Stale], made: Mapping[AssetKey, _Made]) -> PlannedTask:
        canonical = self._partitioning.canonical(piece)
        asset_id = AssetId(self._deployed.asset_ids[self._key])
        inputs = tuple(self._input(one, piece, made) for one in self._asset.inputs)
        depends_on = sorted({task for one in inputs for task in one.made_by})
        return PlannedTask(
            id=str(task_id(asset_id, canonical, CodeVersionId(self._deployed.code_version))),
            asset=str(self._key),
            partitions=self._partitioning.document(piece),
            partition_count=piece.count(),
            stage=self._world.graph.stage[self._key],
            priority=self._priority,
            depends_on=tuple(depends_on),
            inputs=inputs,
            because=self._because(piece, found),
            estimate=self._estimate(piece),
        )

    def _because(self, piece: PartitionSet, found: list[Stale]) -> tuple[Because, ...]:
        shared = ((one, one.partitions & piece) for one in found)
        return tuple(
            Because(reason=one.reason.value, detail=one.detail, partitions=self._partitioning.document(part))
            for one, part in shared
            if part
        )

    def _input(self, one: InputDefinition, piece: PartitionSet, made: Mapping[AssetKey, _Made]) -> PlannedInput:
        facts = self._world.snapshot.of(self._key)
        if one.kind is InputKind.FILES or one.asset is None:
            listed = facts.files.get(one.parameter)
            files = () if listed is None else listed.files
            version = "" if listed is None else listed.fingerprint
            return PlannedInput(
                parameter=one.parameter,
                kind=one.kind.value,
                asset=None,
                partitions=[],
                files=files,
                versions=[{"partitions": [], "version": version}],
            )
        upstream = self._world.partitioning(one.asset)
        needed = one.mapping.needed(piece, self._world.ends(one, self._key))
        table = self._world.snapshot.of(one.asset).table
        return PlannedInput(
            parameter=one.parameter,
            kind=one.kind.value,
            asset=str(one.asset),
            partitions=upstream.document(needed),
            snapshot_id=None if table is None else table.snapshot_id,
            since=self._since(one),
            made_by=made[one.asset].makers(needed) if one.asset in made else (),
            versions=self._world.versions(one.asset).within(needed).document(upstream),
        )

    def _since(self, one: InputDefinition) -> int | None:
        """Where changes begin: what the last publish read, if it was made by the code there is now."""
        made = self._world.snapshot.of(self._key).materializations
        if one.kind is not InputKind.CHANGES or not made or made[-1].code != self._asset.fingerprint:
            return None
        return made[-1].input_snapshots.get(one.parameter)

    def _estimate(self, piece: PartitionSet) -> Estimate:
        """As much for each partition as the last materializations had on average."""
        known = self._world.snapshot.of(self._key).materializations[-5:]
        counted = [(one, self._partitioning.read(one.partitions).count()) for one in known]
        partitions = sum(count for _, count in counted)
        if not partitions:
            return Estimate(partitions=piece.count())
        rows = sum(one.rows or 0 for one, _ in counted) * piece.count() // partitions
        size = sum(one.bytes or 0 for one, _ in counted) * piece.count() // partitions
        return Estimate(partitions=piece.count(), rows=rows, bytes=size)


def _shares(box: tuple[tuple[int, int], ...], limit: int) -> Iterator[PartitionSet]:
    """A box cut along its first axis, and along the next where one ordinal alone is too much."""
    (first, end), *rest = box
    beside = 1
    for low, high in rest:
        beside *= high - low
    if beside > limit and rest:
        for ordinal in range(first, end):
            for share in _shares(tuple(rest), limit):
                for bounds in share.boxes():
                    yield PartitionSet.box([(ordinal, ordinal + 1), *bounds])
        return
    step = max(1, limit // beside)
    for low in range(first, end, step):
        yield PartitionSet.box([(low, min(end, low + step)), *rest])

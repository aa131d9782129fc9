"""The tasks of one asset: what is stale of it, cut into shares, each with what it reads, whom it waits for, and why.

A plan may have a hundred thousand of them, so what is the same for all tasks of an asset is found once, and what differs is
looked up, not searched for.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from arco.kernel.asset_key import AssetKey
from arco.kernel.identity import task_ids
from arco.kernel.ids import AssetId, CodeVersionId
from arco.servo.partitions.places import Places
from arco.servo.partitions.sets import PartitionSet
from arco.servo.plan.document import Because, Estimate, PlannedInput, PlannedTask
from arco.servo.plan.staleness import Stale, World
from arco.servo.sdk.definitions import InputDefinition, InputKind, WriteMode

_ESTIMATED_FROM = 5


@dataclass(frozen=True, slots=True)
class Deployed:
    """What the planner needs of a deployment: its names, and the identities that survive renames."""

    id: str
    code_version: str
    asset_ids: Mapping[AssetKey, str]


@dataclass(frozen=True, slots=True)
class Made:
    """What a plan makes of one asset, and which task makes what."""

    whole: PartitionSet
    pieces: tuple[PartitionSet, ...]
    tasks: tuple[str, ...]
    places: Places | None
    owners: list[str]
    """The tasks in the order of the places: one for each range of its piece."""

    @classmethod
    def of(cls, whole: PartitionSet, pieces: tuple[PartitionSet, ...], tasks: tuple[str, ...]) -> Self:
        places = Places.of(pieces) if whole.axes else None
        return cls(whole, pieces, tasks, places, [] if places is None else [tasks[one] for one in places.owners])

    def makers(self, needed: PartitionSet) -> tuple[str, ...]:
        """The tasks that make some of these partitions."""
        if self.places is None:
            return self.tasks if needed else ()
        if self.whole.axes == 1:  # then what is near overlaps
            found = [task for one in needed.ranges for task in self.owners[self.places.span(one)]]
            return tuple(found) if len(found) < 2 else tuple(sorted(set(found)))
        near = self.places.near(needed)
        return tuple(sorted(self.tasks[one] for one in near if self.pieces[one] & needed))


class TaskMaker:
    """Makes the tasks of one asset. `anew`: of all rows, though it could go on from what the last publish read."""

    def __init__(
        self,
        world: World,
        key: AssetKey,
        deployed: Deployed,
        priority: int,
        made: Mapping[AssetKey, Made],
        partitions_max: int | None = None,
        *,
        anew: bool = False,
    ) -> None:
        self._world = world
        self._asset = world.graph.assets[key]
        limits = [one for one in (self._asset.partitions_per_task, partitions_max) if one is not None]
        self._partitions_max = min(limits, default=None)
        self._partitioning = world.partitioning(key)
        self._scribe = world.scribe(key)
        self._facts = world.snapshot.of(key)
        self._name = str(key)
        self._task_id = task_ids(AssetId(deployed.asset_ids[key]), CodeVersionId(deployed.code_version))
        self._stage = world.graph.stage[key]
        self._priority = priority
        self._inputs = [_Reader(world, key, one, made, anew=anew) for one in self._asset.inputs]
        self._resources = dict(self._asset.resources)
        self._average = self._averaged()

    def tasks(self, found: list[Stale]) -> tuple[list[PlannedTask], Made]:
        """The tasks that make what is stale, and what the assets downstream need to know of them."""
        axes = len(self._partitioning.axes)
        whole = PartitionSet.union(axes, (one.partitions for one in found))
        places = Places.of(one.partitions for one in found) if axes and len(found) > 2 else None
        pieces = tuple(self._pieces(whole))
        tasks = [
            self._task(piece, found if places is None else [found[one] for one in places.near(piece)]) for piece in pieces
        ]
        return tasks, Made.of(whole, pieces, tuple(task.id for task in tasks))

    def _pieces(self, whole: PartitionSet) -> Iterator[PartitionSet]:
        """Shares of a set, each of at most as many partitions as a task takes."""
        limit = self._partitions_max
        if not whole:
            return
        if limit is None or self._asset.write.mode is WriteMode.FULL or whole.count() <= limit:
            yield whole
            return
        for box in whole.boxes():
            yield from _shares(box, limit)

    def _task(self, piece: PartitionSet, found: list[Stale]) -> PlannedTask:
        partitions = self._scribe.document(piece)
        inputs = tuple([one.input(piece) for one in self._inputs])
        depends_on: tuple[str, ...] = inputs[0].made_by if inputs else ()
        if len(inputs) > 1:
            depends_on = tuple(sorted({task for one in inputs for task in one.made_by}))
        count = piece.count()
        return PlannedTask(
            id=str(self._task_id(self._scribe.spelled(piece))),
            asset=self._name,
            partitions=partitions,
            partition_count=count,
            stage=self._stage,
            priority=self._priority,
            depends_on=depends_on,
            inputs=inputs,
            because=self._because(piece, partitions, found),
            estimate=self._estimate(count),
            resources=self._resources,
        )

    def _because(self, piece: PartitionSet, partitions: list[dict[str, object]], found: list[Stale]) -> tuple[Because, ...]:
        said = []
        for one in found:
            # Where there is one reason it is that of every piece.
            part = piece & one.partitions if len(found) > 1 else piece
            if part:
                document = partitions if part is piece else self._scribe.document(part)
                said.append(Because(reason=one.reason.value, detail=one.detail, partitions=document))
        return tuple(said)

    def _averaged(self) -> tuple[int, int, int]:
        """Partitions, rows and bytes of the last materializations."""
        known = self._facts.materializations[-_ESTIMATED_FROM:]
        partitions = sum(self._partitioning.recorded(one.partitions).count() for one in known)
        return partitions, sum(one.rows or 0 for one in known), sum(one.bytes or 0 for one in known)

    def _estimate(self, count: int) -> Estimate:
        """As much for each partition as the last materializations had on average."""
        partitions, rows, size = self._average
        if not partitions:
            return Estimate(partitions=count)
        return Estimate(partitions=count, rows=rows * count // partitions, bytes=size * count // partitions)


class _Reader:
    """One input of an asset: what it is to a task."""

    def __init__(
        self, world: World, key: AssetKey, one: InputDefinition, made: Mapping[AssetKey, Made], *, anew: bool
    ) -> None:
        self._parameter, self._kind = one.parameter, one.kind.value
        self._world = world
        self._upstream = one.asset
        self._since: int | None = None
        self._fixed: PlannedInput | None = None
        facts = world.snapshot.of(key)
        if one.asset is None:
            listed = facts.files.get(one.parameter)
            self._fixed = PlannedInput(
                parameter=one.parameter,
                kind=one.kind.value,
                asset=None,
                partitions=[],
                files=() if listed is None else listed.files,
                versions=[{"partitions": [], "version": "" if listed is None else listed.fingerprint}],
            )
            return
        self._asset = str(one.asset)
        self._needs = world.needs(one, key)
        self._made = made.get(one.asset)
        table = world.snapshot.of(one.asset).table
        self._snapshot_id = None if table is None else table.snapshot_id
        self._workspace = "" if table is None else table.workspace
        last = facts.materializations[-1] if facts.materializations else None
        of_this_code = last is not None and last.code == world.graph.assets[key].fingerprint
        if one.kind is InputKind.CHANGES and last is not None and of_this_code and not anew:
            # Where changes begin: what the last publish read, if it was made by the code there is now.
            self._since = last.input_snapshots.get(one.parameter)

    def input(self, piece: PartitionSet) -> PlannedInput:
        """What a task of some partitions reads."""
        if self._fixed is not None:
            return self._fixed
        needed, partitions = self._needs.of(piece)
        return PlannedInput(
            parameter=self._parameter,
            kind=self._kind,
            asset=self._asset,
            partitions=partitions,
            snapshot_id=self._snapshot_id,
            since=self._since,
            made_by=() if self._made is None else self._made.makers(needed),
            versions=[] if self._upstream is None else self._world.versions_of(self._upstream, needed),
            workspace=self._workspace,
        )


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

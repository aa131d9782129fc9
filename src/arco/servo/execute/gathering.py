"""Gathering the facts that a plan stands on: what runs published, what the tables are now, which files and values there are.

The order matters. First the runs that are open, then the folded state and what is not folded yet (`read/planned_on.py`), then
the logs of those runs (`ledger/outstanding.py`), and the tables last. So a table is never older than what is said of it: a
publish that lands meanwhile is at worst read without being counted, and what read it is made again. Where not all is folded
as planning needs it, the ledger is read whole; also where a table was set back: the state has only the last publish of a range.

Nothing is written here but by `store_snapshot`. PyIceberg is loaded only for sources that lie outside the root or are large, and
Spark never.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec

from arco.catalog.catalog import Catalog
from arco.catalog.model import Kind
from arco.fold.heads import Heads
from arco.iceberg.metadata import TableMetadata
from arco.iceberg.shape import JsonObject
from arco.kernel.asset_key import AssetKey
from arco.kernel.errors import NoSuchTable, NotFound, OutcomeUnknown
from arco.kernel.ids import PlanningSnapshotId, RunId
from arco.kernel.limits import PLANNING_READS_MAX
from arco.ledger.execution_events import RUN_COMPLETED, RunCompleted
from arco.ledger.outstanding import Outstanding, outstanding, run_ids
from arco.read.planned_on import PlanningRows, rows_of_ledger, rows_of_state
from arco.servo.deploy.dynamic_values import DynamicDimensions
from arco.servo.deploy.manifest import Deployment
from arco.servo.execute.input_files import list_files
from arco.servo.execute.source_manifests import versions_in
from arco.servo.execute.sources import PartitionVersion
from arco.servo.execute.standing import content_id, content_snapshot, has_materialization, is_external, still_standing
from arco.servo.execute.table_partitions import versions_by_partition
from arco.servo.partitions.axes import ListAxis
from arco.servo.partitions.partitioning import Partitioning
from arco.servo.plan.facts import AssetFacts, FilesFact, Materialization, PlanningSnapshot, TableFact, decode_snapshot
from arco.servo.plan.freshness import deadlines
from arco.servo.plan.recorded import Recorded, on_top, recorded
from arco.servo.plan.staleness import World
from arco.servo.schedule.open_runs import OpenRunsNote
from arco.servo.sdk.definitions import AssetDefinition, InputKind
from arco.servo.sdk.project import Project
from arco.servo.sdk.tables import table_of
from arco.storage.keys import Domain, PlanningSnapshotKey
from arco.storage.port import Absent, Unknown
from arco.storage.readback import put_settled

T = TypeVar("T")
R = TypeVar("R")
_NO_OPTIONS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class _Table:
    """A table as the catalog has it."""

    metadata: TableMetadata
    location: str


async def gather(
    catalog: Catalog,
    project: Project,
    deployment: Deployment,
    *,
    now_ms: int | None = None,
    file_options: Mapping[str, str] = _NO_OPTIONS,
) -> PlanningSnapshot:
    """Everything that is known of a project's assets now. `file_options` are the options of the root's store."""
    parts = catalog.parts
    at_ms = parts.clock.now_ms() if now_ms is None else now_ms
    names = {one.asset_id: key for key, one in deployment.assets.items()}
    told, owed = await _told(catalog, names)
    dynamic = await _dynamic(catalog, project, deployment)
    tables = await _tables(catalog, project)
    made = _recorded(told, owed, tables, names)
    if told.state and _is_set_back(made, tables):
        told, owed = await _told_by_ledger(catalog)
        tables = await _tables(catalog, project)
        made = _recorded(told, owed, tables, names)
    facts: dict[str, AssetFacts] = {}
    sources = _Sources(catalog, at_ms, file_options)
    for key in sorted(project.assets):
        asset, table, known = project.assets[key], tables.get(key), made.get(str(key), Recorded())
        values = dynamic.get(key, {})
        found = AssetFacts(
            materializations=() if table is None else _standing(known, table),
            table=None if table is None else await _table_fact(asset, table, known, sources, values),
            files=_files(asset, project, file_options),
            dynamic=values,
            held=known.held,
            quarantined=known.quarantined,
        )
        if found != AssetFacts():
            facts[str(key)] = found
    return PlanningSnapshot.taken(at_ms, _with_deadlines(project, at_ms, facts), told.read_up_to, told.state)


def _with_deadlines(project: Project, at_ms: int, facts: dict[str, AssetFacts]) -> dict[str, AssetFacts]:
    """The same, with until when each asset is fresh: what priorities are made of."""
    found = deadlines(World(project.graph, PlanningSnapshot.taken(at_ms, facts)), project.assets)
    until = {str(one.asset): one.fresh_until_ms for one in found}
    return facts | {
        key: msgspec.structs.replace(facts.get(key, AssetFacts()), fresh_until_ms=until[key]) for key in sorted(until)
    }


async def store_snapshot(catalog: Catalog, snapshot: PlanningSnapshot) -> None:
    """Keep the facts of a plan that is going to be run or stored. Facts of one id are one object."""
    parts = catalog.parts
    key = str(PlanningSnapshotKey(parts.scope, PlanningSnapshotId(snapshot.id)))
    outcome = await put_settled(
        parts.tier1.store, key, snapshot.encode(), Absent(), clock=parts.clock, entropy=parts.entropy
    )
    if isinstance(outcome, Unknown):
        raise OutcomeUnknown(
            f"{key} may be written: {outcome.reason}", hint="try again: the same facts are the same object"
        )


async def load_snapshot(catalog: Catalog, snapshot_id: str) -> PlanningSnapshot:
    """The facts that a plan names."""
    key = str(PlanningSnapshotKey(catalog.parts.scope, PlanningSnapshotId(snapshot_id)))
    found = await catalog.parts.tier1.store.get(key)
    if found is None:
        raise NotFound(f"there is no planning snapshot {snapshot_id}", hint="plan again")
    return decode_snapshot(found.data, key)


# What runs did


async def _told(catalog: Catalog, names: Collection[str]) -> tuple[PlanningRows, Outstanding]:
    """What was told of some assets, by the state and what is not folded yet; and what runs have done beyond it."""
    parts = catalog.parts
    open_runs = await OpenRunsNote(parts.tier1.store, parts.scope, parts.clock, parts.entropy).read()
    told = await rows_of_state(_heads(catalog), names)
    if told is None:
        return await _told_by_ledger(catalog)
    return told, await _outstanding(catalog, [RunId(one.run) for one in open_runs])


async def _told_by_ledger(catalog: Catalog) -> tuple[PlanningRows, Outstanding]:
    """The same from the whole ledger, and from every run that it does not call completed."""
    runs = await run_ids(catalog.parts.tier1.store, catalog.parts.scope)
    told, events = await rows_of_ledger(_heads(catalog))
    completed = {RunCompleted.of(event).run_id for event in events if event.type == RUN_COMPLETED}
    return told, await _outstanding(catalog, [run for run in runs if run not in completed])


def _heads(catalog: Catalog) -> Heads:
    parts = catalog.parts
    return Heads(parts.tier1.store, parts.scope, parts.clock, parts.entropy)


async def _outstanding(catalog: Catalog, runs: Iterable[RunId]) -> Outstanding:
    parts = catalog.parts
    return await outstanding(parts.tier1.store, parts.scope, runs, (Domain.EXECUTION,), parts.clock, parts.entropy)


def _recorded(
    told: PlanningRows, owed: Outstanding, tables: Mapping[AssetKey, _Table], names: Mapping[str, str]
) -> dict[str, Recorded]:
    landed = (event for one in owed.maybe if _has_landed(one.materialization_id, tables) for event in one.events)
    unsent = PlanningRows()
    unsent.add((*owed.happened, *landed))
    return recorded({table: [*rows, *unsent.rows[table]] for table, rows in told.rows.items()}, names)


def _standing(known: Recorded, table: _Table) -> tuple[Materialization, ...]:
    """What still stands, without what lies under a later publish of the same range."""
    standing = still_standing((one.made for one in known.publishes.values()), table.metadata)
    ids = {one.id for one in standing}
    kept = on_top(one for one in known.publishes.values() if one.made.id in ids)
    return tuple(one for one in standing if one.id in kept)


def _is_set_back(made: Mapping[str, Recorded], tables: Mapping[AssetKey, _Table]) -> bool:
    """Whether a publish that lies on top is not in its table any more: then what lay under it counts, and the state forgot it."""
    for key, table in tables.items():
        publishes = made.get(str(key), Recorded()).publishes
        own = [one for one in publishes.values() if one.made.table_uuid in {"", table.metadata.table_uuid}]
        if on_top(own) - {one.id for one in still_standing((one.made for one in own), table.metadata)}:
            return True
    return False


def _has_landed(materialization_id: str, tables: Mapping[AssetKey, _Table]) -> bool:
    return any(has_materialization(one.metadata, materialization_id) for one in tables.values())


# What the tables are


async def _tables(catalog: Catalog, project: Project) -> dict[AssetKey, _Table]:
    names = (await catalog.parts.tier1.current()).names

    async def load(key: AssetKey) -> tuple[AssetKey, _Table] | None:
        levels, name = table_of(project.assets[key])
        if names.find(levels, name, Kind.TABLE) is None:
            return None
        try:
            _, base = await catalog.tables.load(levels, name)
        except NoSuchTable:
            return None  # dropped since
        return key, _Table(base.metadata, base.location)

    return dict(one for one in await _each(project.assets, load) if one is not None)


async def _table_fact(
    asset: AssetDefinition, table: _Table, known: Recorded, sources: "_Sources", values: Mapping[str, list[Any]]
) -> TableFact:
    metadata = table.metadata
    versions, note = None, ""
    if asset.is_source:
        versions, note = await sources.versions(asset.partitions.with_values(values), metadata)
    return TableFact(
        table_uuid=metadata.table_uuid,
        snapshot_id=metadata.current_snapshot_id,
        metadata_location=table.location,
        versions=versions,
        external_commit=not asset.is_source and is_external(metadata, {*known.publishes, *(one.id for one in known.held)}),
        schema_id=metadata.current_schema_id,
        schema=metadata.current_schema,
        note=note,
    )


@dataclass(frozen=True, slots=True)
class _Sources:
    """What the partitions of tables are that others write."""

    catalog: Catalog
    at_ms: int
    options: Mapping[str, str]

    async def versions(self, partitioning: Partitioning, table: TableMetadata) -> tuple[list[dict[str, Any]], str]:
        """The version of each partition; one for everything if it has no partitions, or others than declared."""
        last = content_snapshot(table)
        if last is None:
            return [], ""
        whole, why = partitioning.everything(self.at_ms), ""
        if partitioning.axes:
            found = versions_by_partition(partitioning, whole, await self._partitions(table, last))
            if not isinstance(found, str):
                return found
            why = f"{found}: any change of the table counts as one of every partition"
        return [{"partitions": partitioning.document(whole), "version": f"snapshot {content_id(table)}"}], why

    async def _partitions(self, table: TableMetadata, last: JsonObject) -> list[PartitionVersion]:
        """Through the store; a table that lies elsewhere through its own files."""
        parts = self.catalog.parts
        if parts.locations.key(str(last.get("manifest-list"))) is not None:
            return await versions_in(parts, table)
        # For few tables, and slow to load.
        from arco.servo.execute.file_access import file_io  # noqa: PLC0415
        from arco.servo.execute.source_files import partition_versions  # noqa: PLC0415

        return partition_versions(table, file_io(self.options))


# Files and values


def _files(asset: AssetDefinition, project: Project, options: Mapping[str, str]) -> dict[str, FilesFact]:
    return {
        one.parameter: list_files(one.path, project.folder, options)
        for one in asset.inputs
        if one.kind is InputKind.FILES and one.path is not None
    }


async def _dynamic(catalog: Catalog, project: Project, deployment: Deployment) -> dict[AssetKey, dict[str, list[Any]]]:
    parts = catalog.parts
    dimensions = DynamicDimensions(parts.tier1.store, parts.scope, parts.clock, parts.entropy)
    wanted = [
        (key, axis.name)
        for key, asset in project.assets.items()
        for axis in asset.partitions.axes
        if isinstance(axis, ListAxis) and axis.dynamic and str(key) in deployment.assets
    ]

    async def read(one: tuple[AssetKey, str]) -> tuple[AssetKey, str, list[Any]]:
        key, name = one
        return key, name, list(await dimensions.values(deployment.assets[str(key)].asset_id, name))

    found: dict[AssetKey, dict[str, list[Any]]] = {}
    for key, name, values in await _each(wanted, read):
        if values:
            found.setdefault(key, {})[name] = values
    return found


async def _each(items: Iterable[T], work: Callable[[T], Awaitable[R]]) -> list[R]:
    """The same for many, some side by side, in their order."""
    turns = asyncio.Semaphore(PLANNING_READS_MAX)

    async def one(item: T) -> R:
        async with turns:
            return await work(item)

    return list(await asyncio.gather(*(one(item) for item in items)))

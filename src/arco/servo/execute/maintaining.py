"""Maintenance as a run: what is worth to be rewritten of some tables, as tasks of a stored plan, driven like any other run.

A plan of this kind names no project: its tasks are built in, and an asset of it is the name of a table. It is keyed by what it
does: whoever asks for the same of tables that have not changed goes on with the run that was begun before. What must never enter:
how anything is shown.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from arco.catalog.catalog import Catalog
from arco.catalog.model import Entry, Levels
from arco.fold.spark_home import SparkHome
from arco.fold.spark_threads import SparkThreads
from arco.kernel.errors import ArcoError, CorruptObject, Fenced, InvalidInput, NoSuchTable, NotFound
from arco.kernel.fingerprint import fingerprint
from arco.kernel.ids import clip
from arco.ledger.run_entries import OnFailure, Trigger
from arco.ledger.run_state import RunState
from arco.servo.execute.file_access import file_io
from arco.servo.execute.rewriting import (
    FILES_MIN,
    Group,
    Rewriting,
    files_to_rewrite,
    manifests_to_merge,
    refuse_other_formats,
)
from arco.servo.execute.spark_maintenance import FILES, MANIFESTS, MaintenanceBench, MaintenanceExecutor
from arco.servo.execute.table_files import TableFiles
from arco.servo.execute.table_state import state_of
from arco.servo.plan.document import PLAN_FORMAT, Because, Estimate, Plan, PlannedInput, PlannedTask, PlanSpec
from arco.servo.schedule.announcing import Announcements, begun
from arco.servo.schedule.driver import Driver, Ground, Options
from arco.servo.schedule.executor import NoObserver, Observer
from arco.servo.schedule.settling import CatalogSettler
from arco.servo.schedule.starting import RunRequest, Started, start_run

MODE = "maintain"
_STARTS_MAX = 100
_LOOK = "run arco verify"
_REACH = "pass --allow-location for its folder, or the --root it was made under"


@dataclass(frozen=True, slots=True)
class Surveyed:
    """A table, and what is worth to be rewritten of it. `refused`: why nothing of it can be. `unread`: why nobody knows."""

    entry: Entry
    snapshot_id: int | None = None
    rewriting: Rewriting = field(default_factory=Rewriting)
    refused: str | None = None
    unread: ArcoError | None = None

    @property
    def name(self) -> str:
        return self.entry.full_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintenance:
    """The maintenance of some tables of one workspace. `options` are those of the root's store."""

    catalog: Catalog
    options: Mapping[str, str]
    by: str
    files_min: int = FILES_MIN
    parallelism: int = 2
    observer: Observer = field(default_factory=NoObserver)

    async def survey(self, entries: Sequence[Entry]) -> list[Surveyed]:
        """What there is to do. Nothing is written, and no Spark is started. No table keeps another from being looked at."""
        return [await self._surveyed(entry) for entry in entries]

    async def _surveyed(self, entry: Entry) -> Surveyed:
        try:
            return await self._looked_at(entry)
        except NoSuchTable as gone:
            return Surveyed(entry, refused=gone.one_line())
        except ArcoError as error:
            return Surveyed(entry, unread=error)
        except Exception as error:  # noqa: BLE001 - whatever files that are damaged or gone lead PyIceberg to
            why = f"its files cannot be read: {type(error).__name__}: {clip(str(error), 300)}"
            return Surveyed(entry, unread=CorruptObject(why, hint=_LOOK))

    async def _looked_at(self, entry: Entry) -> Surveyed:
        with _reaching():
            _, base = await self.catalog.tables.load(entry.namespace, entry.name)
            table = base.metadata
            manifests = await TableFiles(self.catalog.parts).manifests(state_of(table))
        try:
            refuse_other_formats(table)
            found = files_to_rewrite(table, file_io(self.options), self.files_min)
            chosen = manifests_to_merge(table, manifests, self.files_min)
        except InvalidInput as error:
            return Surveyed(entry, refused=error.one_line())
        return Surveyed(entry, table.current_snapshot_id, Rewriting(found.groups, chosen, found.left))

    async def start(self, surveyed: Sequence[Surveyed]) -> Started | None:
        """A run of what there is to do; None if there is nothing."""
        plan = _plan(surveyed)
        if not plan.spec.tasks:
            return None
        parts = self.catalog.parts
        for number in range(_STARTS_MAX):
            request = RunRequest(
                trigger=Trigger.MANUAL,
                who=self.by,
                max_parallelism=self.parallelism,
                on_failure=OnFailure.KEEP_GOING,
                idempotency_key=f"{MODE} {plan.fingerprint} {number}",
                about=MODE,
                announce=lambda run: begun(run, plan, MODE, Trigger.MANUAL.value, self.by),
            )
            try:
                started = await start_run(parts.tier1.store, parts.scope, plan, request, parts.clock, parts.entropy)
            except Fenced:
                continue  # it ended, and was purged
            if not started.log.state.is_finished:
                return started
        return None

    async def drive(self, started: Started, surveyed: Sequence[Surveyed], home: SparkHome) -> RunState:
        """Drive a run to its end. Cancelled, it stops what it started and writes down that it did."""
        parts = self.catalog.parts
        threads = SparkThreads(await home.session(), self.parallelism)
        tables: dict[str, tuple[Levels, str]] = {one.name: (one.entry.namespace, one.entry.name) for one in surveyed}
        bench = MaintenanceBench(catalog=self.catalog, io=file_io(self.options), threads=threads, tables=tables)
        ids = {one.name: one.entry.uuid for one in surveyed}
        appender = parts.appender()
        ground = Ground(parts.tier1.store, CatalogSettler(parts), appender, parts.clock, parts.entropy)
        announce = Announcements(started.log.run, started.plan, ids)
        options = Options(slots=self.parallelism, observer=self.observer, announce=announce)
        driver = Driver(ground, started.log, started.plan, MaintenanceExecutor(bench), options)
        driving = asyncio.ensure_future(driver.drive())
        try:
            return await asyncio.shield(driving)
        except asyncio.CancelledError:
            driver.cancel(self.by, "interrupted")
            return await driving
        finally:
            threads.close()
            await appender.close()


@contextmanager
def _reaching() -> Iterator[None]:
    """Metadata outside the root is read only where somebody allows it; what else is wrong is looked into by name."""
    try:
        yield
    except NoSuchTable:
        raise
    except InvalidInput as error:
        raise InvalidInput(error.message, hint=_REACH) from error
    except NotFound as error:
        raise NotFound(error.message, hint=_LOOK) from error


def _plan(surveyed: Sequence[Surveyed]) -> Plan:
    tasks = tuple(task for one in surveyed for task in _tasks(one))
    spec = PlanSpec(
        format=PLAN_FORMAT,
        deployment="",
        code_version=MODE,
        snapshot="",
        mode=MODE,
        selection=tuple(one.name for one in surveyed if not one.rewriting.is_empty),
        partitions={},
        tasks=tasks,
    )
    return Plan.of(spec)


def _tasks(one: Surveyed) -> list[PlannedTask]:
    """One task a share of the files, and then one for the manifests: rewriting files adds to them."""
    shares = [_task(one, FILES, 0, (), share) for share in one.rewriting.shares()]
    if not one.rewriting.manifests:
        return shares
    return [*shares, _task(one, MANIFESTS, 1, tuple(task.id for task in shares), ())]


def _task(one: Surveyed, kind: str, stage: int, depends_on: tuple[str, ...], groups: Sequence[Group]) -> PlannedTask:
    files = tuple(file.location for group in groups for file in group.files)
    paths = files or tuple(manifest.manifest_path for manifest in one.rewriting.manifests)
    reasons = tuple(dict.fromkeys(group.why for group in groups)) or (f"{len(paths)} small manifests",)
    return PlannedTask(
        id=f"task_{fingerprint('maintain', one.entry.uuid, kind, str(one.snapshot_id), *paths)[:16]}",
        asset=one.name,
        partitions=[],
        partition_count=max(1, len(groups)),
        stage=stage,
        priority=0,
        depends_on=depends_on,
        inputs=(
            PlannedInput(
                parameter=kind, kind=kind, asset=one.name, partitions=[], snapshot_id=one.snapshot_id, files=paths
            ),
        ),
        because=tuple(Because(reason=kind, detail=why, partitions=[]) for why in reasons),
        estimate=Estimate(
            partitions=len(groups),
            rows=sum(group.rows for group in groups),
            bytes=sum(group.size_bytes for group in groups),
        ),
    )

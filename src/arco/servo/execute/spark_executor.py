"""One attempt of one task, from its inputs to its commit.

    pin → compute → find the table → write → check → decide → stage → set rows aside → publish

In an atomic run `stage` is the end: what was set aside and the output wait in the run's log, and what is held back fails the run.
Everything before `stage` is invisible and repeatable; files of an attempt that ends here are left to upkeep. What is staged is
in the run's log before the commit is sent, with the key that it is sent with, so that anybody can settle it. A first commit
creates the table with its rows; an output that its gate holds back is committed to a branch of its own, and main stays as it is.

The code of an asset is run by whoever computes (`computing.py`), and never here: where tasks have processes of their own, this
one has the keys of the whole root. What must never enter: deciding what runs, running an asset's code, and any other way to
commit than the catalog's.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from arco.catalog.catalog import Catalog
from arco.iceberg.metadata import MAIN, TableMetadata
from arco.kernel.asset_key import AssetKey
from arco.kernel.errors import Conflict, Fenced, NotFound
from arco.ledger.failure_kinds import Category
from arco.ledger.materializations import INPUT_SNAPSHOTS, held_branch
from arco.ledger.run_entries import Failure, RowsAside, StagedCommit
from arco.ledger.run_state import RunState
from arco.quality.gates import decide
from arco.servo.deploy.schemas import RegisteredSchema
from arco.servo.execute.attempt_log import AttemptLog
from arco.servo.execute.computing import Assignment, Compute, Computed, Room, Rooms, Stored, TaskRefused
from arco.servo.execute.data_files import Written
from arco.servo.execute.outputs import Destination, Destinations
from arco.servo.execute.pinned import TableInput, pin
from arco.servo.execute.provenance import Made, checks_of, events, summary
from arco.servo.execute.publish import Publication, Publisher, published_before
from arco.servo.execute.replacing import replaces_all
from arco.servo.execute.snapshots import Append, AppendNext, Change
from arco.servo.execute.spark_failures import said_of
from arco.servo.execute.staging_together import StagingTogether, refused_together
from arco.servo.execute.standing import ancestors
from arco.servo.plan.document import Plan, PlannedInput, PlannedTask
from arco.servo.plan.staleness import World
from arco.servo.schedule.executor import Attempt, Commit, Done, Failed, Outcome, Output
from arco.servo.schedule.publish_keys import aside_of, snapshot_id
from arco.servo.schedule.staged_tables import TableMoved
from arco.servo.schedule.together import AGAIN
from arco.servo.sdk.definitions import AssetDefinition, InputDefinition, InputKind
from arco.servo.sdk.tables import TableName, quarantine_of, table_of

OPERATION = "publish"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What every attempt of a run works with."""

    catalog: Catalog
    compute: Compute
    world: World
    plan: Plan
    asset_ids: Mapping[str, str]
    schemas: Mapping[str, RegisteredSchema]
    state: Callable[[], RunState]
    elsewhere: Mapping[str, Catalog] = field(default_factory=dict)
    """Other workspaces that inputs are read from, by their warehouses. Nothing is written there."""

    def staged(self, table: TableName) -> Sequence[StagedCommit]:
        """What the run, if it is atomic, will do to a table."""
        return self.state().staged_commits.get(table, ())


class SparkExecutor:
    """Runs tasks of one run, on a Spark of whoever computes."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._destinations = Destinations(bench.catalog, bench.staged)
        self._publisher = Publisher(bench.catalog)
        self._tasks = {task.id: task for task in bench.plan.spec.tasks}

    async def run(self, task: PlannedTask, attempt: Attempt) -> Outcome:
        """One attempt. Whatever goes wrong is said in the words of `failures.py`."""
        log = AttemptLog(self._bench.catalog.parts, attempt.run, attempt.task, attempt.number)
        try:
            return await _Work(self._bench, self._destinations, self._publisher, self._tasks, task, attempt, log).go()
        except Fenced:
            raise
        except TableMoved as moved:
            return Failed(Failure(kind=Category.UPSTREAM.value, message=str(moved), hint=AGAIN, severity="warning"))
        except TaskRefused as refused:
            return Failed(refused.failure)
        except Exception as error:  # noqa: BLE001 - whatever the asset's code raises is how the attempt ended
            log.failed(error)
            return Failed(said_of(error))
        finally:
            await log.flush()


@dataclass(frozen=True, slots=True)
class _Ears:
    """What is told of an attempt, to its heartbeats and its log."""

    attempt: Attempt
    log: AttemptLog

    def progress(self, facts: Mapping[str, Any]) -> None:
        self.attempt.progress(facts)
        self.log.flush_soon()

    def say(self, text: str, level: str = "info") -> None:
        self.log.say(text, level)

    def listening(self) -> AbstractContextManager[None]:
        return self.log.listening()


@dataclass(slots=True)
class _Work:
    bench: Bench
    destinations: Destinations
    publisher: Publisher
    tasks: Mapping[str, PlannedTask]
    task: PlannedTask
    attempt: Attempt
    log: AttemptLog
    asset: AssetDefinition = field(init=False)
    started_ms: int = field(init=False)

    def __post_init__(self) -> None:
        self.asset = self.bench.world.graph.assets[AssetKey.parse(self.task.asset)]
        self.started_ms = self.bench.catalog.parts.clock.now_ms()

    async def go(self) -> Outcome:
        tables, files = await self._inputs()
        given, name = self._assignment(tables, files), table_of(self.asset)
        async with AsyncExitStack() as held:
            rooms = await self._rooms(given, held) if self.bench.compute.wants_rooms else None
            work = await held.enter_async_context(self.bench.compute.begun(given, rooms, _Ears(self.attempt, self.log)))
            done = await work.computed()
            if rooms is None:
                table = await held.enter_async_context(self.destinations.turn(name))
            else:
                table = still_there(rooms.output, await self.destinations.load(name), name)
            aside = await held.enter_async_context(self._aside_place(done, None if rooms is None else rooms.aside))
            place = await self.destinations.of(
                self.asset,
                name,
                table,
                done.schema,
                whole=replaces_all(self.asset, done.full_reads),
                declared=self.bench.schemas.get(str(self.asset.key)),
                identity=None if rooms is None else rooms.output.uuid,
            )
            stored = await work.stored(place.written, None if aside is None else aside.written)
            return await self._publish(tables, files, done, place, aside, stored)

    async def _rooms(self, given: Assignment, held: AsyncExitStack) -> Rooms:
        """Where the output will lie. Of tasks that would create one table the second begins when the first has done so: what
        it may write to is the place of its own table and no other."""
        name = table_of(self.asset)
        table = await held.enter_async_context(self.destinations.turn(name))
        output = self.destinations.room(name, table, dict(self.asset.write.properties))
        if not given.sets_rows_aside:
            return Rooms(output, None)
        beside = quarantine_of(self.asset)
        return Rooms(output, self.destinations.room(beside, await self.destinations.load(beside), {}))

    # Inputs

    async def _inputs(self) -> tuple[list[TableInput], list[tuple[InputDefinition, PlannedInput]]]:
        planned = {one.parameter: one for one in self.task.inputs}
        given = [(one, planned[one.parameter]) for one in self.asset.inputs]
        files = [(one, what) for one, what in given if one.kind is InputKind.FILES]
        tables = await asyncio.gather(*(self._table(*one) for one in given if one[0].kind is not InputKind.FILES))
        return list(tables), files

    def _assignment(self, tables: list[TableInput], files: list[tuple[InputDefinition, PlannedInput]]) -> Assignment:
        return Assignment(
            run=self.attempt.run,
            task=self.task,
            attempt=self.attempt.number,
            materialization_id=self.attempt.materialization_id,
            asset=self.asset,
            partitioning=self.bench.world.partitioning(self.asset.key),
            tables=tuple(tables),
            files=tuple(files),
            at_ms=self.bench.world.snapshot.at_ms,
        )

    async def _table(self, given: InputDefinition, planned: PlannedInput) -> TableInput:
        world, upstream = self.bench.world, given.asset
        assert upstream is not None  # noqa: S101 - only files have no asset
        partitioning = world.partitioning(upstream)
        lender = self.bench.elsewhere.get(planned.workspace)
        tables = self.destinations if lender is None else Destinations(lender)
        table = await tables.load(table_of(world.graph.assets[upstream]))
        pinned = pin(planned, partitioning, self.tasks, self.bench.state(), table)
        is_read = given.kind is not InputKind.CHECK and not world.graph.assets[upstream].is_source
        if is_read and table is not None and pinned.snapshot_id is None:
            # What was held back made the table. An output of no rows at all would be published as if these were all.
            raise NotFound(
                f"{self.asset.where}: {self.asset.key} reads {upstream}, of which nothing was ever published",
                hint=f"publish it first: arco run {upstream}; what is held back of it: arco quarantine list",
            )
        return TableInput(given, pinned, partitioning, table, planned.since)

    # Publishing

    @asynccontextmanager
    async def _aside_place(self, done: Computed, room: Room | None) -> AsyncIterator[Destination | None]:
        """Where rows are set aside, if any are. Several tasks may be the first to do so: they take turns here, too."""
        if done.aside_schema is None:
            yield None
            return
        name = quarantine_of(self.asset)
        async with self.destinations.turn(name) as table:
            identity = None if room is None else room.uuid
            if room is not None:
                still_there(room, table, name)
            yield await self.destinations.of(self.asset, name, table, done.aside_schema, plain=True, identity=identity)

    async def _publish(
        self,
        tables: list[TableInput],
        files: list[tuple[InputDefinition, PlannedInput]],
        done: Computed,
        place: Destination,
        aside: Destination | None,
        stored: Stored,
    ) -> Outcome:
        self.attempt.progress({"phase": "publishing", "rows": stored.new.rows})
        decision = decide(stored.results, self.asset.gate)
        branch = None if decision.effect.main_moves else held_branch(self.attempt.materialization_id)
        if isinstance(stored.change, AppendNext) and self._was_published_since(place.base, tables):
            return Failed(_published_since(str(self.asset.key)))
        made = self._made(tables, files, done, place, stored, decision, branch)
        if self.bench.state().run.is_atomic:
            return await self._staged_together(place, aside, stored, made)
        beside = None if aside is None else RowsAside(table_uuid=aside.base.table_uuid, snapshot_id=self._aside_snapshot())
        commit = Commit(OPERATION, table_uuid=place.base.table_uuid, snapshot_id=made.snapshot_id, aside=beside)
        ticket = await self.attempt.stage(replace(_output(stored, made), commit=commit))
        # After staging, under a key that whoever settles the attempt knows; before the output, or a death would lose these rows.
        if aside is not None and stored.aside is not None:
            await self.publisher.publish(self._aside_publication(aside, stored.aside, made, ticket.at_ms))
        one = self._publication(place, stored.everything, stored.change, made, branch or MAIN, at_ms=ticket.at_ms)
        published = await self.publisher.publish(one)
        return Done(published.snapshot_id)

    def _was_published_since(self, base: TableMetadata, tables: list[TableInput]) -> bool:
        """Whether the last publish did not end where the changes that were read here begin: another run was in between."""
        if published_before(base, self.attempt.materialization_id) is not None:
            return False  # by an attempt of this very task, and it is adopted
        said = (str((one.get("summary") or {}).get(INPUT_SNAPSHOTS, "")) for one in ancestors(base))
        last = next((json.loads(one) for one in said if one), None)
        read = {one.given.parameter: one.since for one in tables if one.given.kind is InputKind.CHANGES}
        return last is not None and any(last.get(parameter) != since for parameter, since in read.items())

    async def _staged_together(self, place: Destination, aside: Destination | None, stored: Stored, made: Made) -> Outcome:
        """In an atomic run nothing is committed, and nothing is held back beside what is: one refusal is one for all."""
        if not made.decision.effect.main_moves:
            return Failed(refused_together(made.decision, made.failed_checks), checks_of(made))
        publications = [self._publication(place, stored.everything, stored.change, made, MAIN)]
        if aside is not None and stored.aside is not None:
            publications.append(self._aside_publication(aside, stored.aside, made))

        def output(commits: tuple[StagedCommit, ...]) -> Output:
            return replace(_output(stored, made), commits=commits, snapshot_id=made.snapshot_id)

        staging = StagingTogether(self.destinations, self.publisher, self.bench.state)
        return await staging.stage(self.attempt, publications, output)

    def _publication(
        self,
        place: Destination,
        written: Written,
        change: Change,
        made: Made,
        ref: str,
        *,
        at_ms: int | None = None,
    ) -> Publication:
        levels, name = place.name
        return Publication(
            levels=levels,
            name=name,
            base=place.base,
            files=written.files,
            change=change,
            run_id=str(self.attempt.run),
            task_id=self.task.id,
            materialization_id=self.attempt.materialization_id,
            attempt=self.attempt.number,
            at_ms=made.now_ms if at_ms is None else at_ms,
            schema=place.schema,
            ref=ref,
            creates=place.creates,
            snapshot_id=made.snapshot_id,
            asset_id=made.asset_id,
            facts=summary(made),
        )

    def _aside_publication(self, place: Destination, rows: Written, made: Made, at_ms: int | None = None) -> Publication:
        """The rows that are set aside: published once for a task, whichever attempt does it, in a commit of their own."""
        one = self._publication(place, rows, Append(), made, MAIN, at_ms=at_ms)
        return replace(one, task_id=aside_of(self.task.id), snapshot_id=self._aside_snapshot(), asset_id=None)

    def _aside_snapshot(self) -> int:
        return snapshot_id(self.attempt.run, aside_of(self.task.id), self.attempt.number)

    def _made(
        self,
        tables: list[TableInput],
        files: list[tuple[InputDefinition, PlannedInput]],
        done: Computed,
        place: Destination,
        stored: Stored,
        decision: Any,
        branch: str | None,
    ) -> Made:
        read = [one for one in tables if one.given.kind is not InputKind.CHECK]
        versions = {one.given.parameter: one.pinned.versions.document(one.partitioning) for one in read}
        versions |= {given.parameter: planned.versions for given, planned in files}
        return Made(
            run_id=str(self.attempt.run),
            attempt=self.attempt.number,
            materialization_id=str(self.attempt.materialization_id),
            task=self.task,
            plan=self.bench.plan,
            asset=self.asset,
            asset_id=self.bench.asset_ids[str(self.asset.key)],
            table=place.written,
            written=stored.everything,
            rows=stored.new.rows,
            inputs=versions,
            input_snapshots={one.given.parameter: one.pinned.snapshot_id for one in read},
            input_workspaces={
                one.given.parameter: one.pinned.planned.workspace for one in read if one.pinned.planned.workspace
            },
            full_reads=dict(done.full_reads),
            results=stored.results,
            decision=decision,
            snapshot_id=snapshot_id(self.attempt.run, self.attempt.task, self.attempt.number),
            branch=branch,
            started_ms=self.started_ms,
            now_ms=self.bench.catalog.parts.clock.now_ms(),
            edges=self._edges(tables, files, done.external),
        )

    def _edges(
        self,
        tables: list[TableInput],
        files: list[tuple[InputDefinition, PlannedInput]],
        external: tuple[str, ...],
    ) -> list[dict[str, Any]]:
        """One edge an input: what was read, to make what."""
        ids = self.bench.asset_ids
        own = {"to": str(self.asset.key), "to_id": ids[str(self.asset.key)], "to_partitions": self.task.partitions}
        edges = [
            {
                "from": str(one.given.asset),
                "from_id": ids.get(str(one.given.asset)),
                "from_partitions": one.pinned.planned.partitions,
                "from_snapshot": one.pinned.snapshot_id,
                "kind": one.given.kind.value,
                **own,
            }
            for one in tables
        ]
        listed = [{"from": given.path, "kind": given.kind.value, **own} for given, _ in files]
        return [*edges, *listed, *({"from": path, "kind": "external", **own} for path in external)]


def still_there(room: Room, table: TableMetadata | None, name: TableName) -> TableMetadata | None:
    """The table as it is now, if it is the one that the room was given out for: keys are for no other, and an identity is for
    one creation."""
    was_there = room.table is not None
    if was_there != (table is not None) or (table is not None and table.table_uuid != room.uuid):
        raise Conflict(f"the table {name[1]} was {'replaced' if was_there else 'created'} while this attempt was computing")
    return table


def _published_since(asset: str) -> Failure:
    said = f"another run published {asset} since this one was planned: the same changes would be appended twice"
    return Failure(kind=Category.UPSTREAM.value, message=said, hint="plan again: arco run", severity="warning")


def _output(stored: Stored, made: Made) -> Output:
    return Output(
        action=made.decision.action,
        commit=None,
        written=_facts(stored),
        checks=tuple(one.document() for one in stored.results),
        decision=made.decision.describe(),
        events=events(made),
    )


def _facts(stored: Stored) -> dict[str, Any]:
    return {
        "rows": stored.new.rows,
        "bytes": stored.new.size_bytes,
        "files": len(stored.new.files),
        "partitions": len(stored.new.partitions),
        "rows_set_aside": 0 if stored.aside is None else stored.aside.rows,
    }

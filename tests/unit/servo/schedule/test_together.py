"""The publish of an atomic run: one transaction, sent by any driver, and nothing said of it before it is certain.

The catalog is the real one, in the simulator's calm world; the tasks are the simulator's.
"""

import pytest

from arco.catalog.catalog import Catalog
from arco.catalog.idempotency import RequestKey
from arco.catalog.manifest import Author
from arco.catalog.namespaces import create_namespace
from arco.iceberg import requests
from arco.kernel.errors import BrokenInvariant, InvalidInput, NoSuchTable, OutcomeUnknown, Unavailable
from arco.ledger.appender import Appender
from arco.ledger.receipts import Source
from arco.ledger.run_entries import PublishBegun, RunPublished, RunStatus, RunWithheld
from arco.quality.gates import Action
from arco.servo.schedule.atomic_limits import refuse_too_many
from arco.servo.schedule.catalog_together import CatalogTogether
from arco.servo.schedule.driver import Driver, Ground, Options
from arco.servo.schedule.interventions import request_cancel
from arco.servo.schedule.settling import CatalogSettler
from arco.servo.schedule.starting import RunRequest, open_run, start_run
from arco_sim.scenarios.atomic_runs_work import FIELD, StagingExecutor, snapshot_body
from arco_sim.scenarios.run_log_work import MADE, NAMESPACE, Job, announce, plan_of
from unit.servo.schedule.ground import SCOPE, Place
from unit.servo.schedule.test_driver import told

JOBS = [Job("a", (), Action.CONTINUE), Job("a", (), Action.CONTINUE), Job("c", (0, 1), Action.CONTINUE)]


class Committing(CatalogTogether):
    """The catalog's own, with what a test has happen around it."""

    before = after = None

    async def commit(self, key, commits):
        if self.before is not None:
            await self.before()
        await super().commit(key, commits)
        if self.after is not None:
            await self.after()


class Stage:
    """One atomic run on a catalog with the table `a`."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.env = place.env("stage")
        self.catalog = Catalog.open(self.env.store, "file:///lake", SCOPE, self.env.clock, self.env.entropy)
        self.seen = []

    async def begin(self, jobs=JOBS, **request):
        parts = self.catalog.parts
        await create_namespace(parts, NAMESPACE, {}, RequestKey("ns", "create", "0", durable=False), Author())
        body = requests.parse_create_table({"name": "a", "schema": {"type": "struct", "fields": [FIELD]}})
        await self.catalog.tables.create(NAMESPACE, body, RequestKey("a", "create", "0", durable=False), Source())
        env = self.env
        self.jobs = jobs
        asked = RunRequest(atomic=True, max_parallelism=2, **request)
        self.started = await start_run(env.store, SCOPE, plan_of(jobs), asked, env.clock, env.entropy)
        self.run = self.started.log.run

    def saw(self, entry, _state) -> None:
        self.seen.append(entry)

    def progressed(self, *_) -> None:
        return

    async def drive(self, name="one", *, before=None, after=None):
        """By a driver that knows nothing but the store."""
        env = self.place.env(name)
        catalog = Catalog.open(env.store, "file:///lake", SCOPE, env.clock, env.entropy)
        started = await open_run(env.store, SCOPE, self.run, env.clock, env.entropy)
        together = Committing(catalog, 10, Source())
        together.before, together.after = before, after
        appender = Appender(env.store, SCOPE, env.clock, env.entropy)
        ground = Ground(env.store, CatalogSettler(catalog.parts), appender, env.clock, env.entropy, together)
        executor = StagingExecutor(env, catalog, self.jobs, lambda: started.log.state, small=True)
        options = Options(observer=self, poll_s=2.0, announce=announce, seize=True)
        return await Driver(ground, started.log, started.plan, executor, options).drive()

    async def tasks_in(self, table: str) -> int:
        """How many tasks' snapshots are on main; -1 if there is no such table."""
        catalog = Catalog.open(self.env.store, "file:///lake", SCOPE, self.env.clock, self.env.entropy)
        try:
            found = (await catalog.tables.load(NAMESPACE, table))[1].metadata
        except NoSuchTable:
            return -1
        return sum("arco.task" in one["summary"] for one in found.snapshots)

    async def visible(self) -> tuple[int, int]:
        return await self.tasks_in("a"), await self.tasks_in("c")

    async def interfere(self) -> None:
        _, base = await self.catalog.tables.load(NAMESPACE, "a")
        body = requests.parse_commit_table(snapshot_body(base.metadata, 77, self.env.clock.now_ms(), {}))
        key = self.catalog.parts.markers.request_key(None, "updateTable", "")
        await self.catalog.table_commits.commit(NAMESPACE, "a", body, key, Source())

    async def cancel(self) -> None:
        opened = await open_run(self.env.store, SCOPE, self.run, self.env.clock, self.env.entropy)
        await request_cancel(opened.log, "me", "enough", self.env.clock, self.env.entropy)

    def decisions(self) -> list:
        return [type(one) for one in self.seen if isinstance(one, PublishBegun | RunPublished | RunWithheld)]


async def die() -> None:
    raise BrokenInvariant("dead")


@told
async def test_everything_is_visible_at_once_and_its_events_follow(place: Place) -> None:
    stage = Stage(place)
    await stage.begin()
    looked = []

    async def before() -> None:
        looked.extend([await stage.visible(), await place.ledger()])

    state = await stage.drive(before=before)
    assert looked == [(0, -1), []]
    assert await stage.visible() == (2, 1)
    assert state.run.status is RunStatus.SUCCEEDED
    assert stage.decisions() == [PublishBegun, RunPublished]
    assert len([event for event in await place.ledger() if event.type == MADE]) == 3
    assert not state.owed


@told
async def test_a_driver_that_dies_after_the_transaction_is_followed_by_one_that_finds_it(place: Place) -> None:
    stage = Stage(place)
    await stage.begin()

    with pytest.raises(BrokenInvariant):
        await stage.drive(after=die)
    assert await stage.visible() == (2, 1)
    state = await stage.drive("two")
    assert state.run.published
    assert await stage.visible() == (2, 1)
    assert stage.decisions().count(PublishBegun) == 1


@told
async def test_a_run_that_is_resumed_a_day_later_settles_the_old_transaction_and_sends_another(place: Place) -> None:
    stage = Stage(place)
    await stage.begin(jobs=[Job("a", (), Action.CONTINUE)])

    with pytest.raises(BrokenInvariant):
        await stage.drive(before=die)
    await stage.env.clock.sleep(8 * 3600.0)
    state = await stage.drive("two")
    assert state.run.published
    assert state.run.publishing.number == 2
    assert await stage.tasks_in("a") == 1


@told
async def test_a_transaction_that_landed_before_a_long_silence_is_found_and_not_sent_again(place: Place) -> None:
    stage = Stage(place)
    await stage.begin()
    with pytest.raises(BrokenInvariant):
        await stage.drive(after=die)
    await stage.env.clock.sleep(8 * 3600.0)
    state = await stage.drive("two")
    assert state.run.published
    assert state.run.publishing.number == 1
    assert await stage.visible() == (2, 1)


@told
async def test_somebody_who_was_quicker_keeps_all_of_it_from_being_seen(place: Place) -> None:
    stage = Stage(place)
    await stage.begin()
    state = await stage.drive(before=stage.interfere)
    assert state.run.status is RunStatus.FAILED
    assert "main" in state.run.withheld.reason
    assert "arco run --atomic" in state.run.withheld.hint
    assert set(place.statuses(state).values()) == {"cancelled"}
    assert await stage.visible() == (0, -1)
    assert not [event for event in await place.ledger() if event.type == MADE]


@told
async def test_a_cancellation_that_comes_before_the_transaction_wins(place: Place) -> None:
    stage = Stage(place)
    await stage.begin()

    with pytest.raises(BrokenInvariant):
        await stage.drive(before=die)
    await stage.cancel()
    state = await stage.drive("two")
    assert state.run.status is RunStatus.CANCELLED
    assert await stage.visible() == (0, -1)


@told
async def test_a_cancellation_that_comes_after_the_transaction_comes_too_late(place: Place) -> None:
    stage = Stage(place)
    await stage.begin()

    with pytest.raises(BrokenInvariant):
        await stage.drive(after=die)
    await stage.cancel()
    state = await stage.drive("two")
    assert state.run.status is RunStatus.SUCCEEDED
    assert await stage.visible() == (2, 1)


@told
async def test_a_transaction_of_which_nobody_knows_is_sent_again_under_its_key(place: Place) -> None:
    stage = Stage(place)
    await stage.begin()
    troubles = [OutcomeUnknown("silence"), Unavailable("no answer")]

    async def trouble() -> None:
        if troubles:
            raise troubles.pop()

    state = await stage.drive(after=trouble)
    assert state.run.published
    assert stage.decisions() == [PublishBegun, RunPublished]
    assert await stage.visible() == (2, 1)


@told
async def test_a_task_that_fails_leaves_nothing(place: Place) -> None:
    stage = Stage(place)
    await stage.begin(jobs=[JOBS[0], Job("b", (), Action.BLOCK_DOWNSTREAM), Job("c", (0,), Action.CONTINUE)])
    state = await stage.drive()
    assert state.run.status is RunStatus.FAILED
    assert stage.decisions() == []
    assert await stage.visible() == (0, -1)


def test_more_tables_than_a_transaction_has_are_refused_with_the_way_out() -> None:
    plan = plan_of([Job(f"t{n}", (), Action.CONTINUE) for n in range(8)])
    assets = [task.asset for task in plan.spec.tasks]
    refuse_too_many(plan, assets[:2], 10)
    with pytest.raises(InvalidInput, match="up to 11 tables in one transaction, more than 10") as refused:
        refuse_too_many(plan, assets[:3], 10)
    assert "--transaction-tables 11" in refused.value.hint


def test_more_tasks_than_a_transaction_has_changes_are_refused() -> None:
    plan = plan_of([Job("t", (), Action.CONTINUE) for _ in range(501)])
    with pytest.raises(InvalidInput, match="501 tasks, more than 500"):
        refuse_too_many(plan, [], 10_000)

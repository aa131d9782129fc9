"""Versions of partitions that are kept hold their snapshots, whatever the table says of its snapshots."""

from arco.kernel.entropy import SeededEntropy
from arco.kernel.ids import UlidSource
from arco.ledger.appender import Appender
from arco.ledger.execution_events import MATERIALIZATION_COMPLETED, MaterializationCompleted
from arco.ledger.materializations import MATERIALIZATION
from arco.ledger.payloads import derived_event_id
from arco.storage.keys import Domain
from arco.storage.port import Always
from unit.catalog.ground import SCOPE, story
from unit.upkeep.ground import DAY_S, HOUR_S, UpkeepGround
from unit.upkeep.table_ground import Table, maintained_table

ASSET, ASSET_ID = "shop.orders", "01JZ0000000000000000000000"
NO_PARTITION: list[dict] = [{}]


class Runs:
    """Publishes of a table, each with the event that its run tells."""

    def __init__(self, ground: UpkeepGround, table: Table) -> None:
        self._ground = ground
        self._table = table
        self._ulids = UlidSource(ground.clock, SeededEntropy("runs"))

    async def publish(self, snapshot_id: int, *, told: bool = True, operation: str = "overwrite", day: str = "") -> None:
        made = self._ulids.next()
        update = await self._table.written(await self._table.metadata(), snapshot_id, None, operation=operation)
        update["snapshot"]["summary"][MATERIALIZATION] = made
        main = {"action": "set-snapshot-ref", "ref-name": "main", "snapshot-id": snapshot_id, "type": "branch"}
        current = (await self._table.metadata()).current_snapshot_id
        if current is not None:
            update["snapshot"]["parent-snapshot-id"] = current
        await self._table.update(update, main)
        if told:
            await self.tell(made, snapshot_id, day)

    async def hold(self, snapshot_id: int) -> str:
        """An output that its checks held back: on a branch, beside main."""
        made = self._ulids.next()
        main = (await self._table.metadata()).current_snapshot_id
        update = await self._table.written(await self._table.metadata(), snapshot_id, main)
        update["snapshot"]["summary"][MATERIALIZATION] = made
        branch = {"action": "set-snapshot-ref", "ref-name": f"held-{made}", "snapshot-id": snapshot_id, "type": "branch"}
        await self._table.update(update, branch)
        return made

    async def tell(self, made: str, snapshot_id: int, day: str = "") -> None:
        now_ms = self._ground.clock.now_ms()
        payload = MaterializationCompleted(
            materialization_id=made,
            run_id=made,
            task_id="task_0000000000000001",
            attempt=1,
            asset=ASSET,
            asset_id=ASSET_ID,
            table_uuid=await self._table.uuid(),
            partitions=[{"date": {"dates": [[day, day]]}}] if day else NO_PARTITION,
            grain={"date": "date"} if day else {},
            code="c",
            code_version="v",
            plan_fingerprint="p",
            inputs={},
            input_snapshots={},
            snapshot_id=snapshot_id,
            rows=1,
            bytes=1,
            files=1,
            schema_id=0,
            started_ms=now_ms,
            published_ms=now_ms,
            counts=[],
            checks_failed=(),
            mode="replace",
            sequence_number=snapshot_id,
        )
        await self._append(payload, MATERIALIZATION_COMPLETED, made)

    async def _append(self, payload, kind, made: str) -> None:
        event_id = derived_event_id(self._ground.clock.now_ms(), made, kind)
        draft = payload.draft(kind, event_id, subject=ASSET, run_id=made)
        appender = Appender(self._ground.store, SCOPE, self._ground.clock, SeededEntropy(f"appender {made}"))
        await appender.append(Domain.EXECUTION, [draft])
        await appender.close()


async def published_table(ground: UpkeepGround) -> tuple[Table, Runs]:
    table = await maintained_table(ground, history_expire_max__snapshot__age__ms=str(HOUR_S * 1000))
    return table, Runs(ground, table)


async def ids(table: Table) -> set[int]:
    return {one["snapshot-id"] for one in (await table.metadata()).snapshots}


@story
async def test_the_newest_two_versions_of_a_partition_are_kept_however_old_and_say_what_they_hold():
    ground = UpkeepGround()
    table, runs = await published_table(ground)
    for number in (1, 2, 3, 4):
        await runs.publish(number)
        ground.later(HOUR_S)
    ground.later(30 * DAY_S)
    report = (await ground.upkeep("snapshots"))["snapshots"]
    assert await ids(table) == {3, 4}
    assert report.notes == ("snapshot 3 of db.a stays: it holds a version that is kept, of shop.orders (30 days old)",)


@story
async def test_versions_of_the_last_week_are_kept():
    ground = UpkeepGround()
    table, runs = await published_table(ground)
    for number in range(1, 11):
        await runs.publish(number)
        ground.later(DAY_S)
    ground.later(HOUR_S)
    await ground.upkeep("snapshots")
    assert await ids(table) == {5, 6, 7, 8, 9, 10}, "the fourth is a week and an hour old"


@story
async def test_no_more_than_a_hundred_are_kept_but_for_those_of_the_last_day():
    ground = UpkeepGround()
    table, runs = await published_table(ground)
    for number in range(1, 106):
        await runs.publish(number)
    ground.later(2 * HOUR_S)
    await ground.upkeep("snapshots")
    assert await ids(table) == set(range(1, 106)), "the grace"
    ground.later(DAY_S)
    await ground.upkeep("snapshots")
    assert await ids(table) == set(range(6, 106))


@story
async def test_a_snapshot_that_the_state_does_not_know_of_stays():
    ground = UpkeepGround()
    table, runs = await published_table(ground)
    await runs.publish(1, told=False)
    await runs.publish(2)
    await runs.publish(3)
    ground.later(30 * DAY_S)
    report = (await ground.upkeep("snapshots"))["snapshots"]
    assert await ids(table) == {1, 2, 3}
    assert report.notes[0].endswith("a run published it, and the state does not know of it yet")


@story
async def test_what_only_rewrote_files_holds_no_version():
    ground = UpkeepGround()
    table, runs = await published_table(ground)
    await runs.publish(1)
    await runs.publish(2, told=False, operation="replace")
    await runs.publish(3, told=False, operation="replace")
    ground.later(30 * DAY_S)
    await ground.upkeep("snapshots")
    assert await ids(table) == {1, 3}


@story
async def test_nothing_expires_while_the_state_cannot_be_read():
    ground = UpkeepGround()
    table, runs = await published_table(ground)
    for number in (1, 2, 3, 4):
        await runs.publish(number)
    ground.later(30 * DAY_S)
    await ground.store.put("t/w/_catalog/manifests/root.manifest.json", b"{}", Always())
    report = (await ground.upkeep("snapshots"))["snapshots"]
    assert (report.changed, len(report.trouble)) == (0, 1)
    assert await ids(table) == {1, 2, 3, 4}


@story
async def test_a_branch_of_an_output_that_was_held_back_stays_until_somebody_decides():
    """A release and a discard take it away by themselves; a branch of somebody else that is called alike is nobody's output."""
    ground = UpkeepGround()
    table, runs = await published_table(ground)
    await table.set(history_expire_max__ref__age__ms=str(DAY_S * 1000))
    await runs.publish(1)
    made = await runs.hold(2)
    await table.publish(3, ref="held-back")
    ground.later(30 * DAY_S)
    dry = (await ground.upkeep("snapshots", dry_run=True))["snapshots"]
    report = (await ground.upkeep("snapshots"))["snapshots"]
    assert set((await table.metadata()).refs) == {"main", f"held-{made}"}
    assert await ids(table) == {1, 2}
    said = (
        f"'held-{made}' of db.a stays: its output was held back, and nobody has decided about it; run arco quarantine list"
    )
    assert said in dry.notes
    assert report.notes == (said,)


@story
async def test_a_table_of_clients_expires_without_the_state():
    """No run published anything of it, and its own history says so."""
    ground = UpkeepGround()
    table, _ = await published_table(ground)
    await table.publish(1)
    await table.publish(2)
    await ground.store.put("t/w/_catalog/manifests/root.manifest.json", b"{}", Always())
    ground.later(DAY_S)
    await ground.upkeep("snapshots")
    assert await ids(table) == {2}

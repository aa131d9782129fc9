"""What happens in the stored lakes: one of everything that projects, runs, the ledger and the fold write.

A project is deployed twice, a run publishes and is folded, another dies before the ledger hears of it, a third is closed. The
clock is moved by hand and the randomness is seeded. Spark is not here: files of state have the bytes that its tasks write, by
the same encoder. `make_lake.py` keeps what the story leaves; the tests tell it again, as those of `story.py` do.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from arco import asset, daily, dynamic
from arco.catalog.catalog import Catalog
from arco.catalog.manifest import Author
from arco.catalog.namespaces import create_namespace
from arco.fold.archiving import copy_aside, movable
from arco.fold.folding import ALL_HEADS, Folding, Settings
from arco.fold.heads import Heads
from arco.fold.manifests import Caps
from arco.fold.notifying import notify
from arco.fold.passes import fold_pass
from arco.fold.receipt_events import ReceiptEvents
from arco.iceberg import requests
from arco.kernel.clock import Clock
from arco.kernel.entropy import Entropy, SeededEntropy
from arco.kernel.ids import MaterializationId, TableUuid, UlidSource
from arco.kernel.scope import Scope
from arco.ledger import execution_events, lineage_events, quality_events
from arco.ledger.appender import Appender
from arco.ledger.drafts import Draft
from arco.ledger.envelope import EventType
from arco.ledger.payloads import Payload
from arco.ledger.receipts import Source
from arco.ledger.run_entries import (
    EventsAppended,
    OutputStaged,
    RunFinished,
    RunStatus,
    TaskClaimed,
    TaskPublished,
    TaskStarted,
)
from arco.quality.checks import Severity
from arco.quality.results import CheckResult
from arco.servo.deploy.deploying import Deployments, deployed
from arco.servo.deploy.dynamic_values import DynamicDimensions
from arco.servo.deploy.manifest import Deployment
from arco.servo.execute.gathering import gather, store_snapshot
from arco.servo.plan.document import Plan, PlannedTask
from arco.servo.plan.planner import PlanRequest, plan
from arco.servo.schedule.claims import Claims
from arco.servo.schedule.outbox import deliver
from arco.servo.schedule.starting import RunRequest, Started, start_run
from arco.servo.sdk.project import Project, assembled
from arco.storage.keys import Domain, Head
from arco.storage.port import ObjectStore
from fixtures.state.arrow_work import ArrowWork
from tests.compat.story import BASE_URI, SCOPE, Mortal, append_body, table_body
from tests.stand_ins.hand_clock import HandClock

SHOP = ("shop",)
RUN_KEY = "the nightly run"


class Known(msgspec.Struct, frozen=True):
    """What people remember of a lake: when it was left, and the ids of what they saw there."""

    at_ms: int
    deployments: list[str]
    runs: dict[str, str]
    snapshots: list[str]
    planning_snapshot: str


@dataclass(frozen=True, slots=True)
class ToldLake:
    objects: dict[str, bytes]
    known: Known


def shop(*, described: bool) -> Project:
    """The project as it is deployed first, and a little later."""

    def orders() -> object: ...

    def prices() -> object: ...

    made = asset(
        name="orders",
        partitions=[daily("date", start="2024-12-01", end="2024-12-05")],
        description="What was bought, line by line" if described else "",
        tags=["gold"] if described else [],
        owners=["ann@example.com"],
    )(orders)
    beside = asset(name="prices", partitions=[dynamic("market")])(prices)
    return assembled([made.written, beside.written], folder=Path(__file__).parent, name="shop", namespace="shop")


class _Story:
    def __init__(self) -> None:
        self.clock = HandClock()
        self.entropy = SeededEntropy("a lake to keep")
        self.store = Mortal(self.clock)
        self.ulids = UlidSource(self.clock, self.entropy)
        self.catalog = Catalog.open(self.store, BASE_URI, SCOPE, self.clock, self.entropy)
        self.deployments = Deployments(self.store, SCOPE, self.clock, self.entropy)
        self.ledger = Appender(self.store, SCOPE, self.clock, self.entropy)
        self.runs: dict[str, str] = {}
        self.snapshots: list[str] = []

    def later(self, seconds: int = 1) -> None:
        self.clock.at_ms += seconds * 1000

    def new_id(self) -> str:
        self.later()
        return self.ulids.next()

    # Tables

    async def table(self) -> TableUuid:
        """A table with a commit, whose receipts the fold announces."""
        parts = self.catalog.parts
        await create_namespace(parts, SHOP, {}, self._plain(), Author("loader", None))
        request = requests.parse_create_table(table_body("orders", 2))
        made = (await self.catalog.tables.create(SHOP, request, self._plain(), Source(principal="loader")))[0]
        body = requests.parse_commit_table(append_body(self.clock.at_ms))
        await self.catalog.table_commits.commit(SHOP, "orders", body, self._plain(), Source(principal="loader"))
        await parts.afterwards.settle()
        return TableUuid(made.table_uuid)

    def _plain(self) -> Any:
        self.later()
        return self.catalog.parts.markers.request_key(None, "story", "")

    # Runs

    async def planned(self, deployment: Deployment) -> tuple[Plan, str]:
        self.later()
        project = shop(described=True)
        facts = await gather(self.catalog, project, deployment)
        await store_snapshot(self.catalog, facts)
        asked = PlanRequest(words=("shop.orders",), partitions={"date": "2024-12-01..2024-12-02"})
        return plan(project.graph, facts, deployed(deployment), asked), facts.id

    async def started(self, name: str, plan: Plan, **how: Any) -> Started:
        self.later()
        begun = await start_run(self.store, SCOPE, plan, RunRequest(who="ann", **how), self.clock, self.entropy)
        self.runs[name] = str(begun.log.run)
        return begun

    async def published(self, begun: Started, task: PlannedTask, events: Iterable[Draft]) -> None:
        """A task from its claim to its publish; what it says is owed to the ledger then."""
        self.later()
        claims = Claims(self.store, SCOPE, begun.log.run, "worker-1", self.clock, self.entropy)
        await claims.beat(task.id, 1, 30, {"rows": 3})
        made = MaterializationId(self.new_id())
        for entry in (
            TaskClaimed(task=task.id, attempt=1, worker="worker-1", lease_s=30),
            TaskStarted(task=task.id, attempt=1),
            OutputStaged(
                task=task.id, attempt=1, at_ms=self.clock.at_ms, materialization_id=str(made), action="continue",
                events=tuple(events),
            ),
            TaskPublished(task=task.id, attempt=1, materialization_id=str(made)),
        ):  # fmt: skip
            self.later()
            assert await begun.log.append([entry])

    async def finished(self, begun: Started) -> None:
        """A run that ends, and tells the ledger everything that it owes."""
        self.later()
        assert await begun.log.append([RunFinished(status=RunStatus.SUCCEEDED, events=(self.ended(begun),))])
        through = await deliver(self.ledger, begun.log.state)
        assert await begun.log.append([EventsAppended(through=through)])

    def ended(self, begun: Started) -> Draft:
        run_id = str(begun.log.run)
        body = execution_events.RunCompleted(
            run_id=run_id, state="succeeded", tasks={"succeeded": 1}, started_ms=self.clock.at_ms, ended_ms=self.clock.at_ms
        )
        return self.draft(execution_events.RUN_COMPLETED, body, run_id)

    def draft(self, kind: EventType, body: Payload, run_id: str) -> Draft:
        return body.draft(kind, self.new_id(), subject="shop.orders", run_id=run_id)

    def said_by(self, begun: Started, deployment: Deployment, task: PlannedTask, table: str) -> list[Draft]:
        """What a task has to say of its publish: what was made, checked and read."""
        run_id, made = str(begun.log.run), self.new_id()
        asset_id = deployment.assets["shop.orders"].asset_id
        about = {"run_id": run_id, "task_id": task.id, "materialization_id": made}
        named = {"asset": "shop.orders", "asset_id": asset_id, "partitions": task.partitions}
        created = execution_events.RunCreated(
            run_id=run_id, project="shop", deployment=deployment.id, code_version=deployment.code_version,
            trigger="manual", triggered_by="ann", tasks=1,
        )  # fmt: skip
        publish = execution_events.MaterializationCompleted(
            **about, **named, attempt=1, table_uuid=table, code="code", code_version=deployment.code_version,
            plan_fingerprint=begun.plan.fingerprint, inputs={}, input_snapshots={}, snapshot_id=7, rows=3, bytes=300, files=2,
            schema_id=0, started_ms=self.clock.at_ms, published_ms=self.clock.at_ms, grain={"date": "daily"},
            sequence_number=1, counts=[
                {"partition": {"date": f"2024-12-0{rows}"}, "rows": rows, "bytes": rows * 100, "files": 1} for rows in (1, 2)
            ],
        )  # fmt: skip
        result = CheckResult(check="not_null(id)", kind="not_null", severity=Severity.ERROR, passed=True)
        check = quality_events.CheckExecuted(
            check_id="0" * 32, **about, **named, result=result.document(), action="continue", grain={"date": "daily"}
        )
        edge = lineage_events.Edge(
            upstream="s3://landing/orders", kind="files", downstream="shop.orders", downstream_id=asset_id
        )
        read = lineage_events.LineageRecorded(**about, edges=(edge,))
        return [
            self.draft(execution_events.RUN_CREATED, created, run_id),
            self.draft(execution_events.MATERIALIZATION_COMPLETED, publish, run_id),
            self.draft(quality_events.CHECK_EXECUTED, check, run_id),
            self.draft(lineage_events.LINEAGE_RECORDED, read, run_id),
        ]

    async def misunderstood(self) -> None:
        """An event of a version that nobody knows yet: it is set aside."""
        kind = EventType("catalog.table_dropped.v9")
        await self.ledger.append(Domain.CATALOG, [Draft(type=kind, source="elsewhere", data={"table": "t"})])

    async def hinted(self) -> None:
        names = [name for name in self.store.objects() if "/ledger/execution/" in name]
        await notify(self.store, SCOPE, names[:1], self.clock, self.entropy)

    # The fold

    async def folded(self, heads: Sequence[Head] = ALL_HEADS, **caps: int) -> None:
        self.later()
        done = await fold_pass(folding(self.store, self.clock, self.entropy, **caps), heads)
        assert not done.failed
        assert done.root.manifest is not None
        self.snapshots.append(done.root.manifest.snapshot)

    async def archived(self) -> None:
        """Segments of commits that every head has read are copied aside."""
        heads = folding(self.store, self.clock, self.entropy)
        async for key in movable(heads.heads, heads.lists, Domain.QUALITY):
            assert await copy_aside(heads.heads, key)


def folding(store: ObjectStore, clock: Clock, entropy: Entropy, scope: Scope = SCOPE, **caps: int) -> Folding:
    async def metadata(location: str) -> bytes | None:
        found = await store.get(location.removeprefix(f"{BASE_URI}/"))
        return None if found is None else found.data

    heads = Heads(store, scope, clock, entropy)
    receipts = ReceiptEvents(store, scope, metadata, clock, entropy)
    return Folding(heads, ArrowWork(store, scope), Settings(caps=Caps(**caps)), receipts=receipts)


async def tell() -> ToldLake:
    """The whole story: some of the state is in a base, some in deltas, and some is not folded."""
    story = _Story()
    table = await story.table()
    first, _ = await story.deployments.deploy(shop(described=False), by="ann")
    await story.folded((Head.ASSETS, Head.SEARCH), files=1)
    story.later()
    last, _ = await story.deployments.deploy(shop(described=True), by="ann")
    values = DynamicDimensions(story.store, SCOPE, story.clock, story.entropy)
    await values.add(last.assets["shop.prices"].asset_id, "market", ["de", "fr"])
    plan, facts = await story.planned(last)
    nightly = await story.started("nightly", plan, idempotency_key=RUN_KEY)
    task = plan.spec.tasks[0]
    await story.published(nightly, task, story.said_by(nightly, last, task, str(table)))
    await story.finished(nightly)
    await story.misunderstood()
    await story.folded()
    await story.archived()
    lost = await story.started("lost", plan)
    await story.published(lost, task, story.said_by(lost, last, task, str(table)))
    closed = await story.started("closed", plan)
    await closed.log.close()
    await values.add(last.assets["shop.prices"].asset_id, "market", ["it"])
    await story.ledger.append(
        Domain.QUALITY,
        [
            story.draft(
                quality_events.PARTITION_QUARANTINED,
                quality_events.PartitionQuarantined(
                    asset="shop.orders", asset_id=last.assets["shop.orders"].asset_id,
                    partitions=[{"date": ["2024-12-01", "2024-12-02"]}], who="ann", why="looked odd",
                ),
                story.runs["nightly"],
            )
        ],
    )  # fmt: skip
    await story.hinted()
    await story.ledger.close()
    known = Known(story.clock.at_ms, [first.id, last.id], story.runs, story.snapshots, facts)
    return ToldLake(story.store.objects(), known)

"""From the ledger to an answer: which cut is asked, what is fresh, and what is said of a run that is not wholly there."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest

from arco.fold.folding import Folding
from arco.fold.heads import Heads
from arco.fold.passes import fold_pass
from arco.fold.tables import MATERIALIZATIONS, PARTITIONS
from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import BeyondReach, CorruptObject, InvalidInput, NotFound
from arco.kernel.ids import RunId
from arco.kernel.scope import Scope
from arco.ledger.appender import Appender
from arco.ledger.drafts import Draft
from arco.ledger.envelope import EventTime
from arco.ledger.execution_events import (
    MATERIALIZATION_COMPLETED,
    RUN_COMPLETED,
    RUN_CREATED,
    TASK_STARTED,
    MaterializationCompleted,
    RunCompleted,
    RunCreated,
    TaskBegun,
)
from arco.ledger.openlineage import openlineage_drafts
from arco.ledger.payloads import derived_event_id
from arco.ledger.run_entries import RunCreated as RunEntry
from arco.ledger.run_entries import Trigger
from arco.ledger.run_log import RunLog
from arco.ledger.run_outline import Outline
from arco.read.cut import Cut
from arco.read.files import Files
from arco.read.library import Binding, Library
from arco.read.reader import Reader
from arco.read.runs import run as run_page
from arco.read.runs import run_outputs
from arco.storage.keys import Domain, RunPlanKey
from arco.storage.memory import MemoryStore
from arco.storage.port import Absent
from fixtures.state.arrow_work import ArrowWork
from stand_ins.hand_clock import HandClock

SCOPE = Scope.of("default", "default")
ASSET = "01JCW4ZZZZ0000000000000001"
RUN = "01JCW4ZZZZ0000000000000002"
OTHER = "01JCW4ZZZZ0000000000000003"
DAY = [{"date": ["2025-01-01", "2025-01-02"]}]


class Ground:
    """A workspace in memory: somebody appends, somebody folds, and a library is open on it."""

    def __init__(self, cache: Path) -> None:
        self.clock = HandClock()
        self.store = MemoryStore(self.clock)
        entropy = SeededEntropy(1)
        self.heads = Heads(self.store, SCOPE, self.clock, entropy)
        self.folding = Folding(self.heads, ArrowWork(self.store, SCOPE))
        self.ledger = Appender(self.store, SCOPE, self.clock, entropy, gather_s=0)
        self.library = Library(self.heads, cache=cache)

    async def happened(self, *drafts: Draft) -> None:
        self.clock.at_ms += 1000
        await self.ledger.append(Domain.EXECUTION, drafts)

    async def fold(self) -> str:
        self.clock.at_ms += 1000
        return str((await fold_pass(self.folding)).root.manifest.snapshot)  # type: ignore[union-attr]

    async def published(self, binding: Binding | None = None) -> list[str]:
        """The materializations that a state has."""
        reader = (await self.library.open(binding or Binding())).reader
        rows = await reader.rows(
            f"SELECT materialization_id AS id FROM {await reader.relation(MATERIALIZATIONS)} ORDER BY 1"
        )
        return [row["id"] for row in rows]


def run(test: Callable[[Ground], Awaitable[None]], cache: Path) -> None:
    async def go() -> None:
        ground = Ground(cache)
        try:
            await test(ground)
        finally:
            await ground.ledger.close()
            ground.library.close()

    asyncio.run(go())


def created(run_id: str = RUN, tasks: int = 1) -> Draft:
    payload = RunCreated(
        run_id=run_id, project="shop", deployment="d", code_version="c", trigger="manual", triggered_by="me", tasks=tasks
    )
    return payload.draft(RUN_CREATED, derived_event_id(1, run_id, "created"), subject=run_id, run_id=run_id)


def begun(task: str, run_id: str = RUN) -> Draft:
    payload = TaskBegun(
        run_id=run_id,
        task_id=task,
        attempt=1,
        asset="shop.orders",
        asset_id=ASSET,
        partitions=DAY,
        worker="w",
        started_ms=1,
    )
    return payload.draft(TASK_STARTED, derived_event_id(1, run_id, task), subject="shop.orders", run_id=run_id)


def made(name: str, task: str = "t1", run_id: str = RUN, **more: Any) -> Draft:
    payload = MaterializationCompleted(
        materialization_id=name, run_id=run_id, task_id=task, attempt=1, asset="shop.orders", asset_id=ASSET,
        table_uuid="0192e1d0-0000-7000-8000-000000000001", partitions=DAY, grain={"date": "daily"}, code="f", code_version="c",
        plan_fingerprint="p", inputs={}, input_snapshots={}, snapshot_id=7, rows=1, bytes=1, files=1, schema_id=0,
        started_ms=1, published_ms=2, **more,
    )  # fmt: skip
    event = derived_event_id(2, run_id, name)
    return payload.draft(MATERIALIZATION_COMPLETED, event, subject="shop.orders", run_id=run_id)


def completed(run_id: str = RUN, succeeded: int = 1) -> Draft:
    payload = RunCompleted(run_id=run_id, state="succeeded", tasks={"succeeded": succeeded}, started_ms=1, ended_ms=3)
    return payload.draft(RUN_COMPLETED, derived_event_id(3, run_id, "completed"), subject=run_id, run_id=run_id)


def test_before_the_first_fold_everything_is_empty(tmp_path: Path) -> None:
    async def test(ground: Ground) -> None:
        assert await ground.published() == []
        with pytest.raises(BeyondReach):
            await ground.published(Binding(as_of_ms=0))

    run(test, tmp_path)


def test_the_current_state_is_what_was_folded_and_a_fresh_one_has_the_rest(tmp_path: Path) -> None:
    async def test(ground: Ground) -> None:
        await ground.happened(created(), begun("t1"), made("m1"))
        await ground.fold()
        await ground.happened(made("m2", task="t2"))
        assert await ground.published() == ["m1"]
        assert await ground.published(Binding(fresh=True)) == ["m1", "m2"]
        await ground.fold()
        assert await ground.published() == ["m1", "m2"]
        assert await ground.published(Binding(fresh=True)) == ["m1", "m2"]

    run(test, tmp_path)


def test_a_fresh_state_has_what_a_run_has_not_told_the_ledger_yet(tmp_path: Path) -> None:
    async def test(ground: Ground) -> None:
        plan = msgspec.json.encode({"spec": {"tasks": [{"id": "t1", "depends_on": []}]}})
        await ground.store.put(str(RunPlanKey(SCOPE, RunId(RUN))), plan, Absent())
        log = RunLog(ground.store, SCOPE, RunId(RUN), Outline.of_plan(plan), ground.clock, SeededEntropy(2))
        told = (created(), begun("t1"), made("m1"))
        entry = RunEntry(plan_id="p", tasks=1, trigger=Trigger.MANUAL, who="me", max_parallelism=1, events=told)
        assert await log.append([entry])
        assert await ground.published() == []
        assert await ground.published(Binding(fresh=True)) == ["m1"]
        # Delivered in part, it is told by both, and is there once.
        await ground.happened(*told)
        await ground.fold()
        assert await ground.published(Binding(fresh=True)) == ["m1"]

    run(test, tmp_path)


def test_a_fresh_state_follows_the_same_rules(tmp_path: Path) -> None:
    async def test(ground: Ground) -> None:
        await ground.happened(made("newer", sequence_number=9))
        await ground.fold()
        await ground.happened(made("older", task="t2", sequence_number=3))
        reader = (await ground.library.open(Binding(fresh=True))).reader
        rows = await reader.rows(f"SELECT materialization_id FROM {await reader.relation(PARTITIONS, ASSET)}")
        assert rows == [{"materialization_id": "newer"}]
        reader.close()

    run(test, tmp_path)


def test_the_past_is_found_by_its_time_and_by_its_id(tmp_path: Path) -> None:
    async def test(ground: Ground) -> None:
        snapshots, times = [], []
        for number in range(12):
            await ground.happened(made(f"m{number:02}", task=f"t{number}"))
            snapshots.append(await ground.fold())
            times.append(ground.clock.now_ms())
        for number in range(12):
            wanted = [f"m{one:02}" for one in range(number + 1)]
            assert await ground.published(Binding(snapshot_id=snapshots[number])) == wanted
            assert await ground.published(Binding(as_of_ms=times[number])) == wanted
        with pytest.raises(NotFound):
            await ground.published(Binding(snapshot_id=RUN))

    run(test, tmp_path)


def test_a_snapshot_that_was_written_and_never_counted_is_none(tmp_path: Path) -> None:
    async def test(ground: Ground) -> None:
        await ground.happened(made("m1"))
        snapshot = await ground.fold()
        key = f"default/default/_catalog/manifests/root/{snapshot}.json"
        stored = await ground.store.get(key)
        assert stored is not None
        lost = stored.data.replace(snapshot.encode(), OTHER.encode())
        await ground.store.put(key.replace(snapshot, OTHER), lost, Absent())
        with pytest.raises(NotFound):
            await ground.published(Binding(snapshot_id=OTHER))

    run(test, tmp_path)


def test_a_run_of_another_system_is_whole_when_it_has_ended(tmp_path: Path) -> None:
    """It says that a task succeeded, and nobody says what that task published: nothing more is owed."""

    async def test(ground: Ground) -> None:
        begun_ms, job = ground.clock.at_ms, {"namespace": "airflow", "name": "load"}
        for number, state in enumerate(("START", "COMPLETE")):
            moment = str(EventTime.at(begun_ms + number))
            event = {"eventTime": moment, "eventType": state, "run": {"runId": RUN}, "job": job}
            await ground.happened(*(one for one in openlineage_drafts(event) if one.type.domain == Domain.EXECUTION))
        whole = await ground.fold()
        opened = await ground.library.open(Binding(as_of_run=RUN))
        assert (opened.warning, opened.reader.cut.snapshot_id) == (None, whole)
        assert (await run_page(opened.reader, RUN)).run.job == "load"

    run(test, tmp_path)


def test_a_run_has_three_answers(tmp_path: Path) -> None:
    async def test(ground: Ground) -> None:
        of_run = Binding(as_of_run=RUN)
        with pytest.raises(NotFound, match="is folded yet"):
            await ground.library.open(of_run)
        await ground.happened(created(tasks=2), begun("t1"), begun("t2"), made("m1"), completed(succeeded=2))
        await ground.fold()
        opened = await ground.library.open(of_run)
        assert opened.warning is not None
        assert "missing" in opened.warning
        await ground.happened(made("m2", task="t2"))
        whole = await ground.fold()
        for number in range(5):
            await ground.happened(made(f"later{number}", task="t9", run_id=OTHER))
            await ground.fold()
        opened = await ground.library.open(of_run)
        assert opened.warning is None
        # The first state that had all of it, not today's, nor that of the moment when the run ended.
        assert opened.reader.cut.snapshot_id == whole
        assert await ground.published(of_run) == ["m1", "m2"]
        outputs = await run_outputs(opened.reader, RUN)
        assert sorted(one.materialization_id for one in outputs.outputs) == ["m1", "m2"]

    run(test, tmp_path)


def test_a_file_that_is_damaged_or_gone_is_named(tmp_path: Path) -> None:
    async def test(ground: Ground) -> None:
        await ground.happened(made("m1"))
        await ground.fold()
        reader = (await ground.library.open()).reader
        [file] = reader.cut.layers(MATERIALIZATIONS).deltas[0]
        await ground.store.delete(file.key)
        with pytest.raises(CorruptObject, match=f"{file.key} is gone"):
            await reader.relation(MATERIALIZATIONS)
        await ground.store.put(file.key, b"not what was written", Absent())
        with pytest.raises(CorruptObject, match=f"{file.key} is damaged"):
            await reader.relation(MATERIALIZATIONS)

    run(test, tmp_path)


def test_questions_that_come_first_share_one_database(tmp_path: Path) -> None:
    reader = Reader(Cut("", 0), Files(MemoryStore(HandClock()), cache=tmp_path))
    together = threading.Barrier(8)

    def opened(_: int) -> Any:
        together.wait()
        return reader.session

    with ThreadPoolExecutor(8) as threads:
        assert len(set(map(id, list(threads.map(opened, range(8)))))) == 1
    reader.close()


def test_a_question_is_about_one_state() -> None:
    with pytest.raises(InvalidInput):
        Binding(as_of_ms=1, snapshot_id=RUN)
    with pytest.raises(InvalidInput):
        Binding(as_of_ms=1, fresh=True)

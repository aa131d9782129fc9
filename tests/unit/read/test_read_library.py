"""From the ledger to an answer: which cut is asked, what is fresh, and what is said of a run that is not wholly there."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest

from arco.fold.archiving import copy_aside, movable
from arco.fold.finding import Finder
from arco.fold.folding import Folding
from arco.fold.heads import Heads
from arco.fold.passes import fold_pass
from arco.fold.tables import MATERIALIZATIONS, PARTITIONS
from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import BeyondReach, Busy, CorruptObject, InvalidInput, NotFound
from arco.kernel.ids import EventId, RunId
from arco.kernel.limits import FRESH_LOOKS_MAX
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
from arco.read.binding import Ingestion
from arco.read.cut import Cut
from arco.read.files import Files
from arco.read.library import Binding, Library
from arco.read.reader import Reader
from arco.read.runs import run as run_page
from arco.read.runs import run_outputs
from arco.storage.keys import Domain, Head, RunPlanKey
from arco.storage.memory import MemoryStore
from arco.storage.port import Absent, Always
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

    async def fold_and_move(self) -> None:
        """All that lies in the ledger is consumed, and in the archive."""
        await self.fold()
        for domain in Domain:
            for key in [one async for one in movable(self.heads, self.folding.lists, domain)]:
                assert await copy_aside(self.heads, key)
                await self.store.delete(str(key))

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


async def logged(ground: Ground, *told: Draft) -> None:
    """Events that a run owes the ledger."""
    plan = msgspec.json.encode({"spec": {"tasks": [{"id": "t1", "depends_on": []}]}})
    await ground.store.put(str(RunPlanKey(SCOPE, RunId(RUN))), plan, Absent())
    log = RunLog(ground.store, SCOPE, RunId(RUN), Outline.of_plan(plan), ground.clock, SeededEntropy(2))
    entry = RunEntry(plan_id="p", tasks=1, trigger=Trigger.MANUAL, who="me", max_parallelism=1, events=told)
    assert await log.append([entry])


def test_a_fresh_state_has_what_a_run_has_not_told_the_ledger_yet(tmp_path: Path) -> None:
    async def test(ground: Ground) -> None:
        told = (created(), begun("t1"), made("m1"))
        await logged(ground, *told)
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


def test_a_fresh_state_has_what_is_folded_and_moved_aside_while_it_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(ground: Ground) -> None:
        await ground.happened(made("m1"))
        await ground.fold()
        await ground.happened(made("m2", task="t2"))
        find, done = Finder.find, []

        async def overtaken(self: Finder, head: Head, consumed: Any, *, receipts: bool) -> Any:
            if head is Head.EXECUTION and not done:
                done.append(head)
                await ground.fold_and_move()
            return await find(self, head, consumed, receipts=receipts)

        monkeypatch.setattr(Finder, "find", overtaken)
        assert await ground.published(Binding(fresh=True)) == ["m1", "m2"]
        assert done

    run(test, tmp_path)


def test_a_fresh_state_has_what_is_moved_aside_after_it_was_listed(tmp_path: Path) -> None:
    async def test(ground: Ground) -> None:
        await ground.happened(made("m1"))
        found = await ground.library._tails.find()
        await ground.fold_and_move()
        assert len((await ground.library._tails.rows(found)).rows["materializations"]) == 1

    run(test, tmp_path)


def test_a_fresh_state_that_is_moved_on_at_every_look_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(ground: Ground) -> None:
        find, asked = Finder.find, []

        async def overtaken(self: Finder, head: Head, consumed: Any, *, receipts: bool) -> Any:
            if head is Head.EXECUTION and not receipts and self is ground.library._tails._unfolded._finder:
                asked.append(head)
                await ground.happened(made(f"m{len(asked)}", task=f"t{len(asked)}"))
                await ground.fold()
            return await find(self, head, consumed, receipts=receipts)

        monkeypatch.setattr(Finder, "find", overtaken)
        with pytest.raises(Busy):
            await ground.published(Binding(fresh=True))
        assert len(asked) == FRESH_LOOKS_MAX

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


def test_a_snapshot_whose_manifest_is_damaged_is_said_by_its_name(tmp_path: Path) -> None:
    async def test(ground: Ground) -> None:
        await ground.happened(made("m1"))
        snapshot = await ground.fold()
        await ground.store.put(f"default/default/_catalog/manifests/root/{snapshot}.json", b"{", Always())
        with pytest.raises(CorruptObject, match=snapshot):
            await ground.published(Binding(snapshot_id=snapshot))

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


def test_a_run_that_goes_on_is_there_in_part_once_an_output_is(tmp_path: Path) -> None:
    async def test(ground: Ground) -> None:
        of_run = Binding(as_of_run=RUN)
        await ground.happened(created(tasks=2), begun("t1"))
        await ground.fold()
        with pytest.raises(NotFound, match=f"no output of run {RUN} is folded yet"):
            await ground.library.open(of_run)
        await ground.happened(made("m1"))
        newest = await ground.fold()
        opened = await ground.library.open(of_run)
        assert (opened.ingestion, opened.reader.cut.snapshot_id) == (Ingestion.PART, newest)
        assert opened.warning == f"run {RUN} has not ended in what is folded: outputs of it may be missing"
        assert await ground.published(of_run) == ["m1"]

    run(test, tmp_path)


def test_a_run_that_has_ended_and_has_no_output_there_is_waited_for(tmp_path: Path) -> None:
    async def test(ground: Ground) -> None:
        await ground.happened(created(), begun("t1"), completed())
        await ground.fold()
        with pytest.raises(NotFound, match="no output of run"):
            await ground.library.open(Binding(as_of_run=RUN))
        await ground.happened(completed(OTHER, succeeded=0))
        await ground.fold()
        assert (await ground.library.open(Binding(as_of_run=OTHER))).ingestion is Ingestion.WHOLE

    run(test, tmp_path)


def by_others(draft: Draft, **said: Any) -> Draft:
    """The same, as another system says it."""
    event = EventId(derived_event_id(9, str(draft.id)))
    return msgspec.structs.replace(draft, source="evil", id=event, data={**draft.data, **said})


def test_others_do_not_end_a_run_of_servo(tmp_path: Path) -> None:
    """Neither before Servo has said anything of it, nor after."""

    async def test(ground: Ground) -> None:
        of_run = Binding(as_of_run=RUN)
        failed = by_others(completed(), state="failed", ended_ms=9_000_000)
        await ground.happened(failed)
        await ground.fold()
        assert (await ground.library.open(of_run)).ingestion is Ingestion.WHOLE, "nobody else has spoken of it"
        await ground.happened(created(tasks=2), begun("t1"), begun("t2"), made("m1"))
        await ground.fold()
        assert (await ground.library.open(of_run)).ingestion is Ingestion.PART
        page = await run_page((await ground.library.open()).reader, RUN)
        assert (page.run.state, page.run.told_by, page.run.ended_at) == ("running", "arco/servo", None)
        await ground.happened(made("m2", task="t2"), completed(succeeded=2))
        whole = await ground.fold()
        await ground.happened(by_others(begun("t3"), attempt=99), by_others(failed, ended_ms=99_000_000))
        await ground.fold()
        opened = await ground.library.open(of_run)
        assert (opened.ingestion, opened.reader.cut.snapshot_id) == (Ingestion.WHOLE, whole), "not what others ended first"
        page = await run_page((await ground.library.open()).reader, RUN)
        assert (page.run.state, page.run.told_by) == ("succeeded", "arco/servo")

    run(test, tmp_path)


def test_a_fresh_state_reads_the_log_of_a_run_that_others_have_ended(tmp_path: Path) -> None:
    async def test(ground: Ground) -> None:
        await logged(ground, created(), begun("t1"))
        await ground.happened(by_others(completed(), state="failed"))
        await ground.fold()
        opened = await ground.library.open(Binding(fresh=True))
        assert (await run_page(opened.reader, RUN)).run.state == "running"

    run(test, tmp_path)


def test_outputs_of_a_run_are_what_servo_says(tmp_path: Path) -> None:
    async def test(ground: Ground) -> None:
        mine, forged = (
            made("m1", sequence_number=4),
            by_others(made("m9"), sequence_number=9_000_000_000, published_ms=9_000),
        )
        await ground.happened(created(), begun("t1"), forged, mine, completed())
        await ground.fold()
        reader = (await ground.library.open()).reader
        found = await run_outputs(reader, RUN)
        assert [one.materialization_id for one in found.outputs] == ["m1"]
        current = await reader.rows(f"SELECT materialization_id AS id, told_by FROM {await reader.relation(PARTITIONS)}")
        assert current == [{"id": "m1", "told_by": "arco/servo"}]

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

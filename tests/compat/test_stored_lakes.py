"""What older code deployed, ran, said to the ledger and folded, today's code opens: deployments, run logs, events, state."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from arco.fold.dead_letters import DeadLetter
from arco.fold.notifying import hinted
from arco.fold.passes import fold_pass
from arco.fold.publish_table import PUBLISHES
from arco.fold.rebuilding import rebuild
from arco.fold.tables import FOLDED_FROM, ICEBERG_COMMITS, TABLES
from arco.fold.vocabulary import Wins
from arco.kernel.errors import CorruptObject, Fenced
from arco.ledger import reading
from arco.ledger.run_entries import EventsAppended, RunStatus
from arco.ledger.stats import domain_stats
from arco.read.assets import asset, assets
from arco.read.checks import latest_checks
from arco.read.graph import Direction
from arco.read.library import Binding
from arco.read.lineage import lineage
from arco.read.partitions import materializations, partitions
from arco.read.runs import runs
from arco.read.search import search
from arco.servo.deploy.dynamic_values import DynamicDimensions
from arco.servo.execute.gathering import gather, load_snapshot
from arco.servo.plan.document import Plan
from arco.servo.schedule.claims import Claims
from arco.servo.schedule.starting import RunRequest, start_run
from arco.storage.keys import (
    ArchivedSegmentKey,
    ConsumedKey,
    DeadLetterKey,
    DeploymentHeadKey,
    DeploymentKey,
    Domain,
    DynamicValuesKey,
    Head,
    HeadKey,
    HintKey,
    ManifestKey,
    PlanningSnapshotKey,
    RunClaimKey,
    RunClosedKey,
    RunLogKey,
    RunPlanKey,
    RunRequestKey,
    SegmentKey,
    StateFileKey,
    parse,
)
from tests.compat.lake_story import RUN_KEY, shop, tell
from tests.compat.make_lake import LAKES
from tests.compat.opened_lake import Lake, Process, with_lake
from tests.compat.story import SCOPE

KINDS = {
    ArchivedSegmentKey, ConsumedKey, DeadLetterKey, DeploymentHeadKey, DeploymentKey, DynamicValuesKey, HeadKey, HintKey,
    ManifestKey, PlanningSnapshotKey, RunClaimKey, RunClosedKey, RunLogKey, RunPlanKey, RunRequestKey, SegmentKey, StateFileKey,
}  # fmt: skip
DAYS = ["date=d:2024-12-01", "date=d:2024-12-02"]


def names_in(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_there_is_a_stored_lake_of_the_first_version() -> None:
    assert (LAKES / "v1").is_dir()


def test_a_lake_has_an_object_of_every_kind_and_every_name_is_known(lake: Lake) -> None:
    assert {type(parse(name)) for name in names_in(lake.folder)} >= KINDS


def test_the_story_leaves_the_same_lake_each_time_it_is_told() -> None:
    assert asyncio.run(tell()) == asyncio.run(tell())


# State


def test_the_state_answers_questions(lake: Lake) -> None:
    async def look(process: Process) -> None:
        reader = await process.reader()
        assert reader.cut.snapshot_id == process.known.snapshots[-1]
        found = {one.asset: (one.tags, one.description) for one in (await assets(reader)).items}
        assert found == {"shop.orders": (("gold",), "What was bought, line by line"), "shop.prices": ((), "")}
        page = await asset(reader, "shop.orders", process.clock.at_ms)
        assert (page.code_version is not None, page.partitioning[0]["name"]) == (True, "date")
        nightly = process.known.runs["nightly"]
        assert [(one.run_id, one.state) for one in (await runs(reader)).items] == [(nightly, "succeeded")]
        made = (await materializations(reader, "shop.orders")).items
        assert sorted((one.partition_key, one.run_id, one.current) for one in made) == [
            (day, nightly, True) for day in DAYS
        ]
        assert sorted((one.partition_key, one.rows) for one in made) == [(DAYS[0], 1), (DAYS[1], 2)]
        assert [one.partition_key for one in (await partitions(reader, "shop.orders")).items] == DAYS
        assert [(one.check_name, one.passed) for one in (await latest_checks(reader, "shop.orders")).checks] == [
            ("not_null(id)", True)
        ]
        up = await lineage(reader, "shop.orders", Direction.UPSTREAM)
        assert [edge.source for edge in up.edges] == ["s3://landing/orders"]
        for query in ("bought", "ord", "ordres", "gold"):
            assert [hit.name for hit in (await search(reader, query, namespace="shop")).hits] == ["shop.orders"], query

    with_lake(lake, look)


def test_a_column_that_came_later_is_null_in_files_of_before(lake: Lake) -> None:
    async def asked(process: Process) -> None:
        reader = await process.reader()
        commits = await reader.rows(f"SELECT * FROM {await reader.relation(ICEBERG_COMMITS)}")
        assert len(commits) > 1
        assert {row["transaction"] for row in commits} == {None}
        await reader.name_tables()
        assert await reader.rows("SELECT count(*) AS n FROM iceberg_commits WHERE transaction IS NULL") == [
            {"n": len(commits)}
        ]

    with_lake(lake, asked)


def test_the_state_of_the_past_is_there(lake: Lake) -> None:
    async def look(process: Process) -> None:
        first = await process.reader(Binding(snapshot_id=process.known.snapshots[0]))
        assert [(one.asset, one.tags) for one in (await assets(first)).items] == [("shop.orders", ()), ("shop.prices", ())]
        assert (await runs(first)).items == ()
        manifest = (await process.heads.read_root()).manifest
        assert manifest is not None
        as_of = await process.reader(Binding(as_of_ms=manifest.published_ms - 1))
        assert as_of.cut.snapshot_id == process.known.snapshots[0]

    with_lake(lake, look)


def test_what_is_not_folded_is_in_fresh_answers(lake: Lake) -> None:
    async def look(process: Process) -> None:
        reader = await process.reader(Binding(fresh=True))
        found = {one.run_id: one.state for one in (await runs(reader)).items}
        # Nothing of the lost run is in the ledger, and it had published: its log says so.
        assert found.keys() == {process.known.runs["nightly"], process.known.runs["lost"]}
        assert len((await materializations(reader, "shop.orders")).items) == 4

    with_lake(lake, look)


def test_an_old_lake_is_folded_on_and_nothing_is_folded_twice(lake: Lake) -> None:
    async def fold(process: Process) -> None:
        before = await process.everything()
        done = await fold_pass(process.folding())
        assert not done.failed
        assert {head: one.segments for head, one in done.rounds.items() if one.segments} == {Head.QUALITY: 1}
        after = await process.everything()
        assert [row["why"] for row in after["quarantines"]] == ["looked odd"]
        assert before["quarantines"] == []
        assert {name: rows for name, rows in after.items() if name != "quarantines"} == {
            name: rows for name, rows in before.items() if name != "quarantines"
        }
        assert not any(one.segments for one in (await fold_pass(process.folding())).rounds.values())

    with_lake(lake, fold)


def test_a_rebuild_of_an_old_ledger_gives_the_state_that_was_folded_then(lake: Lake) -> None:
    async def again(process: Process) -> None:
        await fold_pass(process.folding())
        folded = await process.everything()
        is_whole = PUBLISHES.name in await _whole(process)
        assert is_whole == bool(folded[PUBLISHES.name]), "planning must not take it for everything where it is not"
        for head in FOLDED_FROM:
            await rebuild(process.folding(), head)
        await process.heads.publish_cut()
        rebuilt = await process.everything()
        assert PUBLISHES.name in await _whole(process)
        assert sum(map(len, folded.values())) > 50
        for table in TABLES:
            # What the last wins is ordered otherwise since (docs/adr/0044), and what came later is known now.
            new = {one.name for one in table.columns() if one.later}
            new |= {one.order for one in table.groups if one.wins is Wins.LAST or all(it.later for it in one.columns)}
            before, after = ([_without(row, new) for row in rows[table.name]] for rows in (folded, rebuilt))
            if table is PUBLISHES and not is_whole:
                assert (before, len(after)) == ([], 1), "a table that came later has what came before it after a rebuild"
            elif table.head is Head.SEARCH:
                assert all(row in after for row in before), "more can be found since"
            else:
                assert after == before

    with_lake(lake, again)


async def _whole(process: Process) -> tuple[str, ...]:
    manifest = (await process.heads.read(Head.EXECUTION)).manifest
    assert manifest is not None
    return manifest.whole


def _without(row: dict[str, Any], names: set[str]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}


def test_a_file_of_state_that_was_changed_is_named(lake: Lake) -> None:
    async def look(process: Process) -> None:
        await process.everything()

    for file in lake.folder.rglob("state/assets/assets/*.parquet"):
        file.write_bytes(file.read_bytes()[:-1] + b"x")
    with pytest.raises(CorruptObject, match="is damaged"):
        with_lake(lake, look)


def test_what_could_not_be_folded_is_kept(lake: Lake) -> None:
    letters = [
        msgspec.json.decode((lake.folder / name).read_bytes(), type=DeadLetter)
        for name in names_in(lake.folder)
        if isinstance(parse(name), DeadLetterKey)
    ]
    assert {(one.head, one.unknown) for one in letters} == {("assets", True), ("search", True)}
    assert all("table_dropped" in one.line for one in letters)

    async def look(process: Process) -> None:
        manifest = (await process.heads.read(Head.ASSETS)).manifest
        assert manifest is not None
        assert (manifest.refused, manifest.set_aside) == (0, 1)

    with_lake(lake, look)


# The ledger


def test_events_are_read_and_counted(lake: Lake) -> None:
    async def look(process: Process) -> None:
        events = await reading.events(process.store, SCOPE, Domain.EXECUTION)
        assert [one.type.rpartition(".")[0] for one in events] == [
            "execution.run_created", "execution.materialization_completed", "execution.run_completed",
        ]  # fmt: skip
        stats = await domain_stats(process.store, SCOPE, Domain.CATALOG)
        assert stats.is_whole
        told = await hinted(process.store, SCOPE, Domain.EXECUTION, process.clock, process.entropy)
        assert [type(parse(name)) for name in told] == [SegmentKey]

    with_lake(lake, look)


# Runs


def test_logs_of_runs_say_what_happened(lake: Lake) -> None:
    async def look(process: Process) -> None:
        nightly, lost = await process.run("nightly"), await process.run("lost")
        assert (await nightly.log.read_all()).run.status is RunStatus.SUCCEEDED
        assert not nightly.log.state.owed
        assert (await lost.log.read_all()).run.status is not RunStatus.SUCCEEDED
        assert sum(len(drafts) for drafts in lost.log.state.owed.values()) == 4
        (task,) = nightly.plan.spec.tasks
        assert (task.asset, task.partitions) == ("shop.orders", [{"date": ["2024-12-01", "2024-12-03"]}])
        claims = Claims(process.store, SCOPE, nightly.log.run, "another", process.clock, process.entropy)
        claim = await claims.read(task.id)
        assert claim is not None
        assert (claim.worker, claim.attempt, claim.progress) == ("worker-1", 1, {"rows": 3})

    with_lake(lake, look)


def test_a_run_that_was_closed_takes_nothing_any_more(lake: Lake) -> None:
    async def write(process: Process) -> None:
        closed = await process.run("closed")
        await closed.log.catch_up()
        await closed.log.append([EventsAppended(through=1)])

    with pytest.raises(Fenced):
        with_lake(lake, write)


def test_a_key_still_means_the_run_that_it_started(lake: Lake) -> None:
    async def again(process: Process) -> None:
        plan: Plan = (await process.run("lost")).plan
        asked = RunRequest(who="ann", idempotency_key=RUN_KEY)
        found = await start_run(process.store, SCOPE, plan, asked, process.clock, process.entropy)
        assert (str(found.log.run), found.is_new) == (process.known.runs["nightly"], False)

    with_lake(lake, again)


# Projects


def test_deployments_and_what_they_stand_on_are_there(lake: Lake) -> None:
    async def look(process: Process) -> None:
        known, deployments = process.known, process.deployments
        current = await deployments.current("shop")
        assert current is not None
        assert (current.id, await deployments.history("shop")) == (known.deployments[1], tuple(reversed(known.deployments)))
        first = await deployments.load(known.deployments[0])
        assert {name: one.asset_id for name, one in first.assets.items()} == {
            name: one.asset_id for name, one in current.assets.items()
        }
        values = DynamicDimensions(process.store, SCOPE, process.clock, process.entropy)
        assert await values.values(current.assets["shop.prices"].asset_id, "market") == ("de", "fr", "it")
        facts = await load_snapshot(process.catalog, known.planning_snapshot)
        assert facts.of("shop.prices").dynamic == {"market": ["de", "fr"]}
        now = await gather(process.catalog, shop(described=True), current)
        assert [one.run_id for one in now.of("shop.orders").materializations]

    with_lake(lake, look)


def test_an_old_project_is_deployed_again_under_its_identities(lake: Lake) -> None:
    async def deploy(process: Process) -> None:
        before = await process.deployments.current("shop")
        assert before is not None
        after, _ = await process.deployments.deploy(shop(described=False), by="bob")
        assert {name: one.asset_id for name, one in after.assets.items()} == {
            name: one.asset_id for name, one in before.assets.items()
        }

    with_lake(lake, deploy)

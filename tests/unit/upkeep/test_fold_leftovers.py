"""Segments, folded receipts and old states: what moves, what goes, and what can still be asked for."""

from typing import Any

import pytest

from arco.catalog.catalog import Catalog
from arco.fold.folding import Folding
from arco.fold.heads import Heads
from arco.fold.rebuilding import rebuild
from arco.fold.time_travel import manifest_as_of
from arco.fold.verify_fold import verify_fold
from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import ArcoError, BeyondReach
from arco.kernel.limits import AS_OF_REACH_S
from arco.ledger.reading import events
from arco.ledger.stats import domain_stats
from arco.storage.findings import Report as Findings
from arco.storage.keys import Domain, Head
from arco.storage.looking import Look
from arco.storage.port import Absent
from arco.upkeep.passes import jobs_named, upkeep_pass
from arco.upkeep.report import Report
from arco.upkeep.sweep import Setting
from unit.catalog.ground import story
from unit.fold.ground import SCOPE, Ground
from unit.upkeep.ground import DAY_S, HOUR_S

SEGMENT, ARCHIVED, RECEIPT = "/ledger/iceberg/", "/archive/iceberg/", "/committed/"


class FoldGround(Ground):
    def later(self, seconds: float) -> None:
        self.clock.at_ms += round(seconds * 1000)

    async def upkeep(self, *kinds: str, dry_run: bool = False) -> dict[str, Report]:
        catalog = Catalog.open(self.store, "file:///lake", SCOPE, self.clock, SeededEntropy("keeper"))
        reports = await upkeep_pass(Setting(catalog.parts, dry_run=dry_run), jobs_named(kinds))
        failed = [report.failed for report in reports if report.failed]
        if failed:
            raise ArcoError(failed[0])
        return {report.kind: report for report in reports}

    async def missed(self, reach_s: int = AS_OF_REACH_S) -> list[str]:
        """What verify does not find of the fold."""
        found = Findings()
        heads = Heads(self.store, SCOPE, self.clock, SeededEntropy("verifier"))
        await verify_fold(Look(self.store, SCOPE, found), heads, reach_s)
        return [one.subject for one in found.findings if one.code.endswith("_missing")]

    async def publish(self, folding: Folding, *values: str) -> Any:
        await self.append(*values)
        return (await folding.round(Head.ICEBERG)).standing


async def consumed_by_all(folding: Folding) -> None:
    for head in (Head.ICEBERG, Head.SEARCH, Head.ASSETS):
        await folding.catch_up(head)
    await folding.heads.publish_cut()


@story
async def test_hazard_15_a_segment_moves_when_all_have_consumed_it_and_stays_an_input():
    ground = FoldGround()
    folding = ground.folding()
    await ground.append("a1", "b1")
    await ground.upkeep("segments")
    ground.later(2 * DAY_S)
    await ground.upkeep("segments")
    assert ground.store.named(SEGMENT), "nobody has folded it"
    await consumed_by_all(folding)
    before = await ground.things((await folding.heads.read(Head.ICEBERG)).manifest)
    told = await events(ground.store, SCOPE, Domain.ICEBERG)
    report = (await ground.upkeep("segments"))["segments"]
    assert (report.changed, report.deleted) == (1, 0)
    assert not ground.store.named(SEGMENT)
    assert len(ground.store.named(ARCHIVED)) == 1
    assert await events(ground.store, SCOPE, Domain.ICEBERG) == told, "plans still stand on it"
    stats = await domain_stats(ground.store, SCOPE, Domain.ICEBERG)
    assert (stats.segments, stats.archived, stats.events, stats.is_whole) == (1, 1, 2, True)
    again = await rebuild(ground.folding(2), Head.ICEBERG)
    assert await ground.things(again.manifest) == before


@story
async def test_a_move_that_stopped_between_its_copy_and_its_end_counts_once():
    ground = FoldGround()
    folding = ground.folding()
    segment = await ground.append("a1")
    data = ground.store.bytes_of(segment)
    await consumed_by_all(folding)
    ground.later(2 * DAY_S)
    await ground.upkeep("segments")
    await ground.store.put(segment, data, Absent())
    stats = await domain_stats(ground.store, SCOPE, Domain.ICEBERG)
    assert (stats.segments, stats.events) == (1, 1)
    ground.later(2 * DAY_S)
    await ground.upkeep("segments")
    assert not ground.store.named(SEGMENT)


@story
async def test_a_segment_of_this_hour_is_left_where_readers_list_it():
    ground = FoldGround()
    folding = ground.folding()
    await ground.append("a1")
    await consumed_by_all(folding)
    ground.later(23 * HOUR_S)
    await ground.upkeep("segments")
    assert ground.store.named(SEGMENT)


@story
async def test_receipts_go_once_they_are_folded_and_no_marker_can_ask_for_them():
    ground = FoldGround()
    folding = ground.folding()
    for number in range(4):
        ground.later(1)
        await ground.commit(number, None)
    ground.later(2 * DAY_S)
    await ground.upkeep("receipts")
    assert len(ground.store.named(RECEIPT)) == 4, "not folded"
    await folding.catch_up(Head.ICEBERG)
    report = (await ground.upkeep("receipts"))["receipts"]
    assert report.why == {"folded, and older than any marker that could ask for it": 4}
    assert not ground.store.named(RECEIPT)


@story
async def test_receipts_younger_than_the_markers_stay_though_they_are_folded():
    ground = FoldGround()
    folding = ground.folding()
    await ground.commit(0, None)
    await folding.catch_up(Head.ICEBERG)
    ground.later(25 * HOUR_S)
    await ground.upkeep("receipts")
    assert len(ground.store.named(RECEIPT)) == 1


@story
async def test_states_within_reach_can_be_asked_for_and_older_ones_go():
    ground = FoldGround()
    folding = ground.folding()
    for day in range(80):
        await ground.publish(folding, f"a{day}")
        ground.later(DAY_S)
    manifests, files = ground.store.named("/manifests/iceberg/"), ground.store.named("/state/iceberg/")
    assert (await ground.upkeep("state", dry_run=True))["state"].deleted > 40
    report = (await ground.upkeep("state"))["state"]
    assert 40 < len(manifests) - len(ground.store.named("/manifests/iceberg/")) < 50
    assert report.deleted >= len(manifests) - len(ground.store.named("/manifests/iceberg/"))
    fresh = ground.folding(7)
    now_ms = ground.clock.now_ms()
    for days in range(30):
        found = await manifest_as_of(fresh.heads, Head.ICEBERG, now_ms - days * DAY_S * 1000)
        await ground.things(found)
    with pytest.raises(BeyondReach):
        await manifest_as_of(fresh.heads, Head.ICEBERG, now_ms - 40 * DAY_S * 1000)
    assert set(ground.store.named("/state/iceberg/")) <= set(files)
    await ground.publish(fresh, "a99")


@story
async def test_what_was_collected_is_not_missed_and_what_is_lost_is():
    ground = FoldGround()
    folding = ground.folding()
    for day in range(80):
        await ground.publish(folding, f"a{day}")
        ground.later(DAY_S)
    await ground.upkeep("state")
    assert await ground.missed() == []
    lost = [ground.store.named(f"/{part}/iceberg/")[-1] for part in ("consumed", "state")]
    for name in lost:
        await ground.store.delete(name)
    assert sorted(await ground.missed()) == sorted(lost)
    assert await ground.missed(reach_s=90 * DAY_S) == await ground.missed(), "the manifests say how far they reach"


@story
async def test_a_head_that_nobody_folds_any_more_keeps_its_state():
    ground = FoldGround()
    folding = ground.folding()
    await ground.publish(folding, "a1")
    await ground.publish(folding, "a2")
    ground.later(400 * DAY_S)
    await ground.upkeep("state")
    standing = await ground.folding(3).heads.read(Head.ICEBERG)
    assert (await ground.things(standing.manifest))["a"] == ("a1", "a2")


@story
async def test_a_folder_that_slept_with_its_files_written_publishes_nothing_that_is_gone():
    """Its swing was prepared for a head that upkeep has touched since."""
    ground = FoldGround()
    folding = ground.folding()
    for day in range(40):
        await ground.publish(folding, f"a{day}")
        ground.later(DAY_S)
    standing = await folding.heads.read(Head.ICEBERG)
    ground.later(100 * DAY_S)
    report = (await ground.upkeep("state"))["state"]
    assert report.deleted
    assert standing.manifest is not None
    assert await folding.heads.publish(standing, standing.manifest) is None, "the old version of the head is dead"

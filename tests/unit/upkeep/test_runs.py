"""Runs that an operator purges: what goes, what stays in their place, and who hears of it."""

import pytest

from arco.catalog.catalog import Catalog
from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import Fenced
from arco.ledger.run_entries import EventsAppended, RunFinished
from arco.ledger.run_log import RunLog
from arco.ledger.run_state import RunStatus
from arco.storage.memory import MemoryStore
from arco.upkeep.purging import purge
from arco.upkeep.report import Report
from arco.upkeep.sweep import Setting
from unit.catalog.ground import story
from unit.ledger.test_run_log import CLOCK, SCOPE, begun, claimed, log_on
from unit.ledger.test_run_state import done
from unit.upkeep.ground import DAY_S


async def purged(store: MemoryStore, older_than_s: float, *, dry_run: bool = False) -> Report:
    parts = Catalog.open(store, "file:///lake", SCOPE, CLOCK, SeededEntropy("keeper")).parts
    reports = await purge(Setting(parts, dry_run=dry_run), older_than_s)
    assert not any(report.failed for report in reports)
    return reports[-1]


async def finished() -> tuple[MemoryStore, RunLog, RunLog]:
    """A run that has ended, and a scheduler that has not heard of it."""
    store, log = await begun()
    late = log_on(store, "late")
    await late.catch_up()
    await log.append([*done("a"), *done("b")])
    await log.append([RunFinished(status=RunStatus.SUCCEEDED)])
    await log.append([EventsAppended(through=log.state.sequence)])
    return store, log, late


def keys(store: MemoryStore) -> list[str]:
    return sorted(key for key in store._objects if "/runs/" in key)


@story
async def test_a_run_that_ended_long_ago_leaves_a_closed_marker():
    store, log, _ = await finished()
    assert log.state.is_finished
    CLOCK.at_ms += 10 * DAY_S * 1000
    before = keys(store)
    assert (await purged(store, 5 * DAY_S, dry_run=True)).deleted == len(before)
    assert keys(store) == before
    assert (await purged(store, 20 * DAY_S)).deleted == 0
    assert (await purged(store, 5 * DAY_S)).deleted == len(before)
    (left,) = keys(store)
    assert left.endswith("/closed.json")


@story
async def test_a_run_that_is_under_way_is_left_alone():
    store, _ = await begun()
    CLOCK.at_ms += 1000 * DAY_S * 1000
    report = await purged(store, DAY_S)
    assert report.kept == {"it has not ended": 1}


@story
async def test_a_run_that_was_purged_cannot_be_written_to_any_more():
    store, _, late = await finished()
    CLOCK.at_ms += 10 * DAY_S * 1000
    await purged(store, DAY_S)
    with pytest.raises(Fenced, match="was deleted"):
        await late.append([claimed("late")])
    assert len(keys(store)) == 2, "what it wrote all the same"
    assert (await purged(store, DAY_S)).deleted == 1

"""Which run `arco maintain` goes on with, and when it begins another."""

from collections.abc import Iterator

import pytest

from arco.iceberg.metadata import TableMetadata
from arco.ledger.outstanding import run_ids
from arco.servo.execute.maintaining import Maintenance, Surveyed
from arco.servo.execute.rewriting import Rewriting, manifests_to_merge
from arco.servo.execute.table_files import TableFiles
from arco.servo.execute.table_state import state_of
from arco.servo.schedule.starting import Started
from arco.storage.keys import RunClosedKey, prefix_of
from arco.storage.paging import walk
from fixtures.servo.lake import Lake
from unit.servo.execute.test_execute_rewriting import SCHEMA, appended


@pytest.fixture
def lake() -> Iterator[Lake]:
    with Lake() as found:
        yield found


def surveyed(lake: Lake, table: TableMetadata) -> list[Surveyed]:
    parts = lake.catalog.parts
    found = lake.run(TableFiles(parts).manifests(state_of(table)))
    entry = lake.run(parts.tier1.current()).names.entries[("db",), "t"]
    return [Surveyed(entry, table.current_snapshot_id, Rewriting(manifests=manifests_to_merge(table, found)))]


def begun(lake: Lake, wanted: list[Surveyed]) -> Started:
    started = lake.run(Maintenance(catalog=lake.catalog, options={}, by="tests").start(wanted))
    assert started is not None
    return started


async def objects_of(lake: Lake, started: Started) -> list[str]:
    folder = prefix_of(lake.catalog.parts.scope, "_catalog", "runs", started.log.run)
    return [one.key async for one in walk(lake.store, folder)]


async def deleted(lake: Lake, started: Started) -> None:
    """As `arco purge` leaves a run."""
    there = await objects_of(lake, started)
    await started.log.close()
    for key in there:
        await lake.store.delete(key)


def test_the_same_of_a_table_that_has_not_changed_goes_on_with_the_run_that_was_begun(lake: Lake) -> None:
    lake.create("t", SCHEMA)
    wanted = surveyed(lake, appended(lake, 5))
    assert begun(lake, wanted).log.run == begun(lake, wanted).log.run


def test_a_run_that_was_purged_is_gone_on_with_by_nobody(lake: Lake) -> None:
    """It had failed and was purged: the same command was refused for as long as its table did not change."""
    lake.create("t", SCHEMA)
    wanted = surveyed(lake, appended(lake, 5))
    first = begun(lake, wanted)
    lake.run(deleted(lake, first))
    second = begun(lake, wanted)
    assert second.log.run != first.log.run
    assert second.is_new
    assert begun(lake, wanted).log.run == second.log.run
    assert lake.run(objects_of(lake, first)) == [str(RunClosedKey(lake.catalog.parts.scope, first.log.run))]
    assert len(lake.run(run_ids(lake.store, lake.catalog.parts.scope))) == 2

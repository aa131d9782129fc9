"""What one task of the fold does, without Spark: its files joined are the rows of the model, however they are cut."""

import random
from collections.abc import Iterable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from arco.fold.arrow_rows import rows_of
from arco.fold.joins import State, joined
from arco.fold.publish_table import PUBLISHES
from arco.fold.tables import tables_of
from arco.fold.task_files import Place
from arco.fold.tasks import FoldTask, MergeTask
from arco.fold.vocabulary import BUCKETS
from arco.fold.work import StateFile
from arco.kernel.limits import STATE_ROW_GROUP_ROWS_MAX
from arco.ledger.envelope import Event
from arco.storage.keys import Head
from fixtures.fold.histories import HEADS, SCOPE, History, states, ulid, write_segments


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(str(tmp_path), {}, SCOPE, ulid(1), sync=False)


def folded(place: Place, head: Head, events: list[Event], rows_max: int = 1_000_000) -> tuple[StateFile, ...]:
    names = write_segments(Path(place.root), events, 50)
    said = FoldTask(head, tuple(names), place, rows_max).run()
    assert [report.segment for report in said.reports] == names
    return said.files


def merged(place: Place, head: Head, files: Iterable[StateFile], parts: int) -> list[StateFile]:
    given = list(files)
    made: list[StateFile] = []
    for table in tables_of(head):
        own = {file.key: file.checksum for file in given if file.table == table.name}
        for part in range(parts if own else 0):
            buckets = (BUCKETS * part // parts, BUCKETS * (part + 1) // parts)
            made += MergeTask(table, own, buckets, place).run().files
    return made


def found(place: Place, head: Head, files: Iterable[StateFile]) -> dict[str, State]:
    """The join of files, as the model has it."""
    known: dict[str, State] = {table.name: {} for table in tables_of(head)}
    tables = {table.name: table for table in tables_of(head)}
    for file in files:
        joined(
            tables[file.table], rows_of(tables[file.table], pq.read_table(Path(place.root, file.key))), known[file.table]
        )
    return known


@pytest.mark.parametrize(("seed", "head"), list(enumerate(HEADS)))
def test_a_run_that_is_full_becomes_files_and_their_join_is_the_same(
    place: Place, head: Head, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arco.fold.tasks._COLUMNS_AT_ROWS", 20)
    events = History(random.Random(seed)).events(head, 120)
    files = folded(place, head, events, rows_max=60)
    assert len(files) > len({file.table for file in files})
    assert found(place, head, files) == states(head, events)


@pytest.mark.parametrize(("seed", "head"), list(enumerate(HEADS)))
def test_parts_of_a_merge_have_every_row_once(place: Place, head: Head, seed: int) -> None:
    pick = random.Random(seed)
    events = History(pick).events(head, 120)
    files = [*folded(place, head, events[:70]), *folded(place, head, events[50:])]
    base = merged(place, head, files, 5)
    assert found(place, head, base) == states(head, events)
    for table in tables_of(head):
        buckets = [bucket for file in base if file.table == table.name for bucket in file.buckets]
        assert len(buckets) == len(set(buckets))


def test_a_merge_says_which_files_are_gone_and_which_are_damaged(place: Place) -> None:
    files = folded(place, Head.EXECUTION, History(random.Random(3)).events(Head.EXECUTION, 40))
    table = next(one for one in tables_of(Head.EXECUTION) if one.name == "tasks")
    (good,) = [file for file in files if file.table == "tasks"]
    gone = good.key.replace(".parquet", "-gone.parquet")
    path = Path(place.root, good.key)
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    said = MergeTask(table, {good.key: good.checksum, gone: good.checksum}, (0, BUCKETS), place).run()
    assert (said.damaged, said.gone, said.files) == ((good.key,), (gone,), ())


def test_two_attempts_of_a_task_write_other_files(place: Place) -> None:
    names = write_segments(Path(place.root), History(random.Random(4)).events(Head.LINEAGE, 20), 10)
    task = FoldTask(Head.LINEAGE, tuple(names), place, 1000)
    first, second = task.run(), task.run()
    assert not {file.key for file in first.files} & {file.key for file in second.files}
    assert [file.checksum for file in first.files] == [file.checksum for file in second.files]


def test_row_groups_are_small_enough_for_a_browser(place: Place) -> None:
    base = next(one for one in History(random.Random(3)).events(Head.EXECUTION, 80) if "materialization" in one.type)
    days = {"partitions": [{"date": ["1950-01-01", "2025-01-01"]}], "grain": {"date": "daily"}, "file_stats": []}
    attributes = {name: getattr(base, name) for name in base.__struct_fields__}
    event = Event(**{**attributes, "data": {**base.data, **days}})
    files = [one for one in folded(place, Head.EXECUTION, [event]) if one.table != PUBLISHES.name]  # a row a range
    assert len(files) == 2
    for file in files:
        footer = pq.read_metadata(Path(place.root, file.key))
        assert file.rows == 27394
        assert max(footer.row_group(at).num_rows for at in range(footer.num_row_groups)) == STATE_ROW_GROUP_ROWS_MAX

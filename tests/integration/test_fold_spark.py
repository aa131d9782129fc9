"""The fold on real Spark against the model, row by row; and what an attempt leaves behind that did not count."""

import asyncio
import hashlib
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest

from arco.fold.arrow_rows import arrow_schema, rows_of
from arco.fold.joins import State
from arco.fold.spark_fold import Sizes, SparkFold
from arco.fold.spark_session import Session, SparkSettings
from arco.fold.spark_tasks import by_partition, by_query
from arco.fold.tables import tables_of
from arco.fold.task_files import Place
from arco.fold.tasks import FoldTask, Said
from arco.fold.vocabulary import BUCKET, bucket_of
from arco.fold.work import Folded, StateFile
from arco.kernel.errors import CorruptObject, NotFound, Unavailable
from arco.ledger.envelope import Event, EventType, encode
from arco.ledger.payloads import SERVO
from arco.storage.keys import Head, StateFileKey, parse
from fixtures.fold.histories import HEADS, SCOPE, History, states, ulid, write_segments
from fixtures.servo.frames import MARKS

from .spark_local import CONF, running

pytestmark = MARKS


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    scratch = {"spark.local.dir": str(tmp_path_factory.mktemp("scratch"))}
    with running(SparkSettings("local[2]", "fold-tests", CONF | scratch)) as found:
        yield found


class Lake:
    """A lake in a folder, and the fold of it. The folder's name has what patterns are made of."""

    def __init__(self, session: Session, folder: Path, sizes: Sizes | None = None) -> None:
        self.root = folder / "a lake [1] {b}"
        self.root.mkdir()
        self.work = SparkFold(session, str(self.root), {}, SCOPE, sync=False, sizes=sizes or Sizes())
        self._attempts = 0

    def fold(self, head: Head, segments: list[str]) -> Folded:
        return asyncio.run(self.work.fold(head, segments, self._into()))

    def merge(self, head: Head, *folded: Folded) -> tuple[StateFile, ...]:
        return asyncio.run(self.work.merge(head, [file for one in folded for file in one.files], self._into()))

    def states(self, head: Head, files: tuple[StateFile, ...]) -> dict[str, State]:
        """The rows of files by their key, as the model has them; every key at most once."""
        found: dict[str, State] = {table.name: {} for table in tables_of(head)}
        for table in tables_of(head):
            for file in (one for one in files if one.table == table.name):
                for row in rows_of(table, self.read(file)):
                    key = tuple(row[name] for name in table.key_names)
                    assert key not in found[table.name]
                    found[table.name][key] = row
        return found

    def read(self, file: StateFile) -> Any:
        return pq.read_table(self.root / file.key)

    def _into(self) -> str:
        self._attempts += 1
        return ulid(5000 + self._attempts)


@pytest.fixture
def lake(session: Session, tmp_path: Path) -> Iterator[Lake]:
    made = Lake(session, tmp_path)
    yield made
    made.work.close()


@pytest.mark.parametrize(("seed", "head"), list(enumerate(HEADS)))
def test_a_history_folds_to_the_rows_of_the_model(lake: Lake, head: Head, seed: int) -> None:
    events = History(random.Random(seed)).events(head, 120)
    names = write_segments(lake.root, events, 40)
    expected = states(head, events)
    whole = lake.fold(head, names)
    assert whole.events == len(events)
    assert not whole.refused
    assert lake.states(head, whole.files) == expected

    # A part, then the rest with some of it again, in another order; then both merged.
    first, rest = lake.fold(head, names[:2]), lake.fold(head, [*names[3:], names[1], names[2]])
    assert lake.states(head, lake.merge(head, rest, first)) == expected


def test_files_say_what_is_in_them(lake: Lake) -> None:
    events = History(random.Random(7)).events(Head.EXECUTION, 60)
    names = write_segments(lake.root, events, 100)
    folded = lake.fold(Head.EXECUTION, names)
    assert {file.table for file in folded.files} == {table.name for table in tables_of(Head.EXECUTION)}
    assert folded.writers == ((ulid(1), 1),)
    for table in tables_of(Head.EXECUTION):
        (file,) = [one for one in folded.files if one.table == table.name]
        data = (lake.root / file.key).read_bytes()
        assert (file.bytes, file.checksum) == (len(data), hashlib.sha256(data).hexdigest())
        key = parse(file.key)
        assert isinstance(key, StateFileKey)
        assert (key.head, key.table) == (Head.EXECUTION, table.name)
        rows = list(rows_of(table, lake.read(file)))
        assert lake.read(file).schema == arrow_schema(table)
        assert file.rows == len(rows)
        assert file.buckets == tuple(sorted({row[BUCKET] for row in rows}))
        assert all(row[BUCKET] == bucket_of(row[table.spread_by]) for row in rows)
        keys = [tuple(row[name] for name in (BUCKET, *table.key_names)) for row in rows]
        assert keys == sorted(keys)
        assert file.least == tuple(min(row[name] for row in rows) for name in table.key_names)
        assert file.greatest == tuple(max(row[name] for row in rows) for name in table.key_names)
        positions = [event.position for event in events]
        assert (file.first_position, file.last_position) == (min(positions), max(positions))
        footer = pq.read_metadata(lake.root / file.key).row_group(0).column(1)
        assert footer.compression == "ZSTD"
        assert footer.statistics.has_min_max


def test_what_no_event_speaks_of_has_no_file(lake: Lake) -> None:
    (event, *_) = [
        one for one in History(random.Random(1)).events(Head.EXECUTION, 50) if one.type.endswith("run_created.v1")
    ]
    names = write_segments(lake.root, [event], 1)
    folded = lake.fold(Head.EXECUTION, names)
    assert [file.table for file in folded.files] == ["runs"]
    written = lake.root.rglob("*.parquet")
    assert [path.relative_to(lake.root).as_posix() for path in written] == [folded.files[0].key]


def test_many_buckets_are_packed_into_files_of_their_size(session: Session, tmp_path: Path) -> None:
    lake = Lake(session, tmp_path, Sizes(segments_per_task=1, rows_per_file=100))
    events = _many_runs(1500)
    names = write_segments(lake.root, events, 100)
    folded, again = lake.fold(Head.EXECUTION, names), lake.fold(Head.EXECUTION, names[3:])
    # One file of each task, and none for tables that nobody speaks of.
    assert len(folded.files) == len(again.files) == session.spark.sparkContext.defaultParallelism
    base = lake.merge(Head.EXECUTION, folded, again)
    lake.work.close()
    assert lake.states(Head.EXECUTION, base) == states(Head.EXECUTION, events)
    # A bucket lies in one file, so who looks for a key opens one.
    buckets = [bucket for file in base for bucket in file.buckets]
    assert len(buckets) == len(set(buckets))
    assert 10 < len(base) < 40


def test_a_file_that_is_damaged_is_named_and_nothing_is_merged(lake: Lake) -> None:
    events = History(random.Random(9)).events(Head.QUALITY, 30)
    folded = lake.fold(Head.QUALITY, write_segments(lake.root, events, 30))
    file = next(one for one in folded.files if one.table == "quality_results")
    path = lake.root / file.key
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(CorruptObject, match=file.key):
        lake.merge(Head.QUALITY, folded)
    path.unlink()
    with pytest.raises(NotFound, match=file.key):
        lake.merge(Head.QUALITY, folded)
    assert list(path.parent.glob("*.parquet")) == []


def test_one_event_may_be_very_many_rows(lake: Lake) -> None:
    told = [one for one in History(random.Random(3)).events(Head.EXECUTION, 80) if one.source == SERVO]
    base = next(one for one in told if "materialization" in one.type)
    days = {"partitions": [{"date": ["1900-01-01", "2100-01-01"]}], "grain": {"date": "daily"}, "file_stats": []}
    event = _changed(base, data={**base.data, **days})
    names = write_segments(lake.root, [event], 1)
    folded = lake.fold(Head.EXECUTION, names)
    rows = {file.table: file.rows for file in folded.files}
    assert rows == {"materializations": 73049, "partitions": 73049, "publishes": 1}
    assert lake.states(Head.EXECUTION, folded.files) == states(Head.EXECUTION, [event])


def test_what_cannot_be_folded_is_refused_and_stops_nothing(lake: Lake) -> None:
    events = History(random.Random(5)).events(Head.EXECUTION, 30)
    wrong = _changed(events[0], id=ulid(70), data={**events[0].data, "run_id": 5})
    later = _changed(events[1], id=ulid(71), type=EventType("execution.run_created.v2"))
    good = write_segments(lake.root, [*events, wrong, later], 8)
    bad = write_segments(lake.root, events[:3], 8, number=50)
    cut = (lake.root / bad[0]).read_bytes()[:-9]
    (lake.root / bad[0]).write_bytes(cut)
    folded = lake.fold(Head.EXECUTION, [*good, *bad])
    assert folded.events == len(events)
    assert lake.states(Head.EXECUTION, folded.files) == states(Head.EXECUTION, events)
    refused = {one.event_id: one for one in folded.refused}
    assert set(refused) == {wrong.id, later.id, None}
    assert (refused[wrong.id].line, refused[wrong.id].unknown) == (encode(wrong), False)
    assert "run_id" in refused[wrong.id].reason
    assert refused[later.id].unknown
    assert refused[None].segment == bad[0]
    assert "cut off" in refused[None].reason


def test_a_segment_that_is_gone_is_said_to_be(lake: Lake) -> None:
    names = write_segments(lake.root, History(random.Random(2)).events(Head.QUALITY, 10), 5)
    (lake.root / names[1]).unlink()
    with pytest.raises(NotFound):
        lake.fold(Head.QUALITY, names)


def test_what_fails_on_an_executor_is_said_and_can_be_done_again(lake: Lake, session: Session) -> None:
    names = write_segments(lake.root, History(random.Random(2)).events(Head.QUALITY, 10), 5)
    wrong = SparkFold(session, str(lake.root), {"no_such_option": "1"}, SCOPE)
    with pytest.raises(Unavailable, match="no_such_option"):
        asyncio.run(wrong.fold(Head.QUALITY, names, ulid(1)))
    wrong.close()
    assert lake.fold(Head.QUALITY, names).files


def test_tasks_say_the_same_as_a_query_and_without_one(lake: Lake, session: Session) -> None:
    names = write_segments(lake.root, History(random.Random(6)).events(Head.QUALITY, 30), 10)
    place = Place(str(lake.root), {}, SCOPE, ulid(7), sync=False)
    tasks = [FoldTask(Head.QUALITY, (name,), place, 1000) for name in names]
    ways = [by_partition(session.spark.sparkContext, tasks), by_query(session.spark, tasks)]
    one, other = [[msgspec.json.decode(said, type=Said) for said in way] for way in ways]
    assert [said.reports for said in one] == [said.reports for said in other]
    assert [[report.segment for report in said.reports] for said in one] == [[name] for name in names]
    assert [[file.checksum for file in said.files] for said in one] == [
        [file.checksum for file in said.files] for said in other
    ]


def _changed(event: Event, **attributes: Any) -> Event:
    return Event(**{**{name: getattr(event, name) for name in event.__struct_fields__}, **attributes})


def _many_runs(count: int) -> list[Event]:
    made = History(random.Random(11)).events(Head.EXECUTION, 80)
    created = next(one for one in made if one.type.endswith("run_created.v1"))
    return [
        _changed(
            created,
            id=ulid(10_000 + number),
            position=ulid(20_000 + number),
            data={**created.data, "run_id": ulid(number), "triggered_by": f"{number:064x}"},
        )
        for number in range(count)
    ]

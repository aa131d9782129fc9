"""`arco maintain` on real Spark: the same rows in fewer files, as PyIceberg and DuckDB read them, whoever commits meanwhile."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.expressions import EqualTo
from pyiceberg.manifest import DataFileContent
from pyiceberg.table import StaticTable

from arco.catalog.policy import LocationPolicy
from arco.fold.spark_session import Session
from arco.iceberg.changes import SetProperties
from arco.iceberg.metadata import TableMetadata
from arco.ledger.materializations import MATERIALIZATION
from arco.ledger.run_state import RunState, TaskStatus
from arco.servo.execute.maintaining import Maintenance, Surveyed
from arco.servo.execute.snapshots import ReplaceAll
from arco.servo.execute.spark_read import read_table
from arco.servo.execute.spark_types import iceberg_schema
from arco.servo.execute.spark_write import write
from arco.servo.execute.standing import CONTENT, content_id, content_snapshot, is_external
from arco.servo.execute.target import Target
from fixtures.servo.deletes import commit_deletes
from fixtures.servo.frames import MARKS
from fixtures.servo.lake import Lake, data_file

from .duckdb_session import duckdb_session
from .spark_local import opened

pytest_plugins = ["tests.integration.spark_local"]
pytestmark = MARKS


def table_of(
    home: Lake, session: Session, appends: int, parts: Sequence[tuple[str, str]] = (), **more: Any
) -> TableMetadata:
    """A table `t` that was appended to so often, ten rows of two days each time."""
    frame = rows_of(session, 0)
    schema = iceberg_schema(frame.schema)
    ids = {field["name"]: field["id"] for field in schema["fields"]}
    fields = [{"name": f"{column}_{how[:5]}", "transform": how, "source-id": ids[column]} for how, column in parts]
    home.create("t", schema, partition_spec={"fields": fields}, **more)
    for number in range(appends):
        append(home, session, number)
    return home.load("t")


def rows_of(session: Session, number: int) -> Any:
    return session.spark.range(number * 10, number * 10 + 10).selectExpr(
        "id", "date_add(date'2025-01-01', cast(id % 2 as int)) day", "concat('v', id) value"
    )


def append(home: Lake, session: Session, number: int) -> None:
    table = home.load("t")
    made = home.materialization()
    written = write(rows_of(session, number), Target.of(table, made, 1), home.io)
    home.publish("t", table, written, materialization_id=made)


def maintenance(home: Lake, **more: Any) -> Maintenance:
    return Maintenance(catalog=home.another(), options={}, by="tests", **more)


def surveyed(home: Lake, work: Maintenance) -> list[Surveyed]:
    entry = home.run(home.another().tables.load(("db",), "t"))[0]
    return home.run(work.survey([entry]))


def maintained(home: Lake, session: Session, work: Maintenance | None = None) -> RunState:
    work = work or maintenance(home)
    found = surveyed(home, work)
    started = home.run(work.start(found))
    assert started is not None
    return home.run(work.drive(started, found, opened(session)))


def everything(session: Session, table: TableMetadata, home: Lake) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in read_table(session.spark, table, home.io).collect())


def test_the_same_rows_are_in_fewer_files_for_every_reader(home: Lake, session: Session, tmp_path: Path) -> None:
    before = table_of(home, session, 6, (("identity", "day"),))
    rows = everything(session, before, home)
    state = maintained(home, session)
    assert {its.status for its in state.tasks.values()} == {TaskStatus.SUCCEEDED}
    after = home.load("t")
    assert len(rows) == 60
    assert everything(session, after, home) == rows
    assert len(home.paths(after)) == 2, "one file a day"
    assert len(home.paths(before)) == 12
    theirs = StaticTable.from_metadata(home.location("t")).scan().to_arrow().to_pylist()
    assert sorted((row["id"], row["day"], row["value"]) for row in theirs) == rows
    old = StaticTable.from_metadata(home.location("t")).scan(snapshot_id=before.current_snapshot_id).to_arrow()
    assert old.num_rows == 60, "what was there before can be read as it was"
    with duckdb_session(tmp_path / "duck") as duck:
        assert duck.one(f"SELECT count(*) FROM iceberg_scan('{home.location('t')}')") == 60
        assert duck.one(f"SELECT sum(id) FROM iceberg_scan('{home.location('t')}')") == sum(row[0] for row in rows)


def test_a_table_of_the_first_format_version_is_rewritten_and_stays_one(
    home: Lake, session: Session, tmp_path: Path
) -> None:
    table_of(home, session, 0, (("identity", "day"),), properties={"format-version": "1"})
    for number in range(6):
        target = Target.of(home.load("t"), home.materialization(), 1)
        home.append_to_v1("t", write(rows_of(session, number), target, home.io).files, number + 1)
    before = home.load("t")
    rows = everything(session, before, home)
    assert (before.format_version, len(rows), len(home.paths(before))) == (1, 60, 12)
    state = maintained(home, session)
    assert {its.status for its in state.tasks.values()} == {TaskStatus.SUCCEEDED}
    after = home.load("t")
    assert after.format_version == 1
    assert "sequence-number" not in after.snapshots[-1]
    assert everything(session, after, home) == rows
    assert len(home.paths(after)) == 2
    theirs = StaticTable.from_metadata(home.location("t")).scan(EqualTo("id", 7)).to_arrow().to_pylist()
    assert [row["value"] for row in theirs] == ["v7"]
    with duckdb_session(tmp_path / "duck") as duck:
        assert duck.one(f"SELECT sum(id) FROM iceberg_scan('{home.location('t')}')") == sum(row[0] for row in rows)


def test_the_snapshot_says_that_no_row_changed(home: Lake, session: Session) -> None:
    before = table_of(home, session, 6)
    maintained(home, session)
    after = home.load("t")
    summaries = [
        one["summary"] for one in after.snapshots if one["snapshot-id"] not in {s["snapshot-id"] for s in before.snapshots}
    ]
    assert [one["operation"] for one in summaries] == ["replace", "replace"], "the files, then the manifests"
    assert (summaries[0]["added-data-files"], summaries[0]["deleted-data-files"]) == ("1", str(len(home.paths(before))))
    assert summaries[0]["added-records"] == summaries[0]["deleted-records"] == "60"
    assert {one["total-records"] for one in summaries} == {"60"}
    assert {one[CONTENT] for one in summaries} == {str(content_id(before))}, "which one changed rows, though it may expire"
    assert content_snapshot(after) == content_snapshot(before), "nothing that was made of it is stale"
    assert not is_external(after, {content_snapshot(before)["summary"].get(MATERIALIZATION)})


def test_manifests_are_merged_and_say_the_same_of_their_files(home: Lake, session: Session) -> None:
    table_of(home, session, 6, (("identity", "day"),), properties={"write.target-file-size-bytes": "1"})
    before = home.load("t")
    entries = {one.data_file.file_path: (one.snapshot_id, one.sequence_number) for one in home.entries(before)}
    (found,) = surveyed(home, maintenance(home))
    assert not found.rewriting.groups, "every file is large enough"
    assert len(found.rewriting.manifests) == 6
    maintained(home, session)
    after = home.load("t")
    assert {one.data_file.file_path: (one.snapshot_id, one.sequence_number) for one in home.entries(after)} == entries
    summary = after.snapshots[-1]["summary"]
    assert (summary["manifests-replaced"], summary["manifests-created"]) == ("6", "1")
    assert StaticTable.from_metadata(home.location("t")).scan(EqualTo("day", "2025-01-02")).to_arrow().num_rows == 30


def test_deleted_rows_are_left_out(home: Lake, session: Session, tmp_path: Path) -> None:
    before = table_of(home, session, 2)
    path = f"{before.location}/data/{home.paths(before)[0]}"
    place = f"{before.location}/data/deletes.parquet"
    pq.write_table(
        pa.table({"file_path": [path, path], "pos": pa.array([0, 1], pa.int64())}), place.removeprefix("file://")
    )
    size = Path(place.removeprefix("file://")).stat().st_size
    file = data_file(before, "deletes.parquet", rows=2, content=DataFileContent.POSITION_DELETES, file_size_in_bytes=size)
    commit_deletes(home, "t", [file])
    rows = everything(session, home.load("t"), home)
    assert len(rows) == 18
    (found,) = surveyed(home, maintenance(home))
    assert [group.why for group in found.rewriting.groups] == ["rows may have been deleted from 4 of 4 files"]
    maintained(home, session)
    assert everything(session, home.load("t"), home) == rows
    assert StaticTable.from_metadata(home.location("t")).scan().to_arrow().num_rows == 18


def test_appends_meanwhile_stay_and_deletes_meanwhile_win(home: Lake, session: Session) -> None:
    table_of(home, session, 6)
    work = maintenance(home)
    found = surveyed(home, work)
    started = home.run(work.start(found))
    append(home, session, 7)
    state = home.run(work.drive(started, found, opened(session)))
    assert {its.status for its in state.tasks.values()} == {TaskStatus.SUCCEEDED}
    assert len(everything(session, home.load("t"), home)) == 70
    for number in range(8, 14):
        append(home, session, number)
    found = surveyed(home, work)
    started = home.run(work.start(found))
    table = home.load("t")
    home.publish("t", table, (), ReplaceAll())
    state = home.run(work.drive(started, found, opened(session)))
    failed = [its.failure.message for its in state.tasks.values() if its.failure is not None]
    assert any("no longer in the table" in text for text in failed)
    assert everything(session, home.load("t"), home) == [], "what was deleted did not come back"


def test_the_sort_order_is_kept(home: Lake, session: Session) -> None:
    order = {"fields": [{"transform": "identity", "source-id": 1, "direction": "desc", "null-order": "nulls-last"}]}
    table_of(home, session, 6, write_order=order)
    maintained(home, session)
    after = home.load("t")
    (entry,) = home.entries(after)
    assert entry.data_file.sort_order_id == after.default_sort_order_id != 0
    rows = session.spark.read.parquet(entry.data_file.file_path).collect()
    assert [row["id"] for row in rows] == sorted((row["id"] for row in rows), reverse=True)


def test_the_file_size_that_the_table_asks_for_is_kept(home: Lake, session: Session) -> None:
    table_of(home, session, 6)
    size = sum(one.data_file.file_size_in_bytes for one in home.entries(home.load("t")))
    home.commit("t", SetProperties({"write.target-file-size-bytes": str(size // 2)}))
    maintained(home, session)
    assert len(home.paths(home.load("t"))) >= 2


def test_a_table_of_version_3_is_refused_by_name(home: Lake, session: Session) -> None:
    table_of(home, session, 0, properties={"format-version": "3"})
    (found,) = surveyed(home, maintenance(home))
    assert found.refused is not None
    assert "format version 3" in found.refused
    assert home.run(maintenance(home).start([found])) is None


def test_a_run_that_was_left_is_gone_on_with_by_the_same_command(home: Lake, session: Session) -> None:
    table_of(home, session, 6)
    work = maintenance(home)
    started = home.run(work.start(surveyed(home, work)))
    again = home.run(work.start(surveyed(home, work)))
    assert started is not None
    assert again is not None
    assert (again.log.run, again.is_new) == (started.log.run, False)
    state = home.run(work.drive(again, surveyed(home, work), opened(session)))
    assert state.is_finished
    assert home.run(work.start(surveyed(home, work))) is None, "there is nothing left to do"


def test_nothing_to_do_is_no_run(home: Lake, session: Session) -> None:
    table_of(home, session, 2)
    assert home.run(maintenance(home).start(surveyed(home, maintenance(home)))) is None


def test_a_table_outside_the_root_is_rewritten_where_it_is_allowed(home: Lake, session: Session, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    home.policy = LocationPolicy.of([f"file:{outside}"], home.clock, home.entropy)
    home.catalog = home.another()
    before = table_of(home, session, 6, location=f"file://{outside}/t")
    rows = everything(session, before, home)
    state = maintained(home, session)
    assert {its.status for its in state.tasks.values()} == {TaskStatus.SUCCEEDED}
    after = home.load("t")
    assert everything(session, after, home) == rows
    assert after.location == f"file://{outside}/t"
    assert len(home.paths(after)) == 1

"""The same rows in other files: what is chosen, what the snapshot says, and whose commit wins."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.manifest import DataFile, DataFileContent

from arco.catalog.catalog import Catalog
from arco.catalog.policy import LocationPolicy
from arco.iceberg.metadata import TableMetadata
from arco.kernel.errors import InvalidInput, PartitionsTouched
from arco.servo.execute import snapshots
from arco.servo.execute.located import read_located
from arco.servo.execute.publish import Publisher
from arco.servo.execute.rewriting import files_to_rewrite, manifests_to_merge, refuse_other_formats, target_bytes
from arco.servo.execute.scans import plan_scan
from arco.servo.execute.snapshots import Compact, MergeManifests, ReplaceAll
from arco.servo.execute.table_files import TableFiles
from arco.servo.execute.table_state import state_of
from fixtures.servo.deletes import commit_deletes
from fixtures.servo.lake import Lake, data_file

SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}
MIB = 1024 * 1024


@pytest.fixture
def lake() -> Iterator[Lake]:
    with Lake() as found:
        yield found


def appended(lake: Lake, count: int = 3, first: int = 0) -> TableMetadata:
    for number in range(first, first + count):
        table = lake.load("t")
        lake.publish("t", table, (data_file(table, f"{number}.parquet"),), task_id=f"append {number}")
    return lake.load("t")


def of_files(table: TableMetadata, *numbers: int) -> Compact:
    return Compact(frozenset(f"{table.location}/data/{number}.parquet" for number in numbers))


def test_files_of_a_table_at_an_allowed_place_are_read_and_written_there(lake: Lake, tmp_path: Path) -> None:
    allowed = LocationPolicy.of([f"file:{tmp_path}"], lake.clock, lake.entropy)
    scope = lake.catalog.parts.scope
    parts = Catalog.open(lake.store, lake.root, scope, lake.clock, lake.entropy, allowed).parts
    location = f"file://{tmp_path}/t/metadata/m0.avro"
    lake.run(TableFiles(parts).write({location: b"manifest"}))
    assert (tmp_path / "t/metadata/m0.avro").read_bytes() == b"manifest"
    assert lake.run(read_located(parts, location)) == b"manifest"
    with pytest.raises(InvalidInput, match="outside the root"):
        lake.run(TableFiles(lake.catalog.parts).write({location: b"manifest"}))
    with pytest.raises(InvalidInput, match="outside the root"):
        lake.run(read_located(lake.catalog.parts, location))


def test_files_that_are_cut_by_their_rows_are_not_written_again_and_again(tmp_path: Path) -> None:
    """A partition with rows far narrower than the table's average: its files have all the rows that a file gets."""

    def files(table: TableMetadata, name: str, rows: int, size_bytes: int) -> tuple[DataFile, ...]:
        return tuple(data_file(table, f"{name}{one}", rows=rows, file_size_in_bytes=size_bytes) for one in range(6))

    with Lake(tmp_path) as lake:
        lake.create("t", SCHEMA, properties={"write.target-file-size-bytes": str(10 * MIB)})
        table = lake.load("t")
        lake.publish("t", table, files(table, "wide", 1_000, 10 * MIB), task_id="wide")
        lake.publish("t", lake.load("t"), files(table, "cut", 2_500, 2 * MIB), task_id="cut")
        assert files_to_rewrite(lake.load("t"), lake.io).left == {"large enough": 12}
        lake.publish("t", lake.load("t"), files(table, "few", 50, MIB), task_id="few")
        (group,) = files_to_rewrite(lake.load("t"), lake.io).groups
        assert [one.location.rpartition("/")[2] for one in group.files] == [f"few{one}" for one in range(6)]


def manifests(lake: Lake) -> list[str]:
    found = lake.run(Publisher(lake.catalog)._files.manifests(state_of(lake.load("t"))))
    return [one.manifest_path for one in found]


def test_files_become_one_and_the_snapshot_says_that_no_row_changed(lake: Lake) -> None:
    lake.create("t", SCHEMA)
    table = appended(lake)
    lake.publish("t", table, (data_file(table, "together.parquet", rows=20),), of_files(table, 0, 1))
    after = lake.load("t")
    assert lake.paths(after) == ["2.parquet", "together.parquet"]
    said = after.snapshots[-1]["summary"]
    assert (said["operation"], said["added-data-files"], said["deleted-data-files"]) == ("replace", "1", "2")
    assert said["total-records"] == "30"
    assert after.snapshots[-1]["parent-snapshot-id"] == table.current_snapshot_id


def test_an_append_meanwhile_is_kept(lake: Lake) -> None:
    lake.create("t", SCHEMA)
    table = appended(lake)
    one = lake.publication("t", table, (data_file(table, "together.parquet", rows=30),), of_files(table, 0, 1, 2))
    appended(lake, 1, first=3)
    assert lake.publish(one).rebases == 1
    assert lake.paths(lake.load("t")) == ["3.parquet", "together.parquet"]


def test_rows_that_are_deleted_meanwhile_do_not_come_back(lake: Lake) -> None:
    """A file of deletes speaks of rows where they were: in another file they would be there again."""
    lake.create("t", SCHEMA)
    table = appended(lake)
    one = lake.publication("t", table, (data_file(table, "together.parquet", rows=30),), of_files(table, 0, 1, 2))
    commit_deletes(lake, "t", [data_file(table, "deletes.parquet", rows=1, content=DataFileContent.POSITION_DELETES)])
    with pytest.raises(PartitionsTouched, match="changed rows"):
        lake.publish(one)
    assert "together.parquet" not in lake.paths(lake.load("t"))


def test_files_that_are_replaced_meanwhile_do_not_come_back(lake: Lake) -> None:
    lake.create("t", SCHEMA)
    table = appended(lake)
    one = lake.publication("t", table, (data_file(table, "together.parquet", rows=30),), of_files(table, 0, 1, 2))
    lake.publish("t", table, (data_file(table, "new.parquet"),), ReplaceAll(), task_id="another")
    with pytest.raises(PartitionsTouched):
        lake.publish(one)
    assert lake.paths(lake.load("t")) == ["new.parquet"]


def test_files_that_are_gone_before_it_begins_do_not_come_back(lake: Lake) -> None:
    lake.create("t", SCHEMA)
    table = appended(lake)
    lake.publish("t", table, (data_file(table, "new.parquet"),), ReplaceAll(), task_id="another")
    now = lake.load("t")
    with pytest.raises(PartitionsTouched, match="no longer in the table"):
        lake.publish("t", now, (data_file(now, "together.parquet", rows=30),), of_files(table, 0, 1, 2))


def test_manifests_are_merged_on_whatever_base_there_is(lake: Lake) -> None:
    lake.create("t", SCHEMA)
    table = appended(lake, 5)
    entries = {one.data_file.file_path: (one.snapshot_id, one.sequence_number) for one in lake.entries(table)}
    one = lake.publication("t", table, (), MergeManifests(8 * MIB))
    appended(lake, 1, first=5)
    lake.publish(one)
    after = lake.load("t")
    assert len(manifests(lake)) == 1
    found = {one.data_file.file_path: (one.snapshot_id, one.sequence_number) for one in lake.entries(after)}
    assert entries.items() <= found.items()
    assert len(found) == 6
    said = after.snapshots[-1]["summary"]
    assert (said["operation"], said["manifests-replaced"], said["manifests-created"]) == ("replace", "6", "1")
    assert said["total-data-files"] == "6"


def test_manifests_are_merged_up_to_the_size_that_the_table_asks_for(lake: Lake) -> None:
    lake.create("t", SCHEMA)
    table = appended(lake, 4)
    (small,) = {len(lake.run(read_located(lake.catalog.parts, path))) // 1000 for path in manifests(lake)}
    lake.publish("t", table, (), MergeManifests((small + 1) * 1000 * 2))
    assert 1 < len(manifests(lake)) < 4


def test_manifests_that_are_full_of_entries_are_not_merged_again_and_again(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table of many files was rewritten by every call of `arco maintain`, to the same manifests."""
    monkeypatch.setattr(snapshots, "_ENTRIES_PER_MANIFEST", 2)
    lake.create("t", SCHEMA)
    table = appended(lake, 11)
    lake.publish("t", table, (), MergeManifests(8 * MIB))
    merged = lake.load("t")
    found = lake.run(Publisher(lake.catalog)._files.manifests(state_of(merged)))
    assert [one.existing_files_count for one in found] == [2, 2, 2, 2, 2, 1]
    assert manifests_to_merge(merged, found, 2) == ()
    after = appended(lake, 1, first=11)
    found = lake.run(Publisher(lake.catalog)._files.manifests(state_of(after)))
    assert len(manifests_to_merge(after, found, 2)) == 2, "what is left, and what came since"


def test_few_manifests_are_left_alone(lake: Lake) -> None:
    lake.create("t", SCHEMA)
    table = appended(lake, 4)
    found = lake.run(Publisher(lake.catalog)._files.manifests(state_of(table)))
    assert manifests_to_merge(table, found, 5) == ()
    assert len(manifests_to_merge(table, found, 4)) == 4


def test_files_of_the_first_format_version_are_data_and_are_rewritten(tmp_path: Path) -> None:
    with Lake(tmp_path) as lake:
        table = lake.create("t", SCHEMA, properties={"format-version": "1"})
        for number in range(3):
            lake.append_to_v1("t", (data_file(table, f"{number}.parquet"),), number + 1)
        table = lake.load("t")
        assert len(plan_scan(table, lake.io).files) == 3
        lake.publish("t", table, (data_file(table, "together.parquet", rows=20),), of_files(table, 0, 1), task_id="files")
        lake.publish("t", lake.load("t"), (), MergeManifests(8 * MIB), task_id="manifests")
        after = lake.load("t")
        assert after.format_version == 1
        assert all("sequence-number" not in one for one in after.snapshots)
        assert sorted(one.location.rpartition("/")[2] for one in plan_scan(after, lake.io).files) == [
            "2.parquet",
            "together.parquet",
        ]
        assert len(manifests(lake)) == 1
        with pytest.raises(InvalidInput, match="format version 1"):
            lake.publish("t", after, (data_file(table, "more"),), task_id="append")


def test_other_format_versions_are_refused_by_name(lake: Lake) -> None:
    table = lake.create("t", SCHEMA, properties={"format-version": "3"})
    with pytest.raises(InvalidInput, match="format version 3"):
        refuse_other_formats(table)


def test_a_size_that_is_no_number_is_refused(lake: Lake) -> None:
    table = lake.create("t", SCHEMA, properties={"write.target-file-size-bytes": "large"})
    with pytest.raises(InvalidInput, match="target-file-size"):
        target_bytes(table)

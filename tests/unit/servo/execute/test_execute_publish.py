"""Publishing: what is visible afterwards, whoever else commits, whatever reply is lost, whoever dies."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from pyiceberg.expressions import And, EqualTo, GreaterThanOrEqual, LessThan
from pyiceberg.manifest import DataFileContent

from arco.catalog.once import refused
from arco.iceberg import changes
from arco.iceberg.shape import LAST_ADDED
from arco.kernel import crash_points
from arco.kernel.clock import SystemClock
from arco.kernel.errors import Fenced, InvalidInput, NoSuchTable, PartitionsTouched
from arco.kernel.ids import TimedIdempotencyKey
from arco.ledger.materializations import INPUT_SNAPSHOTS
from arco.servo.execute.publish import MATERIALIZATION, Publisher
from arco.servo.execute.snapshots import Append, AppendNext, Replace, ReplaceAll, Rewrite
from arco.servo.execute.table_state import state_of
from arco.servo.schedule.publish_keys import publish_key
from fixtures.servo.deletes import commit_deletes
from fixtures.servo.lake import Lake, data_file
from stand_ins.scripted_store import LostReplies

SCHEMA = {
    "type": "struct",
    "fields": [
        {"id": 1, "name": "id", "required": False, "type": "long"},
        {"id": 2, "name": "day", "required": False, "type": "date"},
    ],
}
BY_DAY = {"fields": [{"name": "day", "transform": "identity", "source-id": 2}]}
DAY_1, DAY_2, DAY_3 = 20089, 20090, 20091


@pytest.fixture
def lake():
    with Lake() as found:
        yield found


@pytest.fixture
def table(lake):
    return lake.create("t", SCHEMA, partition_spec=BY_DAY)


def day(number: int) -> Replace:
    return Replace(EqualTo("day", f"2025-01-0{number}"))


def summary(table) -> dict[str, str]:
    current = next(one for one in table.snapshots if one["snapshot-id"] == table.current_snapshot_id)
    return current["summary"]


# What becomes visible


def test_a_first_publish_creates_the_table_with_its_rows(lake):
    staged = lake.stage("t", SCHEMA, partition_spec=BY_DAY)
    with pytest.raises(NoSuchTable):
        lake.load("t")
    done = lake.publish("t", staged, (data_file(staged, "a", DAY_1),), creates=True)
    after = lake.load("t")
    assert lake.paths(after) == ["a"]
    assert (after.table_uuid, after.current_snapshot_id) == (staged.table_uuid, done.snapshot_id)


def test_an_append_adds_to_what_is_there(lake, table):
    lake.publish("t", table, (data_file(table, "a", DAY_1),))
    lake.publish("t", lake.load("t"), (data_file(table, "b", DAY_1),))
    after = lake.load("t")
    assert lake.paths(after) == ["a", "b"]
    assert summary(after)["operation"] == "append"
    assert (summary(after)["total-records"], summary(after)["total-data-files"]) == ("20", "2")


def test_a_replacement_takes_away_exactly_the_files_of_its_partitions(lake, table):
    files = (data_file(table, "a", DAY_1), data_file(table, "b", DAY_2), data_file(table, "c", DAY_3))
    lake.publish("t", table, files)
    where = And(GreaterThanOrEqual("day", "2025-01-01"), LessThan("day", "2025-01-03"))
    lake.publish("t", lake.load("t"), (data_file(table, "new", DAY_1, rows=1),), Replace(where))
    after = lake.load("t")
    assert lake.paths(after) == ["c", "new"]
    assert (summary(after)["operation"], summary(after)["deleted-records"]) == ("overwrite", "20")
    assert summary(after)["total-records"] == "11"


def test_the_files_that_stay_keep_their_sequence_numbers(lake, table):
    lake.publish("t", table, (data_file(table, "a", DAY_1), data_file(table, "b", DAY_2)))
    lake.publish("t", lake.load("t"), (data_file(table, "new", DAY_1),), day(1))
    kept = {one.data_file.file_path.rpartition("/")[2]: one for one in lake.entries(lake.load("t"))}
    assert (kept["b"].sequence_number, kept["new"].sequence_number) == (1, 2)
    assert kept["b"].snapshot_id != kept["new"].snapshot_id


def test_a_replacement_of_an_empty_partition_is_an_append_to_readers_of_changes(lake, table):
    lake.publish("t", table, (data_file(table, "a", DAY_1),))
    lake.publish("t", lake.load("t"), (data_file(table, "b", DAY_2),), day(2))
    assert summary(lake.load("t"))["operation"] == "append"


def test_an_empty_output_empties_its_partitions_and_is_recorded(lake, table):
    lake.publish("t", table, (data_file(table, "a", DAY_1), data_file(table, "b", DAY_2)))
    done = lake.publish("t", lake.load("t"), (), day(1))
    after = lake.load("t")
    assert (lake.paths(after), summary(after)["operation"]) == (["b"], "delete")
    assert after.current_snapshot_id == done.snapshot_id


def test_an_empty_append_is_recorded_too(lake, table):
    done = lake.publish("t", table, ())
    after = lake.load("t")
    assert (lake.paths(after), after.current_snapshot_id) == ([], done.snapshot_id)
    assert summary(after)["arco.run-id"] == "run-1"


def test_a_full_replacement_leaves_nothing_of_before_not_even_deletes(lake, table):
    deletes = data_file(table, "deletes", DAY_1, rows=2, content=DataFileContent.POSITION_DELETES)
    lake.publish("t", table, (data_file(table, "a", DAY_1), data_file(table, "b", DAY_2)))
    add_delete_file(lake, deletes)
    assert "deletes" in lake.paths(lake.load("t"))
    lake.publish("t", lake.load("t"), (data_file(table, "new", DAY_3),), ReplaceAll())
    after = lake.load("t")
    assert lake.paths(after) == ["new"]
    assert (summary(after)["total-delete-files"], summary(after)["total-data-files"]) == ("0", "1")


def test_what_only_told_of_removals_is_not_carried_on(lake, table):
    lake.publish("t", table, (data_file(table, "a", DAY_1),))
    lake.publish("t", lake.load("t"), (), ReplaceAll())
    for name in ("b", "c"):
        lake.publish("t", lake.load("t"), (data_file(table, name, DAY_2),))
    files = Publisher(lake.catalog)._files
    assert len(lake.run(files.manifests(state_of(lake.load("t"))))) == 2


def test_a_rewrite_replaces_the_files_it_names(lake, table):
    lake.publish("t", table, (data_file(table, "a", DAY_1), data_file(table, "b", DAY_1)))
    base = lake.load("t")
    change = Rewrite(EqualTo("day", "2025-01-01"), frozenset({f"{table.location}/data/a"}))
    lake.publish("t", base, (data_file(table, "merged", DAY_1),), change)
    assert lake.paths(lake.load("t")) == ["b", "merged"]


def test_provenance_is_in_the_summary(lake, table):
    one = lake.publication("t", table, (), attempt=3, facts={"arco.plan": "p", "arco.inputs": '{"orders": 7}'})
    lake.publish(one)
    said = summary(lake.load("t"))
    wanted = {
        "arco.run-id": "run-1",
        "arco.task-id": "task-1",
        "arco.attempt": "3",
        "arco.plan": "p",
        "arco.inputs": '{"orders": 7}',
        MATERIALIZATION: one.materialization_id,
    }
    assert {word: said[word] for word in wanted} == wanted


# What is held back


def test_a_branch_holds_an_output_while_main_stays(lake, table):
    lake.publish("t", table, (data_file(table, "good", DAY_1),))
    base = lake.load("t")
    done = lake.publish("t", base, (data_file(table, "bad", DAY_1),), day(1), ref="quarantine_1")
    after = lake.load("t")
    assert after.current_snapshot_id == base.current_snapshot_id
    assert (lake.paths(after), lake.paths(after, ref="quarantine_1")) == (["good"], ["bad"])
    assert after.refs["quarantine_1"]["snapshot-id"] == done.snapshot_id


def test_a_held_back_output_of_a_new_table_creates_it_without_rows_on_main(lake):
    staged = lake.stage("t", SCHEMA)
    lake.publish("t", staged, (data_file(staged, "bad"),), creates=True, ref="quarantine_1")
    after = lake.load("t")
    assert (after.current_snapshot_id, lake.paths(after, ref="quarantine_1")) == (None, ["bad"])


WIDER = {**SCHEMA, "fields": [*SCHEMA["fields"], {"id": 3, "name": "extra", "required": False, "type": "string"}]}


def test_a_schema_changes_in_the_same_commit_as_its_rows(lake, table):
    lake.publish("t", table, (data_file(table, "a", DAY_1),), schema=WIDER)
    after = lake.load("t")
    assert [field["name"] for field in after.current_schema["fields"]] == ["id", "day", "extra"]
    assert after.snapshots[-1]["schema-id"] == after.current_schema_id != table.current_schema_id
    assert len(after.document["metadata-log"]) == 1


def test_a_held_back_output_does_not_change_how_main_is_read(lake, table):
    lake.publish("t", table, (data_file(table, "a", DAY_1),), schema=WIDER, ref="quarantine_1")
    after = lake.load("t")
    assert after.current_schema_id == table.current_schema_id
    held = next(one for one in after.schemas if one["schema-id"] == after.snapshots[-1]["schema-id"])
    assert [field["name"] for field in held["fields"]] == ["id", "day", "extra"]


# What is refused


def test_a_file_with_rows_to_keep_is_not_thrown_away(lake, table):
    unpartitioned = lake.create("u", SCHEMA)
    lake.publish("u", unpartitioned, (data_file(unpartitioned, "a"),))
    with pytest.raises(InvalidInput, match="rows to replace beside rows to keep"):
        lake.publish("u", lake.load("u"), (), day(1))
    assert lake.paths(lake.load("u")) == ["a"]


def test_an_output_outside_its_partitions_is_refused_before_it_is_visible(lake, table):
    with pytest.raises(InvalidInput, match="outside the partitions it replaces"):
        lake.publish("t", table, (data_file(table, "a", DAY_1), data_file(table, "b", DAY_2)), day(1))
    assert lake.load("t").current_snapshot_id is None


def test_rows_without_a_day_are_outside_every_day(lake, table):
    with pytest.raises(InvalidInput, match="outside the partitions it replaces"):
        lake.publish("t", table, (data_file(table, "a", None),), day(1))


@pytest.mark.parametrize("version", ["1", "3"])
def test_tables_of_other_format_versions_are_refused(lake, version):
    table = lake.create("t", SCHEMA, properties={"format-version": version})
    with pytest.raises(InvalidInput, match=f"format version {version}"):
        lake.publish("t", table, ())


# Others commit meanwhile


def test_an_append_goes_on_top_of_whatever_was_committed_meanwhile(lake, table):
    lake.publish("t", table, (data_file(table, "theirs", DAY_1),), catalog=lake.another())
    lake.publish("t", lake.load("t"), (), ReplaceAll(), catalog=lake.another())
    done = lake.publish("t", table, (data_file(table, "ours", DAY_1),))
    assert (lake.paths(lake.load("t")), done.rebases) == (["ours"], 1)


def test_what_follows_a_publish_does_not_go_on_top_of_another_one(lake, table):
    lake.publish("t", table, (data_file(table, "a", DAY_1),))
    base = lake.load("t")
    lake.publish("t", base, (data_file(table, "others", DAY_1),), catalog=lake.another())
    lake.publish("t", base, (data_file(table, "on top", DAY_1),), AppendNext())
    base = lake.load("t")
    facts = {INPUT_SNAPSHOTS: "{}"}
    lake.publish("t", base, (data_file(table, "theirs", DAY_1),), AppendNext(), catalog=lake.another(), facts=facts)
    with pytest.raises(PartitionsTouched, match="was to follow"):
        lake.publish("t", base, (data_file(table, "ours", DAY_1),), AppendNext())
    assert lake.paths(lake.load("t")) == ["a", "on top", "others", "theirs"]


def test_a_replacement_goes_on_top_of_commits_to_other_partitions(lake, table):
    lake.publish("t", table, (data_file(table, "a", DAY_1), data_file(table, "b", DAY_2)))
    base = lake.load("t")
    lake.publish("t", base, (data_file(table, "theirs", DAY_2),), day(2), catalog=lake.another())
    lake.publish("t", base, (data_file(table, "more", DAY_3),), catalog=lake.another())
    done = lake.publish("t", base, (data_file(table, "ours", DAY_1),), day(1))
    assert (lake.paths(lake.load("t")), done.rebases) == (["more", "ours", "theirs"], 1)


@pytest.mark.parametrize("theirs", [Append(), day(1), ReplaceAll()], ids=["append", "replace", "all"])
@pytest.mark.parametrize(
    "ours", [day(1), ReplaceAll(), Rewrite(EqualTo("day", "2025-01-01"), frozenset())], ids=["replace", "all", "rewrite"]
)
def test_two_replacements_of_one_partition_never_both_land(lake, table, theirs, ours):
    lake.publish("t", table, (data_file(table, "a", DAY_1), data_file(table, "b", DAY_2)))
    base = lake.load("t")
    if isinstance(ours, Rewrite):
        ours = replace(ours, files=frozenset({f"{table.location}/data/a"}))
    lake.publish("t", base, (data_file(table, "theirs", DAY_1),), theirs, catalog=lake.another())
    before = lake.load("t")
    with pytest.raises(PartitionsTouched):
        lake.publish("t", base, (data_file(table, "ours", DAY_1),), ours)
    assert lake.load("t").document == before.document


def test_rows_deleted_from_a_partition_meanwhile_are_not_brought_back(lake, table):
    lake.publish("t", table, (data_file(table, "a", DAY_1), data_file(table, "b", DAY_2)))
    base = lake.load("t")
    add_delete_file(lake, data_file(table, "deletes", DAY_1, rows=2, content=DataFileContent.POSITION_DELETES))
    with pytest.raises(PartitionsTouched):
        lake.publish("t", base, (data_file(table, "ours", DAY_1),), day(1))
    lake.publish("t", base, (data_file(table, "ours", DAY_2),), day(2))
    assert lake.paths(lake.load("t")) == ["a", "deletes", "ours"]


def test_a_schema_changed_by_others_stops_a_publish_that_changes_it_too(lake, table):
    lake.commit("t", changes.AddSchema(WIDER), changes.SetCurrentSchema(LAST_ADDED))
    other = {**SCHEMA, "fields": [*SCHEMA["fields"], {"id": 3, "name": "other", "required": False, "type": "int"}]}
    with pytest.raises(PartitionsTouched, match="schema of t was changed"):
        lake.publish("t", table, (data_file(table, "a", DAY_1),), schema=other)


def test_a_table_of_the_same_name_that_another_made_is_not_taken_for_ours(lake):
    staged = lake.stage("t", SCHEMA)
    lake.create("t", SCHEMA)
    with pytest.raises(PartitionsTouched, match="another table now"):
        lake.publish("t", staged, (data_file(staged, "a"),), creates=True)


def test_a_history_that_was_rolled_back_is_not_built_upon(lake, table):
    first = lake.publish("t", table, (data_file(table, "a", DAY_1),))
    lake.publish("t", lake.load("t"), (data_file(table, "b", DAY_1),))
    base = lake.load("t")
    lake.commit("t", changes.SetSnapshotRef("main", first.snapshot_id, "branch"))
    with pytest.raises(PartitionsTouched, match="history"):
        lake.publish("t", base, (data_file(table, "c", DAY_2),), day(2))


# Once, whatever happens


def test_the_key_of_an_attempt_is_its_own():
    keys = {publish_key("r", "t", attempt, rebase, 1_700_000_000_000) for attempt in (1, 2) for rebase in (0, 1)}
    assert len(keys) == 4
    assert all(TimedIdempotencyKey(key).time_ms == 1_700_000_000_000 for key in keys)
    assert publish_key("r", "t", 1, 0, 5) == publish_key("r", "t", 1, 0, 5)
    assert publish_key("r", "t1", 1, 0, 5) != publish_key("rt", "1", 1, 0, 5)


def test_an_output_that_was_published_before_is_adopted(lake, table):
    one = lake.publication("t", table, (data_file(table, "a", DAY_1),))
    first = lake.publish(one)
    again = lake.publish(replace(one, attempt=2, files=(data_file(table, "a2", DAY_1),)))
    assert (again.adopted, again.snapshot_id) == (True, first.snapshot_id)
    newest = lake.load("t")
    assert lake.publish(replace(one, attempt=3, base=newest)).adopted
    assert lake.paths(lake.load("t")) == ["a"]
    assert len(lake.load("t").snapshots) == 1


def test_an_output_that_others_published_over_is_adopted(lake, table):
    one = lake.publication("t", table, (data_file(table, "a", DAY_1),))
    first = lake.publish(one)
    lake.publish("t", lake.load("t"), (data_file(table, "theirs", DAY_2),), catalog=lake.another())
    again = lake.publish(replace(one, attempt=2, base=lake.load("t"), files=(data_file(table, "a2", DAY_1),)))
    assert (again.adopted, again.snapshot_id) == (True, first.snapshot_id)
    assert lake.paths(lake.load("t")) == ["a", "theirs"]


def test_a_new_table_that_an_earlier_attempt_made_is_adopted(lake):
    staged = lake.stage("t", SCHEMA)
    one = lake.publication("t", staged, (data_file(staged, "a"),), creates=True)
    lake.publish(one)
    assert lake.publish(replace(one, attempt=2)).adopted


def test_an_output_on_a_branch_is_not_taken_for_one_on_main(lake, table):
    one = lake.publication("t", table, (data_file(table, "a", DAY_1),), ref="quarantine_1")
    lake.publish(one)
    assert not lake.publish(replace(one, ref="main", attempt=2, base=lake.load("t"))).adopted


class Died(BaseException):
    """A process that is no more."""


@pytest.mark.parametrize("point", ["publish.drafted", "commit.staged", "commit.swung", "publish.committed"])
def test_a_publish_that_died_anywhere_is_done_once_by_its_successor(lake, table, point):
    one = lake.publication("t", table, (data_file(table, "a", DAY_1),))

    def die(reached: str) -> None:
        if reached == point:
            raise Died

    crash_points.install(die)
    try:
        with pytest.raises(Died):
            lake.publish(one)
    finally:
        crash_points.install(None)
    done = lake.publish(replace(one, attempt=2, files=(data_file(table, "b", DAY_1),)), catalog=lake.another())
    after = lake.load("t")
    assert len(lake.entries(after)) == 1
    assert done.adopted is (point in {"commit.swung", "publish.committed"})


@pytest.mark.parametrize("lost", range(1, 9))
def test_a_lost_reply_never_doubles_an_output(lost):
    store = LostReplies(SystemClock())
    with Lake(store=store) as lake:
        table = lake.create("t", SCHEMA, partition_spec=BY_DAY)
        lake.run(lake.catalog.parts.afterwards.settle())
        store.times = lost
        lake.publish("t", table, (data_file(table, "a", DAY_1),))
        store.times = 0
        after = lake.load("t")
        assert (lake.paths(after), len(after.snapshots)) == (["a"], 1)


def test_an_attempt_that_was_settled_cannot_publish_any_more(lake, table):
    one = lake.publication("t", table, (data_file(table, "a", DAY_1),))
    markers = lake.catalog.parts.markers
    key = markers.request_key(one.key(0), "publish", "whoever settles it does not know the request")
    lake.run(markers.claim(key, refused(markers.fresh(key, 0), Fenced("this attempt was given up"))))
    with pytest.raises(Fenced):
        lake.publish(one)
    assert lake.load("t").current_snapshot_id is None


def test_many_publish_to_one_table_at_once_and_nothing_is_lost(lake, table):
    async def one(number: int) -> Any:
        publication = lake.publication("t", table, (data_file(table, f"f{number}", DAY_1),), task_id=f"task-{number}")
        return await Publisher(lake.another()).publish(publication)

    async def all_of_them() -> None:
        await asyncio.gather(*(one(number) for number in range(6)))

    lake.run(all_of_them())
    after = lake.load("t")
    assert lake.paths(after) == [f"f{number}" for number in range(6)]
    assert summary(after)["total-data-files"] == "6"


def add_delete_file(lake: Lake, file: Any) -> None:
    """What an engine does that deletes rows: a snapshot with a manifest of deletes."""
    commit_deletes(lake, "t", [file])

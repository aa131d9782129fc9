"""Updates applied to tables: the stories engines tell, the refusals, the logs and the clock."""

import copy

import pytest

from arco.iceberg import requests, requirements, table, updates
from arco.iceberg.changes import TableUpdate
from arco.kernel import errors
from arco.kernel.limits import SNAPSHOT_LEAD_MS_MAX
from fixtures.iceberg.ground import (
    CREATED_MS,
    FILE,
    FIRST_SNAPSHOT,
    LOCATION,
    STORY,
    TABLE_UUID,
    add_snapshot,
    column,
    commit,
    created,
    load,
    schema,
    set_ref,
    snapshot,
    told,
)

MINUTE_MS = 60_000


def test_every_update_of_the_description_is_applied_by_one_function():
    assert set(updates._APPLY) == set(TableUpdate.__args__)


def test_the_story_spark_tells_ends_as_spark_expects():
    metadata = created()
    for step in STORY["story"]:
        request = requests.parse_commit_table(step["commit"])
        requirements.check(request.requirements, metadata)
        metadata = updates.apply(metadata, request.updates, now_ms=CREATED_MS)
        found = {key: metadata.document[key] for key in step["expect"]}
        assert found == step["expect"], step["name"]


@pytest.mark.parametrize("case", load("refused_updates.json"), ids=lambda case: case["name"])
def test_an_invalid_update_is_refused_and_leaves_the_base_alone(case):
    base = told(1)
    before = copy.deepcopy(base.document)
    with pytest.raises(getattr(errors, case["error"])) as error:
        commit(base, *case["updates"])
    assert case["message"] in error.value.message
    assert base.document == before


def test_applying_never_changes_the_base():
    metadata = created()
    for step in STORY["story"]:
        before = copy.deepcopy(metadata.document)
        after = commit(metadata, *step["commit"]["updates"])
        assert metadata.document == before
        metadata = after


def test_updates_that_change_nothing_give_the_base_itself():
    base = told(1)
    same = [
        set_ref(FIRST_SNAPSHOT),
        {"action": "set-properties", "updates": {"owner": "ada", "format-version": "2"}},
        {"action": "set-location", "location": f"{LOCATION}/"},
        {"action": "assign-uuid", "uuid": TABLE_UUID.upper()},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": base.current_schema},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "remove-properties", "removals": ["never-set"]},
        {"action": "remove-snapshots", "snapshot-ids": [1]},
        {"action": "remove-snapshot-ref", "ref-name": "gone"},
        {"action": "remove-statistics", "snapshot-id": 1},
        {"action": "remove-partition-statistics", "snapshot-id": 1},
        {"action": "remove-schemas", "schema-ids": [9]},
        {"action": "remove-partition-specs", "spec-ids": [9]},
        {"action": "remove-encryption-key", "key-id": "gone"},
    ]
    assert commit(base, *same, previous_location=FILE, now_ms=CREATED_MS + 1) is base


# --- creating by commit


def test_a_create_commit_builds_the_whole_table():
    metadata = commit(None, *STORY["create_commit"]["updates"])
    assert metadata.table_uuid == TABLE_UUID
    assert metadata.location == LOCATION
    assert metadata.current_snapshot_id == FIRST_SNAPSHOT
    assert metadata.document["partition-specs"][0]["fields"][0]["field-id"] == 1000
    assert metadata.document["default-sort-order-id"] == 0
    assert metadata.document["metadata-log"] == []
    assert table.decode(table.encode(metadata, FILE), FILE) == metadata


def test_a_staged_table_committed_is_the_table_created():
    staged = created()
    document = staged.document
    sent = [
        {"action": "assign-uuid", "uuid": TABLE_UUID},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": document["schemas"][0], "last-column-id": document["last-column-id"]},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": document["partition-specs"][0]},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": document["sort-orders"][0]},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": LOCATION},
        {"action": "set-properties", "updates": document["properties"]},
    ]
    assert commit(None, *sent) == staged


@pytest.mark.parametrize(
    ("left_out", "named"),
    [
        ("assign-uuid", "assign-uuid"),
        ("set-location", "set-location"),
        ("set-current-schema", "set-current-schema"),
        ("set-default-spec", "set-default-spec"),
        ("set-default-sort-order", "set-default-sort-order"),
    ],
)
def test_a_create_commit_names_what_it_lacks(left_out, named):
    sent = [update for update in STORY["create_commit"]["updates"] if update["action"] != left_out]
    with pytest.raises(errors.InvalidInput, match=f"lacks: {named}"):
        commit(None, *sent)


def test_a_create_commit_may_leave_out_version_spec_and_order():
    gone = {"upgrade-format-version", "add-spec", "set-default-spec", "add-sort-order", "set-default-sort-order"}
    metadata = commit(None, *[update for update in STORY["create_commit"]["updates"] if update["action"] not in gone])
    assert metadata.format_version == 2
    assert metadata.document["partition-specs"] == [{"spec-id": 0, "fields": []}]
    assert metadata.document["sort-orders"] == [{"order-id": 0, "fields": []}]


def test_a_create_commit_keeps_the_ids_its_files_already_carry():
    sent = copy.deepcopy(STORY["create_commit"]["updates"])
    sent[2]["schema"]["schema-id"] = 3
    sent[4]["spec"]["spec-id"] = 5
    sent[10]["snapshot"]["schema-id"] = 3
    metadata = commit(None, *sent)
    assert (metadata.current_schema_id, metadata.default_spec_id) == (3, 5)


def test_a_create_commit_of_version_1_is_no_downgrade():
    sent = copy.deepcopy(STORY["create_commit"]["updates"])
    sent[1]["format-version"] = 1
    metadata = commit(None, *sent)
    assert metadata.format_version == 1
    assert metadata.document["schema"] == metadata.current_schema
    assert metadata.document["partition-spec"] == metadata.document["partition-specs"][0]["fields"]
    assert "last-sequence-number" not in metadata.document


# --- schemas, specs, orders


def test_a_schema_that_is_already_there_is_used_again():
    base = told(2)
    first = base.schemas[0]
    spelled = {
        **first,
        "schema-id": 77,
        "identifier-field-ids": [],
        "fields": [{**f, "doc": None} for f in first["fields"]],
    }
    after = commit(base, {"action": "add-schema", "schema": spelled}, {"action": "set-current-schema", "schema-id": -1})
    assert after.current_schema_id == 0
    assert after.schemas == base.schemas


def test_column_ids_are_never_handed_out_twice():
    wide = commit(
        told(1),
        {
            "action": "add-schema",
            "schema": schema(*told(1).current_schema["fields"], column(9, "w", "int")),
            "last-column-id": 4,
        },
        {"action": "set-current-schema", "schema-id": -1},
    )
    narrow = commit(wide, {"action": "set-current-schema", "schema-id": 0}, {"action": "remove-schemas", "schema-ids": [1]})
    assert narrow.last_column_id == 9
    assert [one["schema-id"] for one in narrow.schemas] == [0]


def test_nulls_in_a_schema_are_not_stored():
    fields = [{**field, "doc": None} for field in told(1).current_schema["fields"]]
    after = commit(told(1), {"action": "add-schema", "schema": schema(*fields, column(5, "e", "int", doc=None))})
    assert all("doc" not in field for field in after.schemas[-1]["fields"])


def test_a_spec_without_field_ids_gets_the_ids_of_equal_fields_and_new_ones():
    fields = [
        {"name": "id_bucket", "transform": "bucket[4]", "source-id": 1},
        {"name": "cat", "transform": "identity", "source-id": 3},
    ]
    after = commit(
        told(1), {"action": "add-spec", "spec": {"fields": fields}}, {"action": "set-default-spec", "spec-id": -1}
    )
    assert [field["field-id"] for field in after.document["partition-specs"][1]["fields"]] == [1001, 1002]
    assert (after.default_spec_id, after.last_partition_id) == (1, 1002)


def test_a_spec_may_name_its_source_in_a_list_of_one():
    fields = [{"name": "cat", "transform": "identity", "source-ids": [3]}]
    after = commit(told(1), {"action": "add-spec", "spec": {"fields": fields}})
    assert after.document["partition-specs"][1]["fields"][0]["source-id"] == 3


def test_an_equal_spec_is_used_again():
    base = told(3)
    again = {"spec-id": 9, "fields": base.document["partition-specs"][0]["fields"]}
    after = commit(base, {"action": "add-spec", "spec": again}, {"action": "set-default-spec", "spec-id": -1})
    assert after.default_spec_id == 0
    assert len(after.document["partition-specs"]) == 2


def test_a_transform_of_tomorrow_does_not_stop_the_table_of_today():
    base = told(1)
    spec = {"spec-id": 0, "fields": [{"name": "z", "transform": "zorder[3]", "source-id": 1, "field-id": 1000}]}
    foreign = type(base)({**base.document, "partition-specs": [spec]})
    wider = schema(*base.current_schema["fields"], column(5, "w", "int"))
    after = commit(foreign, {"action": "add-schema", "schema": wider}, {"action": "set-current-schema", "schema-id": -1})
    assert after.document["partition-specs"] == [spec]


def test_version_1_insists_on_sequential_partition_ids():
    base = created(properties={"format-version": "1"})
    fields = [{"name": "cat", "transform": "identity", "source-id": 3, "field-id": 1005}]
    with pytest.raises(errors.InvalidInput, match="sequential IDs"):
        commit(base, {"action": "add-spec", "spec": {"fields": fields}})


def test_a_sorted_table_can_always_become_unsorted():
    order = {
        "order-id": 7,
        "fields": [{"transform": "identity", "source-id": 0, "direction": "asc", "null-order": "nulls-last"}],
    }
    base = created(write_order=order)
    assert base.document["sort-orders"][0]["order-id"] == base.default_sort_order_id == 1
    after = commit(base, {"action": "set-default-sort-order", "sort-order-id": 0})
    assert after.default_sort_order_id == 0
    assert {one["order-id"] for one in after.document["sort-orders"]} == {0, 1}


def test_becoming_unsorted_is_not_adding_an_order():
    order = {
        "order-id": 1,
        "fields": [{"transform": "identity", "source-id": 0, "direction": "asc", "null-order": "nulls-last"}],
    }
    unsorted = {"action": "set-default-sort-order", "sort-order-id": 0}
    with pytest.raises(errors.InvalidInput, match="no sort order has been added"):
        commit(created(write_order=order), unsorted, {"action": "set-default-sort-order", "sort-order-id": -1})


def test_what_was_removed_in_a_request_is_gone_within_it():
    base = told(2)
    removed = {"action": "remove-schemas", "schema-ids": [0]}
    with pytest.raises(errors.InvalidInput, match="schema 0 does not exist"):
        commit(
            base,
            {"action": "set-current-schema", "schema-id": 1},
            removed,
            {"action": "set-current-schema", "schema-id": 0},
        )
    back = commit(
        base,
        removed,
        {"action": "add-schema", "schema": base.schemas[0]},
        {"action": "set-current-schema", "schema-id": -1},
    )
    assert back.current_schema["fields"] == base.schemas[0]["fields"]
    assert back.current_schema_id == 2


# --- format versions


def test_an_upgrade_from_version_1_drops_what_only_old_readers_need():
    base = created(properties={"format-version": "1"})
    v2 = commit(base, {"action": "upgrade-format-version", "format-version": 2})
    assert not {"schema", "partition-spec"} & v2.document.keys()
    assert v2.last_sequence_number == 0
    v3 = commit(v2, {"action": "upgrade-format-version", "format-version": 3})
    assert v3.document["next-row-id"] == 0


def test_row_ids_of_version_3_are_counted_on():
    base = commit(told(1), {"action": "upgrade-format-version", "format-version": 3})
    one = commit(base, add_snapshot(11, 2, CREATED_MS, FIRST_SNAPSHOT, **{"first-row-id": 0, "added-rows": 5}))
    two = commit(one, add_snapshot(12, 3, CREATED_MS, 11, **{"first-row-id": 8, "added-rows": 2}))
    assert two.document["next-row-id"] == 10
    with pytest.raises(errors.Conflict, match="behind table next-row-id: 9 < 10"):
        commit(two, add_snapshot(13, 4, CREATED_MS, 12, **{"first-row-id": 9, "added-rows": 1}))
    with pytest.raises(errors.InvalidInput, match="first-row-id and added-rows are required"):
        commit(two, add_snapshot(13, 4, CREATED_MS, 12))


def test_version_3_takes_its_types_defaults_and_keys():
    base = commit(told(1), {"action": "upgrade-format-version", "format-version": 3})
    new = [
        column(5, "j", "variant"),
        column(6, "n", "int", **{"initial-default": 7, "write-default": 8}),
        column(7, "g", "geometry(srid:4326)"),
        column(8, "u", "unknown"),
        column(
            9,
            "s",
            schema(column(10, "x", "timestamp_ns", **{"initial-default": "2025-01-01T00:00:00.000000001"})),
            **{"initial-default": {}},
        ),
    ]
    key = {"key-id": "k1", "encrypted-key-metadata": "AAEC", "encrypted-by-id": None}
    after = commit(
        base,
        {"action": "add-schema", "schema": schema(*base.current_schema["fields"], *new)},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-encryption-key", "encryption-key": key},
        {"action": "add-encryption-key", "encryption-key": key},
    )
    assert after.last_column_id == 10
    assert after.document["encryption-keys"] == [{"key-id": "k1", "encrypted-key-metadata": "AAEC"}]
    with pytest.raises(errors.InvalidInput, match="exists already with another content"):
        commit(after, {"action": "add-encryption-key", "encryption-key": {**key, "encrypted-key-metadata": "BB"}})
    gone = commit(after, {"action": "remove-encryption-key", "key-id": "k1"})
    assert gone.document["encryption-keys"] == []


# --- snapshots, refs, logs


def test_two_concurrent_replacements_of_a_table_both_succeed():
    base = told(1)
    one = commit(base, {"action": "remove-snapshot-ref", "ref-name": "main"}, add_snapshot(21, 2, CREATED_MS), set_ref(21))
    two = commit(one, {"action": "remove-snapshot-ref", "ref-name": "main"}, add_snapshot(22, 2, CREATED_MS), set_ref(22))
    assert two.current_snapshot_id == 22
    assert two.last_sequence_number == 2


def test_sequence_numbers_never_go_back():
    late = commit(told(1), add_snapshot(21, 9, CREATED_MS, FIRST_SNAPSHOT))
    assert commit(late, add_snapshot(22, 1, CREATED_MS)).last_sequence_number == 9


def test_a_snapshot_nobody_ever_saw_leaves_no_trace_in_the_log():
    after = commit(
        told(1),
        add_snapshot(31, 2, CREATED_MS + 2000, FIRST_SNAPSHOT),
        set_ref(31),
        add_snapshot(32, 3, CREATED_MS + 3000, 31),
        set_ref(32),
    )
    assert [entry["snapshot-id"] for entry in after.document["snapshot-log"]] == [FIRST_SNAPSHOT, 32]
    assert len(after.snapshots) == 3


def test_history_before_a_removed_snapshot_is_forgotten():
    metadata = told(1)
    for number in (41, 42, 43):
        metadata = commit(metadata, add_snapshot(number, number, CREATED_MS + number), set_ref(number))
    after = commit(metadata, {"action": "remove-snapshots", "snapshot-ids": [41]})
    assert [entry["snapshot-id"] for entry in after.document["snapshot-log"]] == [42, 43]


def test_a_removed_snapshot_takes_its_refs_and_statistics_along():
    statistics = {"snapshot-id": FIRST_SNAPSHOT, "statistics-path": "p", "file-size-in-bytes": 1}
    full = {**statistics, "file-footer-size-in-bytes": 1, "key-metadata": None}
    blob = {"type": "a-sketch-of-tomorrow", "snapshot-id": 1, "sequence-number": 1, "fields": [1]}
    base = commit(
        told(1),
        set_ref(FIRST_SNAPSHOT, "t", "tag"),
        {"action": "set-statistics", "snapshot-id": FIRST_SNAPSHOT, "statistics": {**full, "blob-metadata": []}},
        {"action": "set-statistics", "statistics": {**full, "blob-metadata": [blob]}},
        {"action": "set-partition-statistics", "partition-statistics": statistics},
    )
    assert base.document["statistics"] == [{k: v for k, v in full.items() if v is not None} | {"blob-metadata": [blob]}]
    after = commit(base, {"action": "remove-snapshots", "snapshot-ids": [FIRST_SNAPSHOT]})
    assert after.snapshots == after.document["statistics"] == after.document["partition-statistics"] == []
    assert after.refs == {}
    assert after.current_snapshot_id is None
    assert after.document["current-snapshot-id"] == -1


def test_a_child_keeps_the_name_of_its_removed_parent():
    base = commit(told(1), add_snapshot(51, 2, CREATED_MS, FIRST_SNAPSHOT), set_ref(51))
    after = commit(base, {"action": "remove-snapshots", "snapshot-ids": [FIRST_SNAPSHOT]})
    assert after.snapshots[0]["parent-snapshot-id"] == FIRST_SNAPSHOT


def test_a_rollback_is_logged_at_the_servers_time():
    base = commit(told(1), add_snapshot(61, 2, CREATED_MS + 2000, FIRST_SNAPSHOT), set_ref(61))
    after = commit(base, set_ref(FIRST_SNAPSHOT), now_ms=CREATED_MS + 90_000)
    assert after.document["snapshot-log"][-1] == {"snapshot-id": FIRST_SNAPSHOT, "timestamp-ms": CREATED_MS + 90_000}


def test_a_slow_clock_cannot_write_a_table_that_readers_refuse():
    base = told(5)
    hour_ago = CREATED_MS - 60 * MINUTE_MS
    late = snapshot(71, 3, hour_ago, base.current_snapshot_id)
    after = commit(base, {"action": "add-snapshot", "snapshot": late}, set_ref(71), now_ms=hour_ago, previous_location=FILE)
    times = [entry["timestamp-ms"] for entry in after.document["snapshot-log"]]
    assert times == sorted(times)
    assert after.last_updated_ms >= max(base.last_updated_ms, times[-1], after.document["metadata-log"][-1]["timestamp-ms"])


def test_the_time_of_an_update_never_goes_backwards():
    base = told(5)
    set_property = {"action": "set-properties", "updates": {"a": "b"}}
    assert commit(base, set_property, now_ms=1).last_updated_ms == base.last_updated_ms
    assert commit(base, set_property, now_ms=base.last_updated_ms + 5).last_updated_ms == base.last_updated_ms + 5


def test_a_snapshot_may_run_ahead_of_the_server_by_a_day_and_no_more():
    edge = CREATED_MS + SNAPSHOT_LEAD_MS_MAX
    assert commit(told(1), add_snapshot(81, 2, edge, FIRST_SNAPSHOT)).last_updated_ms == edge
    with pytest.raises(errors.InvalidInput):
        commit(told(1), add_snapshot(81, 2, edge + 1, FIRST_SNAPSHOT))


def test_the_metadata_log_gains_the_previous_file_and_keeps_its_length():
    metadata = commit(created(), {"action": "set-properties", "updates": {"write.metadata.previous-versions-max": "3"}})
    for number in range(5):
        update = {"action": "set-properties", "updates": {"n": str(number)}}
        metadata = commit(metadata, update, now_ms=CREATED_MS + number, previous_location=f"file-{number}")
    log = metadata.document["metadata-log"]
    assert [entry["metadata-file"] for entry in log] == ["file-2", "file-3", "file-4"]
    assert [entry["timestamp-ms"] for entry in log] == [CREATED_MS + number for number in (1, 2, 3)]


@pytest.mark.parametrize(("limit", "kept"), [("0", 1), ("-5", 1), ("1", 1), (None, 100)])
def test_the_metadata_log_never_forgets_the_last_file(limit, kept):
    metadata = created(properties={} if limit is None else {"write.metadata.previous-versions-max": limit})
    for number in range(104):
        update = {"action": "set-properties", "updates": {"n": str(number)}}
        metadata = commit(metadata, update, previous_location=f"file-{number}")
    assert len(metadata.document["metadata-log"]) == kept
    assert metadata.document["metadata-log"][-1]["metadata-file"] == "file-103"


def test_expiring_ten_thousand_snapshots_is_one_pass():
    base = told(1)
    many = {**base.document, "snapshots": base.snapshots + [snapshot(n, n, CREATED_MS) for n in range(1, 10_001)]}
    full = table.decode(table.encode(type(base)(many), FILE), FILE)
    after = commit(full, *[{"action": "remove-snapshots", "snapshot-ids": [n]} for n in range(1, 10_001)])
    assert after.snapshots == base.snapshots

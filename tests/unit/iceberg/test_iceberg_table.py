"""New tables, metadata files, and the facts a pointer keeps."""

import gzip
import json

import msgspec
import pytest

from arco.iceberg import metadata_file, requests, table
from arco.iceberg.metadata import from_document
from arco.kernel.errors import CorruptObject, InvalidInput, TooLarge, UnknownFormat
from fixtures.iceberg.ground import (
    CREATED_MS,
    FILE,
    FIRST_SNAPSHOT,
    LOCATION,
    TABLE_UUID,
    add_snapshot,
    column,
    commit,
    created,
    load,
    schema,
    set_ref,
    told,
)

GZIP_FILE = "s3://lake/m/00001-a.gz.metadata.json"
V3 = load("metadata_v3_with_unknown_fields.json")
V1 = load("metadata_v1_early.json")


# --- making tables


def test_columns_are_numbered_from_one_and_everything_follows():
    document = created().document
    assert [(field["id"], field["name"]) for field in document["schemas"][0]["fields"]] == [
        (1, "id"),
        (2, "ts"),
        (3, "cat"),
        (4, "v"),
    ]
    fields = document["partition-specs"][0]["fields"]
    assert [(field["field-id"], field["source-id"]) for field in fields] == [(1000, 2), (1001, 1)]
    assert (document["last-column-id"], document["last-partition-id"]) == (4, 1001)
    assert document["format-version"] == 2
    assert document["properties"] == {"owner": "ada"}
    assert document["last-updated-ms"] == CREATED_MS
    assert document["current-snapshot-id"] == -1


def test_nested_columns_are_numbered_level_by_level():
    nested = schema(
        column(10, "point", schema(column(11, "x", "double"), column(12, "y", "double")), required=True),
        column(
            20,
            "tags",
            {
                "type": "map",
                "key-id": 21,
                "key": "string",
                "value-id": 22,
                "value-required": False,
                "value": {"type": "list", "element-id": 23, "element-required": True, "element": "int"},
            },
        ),
        column(30, "last", "string"),
    )
    metadata = created(schema=nested, partition_spec=None)
    point, tags, last = metadata.current_schema["fields"]
    assert (point["id"], tags["id"], last["id"]) == (1, 2, 3)
    assert [field["id"] for field in point["type"]["fields"]] == [4, 5]
    assert (tags["type"]["key-id"], tags["type"]["value-id"], tags["type"]["value"]["element-id"]) == (6, 7, 8)
    assert metadata.last_column_id == 8
    assert metadata.last_partition_id == 999


def test_identifier_fields_follow_their_columns():
    fields = [column(7, "id", "long", required=True), column(3, "v", "int")]
    metadata = created(schema=schema(*fields, **{"identifier-field-ids": [7]}), partition_spec=None)
    assert metadata.current_schema["identifier-field-ids"] == [1]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_the_format_version_is_consumed(version):
    metadata = created(properties={"format-version": str(version), "owner": "ada", "uuid": "x", "current-schema": "{}"})
    assert metadata.format_version == version
    assert metadata.properties == {"owner": "ada"}
    assert table.decode(table.encode(metadata, FILE), FILE) == metadata
    assert ("schema" in metadata.document) == (version == 1)
    assert ("next-row-id" in metadata.document) == (version == 3)
    assert ("current-snapshot-id" in metadata.document) == (version < 3)


@pytest.mark.parametrize("version", ["0", "4", "two", "2.0", ""])
def test_an_unknown_format_version_is_refused(version):
    with pytest.raises(InvalidInput, match="Unsupported format version"):
        created(properties={"format-version": version})


def test_a_spec_or_order_over_a_missing_column_is_refused():
    with pytest.raises(InvalidInput, match="partition spec: field 0 has no source column"):
        created(partition_spec={"fields": [{"name": "x", "transform": "identity", "source-id": 99}]})
    order = {
        "order-id": 1,
        "fields": [{"transform": "identity", "source-id": 99, "direction": "asc", "null-order": "nulls-first"}],
    }
    with pytest.raises(InvalidInput, match="sort order: field 0 has no source column"):
        created(write_order=order)


def test_the_ids_of_spec_and_order_start_anew_too():
    spec = {"spec-id": 7, "fields": [{"name": "c", "transform": "identity", "source-id": 2, "field-id": 1234}]}
    document = created(partition_spec=spec).document
    assert document["default-spec-id"] == 0
    assert document["partition-specs"] == [
        {"spec-id": 0, "fields": [{"name": "c", "transform": "identity", "source-id": 3, "field-id": 1000}]}
    ]


@pytest.mark.parametrize("kind", ["variant", "geometry", "geography(srid:4326)"])
def test_values_without_an_order_or_a_hash_cannot_be_partitioned_by(kind):
    spec = {"fields": [{"name": "p", "transform": "identity", "source-id": 1}]}
    with pytest.raises(InvalidInput, match="Invalid source type"):
        created(schema=schema(column(1, "o", kind)), partition_spec=spec, properties={"format-version": "3"})


def test_partitioning_by_a_part_of_a_list_is_refused():
    inner = {"type": "list", "element-id": 2, "element-required": False, "element": schema(column(3, "x", "int"))}
    spec = {"fields": [{"name": "p", "transform": "identity", "source-id": 3}]}
    with pytest.raises(InvalidInput, match="inside the list"):
        created(schema=schema(column(1, "l", inner)), partition_spec=spec)


# --- files


@pytest.mark.parametrize("location", [FILE, GZIP_FILE, "x.metadata.json.gz"])
def test_a_file_reads_back_as_what_was_written(location):
    metadata = told(9)
    data = table.encode(metadata, location)
    assert table.decode(data, location) == metadata
    assert table.encode(table.decode(data, location), location) == data
    assert data.startswith(b"\x1f\x8b") == ("gz" in location)


def test_equal_documents_have_equal_bytes_however_often_they_are_made():
    data = table.encode(told(9), GZIP_FILE)
    assert data == table.encode(told(9), GZIP_FILE)
    assert data[4:8] == bytes(4), "a time in the header would make them differ"


def test_a_file_that_unpacks_beyond_the_limit_is_refused(monkeypatch):
    monkeypatch.setattr(metadata_file, "METADATA_BYTES_MAX", 10_000)
    bomb = gzip.compress(b" " * 5_000_000)
    with pytest.raises(TooLarge):
        table.decode(bomb, GZIP_FILE)
    with pytest.raises(TooLarge):
        table.decode(b" " * 10_001, FILE)
    with pytest.raises(TooLarge, match="over the limit"):
        table.encode(created(properties={"k": "v" * 10_000}), FILE)


@pytest.mark.parametrize(
    ("data", "location"),
    [
        (b"", FILE),
        (b"{", FILE),
        (b"[]", FILE),
        (b"null", FILE),
        (b'{"format-version": 2}', FILE),
        (b'{"format-version": "2"}', FILE),
        (b'{"format-version": true}', FILE),
        (b'{"format-version": 0}', FILE),
        (b"[" * 5000, FILE),
        (b"not gzip", GZIP_FILE),
        (gzip.compress(b"{}")[:-4], GZIP_FILE),
        (gzip.compress(b"{}") + b"x", GZIP_FILE),
        (gzip.compress(b"{}"), FILE),
    ],
)
def test_bytes_that_are_no_metadata_are_a_corrupt_object(data, location):
    with pytest.raises(CorruptObject):
        table.decode(data, location)


BROKEN = [
    {"table-uuid": None},
    {"location": 7},
    {"last-column-id": "4"},
    {"current-schema-id": 5},
    {"default-spec-id": 5},
    {"schemas": {}},
    {"snapshots": [3]},
    {"snapshots": [{"snapshot-id": 1}]},
    {"properties": {"k": 1}},
    {"refs": {"b": {"snapshot-id": 1, "type": "branch"}}},
    {"current-snapshot-id": 99},
    {"metadata-log": [{"timestamp-ms": 1}]},
    {"metadata-log": [{"timestamp-ms": 1, "metadata-file": 5}]},
    {"statistics": [{"snapshot-id": 1, "file-size-in-bytes": 1}]},
    {"partition-statistics": [{"snapshot-id": 1, "statistics-path": "s3://b/x"}]},
    {"snapshots": [{"snapshot-id": 1, "timestamp-ms": 1, "summary": 5}]},
    {"snapshots": [{"snapshot-id": 1, "timestamp-ms": 1, "parent-snapshot-id": [1]}]},
]


@pytest.mark.parametrize("broken", BROKEN, ids=str)
def test_metadata_that_contradicts_itself_is_a_corrupt_object(broken):
    with pytest.raises(CorruptObject):
        table.decode(json.dumps({**told(1).document, **broken}).encode(), FILE)


@pytest.mark.parametrize("word", ["min-snapshots-to-keep", "max-snapshot-age-ms", "max-ref-age-ms"])
def test_what_a_ref_keeps_is_a_number_or_not_said(word):
    document = commit(told(1), add_snapshot(1, 1, CREATED_MS), set_ref(1, "b")).document
    for value, is_fine in ((7, True), (None, True), ("soon", False), ([1], False)):
        refs = {**document["refs"], "b": {**document["refs"]["b"], word: value}}
        data = json.dumps({**document, "refs": refs}).encode()
        if is_fine:
            assert table.decode(data, FILE).refs["b"][word] == value
        else:
            with pytest.raises(CorruptObject, match="refs"):
                table.decode(data, FILE)


def test_metadata_of_a_newer_format_is_never_guessed_at():
    with pytest.raises(UnknownFormat, match="version 4"):
        table.decode(json.dumps({**V3, "format-version": 4}).encode(), FILE)


def test_fields_nobody_knows_yet_survive_a_commit():
    base = table.decode(json.dumps(V3).encode(), FILE)
    snapshot = add_snapshot(9, 2, CREATED_MS, FIRST_SNAPSHOT, **{"first-row-id": 4, "added-rows": 1, "future": {"x": 1}})
    after = table.decode(table.encode(commit(base, snapshot, set_ref(9, "b")), FILE), FILE)
    for key in ("future-top-level-field", "future-null", "encryption-keys"):
        assert after.document[key] == V3[key]
    assert after.schemas == V3["schemas"]
    assert after.snapshots[0] == V3["snapshots"][0]
    assert after.snapshots[1]["future"] == {"x": 1}
    assert after.refs["main"] == V3["refs"]["main"]


def test_an_early_version_1_table_opens_and_goes_on():
    metadata = table.decode(json.dumps(V1).encode(), FILE)
    assert metadata.document["schemas"] == [{**V1["schema"], "schema-id": 0}]
    assert metadata.document["partition-specs"][0]["fields"][0]["field-id"] == 1000
    assert metadata.refs == {"main": {"snapshot-id": FIRST_SNAPSHOT, "type": "branch"}}
    assert metadata.last_partition_id == 1000
    added = commit(metadata, add_snapshot(5, 0, CREATED_MS, FIRST_SNAPSHOT), set_ref(5))
    upgraded = commit(added, {"action": "upgrade-format-version", "format-version": 2})
    final = commit(upgraded, add_snapshot(6, 1, CREATED_MS, 5), set_ref(6))
    assert (final.current_snapshot_id, final.last_sequence_number) == (6, 1)


@pytest.mark.parametrize("none", [-1, None])
def test_no_current_snapshot_has_three_spellings(none):
    document = {**created().document, "current-snapshot-id": none}
    assert from_document(document, FILE).current_snapshot_id is None
    del document["current-snapshot-id"]
    assert from_document(document, FILE).current_snapshot_id is None


def test_facts_are_what_a_pointer_needs():
    facts = table.facts(told(7))
    assert facts.table_uuid == TABLE_UUID
    assert facts.location == LOCATION
    assert facts.format_version == 2
    assert facts.current_schema_id == 1
    assert facts.last_sequence_number == 2
    assert facts.last_updated_ms == CREATED_MS + 5000
    assert facts.refs["v1"] == table.RefFact(FIRST_SNAPSHOT, "tag")
    assert facts.refs["main"].snapshot_id == facts.current_snapshot_id
    assert table.facts(created()).current_snapshot_id is None


@pytest.mark.parametrize("location", ["a.metadata.json", "a.gz.metadata.json"])
@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_what_is_created_reads_back_as_the_same_document(version, location):
    """Who created it is answered from memory, who loads it from its file."""
    items = {"type": "list", "element-id": 3, "element": "string", "element-required": False}
    ascending = {"direction": "asc", "null-order": "nulls-first"}
    sent = {
        "name": "t",
        "schema": {
            "type": "struct",
            "fields": [
                {"id": 1, "name": "a", "type": "long", "required": True, "doc": None},
                {"id": 2, "name": "b", "required": False, "type": items},
            ],
        },
        "partition-spec": {"fields": [{"source-id": 1, "transform": "bucket[4]", "name": "p"}]},
        "write-order": {"fields": [{"source-id": 1, "transform": "identity", **ascending}]},
        "properties": {"format-version": version, "owner": "us"},
    }
    request = requests.parse_create_table(sent)
    made = table.new_table(request, table_uuid=TABLE_UUID, location=LOCATION, now_ms=5)
    read = table.decode(table.encode(made, location), location)
    assert msgspec.json.encode(read.document) == msgspec.json.encode(made.document)

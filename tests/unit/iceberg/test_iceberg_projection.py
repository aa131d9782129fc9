"""Schemas as rows, and the bodies of answers."""

from arco.iceberg import projection, requests, responses, views
from arco.iceberg.responses import Snapshots
from fixtures.iceberg.ground import FILE, FIRST_SNAPSHOT, column, created, load, schema, told

NESTED = schema(
    column(1, "id", "long", required=True, doc="the key"),
    column(2, "point", schema(column(4, "x", "double"), column(5, "y", "double"))),
    column(
        3,
        "tags",
        {
            "type": "map",
            "key-id": 6,
            "key": "string",
            "value-id": 7,
            "value-required": False,
            "value": {"type": "list", "element-id": 8, "element-required": True, "element": "decimal(9,2)"},
        },
    ),
)


def test_columns_become_flat_rows_in_reading_order():
    rows = projection.column_rows(NESTED)
    assert [(row.field_id, row.path, row.position, row.parent_field_id) for row in rows] == [
        (1, "id", 0, None),
        (2, "point", 1, None),
        (4, "point.x", 0, 2),
        (5, "point.y", 1, 2),
        (3, "tags", 2, None),
        (6, "tags.key", 0, 3),
        (7, "tags.value", 1, 3),
        (8, "tags.value.element", 0, 7),
    ]
    assert [row.ordinal for row in rows] == list(range(8))
    assert rows[0].doc == "the key"
    assert rows[0].required
    assert rows[1].type == "struct<x: double, y: double>"
    assert rows[4].type == "map<string, list<decimal(9,2)>>"


def test_current_columns_are_those_of_the_current_schema():
    assert [row.name for row in projection.current_columns(told(2))] == ["id", "extra", "ts", "cat", "v"]


def test_the_history_of_schemas_says_when_each_came_into_use():
    history = projection.schema_history(told(5))
    assert [(version.schema_id, version.current) for version in history] == [(0, False), (1, True)]
    assert history[0].first_snapshot_id == FIRST_SNAPSHOT
    assert history[1].first_snapshot_ms > history[0].first_snapshot_ms
    assert [version.first_snapshot_id for version in projection.schema_history(created())] == [None]


def test_a_load_shows_all_snapshots_or_those_that_refs_point_to():
    metadata = told(8)
    everything = responses.load_table(metadata, metadata_location=FILE, config={"k": "v"})
    assert everything == {"metadata-location": FILE, "metadata": metadata.document, "config": {"k": "v"}}
    refs = responses.load_table(metadata, metadata_location=FILE, config={}, snapshots=Snapshots.REFS)
    shown = {snapshot["snapshot-id"] for snapshot in refs["metadata"]["snapshots"]}
    assert shown == {ref["snapshot-id"] for ref in metadata.refs.values()}
    assert refs["metadata"]["snapshot-log"] == metadata.document["snapshot-log"]

    metadata = told(5)
    refs = responses.load_table(metadata, metadata_location=FILE, config={}, snapshots=Snapshots("refs"))
    assert len(metadata.snapshots) == 2
    assert len(refs["metadata"]["snapshots"]) == 1


def test_a_staged_table_has_no_metadata_location():
    assert "metadata-location" not in responses.load_table(created(), metadata_location=None, config={})


def test_a_commit_is_answered_with_the_new_metadata():
    metadata = told(1)
    assert responses.commit_table(metadata, metadata_location=FILE) == {
        "metadata-location": FILE,
        "metadata": metadata.document,
    }


def test_a_view_is_answered_with_its_document():
    story = load("spark_view.json")
    request = requests.parse_create_view(story["create"])
    view = views.new_view(request, view_uuid=story["view_uuid"], location=story["location"], now_ms=story["created_ms"])
    assert responses.load_view(view, metadata_location=FILE, config={}) == {
        "metadata-location": FILE,
        "metadata": view.document,
        "config": {},
    }
    assert [row.name for row in projection.current_columns(view)] == ["a", "b"]

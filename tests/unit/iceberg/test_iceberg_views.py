"""Views: created, replaced, and their history kept within bounds."""

import copy
import json

import msgspec
import pytest

from arco.iceberg import requests, requirements, views
from arco.iceberg.changes import ViewUpdate
from arco.iceberg.view_metadata import ViewMetadata, decode_view, encode_view
from arco.kernel.errors import Conflict, CorruptObject, InvalidInput, UnknownFormat
from fixtures.iceberg.ground import column, load, schema

STORY = load("spark_view.json")
NOW_MS = STORY["created_ms"]
FILE = "s3://lake/v/00000-a.gz.metadata.json"
VERSION = STORY["create"]["view-version"]


def created(**changes) -> ViewMetadata:
    request = requests.parse_create_view({**STORY["create"], **changes})
    return views.new_view(request, view_uuid=STORY["view_uuid"], location=STORY["location"], now_ms=NOW_MS)


def commit(base: ViewMetadata, *sent, now_ms: int = NOW_MS) -> ViewMetadata:
    request = requests.parse_commit_view({"requirements": [], "updates": list(sent)})
    return views.apply_view(base, request.updates, now_ms=now_ms)


def version(sql: str, version_id: int = 9, dialect: str = "spark", **more):
    return {
        "action": "add-view-version",
        "view-version": {
            **VERSION,
            "version-id": version_id,
            "timestamp-ms": NOW_MS + version_id,
            "representations": [{"type": "sql", "sql": sql, "dialect": dialect}],
            **more,
        },
    }


CURRENT = {"action": "set-current-view-version", "view-version-id": -1}


def test_every_update_of_a_view_is_applied_by_one_function():
    assert set(views._APPLY) == set(ViewUpdate.__args__)


def test_a_view_is_made_as_it_was_sent():
    view = created()
    assert view.document == {
        "view-uuid": STORY["view_uuid"],
        "format-version": 1,
        "location": STORY["location"],
        "properties": {"k": "v"},
        "schemas": [STORY["create"]["schema"]],
        "current-version-id": 1,
        "versions": [VERSION],
        "version-log": [{"timestamp-ms": NOW_MS, "version-id": 1}],
    }
    assert view.current_schema["fields"][0]["id"] == 0


def test_the_schema_id_of_a_new_view_gives_way_to_the_one_its_schema_gets():
    view = created(**{"view-version": {**VERSION, "schema-id": 77}})
    assert view.current_version["schema-id"] == 0


def test_a_replacement_becomes_a_second_version():
    request = requests.parse_commit_view(STORY["replace"])
    base = created()
    requirements.check_view(request.requirements, base)
    before = copy.deepcopy(base.document)
    view = views.apply_view(base, request.updates, now_ms=NOW_MS)
    assert base.document == before
    assert view.current_version_id == 2
    assert view.current_version["schema-id"] == 1
    assert [entry["version-id"] for entry in view.version_log] == [1, 2]
    assert view.properties == {"k": "v", "engine_version": "Spark 4"}
    assert decode_view(encode_view(view, FILE), FILE) == view


def test_a_definition_that_is_already_there_is_used_again():
    base = commit(created(), version("select 2"), CURRENT)
    again = commit(
        base, version(VERSION["representations"][0]["sql"], summary={"app-id": "another"}), CURRENT, now_ms=NOW_MS + 99
    )
    assert again.current_version_id == 1
    assert len(again.versions) == 2
    assert again.version_log[-1] == {"timestamp-ms": NOW_MS + 99, "version-id": 1}


def test_a_replacement_by_the_same_definition_changes_nothing():
    base = created()
    same = {"action": "add-view-version", "view-version": {**VERSION, "version-id": 2, "timestamp-ms": NOW_MS + 5}}
    assert commit(base, same, CURRENT, {"action": "set-location", "location": f"{STORY['location']}/"}) is base


def test_a_version_id_taken_by_somebody_else_is_renumbered():
    one = commit(created(), version("select 2", 2), CURRENT)
    two = commit(one, version("select 3", 2), CURRENT)
    assert two.current_version_id == 3


def test_old_versions_are_forgotten_beyond_the_limit():
    view = created(properties={"version.history.num-entries": "3"})
    for number in range(2, 8):
        view = commit(view, version(f"select {number}"), CURRENT)
    assert [one["version-id"] for one in view.versions] == [5, 6, 7]
    assert [entry["version-id"] for entry in view.version_log] == [5, 6, 7]


def test_ten_versions_are_kept_unless_told_otherwise():
    view = created()
    for number in range(2, 15):
        view = commit(view, version(f"select {number}"), CURRENT)
    assert len(view.versions) == 10


def test_the_current_version_is_never_forgotten():
    view = created(properties={"version.history.num-entries": "2"})
    view = commit(view, version("select 2"), version("select 3"), version("select 4"))
    assert view.current_version_id == 1
    view = commit(view, {"action": "set-properties", "updates": {"a": "b"}})
    assert {one["version-id"] for one in view.versions} == {1, 4}
    assert view.version_log == [{"timestamp-ms": NOW_MS, "version-id": 1}]


def test_what_a_request_adds_it_can_also_see():
    view = created(properties={"version.history.num-entries": "1"})
    view = commit(view, version("select 2"), version("select 3"), CURRENT)
    assert [one["version-id"] for one in view.versions] == [2, 3]


def test_the_log_forgets_what_lies_before_a_forgotten_version():
    view = created(properties={"version.history.num-entries": "2"})
    view = commit(view, version("select 2"), CURRENT)
    view = commit(view, {"action": "set-current-view-version", "view-version-id": 1})
    view = commit(view, version("select 3"), CURRENT)
    assert [one["version-id"] for one in view.versions] == [2, 3]
    # The log was 1, 2, 1, 3; a log of 2, 3 would tell that 2 was replaced by 3.
    assert [entry["version-id"] for entry in view.version_log] == [3]


def test_properties_are_set_and_removed():
    view = commit(
        created(), {"action": "set-properties", "updates": {"a": "b"}}, {"action": "remove-properties", "removals": ["k"]}
    )
    assert view.properties == {"a": "b"}


REFUSED = [
    ([{"action": "assign-uuid", "uuid": "x"}], "Cannot reassign uuid"),
    ([{"action": "upgrade-format-version", "format-version": 2}], "unsupported format version: v2"),
    ([{"action": "upgrade-format-version", "format-version": 0}], "Cannot downgrade"),
    ([CURRENT], "no version has been added"),
    ([{"action": "set-current-view-version", "view-version-id": 7}], "version 7 does not exist"),
    ([version("x", **{"schema-id": 7})], "Cannot add version with unknown schema: 7"),
    ([version("x", **{"schema-id": -1})], "no schema has been added"),
    ([version("x", representations=[])], "no representation"),
    ([version("x", representations=[{"type": "sql", "sql": "x"}])], "missing required field dialect"),
    ([version("x", representations=VERSION["representations"] * 2)], "multiple queries for dialect spark"),
    ([version("x", **{"default-namespace": "a.b"})], "default-namespace: Expected array"),
    ([version("x", 9, "trino"), CURRENT], "loss of view dialects"),
    ([{"action": "add-schema", "schema": schema(column(1, "a", "moon"))}], "type 'moon' of 'a' is unknown"),
    ([{"action": "set-properties", "updates": {"version.history.num-entries": "0"}}], "must be positive but was 0"),
    ([{"action": "set-properties", "updates": {"version.history.num-entries": "x"}}], "is not a number"),
]


@pytest.mark.parametrize(("sent", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_an_invalid_update_of_a_view_is_refused(sent, message):
    with pytest.raises(InvalidInput, match=message):
        commit(created(), *sent)


def test_a_dialect_may_be_dropped_when_the_view_allows_it():
    allowed = {"action": "set-properties", "updates": {"replace.drop-dialect.allowed": "true"}}
    view = commit(created(), allowed, version("select 1", 9, "trino"), CURRENT)
    assert view.current_version_id == 2


def test_a_view_without_a_usable_version_is_not_made():
    with pytest.raises(InvalidInput, match="missing required field representations"):
        created(**{"view-version": {"version-id": 1, "timestamp-ms": 1, "schema-id": 0, "default-namespace": []}})


def test_a_lost_race_is_told_in_the_words_clients_look_for():
    conflict = views.commit_conflict("ns.vw")
    assert isinstance(conflict, Conflict)
    assert conflict.message.startswith("Cannot commit to view ns.vw")


def test_fields_of_a_view_nobody_knows_yet_survive():
    document = {**created().document, "future": [1], "properties": None}
    base = decode_view(json.dumps(document).encode(), "x.metadata.json")
    assert commit(base, version("select 2"), CURRENT).document["future"] == [1]


@pytest.mark.parametrize(
    "broken",
    [{"view-uuid": None}, {"versions": {}}, {"current-version-id": 7}, {"schemas": []}, {"properties": {"a": 1}}],
    ids=str,
)
def test_a_broken_view_file_is_a_corrupt_object(broken):
    with pytest.raises(CorruptObject):
        decode_view(json.dumps({**created().document, **broken}).encode(), "x.metadata.json")


def test_a_view_of_a_newer_format_is_never_guessed_at():
    with pytest.raises(UnknownFormat):
        decode_view(json.dumps({**created().document, "format-version": 2}).encode(), "x.metadata.json")


def test_a_view_that_is_created_reads_back_as_the_same_document():
    """Who created it is answered from memory, who loads it from its file."""
    made = created()
    read = decode_view(encode_view(made, FILE), FILE)
    assert msgspec.json.encode(read.document) == msgspec.json.encode(made.document)

"""However a body or a file is bent, the answer is a refusal: an unexpected error would read as an unknown outcome."""

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arco.iceberg import projection, requests, requirements, table, updates, views
from arco.iceberg.metadata import from_document
from arco.iceberg.view_metadata import decode_view, encode_view
from arco.kernel.errors import ArcoError, AskOperator, FixRequest, Refresh
from fixtures.iceberg.ground import (
    CREATED_MS,
    FILE,
    FIRST_SNAPSHOT,
    STORY,
    TABLE_UUID,
    add_snapshot,
    column,
    commit,
    load,
    schema,
    set_ref,
    told,
)

JUNK = st.sampled_from(
    [
        None,
        True,
        False,
        0,
        -1,
        1,
        2**31,
        2**63,
        2**70,
        1.5,
        "",
        "x",
        "main",
        "\x00",
        [],
        [None],
        [[]],
        {},
        {"type": "list"},
        {"a": 1},
    ]
)
VIEW = load("spark_view.json")
V3 = load("metadata_v3_with_unknown_fields.json")
V1 = load("metadata_v1_early.json")


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(below for key, item in inner for below in places(item, (*path, key)))]


def bent(data: st.DataObject, value: Any) -> Any:
    """A copy with one to three places replaced by junk, removed, or doubled."""
    value = copy.deepcopy(value)
    for _ in range(data.draw(st.integers(1, 3))):
        *parents, last = data.draw(st.sampled_from(places(value)[1:] or [(None,)]))
        holder = value
        for key in parents:
            holder = holder[key]
        if last is None:
            return copy.deepcopy(data.draw(JUNK))
        match data.draw(st.sampled_from(["junk", "remove", "double"])):
            case "junk":
                holder[last] = copy.deepcopy(data.draw(JUNK))
            case "remove":
                del holder[last]
            case "double" if isinstance(holder, list):
                holder.append(copy.deepcopy(holder[last]))
            case _:
                holder[f"{last}-too"] = copy.deepcopy(holder[last])
    return value


@settings(max_examples=400)
@given(st.data())
def test_a_bent_commit_is_applied_or_refused(data):
    place = data.draw(st.integers(0, len(STORY["story"]) - 1))
    base = told(place)
    try:
        request = requests.parse_commit_table(bent(data, STORY["story"][place]["commit"]))
        requirements.check(request.requirements, base)
        after = updates.apply(base, request.updates, now_ms=CREATED_MS)
    except (FixRequest, Refresh):
        return
    assert table.decode(table.encode(after, FILE), FILE) == after


@settings(max_examples=250)
@given(st.data())
def test_a_bent_create_is_made_or_refused(data):
    try:
        request = requests.parse_create_table(bent(data, STORY["create"]))
        made = table.new_table(request, table_uuid=TABLE_UUID, location="s3://b/t", now_ms=CREATED_MS)
        create = requests.parse_commit_table(bent(data, STORY["create_commit"]))
        committed = updates.apply(None, create.updates, now_ms=CREATED_MS)
    except (FixRequest, Refresh):
        return
    for metadata in (made, committed):
        assert table.decode(table.encode(metadata, FILE), FILE) == metadata


@settings(max_examples=250)
@given(st.data())
def test_a_bent_view_is_made_or_refused(data):
    made = {"view_uuid": TABLE_UUID, "location": "s3://b/v", "now_ms": CREATED_MS}
    try:
        base = views.new_view(requests.parse_create_view(VIEW["create"]), **made)
        views.new_view(requests.parse_create_view(bent(data, VIEW["create"])), **made)
        after = views.apply_view(base, requests.parse_commit_view(bent(data, VIEW["replace"])).updates, now_ms=CREATED_MS)
    except FixRequest:
        return
    assert decode_view(encode_view(after, FILE), FILE) == after


@pytest.mark.parametrize("document", [told(9).document, V3, V1], ids=["v2", "v3", "v1"])
@settings(max_examples=250)
@given(data=st.data())
def test_a_bent_file_opens_or_is_reported(document, data):
    try:
        metadata = from_document(bent(data, document), FILE)
    except AskOperator:
        return
    table.facts(metadata)
    projection.current_columns(metadata)
    try:
        commit(metadata, add_snapshot(5, 100, CREATED_MS, FIRST_SNAPSHOT), set_ref(5))
        commit(metadata, {"action": "remove-snapshots", "snapshot-ids": [FIRST_SNAPSHOT]}, previous_location=FILE)
        commit(metadata, {"action": "remove-encryption-key", "key-id": "k1"})
        spec = {"fields": [{"name": "p", "transform": "bucket[2]", "source-id": 1}]}
        commit(metadata, {"action": "add-spec", "spec": spec}, {"action": "set-default-spec", "spec-id": -1})
        wider = schema(*metadata.current_schema["fields"], column(90, "w", "int"))
        commit(metadata, {"action": "add-schema", "schema": wider}, {"action": "set-current-schema", "schema-id": -1})
    except ArcoError:
        return

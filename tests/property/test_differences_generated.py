"""What is said to have changed leads from one version of a table to the next."""

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from test_iceberg_commits_generated import EVERYTHING, Story

from arco.iceberg.differences import table_updates, view_updates
from fixtures.iceberg.ground import commit

# Times and logs, and what follows from the rest: a document says more than updates do.
FOLLOWS = {
    "last-updated-ms",
    "metadata-log",
    "snapshot-log",
    "last-sequence-number",
    "last-column-id",
    "last-partition-id",
    "next-row-id",
    "current-snapshot-id",
    "schema",  # of version 1, which has the current ones twice
    "partition-spec",
}
NUMBERED = {
    "add-schema": ("schemas", "schema", "schema-id"),
    "add-spec": ("partition-specs", "spec", "spec-id"),
    "add-sort-order": ("sort-orders", "sort-order", "order-id"),
    "add-snapshot": ("snapshots", "snapshot", "snapshot-id"),
    "set-statistics": ("statistics", "statistics", "snapshot-id"),
    "set-partition-statistics": ("partition-statistics", "partition-statistics", "snapshot-id"),
}
VALUES = {
    "upgrade-format-version": ("format-version", "format-version"),
    "set-location": ("location", "location"),
    "set-current-schema": ("current-schema-id", "schema-id"),
    "set-default-spec": ("default-spec-id", "spec-id"),
    "set-default-sort-order": ("default-sort-order-id", "sort-order-id"),
}
GONE = {
    "remove-snapshots": ("snapshots", "snapshot-ids", "snapshot-id"),
    "remove-schemas": ("schemas", "schema-ids", "schema-id"),
    "remove-partition-specs": ("partition-specs", "spec-ids", "spec-id"),
}


def told(document: dict[str, Any], updates: list[dict[str, Any]]) -> dict[str, Any]:
    """A document after updates, read as plainly as they can be."""
    after = copy.deepcopy(document)
    for update in updates:
        action = update["action"]
        if action in NUMBERED:
            field, word, key = NUMBERED[action]
            kept = [one for one in after.get(field, []) if one[key] != update[word][key]]
            after[field] = [*kept, update[word]]
        elif action in VALUES:
            field, word = VALUES[action]
            after[field] = update[word]
        elif action in GONE:
            field, word, key = GONE[action]
            after[field] = [one for one in after[field] if one[key] not in update[word]]
        elif action in {"remove-statistics", "remove-partition-statistics"}:
            field = action.removeprefix("remove-")
            after[field] = [one for one in after[field] if one["snapshot-id"] != update["snapshot-id"]]
        elif action == "set-snapshot-ref":
            ref = {key: value for key, value in update.items() if key not in {"action", "ref-name"}}
            after.setdefault("refs", {})[update["ref-name"]] = ref
        elif action == "remove-snapshot-ref":
            del after["refs"][update["ref-name"]]
        elif action == "set-properties":
            after.setdefault("properties", {}).update(update["updates"])
        else:
            assert action == "remove-properties", action
            for key in update["removals"]:
                del after["properties"][key]
    return after


def compared(document: dict[str, Any]) -> dict[str, Any]:
    found = {key: value for key, value in document.items() if key not in FOLLOWS and value not in ([], {}, None)}
    for field, _, key in NUMBERED.values():
        if field in found:
            found[field] = sorted(found[field], key=lambda one: one[key])
    return found


@given(st.data(), st.sampled_from([1, 2, 3]))
def test_the_updates_lead_from_each_version_to_the_next(data: st.DataObject, version: int) -> None:
    story = Story(data, version)
    first = story.metadata.document
    for _ in range(4):
        before = story.metadata
        story.metadata = commit(before, *story.step(EVERYTHING), now_ms=max(story.now_ms, 0))
        updates = table_updates(before.document, story.metadata.document)
        assert compared(told(before.document, updates)) == compared(story.metadata.document)
    assert compared(told(first, table_updates(first, story.metadata.document))) == compared(story.metadata.document)
    assert table_updates(first, first) == []


def test_a_view_says_its_new_version() -> None:
    version = {"version-id": 2, "schema-id": 0}
    before = {"format-version": 1, "current-version-id": 1, "versions": [{"version-id": 1, "schema-id": 0}], "schemas": []}
    after = {**before, "current-version-id": 2, "versions": [*before["versions"], version], "properties": {"a": "1"}}
    assert view_updates(before, after) == [
        {"action": "add-view-version", "view-version": version},
        {"action": "set-current-view-version", "view-version-id": 2},
        {"action": "set-properties", "updates": {"a": "1"}},
    ]

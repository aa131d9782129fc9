"""Bodies with a wrong value at every place, one at a time: refused with a reason or taken, and never half of each."""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .ground import NAMESPACES, SCHEMA, TABLE, TABLES, VIEW, VIEW_SCHEMA, VIEW_VERSION, VIEWS, Ground, ground

WRONG: tuple[Any, ...] = (None, True, -1, 2**63, 1.5, "", "\x00" * 300, [], [None], {}, {"": None})

SNAPSHOT = {
    "snapshot-id": 7,
    "sequence-number": 1,
    "timestamp-ms": 1_750_000_000_000,
    "manifest-list": "file:/nowhere/snap-7.avro",
    "summary": {"operation": "append"},
    "schema-id": 0,
}
STATISTICS = {
    "snapshot-id": 7,
    "statistics-path": "file:/nowhere/stats.puffin",
    "file-size-in-bytes": 10,
    "file-footer-size-in-bytes": 5,
    "blob-metadata": [{"type": "theta", "snapshot-id": 7, "sequence-number": 1, "fields": [1], "properties": {"a": "b"}}],
}
SPEC = {"spec-id": 1, "fields": [{"field-id": 1000, "source-id": 1, "name": "id_bucket", "transform": "bucket[4]"}]}
ORDER = {
    "order-id": 1,
    "fields": [{"source-id": 1, "direction": "asc", "null-order": "nulls-first", "transform": "identity"}],
}
UUID = "0b54c2a4-6d6e-4c1e-9f0a-5a1c0d2e3f40"

UPDATES: tuple[dict[str, Any], ...] = (
    {"action": "assign-uuid", "uuid": UUID},
    {"action": "upgrade-format-version", "format-version": 2},
    {"action": "add-schema", "schema": SCHEMA, "last-column-id": 4},
    {"action": "set-current-schema", "schema-id": 0},
    {"action": "add-spec", "spec": SPEC},
    {"action": "set-default-spec", "spec-id": 0},
    {"action": "add-sort-order", "sort-order": ORDER},
    {"action": "set-default-sort-order", "sort-order-id": 0},
    {"action": "add-snapshot", "snapshot": SNAPSHOT},
    {
        "action": "set-snapshot-ref",
        "ref-name": "b",
        "type": "branch",
        "snapshot-id": 7,
        "max-ref-age-ms": 1,
        "min-snapshots-to-keep": 1,
    },
    {"action": "remove-snapshots", "snapshot-ids": [8]},
    {"action": "remove-snapshot-ref", "ref-name": "none"},
    {"action": "set-location", "location": "file:/elsewhere"},
    {"action": "set-properties", "updates": {"p": "v"}},
    {"action": "remove-properties", "removals": ["p"]},
    {"action": "set-statistics", "snapshot-id": 7, "statistics": STATISTICS},
    {"action": "remove-statistics", "snapshot-id": 7},
    {
        "action": "set-partition-statistics",
        "partition-statistics": {"snapshot-id": 7, "statistics-path": "file:/x", "file-size-in-bytes": 1},
    },
    {"action": "remove-partition-statistics", "snapshot-id": 7},
    {"action": "remove-partition-specs", "spec-ids": [9]},
    {"action": "remove-schemas", "schema-ids": [9]},
    {
        "action": "add-encryption-key",
        "encryption-key": {"key-id": "k", "encrypted-key-metadata": "eA==", "encrypted-by-id": "m", "properties": {}},
    },
    {"action": "remove-encryption-key", "key-id": "k"},
)
REQUIREMENTS: tuple[dict[str, Any], ...] = (
    {"type": "assert-create"},
    {"type": "assert-table-uuid", "uuid": UUID},
    {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 5},
    {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 99},
    {"type": "assert-current-schema-id", "current-schema-id": 99},
    {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 99},
    {"type": "assert-default-spec-id", "default-spec-id": 99},
    {"type": "assert-default-sort-order-id", "default-sort-order-id": 99},
)
VIEW_UPDATES: tuple[dict[str, Any], ...] = (
    {"action": "assign-uuid", "uuid": UUID},
    {"action": "upgrade-format-version", "format-version": 1},
    {"action": "add-schema", "schema": VIEW_SCHEMA},
    {"action": "set-location", "location": "file:/elsewhere"},
    {"action": "set-properties", "updates": {"p": "v"}},
    {"action": "remove-properties", "removals": ["p"]},
    {"action": "add-view-version", "view-version": VIEW_VERSION | {"version-id": 2}},
    {"action": "set-current-view-version", "view-version-id": -1},
)

BODIES: dict[str, tuple[str, Any]] = {
    "create namespace": (NAMESPACES, {"namespace": ["ns"], "properties": {"a": "1"}}),
    "update namespace": (f"{NAMESPACES}/ns/properties", {"removals": ["none"], "updates": {"a": "1"}}),
    "create table": (
        TABLES,
        {
            "name": "t",
            "location": "file:/elsewhere",
            "schema": SCHEMA | {"identifier-field-ids": [1]},
            "partition-spec": SPEC,
            "write-order": ORDER,
            "stage-create": False,
            "properties": {"format-version": "2"},
        },
    ),
    "create view": (
        VIEWS,
        {"name": "v", "location": "file:/e", "schema": VIEW_SCHEMA, "view-version": VIEW_VERSION, "properties": {"a": "b"}},
    ),
    "rename table": (
        "/iceberg/v1/default.default/tables/rename",
        {"source": {"namespace": ["ns"], "name": "none"}, "destination": {"namespace": ["ns"], "name": "other"}},
    ),
    "rename view": (
        "/iceberg/v1/default.default/views/rename",
        {"source": {"namespace": ["ns"], "name": "none"}, "destination": {"namespace": ["ns"], "name": "other"}},
    ),
    "commit": (
        TABLE,
        {"identifier": {"namespace": ["ns"], "name": "t"}, "requirements": [REQUIREMENTS[1]], "updates": [UPDATES[13]]},
    ),
    "register": (f"{NAMESPACES}/ns/register", {"name": "t", "metadata-location": "file:/etc/passwd", "overwrite": True}),
    "register view": (f"{NAMESPACES}/ns/register-view", {"name": "v", "metadata-location": "file:/etc/passwd"}),
    "report": (
        f"{TABLE}/metrics",
        {"report-type": "commit-report", "table-name": "t", "snapshot-id": 1, "metrics": {"a": {}}},
    ),
    "commit to view": (VIEW, {"requirements": [{"type": "assert-view-uuid", "uuid": UUID}], "updates": [VIEW_UPDATES[4]]}),
    **{f"update {one['action']}": (TABLE, {"requirements": [], "updates": [one]}) for one in UPDATES},
    **{f"requirement {one['type']}": (TABLE, {"requirements": [one], "updates": [UPDATES[14]]}) for one in REQUIREMENTS},
    **{f"view update {one['action']}": (VIEW, {"requirements": [], "updates": [one]}) for one in VIEW_UPDATES},
}


def places(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value inside a body, itself included."""
    yield above
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in inside:
        yield from places(below, (*above, key))


def replaced(body: Any, place: tuple[Any, ...], value: Any) -> Any:
    if not place:
        return value
    changed = copy.deepcopy(body)
    target = changed
    for key in place[:-1]:
        target = target[key]
    target[place[-1]] = value
    return changed


def without(body: Any, place: tuple[Any, ...]) -> Any:
    changed = copy.deepcopy(body)
    target = changed
    for key in place[:-1]:
        target = target[key]
    del target[place[-1]]
    return changed


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    with ground(Path(tmp_path_factory.mktemp("hostile")) / "lake") as made:
        yield made


@pytest.mark.parametrize("case", BODIES)
def test_a_wrong_value_is_refused_with_a_reason_and_changes_nothing(catalog: Ground, case: str) -> None:
    catalog.wrong.clear()
    path, body = BODIES[case]
    for place in places(body):
        for value in WRONG:
            catalog.send("POST", path, replaced(body, place, value))
        if place:
            catalog.send("POST", path, without(body, place))
    catalog.check()


@pytest.mark.parametrize("case", BODIES)
def test_a_member_that_nobody_knows_is_refused_or_left_alone(catalog: Ground, case: str) -> None:
    catalog.wrong.clear()
    path, body = BODIES[case]
    for place in places(body):
        inner = body
        for key in place:
            inner = inner[key]
        if isinstance(inner, dict):
            catalog.send("POST", path, replaced(body, place, inner | {"__proto__": {"x": 1}, "nobody-knows": [1]}))
    catalog.check()

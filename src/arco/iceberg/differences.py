"""What changed from one metadata document to the next, said as the updates of Iceberg's commits.

Not what a client sent: several ways lead from one version to another, and this is the plain one. Applied in order, the updates
lead from the first document to the second, but for times and logs. What must never enter: reading files.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from arco.iceberg.shape import JsonObject


def table_updates(before: JsonObject, after: JsonObject) -> list[JsonObject]:
    """The updates that lead from one version of a table to another."""
    return [
        *_value(before, after, "format-version", "upgrade-format-version", "format-version"),
        *_value(before, after, "location", "set-location", "location"),
        *_added(before, after, "schemas", "schema-id", "add-schema", "schema"),
        *_value(before, after, "current-schema-id", "set-current-schema", "schema-id"),
        *_added(before, after, "partition-specs", "spec-id", "add-spec", "spec"),
        *_value(before, after, "default-spec-id", "set-default-spec", "spec-id"),
        *_added(before, after, "sort-orders", "order-id", "add-sort-order", "sort-order"),
        *_value(before, after, "default-sort-order-id", "set-default-sort-order", "sort-order-id"),
        *_added(before, after, "encryption-keys", "key-id", "add-encryption-key", "encryption-key"),
        *_added(before, after, "snapshots", "snapshot-id", "add-snapshot", "snapshot"),
        *_refs(before, after),
        *_added(before, after, "statistics", "snapshot-id", "set-statistics", "statistics"),
        *_added(before, after, "partition-statistics", "snapshot-id", "set-partition-statistics", "partition-statistics"),
        *_properties(before, after),
        *_gone_one_by_one(before, after, "statistics", "remove-statistics"),
        *_gone_one_by_one(before, after, "partition-statistics", "remove-partition-statistics"),
        *_gone(before, after, "snapshots", "snapshot-id", "remove-snapshots", "snapshot-ids"),
        *_gone(before, after, "schemas", "schema-id", "remove-schemas", "schema-ids"),
        *_gone(before, after, "partition-specs", "spec-id", "remove-partition-specs", "spec-ids"),
        *(
            {"action": "remove-encryption-key", "key-id": one}
            for one in sorted(
                _by(before, "encryption-keys", "key-id").keys() - _by(after, "encryption-keys", "key-id").keys()
            )
        ),
    ]


def view_updates(before: JsonObject, after: JsonObject) -> list[JsonObject]:
    """The updates that lead from one version of a view to another."""
    return [
        *_value(before, after, "format-version", "upgrade-format-version", "format-version"),
        *_value(before, after, "location", "set-location", "location"),
        *_added(before, after, "schemas", "schema-id", "add-schema", "schema"),
        *_added(before, after, "versions", "version-id", "add-view-version", "view-version"),
        *_value(before, after, "current-version-id", "set-current-view-version", "view-version-id"),
        *_properties(before, after),
    ]


def _value(before: JsonObject, after: JsonObject, field: str, action: str, word: str) -> Iterator[JsonObject]:
    if field in after and before.get(field) != after[field]:
        yield {"action": action, word: after[field]}


def _by(document: JsonObject, field: str, key: str) -> dict[Any, JsonObject]:
    return {one.get(key, 0): one for one in document.get(field) or []}


def _added(before: JsonObject, after: JsonObject, field: str, key: str, action: str, word: str) -> Iterator[JsonObject]:
    known = _by(before, field, key)
    for number, one in _by(after, field, key).items():
        if known.get(number) != one:
            yield {"action": action, word: one}


def _gone(before: JsonObject, after: JsonObject, field: str, key: str, action: str, word: str) -> Iterator[JsonObject]:
    gone = [number for number in _by(before, field, key) if number not in _by(after, field, key)]
    if gone:
        yield {"action": action, word: gone}


def _gone_one_by_one(before: JsonObject, after: JsonObject, field: str, action: str) -> Iterator[JsonObject]:
    left = _by(after, field, "snapshot-id")
    for number in _by(before, field, "snapshot-id"):
        if number not in left:
            yield {"action": action, "snapshot-id": number}


def _refs(before: JsonObject, after: JsonObject) -> Iterator[JsonObject]:
    old, new = _mapping(before, "refs"), _mapping(after, "refs")
    for name, ref in new.items():
        if old.get(name) != ref:
            yield {"action": "set-snapshot-ref", "ref-name": name, **ref}
    for name in old:
        if name not in new:
            yield {"action": "remove-snapshot-ref", "ref-name": name}


def _properties(before: JsonObject, after: JsonObject) -> Iterator[JsonObject]:
    old, new = _mapping(before, "properties"), _mapping(after, "properties")
    changed = {key: value for key, value in new.items() if old.get(key) != value}
    if changed:
        yield {"action": "set-properties", "updates": changed}
    gone = [key for key in old if key not in new]
    if gone:
        yield {"action": "remove-properties", "removals": gone}


def _mapping(document: JsonObject, field: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = document.get(field) or {}
    return found

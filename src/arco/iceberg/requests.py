"""The bodies clients send, as frozen values: read strictly, refused with one precise line.

A value that comes out of here has the right shape and well-formed names. Whether it makes sense against a table is decided
later, by the files that know tables. What must never enter: HTTP, authorization, and the state of the catalog.
"""

import unicodedata
from typing import Any

import msgspec

from arco.iceberg.changes import (
    TableRequirement,
    TableUpdate,
    ViewRequirement,
    ViewUpdate,
    refuse_unknown_in_tables,
    refuse_unknown_in_view,
    table_requirements,
    table_updates,
    view_requirements,
    view_updates,
)
from arco.iceberg.shape import JsonObject, Text, read
from arco.kernel.errors import InvalidInput, TooLarge
from arco.kernel.ids import clip
from arco.kernel.limits import LOCATION_CHARS_MAX, NAME_CHARS_MAX, NAMESPACE_LEVELS_MAX, TRANSACTION_CHANGES_MAX

# Control characters end log lines and URLs (the unit separator divides namespace levels); a lone surrogate is not text.
_REFUSED_CATEGORIES = frozenset({"Cc", "Cs"})


class Identifier(msgspec.Struct, frozen=True):
    """A table or view by name; prints as clients compare it in messages."""

    namespace: tuple[str, ...]
    name: str

    def __str__(self) -> str:
        return ".".join((*self.namespace, self.name))


class _Request(msgspec.Struct, frozen=True, rename="kebab"):
    pass


class CreateNamespace(_Request, frozen=True):
    namespace: tuple[str, ...]
    properties: dict[Text, str] = {}


class UpdateNamespaceProperties(_Request, frozen=True):
    removals: tuple[str, ...] = ()
    updates: dict[Text, str] = {}

    @property
    def keys_in_both(self) -> tuple[str, ...]:
        """Keys to be set and removed at once: the REST description answers them with a status of their own."""
        return tuple(key for key in dict.fromkeys(self.removals) if key in self.updates)


class CreateTable(_Request, frozen=True):
    name: str
    schema: JsonObject
    location: str | None = None
    partition_spec: JsonObject | None = None
    write_order: JsonObject | None = None
    stage_create: bool = False
    properties: dict[Text, str] = {}


class RegisterTable(_Request, frozen=True):
    name: str
    metadata_location: str
    overwrite: bool = False


class Rename(_Request, frozen=True):
    source: Identifier
    destination: Identifier


class CreateView(_Request, frozen=True):
    name: str
    schema: JsonObject
    view_version: JsonObject
    location: str | None = None
    properties: dict[Text, str] = {}


class RegisterView(_Request, frozen=True):
    name: str
    metadata_location: str


class MetricsReport(msgspec.Struct, frozen=True):
    """What a client measured: its kind, and all of it as it was sent."""

    report_type: str
    body: JsonObject


class CommitTable(msgspec.Struct, frozen=True):
    identifier: Identifier | None
    requirements: tuple[TableRequirement, ...]
    updates: tuple[TableUpdate, ...]


class CommitView(msgspec.Struct, frozen=True):
    identifier: Identifier | None
    requirements: tuple[ViewRequirement, ...]
    updates: tuple[ViewUpdate, ...]


class _TableChange(_Request, frozen=True):
    requirements: list[Any]
    updates: list[Any]
    identifier: Identifier | None = None


class _ViewChange(_Request, frozen=True):
    updates: list[Any]
    requirements: list[Any] = []
    identifier: Identifier | None = None


class _Transaction(_Request, frozen=True):
    table_changes: list[Any]


def parse_create_namespace(value: object) -> CreateNamespace:
    request = read(value, CreateNamespace, "create namespace")
    check_namespace(request.namespace)
    for level in request.namespace:
        check_new_name(level, "namespace level")
    return request


def parse_update_namespace_properties(value: object) -> UpdateNamespaceProperties:
    return read(value, UpdateNamespaceProperties, "update namespace properties")


def parse_create_table(value: object) -> CreateTable:
    request = read(value, CreateTable, "create table")
    check_new_name(request.name, "table name")
    _check_optional_location(request.location)
    return request


def parse_register_table(value: object) -> RegisterTable:
    request = read(value, RegisterTable, "register table")
    check_new_name(request.name, "table name")
    check_location(request.metadata_location, "metadata-location")
    return request


def parse_rename(value: object) -> Rename:
    request = read(value, Rename, "rename")
    _check_identifier(request.source)
    _check_identifier(request.destination)
    check_new_name(request.destination.name, "name")
    return request


def parse_create_view(value: object) -> CreateView:
    request = read(value, CreateView, "create view")
    check_new_name(request.name, "view name")
    _check_optional_location(request.location)
    return request


def parse_register_view(value: object) -> RegisterView:
    request = read(value, RegisterView, "register view")
    check_new_name(request.name, "view name")
    check_location(request.metadata_location, "metadata-location")
    return request


def parse_metrics_report(value: object) -> MetricsReport:
    """Only the kind is looked at: what reports hold is the clients' business."""
    body = read(value, dict[str, Any], "metrics report")
    kind = body.get("report-type")
    if not isinstance(kind, str) or not kind:
        raise InvalidInput("metrics report: report-type is missing", hint="scan-report or commit-report")
    return MetricsReport(kind, body)


def parse_commit_table(value: object) -> CommitTable:
    change = read(value, _TableChange, "commit")
    refuse_unknown_in_tables([(change.updates, change.requirements)])
    return _commit(change)


def parse_commit_transaction(value: object) -> tuple[CommitTable, ...]:
    """The changes of a transaction, in order; each must say which table it is for."""
    items = read(value, _Transaction, "transaction").table_changes
    if len(items) > TRANSACTION_CHANGES_MAX:
        raise TooLarge(f"a transaction has {len(items)} table changes, more than {TRANSACTION_CHANGES_MAX}")
    changes = [read(item, _TableChange, f"table-changes[{place}]") for place, item in enumerate(items)]
    for place, change in enumerate(changes):
        if change.identifier is None:
            raise InvalidInput(f"table-changes[{place}]: it has no identifier")
    refuse_unknown_in_tables([(change.updates, change.requirements) for change in changes])
    return tuple(_commit(change) for change in changes)


def parse_commit_view(value: object) -> CommitView:
    change = read(value, _ViewChange, "commit")
    refuse_unknown_in_view(change.updates, change.requirements)
    if change.identifier is not None:
        _check_identifier(change.identifier)
    return CommitView(change.identifier, view_requirements(change.requirements), view_updates(change.updates))


def check_name(name: str, what: str) -> None:
    """Any text a person could read is a name; what would break a line, a URL or a listing is not."""
    if not name:
        raise InvalidInput(f"{what}: it is empty")
    if len(name) > NAME_CHARS_MAX:
        raise InvalidInput(f"{what}: it has {len(name)} characters, more than {NAME_CHARS_MAX}")
    _refuse_unreadable(name, what)


def check_new_name(name: str, what: str) -> None:
    """For what gets a name: also not one that a tidied URL has no more. What has such a name already keeps it."""
    check_name(name, what)
    if name in {".", ".."}:
        raise InvalidInput(
            f"{what}: {name!r} is a step of a path, and clients that tidy their URLs never reach it",
            hint="choose another name",
        )


def check_namespace(levels: tuple[str, ...]) -> None:
    if not levels:
        raise InvalidInput("namespace: it has no level")
    if len(levels) > NAMESPACE_LEVELS_MAX:
        raise InvalidInput(f"namespace: it has {len(levels)} levels, more than {NAMESPACE_LEVELS_MAX}")
    for level in levels:
        check_name(level, "namespace level")


def check_location(location: str, what: str) -> None:
    if not location.strip():
        raise InvalidInput(f"{what}: it is empty")
    if len(location) > LOCATION_CHARS_MAX:
        raise InvalidInput(f"{what}: it has {len(location)} characters, more than {LOCATION_CHARS_MAX}")
    _refuse_unreadable(location, what)


def _check_optional_location(location: str | None) -> None:
    if location is not None:
        check_location(location, "location")


def _check_identifier(identifier: Identifier) -> None:
    check_namespace(identifier.namespace)
    check_name(identifier.name, "name")


def _refuse_unreadable(text: str, what: str) -> None:
    bad = next((char for char in text if unicodedata.category(char) in _REFUSED_CATEGORIES), None)
    if bad is not None:
        kind = "a lone surrogate" if unicodedata.category(bad) == "Cs" else "a control character"
        raise InvalidInput(f"{what}: {clip(ascii(text))} holds {kind} (U+{ord(bad):04X})")


def _commit(change: _TableChange) -> CommitTable:
    if change.identifier is not None:
        _check_identifier(change.identifier)
    return CommitTable(change.identifier, table_requirements(change.requirements), table_updates(change.updates))

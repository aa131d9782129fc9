"""The bodies that the platform API takes, read strictly: an unknown field or a wrong type is refused by its name.

What must never enter: limits and rules of what is said; those are the catalog's (`catalog/governance.py`).
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from arco.catalog.governance import FIELDS, GovernanceForm, given_fields
from arco.catalog.inventory import Description, DropRef, NewTable, Place
from arco.catalog.model import ColumnNote, Format, Governance, Levels
from arco.iceberg.requests import check_name, check_namespace
from arco.iceberg.shape import Text, read, read_with_nulls
from arco.kernel.errors import InvalidInput
from arco.kernel.limits import TABLES_TOGETHER_MAX


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


class Identifier(_Strict, frozen=True):
    namespace: Levels
    name: str


class NotedColumn(_Strict, frozen=True):
    name: str
    type: str
    nullable: bool = True
    description: str | None = None


class RegistrationForm(_Strict, frozen=True):
    namespace: Levels
    name: str
    format: Format
    location: str
    properties: dict[Text, str] = {}
    columns: tuple[NotedColumn, ...] = ()


class ChangeForm(_Strict, frozen=True):
    properties: dict[Text, str | None] = {}
    columns: tuple[NotedColumn, ...] | UnsetType | None = UNSET


class TablesTogether(_Strict, frozen=True):
    tables: tuple[Identifier, ...]


class TableRenaming(_Strict, frozen=True):
    source: Identifier
    destination: Identifier


class TableRestoring(_Strict, frozen=True):
    source: Identifier | None = None
    drop_id: str | None = None
    destination: Identifier | None = None


def _with_governance(name: str, form: type[msgspec.Struct]) -> type[msgspec.Struct]:
    """A body with the governance fields beside its own. They are read apart, and described together."""
    said = [(one.name, one.type, one.default) for one in msgspec.structs.fields(GovernanceForm)]
    return msgspec.defstruct(name, said, bases=(form,), frozen=True, kw_only=True, forbid_unknown_fields=True)


TableRegistration = _with_governance("TableRegistration", RegistrationForm)
TableDescription = _with_governance("TableDescription", ChangeForm)


def parse_registration(value: object) -> NewTable:
    said, rest = _split(value, "register table")
    form = read(rest, RegistrationForm, "register table")
    governance = msgspec.convert(given_fields(said, "register table"), Governance)
    columns = _notes(form.columns)
    return NewTable(form.namespace, form.name, form.format, form.location, form.properties, columns, governance)


def parse_description(value: object) -> Description:
    """Fields that are given change, a field that is null is cleared; a property that is null is removed."""
    said, rest = _split(value, "describe table")
    if not said and not rest:
        raise InvalidInput("describe table: the body names no field")
    change = read_with_nulls(rest, ChangeForm, "describe table")
    removals = tuple(key for key, text in change.properties.items() if text is None)
    updates = {key: text for key, text in change.properties.items() if text is not None}
    return Description(said, removals, updates, None if change.columns is UNSET else _notes(change.columns or ()))


_TOGETHER = 'send {"tables": [{"namespace": ["shop"], "name": "orders"}]}'


def parse_together(value: object) -> list[Place]:
    """The tables that are to be seen at one moment, each once."""
    try:
        wanted = read(value, TablesTogether, "together").tables
    except InvalidInput as error:
        raise InvalidInput(error.message, hint=_TOGETHER) from None
    if not 1 <= len(wanted) <= TABLES_TOGETHER_MAX:
        raise InvalidInput(f"together: {len(wanted)} tables", hint=f"name 1 to {TABLES_TOGETHER_MAX}")
    return list(dict.fromkeys(_place(one) for one in wanted))


def parse_renaming(value: object) -> tuple[Place, Place]:
    form = read_with_nulls(value, TableRenaming, "rename table")
    return _place(form.source), _place(form.destination)


def parse_restoring(value: object) -> tuple[DropRef, Place | None]:
    """What is wanted back, and the name it is to have."""
    form = read(value, TableRestoring, "restore table")
    if form.source is None and form.drop_id is None:
        raise InvalidInput("restore table: neither source nor drop_id is given")
    source = None if form.source is None else _place(form.source)
    return DropRef(source, form.drop_id), None if form.destination is None else _place(form.destination)


def _notes(columns: tuple[NotedColumn, ...]) -> tuple[ColumnNote, ...]:
    return tuple(ColumnNote(one.name, one.type, one.nullable, one.description) for one in columns)


def _split(value: object, what: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The governance fields of a body, and the others."""
    if not isinstance(value, Mapping):
        raise InvalidInput(f"{what}: the body is not a JSON object")
    return (
        {key: item for key, item in value.items() if key in FIELDS},
        {key: item for key, item in value.items() if key not in FIELDS},
    )


def _place(identifier: Identifier) -> Place:
    check_namespace(identifier.namespace)
    check_name(identifier.name, "name")
    return identifier.namespace, identifier.name

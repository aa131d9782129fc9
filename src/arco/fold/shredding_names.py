"""Tables and views under their names, as rows: what tier 1 did, commit by commit.

Every group is decided by the number of the commit and the place in it, never by when it was told: a teller that comes late must
not bring a dropped table back. What people say of a table is a group a field, because they say one without the others.
"""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from arco.fold.contributions import Contribution, RowMaker, told, told_at
from arco.fold.tables import CATALOG_TABLES
from arco.kernel.errors import InvalidInput
from arco.ledger import catalog_events as said
from arco.ledger.envelope import Event

_TABLE = RowMaker(CATALOG_TABLES)


class Fields(msgspec.Struct, frozen=True):
    """What may be said of a table. What is not given is not decided."""

    owner: str | UnsetType | None = UNSET
    description: str | UnsetType | None = UNSET
    tags: tuple[str, ...] | UnsetType | None = UNSET
    sensitivity: str | UnsetType | None = UNSET


_GROUPS = {"owner": "owned", "description": "described", "tags": "tagged", "sensitivity": "classified"}


def table_created(event: Event) -> Iterator[Contribution]:
    it = said.TableCreated.of(event)
    placed = _order(event, it)
    yield _row(
        it,
        created_at=event.time.time_ms,
        created_by=it.who,
        created_order=told(event, it.sequence, it.place),
        asset_id=it.asset_id,
        kind=it.kind,
        format=it.format,
        location=it.location,
        placed_order=placed,
        **_named(event, it),
        **_stands(event, it),
        **_said(event, it, Fields(it.owner, it.description, it.tags, it.sensitivity)),
    )


def table_dropped(event: Event) -> Iterator[Contribution]:
    it = said.TableDropped.of(event)
    yield _row(
        it,
        dropped=True,
        dropped_at=event.time.time_ms,
        dropped_by=it.who,
        drop_id=it.drop_id,
        purge=it.purge,
        standing_order=_order(event, it),
    )


def table_renamed(event: Event) -> Iterator[Contribution]:
    it = said.TableRenamed.of(event)
    renamed = {"renamed_at": event.time.time_ms, "renamed_by": it.who, "renamed_order": _order(event, it)}
    yield _row(it, **_named(event, it), **renamed)


def table_restored(event: Event) -> Iterator[Contribution]:
    it = said.TableRestored.of(event)
    yield _row(it, **_named(event, it), **_stands(event, it))


def table_described(event: Event) -> Iterator[Contribution]:
    it = said.TableDescribed.of(event)
    yield _row(it, **_said(event, it, fields_said(it)))


SHREDDERS: dict[str, Callable[[Event], Iterator[Contribution]]] = {
    said.TABLE_CREATED: table_created,
    said.TABLE_DROPPED: table_dropped,
    said.TABLE_RENAMED: table_renamed,
    said.TABLE_RESTORED: table_restored,
    said.TABLE_DESCRIBED: table_described,
}


def fields_said(it: said.TableDescribed) -> Fields:
    """What people say of a table from now on."""
    try:
        return msgspec.convert(it.fields, Fields)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"what is said of {it.table_uuid}: {error}".replace("`", "")) from None


def full_name(namespace: tuple[str, ...], name: str) -> str:
    return ".".join((*namespace, name))


def _row(it: said.NameChange, **more: Any) -> Contribution:
    return _TABLE({"table_uuid": it.table_uuid}, **more)


def _order(event: Event, it: said.NameChange) -> str:
    return told_at(event, event.time.time_ms, it.sequence, it.place)


def _named(event: Event, it: said.TableCreated | said.TableRenamed | said.TableRestored) -> dict[str, Any]:
    return {
        "table": full_name(it.namespace, it.name),
        "namespace": ".".join(it.namespace),
        "named_at": event.time.time_ms,
        "named_order": _order(event, it),
    }


def _stands(event: Event, it: said.NameChange) -> dict[str, Any]:
    return {"dropped": False, "standing_order": _order(event, it)}


def _said(event: Event, it: said.NameChange, fields: Fields) -> dict[str, Any]:
    """The groups of the fields that are given."""
    found: dict[str, Any] = {}
    for field, group in _GROUPS.items():
        value = getattr(fields, field)
        if value is not UNSET:
            found |= {field: list(value or ()) if field == "tags" else value, f"{group}_order": _order(event, it)}
    return found

"""Which columns hold personal data: marks that people set by name, and that stay with the column.

A mark of an Iceberg table remembers the field id of its column, so that a rename does not lose it: it is shown by the name that
the column has now. Where there are no ids that stay (tables of other formats, views, marks of before ids were kept) the name
is all there is. A mark whose column is gone is shown by the name it was set by: what was said is not hidden.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from arco.catalog.catalog import Catalog
from arco.catalog.model import ColumnNote, Entry, Format, Governance, Kind
from arco.iceberg.projection import current_columns
from arco.iceberg.shape import listed
from arco.kernel.errors import InvalidInput

Columns = Mapping[str, int | None]
"""The paths of all columns, at any depth, each with its field id if it has one that stays."""


async def columns_of(catalog: Catalog, entry: Entry, notes: Sequence[ColumnNote] | None) -> Columns:
    """The columns of a table or view as it is now. `notes`: those that a table of another format gets."""
    if entry.format is not Format.ICEBERG:
        return {one.name: None for one in (entry.columns if notes is None else notes)}
    if entry.kind is Kind.VIEW:
        _, view = await catalog.views.load(entry.namespace, entry.name)
        return {row.path: None for row in current_columns(view.metadata)}
    _, table = await catalog.tables.load(entry.namespace, entry.name)
    return {row.path: row.field_id for row in current_columns(table.metadata)}


def resolved(wanted: Mapping[str, Any], governance: Governance, columns: Columns) -> dict[str, int]:
    """The field ids of the columns that are marked. What is shown as marked may be sent back, though its column is gone."""
    before = {_name(path, governance, columns): governance.pii_field_ids.get(path) for path in governance.pii_columns}
    if columns:
        check(wanted, {**before, **columns})
    ids = {path: columns.get(path, before.get(path)) for path in wanted}
    return {path: field_id for path, field_id in ids.items() if field_id is not None}


def check(wanted: Mapping[str, Any], columns: Columns) -> None:
    """Refuse marks of columns that are not there. Of a table whose columns nobody told, nothing is known."""
    unknown = [path for path in wanted if path not in columns]
    if unknown and columns:
        raise InvalidInput(f"pii_columns: there is no column {listed(unknown)}", hint=f"the columns are {listed(columns)}")


def shown(governance: Governance, columns: Columns) -> dict[str, str]:
    """The marks by the names that their columns have now; first those that are gone, for a name may be in use again."""
    marks = governance.pii_columns.items()
    named = [(_name(path, governance, columns), kind) for path, kind in marks]
    return dict(sorted(named, key=lambda one: one[0] in columns))


def _name(path: str, governance: Governance, columns: Columns) -> str:
    field_id = governance.pii_field_ids.get(path)
    if field_id is None:
        return path
    return next((now for now, its in columns.items() if its == field_id), path)

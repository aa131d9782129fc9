"""What an output's columns mean for the table they go to: which column is which id, what is added, widened or left out.

Columns are found by name, because an output has only names; from then on the id counts. A column that the project declares under
a new name is renamed if the output has that name, and not the old one. A table's column keeps its type when
the output's is narrower, takes the output's when that is wider, and anything else is refused by name. Whether a change is
allowed at all is decided elsewhere (`quality/compatibility.py`), on the two schemas.

What must never enter: Spark. A schema here is the JSON document of the table format.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import count
from typing import Any

from arco.iceberg import schemas
from arco.iceberg.shape import JsonObject
from arco.kernel.errors import InvalidMetadata
from arco.kernel.ids import clip
from arco.quality.compatibility import widens

_NEW_COLUMN = "add a column of the new type beside it"
_OR_ANEW = f'{_NEW_COLUMN}; or, where every row is replaced, say compatibility="none"'


class Missing(Enum):
    """What becomes of a table's column that the output does not have."""

    DROP = "drop"
    KEEP = "keep"  # as null


@dataclass(frozen=True, slots=True)
class Merged:
    """The schema after an output, and what changed. `missing` columns are dropped, or null in the new rows."""

    schema: JsonObject
    added: tuple[str, ...] = ()
    widened: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    renamed: tuple[str, ...] = ()

    @property
    def evolves(self) -> bool:
        return bool(self.added or self.widened or self.dropped or self.renamed)


def with_new_ids(schema: JsonObject) -> JsonObject:
    """The schema of a new table, numbered as Iceberg does it."""
    return {**schemas.with_fresh_ids(schema)[0], "schema-id": 0}


def merge(
    table: JsonObject,
    output: JsonObject,
    *,
    last_column_id: int,
    missing: Missing = Missing.KEEP,
    format_version: int = 2,
    names: Mapping[int, str] | None = None,
    anew: bool = False,
) -> Merged:
    """A table's schema after an output with these columns was published to it. `names` are those declared for fields, by id.

    `anew`: no row of before stays and nothing is refused, so a column of another type goes, and one of its name comes.
    """
    merger = _Merger(count(last_column_id + 1), missing, format_version, names or {}, anew=anew)
    fields = merger.fields(table["fields"], output["fields"], "")
    identifiers = [one for one in table.get("identifier-field-ids") or () if any(field["id"] == one for field in fields)]
    schema: JsonObject = {**table, "fields": fields}
    if table.get("identifier-field-ids"):
        schema["identifier-field-ids"] = identifiers
    dropped = tuple(merger.missing) if missing is Missing.DROP else ()
    return Merged(schema, tuple(merger.added), tuple(merger.widened), tuple(merger.missing), dropped, tuple(merger.renamed))


class _Merger:
    """One walk over both schemas, with the ids that are still free."""

    def __init__(
        self, free: "count[int]", missing: Missing, format_version: int, names: Mapping[int, str], *, anew: bool
    ) -> None:
        self._free = free
        self._anew = anew
        self._names = names
        self._on_missing = missing
        self._format_version = format_version
        self.added: list[str] = []
        self.widened: list[str] = []
        self.missing: list[str] = []
        self.renamed: list[str] = []

    def fields(self, table: list[JsonObject], output: list[JsonObject], above: str) -> list[JsonObject]:
        theirs = {field["name"]: field for field in output}
        table = [self._under_its_declared_name(field, table, theirs, above) for field in table]
        _refuse_case_twins(table, theirs, above)
        kept = []
        for field in table:
            path = f"{above}{field['name']}"
            kind = self._type_of(field, theirs, path)
            if kind is not None:
                kept.append({**field, "type": kind})
                theirs.pop(field["name"])
                continue
            self.missing.append(path)
            if self._on_missing is Missing.KEEP:
                if field["required"]:
                    raise InvalidMetadata(f"the output has no column {clip(path)!r}, which is required", hint="write it")
                kept.append(field)
        return [*kept, *(self._new(field, above) for field in theirs.values())]

    def _type_of(self, field: JsonObject, output: Mapping[str, JsonObject], path: str) -> Any | None:
        """The type that a column of the table has from now on; None if it goes."""
        if field["name"] not in output:
            return None
        try:
            return self._type(field["type"], output[field["name"]]["type"], path)
        except InvalidMetadata:
            if not self._anew:
                raise
            return None

    def _under_its_declared_name(
        self, field: JsonObject, table: list[JsonObject], output: Mapping[str, JsonObject], above: str
    ) -> JsonObject:
        name = self._names.get(field["id"], field["name"])
        taken = {one["name"] for one in table}
        if name in taken or name not in output or field["name"] in output:
            return field
        self.renamed.append(f"{above}{field['name']}")
        return {**field, "name": name}

    def _new(self, field: JsonObject, above: str) -> JsonObject:
        self.added.append(f"{above}{field['name']}")
        # Rows written before have no value for it, whatever the output says of its own rows.
        return {**field, "id": next(self._free), "required": False, "type": self._numbered(field["type"])}

    def _numbered(self, kind: Any) -> Any:
        if isinstance(kind, str):
            return kind
        if kind["type"] == "struct":
            fields = [{**field, "id": next(self._free)} for field in kind["fields"]]
            return {**kind, "fields": [{**field, "type": self._numbered(field["type"])} for field in fields]}
        if kind["type"] == "list":
            return {**kind, "element-id": next(self._free), "element": self._numbered(kind["element"])}
        ids = {"key-id": next(self._free), "value-id": next(self._free)}
        return {**kind, **ids, "key": self._numbered(kind["key"]), "value": self._numbered(kind["value"])}

    def _type(self, table: Any, output: Any, path: str) -> Any:
        if isinstance(table, str) and isinstance(output, str):
            return self._leaf(table, output, path)
        if isinstance(table, str) or isinstance(output, str) or table["type"] != output["type"]:
            raise _other_type(path, table, output)
        if table["type"] == "struct":
            return {**table, "fields": self.fields(table["fields"], output["fields"], f"{path}.")}
        if table["type"] == "list":
            return {**table, "element": self._type(table["element"], output["element"], f"{path}.element")}
        key = self._type(table["key"], output["key"], f"{path}.key")
        if key != table["key"]:
            raise InvalidMetadata(f"the keys of {clip(path)!r} changed", hint=_NEW_COLUMN)
        return {**table, "key": key, "value": self._type(table["value"], output["value"], f"{path}.value")}

    def _leaf(self, table: str, output: str, path: str) -> str:
        before, after = table.replace(" ", ""), output.replace(" ", "")
        if before == after or widens(after, before, format_version=2):
            return table
        if not widens(before, after, format_version=self._format_version):
            raise _other_type(path, before, after)
        self.widened.append(path)
        return output


def _refuse_case_twins(table: list[JsonObject], output: dict[str, JsonObject], above: str) -> None:
    """Spark takes `Id` and `id` for one column, the table format for two."""
    exact = {field["name"] for field in table}
    known = {name.casefold(): name for name in exact}
    seen: dict[str, str] = {}
    for name in output:
        twin = seen.setdefault(name.casefold(), name)
        other = name if name in exact else known.get(name.casefold(), name)
        if name != twin or name != other:
            found = twin if name != twin else other
            raise InvalidMetadata(
                f"the output's column {clip(above + name)!r} differs from {clip(above + found)!r} in letter case only",
                hint="write it as the table does",
            )


def _other_type(path: str, table: Any, output: Any) -> InvalidMetadata:
    return InvalidMetadata(
        f"column {clip(path)!r} is {_said(table)} in the table and {_said(output)} in the output", hint=_OR_ANEW
    )


def _said(kind: Any) -> str:
    return kind if isinstance(kind, str) else str(kind["type"])

"""Which changes of a schema are allowed: one table of changes × modes, and one function that reads it.

*Backward*: the new schema reads data written before it. *Forward*: the old schema reads data written after it. *Full* is both,
by construction: it allows what both allow, so it never accepts a dropped column (hazard 21). Columns are found by their id,
never by name. Deploying, planning and publishing all ask `verdict`; docs/compatibility.md prints `RULES`.

What must never enter: a second opinion. What the partition spec forbids besides is the table format's business.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from arco.kernel.canonical_json import canonical_bytes
from arco.quality.schemas import Column, ColumnKey, Schema


class Compatibility(StrEnum):
    NONE = "none"
    BACKWARD = "backward"
    FORWARD = "forward"
    FULL = "full"


class ChangeKind(StrEnum):
    ADD_OPTIONAL = "add an optional column"
    ADD_REQUIRED = "add a required column without a default"
    ADD_WITH_DEFAULT = "add a column with a default"
    DROP = "drop a column"
    RENAME = "rename a column"
    WIDEN = "widen a type"
    RETYPE = "change a type in any other way"
    RELAX = "make a required column optional"
    TIGHTEN = "make an optional column required"
    REDEFAULT = "change the default for old rows"
    REORDER = "reorder columns"
    REDOCUMENT = "change a description"


@dataclass(frozen=True, slots=True)
class Rule:
    """Of one kind of change: why each direction refuses it, or None where it is allowed; and the way out of a refusal."""

    backward: str | None
    forward: str | None
    way_out: str = ""
    in_place: bool = True  # the table format can record it on a table that has data


_OTHER_FORMAT = "the table format has no such change of a column that holds data"
_NEW_COLUMN = "add a column of the new type beside the old one and move readers to it"

RULES: dict[ChangeKind, Rule] = {
    ChangeKind.ADD_OPTIONAL: Rule(backward=None, forward=None),
    ChangeKind.ADD_REQUIRED: Rule(
        backward="rows written before have no value for it",
        forward=None,
        way_out="add it as optional, or with a default",
        in_place=False,
    ),
    ChangeKind.ADD_WITH_DEFAULT: Rule(backward=None, forward=None),
    ChangeKind.DROP: Rule(
        backward=None,
        forward="readers of the old schema still ask for it",
        way_out="keep the column, or change the asset's compatibility to backward when no reader needs it",
    ),
    ChangeKind.RENAME: Rule(backward=None, forward=None),
    ChangeKind.WIDEN: Rule(
        backward=None,
        forward="new values may not fit the type that readers of the old schema expect",
        way_out=_NEW_COLUMN,
    ),
    ChangeKind.RETYPE: Rule(
        backward="rows written before cannot be read as the new type",
        forward=_OTHER_FORMAT,
        way_out=_NEW_COLUMN,
        in_place=False,
    ),
    ChangeKind.RELAX: Rule(
        backward=None,
        forward="readers of the old schema rely on a value in every row",
        way_out="keep it required and write a value that says there is none, or add an optional column",
    ),
    ChangeKind.TIGHTEN: Rule(
        backward="rows written before may hold NULL",
        forward=None,
        way_out="keep it optional and add the check not_null",
        in_place=False,
    ),
    ChangeKind.REDEFAULT: Rule(
        backward="rows written before the column existed would change their value",
        forward="the two schemas would read different values from the same rows",
        way_out="keep the default, and write the new value from now on",
        in_place=False,
    ),
    ChangeKind.REORDER: Rule(backward=None, forward=None),
    ChangeKind.REDOCUMENT: Rule(backward=None, forward=None),
}


def refusal_of(kind: ChangeKind, mode: Compatibility) -> str | None:
    """One cell of the table: why the mode refuses the change, or None where it allows it."""
    rule = RULES[kind]
    match mode:
        case Compatibility.NONE:
            return None
        case Compatibility.BACKWARD:
            return rule.backward
        case Compatibility.FORWARD:
            return rule.forward
        case Compatibility.FULL:
            return "; ".join(why for why in (rule.backward, rule.forward) if why is not None) or None


@dataclass(frozen=True, slots=True)
class Change:
    """One difference. `before` and `after` are texts for people; None where there is nothing."""

    kind: ChangeKind
    column: str
    before: str | None = None
    after: str | None = None

    @property
    def in_place(self) -> bool:
        return RULES[self.kind].in_place

    def __str__(self) -> str:
        detail = f" ({self.before} → {self.after})" if self.before is not None and self.after is not None else ""
        return f"{self.kind.value}: {self.column}{detail}"


@dataclass(frozen=True, slots=True)
class Refusal:
    change: Change
    reason: str
    way_out: str

    def __str__(self) -> str:
        return f"{self.change}: {self.reason}; {self.way_out}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """All changes, and those that the mode refuses with the reason and the way out."""

    mode: Compatibility
    changes: tuple[Change, ...]
    refusals: tuple[Refusal, ...]

    @property
    def allowed(self) -> bool:
        return not self.refusals

    @property
    def in_place(self) -> bool:
        """Whether the table can go on as it is. Otherwise an allowed change still needs every row written again."""
        return all(change.in_place for change in self.changes)


def verdict(before: Schema, after: Schema, mode: Compatibility, *, format_version: int = 2) -> Verdict:
    found = changes(before, after, format_version=format_version)
    refusals = [
        Refusal(change, reason, RULES[change.kind].way_out)
        for change in found
        if (reason := refusal_of(change.kind, mode)) is not None
    ]
    return Verdict(mode, found, tuple(refusals))


def changes(before: Schema, after: Schema, *, format_version: int = 2) -> tuple[Change, ...]:
    """What differs, found by column id: drops first, then the new schema's columns in their order, then new orders.

    What lies inside a column that is added, dropped or of another type is told by that column alone.
    """
    old, new = before.by_id(), after.by_id()
    found: list[Change] = []
    settled: set[ColumnKey] = set()
    for column in before.columns:
        if column.id not in new:
            if column.parent not in settled and not _is_retyped(column.parent, old, new, format_version):
                found.append(_dropped(column))
            settled.add(column.id)
    for column in after.columns:
        if column.parent in settled:
            settled.add(column.id)
            continue
        here = old.get(column.id)
        found += _added(column) if here is None else _altered(here, column, format_version)
        if here is None or _type_change(here, column, format_version) is ChangeKind.RETYPE:
            settled.add(column.id)
    return (*found, *_reordered(before, after))


def _is_retyped(
    key: ColumnKey | None, old: dict[ColumnKey, Column], new: dict[ColumnKey, Column], format_version: int
) -> bool:
    if key is None or key not in old or key not in new:
        return False
    if _type_change(old[key], new[key], format_version) is ChangeKind.RETYPE:
        return True
    return _is_retyped(old[key].parent, old, new, format_version)


def _dropped(column: Column) -> Change:
    # A key of a map with one field less is another key: equal keys would meet.
    kind = ChangeKind.RETYPE if column.in_map_key else ChangeKind.DROP
    return Change(kind, column.full_name, before=column.type)


def _added(column: Column) -> list[Change]:
    kind = ChangeKind.ADD_REQUIRED if column.required else ChangeKind.ADD_OPTIONAL
    if column.default is not None:
        kind = ChangeKind.ADD_WITH_DEFAULT
    if column.in_map_key:
        kind = ChangeKind.RETYPE
    return [Change(kind, column.full_name, after=column.type)]


def _altered(before: Column, after: Column, format_version: int) -> Iterator[Change]:
    name = after.full_name
    if before.parent != after.parent:
        yield Change(ChangeKind.RETYPE, name, before.full_name, after.full_name)
    elif before.name != after.name:
        yield Change(ChangeKind.RENAME, name, before.full_name, after.full_name)
    if kind := _type_change(before, after, format_version):
        yield Change(kind, name, before.type, after.type)
    if before.required != after.required:
        words = ("optional", "required")
        kind = ChangeKind.TIGHTEN if after.required else ChangeKind.RELAX
        yield Change(kind, name, words[before.required], words[after.required])
    old_default, new_default = canonical_bytes(before.default), canonical_bytes(after.default)
    if old_default != new_default:
        yield Change(ChangeKind.REDEFAULT, name, old_default.decode(), new_default.decode())
    if before.doc != after.doc:
        yield Change(ChangeKind.REDOCUMENT, name)


def _type_change(before: Column, after: Column, format_version: int) -> ChangeKind | None:
    if before.type == after.type:
        return None
    return ChangeKind.WIDEN if widens(before.type, after.type, format_version=format_version) else ChangeKind.RETYPE


_DECIMAL = re.compile(r"decimal\(([0-9]+),([0-9]+)\)")
_WIDENINGS = {("int", "long"), ("float", "double")}
_WIDENINGS_V3 = {("date", "timestamp"), ("date", "timestamp_ns")}


def widens(before: str, after: str, *, format_version: int) -> bool:
    """Whether the table format reads old values as the new type: nothing else is a widening."""
    old, new = _DECIMAL.fullmatch(before), _DECIMAL.fullmatch(after)
    if old and new:
        return old[2] == new[2] and int(old[1]) < int(new[1])
    return (before, after) in _WIDENINGS or (format_version >= 3 and (before, after) in _WIDENINGS_V3)


def _reordered(before: Schema, after: Schema) -> Iterator[Change]:
    old, new = before.by_id(), after.by_id()
    parents = dict.fromkeys(column.parent for column in after.columns)
    for parent in parents:
        then = [column.id for column in before.columns if column.parent == parent and _stays(column, new)]
        now = [column.id for column in after.columns if column.parent == parent and _stays(column, old)]
        if then != now:
            yield Change(ChangeKind.REORDER, new[parent].full_name if parent is not None else "the table")


def _stays(column: Column, other: dict[ColumnKey, Column]) -> bool:
    return column.id in other and other[column.id].parent == column.parent

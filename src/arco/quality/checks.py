"""What a check is, as data: valid by construction, with a document and a fingerprint.

How each kind is measured is the executor's business; what it means is said here and in docs/checks.md. One rule for all: a
verdict that is NULL is a failure, and a NULL value fails every check on it unless the check says `allow_null`.

What must never enter: Spark, measured numbers, and what is done about a failure.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum, StrEnum
from functools import total_ordering
from typing import Any, ClassVar, Self

from arco.kernel.canonical_json import JsonValue, canonical_bytes
from arco.kernel.errors import InvalidInput
from arco.kernel.fingerprint import fingerprint
from arco.kernel.ids import clip
from arco.kernel.limits import CHECK_NAME_CHARS_MAX
from arco.quality.schemas import Schema

Literal = bool | int | float | str | Decimal | date | datetime
"""A value that a column is compared with."""


@total_ordering
class Ranked(Enum):
    """Words in an order: a later one is stronger. Compared by their place, never by their spelling."""

    @classmethod
    def of(cls, word: "Self | str") -> Self:
        if isinstance(word, cls):
            return word
        try:
            return cls(word)
        except ValueError:
            known = ", ".join(str(member.value) for member in cls)
            raise InvalidInput(f"{word!r} is no {cls.__name__.lower()}", hint=f"one of {known}") from None

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        order = list(type(self))
        return order.index(self) < order.index(other)


class Severity(Ranked):
    """How bad a failure is. What is done about it is the gate's business."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"


class Level(StrEnum):
    """What is needed to measure a check."""

    ROW = "row"  # a verdict for each row by itself, in the pass that writes
    AGGREGATE = "aggregate"  # one aggregate over the rows, in the same pass
    RELATION = "relation"  # rows compared with each other or with another table: a shuffle
    SCHEMA = "schema"  # no rows at all
    FUNCTION = "function"  # code that is given the rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Check(ABC):
    """A check. The name is made of kind and columns unless one is given, and is unique within an asset."""

    kind: ClassVar[str]
    level: ClassVar[Level]
    columns_min: ClassVar[int] = 0
    columns_max: ClassVar[int] = 0

    name: str = ""
    severity: Severity = Severity.ERROR
    columns: tuple[str, ...] = ()
    quarantine_rows: bool = False

    def __post_init__(self) -> None:
        self._check_columns()
        if not self.name:
            object.__setattr__(self, "name", f"{self.kind}({', '.join(self.columns)})" if self.columns else self.kind)
        if len(self.name) > CHECK_NAME_CHARS_MAX or not self.name.isprintable() or self.name != self.name.strip():
            raise InvalidInput(
                f"{clip(self.name)!r} is not a check name",
                hint=f"give name= up to {CHECK_NAME_CHARS_MAX} printable characters without spaces around them",
            )
        if self.quarantine_rows and self.level is not Level.ROW:
            raise InvalidInput(
                f"check {self.name}: quarantine_rows needs a verdict for each row, and {self.kind} has none",
                hint="leave it out; the gate can keep the whole output back",
            )
        self._check_rule()

    @property
    def column(self) -> str:
        """The column of a check that has exactly one."""
        (only,) = self.columns
        return only

    @property
    @abstractmethod
    def expected(self) -> str:
        """What must hold, in words."""

    @property
    def fingerprint(self) -> str:
        return fingerprint("check", canonical_bytes(self.describe()))

    def describe(self) -> dict[str, JsonValue]:
        """The definition as a document, for deployments and fingerprints. Functions are in it by their fingerprint."""
        head = {each.name for each in fields(Check)}
        return {
            "name": self.name,
            "kind": self.kind,
            "level": self.level.value,
            "severity": self.severity.value,
            "columns": list(self.columns),
            "quarantine_rows": self.quarantine_rows,
            "rule": {
                each.name: document_of(getattr(self, each.name))
                for each in fields(self)
                if each.compare and each.name not in head
            },
        }

    def _check_rule(self) -> None:  # noqa: B027 - a kind without a rule of its own has nothing to refuse
        """Raises what is wrong with the kind's own fields."""

    def _check_columns(self) -> None:
        what = self.name or self.kind
        for column in self.columns:
            if not is_text(column):
                raise InvalidInput(f"check {what}: {column!r} is not a column name", hint="give the name as text")
        if twice := {column for column in self.columns if self.columns.count(column) > 1}:
            raise InvalidInput(f"check {what}: column {min(twice)!r} is named twice")
        if len(self.columns) < self.columns_min:
            raise InvalidInput(f"check {what} names no column", hint=f'write {self.kind}("column")')
        if len(self.columns) > self.columns_max:
            raise InvalidInput(f"check {what} takes {self.columns_max or 'no'} columns, not {len(self.columns)}")


def named(checks: Iterable[Check]) -> dict[str, Check]:
    """The checks of one asset by name; two of one name are refused, since results would be mistaken for each other."""
    found: dict[str, Check] = {}
    for check in checks:
        if check.name in found:
            raise InvalidInput(f"there are two checks {check.name!r}", hint="give one of them another name=")
        found[check.name] = check
    return found


# --- values


def is_text(value: object) -> bool:
    """Whether somebody wrote a text with something in it: authors' code is not always typed."""
    return isinstance(value, str) and bool(value.strip())


def _family(value: object) -> str | None:
    match value:
        case bool():
            return "true and false"
        case int() | float() | Decimal():
            return "numbers" if math.isfinite(value) else None
        case str():
            return "text"
        case datetime():
            return "timestamps" if value.tzinfo is None else "timestamps with a zone"
        case date():
            return "dates"
        case _:
            return None


def check_one_family(check: Check, values: Iterable[object]) -> None:
    """Spark would turn mixed values into text without a word, and compare that."""
    found: set[str] = set()
    for value in values:
        family = _family(value)
        if family is None:
            raise InvalidInput(
                f"check {check.name}: a column cannot be compared with {value!r}", hint="a number, text, date or time"
            )
        found.add(family)
    if len(found) > 1:
        raise InvalidInput(f"check {check.name} mixes {' and '.join(sorted(found))}", hint="use values of one type")


def check_order(check: Check, low: Any, high: Any) -> None:
    if low is not None and high is not None and low > high:
        raise InvalidInput(f"check {check.name}: min {low} is above max {high}")


def between(what: str, low: object, high: object, *, inclusive: bool = True) -> str:
    at_least, at_most = (">=", "<=") if inclusive else (">", "<")
    bounds = [f"{what} {sign} {bound}" for sign, bound in ((at_least, low), (at_most, high)) if bound is not None]
    return " and ".join(bounds)


def document_of(value: object) -> JsonValue:
    """A field as JSON, where values of different types never look the same."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case Decimal():
            return {"decimal": str(value)}
        case datetime():
            return {"timestamp": (value if value.tzinfo is None else value.astimezone(UTC)).isoformat()}
        case date():
            return {"date": value.isoformat()}
        case tuple():
            return [document_of(each) for each in value]
        case Schema():
            return value.describe()
        case _:
            raise InvalidInput(f"a {type(value).__name__} has no place in a check")

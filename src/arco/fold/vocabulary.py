"""The words that tables of operational state are declared with: columns, groups that are decided together, tables.

A table is a set of rows by key. Events contribute rows; rows of one key are joined, group by group: the contribution with the
first (or the last) order gives all columns of the group. An order is a text that grows as text, so one comparison decides in
Python, in Spark and in DuckDB alike, and it ends in what makes it unique. Joining is therefore commutative, associative and
idempotent, whatever was folded before, twice, or late.

What must never enter: how a join is executed, and counters (hazard 7: a count is derived from distinct rows).
"""

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

from arco.storage.keys import Head

Row: TypeAlias = Mapping[str, Any]
"""One contribution, or one row of state: every column by its name. A group that is absent is null throughout."""

BUCKETS = 256
BUCKET = "bucket"


class Kind(StrEnum):
    """What a column holds. A moment is milliseconds of UTC in rows, and a timestamp in files."""

    TEXT = "text"
    LONG = "long"
    REAL = "real"
    FLAG = "flag"
    MOMENT = "moment"
    TEXTS = "texts"


class Wins(StrEnum):
    """Which contribution of a key gives a group its values."""

    FIRST = "first"
    LAST = "last"


@dataclass(frozen=True, slots=True)
class Column:
    """One column. `later`: files of before it was added do not have it, and it is null in their rows.

    In a key it may be there and null, because it was no part of the key: such rows have the empty text.
    """

    name: str
    kind: Kind
    about: str
    later: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """Columns that are decided together, by the order that stands beside them in the row."""

    name: str
    wins: Wins
    columns: tuple[Column, ...]

    @property
    def order(self) -> str:
        return f"{self.name}_order"


@dataclass(frozen=True, slots=True)
class Table:
    """A table of state. `spread_by` is the key column whose value decides the bucket; files are sorted by bucket and key.

    `edition` rises when the key gets another column: rows of before are read on, and lack what only the new key keeps apart.
    """

    name: str
    head: Head
    about: str
    key: tuple[Column, ...]
    groups: tuple[Group, ...]
    spread_by: str
    edition: int = 1
    key_names: tuple[str, ...] = field(init=False)
    column_names: tuple[str, ...] = field(init=False)
    has_grown: bool = field(init=False)
    later_keys: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        # Once: they are asked for with every row.
        object.__setattr__(self, "key_names", tuple(column.name for column in self.key))
        object.__setattr__(self, "column_names", tuple(column.name for column in self.columns()))
        object.__setattr__(self, "has_grown", any(column.later for column in self.columns()))
        object.__setattr__(self, "later_keys", frozenset(column.name for column in self.key if column.later))

    @property
    def whole_as(self) -> str:
        """The name under which a manifest says that the table has every event of its head."""
        return self.name if self.edition == 1 else f"{self.name}.{self.edition}"

    def columns(self) -> Iterator[Column]:
        """Everything that a row has, in the order of the files."""
        yield Column(BUCKET, Kind.LONG, "where the row is looked for: the CRC-32 of its spreading column, modulo 256")
        yield from self.key
        for group in self.groups:
            yield from group.columns
            yield Column(group.order, Kind.TEXT, f"decides {group.name}: the {group.wins} wins")


def bucket_of(value: str) -> int:
    """The bucket of a value. Browsers compute the same."""
    return zlib.crc32(value.encode()) % BUCKETS

"""One consistent cut of everything that is folded: which files every table has, under one snapshot id.

Answers carry the id of the cut they come from, and the same id always gives the same answer.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from arco.fold.vocabulary import Table, bucket_of
from arco.fold.work import StateFile


@dataclass(frozen=True, slots=True)
class Layers:
    """The files of one table: a base that is joined already, and deltas on top of it, oldest first."""

    base: tuple[StateFile, ...] = ()
    deltas: tuple[tuple[StateFile, ...], ...] = ()

    def holding(self, bucket: int | None) -> "Layers":
        """Only the files that can have rows of a bucket."""
        if bucket is None:
            return self
        deltas = tuple(_holding(files, bucket) for files in self.deltas)
        return Layers(_holding(self.base, bucket), tuple(files for files in deltas if files))


@dataclass(frozen=True, slots=True)
class Cut:
    """The tables as of one snapshot. `published_ms` is when it became visible."""

    snapshot_id: str
    published_ms: int
    tables: Mapping[str, Layers] = field(default_factory=dict)

    def layers(self, table: Table, spread: str | None = None) -> Layers:
        """The files of a table, or those where one value of its spreading column can be."""
        found = self.tables.get(table.name, Layers())
        return found.holding(None if spread is None else bucket_of(spread))


def _holding(files: Iterable[StateFile], bucket: int) -> tuple[StateFile, ...]:
    return tuple(file for file in files if bucket in file.buckets)

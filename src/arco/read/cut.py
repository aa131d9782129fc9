"""One consistent cut of everything that is folded: which files every table has, under one snapshot id.

Answers carry the id of the cut they come from, and the same id always gives the same answer.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from arco.fold.manifests import Gap
from arco.fold.vocabulary import Table, bucket_of
from arco.fold.work import StateFile


@dataclass(frozen=True, slots=True)
class Layers:
    """The files of one table: a base that is joined already, and deltas on top of it, oldest first."""

    base: tuple[StateFile, ...] = ()
    deltas: tuple[tuple[StateFile, ...], ...] = ()

    def holding(self, buckets: AbstractSet[int]) -> "Layers":
        """Only the files that can have rows of some buckets."""
        deltas = tuple(_holding(files, buckets) for files in self.deltas)
        return Layers(_holding(self.base, buckets), tuple(files for files in deltas if files))

    def files(self) -> Iterator[StateFile]:
        yield from self.base
        for files in self.deltas:
            yield from files


@dataclass(frozen=True, slots=True)
class HeadCut:
    """One head as a cut names it: its manifest, and what was folded into it so far."""

    head: str
    snapshot_id: str
    sequence: int
    published_ms: int
    events: int
    refused: int
    set_aside: int
    gaps: tuple[Gap, ...] = ()
    more_gaps: int = 0


@dataclass(frozen=True, slots=True)
class Cut:
    """The tables as of one snapshot. `published_ms` is when it became visible."""

    snapshot_id: str
    published_ms: int
    tables: Mapping[str, Layers] = field(default_factory=dict)
    heads: tuple[HeadCut, ...] = ()

    def layers(self, table: Table, spread: Collection[str] | None = None) -> Layers:
        """The files of a table, or those where some values of its spreading column can be."""
        found = self.tables.get(table.name, Layers())
        return found if spread is None else found.holding({bucket_of(value) for value in spread})


def _holding(files: Iterable[StateFile], buckets: AbstractSet[int]) -> tuple[StateFile, ...]:
    return tuple(file for file in files if not buckets.isdisjoint(file.buckets))

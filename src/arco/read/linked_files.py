"""The files of one snapshot that may be handed out: exactly those that its manifests name, less what nobody asked for.

The failure this prevents: a link is made for a path that somebody sent. Here paths only choose among what a manifest names, and
what a manifest names must itself be a file of state of the very workspace.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from arco.fold.heads import Heads
from arco.fold.tables import TABLES
from arco.fold.time_travel import cut_by_id
from arco.fold.vocabulary import BUCKETS, Table, bucket_of
from arco.fold.work import StateFile
from arco.kernel.errors import BrokenInvariant, CorruptObject, InvalidInput, NotFound
from arco.kernel.ids import SnapshotId, clip
from arco.kernel.scope import Scope
from arco.read.binding import Bindings
from arco.read.cut import Cut
from arco.storage.keys import StateFileKey, parse

_BY_NAME = {table.name: table for table in TABLES}
_NAMESPACE = "namespace"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked for; what is None does not matter. A namespace means the tables that are spread by it: search's index."""

    tables: tuple[str, ...] | None = None
    namespace: str | None = None
    buckets: tuple[int, ...] | None = None
    paths: tuple[str, ...] | None = None


EVERYTHING = Wanted()


@dataclass(frozen=True, slots=True)
class LinkedFile:
    """One file. Layer 0 is the base, which is joined already; deltas follow, oldest first."""

    layer: int
    file: StateFile


async def cut_of(heads: Heads, snapshot: str | None) -> Cut:
    """The snapshot with an id, or the current one."""
    bindings = Bindings(heads, _no_reader)
    if snapshot is None:
        return await bindings.current()
    return await bindings.cut(await cut_by_id(heads, SnapshotId(snapshot)))


def linked_files(cut: Cut, scope: Scope, wanted: Wanted = EVERYTHING) -> tuple[LinkedFile, ...]:
    """The files of a cut that are wanted, by table and layer. A path that the cut does not name is refused."""
    names = tuple(table.name for table in linked_tables(wanted))
    buckets = _buckets(wanted)
    found = [one for one in _files(cut, names) if buckets is None or not buckets.isdisjoint(one.file.buckets)]
    if wanted.paths is not None:
        found = _chosen(found, wanted.paths)
    for one in found:
        _check(one.file, scope)
    return tuple(found)


def linked_tables(wanted: Wanted = EVERYTHING) -> tuple[Table, ...]:
    """The tables whose files are meant, whether they have any or not."""
    return tuple(_BY_NAME[name] for name in _names(wanted))


def _names(wanted: Wanted) -> tuple[str, ...]:
    spread = tuple(name for name, table in _BY_NAME.items() if table.spread_by == _NAMESPACE)
    if wanted.tables is None:
        return tuple(_BY_NAME) if wanted.namespace is None else spread
    for name in wanted.tables:
        if name not in _BY_NAME:
            raise InvalidInput(f"there is no table {clip(name)!r}", hint=f"the tables are {', '.join(_BY_NAME)}")
        if wanted.namespace is not None and name not in spread:
            raise InvalidInput(
                f"rows of {name} are not spread by namespace", hint=f"those of {' and '.join(spread)} are; or give buckets"
            )
    return tuple(dict.fromkeys(wanted.tables))


def _buckets(wanted: Wanted) -> set[int] | None:
    if wanted.namespace is not None and wanted.buckets is not None:
        raise InvalidInput("a namespace has one bucket", hint="give a namespace or buckets, not both")
    if wanted.namespace is not None:
        return {bucket_of(wanted.namespace)}
    if wanted.buckets is None:
        return None
    for one in wanted.buckets:
        if not 0 <= one < BUCKETS:
            raise InvalidInput(f"bucket {one} is not between 0 and {BUCKETS - 1}")
    return set(wanted.buckets)


def _files(cut: Cut, names: tuple[str, ...]) -> Iterator[LinkedFile]:
    for name in names:
        layers = cut.layers(_BY_NAME[name])
        for file in layers.base:
            yield LinkedFile(0, file)
        for number, files in enumerate(layers.deltas, start=1):
            for file in files:
                yield LinkedFile(number, file)


def _chosen(found: list[LinkedFile], paths: tuple[str, ...]) -> list[LinkedFile]:
    named = {one.file.key: one for one in found}
    for path in paths:
        if path not in named:
            raise NotFound(
                f"{clip(path)!r} is no file of this snapshot and scope",
                hint="paths are those that this route answered with",
            )
    return [named[path] for path in dict.fromkeys(paths)]


def _check(file: StateFile, scope: Scope) -> None:
    """What a manifest names lies where files of state lie, in its own workspace."""
    try:
        key = parse(file.key)
    except InvalidInput:
        key = None
    if not isinstance(key, StateFileKey) or key.scope != scope:
        raise CorruptObject(f"a manifest of {scope.warehouse} names {clip(file.key)!r}, which is no file of its state")


def _no_reader(_cut: Cut) -> NoReturn:
    raise BrokenInvariant("links are made without reading any file")

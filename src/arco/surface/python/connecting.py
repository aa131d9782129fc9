"""`arco.connect(root).table("shop.orders").to_arrow()`: tables of a root, in a program or a notebook, without a server.

A table is pinned when it is asked for: whatever is published afterwards, the same handle gives the same rows. Nothing stays
open between two calls, so there is nothing to close. What must never enter: anything that writes.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import import_module
from typing import Any, TypeVar

from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.expressions.parser import parse
from pyiceberg.io import FileIO
from pyiceberg.table import Table as PyIcebergTable
from pyparsing import ParseBaseException

from arco.catalog.catalog import Catalog
from arco.catalog.inventory import Inventory
from arco.catalog.model import Format, Kind, Levels
from arco.catalog.side_by_side import side_by_side
from arco.catalog.spelling import parse_name, spelled
from arco.iceberg.metadata import TableMetadata
from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.kernel.errors import InvalidInput, NotFound
from arco.kernel.ids import clip
from arco.kernel.scope import Scope
from arco.servo.execute.file_access import file_io
from arco.servo.execute.table_state import TableState, state_of
from arco.storage.roots import open_root, parse_root
from arco.surface.cli.settings import Settings, load_settings
from arco.surface.http.client_config import base_uri

T = TypeVar("T")

Filter = str | BooleanExpression
"""Rows to keep: `"amount > 100 and region = 'de'"`, or an expression of PyIceberg."""


def connect(root: str | None = None, warehouse: str = "default/default", **options: object) -> "Connection":
    """The tables of a root: a folder, s3://, gs:// or az://. Without one, that of ARCO_ROOT or arco.toml.

    Options are those of `arco -o`: connect("s3://bucket/lake", endpoint="http://127.0.0.1:9000", path_style=True).
    """
    written = [f"{word}={str(value).lower() if isinstance(value, bool) else value}" for word, value in options.items()]
    return Connection(load_settings(root, written), Scope.parse_warehouse(warehouse))


@dataclass(frozen=True, slots=True)
class Connection:
    """One workspace of a root."""

    _settings: Settings = field(repr=False)
    _scope: Scope

    def table(
        self,
        name: str,
        *,
        as_of: datetime | str | None = None,
        snapshot_id: int | None = None,
        ref: str | None = None,
    ) -> "Table":
        """A table as it is now, as it was at a moment, at a snapshot, or at a branch or tag."""
        if sum(one is not None for one in (as_of, snapshot_id, ref)) > 1:
            raise InvalidInput("as_of, snapshot_id and ref each name one version", hint="give one of them")
        levels, last = parse_name(name)
        metadata, location = _finished(self._load(levels, last))
        if as_of is not None:
            snapshot_id = _snapshot_at(metadata, name, as_of)
        state = state_of(metadata, snapshot_id=snapshot_id, ref=ref)
        return Table(name, state, location, file_io(self._settings.known))

    def together(self, *names: str) -> "list[Table]":
        """Several tables as they all were at one moment: a transaction is in every one of them, or in none."""
        places = [parse_name(name) for name in names]
        found = _finished(self._side_by_side(places))
        io = file_io(self._settings.known)
        return [Table(name, state_of(metadata), at, io) for name, (metadata, at) in zip(names, found, strict=True)]

    def tables(self) -> list[str]:
        """The names of all Iceberg tables of the workspace."""
        return _finished(self._names())

    async def _load(self, levels: Levels, name: str) -> tuple[TableMetadata, str]:
        async with self._opened() as catalog:
            _, base = await catalog.tables.load(levels, name)
            return base.metadata, base.location

    async def _side_by_side(self, places: list[tuple[Levels, str]]) -> list[tuple[TableMetadata, str]]:
        async with self._opened() as catalog:
            return [(base.metadata, base.location) for _, base in await side_by_side(catalog, places)]

    async def _names(self) -> list[str]:
        async with self._opened() as catalog:
            entries = (await Inventory(catalog).names()).entries.values()
            found = [one for one in entries if one.kind is Kind.TABLE and one.format is Format.ICEBERG]
            return sorted(spelled(one.namespace, one.name) for one in found)

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[Catalog]:
        clock, entropy = SystemClock(), SystemEntropy()
        store = open_root(self._settings.root, self._settings.options, clock, entropy)
        try:
            place = base_uri(parse_root(self._settings.root), self._settings.known)
            catalog = Catalog.open(store, place, self._scope, clock, entropy)
            try:
                yield catalog
            finally:
                await catalog.parts.afterwards.settle()
        finally:
            await store.close()


@dataclass(frozen=True, slots=True)
class Table:
    """A table at one snapshot."""

    name: str
    _state: TableState = field(repr=False)
    _location: str = field(repr=False)
    _io: FileIO = field(repr=False)

    @property
    def snapshot_id(self) -> int | None:
        """The version that is read; None if nothing was published yet."""
        return self._state.snapshot_id

    @property
    def columns(self) -> list[str]:
        return [column["name"] for column in self._state.schema["fields"]]

    def to_arrow(
        self,
        columns: Iterable[str] | None = None,
        where: Filter | None = None,
        *,
        limit: int | None = None,
        snapshot_id: int | None = None,
    ) -> Any:
        """The rows as a table of PyArrow."""
        state = self._at(snapshot_id)
        wanted = ("*",) if columns is None else _known(columns, state, self.name)
        table = PyIcebergTable((self.name,), state.pyiceberg(), self._location, self._io, NoopCatalog("arco"))
        return table.scan(_filter(where), wanted, snapshot_id=state.snapshot_id, limit=limit).to_arrow()

    def to_spark(
        self,
        spark: Any,
        *,
        snapshot_id: int | None = None,
        columns: Iterable[str] | None = None,
        where: Filter | None = None,
    ) -> Any:
        """The rows as a DataFrame of a Spark session; Spark itself reads the files, and needs no Iceberg jar."""
        state = self._at(snapshot_id)
        wanted = None if columns is None else _known(columns, state, self.name)
        read = import_module("arco.servo.execute.spark_read").read_table
        which = {"snapshot_id": state.snapshot_id} if state.snapshot_id is not None else {}
        return read(spark, state.table, self._io, columns=wanted, where=_filter(where), **which)

    def to_duckdb(self, connection: Any = None, columns: Iterable[str] | None = None, where: Filter | None = None) -> Any:
        """The rows as a relation of DuckDB, in a connection of yours or one of its own."""
        given = import_module("duckdb").connect() if connection is None else connection
        return given.from_arrow(self.to_arrow(columns, where))

    def _at(self, snapshot_id: int | None) -> TableState:
        return self._state if snapshot_id is None else state_of(self._state.table, snapshot_id=snapshot_id)


def _finished(work: Coroutine[Any, Any, T]) -> T:
    """What a coroutine returns, also where a loop runs already: in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as beside:
        return beside.submit(asyncio.run, work).result()


def _snapshot_at(table: TableMetadata, name: str, as_of: datetime | str) -> int:
    """The snapshot that main was at then. A time without a zone is UTC."""
    try:
        moment = datetime.fromisoformat(as_of) if isinstance(as_of, str) else as_of
    except ValueError:
        raise InvalidInput(f"as_of={clip(str(as_of))!r} is not a time", hint="write it as ISO 8601") from None
    at_ms = (moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment).timestamp() * 1000
    log = [one for one in table.document.get("snapshot-log", []) if one["timestamp-ms"] <= at_ms]
    if not log:
        raise NotFound(f"{name} had no snapshot at {moment.isoformat()}", hint=f"arco history {name} lists those it has")
    return int(log[-1]["snapshot-id"])


def _filter(where: Filter | None) -> BooleanExpression:
    if where is None:
        return AlwaysTrue()
    if isinstance(where, BooleanExpression):
        return where
    try:
        return parse(where)
    except ParseBaseException as error:
        raise InvalidInput(f"{clip(where)!r} is not a filter", hint="write \"amount > 100 and region = 'de'\"") from error


def _known(columns: Iterable[str], state: TableState, name: str) -> tuple[str, ...]:
    wanted = (columns,) if isinstance(columns, str) else tuple(columns)
    known = [column["name"] for column in state.schema["fields"]]
    for one in wanted:
        if one.partition(".")[0] not in known:
            raise InvalidInput(f"{name} has no column {clip(one)!r}", hint=f"it has {clip(', '.join(known), 200)}")
    return wanted

"""The table that an output goes to: as it is, as it will be with the output's columns, or staged if there is none yet.

A table that does not exist is only staged: its first commit creates it, with its rows, in one step. A schema that changes is
judged by the one table of compatible changes before anything is written. Tasks of one process that would create the same table
take turns, so that the second finds what the first created; of several processes one wins, and the others try again.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace

from arco.catalog.catalog import Catalog
from arco.catalog.manifest import Author
from arco.catalog.namespaces import create_namespace
from arco.iceberg.metadata import TableMetadata
from arco.iceberg.requests import CreateTable
from arco.iceberg.schemas import columns_by_id
from arco.iceberg.shape import JsonObject, listed
from arco.kernel.errors import AlreadyExists, InvalidInput, InvalidMetadata, NotFound
from arco.kernel.ids import clip
from arco.ledger.run_entries import StagedCommit
from arco.quality.compatibility import Compatibility, verdict
from arco.quality.schemas import Schema, mismatches
from arco.servo.deploy.schemas import RegisteredSchema
from arco.servo.execute.computing import Room
from arco.servo.execute.layout import partition_spec, sort_order
from arco.servo.execute.output_schema import Missing, merge, with_new_ids
from arco.servo.execute.publish import SOURCE, evolved
from arco.servo.schedule.staged_tables import with_staged
from arco.servo.sdk.definitions import AssetDefinition, WriteMode
from arco.servo.sdk.tables import TableName
from arco.storage.keys import Slug

_AUTHOR = Author(SOURCE.principal)


@dataclass(frozen=True, slots=True)
class Destination:
    """Where an output goes. `base` is the table as it was looked at; `written` as its new files are written."""

    name: TableName
    base: TableMetadata
    written: TableMetadata
    schema: JsonObject | None
    creates: bool


Staged = Callable[[TableName], Sequence[StagedCommit]]


def _nothing_staged(_: TableName) -> Sequence[StagedCommit]:
    return ()


class Destinations:
    """The tables that one process writes to. `staged` is what its atomic run will do to a table, and nobody else sees yet."""

    def __init__(self, catalog: Catalog, staged: Staged = _nothing_staged) -> None:
        self._catalog = catalog
        self._staged_for = staged
        self._creating: defaultdict[TableName, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def load(self, name: TableName) -> TableMetadata | None:
        """A table as it is now, for this run; None if there is none."""
        found = await self._found(name)
        staged = self._staged_for(name)
        return with_staged(found, staged, self._catalog.parts.clock.now_ms()) if staged else found

    async def _found(self, name: TableName) -> TableMetadata | None:
        try:
            _, found = await self._catalog.tables.load(*name)
        except NotFound:
            return None
        return found.metadata

    @asynccontextmanager
    async def turn(self, name: TableName) -> AsyncIterator[TableMetadata | None]:
        """The table, if there is one. Held while it may be created here: whoever waits finds it when its turn has come."""
        found = await self.load(name)
        if found is not None:
            yield found
            return
        async with self._creating[name]:
            yield await self.load(name)

    async def of(
        self,
        asset: AssetDefinition,
        name: TableName,
        base: TableMetadata | None,
        output: JsonObject,
        *,
        whole: bool = False,
        plain: bool = False,
        declared: RegisteredSchema | None = None,
        identity: str | None = None,
    ) -> Destination:
        """Where an output with these columns goes, given the table as it is. `declared` is its schema as it was deployed.

        `whole`: it replaces everything, so that columns may go too. `plain`: a table beside the asset's own, without its layout.
        `identity` is the one that a new table gets, where it was given out before.
        """
        if base is None:
            if not plain:
                await self._refuse_without_its_past(asset)
            return await self._staged(asset, name, output, plain=plain, identity=identity)
        try:
            merged = merge(
                base.current_schema,
                output,
                last_column_id=base.last_column_id,
                missing=Missing.DROP if whole else Missing.KEEP,
                format_version=base.format_version,
                names=_names(declared, base),
                anew=whole and asset.compatibility is Compatibility.NONE,
            )
        except InvalidMetadata as error:
            if not plain:
                raise
            own = ".".join((*name[0], name[1]))
            raise InvalidMetadata(
                f"{own}, where rows are set aside, has other columns: {error.message}",
                hint=f"rename or drop {own}: rows are then set aside to a new one",
            ) from error
        if not merged.evolves:
            return Destination(name, base, base, None, creates=False)
        refuse_incompatible(asset, base.current_schema, merged.schema, base.format_version)
        _refuse_without_layout(asset, name, base, merged.schema)
        written = evolved(base, merged.schema, self._catalog.parts.clock.now_ms())
        return Destination(name, base, written, merged.schema, creates=False)

    async def _refuse_without_its_past(self, asset: AssetDefinition) -> None:
        """What an asset adds to is the table that it had under its former name. A new one would begin without those rows."""
        if asset.table is not None or asset.write.mode not in {WriteMode.APPEND, WriteMode.MERGE}:
            return
        for former in asset.renamed_from:
            if await self._found(((former.namespace,), former.name)) is not None:
                raise InvalidInput(
                    f"{asset.where}: {asset.key} was {former}, and what it added so far is in the table of that name",
                    hint=f"take it along: arco rename {former} {asset.key}; to begin anew, leave renamed_from out",
                )

    def room(self, name: TableName, table: TableMetadata | None, properties: Mapping[str, str]) -> Room:
        """Where an output will lie before anything is known of it: with the table that is there, or where its new one will."""
        if table is not None:
            return Room(table.table_uuid, table.location, table.properties, table)
        uuid = self._catalog.tables.new_identity()
        return Room(uuid, self._catalog.tables.own_location(Slug.from_name(name[1]), uuid), properties, None)

    async def _staged(
        self, asset: AssetDefinition, name: TableName, output: JsonObject, *, plain: bool, identity: str | None
    ) -> Destination:
        levels, table = name
        schema = with_new_ids(output)
        request = CreateTable(
            table,
            schema,
            partition_spec=None if plain else partition_spec(asset, schema),
            write_order=None if plain else sort_order(asset, schema),
            properties={} if plain else dict(asset.write.properties),
        )
        for depth in range(1, len(levels) + 1):
            await self._need_namespace(levels[:depth])
        key = self._catalog.parts.markers.request_key(None, "stage", "")
        staged = await self._catalog.staging.stage(levels, request, key, identity)
        return Destination(name, staged, staged, None, creates=True)

    async def _need_namespace(self, levels: tuple[str, ...]) -> None:
        if levels in (await self._catalog.parts.tier1.current()).names.namespaces:
            return
        key = self._catalog.parts.markers.request_key(None, "create_namespace", "")
        with suppress(AlreadyExists):
            await create_namespace(self._catalog.parts, levels, {}, key, _AUTHOR)


def _names(declared: RegisteredSchema | None, table: TableMetadata) -> dict[int, str]:
    """The names that a project declares for fields of a table."""
    columns = () if declared is None else declared.columns
    return {
        one.field_id: one.path[-1] for one in columns if one.field_id is not None and one.table_uuid == table.table_uuid
    }


def refuse_incompatible(asset: AssetDefinition, before: JsonObject, after: JsonObject, format_version: int) -> None:
    """A change of the schema that would break whoever reads the table, with the reason and the way out."""
    found = verdict(Schema.of(before), Schema.of(after), asset.compatibility, format_version=format_version)
    if found.allowed:
        return
    first = found.refusals[0]
    raise InvalidMetadata(
        f"{asset.where}: {asset.key}: {'; '.join(str(one) for one in found.refusals[:3])}",
        hint=f"{first.way_out}; or say compatibility={Compatibility.NONE.value!r}",
    )


def _refuse_without_layout(asset: AssetDefinition, name: TableName, table: TableMetadata, after: JsonObject) -> None:
    """A column that the table is partitioned or sorted by stays, and so does its type."""
    specs = [one for one in table.document["partition-specs"] if one["spec-id"] == table.default_spec_id]
    orders = [one for one in table.document["sort-orders"] if one["order-id"] == table.default_sort_order_id]
    used = {field["source-id"] for one in (*specs, *orders) for field in one["fields"] if field["transform"] != "void"}
    gone = sorted(used - columns_by_id(after).keys())
    if gone:
        lost, own = columns_by_id(table.current_schema)[gone[0]].full_name, ".".join((*name[0], name[1]))
        raise InvalidMetadata(
            f"{asset.where}: {asset.key}: {own} is partitioned or sorted by {clip(lost)!r}, and the output has no column"
            " of that name and type",
            hint=f"return it as it was; or begin a new table: arco drop {own}, then arco run {asset.key}",
        )


def refuse_other_columns(asset: AssetDefinition, output: JsonObject) -> None:
    """An output that is not what its asset declares. That a required column holds no NULL is a check, on the rows."""
    if asset.write.mode is WriteMode.MERGE:
        _refuse_without_key(asset, output)
    if asset.schema is None:
        return
    declared, made = Schema.of(asset.schema), Schema.of(with_new_ids(output))
    wanted = Schema(tuple(replace(column, required=False) for column in declared.columns))
    wrong = mismatches(wanted, made, allow_extra=False)
    if wrong:
        raise InvalidMetadata(
            f"{asset.where}: {asset.key} does not return the columns it declares: {'; '.join(wrong[:3])}",
            hint="return them, or change schema=…",
        )


def _refuse_without_key(asset: AssetDefinition, output: JsonObject) -> None:
    """The table may have the column: then all new rows would have the key NULL, and replace each other."""
    names = [field["name"] for field in output["fields"]]
    missing = [name for name in asset.write.key if name not in names]
    if missing:
        raise InvalidInput(
            f"{asset.where}: {asset.key} merges by {clip(missing[0])!r}, and the output has no such column",
            hint=f"return it; there are {listed(names)}",
        )

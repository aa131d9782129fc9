"""What was deployed as rows: assets, and the schemas that projects declared. Names of tables are in `shredding_names.py`."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from arco.fold import shredding_names
from arco.fold.contributions import Contribution, RowMaker, json_text, told, told_at
from arco.fold.tables import ASSETS, DECLARED_SCHEMAS
from arco.kernel.errors import InvalidInput
from arco.kernel.fingerprint import fingerprint
from arco.ledger import catalog_events as said
from arco.ledger.envelope import Event

_ASSET, _COLUMN = RowMaker(ASSETS), RowMaker(DECLARED_SCHEMAS)


class _Input(msgspec.Struct, frozen=True):
    asset: str | None = None
    path: str | None = None


class _Check(msgspec.Struct, frozen=True):
    name: str | None = None
    kind: str | None = None


class Definition(msgspec.Struct, frozen=True, kw_only=True):
    """What is read out of the document of an asset's definition; the document has more."""

    description: str = ""
    owners: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    partitions: list[dict[str, Any]] = msgspec.field(default_factory=list)
    inputs: tuple[_Input, ...] = ()
    checks: tuple[_Check, ...] = ()
    fresh_within_s: int | None = None


def definition_of(it: said.AssetDeployed) -> Definition:
    try:
        return msgspec.convert(it.definition, Definition)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"the definition of {it.asset}: {error}".replace("`", "")) from None


def asset_deployed(event: Event) -> Iterator[Contribution]:
    it = said.AssetDeployed.of(event)
    definition = definition_of(it)
    yield _ASSET(
        {"asset_id": it.asset_id},
        first_deployed_at=event.time.time_ms,
        first_order=told(event),
        asset=it.asset,
        namespace=namespace_of(it.asset),
        kind=it.kind,
        project=it.project,
        deployment=it.deployment,
        code_version=it.code_version,
        fingerprint=it.fingerprint,
        description=definition.description,
        owners=list(definition.owners),
        tags=list(definition.tags),
        former_names=list(it.former_keys),
        inputs=[name for one in definition.inputs if (name := one.asset or one.path)],
        checks=[name for one in definition.checks if (name := one.name or one.kind)],
        partitioning=json_text(definition.partitions),
        fresh_within_s=definition.fresh_within_s,
        definition=json_text(it.definition),
        deployed_at=event.time.time_ms,
        deployed_by=it.who,
        deployed_order=told_at(event, event.time.time_ms, it.generation),
        retired=False,
        standing_order=told_at(event, event.time.time_ms, it.generation),
    )


def asset_removed(event: Event) -> Iterator[Contribution]:
    it = said.AssetRemoved.of(event)
    yield _ASSET({"asset_id": it.asset_id}, retired=True, standing_order=told_at(event, event.time.time_ms, it.generation))


def schema_registered(event: Event) -> Iterator[Contribution]:
    it = said.SchemaRegistered.of(event)
    if it.asset_id is None:
        return
    columns = msgspec.json.encode(it.columns, order="sorted")
    for ordinal, column in enumerate(it.columns):
        yield _COLUMN(
            {
                "asset_id": it.asset_id,
                "schema_hash": fingerprint("declared schema", columns),
                "column_id": column.column_id or column.name,
            },
            name=column.name,
            type=column.type,
            required=not column.nullable,
            description=column.description,
            ordinal=ordinal,
            verdict=it.compatibility,
            declared_at=event.time.time_ms,
            declared_order=told(event),
            counted_at=event.time.time_ms,
            counted_order=told_at(event, event.time.time_ms, it.generation),
        )


def not_here(_event: Event) -> Iterator[Contribution]:
    return iter(())


SHREDDERS: dict[str, Callable[[Event], Iterator[Contribution]]] = {
    said.ASSET_DEPLOYED: asset_deployed,
    said.ASSET_REMOVED: asset_removed,
    said.SCHEMA_REGISTERED: schema_registered,
    said.DEPLOYMENT_CREATED: not_here,
    said.ASSET_RENAMED: not_here,  # the deployment says the asset under its new name
    said.CONTRACT_UPDATED: not_here,
    **shredding_names.SHREDDERS,
}


def namespace_of(name: str) -> str:
    return name.rpartition(".")[0]

"""The events of the domain `catalog`: what was deployed, and which tables there are, as projections.

Tier 1 and the deployments decide; these only say it, so that it can be read as rows beside everything else. An event's id
follows from the deployment or commit that it speaks of: said twice it is one. `generation` counts the times that a project's
head was swung: of two events about one asset the later swing counts, whichever was told first. What must never enter: anything
that decides, and events that others may send.
"""

from typing import Any

import msgspec

from arco.ledger.envelope import EventType
from arco.ledger.payloads import Payload

DEPLOYMENT_CREATED = EventType("catalog.deployment_created.v1")
ASSET_DEPLOYED = EventType("catalog.asset_deployed.v1")
ASSET_RENAMED = EventType("catalog.asset_renamed.v1")
ASSET_REMOVED = EventType("catalog.asset_removed.v1")
SCHEMA_REGISTERED = EventType("catalog.schema_registered.v1")
CONTRACT_UPDATED = EventType("catalog.contract_updated.v1")
TABLE_CREATED = EventType("catalog.table_created.v1")
TABLE_DROPPED = EventType("catalog.table_dropped.v1")
TABLE_RENAMED = EventType("catalog.table_renamed.v1")
TABLE_RESTORED = EventType("catalog.table_restored.v1")
TABLE_DESCRIBED = EventType("catalog.table_described.v1")
TIER_1 = "arco/catalog"
"""The source of what tier 1 says."""


class DeploymentCreated(Payload, frozen=True, kw_only=True):
    """A project was published, or an earlier deployment counts again."""

    deployment: str
    project: str
    code_version: str
    previous: str | None
    assets: int
    created_by: str
    created_ms: int
    breaking: tuple[str, ...] = ()
    generation: int = 0


class AssetDeployed(Payload, frozen=True, kw_only=True):
    """An asset as a deployment has it. `definition` is the document that the deployment holds."""

    asset_id: str
    asset: str
    kind: str
    deployment: str
    project: str
    code_version: str
    fingerprint: str
    definition: dict[str, Any]
    former_keys: tuple[str, ...] = ()
    generation: int = 0
    who: str | None = None


class AssetRenamed(Payload, frozen=True, kw_only=True):
    """An asset goes by another key. What it published stays its own."""

    asset_id: str
    former: str
    asset: str
    deployment: str


class AssetRemoved(Payload, frozen=True, kw_only=True):
    """An asset is in no deployment any more. Its table stays."""

    asset_id: str
    asset: str
    deployment: str
    generation: int = 0


class RegisteredColumn(msgspec.Struct, frozen=True, kw_only=True):
    """A column under the id that it keeps through renames."""

    name: str
    type: str
    nullable: bool
    column_id: str | None = None
    field_id: int | None = None
    description: str | None = None


class SchemaRegistered(Payload, frozen=True, kw_only=True):
    """The columns of an asset or a table from now on, and what changed."""

    asset_id: str | None
    table_uuid: str | None
    schema_id: int | None
    columns: tuple[RegisteredColumn, ...]
    compatibility: str | None = None
    changes: tuple[str, ...] = ()
    deployment: str | None = None
    generation: int = 0


class ContractUpdated(Payload, frozen=True, kw_only=True):
    """What an asset promises its readers, as people agreed on it."""

    asset_id: str
    asset: str
    version: int
    contract: dict[str, Any]
    who: str
    why: str | None = None


class NameChange(Payload, frozen=True, kw_only=True):
    """What every event of a name says: whose name, and which commit of tier 1 did it.

    `sequence` is the number of that commit, and `place` the place of this event among what the commit says: of two events about
    one table the later by these counts, whichever was told first.
    """

    table_uuid: str
    commit: str
    who: str
    sequence: int = 0
    place: int = 0


class TableCreated(NameChange, frozen=True, kw_only=True):
    """A table or view has a name; or the one of this name lies elsewhere from now on."""

    asset_id: str
    kind: str
    format: str
    namespace: tuple[str, ...]
    name: str
    location: str
    owner: str | None = None
    description: str | None = None
    tags: tuple[str, ...] = ()
    sensitivity: str | None = None


class TableDropped(NameChange, frozen=True, kw_only=True):
    """A name was taken away. Without `purge` it can be restored for a while."""

    drop_id: str
    purge: bool


class TableRenamed(NameChange, frozen=True, kw_only=True):
    """A table or view goes by another name."""

    namespace: tuple[str, ...]
    name: str


class TableRestored(NameChange, frozen=True, kw_only=True):
    """What was dropped has a name again."""

    namespace: tuple[str, ...]
    name: str
    drop_id: str


class TableDescribed(NameChange, frozen=True, kw_only=True):
    """People say something else of a table. `fields` has what they say now, by field; what is not there stays as it was."""

    fields: dict[str, Any]

"""Every type of event there is, as data: its name with its version, the struct of its data, its domain, and who may send it.

How types change: a new field keeps the version and has a default; anything else is a new version, a row of its own here, and the
old row stays for as long as a ledger may hold it. A reader never drops what it does not understand. It sets it aside with the
reason, counts it, and a newer Arco reads it from the same ledger. What must never enter: what is done with an event.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import msgspec

from arco.kernel.errors import InvalidInput
from arco.kernel.ids import EventId, Identifier
from arco.ledger import audit_events, catalog_events, execution_events, iceberg_events, lineage_events, quality_events
from arco.ledger.envelope import Event, EventType
from arco.ledger.payloads import read_payload
from arco.storage.keys import Domain


@dataclass(frozen=True, slots=True)
class EventKind:
    """One type. `posted`: other systems may send it; the others are said by Arco alone.

    `says_when`: of several that speak of one thing the one with the latest `time` counts, so whoever may send one again has to
    say it. The time at which it was taken would be another one each time.
    """

    name: EventType
    payload: type[msgspec.Struct]
    posted: bool = False
    says_when: bool = False

    @property
    def domain(self) -> Domain:
        return Domain(self.name.domain)


def _kinds() -> tuple[EventKind, ...]:
    e, q, li, c, i, a = execution_events, quality_events, lineage_events, catalog_events, iceberg_events, audit_events
    return (
        EventKind(e.RUN_CREATED, e.RunCreated, posted=True),
        EventKind(e.PLAN_GENERATED, e.PlanGenerated, posted=True),
        EventKind(e.TASK_STARTED, e.TaskBegun, posted=True),
        EventKind(e.TASK_ENDED, e.TaskEnded, posted=True),
        EventKind(e.MATERIALIZATION_COMPLETED, e.MaterializationCompleted, posted=True),
        EventKind(e.OUTPUT_HELD, e.OutputHeld, posted=True),
        EventKind(e.OUTPUT_RELEASED, e.OutputReleased),
        EventKind(e.OUTPUT_DISCARDED, e.OutputDiscarded),
        EventKind(e.RUN_COMPLETED, e.RunCompleted, posted=True),
        EventKind(q.CHECK_EXECUTED, q.CheckExecuted, posted=True),
        EventKind(q.PARTITION_QUARANTINED, q.PartitionQuarantined, posted=True, says_when=True),
        EventKind(q.PARTITION_RELEASED, q.PartitionReleased, posted=True, says_when=True),
        EventKind(li.LINEAGE_RECORDED, li.LineageRecorded, posted=True, says_when=True),
        EventKind(li.LINEAGE_REMOVED, li.LineageRemoved, posted=True, says_when=True),
        EventKind(li.OPENLINEAGE_RECEIVED, li.OpenLineageReceived),
        EventKind(c.DEPLOYMENT_CREATED, c.DeploymentCreated),
        EventKind(c.ASSET_DEPLOYED, c.AssetDeployed),
        EventKind(c.ASSET_RENAMED, c.AssetRenamed),
        EventKind(c.ASSET_REMOVED, c.AssetRemoved),
        EventKind(c.SCHEMA_REGISTERED, c.SchemaRegistered),
        EventKind(c.CONTRACT_UPDATED, c.ContractUpdated),
        EventKind(c.TABLE_CREATED, c.TableCreated),
        EventKind(c.TABLE_DROPPED, c.TableDropped),
        EventKind(c.TABLE_RENAMED, c.TableRenamed),
        EventKind(c.TABLE_RESTORED, c.TableRestored),
        EventKind(c.TABLE_DESCRIBED, c.TableDescribed),
        EventKind(i.METRICS_REPORTED, i.MetricsReported, posted=True),
        EventKind(i.TABLE_COMMITTED, i.TableCommitted),
        EventKind(a.ACTION_RECORDED, a.ActionRecorded),
        EventKind(a.UPKEEP_COMPLETED, a.UpkeepCompleted),
    )


EVENT_KINDS: dict[str, EventKind] = {kind.name: kind for kind in _kinds()}
"""Every type that this version reads, by its name."""

_NAMES = {kind.name.rpartition(".")[0] for kind in EVENT_KINDS.values()}


class Reason(StrEnum):
    """Why an event was set aside."""

    UNKNOWN_TYPE = "unknown_type"  # nothing of this name is known here
    UNKNOWN_VERSION = "unknown_version"  # the name is known, and this version of its data is not
    INVALID_DATA = "invalid_data"  # the version is known, and the data is not what it says


@dataclass(frozen=True, slots=True)
class SetAside:
    """An event that is kept and not understood."""

    event: EventId
    type: EventType
    reason: Reason
    message: str


def read_data(event: Event) -> msgspec.Struct | SetAside:
    """What an event says; or why this version cannot tell. Never an error: a ledger is read on past what it does not know."""
    kind = EVENT_KINDS.get(event.type)
    if kind is None:
        return _unknown(event)
    try:
        return read_payload(event, kind.payload)
    except InvalidInput as error:
        return SetAside(event.id, event.type, Reason.INVALID_DATA, error.message)


def unknown_fields(event: Event) -> dict[str, Any]:
    """The fields of an event's data that this version does not read. They are kept: the event has them still."""
    kind = EVENT_KINDS.get(event.type)
    known = set() if kind is None else {field.encode_name for field in msgspec.structs.fields(kind.payload)}
    return {name: value for name, value in event.data.items() if name not in known}


def json_schemas() -> dict[str, dict[str, Any]]:
    """The JSON Schema of every type's data, by type, each complete in itself. What `make contract` can compare."""
    return {name: _schema(kind) for name, kind in sorted(EVENT_KINDS.items())}


def _schema(kind: EventKind) -> dict[str, Any]:
    schema = msgspec.json.schema(kind.payload, schema_hook=_identifier_schema)
    said = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"urn:arco:event:{kind.name}", **schema}
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(said))  # as it is read back: lists, no tuples
    return plain


def _identifier_schema(wanted: type) -> dict[str, Any]:
    if issubclass(wanted, Identifier):
        return {"type": "string", "pattern": f"^(?:{wanted.pattern.pattern})$"}
    raise TypeError(f"no schema is known for {wanted.__name__}")


def _unknown(event: Event) -> SetAside:
    name, _, version = event.type.rpartition(".")
    if name in _NAMES:
        return SetAside(event.id, event.type, Reason.UNKNOWN_VERSION, f"{name} is known, and not its {version}")
    return SetAside(event.id, event.type, Reason.UNKNOWN_TYPE, f"no event is called {name}")

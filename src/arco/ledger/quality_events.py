"""The events of the domain `quality`: what checks found, and what people hold back and let go by hand.

A failed check is not another event than one that passed: `result` says which. What must never enter: judging; that is the room
`quality`.
"""

from typing import Any

from arco.ledger.envelope import EventType
from arco.ledger.payloads import Payload

CHECK_EXECUTED = EventType("quality.check_executed.v1")
PARTITION_QUARANTINED = EventType("quality.partition_quarantined.v1")
PARTITION_RELEASED = EventType("quality.partition_released.v1")


class CheckExecuted(Payload, frozen=True, kw_only=True):
    """One check of one output. `result` is the document of the check's result, `grain` the kind of each dimension."""

    check_id: str
    run_id: str
    task_id: str
    materialization_id: str
    asset: str
    asset_id: str
    partitions: list[dict[str, Any]]
    result: dict[str, Any]
    action: str
    grain: dict[str, str] | None = None


class PartitionQuarantined(Payload, frozen=True, kw_only=True):
    """Somebody says that partitions are not to be trusted, whatever their checks said."""

    asset: str
    asset_id: str
    partitions: list[dict[str, Any]]
    who: str
    why: str
    materialization_id: str | None = None


class PartitionReleased(Payload, frozen=True, kw_only=True):
    """Somebody says that partitions can be trusted again."""

    asset: str
    asset_id: str
    partitions: list[dict[str, Any]]
    who: str
    why: str
    materialization_id: str | None = None

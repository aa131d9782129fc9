"""The events of the domain `audit`: who did what to what, for people who ask later.

An event is one line of the record. The chain that shows that no line was taken out is `govern`'s. What must never enter: a
secret, or a value that could be one; `before` and `after` hold what whoever records it has looked at.
"""

from typing import Any, Literal

import msgspec

from arco.ledger.envelope import EventType
from arco.ledger.payloads import Payload

ACTION_RECORDED = EventType("audit.action_recorded.v1")
UPKEEP_COMPLETED = EventType("audit.upkeep_completed.v1")


class Actor(msgspec.Struct, frozen=True, kw_only=True):
    """Who did it."""

    kind: Literal["user", "api_key", "service", "anonymous"]
    id: str
    name: str | None = None


class Resource(msgspec.Struct, frozen=True, kw_only=True):
    """What it was done to."""

    kind: str
    id: str
    name: str | None = None


class ActionRecorded(Payload, frozen=True, kw_only=True):
    """One action, done or refused. `action` is a word such as `deploy_assets`, `cancel_run` or `create_api_key`."""

    actor: Actor
    action: str
    resource: Resource
    outcome: Literal["done", "refused", "unknown"]
    request_id: str | None = None
    trace_id: str | None = None
    address: str | None = None
    client: str | None = None
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None
    why: str | None = None


class UpkeepCompleted(Payload, frozen=True, kw_only=True):
    """What one job of upkeep took away, and why. Ages are by the store's clock.

    `changed` counts what was changed and not deleted: segments that were moved, tables that can no longer be restored.
    """

    kind: str
    looked_at: int
    deleted: int
    bytes: int
    changed: int = 0
    why: dict[str, int] = msgspec.field(default_factory=dict)
    kept: dict[str, int] = msgspec.field(default_factory=dict)
    oldest_s: int | None = None
    youngest_s: int | None = None
    trouble: tuple[str, ...] = ()
    failed: str | None = None

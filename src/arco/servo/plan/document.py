"""A plan as it is stored: what will run, in which order, on what, and why. Immutable, and equal byte for byte when made again.

`spec` is everything that decides what happens, and the fingerprint is of it alone. Beside it stands, in the place of a run, the
seal of whoever planned that run.
"""

from typing import Any

import msgspec

from arco.kernel.errors import CorruptObject, UnknownFormat
from arco.kernel.fingerprint import fingerprint
from arco.ledger.run_entries import Seal

PLAN_FORMAT = 1


class PlannedInput(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a task reads. `snapshot_id` is fixed now, or by the tasks of this plan that make it (`made_by`).

    `since` is the snapshot that changes are read from: the one that the last publish read. `workspace` is the other workspace
    whose table is read, where this one has not built the asset.
    """

    parameter: str
    kind: str
    asset: str | None
    partitions: list[dict[str, Any]]
    snapshot_id: int | None = None
    since: int | None = None
    made_by: tuple[str, ...] = ()
    versions: list[dict[str, Any]] = []
    files: tuple[str, ...] = ()
    workspace: str = ""


class Because(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Why some partitions of a task are made."""

    reason: str
    detail: str
    partitions: list[dict[str, Any]]


class Estimate(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a task will probably be, from its last materializations; zero when nothing is known."""

    partitions: int
    rows: int = 0
    bytes: int = 0


class PlannedTask(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One asset and one set of its partitions. `resources` are what its asset asks for, by names that the project chose."""

    id: str
    asset: str
    partitions: list[dict[str, Any]]
    partition_count: int
    stage: int
    priority: int
    depends_on: tuple[str, ...]
    inputs: tuple[PlannedInput, ...]
    because: tuple[Because, ...]
    estimate: Estimate
    resources: dict[str, float] = {}


class PlanSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that decides what happens."""

    format: int
    deployment: str
    code_version: str
    snapshot: str
    mode: str
    selection: tuple[str, ...]
    partitions: dict[str, str]
    tasks: tuple[PlannedTask, ...]
    parameters: dict[str, str] = {}

    def fingerprint(self) -> str:
        return f"plan_{fingerprint('plan', msgspec.json.encode(self, order='deterministic'))}"


class Plan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    fingerprint: str
    spec: PlanSpec
    seal: Seal | None = None

    @classmethod
    def of(cls, spec: PlanSpec) -> "Plan":
        return cls(fingerprint=spec.fingerprint(), spec=spec)

    def encode(self) -> bytes:
        return msgspec.json.encode(self, order="deterministic")


def decode_plan(data: bytes) -> Plan:
    try:
        found = msgspec.json.decode(data, type=Plan)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CorruptObject(f"this is not a plan: {error}") from error
    if found.spec.format != PLAN_FORMAT:
        raise UnknownFormat(f"a plan of format {found.spec.format}")
    return found

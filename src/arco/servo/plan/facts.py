"""What has been recorded of the assets of a project: the ground that planning stands on.

A materialization says what it published, from which code and from which versions of its inputs. Staleness is a function of
these and of what the inputs are now, and of nothing else; so a plan can be explained, and made again, from this object alone.
It is stored as it is, immutable, and the plan names it.
"""

from typing import Any

import msgspec


class Materialization(msgspec.Struct, frozen=True, kw_only=True):
    """One publish of one asset. `partitions` and the versions of `inputs` are documents of partition sets."""

    id: str
    run_id: str
    task_id: str
    partitions: list[dict[str, Any]]
    code: str
    inputs: dict[str, list[dict[str, Any]]]
    snapshot_id: int | None
    published_ms: int
    position: str
    input_snapshots: dict[str, int | None] = {}
    parameters: str = ""
    rows: int | None = None
    bytes: int | None = None
    checks_failed: tuple[str, ...] = ()


class TableFact(msgspec.Struct, frozen=True, kw_only=True):
    """The table behind an asset as it is now. `versions` only for tables that others write."""

    table_uuid: str
    snapshot_id: int | None
    metadata_location: str
    versions: list[dict[str, Any]] | None = None
    external_commit: bool = False


class FilesFact(msgspec.Struct, frozen=True, kw_only=True):
    """The files that a pattern meant when it was listed."""

    fingerprint: str
    files: tuple[str, ...]
    bytes: int


class AssetFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about one asset. Materializations stand in the order of their positions: later ones lie over earlier."""

    materializations: tuple[Materialization, ...] = ()
    table: TableFact | None = None
    files: dict[str, FilesFact] = {}
    dynamic: dict[str, list[Any]] = {}
    quarantined: list[dict[str, Any]] = []


class PlanningSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about a project at one moment. Assets are named by their keys."""

    id: str
    at_ms: int
    assets: dict[str, AssetFacts]
    read_up_to: str = ""

    def of(self, asset: object) -> AssetFacts:
        return self.assets.get(str(asset), AssetFacts())

    def encode(self) -> bytes:
        return msgspec.json.encode(self, order="deterministic")

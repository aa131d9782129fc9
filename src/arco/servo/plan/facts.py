"""What has been recorded of the assets of a project: the ground that planning stands on.

A materialization says what it published, from which code and from which versions of its inputs. Staleness is a function of
these and of what the inputs are now, and of nothing else; so a plan can be explained, and made again, from this object alone.
It is stored as it is, immutable, and the plan names it.
"""

from typing import Any

import msgspec

from arco.kernel.errors import CorruptObject, UnknownFormat
from arco.kernel.fingerprint import fingerprint
from arco.ledger.execution_events import CheckFacts

FORMAT_VERSION = 1


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
    table_uuid: str = ""
    started_ms: int | None = None
    checks: tuple[CheckFacts, ...] = ()


class HeldOutput(msgspec.Struct, frozen=True, kw_only=True):
    """An output that the gate held back: why, and the branch of the table that keeps it."""

    id: str
    run_id: str
    partitions: list[dict[str, Any]]
    action: str
    reasons: tuple[str, ...]
    branch: str | None
    position: str


class QuarantineWord(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody said by hand of some partitions, or of one version of them: held back, or let go again.

    Of each partition the last word counts, whichever partitions it was said of; `order` says which is later.
    """

    partitions: list[dict[str, Any]]
    quarantined: bool
    who: str
    why: str
    materialization_id: str | None
    said_ms: int
    order: str


class TableFact(msgspec.Struct, frozen=True, kw_only=True):
    """The table behind an asset as it is now. `versions` only for tables that others write, with a `note` if they are coarse.

    `external_commit`: the content was last changed by somebody else, though the table is an asset's own. `workspace`: the other
    workspace that it is in, if it is only read from there.
    """

    table_uuid: str
    snapshot_id: int | None
    metadata_location: str
    versions: list[dict[str, Any]] | None = None
    external_commit: bool = False
    schema_id: int | None = None
    schema: dict[str, Any] | None = None
    note: str = ""
    workspace: str = ""


class FilesFact(msgspec.Struct, frozen=True, kw_only=True):
    """The files that a pattern meant when it was listed."""

    fingerprint: str
    files: tuple[str, ...]
    bytes: int


class AssetFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about one asset. Materializations stand in the order they were published: later ones lie over earlier.

    `fresh_until_ms` is its deadline, if it has one: when it is too old, or the moment of the facts if it is not whole.
    """

    materializations: tuple[Materialization, ...] = ()
    table: TableFact | None = None
    files: dict[str, FilesFact] = {}
    dynamic: dict[str, list[Any]] = {}
    held: tuple[HeldOutput, ...] = ()
    fresh_until_ms: int | None = None
    quarantined: tuple[QuarantineWord, ...] = ()


class PlanningSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about a project at one moment. Assets are named by their keys.

    `id` is made of what the facts are and of the moment they are taken at. `state` is the manifest of the fold that they were
    read from, and `read_up_to` the last position that was seen, in it or in the ledger; neither says anything about the facts.
    """

    format_version: int = FORMAT_VERSION
    id: str
    at_ms: int
    assets: dict[str, AssetFacts]
    read_up_to: str = ""
    state: str = ""

    @classmethod
    def taken(cls, at_ms: int, assets: dict[str, AssetFacts], read_up_to: str = "", state: str = "") -> "PlanningSnapshot":
        """A snapshot under the id that its content has."""
        content = msgspec.json.encode((at_ms, assets), order="deterministic")
        name = f"facts_{fingerprint('planning snapshot', content)}"
        return cls(id=name, at_ms=at_ms, assets=assets, read_up_to=read_up_to, state=state)

    def of(self, asset: object) -> AssetFacts:
        return self.assets.get(str(asset), _NOTHING)

    def encode(self) -> bytes:
        return msgspec.json.encode(self, order="deterministic")


_NOTHING = AssetFacts()


def decode_snapshot(data: bytes, key: str) -> PlanningSnapshot:
    try:
        found = msgspec.json.decode(data, type=PlanningSnapshot)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CorruptObject(f"{key} is not a planning snapshot: {error}") from error
    if found.format_version != FORMAT_VERSION:
        raise UnknownFormat(f"{key} has format version {found.format_version}")
    return found

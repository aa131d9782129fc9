"""A deployment: the assets of a project as they were published, under identities that never change.

The manifest is immutable and named by its own id; the head of a project, a compare-and-swap object, says which one counts.
Going back is swinging the head to an earlier manifest. Functions are in it by their fingerprints: the code itself lives in the
project's own repository, and the code version says which.
"""

from pathlib import PurePath
from typing import Any

import msgspec

from arco.kernel.canonical_json import canonical_bytes
from arco.kernel.errors import CorruptObject, UnknownFormat
from arco.kernel.fingerprint import fingerprint
from arco.servo.deploy.schemas import RegisteredSchema, SchemaVerdict
from arco.servo.sdk.definitions import AssetDefinition, InputDefinition
from arco.servo.sdk.plain_values import spelled

FORMAT = "arco.deployment"
FORMAT_VERSION = 1


class DeployedAsset(msgspec.Struct, frozen=True, kw_only=True):
    """One asset. `former_keys` are names it had in earlier deployments; they still find it.

    `schema` is the last one that was declared; it stays when the declaration goes, so that its ids are there if it comes back.
    """

    asset_id: str
    key: str
    kind: str
    fingerprint: str
    definition: dict[str, Any]
    former_keys: tuple[str, ...] = ()
    schema: RegisteredSchema | None = None


class DeployedSchedule(msgspec.Struct, frozen=True, kw_only=True):
    """One schedule. Its ticks count after `since_ms`, when a deployment first had it as it is."""

    name: str
    version: str
    since_ms: int
    definition: dict[str, Any]
    description: str = ""


class Deployment(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was published at once. `verdicts` are on the schemas that it changed; `breaking` is what it broke."""

    format: str = FORMAT
    format_version: int = FORMAT_VERSION
    id: str
    project: str
    code_version: str
    created_ms: int
    created_by: str
    previous: str | None
    assets: dict[str, DeployedAsset]
    retired: dict[str, DeployedAsset] = {}
    verdicts: dict[str, SchemaVerdict] = {}
    breaking: tuple[str, ...] = ()
    schedules: dict[str, DeployedSchedule] = {}

    def encode(self) -> bytes:
        return msgspec.json.encode(self, order="deterministic")

    def content(self) -> str:
        """What it says, without who, when, what it changed and what was there before: two of one content are one."""
        said = {key: without_past(one) for key, one in self.assets.items()}
        timed = {name: msgspec.structs.replace(one, since_ms=0) for name, one in self.schedules.items()}
        return fingerprint("deployment", self.project, msgspec.json.encode((said, timed), order="deterministic"))


def without_past(one: DeployedAsset) -> DeployedAsset:
    """As it is declared: which fields of a table its columns are tied to is no news of the project's."""
    if one.schema is None:
        return one
    declared = (
        msgspec.structs.replace(column, column_id="", table_uuid=None, field_id=None) for column in one.schema.columns
    )
    return msgspec.structs.replace(one, schema=msgspec.structs.replace(one.schema, columns=tuple(declared), dropped=()))


def decode_deployment(data: bytes, key: str) -> Deployment:
    try:
        found = msgspec.json.decode(data, type=Deployment)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CorruptObject(f"{key} is not a deployment: {error}") from error
    if (found.format, found.format_version) != (FORMAT, FORMAT_VERSION):
        raise UnknownFormat(f"{key} is {found.format} version {found.format_version}")
    return found


def described(asset: AssetDefinition) -> dict[str, Any]:
    """A definition as a document: what people see of it, and what later deployments are compared with."""
    document = {
        "description": asset.description,
        "owners": list(asset.owners),
        "tags": list(asset.tags),
        "where": PurePath(asset.where.file).name,  # without the line: a comment above it changes nothing
        "partitions": asset.partitions.describe(),
        "inputs": [_input(one) for one in asset.inputs],
        "checks": [check.describe() for check in asset.checks],
        "gate": asset.gate.describe(),
        "write": {
            "mode": asset.write.mode.value,
            "key": list(asset.write.key),
            "partition_by": None if asset.write.partition_by is None else list(asset.write.partition_by),
            "sort_by": list(asset.write.sort_by),
            "properties": dict(asset.write.properties),
        },
        "compatibility": asset.compatibility.value,
        "schema_declared": asset.schema is not None,
        "fresh_within_s": asset.fresh_within_s,
        "resources": dict(asset.resources),
        "retention": {
            "days": asset.retention.days,
            "versions_min": asset.retention.versions_min,
            "versions_max": asset.retention.versions_max,
        },
        "table": asset.table,
        "parameters": {word: spelled(value) for word, value in asset.parameters.items()},
    }
    canonical_bytes(document)  # type: ignore[arg-type]  # what cannot be written down is refused here
    return document


def _input(one: InputDefinition) -> dict[str, Any]:
    return {
        "parameter": one.parameter,
        "kind": one.kind.value,
        "asset": None if one.asset is None else str(one.asset),
        "path": one.path,
        "mapping": one.mapping.describe(),
    }

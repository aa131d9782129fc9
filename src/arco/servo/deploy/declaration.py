"""What a project declares, as data: what a deployment is made of, and all that a server needs to be told to deploy one.

It has no identities; those are drawn, or found, when it is deployed. Functions are in it by their fingerprints. What must never
enter: anything that needs the project's code, and the store.
"""

from typing import Any

import msgspec

from arco.kernel.errors import InvalidInput
from arco.kernel.fingerprint import fingerprint
from arco.quality.schemas import Column, Schema
from arco.servo.deploy.manifest import Deployment, described
from arco.servo.deploy.schemas import RegisteredColumn
from arco.servo.sdk.definitions import AssetDefinition
from arco.servo.sdk.project import Project

FORMAT = "arco-declaration"
FORMAT_VERSION = 1


class DeclaredColumn(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A column as it is declared, parents first. `id` is the author's own number, or its path."""

    id: int | str
    path: tuple[str, ...]
    type: str
    required: bool = False
    default: Any = None
    doc: str | None = None
    parent: int | str | None = None
    in_map_key: bool = False


class DeclaredAsset(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One asset as it is declared. `where` is where it is written, for messages alone."""

    kind: str
    fingerprint: str
    definition: dict[str, Any]
    renamed_from: tuple[str, ...] = ()
    columns: tuple[DeclaredColumn, ...] | None = None
    where: str = ""

    @property
    def schema(self) -> Schema | None:
        if self.columns is None:
            return None
        return Schema(tuple(Column(**msgspec.structs.asdict(one)) for one in self.columns))


class DeclaredSchedule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    version: str
    definition: dict[str, Any]
    description: str = ""


class Declaration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A project. Assets stand under their keys."""

    format: str = FORMAT
    format_version: int = FORMAT_VERSION
    project: str
    code_version: str
    assets: dict[str, DeclaredAsset]
    schedules: dict[str, DeclaredSchedule] = {}


def declared(project: Project) -> Declaration:
    """A loaded project as data."""
    return Declaration(
        project=project.name,
        code_version=project.code_version,
        assets={str(key): _asset(one) for key, one in sorted(project.assets.items(), key=lambda item: str(item[0]))},
        schedules={
            name: DeclaredSchedule(version=one.version, definition=one.document(), description=one.description)
            for name, one in sorted(project.schedules.items())
        },
    )


def says(found: Declaration | Deployment) -> str:
    """What a project says of itself, without identities: the same for all deployments of the same files."""
    assets = {key: (one.kind, one.fingerprint, one.definition) for key, one in found.assets.items()}
    schedules = {name: (one.version, one.definition, one.description) for name, one in found.schedules.items()}
    said = (assets, _columns_said(found), schedules)
    return fingerprint("declaration", found.project, msgspec.json.encode(said, order="deterministic"))


def _columns_said(found: Declaration | Deployment) -> dict[str, list[Any]]:
    """The columns that assets declare. A deployment remembers those that are not declared any more."""
    columns: dict[str, tuple[DeclaredColumn, ...] | tuple[RegisteredColumn, ...]] = {}
    if isinstance(found, Declaration):
        columns = {key: one.columns for key, one in found.assets.items() if one.columns is not None}
    else:
        deployed = found.assets.items()
        columns = {key: one.schema.columns for key, one in deployed if one.schema and one.definition["schema_declared"]}
    return {
        key: [(column.path, column.type, column.required, column.default, column.doc) for column in some]
        for key, some in columns.items()
    }


def _asset(one: AssetDefinition) -> DeclaredAsset:
    return DeclaredAsset(
        kind=one.kind.value,
        fingerprint=one.fingerprint,
        definition=described(one),
        renamed_from=tuple(str(key) for key in one.renamed_from),
        columns=_columns(one),
        where=str(one.where),
    )


def _columns(one: AssetDefinition) -> tuple[DeclaredColumn, ...] | None:
    if one.schema is None:
        return None
    try:
        found = Schema.of(one.schema).columns
    except InvalidInput as error:
        raise InvalidInput(f"{one.where}: {one.key}: {error.message}", hint=error.hint) from error
    return tuple(
        DeclaredColumn(
            id=column.id,
            path=column.path,
            type=column.type,
            required=column.required,
            default=column.default,
            doc=column.doc,
            parent=column.parent,
            in_map_key=column.in_map_key,
        )
        for column in found
    )

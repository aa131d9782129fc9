"""`POST /api/v1/deployments`: publish what a project declares, as `arco deploy --declare` writes it, without its code.

It is verified as a loaded project is, and published by the same function. What must never enter: importing a project.
"""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from arco.catalog.catalog import Catalog
from arco.iceberg.shape import read_with_nulls
from arco.kernel.errors import NotFound
from arco.kernel.scope import Scope
from arco.servo.deploy.columns import TableColumns
from arco.servo.deploy.declaration import Declaration
from arco.servo.deploy.deploying import Deployments
from arco.servo.deploy.schemas import SchemaVerdict
from arco.servo.deploy.verifying import table_named, verify
from arco.storage.keys import Word
from arco.surface.http.declaring import API, Asked, Endpoint, endpoint, scope_of
from arco.surface.http.exchange import Request, Response, json_response
from arco.surface.http.resource import Resource

DEPLOYMENTS = f"{API}/deployments"

_Id = Annotated[str, Meta(max_length=64)]


class DeploymentForm(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A declaration, and the deployment that counted when it was made: null if there was none."""

    before: _Id | None
    declaration: Declaration
    allow_breaking: bool = False


class Renaming(msgspec.Struct, frozen=True, kw_only=True):
    before: str
    after: str


class DeploymentPublished(msgspec.Struct, frozen=True, kw_only=True):
    """The deployment that counts, and what it changed. `news`: it counts since this request."""

    deployment: str
    before: str | None
    project: str
    code_version: str
    news: bool
    added: tuple[str, ...]
    changed: tuple[str, ...]
    renamed: tuple[Renaming, ...]
    retired: tuple[str, ...]
    schedules: tuple[str, ...]
    verdicts: dict[str, SchemaVerdict]
    breaking: tuple[str, ...]


class DeploymentsOverHttp(Resource):
    def endpoints(self) -> list[Endpoint]:
        return [
            endpoint(
                "POST",
                DEPLOYMENTS,
                "Publish what a project declares. One that says the same as what is deployed changes nothing",
                self.post,
                body=(DeploymentForm,),
                answers={200: (DeploymentPublished,), 201: (DeploymentPublished,)},
            )
        ]

    def scope(self, request: Request) -> Scope:
        return scope_of(request)

    async def post(self, request: Request, asked: Asked) -> Response:
        form = read_with_nulls(request.json(), DeploymentForm, "deploy")
        Word(form.declaration.project)
        verify(form.declaration)
        catalog = self._state.catalog(asked.scope)
        heard = catalog.parts.heard
        deployments = Deployments(self._state.store, asked.scope, self._state.clock, self._state.entropy, heard)
        found = await deployments.publish(
            form.declaration,
            by=request.principal,
            allow_breaking=form.allow_breaking,
            tables=await _tables(catalog, form.declaration),
            base=form.before,
        )
        counts = found.after if found.is_news or found.before is None else found.before
        changes = found.difference
        told = DeploymentPublished(
            deployment=counts.id,
            before=None if found.before is None else found.before.id,
            project=counts.project,
            code_version=counts.code_version,
            news=found.is_news,
            added=changes.added,
            changed=changes.changed,
            renamed=tuple(Renaming(before=before, after=after) for before, after in changes.renamed),
            retired=changes.retired,
            schedules=changes.schedules,
            verdicts=found.after.verdicts,
            breaking=found.after.breaking,
        )
        return json_response(told, 201 if found.is_news else 200)


async def _tables(catalog: Catalog, declaration: Declaration) -> dict[str, TableColumns]:
    """The tables of the assets that declare columns, as far as there are any."""
    found: dict[str, Any] = {}
    for key, one in declaration.assets.items():
        if one.columns is None:
            continue
        try:
            _, base = await catalog.tables.load(*table_named(key, one.definition["table"]))
        except NotFound:
            continue
        found[key] = TableColumns.of(base.metadata)
    return found

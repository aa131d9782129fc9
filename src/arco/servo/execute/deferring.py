"""Assets that a workspace has not built, as another workspace of the same root has them.

What is not here is taken from there: its table at the snapshot that it has now, and what was published of it. The facts say
where they are from, so does the plan, and so does what is published from it. Only an asset without a table of its own is
deferred, and never one that the plan makes (`plan/deferral.py`). What must never enter: writing, to either of them.
"""

from collections.abc import Mapping

import msgspec

from arco.catalog.catalog import Catalog
from arco.kernel.errors import InvalidInput, NotFound
from arco.kernel.scope import Scope
from arco.servo.deploy.deploying import Deployments
from arco.servo.deploy.manifest import Deployment
from arco.servo.execute.gathering import gather
from arco.servo.plan.facts import AssetFacts, PlanningSnapshot
from arco.servo.sdk.project import Project
from arco.storage.keys import prefix_of


async def need_lender(catalog: Catalog, lender: Scope) -> None:
    """Refuse to defer to what holds nothing: most likely a name that is misspelt, and every input would seem to be missing."""
    parts = catalog.parts
    if lender != parts.scope and not (await parts.tier1.store.list_page(prefix_of(lender), limit=1)).entries:
        raise NotFound(
            f"there is no workspace {lender.warehouse} to defer to", hint="arco workspace list shows what there is"
        )


async def gathered(
    catalog: Catalog,
    project: Project,
    deployment: Deployment,
    defer_to: Scope | None,
    file_options: Mapping[str, str],
) -> PlanningSnapshot:
    """Everything that is known of a project's assets, and of those that are not built here as they are there."""
    snapshot = await gather(catalog, project, deployment, file_options=file_options)
    if defer_to is None:
        return snapshot
    if defer_to == catalog.parts.scope:
        raise InvalidInput(
            f"{defer_to.warehouse} cannot be deferred to from itself", hint="choose another one with --workspace"
        )
    missing = {str(key) for key in project.assets if snapshot.of(key).table is None}
    if not missing:
        return snapshot
    theirs = await _theirs(catalog.beside(defer_to), project, snapshot.at_ms, file_options)
    assets = dict(snapshot.assets)
    for key in sorted(missing):
        found = theirs.of(key)
        if found.table is not None:
            assets[key] = _borrowed(snapshot.of(key), found, defer_to)
    return PlanningSnapshot.taken(snapshot.at_ms, dict(sorted(assets.items())), snapshot.read_up_to, snapshot.state)


async def _theirs(catalog: Catalog, project: Project, at_ms: int, options: Mapping[str, str]) -> PlanningSnapshot:
    parts = catalog.parts
    deployments = Deployments(parts.tier1.store, parts.scope, parts.clock, parts.entropy)
    deployment = await deployments.current(project.name) or Deployment(
        id="", project=project.name, code_version="", created_ms=0, created_by="", previous=None, assets={}
    )
    return await gather(catalog, project, deployment, now_ms=at_ms, file_options=options)


def _borrowed(own: AssetFacts, theirs: AssetFacts, scope: Scope) -> AssetFacts:
    table = theirs.table
    assert table is not None  # noqa: S101 - only asked for what has one
    return AssetFacts(
        materializations=theirs.materializations,
        table=msgspec.structs.replace(table, workspace=scope.warehouse),
        files=own.files,
        dynamic=own.dynamic or theirs.dynamic,
        quarantined=theirs.quarantined,
    )

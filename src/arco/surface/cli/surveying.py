"""A project and everything that is known of it, for commands that look and change nothing."""

from dataclasses import dataclass

import typer

from arco.servo.deploy.deploying import Deployments
from arco.servo.deploy.manifest import Deployment
from arco.servo.deploy.previewing import preview, remarks
from arco.servo.execute.deferring import gathered, need_lender
from arco.servo.plan.facts import PlanningSnapshot
from arco.servo.sdk.project import Project
from arco.surface.cli.opening import opened
from arco.surface.cli.projects import At, read_project
from arco.surface.cli.settings import load_settings


@dataclass(frozen=True, slots=True)
class Survey:
    """A project, the deployment that counts or would, and the facts. `remarks` are about the deployment."""

    project: Project
    deployment: Deployment
    snapshot: PlanningSnapshot
    remarks: tuple[str, ...]

    def say_remarks(self) -> None:
        """On stderr: what is printed for programs stays as it is."""
        for one in self.remarks:
            typer.echo(f"arco: {one}", err=True)


async def surveyed(at: At) -> Survey:
    file = read_project(at.folder)
    project = file.load()
    where = file.where(at.root, at.options)
    settings = load_settings(where.root, list(where.options), where.folder)
    async with opened(where) as workspace:
        parts = workspace.catalog.parts
        if file.lender_is_asked_for and file.defer_to is not None:
            await need_lender(workspace.catalog, file.defer_to)
        deployments = Deployments(parts.tier1.store, parts.scope, parts.clock, parts.entropy)
        prepared = await deployments.prepare(project, by=workspace.author.principal)
        deployment = preview(prepared)
        snapshot = await gathered(workspace.catalog, project, deployment, file.defer_to, settings.known)
    return Survey(project, deployment, snapshot, tuple(remarks(prepared)))

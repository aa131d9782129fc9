"""The commands on workspaces. What they need is imported when they run."""

from importlib import import_module
from typing import Annotated, Any

import typer

from arco.surface.cli.flags import Json, Options, ProjectFolder, Root, Yes
from arco.surface.cli.running_commands import at_of

workspace = typer.Typer(
    name="workspace",
    help="Workspaces of one root: each with names, tables, runs and state of its own.",
    no_args_is_help=True,
)

WorkspaceName = Annotated[
    str, typer.Argument(metavar="NAME", help="Such as dev, or tenant/dev; in the project's tenant.", show_default=False)
]


@workspace.command()
def create(
    name: WorkspaceName,
    description: Annotated[str, typer.Option(metavar="TEXT", help="What it is for.")] = "",
    project: ProjectFolder = ".",
    root: Root = None,
    option: Options = None,
) -> None:
    """Make a workspace known. One that was deleted is taken up again.

    Example:

      arco workspace create dev --description "Ann tries the new prices"
    """
    _run("create", at_of(project, root, option), name, description)


@workspace.command("list")
def list_workspaces(
    everything: Annotated[bool, typer.Option("--all", help="Also those that were deleted.")] = False,
    project: ProjectFolder = ".",
    root: Root = None,
    option: Options = None,
    json: Json = False,
) -> None:
    """List the workspaces of a root, and how many tables and views each has.

    Example:

      arco workspace list
    """
    _run("list_workspaces", at_of(project, root, option), everything=everything, json=json)


@workspace.command()
def delete(
    name: WorkspaceName,
    why: Annotated[str, typer.Option("--why", metavar="TEXT", help="For whoever asks later.")],
    purge_tables: Annotated[
        bool, typer.Option("--purge-tables", help="Drop its tables and views first; upkeep deletes their files later.")
    ] = False,
    yes: Yes = False,
    project: ProjectFolder = ".",
    root: Root = None,
    option: Options = None,
) -> None:
    """Give a workspace up. Nothing is deleted here, and one that holds tables is refused.

    Files of tables that were dropped are deleted by arco upkeep, after the hold in which arco undrop brings them back.

    Examples:

      arco workspace delete dev --why "merged"

      arco workspace delete dev --why "merged" --purge-tables
    """
    _run("delete", at_of(project, root, option), name, why, purge_tables=purge_tables, yes=yes)


def _run(command: str, *arguments: Any, **flags: Any) -> None:
    import_module("asyncio").run(getattr(import_module("arco.surface.cli.workspaces"), command)(*arguments, **flags))


def add_to(app: typer.Typer) -> None:
    app.add_typer(workspace)

"""The commands that author a project: init, validate, deploy, rollback. Only what the shell sees of them.

What each does is in the file that it imports when it runs.
"""

from importlib import import_module
from typing import Annotated

import typer

from arco.surface.cli.environments import in_environment
from arco.surface.cli.flags import Json, Options, ProjectFolder, Root
from arco.surface.cli.shortening import rarely_collecting


def init(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="Where to; made if it is not there.")] = ".",
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="What the project is called; by default as the folder.", show_default=False),
    ] = None,
) -> None:
    """Write a small project that works: two functions and a query over made-up orders, with checks and a unit test.

    Nothing that is there already is overwritten.

    Examples:

      arco init shop

      arco init . --name shop
    """
    import_module("arco.surface.cli.initialising").init(folder, name)


def validate(project: ProjectFolder = ".", json: Json = False) -> None:
    """Check a project without Spark and without a store: every problem at once, each with its file and line.

    Looks for files that cannot be imported, queries that do not parse, unknown inputs, two assets of one name, assets that need
    each other, partitions that do not fit, and options, checks and schemas that are wrong. Exits 0 if all is well, 2 if not.

    Examples:

      arco validate

      arco validate -p pipelines/shop --json
    """
    if not import_module("arco.surface.cli.validating").validate(project, json=json):
        raise typer.Exit(2)


def deploy(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would change.")] = False,
    allow_breaking: Annotated[
        bool, typer.Option("--allow-breaking", help="Also publish what breaks readers or published partitions.")
    ] = False,
    history: Annotated[
        bool, typer.Option("--history", help="List what was deployed, newest first, and change nothing.")
    ] = False,
    declare: Annotated[
        bool, typer.Option("--declare", help="Print what POST /api/v1/deployments takes, and change nothing.")
    ] = False,
    project: ProjectFolder = ".",
    root: Root = None,
    option: Options = None,
    json: Json = False,
) -> None:
    """Publish a project: its assets, under identities that survive renames, and the columns they declare.

    Says what was added, changed, renamed and retired, and what each change of a schema means for readers. What would break
    them is refused with the reason and the way out. A project that says the same as what is deployed changes nothing. arco run
    deploys, too.

    Examples:

      arco deploy --dry-run

      arco deploy --root s3://bucket/lake

      arco deploy --history

      arco deploy --declare | curl --data-binary @- http://127.0.0.1:8181/api/v1/deployments
    """
    deploying = import_module("arco.surface.cli.deploying")
    place = (project, root, option)
    if declare:
        import_module("asyncio").run(deploying.declare(*place, allow_breaking=allow_breaking))
        return
    if history:
        import_module("asyncio").run(deploying.history(*place, json=json))
        return
    import_module("asyncio").run(deploying.deploy(*place, dry_run=dry_run, allow_breaking=allow_breaking, json=json))


def rollback(
    to: Annotated[
        str | None,
        typer.Option(
            metavar="ID", help="Which one, as arco deploy --history lists them; by default the last.", show_default=False
        ),
    ] = None,
    allow_breaking: Annotated[
        bool, typer.Option("--allow-breaking", help="Go back though what is published since would not be found.")
    ] = False,
    project: ProjectFolder = ".",
    root: Root = None,
    option: Options = None,
    json: Json = False,
) -> None:
    """Let an earlier deployment count again. Tables stay as they are, and so does your code.

    Examples:

      arco rollback

      arco rollback --to 01JD7Z0Q3V8K4M2N6P9R5T1WXY
    """
    deploying = import_module("arco.surface.cli.deploying")
    import_module("asyncio").run(deploying.rollback(project, root, option, to, allow_breaking=allow_breaking, json=json))


COMMANDS = (init, rarely_collecting()(validate), in_environment(deploy), in_environment(rollback))


def add_to(app: typer.Typer) -> None:
    for command in COMMANDS:
        app.command()(command)

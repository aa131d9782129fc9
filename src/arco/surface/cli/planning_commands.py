"""The commands that say what would run, and why: their words and flags. What they do is imported when they run."""

from importlib import import_module
from typing import Annotated

import typer

from arco.kernel.errors import InvalidInput
from arco.surface.cli.flags import Json, Options, ProjectFolder, Root

Partitions = Annotated[
    list[str] | None,
    typer.Option(
        "--partition",
        metavar="DIM=RANGE",
        help="Only these, such as date=2025-01-01..2025-01-31 or region=de,fr (repeatable).",
    ),
]
Asset = Annotated[str, typer.Argument(metavar="ASSET", help="Such as shop.orders, or orders.", show_default=False)]


def plan(  # noqa: PLR0913, PLR0917 - one parameter a flag
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[WORD…]",
            help="Assets: orders, shop.*, tag:finance, +orders, orders+. Default: all.",
            show_default=False,
        ),
    ] = None,
    partition: Partitions = None,
    force: Annotated[bool, typer.Option("--force", help="Everything that is asked for, also what is fresh.")] = False,
    backfill: Annotated[bool, typer.Option("--backfill", help="Only what was never published.")] = False,
    why: Annotated[bool, typer.Option("--why", help="Say for each range of partitions which fact differs.")] = False,
    json: Json = False,
    project: ProjectFolder = ".",
    root: Root = None,
    option: Options = None,
) -> None:
    """Say what `arco run` would do, and why. Writes nothing and starts no Spark.

    Examples:

      arco plan

      arco plan +orders_daily --partition date=2025-01-01..2025-01-31 --why
    """
    if force and backfill:
        raise InvalidInput("--force and --backfill exclude each other", hint="--backfill leaves out what is published")
    planner, surveying = import_module("arco.servo.plan.planner"), import_module("arco.surface.cli.surveying")
    mode = planner.Mode.FORCE if force else planner.Mode.BACKFILL if backfill else planner.Mode.STALE
    request = planner.PlanRequest(tuple(words or ()), surveying.partitions_asked(partition or []), mode)
    _run("planning", "show_plan", surveying.At(project, root, option or []), request, why=why, json=json)


def explain(
    asset: Asset,
    partition: Partitions = None,
    json: Json = False,
    project: ProjectFolder = ".",
    root: Root = None,
    option: Options = None,
) -> None:
    """Say what each partition of an asset is: fresh, since when and from what; or stale, and which fact differs.

    Example:

      arco explain orders_daily --partition date=2025-01-01..2025-01-31
    """
    surveying = import_module("arco.surface.cli.surveying")
    asked = surveying.partitions_asked(partition or [])
    _run("explaining", "show_explanation", surveying.At(project, root, option or []), asset, asked, json=json)


COMMANDS = (plan, explain)


def add_to(app: typer.Typer) -> None:
    for command in COMMANDS:
        app.command()(command)


def _run(module: str, command: str, *arguments: object, **flags: object) -> None:
    """A command is a coroutine that says whether all is well."""
    code = getattr(import_module(f"arco.surface.cli.{module}"), command)
    if not import_module("asyncio").run(code(*arguments, **flags)):
        raise typer.Exit(1)

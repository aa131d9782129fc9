"""The commands that say what would run, and why: their words and flags. What they do is imported when they run."""

from importlib import import_module
from typing import Annotated

import typer

from arco.kernel.limits import TRANSACTION_TABLES_MAX
from arco.surface.cli.environments import in_environment
from arco.surface.cli.flags import Json, Options, ProjectFolder, Root
from arco.surface.cli.running_commands import (
    RANGE,
    Atomic,
    AtomicTables,
    Backfill,
    Force,
    Params,
    Partitions,
    Words,
    at_of,
    pairs,
    request_of,
)
from arco.surface.cli.shortening import rarely_collecting

Asset = Annotated[str, typer.Argument(metavar="ASSET", help="Such as shop.orders, or orders.", show_default=False)]


def plan(  # noqa: PLR0913, PLR0917 - one parameter a flag
    words: Words = None,
    partition: Partitions = None,
    force: Force = False,
    backfill: Backfill = False,
    param: Params = None,
    atomic: Atomic = False,
    transaction_tables: AtomicTables = TRANSACTION_TABLES_MAX,
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
    request = request_of(words, partition, param, force=force, backfill=backfill)
    tables = transaction_tables if atomic else None
    _run("planning", "show_plan", at_of(project, root, option), request, why=why, json=json, atomic_tables=tables)


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
    asked = pairs(partition, "--partition", RANGE)
    _run("explaining", "show_explanation", at_of(project, root, option), asset, asked, json=json)


Dimension = Annotated[
    str, typer.Argument(metavar="DIMENSION", help="A dynamic dimension of the asset.", show_default=False)
]
Values = Annotated[list[str], typer.Argument(metavar="VALUE…", help="One or more values.", show_default=False)]

partitions = typer.Typer(
    name="partitions",
    help="The values of dynamic dimensions: which partitions an asset has, where its definition leaves that open.",
    no_args_is_help=True,
)


@partitions.command("list")
def list_values(
    asset: Annotated[
        str | None, typer.Argument(metavar="[ASSET]", help="Default: every asset that has some.", show_default=False)
    ] = None,
    json: Json = False,
    project: ProjectFolder = ".",
    root: Root = None,
    option: Options = None,
) -> None:
    """List the values that are known."""
    at = at_of(project, root, option)
    _run("partition_values", "list_values", at, asset, json=json)


@partitions.command("add")
def add_values(
    asset: Asset,
    dimension: Dimension,
    values: Values,
    project: ProjectFolder = ".",
    root: Root = None,
    option: Options = None,
) -> None:
    """Make values known: each is a partition from the next plan on.

    Example:

      arco partitions add invoices customer acme globex
    """
    at = at_of(project, root, option)
    _run("partition_values", "add_values", at, asset, dimension, values)


@partitions.command("remove")
def remove_values(
    asset: Asset,
    dimension: Dimension,
    values: Values,
    project: ProjectFolder = ".",
    root: Root = None,
    option: Options = None,
) -> None:
    """Forget values: their partitions are no longer planned. What was published of them stays in the table."""
    at = at_of(project, root, option)
    _run("partition_values", "remove_values", at, asset, dimension, values)


COMMANDS = (plan, explain)


def add_to(app: typer.Typer) -> None:
    for command in COMMANDS:
        app.command()(rarely_collecting()(in_environment(command)))
    app.add_typer(partitions)


def _run(module: str, command: str, *arguments: object, **flags: object) -> None:
    """A command is a coroutine that says whether all is well."""
    code = getattr(import_module(f"arco.surface.cli.{module}"), command)
    if not import_module("asyncio").run(code(*arguments, **flags)):
        raise typer.Exit(1)

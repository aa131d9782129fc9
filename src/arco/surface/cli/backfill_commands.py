"""The commands on backfills. What they need is imported when they run."""

from importlib import import_module
from typing import Annotated, Any

import typer

from arco.surface.cli.environments import in_environment
from arco.surface.cli.flags import Json, Options, ProjectFolder, Root, Spark
from arco.surface.cli.running_commands import NoFold, Params, Partitions, Words, at_of, pairs

backfill = typer.Typer(
    name="backfill", help="Fill many partitions in few Spark jobs, range by range.", no_args_is_help=True
)

RunName = Annotated[str, typer.Argument(metavar="RUN", help="The id of a backfill.", show_default=False)]
Why = Annotated[str, typer.Option("--why", metavar="TEXT", help="For whoever looks at it later.")]


@backfill.command()
@in_environment
def start(  # noqa: PLR0913, PLR0917 - one parameter a flag
    words: Words = None,
    partition: Partitions = None,
    per_task: Annotated[
        int, typer.Option("--per-task", metavar="N", help="Partitions of one range at most: one Spark write, one publish.")
    ] = 500,
    again: Annotated[bool, typer.Option("--again", help="Also what is published: everything that is asked for.")] = False,
    param: Params = None,
    parallel: Annotated[int, typer.Option("--parallel", metavar="N", help="Ranges at once.")] = 2,
    key: Annotated[str | None, typer.Option(metavar="TEXT", help="The same key always means the same backfill.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say which ranges would be made, and why.")] = False,
    no_fold: NoFold = False,
    spark: Spark = None,
    detach: Annotated[bool, typer.Option("--detach", help="Only start it, and leave it to workers.")] = False,
    project: ProjectFolder = ".",
    root: Root = None,
    option: Options = None,
    json: Json = False,
) -> None:
    """Make what was never published, in ranges of partitions; it is driven here to its end, and exits as arco run does.

    With --detach it is only started: workers make it (arco worker), and arco backfill show says how far they are.

    A range is one task: one Spark job writes it, one commit publishes it, one event tells of it, however many partitions it has.
    Another shell can pause, resume and cancel it. Stopped, it goes on from what it has published: arco resume RUN.

    Examples:

      arco backfill start orders_daily --partition date=2015-01-01..2024-12-31 --dry-run

      arco backfill start orders_daily+ --per-task 366

      arco backfill start orders_daily --parallel 8 --detach
    """
    backfilling = import_module("arco.surface.cli.backfilling")
    request = backfilling.request_of(
        words, pairs(partition, "--partition", "date=2025-01-01..2025-01-31"), pairs(param, "--param", "limit=10"),
        per_task=per_task, again=again,
    )  # fmt: skip
    at = at_of(project, root, option, spark)
    if dry_run:
        planning = import_module("arco.surface.cli.planning")
        _run(planning.show_plan(at, request, why=False, json=json))
        return
    running = import_module("arco.surface.cli.running")
    how = running.how_to_run("manual", parallel, None, key, fail_fast=False, backfill=True)
    code = running.interruptible(running.run(at, request, how, fold=not no_fold, json=json, detach=detach))
    if code:
        raise typer.Exit(code)


@backfill.command("list")
@in_environment
def list_backfills(
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="How many, newest first.")] = 20,
    project: ProjectFolder = ".",
    root: Root = None,
    option: Options = None,
    json: Json = False,
) -> None:
    """List backfills, newest first, and how far each is.

    Example:

      arco backfill list
    """
    command = import_module("arco.surface.cli.backfilling")
    _run(command.list_backfills(at_of(project, root, option), limit=limit, json=json))


@backfill.command()
@in_environment
def show(run: RunName, project: ProjectFolder = ".", root: Root = None, option: Options = None, json: Json = False) -> None:
    """Show how far a backfill is, range by range.

    Example:

      arco backfill show 01JZ3V5Q0E8Y7M2K4T6B9N1D3F
    """
    _run(import_module("arco.surface.cli.backfilling").show(at_of(project, root, option), run, json=json))


@backfill.command()
@in_environment
def pause(
    run: RunName, why: Why = "paused", project: ProjectFolder = ".", root: Root = None, option: Options = None
) -> None:
    """Let no further range begin, wherever the backfill is driven. What runs finishes.

    Example:

      arco backfill pause 01JZ3V5Q0E8Y7M2K4T6B9N1D3F --why "the cluster is needed"
    """
    _run(import_module("arco.surface.cli.backfilling").pause(at_of(project, root, option), run, why))


@backfill.command()
@in_environment
def resume(run: RunName, project: ProjectFolder = ".", root: Root = None, option: Options = None) -> None:
    """Let a paused backfill go on, wherever it is driven.

    Example:

      arco backfill resume 01JZ3V5Q0E8Y7M2K4T6B9N1D3F
    """
    _run(import_module("arco.surface.cli.backfilling").resume(at_of(project, root, option), run))


@backfill.command()
@in_environment
def cancel(
    run: RunName,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="For whoever looks at it later.")] = "cancelled",
    project: ProjectFolder = ".",
    root: Root = None,
    option: Options = None,
) -> None:
    """Ask a backfill to end. What it has published stays, and a new one makes the rest.

    Example:

      arco backfill cancel 01JZ3V5Q0E8Y7M2K4T6B9N1D3F
    """
    _run(import_module("arco.surface.cli.running").cancel(at_of(project, root, option), run, reason))


def _run(work: Any) -> None:
    import_module("asyncio").run(work)


def add_to(app: typer.Typer) -> None:
    app.add_typer(backfill)

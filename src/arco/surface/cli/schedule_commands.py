"""The commands on schedules. What they need is imported when they run."""

from importlib import import_module
from typing import Annotated

import typer

from arco.surface.cli.environments import in_environment
from arco.surface.cli.flags import Json, Options, ProjectFolder, Root
from arco.surface.cli.running_commands import NoFold, at_of

schedule = typer.Typer(name="schedule", help="What a project makes by itself, and when.", no_args_is_help=True)

ScheduleName = Annotated[str, typer.Argument(metavar="NAME", help="The name of a schedule.", show_default=False)]
Names = Annotated[
    list[str] | None, typer.Argument(metavar="[NAME]...", help="Schedules; by default all.", show_default=False)
]


@schedule.command("list")
@in_environment
def list_schedules(project: ProjectFolder = ".", root: Root = None, option: Options = None, json: Json = False) -> None:
    """List the schedules of a project: when they fire, what waits, what came of the last tick.

    Example:

      arco schedule list
    """
    command = import_module("arco.surface.cli.scheduling")
    import_module("asyncio").run(command.list_schedules(at_of(project, root, option), json=json))


@schedule.command("next")
@in_environment
def next_ticks(
    names: Names = None,
    count: Annotated[int, typer.Option(metavar="N", help="How many of each.", min=1, max=1000)] = 5,
    project: ProjectFolder = ".",
    root: Root = None,
    option: Options = None,
    json: Json = False,
) -> None:
    """Show when schedules fire next, by their own clocks and by UTC.

    What is kept fresh has its deadlines listed, and when to begin so that they hold. What waits for commits has no times.

    Example:

      arco schedule next nightly --count 10
    """
    command = import_module("arco.surface.cli.scheduling")
    import_module("asyncio").run(command.next_ticks(at_of(project, root, option), names or [], count=count, json=json))


@schedule.command()
@in_environment
def tick(
    names: Names = None,
    parallel: Annotated[int, typer.Option("--parallel", metavar="N", help="Tasks at once in a run.")] = 4,
    no_fold: NoFold = False,
    project: ProjectFolder = ".",
    root: Root = None,
    option: Options = None,
    json: Json = False,
) -> None:
    """Run what is due, once. Call it every minute, from as many machines as you like.

    A tick has at most one run, whoever calls. What a dead process left half done is gone on with; what another one is at is left
    to it. The project is deployed first, if it is new.

    Exits 0 if everything that was due was published, 3 if something was held back, 1 if something failed.

    Examples:

      * * * * *  arco schedule tick -p /srv/shop --json >> /var/log/shop.jsonl

      arco schedule tick nightly
    """
    command = import_module("arco.surface.cli.scheduling")
    running = import_module("arco.surface.cli.running")
    going = command.tick(at_of(project, root, option), names or [], parallel=parallel, fold=not no_fold, json=json)
    code = running.interruptible(going)
    if code:
        raise typer.Exit(code)


@schedule.command()
@in_environment
def pause(
    name: ScheduleName,
    why: Annotated[
        str | None, typer.Option(metavar="TEXT", help="For whoever finds it paused; asked for at a terminal.")
    ] = None,
    project: ProjectFolder = ".",
    root: Root = None,
    option: Options = None,
) -> None:
    """Let a schedule begin nothing until it is resumed. What was due before waits; what runs goes on.

    Example:

      arco schedule pause nightly --why "the source is being moved"
    """
    command = import_module("arco.surface.cli.scheduling")
    import_module("asyncio").run(command.pause(at_of(project, root, option), name, why))


@schedule.command()
@in_environment
def resume(name: ScheduleName, project: ProjectFolder = ".", root: Root = None, option: Options = None) -> None:
    """Let a schedule go on. What would have been due in the pause is not made up for.

    Example:

      arco schedule resume nightly
    """
    command = import_module("arco.surface.cli.scheduling")
    import_module("asyncio").run(command.resume(at_of(project, root, option), name))


def add_to(app: typer.Typer) -> None:
    app.add_typer(schedule)

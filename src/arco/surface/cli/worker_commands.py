"""The commands that stay: workers and schedulers. What they need is imported when they run."""

from importlib import import_module
from typing import Annotated

import typer

from arco.surface.cli.environments import in_environment
from arco.surface.cli.flags import Options, ProjectFolder, Root, Spark
from arco.surface.cli.running_commands import at_of

Poll = Annotated[
    float,
    typer.Option(metavar="SECONDS", help="How often it looks where nobody can wake it: on a bucket.", min=0.1, max=3600),
]


def add_to(app: typer.Typer) -> None:
    """Put the commands on the app."""
    for command in (worker, scheduler):
        app.command()(in_environment(command))


def worker(
    slots: Annotated[int, typer.Option(metavar="N", help="Tasks at once in this process.", min=1, max=1000)] = 4,
    once: Annotated[bool, typer.Option("--once", help="End when no run is open that this worker could work on.")] = False,
    poll: Poll = 2.0,
    isolate: Annotated[
        bool,
        typer.Option(
            "--isolate", help="Every task in a process of its own, with a Spark and keys for its own places alone (S3)."
        ),
    ] = False,
    spark: Spark = None,
    project: ProjectFolder = ".",
    root: Root = None,
    option: Options = None,
) -> None:
    """Claim and execute tasks of all open runs of a project, with one Spark session, until told to stop.

    Any number of workers may run, on any machines that reach the root. One that dies is no loss: its tasks are settled and tried
    again by others when it has been silent for 30 seconds. Runs that were planned for other code than it has are refused.

    Told to stop (Ctrl-C, SIGTERM), it claims nothing more, gives its tasks 20 seconds to end, and hands the rest back; told
    again, it leaves at once.

    With --isolate the worker runs no task's code itself: each attempt gets a process, a Spark session and keys that read its
    inputs and write its output (docs/workers.md). It needs a root on S3 and a role: vend_role under [workers] in arco.toml.

    Examples:

      arco worker --slots 8

      arco worker --isolate --slots 2

      arco worker --spark spark://cluster:7077 --workspace dev --defer-to prod

      arco worker --once
    """
    working = import_module("arco.surface.cli.working")
    at = at_of(project, root, option, spark)
    code = working.served(working.work(at, slots=slots, once=once, poll_s=poll, isolate=isolate))
    if code:
        raise typer.Exit(code)


def scheduler(
    once: Annotated[bool, typer.Option("--once", help="Tick what is due, and end when no run is open.")] = False,
    poll: Poll = 2.0,
    spark: Spark = None,
    project: ProjectFolder = ".",
    root: Root = None,
    option: Options = None,
) -> None:
    """Drive open runs, tick schedules, take over what died; execute nothing.

    Any number of schedulers may run. What one decides is in the log of the run, and no other decides it again; one that dies is
    no loss. With a signing key (docs/workers.md) it signs every task that it hands out; workers with the key run nothing else.

    Examples:

      arco scheduler

      arco scheduler --once
    """
    working = import_module("arco.surface.cli.working")
    code = working.served(working.mind(at_of(project, root, option, spark), once=once, poll_s=poll))
    if code:
        raise typer.Exit(code)

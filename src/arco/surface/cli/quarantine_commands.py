"""The commands of the quarantine desk. What they need is imported when they run."""

from importlib import import_module
from typing import Annotated

import typer

from arco.surface.cli.environments import in_environment
from arco.surface.cli.flags import Json, Options, ProjectFolder, Root
from arco.surface.cli.running_commands import at_of

quarantine = typer.Typer(
    name="quarantine", help="What checks held back: look at it, publish it after all, or give it up.", no_args_is_help=True
)

HeldName = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="As arco quarantine list has it; its last four characters will do.", show_default=False
    ),
]
Why = Annotated[str | None, typer.Option("--why", metavar="TEXT", help="For whoever asks later; asked for at a terminal.")]


@quarantine.command("list")
@in_environment
def list_held(
    everything: Annotated[
        bool, typer.Option("--all", help="Also what was released or discarded, by whom and why.")
    ] = False,
    project: ProjectFolder = ".",
    root: Root = None,
    option: Options = None,
    json: Json = False,
) -> None:
    """List what is held back: outputs on branches of their tables, and rows that were set aside.

    It needs no project where --root says where to look.

    Example:

      arco quarantine list --all
    """
    desk = import_module("arco.surface.cli.quarantining")
    import_module("asyncio").run(desk.list_held(at_of(project, root, option), everything=everything, json=json))


@quarantine.command()
@in_environment
def show(
    held: HeldName, project: ProjectFolder = ".", root: Root = None, option: Options = None, json: Json = False
) -> None:
    """Show one thing that was held back: why, by which checks, where it is kept, and what can be done.

    Example:

      arco quarantine show 01JZ3V5Q0E8Y7M2K4T6B9N1D3F
    """
    desk = import_module("arco.surface.cli.quarantining")
    import_module("asyncio").run(desk.show(at_of(project, root, option), held, json=json))


@quarantine.command()
@in_environment
def release(
    held: HeldName,
    why: Why = None,
    project: ProjectFolder = ".",
    root: Root = None,
    option: Options = None,
    json: Json = False,
) -> None:
    """Publish what was held back, though its checks refused it. Who and why are recorded.

    It becomes the table's main as it is, or on top of what was published in other partitions since. Where the same partitions
    were published since, it is refused. Rows that were set aside are added to the partitions that they were set aside from, and
    kept in quarantine for the record. Asked for twice, it happens once.

    Example:

      arco quarantine release 01JZ3V5Q0E8Y7M2K4T6B9N1D3F --why "the drop is real: a holiday"
    """
    desk = import_module("arco.surface.cli.quarantining")
    import_module("asyncio").run(desk.decide(at_of(project, root, option), held, "release", why, json=json))


@quarantine.command()
@in_environment
def discard(
    held: HeldName,
    why: Why = None,
    project: ProjectFolder = ".",
    root: Root = None,
    option: Options = None,
    json: Json = False,
) -> None:
    """Give up what was held back. Its branch goes, its files stay until upkeep takes them; who and why are recorded.

    Example:

      arco quarantine discard 01JZ3V5Q0E8Y7M2K4T6B9N1D3F --why "the source sent it twice"
    """
    desk = import_module("arco.surface.cli.quarantining")
    import_module("asyncio").run(desk.decide(at_of(project, root, option), held, "discard", why, json=json))


def add_to(app: typer.Typer) -> None:
    app.add_typer(quarantine)

"""The `arco` command: what it can do, and how errors reach a person.

What a command needs is imported when it runs: help must be there at once, and the catalog's libraries take half a second.
"""

import sys
from importlib import import_module
from typing import Annotated

import typer

from arco.kernel.errors import ArcoError
from arco.surface.cli import names
from arco.surface.cli.flags import Options, Root

app = typer.Typer(
    name="arco",
    help="A lakehouse in a bucket: Iceberg catalog, pipelines on Spark and a data product hub, with no database.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback()
def _main() -> None:
    """Keep subcommands even while there is only one."""


@app.command()
def doctor(root: Root = None, option: Options = None) -> None:
    """Test whether a root can be trusted with commits: conditional writes, races, listings.

    Writes a few small objects under _arco_doctor/ and removes them. Exits 0 if every answer is right.

    Examples:

      arco doctor --root ./lake

      arco doctor --root s3://bucket/lake -o endpoint=http://127.0.0.1:9000 -o allow_http=true -o path_style=true
    """
    doctor_command = import_module("arco.surface.cli.doctor")
    if not import_module("asyncio").run(doctor_command.examine(root, option or [])):
        raise typer.Exit(1)


@app.command()
def serve(
    root: Root = None,
    option: Options = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.")] = 8181,
    allow_location: Annotated[
        list[str] | None,
        typer.Option(metavar="PREFIX", help="Accept tables in this folder outside the root, as file:/path (repeatable)."),
    ] = None,
) -> None:
    """Serve the Iceberg REST catalog of a root under /iceberg, until interrupted.

    Example:

      arco serve --root ./lake --port 8181
    """
    import_module("arco.surface.cli.serve").serve(root, option or [], host, port, allow_location or [])


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(import_module("importlib.metadata").version("arco"))


names.add_to(app)


def run() -> None:
    """The entry point: a deliberate error is one line and a non-zero exit, never a traceback."""
    try:
        app()
    except ArcoError as error:
        typer.echo(f"arco: {error.one_line()}", err=True)
        sys.exit(2)

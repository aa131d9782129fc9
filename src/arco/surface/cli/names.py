"""The commands on names: ls, show, history, drop, undrop, rename, verify. Only what the shell sees of them.

They work on the store directly; no server is needed, and one may run meanwhile. What each does is in the file that it
imports when it runs.
"""

from importlib import import_module
from typing import Annotated, Literal

import typer

from arco.surface.cli.flags import DEFAULT_WAREHOUSE, AllowLocation, Json, Name, Options, Root, Warehouse, Where, Yes

FormatWord = Literal["ICEBERG", "DELTA", "PARQUET", "CSV", "JSON", "ARCO_NATIVE"]


def ls(  # noqa: PLR0913, PLR0917 - one parameter a flag
    namespace: Annotated[
        str | None, typer.Argument(metavar="[NAMESPACE]", help="Only what is in it, at any depth.", show_default=False)
    ] = None,
    dropped: Annotated[bool, typer.Option("--dropped", help="What was dropped and can be restored.")] = False,
    tables: Annotated[bool, typer.Option("--tables", help="Only tables.")] = False,
    views: Annotated[bool, typer.Option("--views", help="Only views.")] = False,
    table_format: Annotated[
        FormatWord | None, typer.Option("--format", case_sensitive=False, help="Only this format.")
    ] = None,
    json: Json = False,
    root: Root = None,
    option: Options = None,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """List tables and views of every format, by name.

    Examples:

      arco ls --root ./lake

      arco ls shop --format delta --json

      arco ls --dropped
    """
    kind = "table" if tables and not views else "view" if views and not tables else None
    wanted = (namespace, kind, table_format)
    _run("listing", "ls", Where.of(root, option, warehouse), wanted, dropped=dropped, json=json)


def show(
    name: Name,
    json: Json = False,
    root: Root = None,
    option: Options = None,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
    allow_location: AllowLocation = None,
) -> None:
    """Show one table or view: identity, place, owner and tags, columns, current snapshot.

    A part of a name that holds a dot is written in double quotes, a quote inside it twice.

    Examples:

      arco show shop.orders --root ./lake

      arco show '"eu.west".orders' --json
    """
    _run("showing", "show", Where.of(root, option, warehouse, allow_location), name, json=json)


def history(
    name: Name,
    limit: Annotated[int, typer.Option(min=0, help="How many lines; 0 for all.")] = 50,
    json: Json = False,
    root: Root = None,
    option: Options = None,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
    allow_location: AllowLocation = None,
) -> None:
    """What happened to a table, newest first, and who did it: snapshots, commits, former names, drops, descriptions.

    Also works for a table that was dropped and can be restored.

    Example:

      arco history shop.orders --limit 10
    """
    _run("showing", "history", Where.of(root, option, warehouse, allow_location), name, limit, json=json)


def drop(
    name: Name,
    purge: Annotated[
        bool, typer.Option("--purge", help="Let upkeep delete the files of an Iceberg table. There is no way back then.")
    ] = False,
    yes: Yes = False,
    root: Root = None,
    option: Options = None,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Drop a table or view. It can be restored for a while, and its files stay unless --purge is given.

    Asks first on a terminal; elsewhere --yes is needed.

    Example:

      arco drop shop.orders --yes
    """
    _run("changing", "drop", Where.of(root, option, warehouse), name, purge=purge, yes=yes)


def undrop(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="The name it had, such as shop.orders.", show_default=False)
    ] = None,
    new_name: Annotated[
        str | None, typer.Option("--as", metavar="NAME", help="Give it this name instead of its old one.")
    ] = None,
    drop_id: Annotated[
        str | None, typer.Option(metavar="ID", help="Which drop, as arco ls --dropped lists them; default: the last.")
    ] = None,
    root: Root = None,
    option: Options = None,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Restore what was dropped, under its name or another.

    Examples:

      arco undrop shop.orders

      arco undrop shop.orders --as shop.orders_before

      arco undrop --drop-id 01JD7Z0Q3V8K4M2N6P9R5T1WXY
    """
    _run("changing", "undrop", Where.of(root, option, warehouse), name, new_name, drop_id)


def rename(
    name: Name,
    new_name: Annotated[str, typer.Argument(metavar="NEW", help="Its new name, such as sales.orders.", show_default=False)],
    root: Root = None,
    option: Options = None,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Rename a table or view, also into another namespace. The old name is remembered.

    Example:

      arco rename shop.orders sales.orders
    """
    _run("changing", "rename", Where.of(root, option, warehouse), name, new_name)


def verify(  # noqa: PLR0913, PLR0917 - one parameter a flag
    quick: Annotated[bool, typer.Option("--quick", help="Leave out manifests and files of tables.")] = False,
    deep: Annotated[bool, typer.Option("--deep", help="Also read every receipt of every table.")] = False,
    state: Annotated[
        bool, typer.Option("--state", help="Also compare what arco query shows with tables, runs and deployments.")
    ] = False,
    repair: Annotated[
        bool, typer.Option("--repair", help="First make again what can be derived from what is there, and say what.")
    ] = False,
    json: Json = False,
    root: Root = None,
    option: Options = None,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
    allow_location: AllowLocation = None,
) -> None:
    """Check everything that Arco has written. Reads only, but for --repair; a server may run meanwhile.

    Walks the chain of commits and says where it breaks, checks the checksums of the state, makes the state again from the
    commits and compares, and looks at every Iceberg table: its pointer, its metadata, the manifests of all its snapshots, and
    whether their files are there. Then reads the folded state, the ledger, transactions, the feed of events, runs and
    deployments. Exits 0 if all is well, 1 if not.

    Examples:

      arco verify --root ./lake

      arco verify --quick --root ./lake

      arco verify --deep --root ./lake

      arco verify --state --root ./lake

      arco verify --repair --deep --root ./lake
    """
    _run(
        "verifying",
        "verify",
        Where.of(root, option, warehouse, allow_location),
        files=not quick,
        deep=deep,
        state=state,
        repair=repair,
        json=json,
    )


COMMANDS = (ls, show, history, drop, undrop, rename, verify)


def add_to(app: typer.Typer) -> None:
    for command in COMMANDS:
        app.command()(command)


def _run(module: str, command: str, *arguments: object, **flags: object) -> None:
    """A command is a coroutine that says whether all is well."""
    code = getattr(import_module(f"arco.surface.cli.{module}"), command)
    if not import_module("asyncio").run(code(*arguments, **flags)):
        raise typer.Exit(1)

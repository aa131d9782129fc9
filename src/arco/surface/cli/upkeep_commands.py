"""The commands that delete: `upkeep` and `purge`. Only what the shell sees of them."""

from importlib import import_module
from typing import Annotated

import typer

from arco.surface.cli.flags import DEFAULT_WAREHOUSE, AllowLocation, Json, Options, Root, Spark, Warehouse, Where, Yes

DryRun = Annotated[bool, typer.Option("--dry-run", help="Delete nothing: print what would go, and why it is garbage.")]


def upkeep(  # noqa: PLR0913, PLR0917 - one parameter a flag
    every: Annotated[
        str | None, typer.Option(metavar="TIME", help="Go on: again after this time, such as 15m.", show_default=False)
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND",
            help="transactions, reconcile, dropped, staged, pointers, creations, snapshots, files, metadata, versions, "
            "markers, receipts, feed, asked, names, segments, state or temporaries (repeatable); all.",
        ),
    ] = None,
    table: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Maintain this table whatever its properties say, and no other: let its snapshots expire, take its orphans "
            "away (repeatable).",
            show_default=False,
        ),
    ] = None,
    dry_run: DryRun = False,
    json: Json = False,
    root: Root = None,
    option: Options = None,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
    allow_location: AllowLocation = None,
) -> None:
    """Take away what nobody can need any more: old markers and receipts, leftovers of killed processes, purged tables.

    Nothing goes that a table, a retry, a restore or a question about the past could still reach, nor anything younger than a
    day by the store's own clock. Segments of the ledger are moved to the archive, never deleted. Any number may run at once,
    and one that is killed is finished by the next. docs/upkeep.md says what is kept for how long.

    Exits 1 if a job failed, or found something that a person should look at; everything else is done.

    Examples:

      arco upkeep --root ./lake --dry-run

      arco upkeep --root ./lake --every 15m

      arco upkeep --root ./lake --only markers --only receipts --json

      arco upkeep --only snapshots --only files --table shop.orders --dry-run
    """
    command = import_module("arco.surface.cli.keeping")
    where = Where.of(root, option, warehouse, allow_location)
    going = command.upkeep(where, only or [], table or [], every=every, dry_run=dry_run, json=json)
    try:
        if not import_module("asyncio").run(going):
            raise typer.Exit(1)
    except KeyboardInterrupt:
        raise typer.Exit(0 if every else 130) from None


def purge(
    older_than: Annotated[str, typer.Option(metavar="TIME", help="What is older than this goes, such as 30d.")],
    dry_run: DryRun = False,
    yes: Yes = False,
    json: Json = False,
    root: Root = None,
    option: Options = None,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Delete for good: tables that were dropped, and the logs of runs that ended, longer ago than you say.

    Tables that were dropped without --purge are among them. None of it can be restored. Tables that were unregistered are not:
    their files are never deleted. What runs published stays, and so do their events in the ledger.

    Asks first on a terminal; elsewhere --yes is needed.

    Examples:

      arco purge --older-than 30d --dry-run

      arco purge --older-than 90d --yes
    """
    command = import_module("arco.surface.cli.keeping")
    where = Where.of(root, option, warehouse)
    going = command.purge(where, older_than, dry_run=dry_run, yes=yes, json=json)
    if not import_module("asyncio").run(going):
        raise typer.Exit(1)


def maintain(  # noqa: PLR0913, PLR0917 - one parameter a flag
    tables: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TABLE]...", help="Which tables, such as shop.orders.", show_default=False),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every Iceberg table of the workspace.")] = False,
    min_files: Annotated[
        int, typer.Option(metavar="N", min=2, help="Rewrite a partition, or manifests, if so many are small.")
    ] = 5,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Change nothing: print what would be rewritten, and why.")
    ] = False,
    spark: Spark = None,
    json: Json = False,
    root: Root = None,
    option: Options = None,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
    allow_location: AllowLocation = None,
) -> None:
    """Rewrite small files and manifests of tables, on Spark: the same rows in fewer files.

    Rows that were deleted are left out of the new files; the table's sort order and file size are kept. Each table is changed
    by commits that anybody can read around, and only if nobody deleted or replaced the same rows meanwhile. Old files stay for
    the snapshots that name them, until those expire (arco upkeep). One that is killed is gone on with by the same command.

    Exits 1 if a task failed. A table that is named and cannot be rewritten is refused before anything is done; with --all it is
    left as it is, and said; if it could not even be looked at, the others are rewritten and the exit code is 1.

    Examples:

      arco maintain shop.orders --dry-run

      arco maintain --all
    """
    running, command = import_module("arco.surface.cli.running"), import_module("arco.surface.cli.maintaining")
    where = Where.of(root, option, warehouse, allow_location)
    going = command.maintain(
        where, tables or [], everything=everything, files_min=min_files, master=spark, dry_run=dry_run, json=json
    )
    code = running.interruptible(going)
    if code:
        raise typer.Exit(code)


def add_to(app: typer.Typer) -> None:
    for command in (upkeep, purge, maintain):
        app.command()(command)

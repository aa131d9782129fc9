"""The commands on folded state: `fold`, `rebuild`, `query`. Only what the shell sees of them."""

from importlib import import_module
from typing import Annotated

import typer

from arco.kernel.errors import InvalidInput
from arco.surface.cli.durations import is_time
from arco.surface.cli.flags import DEFAULT_WAREHOUSE, AsOf, AsOfRun, Fresh, Json, Options, Root, Snapshot, Warehouse, Where

Master = Annotated[
    str | None,
    typer.Option(
        "--spark",
        metavar="MASTER",
        help="Where Spark runs: local[*], spark://…, k8s://…, yarn, sc://… (Connect). Default: local[*].",
        show_default=False,
    ),
]


def fold(  # noqa: PLR0913, PLR0917 - one parameter a flag
    follow: Annotated[bool, typer.Option("--follow", help="Go on: look again every few seconds.")] = False,
    every: Annotated[float, typer.Option(metavar="SECONDS", help="How often to look, with --follow.")] = 10,
    listing: Annotated[
        bool | None,
        typer.Option(
            "--listing/--no-listing",
            help="Look for what is new; or fold only what was notified, for stores where listing is dear. Default: as "
            "[fold] in arco.toml says, or else look.",
            show_default=False,
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Fold every workspace of the root, in one Spark session.")
    ] = False,
    watched: Annotated[bool, typer.Option("--watched", hidden=True)] = False,
    spark: Master = None,
    json: Json = False,
    root: Root = None,
    option: Options = None,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Bring what everybody can query up to date: new events of the ledger, and commits of tables.

    Any number may fold at once; nothing is folded twice and nothing is lost. Spark is started only if there is something new.
    Exits 1 if a part could not be folded; the others are.

    Examples:

      arco fold --root ./lake

      arco fold --root ./lake --follow --every 5 --all
    """
    if not is_time(every):
        raise InvalidInput(f"--every {every:g} is no length of time", hint="give it seconds")
    where = Where.of(root, option, warehouse)
    flags = {"master": spark, "follow": follow, "every_s": every, "listing": listing, "json": json}
    if everything:
        going = import_module("arco.surface.cli.folding_everything").fold(where, watched=watched, **flags)
    else:
        going = import_module("arco.surface.cli.folding").fold(where, **flags)
    try:
        if not import_module("asyncio").run(going):
            raise typer.Exit(1)
    except KeyboardInterrupt:
        raise typer.Exit(0 if follow else 130) from None


def rebuild(
    since: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="STATE", help="A state that is whole, by the id of its snapshot or a time; its files stay."
        ),
    ] = None,
    domain: Annotated[
        list[str] | None,
        typer.Option(metavar="DOMAIN", help="execution, quality, lineage, assets, iceberg or search (repeatable); all."),
    ] = None,
    spark: Master = None,
    json: Json = False,
    root: Root = None,
    option: Options = None,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Make the folded state again from every event there is, archived ones too. The rows are the same.

    The way out if a file of state is damaged or gone. Readers go on with the old state until the new one is published.
    With --from, only what was folded after an earlier state is folded again, on top of its files: `arco diff` lists states.

    Examples:

      arco rebuild --root ./lake --domain execution

      arco rebuild --root ./lake --from 2025-01-31T12:00
    """
    command = import_module("arco.surface.cli.folding")
    where = Where.of(root, option, warehouse)
    import_module("asyncio").run(command.rebuild(where, domain or [], since, master=spark, json=json))


def query(  # noqa: PLR0913, PLR0917 - one parameter a flag
    sql: Annotated[str, typer.Argument(metavar="SQL", help="One SELECT, or - to read it from standard input.")],
    as_of: AsOf = None,
    as_of_run: AsOfRun = None,
    snapshot: Snapshot = None,
    fresh: Fresh = False,
    json: Json = False,
    root: Root = None,
    option: Options = None,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Ask the catalog's own state in SQL: runs, tasks, materializations, partitions, quality_results, lineage_edges, assets, …

    DuckDB answers, from the files of one published state. `arco query "SHOW TABLES"` is not a SELECT: docs/state.md has the
    tables.

    Examples:

      arco query "SELECT run_id, state, ended_at FROM runs ORDER BY created_at DESC LIMIT 5"

      arco query "SELECT asset, count(*) FROM partitions GROUP BY 1" --fresh
    """
    command = import_module("arco.surface.cli.querying")
    binding = import_module("arco.surface.cli.asking").bound(as_of, as_of_run, snapshot, fresh=fresh)
    asked = command.query(Where.of(root, option, warehouse), command.given(sql), binding, json=json)
    import_module("asyncio").run(asked)


def add_to(app: typer.Typer) -> None:
    for command in (fold, rebuild, query):
        app.command()(command)

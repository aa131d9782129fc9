"""The `arco` command: what it can do, and how errors reach a person.

What a command needs is imported when it runs: help must be there at once, and the catalog's libraries take half a second.
"""

import sys
from importlib import import_module
from typing import Annotated, Literal

import typer

from arco.kernel.errors import ArcoError
from arco.surface.cli import (
    backfill_commands,
    folding_commands,
    ledger_commands,
    names,
    pipelines,
    planning_commands,
    quarantine_commands,
    reading_commands,
    running_commands,
    schedule_commands,
    spark_commands,
    upkeep_commands,
    worker_commands,
    workspace_commands,
)
from arco.surface.cli.flags import AllowOrigin, Options, Root
from arco.surface.cli.shortening import leave_at_once, shortened

app = typer.Typer(
    name="arco",
    help="A lakehouse in a bucket: Iceberg catalog, pipelines on Spark and a data product hub, with no database.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

UntilStdinEnds = Annotated[
    bool, typer.Option("--until-stdin-ends", help="Also stop when standard input does: for a program that starts a server.")
]
LogWord = Literal["json", "text"]
LevelWord = Literal["debug", "info", "warning", "error", "off"]


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - Typer hands a flag over like this
    if wanted:
        typer.echo(import_module("importlib.metadata").version("arco"))
        raise typer.Exit


@app.callback()
def _main(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
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


TakeTurns = Annotated[
    bool,
    typer.Option("--take-turns", help="Wait for other servers on this root before changing names; for many of them."),
]
AnyKey = Annotated[
    bool, typer.Option("--any-key", help="Accept any UUID as an Idempotency-Key, not only those that say their time.")
]
TransactionTables = Annotated[
    int, typer.Option(metavar="N", help="The most tables that one transaction may change, up to 100.")
]
OAuth = Annotated[
    bool, typer.Option("--oauth", help="Also hand out the token at /iceberg/v1/oauth/tokens, to whoever knows it.")
]
Fold = Annotated[
    bool, typer.Option("--fold", help="Also keep what arco query shows up to date, with Spark, in a process of its own.")
]
FoldEvery = Annotated[
    float, typer.Option(metavar="SECONDS", help="How often the fold looks when nobody tells it of anything new.")
]
FoldNoListing = Annotated[
    bool,
    typer.Option(
        "--fold-no-listing", help="The fold folds what this server tells it of: for stores where listing is dear."
    ),
]
Insecure = Annotated[
    bool,
    typer.Option("--insecure", help="Listen where others can reach it, without a token. Everybody may do everything."),
]
AcceptLocation = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PREFIX",
        help="Accept tables in this place outside the root: file:/path, s3://bucket/folder, gs:// or abfss:// (repeatable).",
    ),
]
Upkeep = Annotated[
    bool, typer.Option("--upkeep", help="Also take away what nobody can need any more, as arco upkeep does.")
]
UpkeepEvery = Annotated[
    float, typer.Option(metavar="SECONDS", help="How long upkeep rests between two passes, with --upkeep.")
]
VendWord = Literal["off", "static", "sts", "gcs", "sas"]
Vend = Annotated[
    VendWord,
    typer.Option(
        help="Who makes the credentials that clients ask for: sts on S3, gcs, sas on Azure; static passes keys on."
    ),
]
VendRole = Annotated[str | None, typer.Option(metavar="ARN", help="With --vend sts: the role whose sessions clients get.")]
VendExternalId = Annotated[
    str | None, typer.Option(metavar="TEXT", help="With --vend sts: the external id that the role asks for.")
]
VendEndpoint = Annotated[
    str | None, typer.Option(metavar="URL", help="The token service, if it is not Amazon's or Google's own.")
]
VendDuration = Annotated[int, typer.Option(metavar="SECONDS", help="How long credentials live, from 900 to 43200.")]
VendReadOnly = Annotated[bool, typer.Option("--vend-read-only", help="Hand out credentials that can only read.")]


@app.command()
def serve(  # noqa: PLR0913, PLR0917 - one parameter a flag
    root: Root = None,
    option: Options = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on. One that others can reach needs ARCO_TOKEN.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes a free one.")] = 8181,
    allow_location: AcceptLocation = None,
    insecure: Insecure = False,
    tls_cert: Annotated[str | None, typer.Option(metavar="FILE", help="Serve https with this certificate (PEM).")] = None,
    tls_key: Annotated[str | None, typer.Option(metavar="FILE", help="The certificate's key (PEM, no password).")] = None,
    oauth: OAuth = False,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", help="Answer a client after this time, though its request goes on.")
    ] = 50,
    at_once: Annotated[
        int, typer.Option(metavar="N", help="Requests worked on at a time; more are told to come again.")
    ] = 256,
    workers: Annotated[
        int, typer.Option(metavar="N", help="Processes that serve, on one address; one that dies is started anew.")
    ] = 1,
    take_turns: TakeTurns = False,
    any_key: AnyKey = False,
    transaction_tables: TransactionTables = 10,
    allow_origin: AllowOrigin = None,
    fold: Fold = False,
    fold_every: FoldEvery = 10,
    fold_no_listing: FoldNoListing = False,
    upkeep: Upkeep = False,
    upkeep_every: UpkeepEvery = 900,
    vend: Vend = "off",
    vend_role: VendRole = None,
    vend_external_id: VendExternalId = None,
    vend_endpoint: VendEndpoint = None,
    vend_duration: VendDuration = 3600,
    vend_read_only: VendReadOnly = False,
    until_stdin_ends: UntilStdinEnds = False,
    log: Annotated[
        LogWord | None, typer.Option(help="The form of the log, on stderr. Default: text at a terminal, json elsewhere.")
    ] = None,
    log_level: Annotated[LevelWord, typer.Option(help="info has a line for each request, warning only trouble.")] = "info",
) -> None:
    """Serve the Iceberg REST catalog of a root under /iceberg, until told to stop (Ctrl-C, SIGTERM).

    Open the address in a browser: the page at / has settings to copy for Spark, PyIceberg, DuckDB, Trino,
    Flink, DataFusion and Go.

    Without a token only this machine may use the catalog. ARCO_TOKEN in the environment sets a bearer token; then clients
    must send it, and the server may listen on other addresses. /health and /ready answer without it.

    Examples:

      arco serve --root ./lake --fold --upkeep

      ARCO_TOKEN=… arco serve --root s3://bucket/lake --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem
    """
    # The library that counts looks for it when it is loaded.
    import_module("arco.surface.cli.settings").count_alone()
    serve_command, vending = (import_module(f"arco.surface.cli.{name}") for name in ("serve", "vending"))
    flags = serve_command.Flags(
        host=host,
        port=port,
        allow_location=tuple(allow_location or ()),
        insecure=insecure,
        tls_cert=tls_cert,
        tls_key=tls_key,
        oauth=oauth,
        log=log,
        log_level=log_level,
        timeout_s=timeout,
        at_once=at_once,
        workers=workers,
        take_turns=take_turns,
        any_key=any_key,
        transaction_tables=transaction_tables,
        allow_origin=tuple(allow_origin or ()),
        fold=fold,
        fold_every_s=fold_every,
        fold_listing=not fold_no_listing,
        upkeep=upkeep,
        upkeep_every_s=upkeep_every,
        until_stdin_ends=until_stdin_ends,
        vend=vending.VendFlags(
            vending.Mode(vend), vend_role, vend_external_id, vend_endpoint, vend_duration, vend_read_only
        ),
    )
    serve_command.serve(root, option or [], flags)


@app.command()
def version() -> None:
    """Print the version."""
    _print_version(True)


for commands in (
    pipelines,
    planning_commands,
    running_commands,
    worker_commands,
    backfill_commands,
    schedule_commands,
    quarantine_commands,
    reading_commands,
    names,
    ledger_commands,
    folding_commands,
    spark_commands,
    upkeep_commands,
    workspace_commands,
):
    commands.add_to(app)


def run() -> None:
    """The entry point: a deliberate error is one line and a non-zero exit, never a traceback."""
    words = sys.argv[1:]
    if not words or "--help" in words:
        leave_at_once()
    try:
        shortened(app, words)()
    except ArcoError as error:
        typer.echo(f"arco: {error.one_line()}", err=True)
        sys.exit(2)

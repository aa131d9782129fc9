"""The commands that run a project. What they need is imported when they run."""

from importlib import import_module
from typing import Annotated, Any, Literal

import typer

from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip
from arco.surface.cli.flags import Json, Options, ProjectFolder, Root

RANGE = "date=2025-01-01..2025-01-31"
Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[ASSETS]...",
        help="What to make: orders, shop.orders, tag:daily, +orders (and what it needs), orders+ (and what needs it).",
        show_default=False,
    ),
]
Partitions = Annotated[
    list[str] | None,
    typer.Option(
        "--partition", metavar="DIMENSION=RANGE", help="Only these: date=2025-01-01..2025-01-31, region=de,fr (repeatable)."
    ),
]
Params = Annotated[
    list[str] | None,
    typer.Option("--param", metavar="NAME=VALUE", help="Another value for a parameter of an asset (repeatable)."),
]
Force = Annotated[bool, typer.Option("--force", help="Make everything that is asked for, stale or not.")]
Backfill = Annotated[bool, typer.Option("--backfill", help="Only what was never published, whatever else changed.")]
StatusWord = Literal["pending", "running", "succeeded", "failed", "cancelled"]
NoFold = Annotated[
    bool, typer.Option("--no-fold", help="Leave it to arco fold, or a server with --fold, to show the run in arco query.")
]
RunName = Annotated[str | None, typer.Argument(metavar="[RUN]", help="By default the last one.", show_default=False)]


def add_to(app: typer.Typer) -> None:
    """Put the commands on the app."""
    for command in (run, resume, runs, cancel):
        app.command()(command)


def run(  # noqa: PLR0913, PLR0917 - one parameter a flag
    words: Words = None,
    partition: Partitions = None,
    force: Force = False,
    backfill: Backfill = False,
    param: Params = None,
    parallel: Annotated[int, typer.Option("--parallel", metavar="N", help="Tasks at once.")] = 4,
    timeout: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="End the run after this time.", show_default=False)
    ] = None,
    fail_fast: Annotated[bool, typer.Option("--fail-fast", help="End the run with the first task that fails.")] = False,
    key: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="The same key always means the same run: for schedulers that may call twice."),
    ] = None,
    no_fold: NoFold = False,
    project: ProjectFolder = ".",
    root: Root = None,
    option: Options = None,
    json: Json = False,
) -> None:
    """Make what is stale: plan, run on Spark, check, publish.

    Only what is not as its code and its inputs are now is made again. An output is checked before anybody can see it; what its
    checks refuse is kept on a branch of its table, and readers go on with the version before. At the end what arco query shows
    is brought up to date.

    Exits 0 if everything was published, 3 if something was held back, 1 if something failed, 2 if the command itself is wrong.

    Examples:

      arco run

      arco run orders+ --partition date=2025-01-01..2025-01-31

      arco run tag:daily --force --param limit=10
    """
    running = import_module("arco.surface.cli.running")
    request = request_of(words, partition, param, force=force, backfill=backfill)
    how = running.how_to_run(parallel, timeout, key, fail_fast=fail_fast, backfill=backfill)
    _exit(running.interruptible(running.run(at_of(project, root, option), request, how, fold=not no_fold, json=json)))


def resume(
    run: RunName = None,
    now: Annotated[
        bool,
        typer.Option("--now", help="Settle what the stopped worker had claimed at once, without waiting for its lease."),
    ] = False,
    no_fold: NoFold = False,
    project: ProjectFolder = ".",
    root: Root = None,
    option: Options = None,
    json: Json = False,
) -> None:
    """Go on with a run that was stopped, from what it has published.

    Nothing is made twice: what the stopped process had begun to publish is settled first, so that it counts or never will.

    Examples:

      arco resume

      arco resume 01JZ3V5Q0E8Y7M2K4T6B9N1D3F --now
    """
    running = import_module("arco.surface.cli.running")
    _exit(running.interruptible(running.resume(at_of(project, root, option), run, now=now, fold=not no_fold, json=json)))


def runs(
    run: Annotated[str | None, typer.Argument(metavar="[RUN]", help="Show its tasks.", show_default=False)] = None,
    limit: Annotated[int, typer.Option(metavar="N", help="How many, newest first.")] = 20,
    status: Annotated[StatusWord | None, typer.Option(help="Only those that are, or ended so.", show_default=False)] = None,
    outputs: Annotated[
        bool, typer.Option("--outputs", help="Of one run: exactly what it published, and what was held back.")
    ] = False,
    project: ProjectFolder = ".",
    root: Root = None,
    option: Options = None,
    json: Json = False,
) -> None:
    """List what ran, newest first; with the id of a run, its tasks or its outputs.

    It needs no project where --root says where to look.

    Examples:

      arco runs --status failed

      arco runs 01JZ3V5Q0E8Y7M2K4T6B9N1D3F

      arco runs 01JZ3V5Q0E8Y7M2K4T6B9N1D3F --outputs --json
    """
    running = import_module("arco.surface.cli.running")
    at = at_of(project, root, option)
    if outputs and run is None:
        raise InvalidInput("--outputs is about one run", hint="arco runs lists them, arco runs RUN --outputs shows one")
    if outputs:
        showing = import_module("arco.surface.cli.showing_outputs")
        import_module("asyncio").run(showing.show_outputs(running.where_of(at), run, json=json))
        return
    import_module("asyncio").run(running.runs(at, run, limit=limit, status=status, json=json))


def cancel(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The id of a run.", show_default=False)],
    reason: Annotated[str, typer.Option(metavar="TEXT", help="For whoever looks at the run later.")] = "cancelled",
    project: ProjectFolder = ".",
    root: Root = None,
    option: Options = None,
) -> None:
    """Ask a run to end, wherever it is driven. What it has published stays.

    Example:

      arco cancel 01JZ3V5Q0E8Y7M2K4T6B9N1D3F --reason "wrong month"
    """
    running = import_module("arco.surface.cli.running")
    import_module("asyncio").run(running.cancel(at_of(project, root, option), run, reason))


def request_of(
    words: list[str] | None, partition: list[str] | None, param: list[str] | None, *, force: bool, backfill: bool
) -> Any:
    """What a plan is asked for, as the flags say."""
    if force and backfill:
        raise InvalidInput("--force and --backfill exclude each other", hint="--backfill leaves out what is published")
    planner = import_module("arco.servo.plan.planner")
    return planner.PlanRequest(
        words=tuple(words or ()),
        partitions=pairs(partition, "--partition", RANGE),
        mode=planner.Mode.FORCE if force else planner.Mode.BACKFILL if backfill else planner.Mode.STALE,
        parameters=pairs(param, "--param", "limit=10"),
    )


def at_of(project: str, root: str | None, options: list[str] | None) -> Any:
    """The project that the flags name."""
    return import_module("arco.surface.cli.projects").At(project, root, options or [])


def pairs(given: list[str] | None, flag: str, example: str) -> dict[str, str]:
    """NAME=VALUE, each name once."""
    found: dict[str, str] = {}
    for one in given or ():
        name, equals, value = one.partition("=")
        if not equals or not name or not value:
            raise InvalidInput(f"{flag} {clip(one)!r} has no value", hint=f"write {flag} {example}")
        if name in found:
            raise InvalidInput(f"{flag} names {clip(name)!r} twice", hint="separate several values with commas")
        found[name] = value
    return found


def _exit(code: Any) -> None:
    if code:
        raise typer.Exit(code)

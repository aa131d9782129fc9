"""The commands that run a project. What they need is imported when they run."""

from importlib import import_module
from typing import Annotated, Any, Literal

import typer

from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip
from arco.kernel.limits import TRANSACTION_TABLES_MAX
from arco.surface.cli.environments import in_environment
from arco.surface.cli.flags import Json, Options, ProjectFolder, Root, Spark

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
Atomic = Annotated[
    bool,
    typer.Option("--atomic", help="Publish everything in one transaction, or nothing: readers never see a part of it."),
]
AtomicTables = Annotated[
    int,
    typer.Option("--transaction-tables", metavar="N", help="With --atomic: the most tables it may change, up to 100."),
]
StatusWord = Literal["pending", "running", "succeeded", "failed", "cancelled"]
TriggerWord = Literal["manual", "scheduled", "event"]
NoFold = Annotated[
    bool, typer.Option("--no-fold", help="Leave it to arco fold, or a server with --fold, to show the run in arco query.")
]
RunName = Annotated[str | None, typer.Argument(metavar="[RUN]", help="By default the last one.", show_default=False)]


def add_to(app: typer.Typer) -> None:
    """Put the commands on the app."""
    for command in (run, resume, runs, watch, logs, cancel):
        app.command()(in_environment(command))


def run(  # noqa: PLR0913, PLR0917 - one parameter a flag
    words: Words = None,
    partition: Partitions = None,
    force: Force = False,
    backfill: Backfill = False,
    param: Params = None,
    parallel: Annotated[int, typer.Option("--parallel", metavar="N", help="Tasks at once.")] = 4,
    timeout: Annotated[
        str | None, typer.Option(metavar="TIME", help="End the run after this time: 90, 30m, 2h.", show_default=False)
    ] = None,
    fail_fast: Annotated[bool, typer.Option("--fail-fast", help="End the run with the first task that fails.")] = False,
    atomic: Atomic = False,
    transaction_tables: AtomicTables = TRANSACTION_TABLES_MAX,
    key: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="The same key always means the same run: for schedulers that may call twice."),
    ] = None,
    trigger: Annotated[
        TriggerWord, typer.Option(help="What the run is recorded under, for whoever looks at it later.")
    ] = "manual",
    no_fold: NoFold = False,
    spark: Spark = None,
    detach: Annotated[bool, typer.Option("--detach", help="Only start the run, and leave it to workers.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would run and why, as arco plan does.")] = False,
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

      arco run --spark spark://cluster:7077

      arco run orders+ --atomic
    """
    request = request_of(words, partition, param, force=force, backfill=backfill)
    if dry_run:
        planning = import_module("arco.surface.cli.planning")
        at = at_of(project, root, option)
        tables = transaction_tables if atomic else None
        import_module("asyncio").run(planning.show_plan(at, request, why=False, json=json, atomic_tables=tables))
        return
    running = import_module("arco.surface.cli.running")
    how = running.how_to_run(trigger, parallel, _limit_s(timeout), key, fail_fast=fail_fast, backfill=backfill)
    if atomic:
        how = running.atomically(how, transaction_tables)
    at = at_of(project, root, option, spark)
    _exit(running.interruptible(running.run(at, request, how, fold=not no_fold, json=json, detach=detach)))


def resume(
    run: RunName = None,
    now: Annotated[
        bool,
        typer.Option("--now", help="Settle what the stopped worker had claimed at once, without waiting for its lease."),
    ] = False,
    no_fold: NoFold = False,
    spark: Spark = None,
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
    at = at_of(project, root, option, spark)
    _exit(running.interruptible(running.resume(at, run, now=now, fold=not no_fold, json=json)))


def runs(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[show|take] [RUN]",
            help="A run: its tasks on a line of time. take: start and drive what was asked for over HTTP.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="How many, newest first.")] = 20,
    status: Annotated[StatusWord | None, typer.Option(help="Only those that are, or ended so.", show_default=False)] = None,
    outputs: Annotated[
        bool, typer.Option("--outputs", help="Of one run: exactly what it published, and what was held back.")
    ] = False,
    project: ProjectFolder = ".",
    root: Root = None,
    option: Options = None,
    json: Json = False,
) -> None:
    """List what ran, newest first; with the id of a run, its page: tasks on a line of time, rows, checks, what went wrong.

    It needs no project where --root says where to look. arco runs take needs one: it makes what somebody asked for with
    POST /api/v1/runs/trigger, and exits as arco run does. Any number of processes may take at once.

    Examples:

      arco runs --status failed

      arco runs take

      arco runs show 01JZ3V5Q0E8Y7M2K4T6B9N1D3F

      arco runs 01JZ3V5Q0E8Y7M2K4T6B9N1D3F --outputs --json
    """
    running = import_module("arco.surface.cli.running")
    at = at_of(project, root, option)
    if words == ["take"]:
        _exit(running.interruptible(import_module("arco.surface.cli.taking").take(at, json=json)))
        return
    run = _named_run(words or [])
    if outputs and run is None:
        raise InvalidInput("--outputs is about one run", hint="arco runs lists them, arco runs RUN --outputs shows one")
    if outputs:
        showing = import_module("arco.surface.cli.showing_outputs")
        import_module("asyncio").run(showing.show_outputs(running.where_of(at), run, json=json))
        return
    import_module("asyncio").run(running.runs(at, run, limit=limit, status=status, json=json))


def _named_run(words: list[str]) -> str | None:
    """`arco runs RUN` and `arco runs show RUN` are the same."""
    named = words[1:] if words[:1] == ["show"] else words
    if len(named) > 1 or (words and not named):
        raise InvalidInput("one run is shown at a time", hint="write arco runs show RUN; arco runs lists them")
    return named[0] if named else None


def watch(run: RunName = None, project: ProjectFolder = ".", root: Root = None, option: Options = None) -> None:
    """Watch a run as it goes on, wherever it is driven; by default the last one. Exits 1 if it does not succeed.

    Example:

      arco watch
    """
    watching = import_module("arco.surface.cli.watching")
    _exit(_until_interrupted(watching.watch(at_of(project, root, option), run)))


def logs(
    task: Annotated[str, typer.Argument(metavar="TASK", help="A task, or the asset that it makes.", show_default=False)],
    run: Annotated[
        str | None, typer.Option("--run", metavar="RUN", help="By default the newest that has it.", show_default=False)
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the task has ended.")] = False,
    project: ProjectFolder = ".",
    root: Root = None,
    option: Options = None,
    json: Json = False,
) -> None:
    """Show what became of a task and what its code said, attempt by attempt. Of an asset, all of its tasks in that run.

    Code logs as Python does: logging.getLogger(__name__).info(…). It needs no project where --root says where to look.

    Examples:

      arco logs orders --follow

      arco logs shop.orders --run 01JZ3V5Q0E8Y7M2K4T6B9N1D3F --json
    """
    watching = import_module("arco.surface.cli.watching")
    _until_interrupted(watching.logs(at_of(project, root, option), task, run, follow=follow, json=json))


def _until_interrupted(work: Any) -> Any:
    """Looking at something ends when whoever looks has seen enough."""
    try:
        return import_module("asyncio").run(work)
    except KeyboardInterrupt:
        return 0


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


def _limit_s(text: str | None) -> float | None:
    """A length of time as people write it; a bare number counts seconds."""
    if text is None:
        return None
    durations = import_module("arco.surface.cli.durations")
    try:
        seconds = float(text)
    except ValueError:
        return float(durations.seconds_of(text))
    if not durations.is_time(seconds):
        raise InvalidInput(f"{clip(text)!r} is no length of time", hint="write it like 30s, 10m, 2h or 7d, or as seconds")
    return seconds


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


def at_of(project: str, root: str | None, options: list[str] | None, master: str | None = None) -> Any:
    """The project that the flags name."""
    return import_module("arco.surface.cli.projects").At(project, root, options or [], master)


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

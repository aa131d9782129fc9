"""The commands that answer people from folded state: `assets`, `lineage`, `health`, `diff`, `search`.

Only what the shell sees of them. What each does is in the file that it imports when it runs.
"""

from importlib import import_module
from typing import Annotated, Any

import typer

from arco.surface.cli.flags import (
    DEFAULT_WAREHOUSE,
    AsOf,
    AsOfRun,
    Fresh,
    Json,
    Name,
    Options,
    Root,
    Snapshot,
    Warehouse,
    Where,
)

MaybeName = Annotated[str | None, typer.Argument(metavar="[NAME]", help="Such as shop.orders.", show_default=False)]
Namespace = Annotated[
    str | None, typer.Option(metavar="NAMESPACE", help="Only what is in it, at any depth.", show_default=False)
]
Tag = Annotated[str | None, typer.Option(metavar="TAG", help="Only what has this tag.", show_default=False)]
Owner = Annotated[str | None, typer.Option(metavar="OWNER", help="Only what this one owns.", show_default=False)]
Partition = Annotated[
    str | None,
    typer.Option("--partition", metavar="KEY", help="One partition: date=2025-01-31,region=de.", show_default=False),
]


def assets(  # noqa: PLR0913, PLR0917 - one parameter a flag
    name: MaybeName = None,
    namespace: Namespace = None,
    tag: Tag = None,
    owner: Owner = None,
    retired: Annotated[bool, typer.Option("--retired", help="Also retired assets and dropped tables.")] = False,
    partitions: Annotated[bool, typer.Option("--partitions", help="With a name: each of its partitions.")] = False,
    as_of: AsOf = None,
    as_of_run: AsOfRun = None,
    snapshot: Snapshot = None,
    fresh: Fresh = False,
    json: Json = False,
    root: Root = None,
    option: Options = None,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """List what is deployed: owner, partitions, last publish, health. With a name, everything about one asset.

    Tables that no project made are listed too, and found by their full names. Answers are of the last fold; --fresh adds what
    happened since. A former name finds an asset too.

    Examples:

      arco assets --root ./lake

      arco assets --namespace shop --tag daily --json

      arco assets shop.orders

      arco assets shop.orders --partitions --as-of 2025-01-31T12:00
    """
    asked = (Where.of(root, option, warehouse), _bound(as_of, as_of_run, snapshot, fresh=fresh))
    if name is None:
        _run("listing_assets", "list_assets", *asked, (namespace, tag, owner), retired=retired, json=json)
    else:
        _run("showing_assets", "show_asset", *asked, name, partitions=partitions, json=json)


def lineage(  # noqa: PLR0913, PLR0917 - one parameter a flag
    name: Name,
    up: Annotated[bool, typer.Option("--up", help="Only what it is made of.")] = False,
    down: Annotated[bool, typer.Option("--down", help="Only what is made of it.")] = False,
    depth: Annotated[
        int | None, typer.Option(metavar="N", help="How many steps away; by default 3, with --impact all.")
    ] = None,
    partition: Partition = None,
    columns: Annotated[bool, typer.Option("--columns", help="Which columns came of which, where that is known.")] = False,
    impact: Annotated[bool, typer.Option("--impact", help="Who is hit if it is late or wrong, and whom to tell.")] = False,
    as_of: AsOf = None,
    as_of_run: AsOfRun = None,
    snapshot: Snapshot = None,
    fresh: Fresh = False,
    json: Json = False,
    root: Root = None,
    option: Options = None,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Show what an asset is made of and what is made of it, as a tree.

    With --partition the tree goes from partitions to partitions: what the current publish of one read, and what read it.

    Examples:

      arco lineage shop.revenue

      arco lineage shop.revenue --up --depth 10 --columns

      arco lineage shop.revenue --up --partition date=2025-01-31

      arco lineage shop.orders --impact
    """
    where, binding = Where.of(root, option, warehouse), _bound(as_of, as_of_run, snapshot, fresh=fresh)
    if impact:
        _run("impact", "show_impact", where, binding, name, partition=partition, depth=depth, json=json)
        return
    ways = (up or not down, down or not up)
    _run(
        "tracing", "show_lineage", where, binding, name, ways=ways, depth=depth, partition=partition, columns=columns, json=json
    )  # fmt: skip


def health(  # noqa: PLR0913, PLR0917 - one parameter a flag
    name: MaybeName = None,
    namespace: Namespace = None,
    tag: Tag = None,
    owner: Owner = None,
    as_of: AsOf = None,
    as_of_run: AsOfRun = None,
    snapshot: Snapshot = None,
    fresh: Fresh = False,
    json: Json = False,
    root: Root = None,
    option: Options = None,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Say which assets are well and which are not, worst first. With a name: why, where it begins, and what to type.

    unhealthy: past its deadline, or an output is held back. warning: its last run failed, or checks do. unknown: nothing ran
    yet. Exits 1 if something is unhealthy. The health of a past state is that of its time.

    Examples:

      arco health --root ./lake

      arco health --namespace shop --owner ann@example.com

      arco health shop.dashboard
    """
    asked = (Where.of(root, option, warehouse), _bound(as_of, as_of_run, snapshot, fresh=fresh))
    if name is None:
        _run("judging", "list_health", *asked, (namespace, tag, owner), json=json)
    else:
        _run("judging", "show_health", *asked, name, json=json)


def diff(  # noqa: PLR0913, PLR0917 - one parameter a flag
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="A B | NAME A B",
            help="Two snapshots, by id or time; or two versions of one asset.",
            show_default=False,
        ),
    ] = None,
    versions: Annotated[bool, typer.Option("--versions", help="Versions of a partition of NAME.")] = False,
    schemas: Annotated[
        bool, typer.Option("--schemas", help="Schemas of NAME: numbers, or hashes of declared ones.")
    ] = False,
    partition: Partition = None,
    limit: Annotated[int, typer.Option(metavar="N", help="Lines for each kind of thing.")] = 20,
    as_of: AsOf = None,
    as_of_run: AsOfRun = None,
    snapshot: Snapshot = None,
    fresh: Fresh = False,
    json: Json = False,
    root: Root = None,
    option: Options = None,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Compare two snapshots of everything, two versions of a partition, or two schemas of an asset.

    What is left out is listed: `arco diff` lists snapshots, `arco diff NAME --versions` versions, `arco diff NAME --schemas`
    schemas. With one snapshot, what changed since.

    Examples:

      arco diff

      arco diff 2025-01-30T12:00 2025-01-31T12:00

      arco diff 01JZ3V5Q0E8Y7M2K4T6B9N1D3F --fresh

      arco diff shop.orders --versions 3 4 --partition date=2025-01-31

      arco diff shop.orders --schemas 0 1
    """  # fmt: skip
    where, binding = Where.of(root, option, warehouse), _bound(as_of, as_of_run, snapshot, fresh=fresh)
    wanted = import_module("arco.surface.cli.comparing").wanted(words or [], partition, versions=versions, schemas=schemas)
    _run("comparing", "show_diff", where, binding, wanted, limit=limit, json=json)


def search(  # noqa: PLR0913, PLR0917 - one parameter a flag
    words: Annotated[
        list[str], typer.Argument(metavar="WORDS...", help="Parts of names, tags, owners, columns, descriptions.")
    ],
    namespace: Annotated[
        str | None, typer.Option(metavar="NAMESPACE", help="Only in this one.", show_default=False)
    ] = None,
    limit: Annotated[int, typer.Option(metavar="N", help="How many, best first.")] = 20,
    as_of: AsOf = None,
    as_of_run: AsOfRun = None,
    snapshot: Snapshot = None,
    fresh: Fresh = False,
    json: Json = False,
    root: Root = None,
    option: Options = None,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Find assets and tables by words, beginnings of words, or words that are nearly right; best first.

    Exits 1 if nothing was found.

    Examples:

      arco search revenue

      arco search daily orders --namespace shop

      arco search custmer --json
    """
    where, binding = Where.of(root, option, warehouse), _bound(as_of, as_of_run, snapshot, fresh=fresh)
    _run("searching", "show_hits", where, binding, " ".join(words), namespace=namespace, limit=limit, json=json)


COMMANDS = (assets, lineage, health, diff, search)


def add_to(app: typer.Typer) -> None:
    for command in COMMANDS:
        app.command()(command)


def _bound(as_of: str | None, as_of_run: str | None, snapshot: str | None, *, fresh: bool) -> Any:
    return import_module("arco.surface.cli.asking").bound(as_of, as_of_run, snapshot, fresh=fresh)


def _run(module: str, function: str, *about: Any, **how: Any) -> None:
    """Exit 1 where the answer is no."""
    command = getattr(import_module(f"arco.surface.cli.{module}"), function)
    if not import_module("asyncio").run(command(*about, **how)):
        raise typer.Exit(1)

"""The commands on the ledger. Only what the shell sees of them."""

from importlib import import_module
from typing import Annotated

import typer

from arco.surface.cli.flags import DEFAULT_WAREHOUSE, Json, Options, Root, Warehouse, Where

ledger = typer.Typer(name="ledger", help="The ledger: every event that was appended.", no_args_is_help=True)


@ledger.command()
def stats(
    json: Json = False,
    root: Root = None,
    option: Options = None,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """What the ledger holds: segments, events and bytes by domain and day, writers, and what is wrong.

    Reads every segment. Exits 1 if a segment is missing (a gap in a writer's numbers) or damaged. Events that this version
    does not understand are counted, and kept for one that does.

    Example:

      arco ledger stats --root ./lake --json
    """
    command = import_module("arco.surface.cli.ledger_stats")
    if not import_module("asyncio").run(command.stats(Where.of(root, option, warehouse), json=json)):
        raise typer.Exit(1)


@ledger.command()
def letters(
    domain: Annotated[
        str | None, typer.Option(metavar="DOMAIN", help="execution, quality, lineage, assets, iceberg or search; all.")
    ] = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=1000, help="How many.")] = 20,
    json: Json = False,
    root: Root = None,
    option: Options = None,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Which events could not be folded, and why: the dead letters.

    Example:

      arco ledger letters --root ./lake --domain execution
    """
    command = import_module("arco.surface.cli.ledger_letters")
    showing = command.show_letters(Where.of(root, option, warehouse), domain, limit=limit, json=json)
    import_module("asyncio").run(showing)


def add_to(app: typer.Typer) -> None:
    app.add_typer(ledger)

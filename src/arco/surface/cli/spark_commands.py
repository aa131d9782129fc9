"""The commands of plain Spark: `arco spark shell|sql|submit|jars`. Only what the shell sees of them."""

from importlib import import_module
from typing import Annotated, Any

import typer

from arco.surface.cli.flags import Json, Options, ProjectFolder, Root, Spark

spark_app = typer.Typer(
    name="spark",
    help="Plain Spark with the lake attached: a prompt, a statement, a program; and the jars that takes.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

CatalogUri = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="A server that runs, as http://HOST:8181/iceberg; its token is ARCO_TOKEN. By default one is started meanwhile.",
        show_default=False,
    ),
]
OwnWarehouse = Annotated[
    str | None,
    typer.Option(
        "--warehouse", metavar="TENANT/WORKSPACE", help="By default the project's, or default/default.", show_default=False
    ),
]


@spark_app.command()
def shell(
    spark: Spark = None,
    catalog_uri: CatalogUri = None,
    project: ProjectFolder = ".",
    root: Root = None,
    option: Options = None,
    warehouse: OwnWarehouse = None,
) -> None:
    """A Python prompt with a Spark session `spark` and the lake as `lake`.

    spark.sql and spark.table read and write tables through the catalog `arco`, which is the default one, if Iceberg's runtime is
    there (arco spark jars). lake.table(NAME).to_spark(spark) reads a table without it. A program that is piped in is run.

    Examples:

      arco spark shell

      arco spark shell --root ./lake --spark spark://cluster:7077

      echo "spark.table('shop.orders').show()" | arco spark shell
    """
    sparking = import_module("arco.surface.cli.sparking")
    _exit(sparking.shell(_asked(project, root, option, warehouse, spark, catalog_uri)))


@spark_app.command()
def sql(  # noqa: PLR0913, PLR0917 - one parameter a flag
    statement: Annotated[str, typer.Argument(metavar="SQL", help="One statement, or - to read it from standard input.")],
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="The most rows that are printed.")] = 1000,
    json: Json = False,
    spark: Spark = None,
    catalog_uri: CatalogUri = None,
    project: ProjectFolder = ".",
    root: Root = None,
    option: Options = None,
    warehouse: OwnWarehouse = None,
) -> None:
    """Run one statement of Spark SQL on the lake's tables, and print what it gives.

    Tables are those of the catalog `arco`: shop.orders is arco.shop.orders. Needs Iceberg's runtime: arco spark jars fetches it
    once. (arco query asks what Arco knows of the lake, by DuckDB, and needs no Spark.)

    Examples:

      arco spark sql "SELECT date, sum(amount) FROM shop.orders GROUP BY date"

      arco spark sql "CALL arco.system.rewrite_data_files('shop.orders')" --spark spark://cluster:7077
    """
    sparking, querying = (import_module(f"arco.surface.cli.{name}") for name in ("sparking", "querying"))
    asked = _asked(project, root, option, warehouse, spark, catalog_uri)
    sparking.sql(asked, querying.given(statement), rows_max=limit, json=json)


@spark_app.command(context_settings={"allow_interspersed_args": False})
def submit(
    program: Annotated[str, typer.Argument(metavar="PROGRAM", help="A file of Python, or a jar.", show_default=False)],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[ARGUMENTS]...", help="For the program.", show_default=False)
    ] = None,
    spark: Spark = None,
    catalog_uri: CatalogUri = None,
    project: ProjectFolder = ".",
    root: Root = None,
    option: Options = None,
    warehouse: OwnWarehouse = None,
) -> None:
    """Run a program by spark-submit, with the lake's settings. Flags of ours come before its name.

    The program makes its session as always, SparkSession.builder.getOrCreate(), and finds the catalog `arco` in it. Exits with
    what the program exits with.

    Example:

      arco spark submit --spark spark://cluster:7077 report.py 2025-01-31
    """
    sparking = import_module("arco.surface.cli.sparking")
    _exit(sparking.submit(_asked(project, root, option, warehouse, spark, catalog_uri), program, arguments or []))


@spark_app.command()
def jars(
    wanted: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[WHAT]...",
            help="iceberg, s3, or GROUP:NAME:VERSION of any jar. By default iceberg.",
            show_default=False,
        ),
    ] = None,
    into: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER", help="By default ARCO_JARS, or arco/jars in this user's cache folder.", show_default=False
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Fetch jars that fit to this Spark, once: Iceberg's runtime (48 MB), the S3 connector (18 MB), or any other.

    Maven fetches them, from wherever it is set up to, and their checksums are compared. In the default folder `arco spark` finds
    them by itself; for `arco run` on a bucket name a folder of the project in arco.toml: jars = "jars" under [spark].

    Examples:

      arco spark jars

      arco spark jars iceberg s3 --into jars
    """
    fetching, settings = (import_module(f"arco.surface.cli.{name}") for name in ("jars", "settings"))
    path = import_module("pathlib").Path
    known = import_module("arco.fold.spark_jars").lines
    fetching.fetch(wanted or [fetching.ICEBERG], path(into) if into else settings.jars_cache(known()[0]), json=json)


def add_to(app: typer.Typer) -> None:
    app.add_typer(spark_app)


def _asked(
    project: str,
    root: str | None,
    options: list[str] | None,
    warehouse: str | None,
    master: str | None,
    catalog_uri: str | None,
) -> Any:
    lake = import_module("arco.surface.cli.spark_lake")
    return lake.Asked(project, root, options or [], warehouse, master, catalog_uri)


def _exit(returned: int) -> None:
    if returned:
        raise typer.Exit(returned)

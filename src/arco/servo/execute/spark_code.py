"""Running an asset's own code: its function with DataFrames, or its query over them.

A query sees its inputs as views that only this attempt knows. Their names are put in place of the tables' names where those
stand in the text; everything else of the query stays as its author wrote it. Settings of the header and the bounds of the
partitions (`:partition_start`, `:partition_end`) are parameters of Spark's.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from arco.kernel.errors import InvalidInput
from arco.kernel.fingerprint import fingerprint
from arco.servo.sdk.definitions import AssetDefinition, AssetKind
from arco.servo.sdk.run_context import RunContext

_VIEW = "__arco_view"


def computed(asset: AssetDefinition, inputs: Mapping[str, DataFrame], run: RunContext) -> DataFrame:
    """What an asset's code makes of its inputs. Nothing is executed yet."""
    made = _queried(asset, inputs, run) if asset.kind is AssetKind.SQL else _called(asset, inputs, run)
    if not isinstance(made, DataFrame):
        raise InvalidInput(
            f"{asset.where}: {asset.key} returned {_kind(made)}, not a DataFrame of Spark",
            hint="return the rows of the table" if made is not None else "return the rows of the table; is there a return?",
        )
    return made


def _kind(made: object) -> str:
    kind = type(made)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _called(asset: AssetDefinition, inputs: Mapping[str, DataFrame], run: RunContext) -> Any:
    if asset.function is None:
        raise InvalidInput(f"{asset.where}: {asset.key} has no code")
    own: dict[str, Any] = {**inputs, **run.params}
    if asset.wants_run:
        own["run"] = run
    return asset.function(**own)


# Queries


def _queried(asset: AssetDefinition, inputs: Mapping[str, DataFrame], run: RunContext) -> DataFrame:
    spark: SparkSession = run.spark
    if not hasattr(spark, "_jsparkSession"):
        return _queried_elsewhere(spark, asset, inputs, run)
    with _views(inputs, run) as names:
        # Analyzed here: a DataFrame keeps what a view meant, not its name.
        return spark.sql(rewritten(asset.sql or "", names), args=_arguments(asset, run))


def _queried_elsewhere(
    spark: SparkSession, asset: AssetDefinition, inputs: Mapping[str, DataFrame], run: RunContext
) -> DataFrame:
    """With Spark Connect a query is analyzed each time that it is used: what it reads travels with it, not as views."""
    names = {name: f"{_VIEW}_{place}" for place, name in enumerate(inputs)}
    text = rewritten(asset.sql or "", {name: f"\0{its}\0" for name, its in names.items()})
    # Frames are put where braces stand; the query's own braces are no such places.
    text = text.replace("{", "{{").replace("}", "}}")
    for its in names.values():
        text = text.replace(f"\0{its}\0", f"{{{its}}}")
    return spark.sql(text, args=_arguments(asset, run), **{names[name]: rows for name, rows in inputs.items()})


@contextmanager
def _views(inputs: Mapping[str, DataFrame], run: RunContext) -> Iterator[dict[str, str]]:
    about = fingerprint("view", run.run_id, run.asset, str(run.partitions), str(run.attempt))
    stem = f"{_VIEW}_{about[:32]}"
    names = {name: f"{stem}_{place}" for place, name in enumerate(inputs)}
    try:
        for name, rows in inputs.items():
            rows.createOrReplaceTempView(names[name])
        yield names
    finally:
        for name in names.values():
            run.spark.catalog.dropTempView(name)


def _arguments(asset: AssetDefinition, run: RunContext) -> dict[str, Any]:
    bounds: dict[str, Any] = {}
    if ":partition_" in (asset.sql or ""):
        bounds = {"partition_start": run.start, "partition_end": run.end}
    return {**run.params, **bounds}


def rewritten(query: str, names: Mapping[str, str]) -> str:
    """A query with other names for its tables, and not a character changed beside them."""
    from arco.servo.sdk.sql_assets import parsed, tables_read  # noqa: PLC0415 - half a second that only queries pay

    places = []
    for table in tables_read(parsed(query)):
        parts = list(table.parts)
        name = ".".join(part.name for part in parts)
        if name in names:
            places.append((parts[0].meta["start"], parts[-1].meta["end"] + 1, table, names[name]))
    text = query
    for start, end, table, name in sorted(places, key=lambda one: -one[0]):
        # Columns may be named by the table's own name: without an alias of its own it keeps that one. Behind a sample, which
        # comes before an alias, it is not known where that would stand.
        alias = "" if table.alias or table.args.get("sample") else f" AS {_quoted(table.name)}"
        text = f"{text[:start]}{name}{alias}{text[end:]}"
    return text


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"

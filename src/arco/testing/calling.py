"""Call an asset as Arco would: inputs by name, parameters, and the `run` that its code sees.

Nothing is read, written, checked or published, and the time is never the machine's: a test of an asset says the same every day.
"""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from arco.kernel.asset_key import AssetKey
from arco.kernel.errors import InvalidInput
from arco.servo.partitions.axes import Axis, ListAxis, TimeAxis
from arco.servo.partitions.partitioning import Partitioning
from arco.servo.partitions.sets import PartitionSet
from arco.servo.sdk.authoring import RUN_PARAMETER, Asset, Written
from arco.servo.sdk.definitions import AssetDefinition, AssetKind
from arco.servo.sdk.run_context import RunContext

_END_OF_TIME_MS = 253_370_764_800_000  # the year 9999: every partition is there
_UNPARTITIONED_TIME = datetime(2025, 1, 1, tzinfo=UTC)


def run(
    asset: Asset[..., Any],
    *inputs: Any,
    partitions: Mapping[str, Any] | None = None,
    params: Mapping[str, Any] | None = None,
    spark: Any = None,
    logical_time: datetime | None = None,
    **named: Any,
) -> Any:
    """What an asset makes of these inputs: run(orders_daily, orders, partitions={"date": "2025-01-03"}).

    Inputs are given in the order of the parameters, or by name. `params` are what `arco run --param` would set.
    """
    settings = _settings(asset.written, params)
    names = list(asset.written.inputs)
    if len(inputs) > len(names):
        raise InvalidInput(f"{asset.name} has {len(names)} inputs, and {len(inputs)} were given", hint=", ".join(names))
    given = dict(zip(names, inputs, strict=False))
    twice = sorted(set(given) & set(named))
    if twice:
        raise InvalidInput(f"{asset.name}: input {twice[0]!r} is given twice")
    given |= named
    missing = [name for name in names if name not in given]
    if missing:
        raise InvalidInput(f"{asset.name} reads {missing[0]!r}, and the test does not give it")
    if asset.written.wants_run:
        given[RUN_PARAMETER] = run_context(
            asset, partitions=partitions, params=settings, spark=spark, logical_time=logical_time
        )
    return asset(**given, **settings)


def run_sql(
    path: str | Path,
    inputs: Mapping[str, Any],
    *,
    partitions: Mapping[str, Any] | None = None,
    params: Mapping[str, Any] | None = None,
    spark: Any = None,
    logical_time: datetime | None = None,
) -> Any:
    """What the query of a .sql asset makes of these inputs: run_sql("assets/revenue.sql", {"orders": orders})."""
    written: Written = import_module("arco.servo.sdk.sql_assets").read_sql_asset(Path(path))
    missing = sorted(set(written.inputs) - set(inputs))
    if missing:
        raise InvalidInput(f"{path} reads {missing[0]!r}, and the test does not give it")
    session = spark or next((rows.sparkSession for rows in inputs.values()), None)
    context = _context(written, partitions, _settings(written, params), session, logical_time)
    asset = AssetDefinition(AssetKey("test", written.name), AssetKind.SQL, written.where, "", sql=written.sql)
    return import_module("arco.servo.execute.spark_code").computed(asset, inputs, context)


def run_context(
    asset: Asset[..., Any],
    *,
    partitions: Mapping[str, Any] | None = None,
    params: Mapping[str, Any] | None = None,
    spark: Any = None,
    logical_time: datetime | None = None,
) -> RunContext:
    """The `run` that an asset's code sees. Without partitions, the first one there is.

    Partitions are written as on the command line: {"date": "2025-01-01..2025-01-07", "region": "de,fr"}, or as values. The
    logical time is the end of what is made, unless another is given.
    """
    return _context(asset.written, partitions, params, spark, logical_time)


def _settings(written: Written, params: Mapping[str, Any] | None) -> dict[str, Any]:
    unknown = sorted(set(params or {}) - set(written.parameters))
    if unknown:
        known = ", ".join(sorted(written.parameters)) or "none"
        raise InvalidInput(f"{written.name} has no parameter {unknown[0]!r}", hint=f"it has {known}")
    return dict(params or {})


def _context(
    written: Written,
    partitions: Mapping[str, Any] | None,
    params: Mapping[str, Any] | None,
    spark: Any,
    logical_time: datetime | None,
) -> RunContext:
    texts = {name: _text(value) for name, value in (partitions or {}).items()}
    partitioning = _filled(written.partitions, texts)
    first = {axis.name: _first(axis) for axis in partitioning.axes if axis.name not in texts}
    selected = partitioning.select({**first, **texts}, _END_OF_TIME_MS)
    if not selected:
        raise InvalidInput(
            f"{written.name} has no such partitions: {texts}", hint="its dimensions begin later, or end before"
        )
    at = logical_time or _end_of(partitioning, selected)
    return RunContext(
        run_id="test",
        asset=written.name,
        partitioning=partitioning,
        selected=selected,
        params={**written.parameters, **(params or {})},
        spark=spark,
        logical_time_ms=int((at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp() * 1000),
        attempt=1,
    )


def _filled(partitioning: Partitioning, texts: Mapping[str, str]) -> Partitioning:
    """A dynamic dimension has the values that the test names."""
    return partitioning.with_values({name: [one.strip() for one in text.split(",")] for name, text in texts.items()})


def _first(axis: Axis) -> str:
    if isinstance(axis, ListAxis) and not axis.values:
        raise InvalidInput(f"dimension {axis.name} is dynamic", hint=f'name a value: partitions={{"{axis.name}": "…"}}')
    return _text(axis.value(axis.bounds(_END_OF_TIME_MS)[0]))


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, date):  # a datetime is one
        return value.isoformat()
    return ",".join(_text(one) for one in value) if isinstance(value, list | tuple) else str(value)


def _end_of(partitioning: Partitioning, selected: PartitionSet) -> datetime:
    for place, axis in enumerate(partitioning.axes):
        if isinstance(axis, TimeAxis):
            return axis.first_moment(max(box[place][1] for box in selected.boxes()))
    return _UNPARTITIONED_TIME

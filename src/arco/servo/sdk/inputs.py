"""What an asset reads, where a parameter's name alone does not say it.

def orders_daily(orders_raw, run): ...                       the asset orders_raw, the same partitions
@asset(inputs={"raw": "shop.orders_raw"})                    under another name
@asset(inputs={"rates": last("fx_rates")})                   its newest partition
@asset(inputs={"week": window("orders", -6, 0)})             the last seven periods
@asset(inputs={"new": changes_of("orders_raw")})             rows appended since the last publish
@asset(inputs={"drop": files("landing/*.json")})             files, listed when the plan is made
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from arco.kernel.errors import InvalidInput
from arco.kernel.partition_key import Scalar
from arco.servo.partitions.mappings import All, Custom, Last, Values, Window
from arco.servo.partitions.mappings import Mapping as PartitionMapping
from arco.servo.sdk.definitions import InputKind


@dataclass(frozen=True, slots=True)
class Input:
    """One input as it was written. The name is looked up when the project is whole."""

    kind: InputKind
    asset: str | None = None
    path: str | None = None
    format: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    mapping: PartitionMapping = field(default_factory=Window)


def same(asset: Any) -> Input:
    """The same partitions: what a bare parameter means."""
    return Input(InputKind.TABLE, _named(asset))


def every(asset: Any) -> Input:
    """All of it, whatever partition is made."""
    return Input(InputKind.TABLE, _named(asset), mapping=All())


def last(asset: Any) -> Input:
    """Its newest partition."""
    return Input(InputKind.TABLE, _named(asset), mapping=Last())


def window(asset: Any, first: int, last: int, *, dimension: str | None = None) -> Input:  # noqa: A002, RUF100
    """Periods around the one that is made: window("orders", -6, 0) is the last seven."""
    return Input(InputKind.TABLE, _named(asset), mapping=Window(first, last, dimension))


def offset(asset: Any, periods: int, *, dimension: str | None = None) -> Input:
    """One other period: offset("orders", -1) is the one before."""
    return window(asset, periods, periods, dimension=dimension)


def mapped(asset: Any, needs: Callable[[dict[str, Scalar]], Iterable[Values]]) -> Input:
    """By a function of the project's own: from the values of one partition that is made to those of the ones it reads.

    mapped("orders", lambda made: [{"date": made["date"] - timedelta(days=7)}])
    """
    return Input(InputKind.TABLE, _named(asset), mapping=Custom(needs))


def changes_of(asset: Any) -> Input:
    """The rows appended since the last published snapshot; all of it where that cannot be told."""
    return Input(InputKind.CHANGES, _named(asset), mapping=All())


def files(path: str, *, format: str | None = None, **options: str) -> Input:  # noqa: A002 - what readers call it
    """Files under a path, with * and **. The list is a recorded fact: other files, another version."""
    if not path.strip():
        raise InvalidInput("files() without a path")
    return Input(InputKind.FILES, path=path, format=format or _format_of(path), options=options)


def _named(asset: Any) -> str:
    """An asset by its name or by the object itself."""
    written = getattr(asset, "written", None)
    if written is not None:
        return str(written.name)
    if isinstance(asset, str) and asset:
        return asset
    raise InvalidInput(f"{asset!r} is not an asset", hint="give its name, or the decorated function")


def _format_of(path: str) -> str:
    for ending in ("json", "csv", "parquet", "orc", "text"):
        if path.rstrip("*").endswith(f".{ending}") or path.endswith((f".{ending}.gz", f".{ending}.zst")):
            return ending
    raise InvalidInput(f"files({path!r}) does not say what they are", hint="give format=, such as json, csv or parquet")

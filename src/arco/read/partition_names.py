"""The partition that somebody names: `date=2025-01-31,region=de` for the stored `date=d:2025-01-31,region=s:de`.

The types are those of the asset's dimensions. The stored spelling and ids are always understood too. What must never enter:
whether there is such a partition.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from arco.fold.tables import ASSETS
from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip
from arco.kernel.partition_key import PartitionKey, Scalar
from arco.read.answers import document
from arco.read.naming import Named
from arco.read.reader import Reader


async def stored_key(reader: Reader, named: Named, text: str) -> str:
    """The stored key of what somebody wrote. Of what no project deployed nobody knows the dimensions: it stays as it is."""
    if _stays(text):
        return text
    rows = await reader.rows(f"SELECT partitioning FROM {await reader.relation(ASSETS, named.asset_id)}")
    return key_of(text, document(rows[0]["partitioning"]) or []) if rows else text


def key_of(text: str, axes: Sequence[Mapping[str, Any]]) -> str:
    """The stored key of what somebody wrote, by the dimensions of the asset. Ids and stored keys stay as they are."""
    if _stays(text):
        return text
    known = {axis["name"]: axis for axis in axes}
    found: dict[str, Scalar] = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if not equals or name not in known:
            raise InvalidInput(f"{clip(part)!r} names no dimension of its partitions", hint=_example(axes))
        found[name] = _value(known[name], value)
    return PartitionKey(found).canonical()


def _stays(text: str) -> bool:
    if text.startswith("part_"):
        return True
    try:
        PartitionKey.parse(text)
    except InvalidInput:
        return False
    return True


def _value(axis: Mapping[str, Any], text: str) -> Scalar:
    match axis["kind"]:
        case "static":
            return next((one for one in axis.get("values", ()) if str(one) == text), text)
        case "dynamic":
            return text
        case "hourly":
            return _time(axis["name"], text)
        case _:
            return _time(axis["name"], text).date()


def _time(name: str, text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(
            f"{clip(text)!r} is no time for {name}", hint=f"write {name}=2025-01-31, or {name}=2025-01-31T12:00"
        ) from None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def _example(axes: Sequence[Mapping[str, Any]]) -> str:
    if not axes:
        return "it has no partitions: leave the partition out"
    shapes = {"static": "VALUE", "dynamic": "VALUE", "hourly": "2025-01-31T12:00"}
    return "write " + ",".join(f"{axis['name']}={shapes.get(axis['kind'], '2025-01-31')}" for axis in axes)

"""Along which dimensions tasks read exactly the partitions that they made: what an edge says of one partition of a task.

A task covers ranges, and its lineage says ranges. If the asset's input maps partitions by identity, each partition read its
namesake, and nothing else of the range. What an input maps is in the definition that is deployed; it holds for what was
published by that very code, because the fingerprint of the code covers it. Of everything else nothing is known but the ranges.

What must never enter: other mappings than the identity. Their arithmetic is Servo's.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from arco.fold.tables import ASSETS, MATERIALIZATIONS
from arco.read.answers import document
from arco.read.reader import Reader
from arco.read.views import text

_IDENTITY = "identity"
_TABLE = "table"
_LISTS = frozenset({"static", "dynamic"})


@dataclass(frozen=True, slots=True)
class Deployed:
    """An asset as it is deployed: its names, the kinds of its dimensions, and what it maps."""

    names: frozenset[str] = frozenset()
    fingerprint: str | None = None
    kinds: Mapping[str, str] = field(default_factory=dict)
    inputs: tuple[Mapping[str, Any], ...] = ()


NOT_DEPLOYED = Deployed()


async def deployed(reader: Reader, ids: Collection[str]) -> dict[str, Deployed]:
    """Assets by their ids."""
    rows = await reader.rows(
        f"SELECT asset_id, asset, former_names, fingerprint, partitioning, definition FROM {await reader.relation(ASSETS, ids)}"
    )
    return {
        row["asset_id"]: Deployed(
            frozenset({row["asset"], *(row["former_names"] or ())} - {None}),
            row["fingerprint"],
            {axis["name"]: axis["kind"] for axis in document(row["partitioning"]) or ()},
            tuple((document(row["definition"]) or {}).get("inputs") or ()),
        )
        for row in rows
    }


async def codes(reader: Reader, assets: Collection[str], made: Collection[str]) -> dict[str, str]:
    """The fingerprint of the code that made each of some publishes."""
    if not made:
        return {}
    rows = await reader.rows(
        f"""SELECT DISTINCT materialization_id, code FROM {await reader.relation(MATERIALIZATIONS, assets)}
            WHERE code IS NOT NULL AND materialization_id IN ({", ".join(map(text, sorted(made)))})"""
    )
    return {row["materialization_id"]: row["code"] for row in rows}


def maps_by_identity(source: Deployed, target: Deployed) -> bool:
    """Whether each partition of an asset reads its namesake of another, as both are deployed."""
    read = [one for one in target.inputs if one.get("asset") in source.names]
    same = all(one.get("kind") == _TABLE and one.get("mapping") == _IDENTITY for one in read)
    shared = source.kinds.keys() & target.kinds.keys()
    # Of other periods, a partition reads what holds it, or all that it holds.
    return bool(read) and same and all(_kind(source.kinds[one]) == _kind(target.kinds[one]) for one in shared)


def _kind(kind: str) -> str:
    return "list" if kind in _LISTS else kind

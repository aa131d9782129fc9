"""`GET /api/v1/assets/{asset}/lineage` and `/impact`: what an asset or a partition is made of, and who is hit by it."""

from typing import Annotated

from msgspec import Meta

from arco.kernel.limits import LINEAGE_DEPTH_MAX
from arco.read import impact, lineage, partition_lineage
from arco.read.graph import Direction
from arco.read.impact import Impact
from arco.read.lineage import Extras, Lineage
from arco.read.partition_lineage import PartitionLineage
from arco.surface.http.ask_assets import ASSET
from arco.surface.http.asking import Depth, OfAsset, PartitionName, Question, Sitting

_Direction = Annotated[Direction, Meta(description="Where to look: what it is made of, or what is made of it.")]


class LineageAsked(OfAsset, frozen=True, kw_only=True):
    direction: _Direction = Direction.UPSTREAM
    depth: Depth = 1
    columns: Annotated[bool, Meta(description="Also which columns came of which, where that is known.")] = False
    executions: Annotated[bool, Meta(description="Also how many tasks went along each edge.")] = False


class PartitionLineageAsked(OfAsset, frozen=True, kw_only=True):
    partition: PartitionName
    direction: _Direction = Direction.UPSTREAM
    depth: Depth = 1


class ImpactAsked(OfAsset, frozen=True, kw_only=True):
    partition: Annotated[
        PartitionName | None, Meta(description="Only what was made of this partition: its key or its id.")
    ] = None
    depth: Depth = LINEAGE_DEPTH_MAX


async def _lineage(sitting: Sitting, asked: LineageAsked) -> Lineage:
    extras = Extras(columns=asked.columns, executions=asked.executions)
    return await lineage.lineage(sitting.reader, asked.asset, asked.direction, depth=asked.depth, extras=extras)


async def _partition_lineage(sitting: Sitting, asked: PartitionLineageAsked) -> PartitionLineage:
    return await partition_lineage.partition_lineage(
        sitting.reader, asked.asset, asked.partition, asked.direction, depth=asked.depth
    )


async def _impact(sitting: Sitting, asked: ImpactAsked) -> Impact:
    return await impact.impact(sitting.reader, asked.asset, partition=asked.partition, depth=asked.depth)


LINEAGE_QUESTIONS = (
    Question(f"{ASSET}/lineage", "What it is made of, or what is made of it", LineageAsked, Lineage, _lineage),
    Question(
        f"{ASSET}/lineage/partition",
        "What one partition was made of, or what was made of it",
        PartitionLineageAsked,
        PartitionLineage,
        _partition_lineage,
    ),
    Question(f"{ASSET}/impact", "Everything that is made of it, and who owns that", ImpactAsked, Impact, _impact),
)

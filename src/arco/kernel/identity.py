"""Identifiers derived from other values: partitions, tasks, edges, dependencies.

The derivations are part of the stored format: changing one orphans what was recorded under the old identifier. All use
length-prefixed fields (hazard 22) and keep 64 bits, as the published shapes say; among a million partitions the chance
that two share an identifier is below one in thirty million.
"""

from collections.abc import Callable

from arco.kernel.fingerprint import fingerprint, fingerprints
from arco.kernel.ids import AssetId, CodeVersionId, EdgeId, PartitionId, TaskId
from arco.kernel.partition_key import PartitionKey

_SHORT_HEX = 16


def partition_id(asset: AssetId, key: PartitionKey) -> PartitionId:
    """The same partition of the same asset, for ever."""
    return PartitionId(f"part_{fingerprint('partition', asset, key.canonical())[:_SHORT_HEX]}")


def task_id(asset: AssetId, canonical_range: str, code: CodeVersionId) -> TaskId:
    """One asset, one range of partitions in its canonical form, one code version."""
    return task_ids(asset, code)(canonical_range)


def task_ids(asset: AssetId, code: CodeVersionId) -> Callable[[str], TaskId]:
    """`task_id` for the many ranges of one asset."""
    hashed = fingerprints(("task", asset), (code,))
    return lambda canonical_range: TaskId(f"task_{hashed(canonical_range)[:_SHORT_HEX]}")


def dependency_fingerprint(source: AssetId, target: AssetId, mapping: str, transform: str, parameter: str) -> str:
    """What makes a dependency itself: its ends, how partitions map, what is done, and through which parameter."""
    return fingerprint("dependency", source, target, mapping, transform, parameter)


def edge_id(source: AssetId, target: AssetId, dependency: str) -> EdgeId:
    """One lineage edge; two dependencies between the same assets are two edges."""
    return EdgeId(f"edge_{fingerprint('edge', source, target, dependency)[:_SHORT_HEX]}")

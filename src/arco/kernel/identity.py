"""Identifiers derived from other values: partitions, tasks, edges, dependencies, runs that were asked for, early tables.

The derivations are part of the stored format: changing one orphans what was recorded under the old identifier. All use
length-prefixed fields (hazard 22) and keep 64 bits, as the published shapes say; among a million partitions the chance
that two share an identifier is below one in thirty million.
"""

import uuid
from collections.abc import Callable

from arco.kernel.fingerprint import fingerprint, fingerprints
from arco.kernel.ids import AssetId, CodeVersionId, EdgeId, PartitionId, RunId, TaskId, encode_ulid
from arco.kernel.partition_key import PartitionKey

_SHORT_HEX = 16
_TIME_MASK = (1 << 48) - 1


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


def dependency_fingerprint(source: str, target: str, mapping: str, transform: str, parameter: str) -> str:
    """What makes a dependency itself: its ends, how partitions map, what is done, and through which parameter.

    An end is an asset id, or the identity of what is no asset: a table of others, a file, a topic.
    """
    return fingerprint("dependency", source, target, mapping, transform, parameter)


def edge_id(source: str, target: str, dependency: str) -> EdgeId:
    """One lineage edge; two dependencies between the same assets are two edges."""
    return EdgeId(f"edge_{fingerprint('edge', source, target, dependency)[:_SHORT_HEX]}")


def asked_run_id(request: str, asked_ms: int) -> RunId:
    """The run of a request, whoever starts it: the moment it was asked at, and a hash where others have randomness."""
    return RunId(encode_ulid((asked_ms & _TIME_MASK) << 80 | int(fingerprint("run of a request", request)[:20], 16)))


def uuid_told_by(*fields: str) -> str:
    """A UUID in canonical form that follows from other values. It says no time, as one of version 7 does."""
    return str(uuid.UUID(hex=fingerprint(*fields)[:32], version=5))

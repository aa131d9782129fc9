"""Derived identifiers: part of the stored format, so their values are pinned."""

from datetime import date
from itertools import product

import pytest

from arco.kernel.identity import dependency_fingerprint, edge_id, partition_id, task_id
from arco.kernel.ids import AssetId, CodeVersionId, EdgeId, PartitionId, TaskId
from arco.kernel.partition_key import PartitionKey

ORDERS = AssetId("01ARZ3NDEKTSV4RRFFQ69G5FAV")
CUSTOMERS = AssetId("01BX5ZZKBKACTAV9WEVGEMMVRZ")
CODE = CodeVersionId("4f2a9c1")
DEPENDENCY = "4d4508bed166ea58d28e5a1fc6f276da613e54cd06eca0d35dc235658af18a8c"


def test_a_partition_keeps_its_identifier_for_ever():
    key = PartitionKey.of(region="us-east", date=date(2025, 1, 15))
    assert partition_id(ORDERS, key) == PartitionId("part_8e7fe739f6c9ef2f")
    assert partition_id(ORDERS, PartitionKey.of()) == PartitionId("part_6c6b4e4fd0ceff46")


def test_a_task_keeps_its_identifier_for_ever():
    assert task_id(ORDERS, "date=d:2025-01-15..d:2025-01-31", CODE) == TaskId("task_81aaf030b92ec5cd")


def test_a_dependency_keeps_its_fingerprint_for_ever():
    assert dependency_fingerprint(ORDERS, CUSTOMERS, "identity", "select", "orders") == DEPENDENCY


def test_an_edge_keeps_its_identifier_for_ever():
    assert edge_id(ORDERS, CUSTOMERS, DEPENDENCY) == EdgeId("edge_294daca7f00059e9")


def test_every_derivation_gives_its_own_type():
    assert type(partition_id(ORDERS, PartitionKey.of())) is PartitionId
    assert type(task_id(ORDERS, "", CODE)) is TaskId
    assert type(edge_id(ORDERS, CUSTOMERS, DEPENDENCY)) is EdgeId


def test_different_partitions_have_different_identifiers():
    keys = [
        PartitionKey.of(),
        *(PartitionKey.of(a=value) for value in (1, True, "1", "true", None, "null", "", date(2025, 1, 1))),
    ]
    made = {partition_id(asset, key) for asset in (ORDERS, CUSTOMERS) for key in keys}
    assert len(made) == 2 * len(keys)


def test_different_tasks_have_different_identifiers():
    made = {
        task_id(asset, span, CodeVersionId(code))
        for asset, span, code in product((ORDERS, CUSTOMERS), ("", "a", "ab"), ("a", "b", "ab"))
    }
    assert len(made) == 18


def test_an_edge_has_a_direction():
    assert edge_id(ORDERS, CUSTOMERS, DEPENDENCY) != edge_id(CUSTOMERS, ORDERS, DEPENDENCY)


def test_two_dependencies_between_the_same_assets_are_two_edges():
    made = {edge_id(ORDERS, CUSTOMERS, dependency_fingerprint(ORDERS, CUSTOMERS, "identity", "select", p)) for p in "ab"}
    assert len(made) == 2


@pytest.mark.parametrize("changed", range(5))
def test_every_part_of_a_dependency_counts(changed):
    parts = [ORDERS, CUSTOMERS, "identity", "select", "orders"]
    others = [CUSTOMERS, ORDERS, "identity ", "", "order"]
    parts[changed] = others[changed]
    assert dependency_fingerprint(*parts) != DEPENDENCY

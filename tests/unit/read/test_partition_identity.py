"""One partition of a task that made many: exactly what it read, where its input maps by identity, and said where not."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from arco.read.boxes import document_of, shared
from arco.read.graph import Direction
from arco.read.impact import impact
from arco.read.partition_lineage import partition_lineage
from fixtures.state.state_world import DAY_MS, START_MS, Publish, World, day_key, days, opened, ulid
from unit.read.ground import Ground

UP, DOWN = Direction.UPSTREAM, Direction.DOWNSTREAM


class Chain(World):
    """raw → orders → revenue → total: days by identity, and at the end one table without partitions that reads all of it."""

    def __init__(self, mapping: str = "identity") -> None:
        super().__init__()
        self.number = 0
        self.asset("shop.raw", kind="source", fingerprint="code-raw")
        self.reads("shop.orders", "shop.raw", mapping)
        self.reads("shop.revenue", "shop.orders", "identity")
        self.reads("shop.total", "shop.revenue", "all", partitioning="[]")
        self.along = {name: self.edge(f"shop.{name}", f"shop.{made}") for name, made in EDGES.items()}

    def reads(self, name: str, source: str, mapping: str, **more: Any) -> None:
        definition = {"inputs": [{"parameter": "rows", "kind": "table", "asset": source, "path": None, "mapping": mapping}]}
        self.asset(name, inputs=[source], fingerprint=f"code {name}", definition=json.dumps(definition), **more)

    def makes(self, name: str, first: int, end: int, source: str | None = None, **more: Any) -> Publish:
        self.number += 1
        one = Publish(
            asset=f"shop.{name}", materialization_id=ulid(f"{name} {self.number}"), run=ulid(f"run {self.number}"),
            first=first, end=end, table_uuid=ulid(f"table {name}"), sequence_number=self.number,
            published_ms=START_MS + self.number * DAY_MS, rows=1, **({"code": f"code shop.{name}"} | more),
        )  # fmt: skip
        self.publish(one)
        if source is not None:
            self.went(self.along[source], one, days(first, end) if end else days(0, 14))
        return one


EDGES = {"raw": "orders", "orders": "revenue", "revenue": "total"}
Ask = Callable[[World], Ground]


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[Ask]:
    grounds: list[Ground] = []

    def ask(world: World) -> Ground:
        grounds.append(Ground(world, opened(world, tmp_path)).__enter__())
        return grounds[-1]

    yield ask
    for one in grounds:
        one.__exit__()


def fortnight(world: Chain) -> Chain:
    world.makes("raw", 0, 14)
    world.makes("orders", 0, 14, "raw")
    world.makes("revenue", 0, 14, "orders")
    world.makes("total", 0, 0, "revenue")
    return world


def test_a_partition_of_a_task_that_made_many_is_made_of_its_namesake(asked: Ask) -> None:
    steps = asked(fortnight(Chain())).ask(partition_lineage, "shop.revenue", day_key(3), UP, depth=5).steps
    told = [(one.source, one.source_partitions, one.target_partitions, one.exact) for one in steps]
    assert told == [("shop.orders", days(3, 4), days(3, 4), True), ("shop.raw", days(3, 4), days(3, 4), True)]


def test_only_the_namesakes_of_a_partition_are_hit(asked: Ask) -> None:
    found = asked(fortnight(Chain())).ask(impact, "shop.raw", partition=day_key(3)).affected
    assert [(one.asset, one.partitions, one.exact) for one in found] == [
        ("shop.orders", [days(3, 4)], True), ("shop.revenue", [days(3, 4)], True), ("shop.total", [[{}]], True),
    ]  # fmt: skip


def test_what_another_mapping_read_is_the_range_of_the_task_and_says_so(asked: Ask) -> None:
    ground = asked(fortnight(Chain("window -1..0")))
    above, further = ground.ask(partition_lineage, "shop.revenue", day_key(3), UP, depth=5).steps
    assert (above.source_partitions, above.exact) == (days(3, 4), True)
    assert (further.source_partitions, further.target_partitions, further.exact) == (days(0, 14), days(0, 14), False)
    below = ground.ask(partition_lineage, "shop.raw", day_key(3), DOWN, depth=2).steps
    assert [(one.target_partitions, one.exact) for one in below] == [(days(0, 14), False), (days(0, 14), False)], (
        "it stays so"
    )


def test_what_other_code_published_is_the_range_of_its_task(asked: Ask) -> None:
    world = Chain()
    world.makes("raw", 0, 14)
    world.makes("orders", 0, 14, "raw", code="as it was before")
    (step,) = asked(world).ask(partition_lineage, "shop.orders", day_key(3), UP).steps
    assert (step.source_partitions, step.exact) == (days(0, 14), False)


def test_a_task_that_made_one_partition_says_exactly_what_it_read(asked: Ask) -> None:
    world = Chain("window -1..0")
    world.makes("raw", 0, 14)
    one = world.makes("orders", 3, 4)
    world.went(world.along["raw"], one, days(2, 4))
    (step,) = asked(world).ask(partition_lineage, "shop.orders", day_key(3), UP).steps
    assert (step.source_partitions, step.exact) == (days(2, 4), True)


def test_what_was_published_again_is_not_hit_by_what_the_first_publish_read(asked: Ask) -> None:
    world = Chain()
    world.makes("raw", 0, 14)
    world.makes("orders", 0, 14, "raw")
    again = world.makes("orders", 3, 4, "raw")
    ground = asked(world)
    (step,) = ground.ask(partition_lineage, "shop.raw", day_key(3), DOWN).steps
    assert (step.materialization_id, step.target_partitions, step.exact) == (again.materialization_id, days(3, 4), True)


def test_both_ways_to_a_task_are_gone_along(asked: Ask) -> None:
    """Two assets lead to one task of another by different days: neither hides the other."""
    world = fortnight(Chain())
    definition = [("shop.orders", "identity"), ("shop.revenue", "window -1..-1")]
    inputs = [{"parameter": asset, "kind": "table", "asset": asset, "mapping": mapping} for asset, mapping in definition]
    world.asset("shop.growth", fingerprint="code shop.growth", definition=json.dumps({"inputs": inputs}))
    made = world.makes("growth", 3, 4)
    world.went(world.edge("shop.orders", "shop.growth"), made, days(3, 4))
    world.went(world.edge("shop.revenue", "shop.growth"), made, days(2, 3))
    steps = asked(world).ask(partition_lineage, "shop.growth", day_key(3), UP, depth=5).steps
    raw = [(one.depth, one.source_partitions) for one in steps if one.source == "shop.raw"]
    assert raw == [(2, days(3, 4)), (3, days(2, 3))]
    assert all(one.exact for one in steps)


@pytest.mark.parametrize(
    ("key", "kind", "box"),
    [
        ("m=d:2025-01-01", "monthly", ["2025-01-01", "2025-02-01"]),
        ("m=d:2024-12-01", "monthly", ["2024-12-01", "2025-01-01"]),
        ("m=d:2025-01-06", "weekly", ["2025-01-06", "2025-01-13"]),
        ("m=d:2025-01-06", "daily", ["2025-01-06", "2025-01-07"]),
        ("m=s:de", "static", [["de"]]),
    ],
)
def test_the_document_of_a_key_has_its_whole_period(key: str, kind: str, box: list[Any]) -> None:
    assert document_of(key, {"m": kind}) == [{"m": box}]


def test_what_two_documents_share() -> None:
    here = [{"date": ["2025-01-01", "2025-01-15"], "region": [["de", "fr"]]}]
    assert shared(here, [{"date": ["2025-01-10", "2025-02-01"]}]) == [
        {"date": ["2025-01-10", "2025-01-15"], "region": [["de", "fr"]]}
    ]
    assert shared(here, [{"region": [["fr", "it"]]}, {"region": [["fr"]]}]) == [here[0] | {"region": [["fr"]]}]
    assert shared(here, [{"date": ["2025-01-15", "2025-01-16"]}]) == []
    assert shared([{}], here) == [{}]

"""Two snapshots compared, with deltas that only one of them has and with everything rewritten."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from arco.fold import tables as t
from arco.fold.joins import joined
from arco.read.cut import Cut, Layers
from arco.read.diff_snapshots import COMPARED, SnapshotDiff, snapshot_diff
from arco.read.files import Files
from arco.read.reader import Reader
from fixtures.state.shop_story import told
from fixtures.state.state_world import World, opened, ulid, written


def later(world: World) -> set[str]:
    """What happened after the first snapshot: an asset more, one deployed again, one edge taken back."""
    before = {name: len(rows) for name, rows in world.rows.items()}
    world.asset("shop.extra")
    world.asset("shop.report", kind="sql", code_version="code_2")
    world.add(t.LINEAGE_EDGES, {"edge_id": world.edges[0][0]}, "standing", removed=True)
    world.run("another", "shop", 1, "running", 1)
    return {name for name, rows in world.rows.items() if len(rows) > before[name]}


def compared(folder: Path, *, rewritten: bool) -> SnapshotDiff:
    world = told()
    counts = {name: len(rows) for name, rows in world.rows.items()}
    first = opened(world, folder, snapshot_id="first")
    later(world)
    if rewritten:
        second = opened(world, folder, snapshot_id="second")
    else:
        tables: dict[str, Any] = {}
        for table in t.TABLES:
            new = joined(table, world.rows[table.name][counts[table.name] :]).values()
            delta = written(table, folder, "later", new)
            tables[table.name] = Layers(first.cut.tables[table.name].base, (delta,) if delta else ())
        second = Reader(Cut("second", 0, tables), first._files)
    try:
        return asyncio.run(snapshot_diff(first, second))
    finally:
        first.close()
        second.close()


@pytest.mark.parametrize("rewritten", [False, True])
def test_two_snapshots_differ_in_what_happened_between(tmp_path: Path, rewritten: bool) -> None:
    found = compared(tmp_path, rewritten=rewritten)
    assert (found.before, found.snapshot_id) == ("first", "second")
    tables = {one.table: one for one in found.tables}
    assert {name: (one.added, one.removed, one.changed) for name, one in tables.items()} == {
        "assets": (1, 0, 1), "runs": (1, 0, 0), "lineage_edges": (0, 0, 1),
    }  # fmt: skip
    report = next(one for one in tables["assets"].rows if one.before is not None)
    assert report.key == {"asset_id": ulid("asset shop.report")}
    assert report.before is not None
    assert report.after is not None
    assert (report.before["code_version"], report.after["code_version"]) == ("code_1", "code_2")


def test_a_snapshot_does_not_differ_from_itself(tmp_path: Path) -> None:
    reader = opened(told(), tmp_path)
    assert asyncio.run(snapshot_diff(reader, reader)).tables == ()
    reader.close()


def test_where_the_base_is_the_same_only_what_the_deltas_touch_is_read(tmp_path: Path) -> None:
    world = told()
    first = opened(world, tmp_path)
    second = Reader(Cut("second", 0, first.cut.tables), first._files)
    asyncio.run(snapshot_diff(first, second))
    assert not first.touched
    assert not second.touched
    assert {table.name for table, _ in COMPARED} <= {table.name for table in t.TABLES}
    assert isinstance(first._files, Files)
    first.close()
    second.close()

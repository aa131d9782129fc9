"""The table of crashes in docs/upkeep.md, row by row: a keeper dies there, and the next one finds what the table says."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from arco.kernel import crash_points
from arco.kernel.errors import Conflict
from arco.ledger.reading import events
from arco.storage.keys import Domain
from unit.catalog.ground import MANIFEST, MARKER, METADATA, POINTER
from unit.fold.ground import SCOPE as FOLD_SCOPE
from unit.upkeep.ground import DAY_S, UpkeepGround
from unit.upkeep.table_ground import maintained_table
from unit.upkeep.test_fold_leftovers import ARCHIVED, SEGMENT, FoldGround, consumed_by_all
from unit.upkeep.test_names_and_pointers import dropped_for_good

ROOT = Path(__file__).resolve().parents[3]


class Died(BaseException):
    """The process is gone: nothing of it goes on."""


async def die_at(point: str, work: Awaitable[object]) -> None:
    def hook(name: str) -> None:
        if name == point:
            raise Died

    crash_points.install(hook)
    try:
        with pytest.raises(Died):
            await work
    finally:
        crash_points.install(None)


async def boundary_raised(point: str) -> None:
    ground = UpkeepGround()
    server = ground.server()
    await server.found()
    held = server.line.delay("put", MANIFEST)
    creating = await held.holds(server.create("a", "half"))
    ground.later(10 * DAY_S)
    await die_at(point, ground.upkeep("pointers"))
    assert len(ground.objects(POINTER)) == 1
    await held.answer()
    with pytest.raises(Conflict, match="before the last clean-up"):
        await creating
    await ground.upkeep("pointers")
    assert not ground.objects(POINTER)
    assert not ground.objects(METADATA)


async def deleted(point: str) -> None:
    ground = UpkeepGround()
    server = ground.server()
    await server.found("a")
    for number in range(40):
        await server.commit("a", f"{number}")
    await server.settle()
    ground.later(30 * DAY_S)
    before = len(ground.objects(MARKER))
    await die_at(point, ground.upkeep("markers"))
    assert 0 < len(ground.objects(MARKER)) < before
    await ground.upkeep("markers")
    assert not ground.objects(MARKER)
    assert (await server.properties("a"))["last"] == "39"


async def purged(point: str) -> None:
    ground = UpkeepGround()
    server = ground.server()
    await server.found("a")
    uuid = await dropped_for_good(server, "a")
    ground.later(30 * DAY_S)
    await die_at(point, ground.upkeep("dropped"))
    assert not (await ground.server().ws.tier1.current()).names.dropped
    assert ground.objects(f"-{uuid}/")
    await ground.upkeep()
    assert not ground.objects(f"-{uuid}/")
    assert len(ground.objects(POINTER)) == 1, "its tombstone"


async def snapshots_expired(point: str) -> None:
    ground = UpkeepGround()
    table = await maintained_table(ground, history_expire_max__snapshot__age__ms="1000")
    for number in (1, 2):
        await table.publish(number)
    ground.later(30 * DAY_S)
    await die_at(point, ground.upkeep("snapshots"))
    assert [one["snapshot-id"] for one in (await table.metadata()).snapshots] == [2]
    assert table.there(table.files[1]) == [True] * 3
    ground.later(3 * DAY_S)
    await ground.upkeep()
    ground.later(3 * DAY_S)
    await ground.upkeep()
    assert table.there(table.files[1]) == [False] * 3
    assert table.there(table.files[2]) == [True] * 3
    assert not (await ground.audit()).gaps


async def segment_copied(point: str) -> None:
    ground = FoldGround()
    await ground.append("a1")
    await consumed_by_all(ground.folding())
    told = await events(ground.store, FOLD_SCOPE, Domain.ICEBERG)
    ground.later(3 * DAY_S)
    await die_at(point, ground.upkeep("segments"))
    assert (len(ground.store.named(SEGMENT)), len(ground.store.named(ARCHIVED))) == (1, 1)
    assert await events(ground.store, FOLD_SCOPE, Domain.ICEBERG) == told, "counted once"
    await ground.upkeep("segments")
    assert (len(ground.store.named(SEGMENT)), len(ground.store.named(ARCHIVED))) == (0, 1)


CRASHES: dict[str, Callable[[str], Awaitable[None]]] = {
    "upkeep.boundary_raised": boundary_raised,
    "upkeep.deleted": deleted,
    "upkeep.purged": purged,
    "upkeep.snapshots_expired": snapshots_expired,
    "upkeep.segment_copied": segment_copied,
}


def test_the_table_has_every_place_where_a_keeper_may_die() -> None:
    sources = (ROOT / "src" / "arco" / "upkeep").glob("*.py")
    points = {point for path in sources for point in re.findall(r'\breach\("([^"]+)"\)', path.read_text())}
    listed = re.findall(r"^\| `([a-z]+\.[a-z_]+)` \|", (ROOT / "docs" / "upkeep.md").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(points) == sorted(CRASHES)


@pytest.mark.parametrize("point", CRASHES)
def test_what_the_table_says_of_a_crash_is_true(point: str) -> None:
    asyncio.run(_run(CRASHES[point], point))


async def _run(story: Callable[[str], Awaitable[None]], point: str) -> None:
    await story(point)

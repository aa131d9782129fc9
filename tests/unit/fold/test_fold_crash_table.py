"""The table of the fold's crashes in ARCHITECTURE.md, row by row: a folder dies there, and the next one finds what it says."""

import asyncio
import re
from contextlib import suppress
from pathlib import Path

import pytest

from arco.fold.manifests import Caps
from arco.fold.merging import merge
from arco.fold.moving import move_crowd
from arco.fold.rebuilding import rebuild
from arco.kernel import crash_points
from arco.kernel.errors import ArcoError, Unavailable
from arco.storage.keys import Head
from unit.fold.ground import HEAD, Ground

ROOT = Path(__file__).resolve().parents[3]
TIGHT = {"caps": Caps(files=1), "crowd_max": 0, "grace_s": 0}


def points_in_code() -> list[str]:
    files = (ROOT / "src" / "arco" / "fold").glob("*.py")
    return sorted({point for path in files for point in re.findall(r'\breach\("([^"]+)"\)', path.read_text())})


async def work(ground: Ground, folder: int) -> None:
    """Everything that a folder does."""
    folding = ground.folding(folder, **TIGHT)
    await folding.catch_up(HEAD)
    await merge(folding, HEAD)
    await rebuild(folding, HEAD)
    await folding.catch_up(Head.SEARCH)
    await folding.heads.publish_cut()
    await move_crowd(folding, {HEAD: await folding.round(HEAD)})


def stored(ground: Ground) -> set[str]:
    """Every segment, wherever it lies."""
    places = ("/ledger/iceberg/", "/archive/iceberg/")
    return {name.rpartition("/")[2] for place in places for name in ground.store.named(place)}


async def die_at(ground: Ground, point: str) -> bool:
    """Work until a place is reached: from there on nothing that the folder asks for happens."""
    reached = []

    async def dead(what: str, key: str) -> None:
        raise Unavailable("this process is dead")

    def hook(name: str) -> None:
        if name == point:
            reached.append(name)
            ground.store.before = dead

    crash_points.install(hook)
    try:
        with suppress(ArcoError):
            await work(ground, 1)
    finally:
        crash_points.install(None)
        ground.store.before = None
    return bool(reached)


def test_the_table_has_every_place_where_a_folder_may_die():
    page = (ROOT / "ARCHITECTURE.md").read_text().partition("\n## The fold\n")[2]
    listed = re.findall(r"^\| `([a-z]+\.[a-z_]+)` \|", page, re.MULTILINE)
    assert sorted(listed) == points_in_code()


@pytest.mark.parametrize("point", points_in_code())
def test_whoever_comes_next_publishes_the_same_state(point):
    async def run() -> None:
        ground = Ground()
        await ground.commit(0, {"format-version": 2, "location": "x", "schemas": [], "snapshots": []})
        await ground.append("a1", "a2", "b1")
        await ground.store.damage(await ground.append("c1"))
        assert await die_at(ground, point), f"{point} was not on the way"
        named = stored(ground)
        await work(ground, 2)
        manifest = (await ground.folding(3).heads.read(HEAD)).manifest
        assert await ground.things(manifest) == {"a": ("a1", "a2"), "b": ("b1", "b1")}
        assert manifest.table("commits").base[0].rows == 1, "one commit, however often it was announced"
        announced = len(stored(ground)) - 2
        assert manifest.events == 3 + announced
        assert (manifest.refused, len(ground.store.named(f"dead_letters/{HEAD}/"))) == (1, 1)
        root = await ground.folding(4).heads.read_root()
        assert [one.manifest.snapshot for one in root.manifest.heads if one.head == HEAD] == [manifest.snapshot]
        assert named <= stored(ground), "nothing was lost"

    asyncio.run(run())

"""`arco maintain --all` in a shell: what cannot be looked at keeps nothing else from being maintained, and is said."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from arco.catalog.manifest import Author
from arco_sim.manifests import ROWS, manifest, manifest_list
from stand_ins.lake import Lake
from unit.surface.cli.shell import Shell, arco

__all__ = ["arco"]

TABLES = ("apples", "bananas", "cherries")
FILES = 6


class Orchard(Lake):
    """Three tables with small files enough to be rewritten, in a folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__(base_uri=f"file://{folder}")
        self.folder = folder

    async def grow(self) -> None:
        await self.namespace("shop")
        for name in TABLES:
            await self.table(("shop",), name)
            await self.fill(name)
        await self.write_to(self.folder)

    async def fill(self, name: str) -> None:
        """One snapshot with some files, as an engine writes it."""
        place = await self.place(name)
        listed, named = f"{place}/metadata/snap-1.avro", f"{place}/metadata/1-m0.avro"
        files = [f"{place}/data/{number}.parquet" for number in range(FILES)]
        entry, data = manifest(named, 1, files)
        written = [(one, ROWS) for one in files]
        for location, content in (*written, (named, data), (listed, manifest_list(listed, 1, None, 1, [entry]))):
            key = self.catalog.parts.locations.key(location)
            assert key is not None
            await self.put(key, content)
        snapshot = {
            "snapshot-id": 1,
            "sequence-number": 1,
            "timestamp-ms": self.clock.now_ms(),
            "manifest-list": listed,
            "summary": {"operation": "append"},
        }
        main = {"action": "set-snapshot-ref", "ref-name": "main", "snapshot-id": 1, "type": "branch"}
        await self.commit((("shop",), name), {"action": "add-snapshot", "snapshot": snapshot}, main)

    async def place(self, name: str) -> str:
        return (await self.catalog.tables.load(("shop",), name))[1].metadata.location

    async def metadata_path(self, name: str) -> Path:
        return Path((await self.catalog.tables.load(("shop",), name))[1].location.removeprefix("file://"))


@pytest.fixture
def orchard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Orchard:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ARCO_ROOT", "lake")
    made = Orchard(tmp_path / "lake")
    asyncio.run(made.grow())
    return made


def maintained(found: Any) -> list[str]:
    return [one["table"] for one in found.json["tables"] if one["groups"]]


def unread(found: Any) -> dict[str, str]:
    return {one["table"]: one["unread"] for one in found.json["tables"] if one["unread"]}


def damage_metadata(orchard: Orchard) -> None:
    asyncio.run(orchard.metadata_path("bananas")).write_bytes(b"{broken")


def remove_metadata(orchard: Orchard) -> None:
    asyncio.run(orchard.metadata_path("bananas")).unlink()


def remove_manifest(orchard: Orchard) -> None:
    (asyncio.run(orchard.metadata_path("bananas")).parent / "1-m0.avro").unlink()


def damage_manifest(orchard: Orchard) -> None:
    (asyncio.run(orchard.metadata_path("bananas")).parent / "1-m0.avro").write_bytes(b"damaged")


def remove_manifest_list(orchard: Orchard) -> None:
    (asyncio.run(orchard.metadata_path("bananas")).parent / "snap-1.avro").unlink()


def test_all_tables_are_looked_at(arco: Shell, orchard: Orchard) -> None:
    found = arco("maintain", "--all", "--dry-run", "--json")
    assert (found.code, maintained(found)) == (0, [f"shop.{name}" for name in TABLES])


@pytest.mark.parametrize(
    "damage", [damage_metadata, remove_metadata, remove_manifest, damage_manifest, remove_manifest_list]
)
def test_a_table_that_cannot_be_looked_at_keeps_no_other_from_it_and_is_said(
    arco: Shell, orchard: Orchard, damage: Any
) -> None:
    damage(orchard)
    found = arco("maintain", "--all", "--dry-run", "--json")
    assert (found.code, maintained(found)) == (1, ["shop.apples", "shop.cherries"])
    assert list(unread(found)) == ["shop.bananas"]
    told = arco("maintain", "--all", "--dry-run")
    assert (told.code, "shop.apples" in told.out, "shop.cherries" in told.out) == (1, True, True)
    (line,) = told.err.splitlines()
    assert line.startswith("arco: shop.bananas: ")
    assert "arco verify" in line


@pytest.mark.parametrize("damage", [damage_metadata, remove_manifest, remove_manifest_list])
def test_a_named_table_that_cannot_be_looked_at_is_an_error_in_one_line(arco: Shell, orchard: Orchard, damage: Any) -> None:
    damage(orchard)
    for more in ([], ["--dry-run"]):
        ended = arco("maintain", "shop.apples", "shop.bananas", *more)
        assert (ended.code, ended.out) == (2, "")
        (line,) = ended.err.splitlines()
        assert "shop.bananas: " in line
        assert "arco verify" in line


def test_where_nothing_could_be_looked_at_nobody_says_that_nothing_is_worth_it(arco: Shell, orchard: Orchard) -> None:
    for name in TABLES:
        asyncio.run(orchard.metadata_path(name)).write_bytes(b"{broken")
    ended = arco("maintain", "--all")
    assert (ended.code, ended.out, len(ended.err.splitlines())) == (1, "", 3)


async def _move(orchard: Orchard, outside: Path) -> None:
    """A table of another root, which is registered here."""
    other = Orchard(outside)
    await other.grow()
    location = (await other.catalog.tables.load(("shop",), "bananas"))[1].location
    await orchard.drop((("shop",), "bananas"))
    allowing = orchard.allowing(f"file:{outside}")
    await allowing.registering.register(
        ("shop",), "bananas", location, overwrite=False, key=orchard.key(), author=Author("ann")
    )
    await orchard.write_to(orchard.folder)


def test_a_table_at_an_allowed_location_is_maintained_where_it_is_allowed(
    arco: Shell, orchard: Orchard, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    asyncio.run(_move(orchard, outside))
    found = arco("maintain", "--all", "--dry-run", "--json")
    assert (found.code, maintained(found)) == (1, ["shop.apples", "shop.cherries"])
    assert "--allow-location" in unread(found)["shop.bananas"]
    allowed = arco("maintain", "--all", "--dry-run", "--json", "--allow-location", f"file:{outside}")
    assert (allowed.code, maintained(allowed)) == (0, [f"shop.{name}" for name in TABLES])
    named = arco("maintain", "shop.bananas", "--dry-run")
    assert (named.code, "--allow-location" in named.err, len(named.err.splitlines())) == (2, True, 1)

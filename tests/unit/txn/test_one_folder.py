"""Tables that keep their metadata files in one folder: none is ever shown the file of another."""

from typing import Any

import pytest

from arco.catalog.idempotency import RequestKey
from arco.catalog.metadata_files import MetadataFiles
from arco.kernel.errors import CorruptObject
from arco_sim.scenarios.transactions import FOLDER, OneFolder
from unit.catalog.ground import NAMESPACE, Ground, Server, story
from unit.txn.test_creations import created
from unit.txn.test_rules_of_transactions import Keys, labels, marks, transact

HERE = {"write.metadata.path": FOLDER}


async def ground_with_a_folder() -> tuple[Ground, Server, Server, Keys]:
    ground = Ground()
    one, two = (ground.server(OneFolder(ground.store)) for _ in range(2))
    await one.found()
    return ground, one, two, Keys(ground)


async def each_shows_itself(server: Server, *names: str) -> bool:
    """Whether the metadata that a name shows is that of its own table."""
    found = [await server.catalog.tables.load(NAMESPACE, name) for name in names]
    return [entry.uuid for entry, _ in found] == [base.metadata.table_uuid for _, base in found]


@story
async def test_tables_with_one_metadata_folder_that_change_together_stay_themselves():
    ground, one, two, keys = await ground_with_a_folder()
    for name in ("a", "b"):
        await one.create(name, f"create {name}", properties=HERE)
    await transact(one, keys.next(), *marks("x", "a", "b"))
    await one.settle()
    assert await each_shows_itself(two, "a", "b")
    assert await labels(two, "a", "b") == ["x", "x"]
    await two.commit("b", "after")
    await two.settle()
    assert await each_shows_itself(ground.server(OneFolder(ground.store)), "a", "b")
    assert not (await ground.audit()).gaps


@story
async def test_tables_in_one_place_that_change_together_stay_themselves():
    _, one, two, keys = await ground_with_a_folder()
    for name in ("a", "b"):
        await one.create(name, f"create {name}", location=f"{FOLDER}/tables")
    await transact(one, keys.next(), *marks("x", "a", "b"))
    assert await each_shows_itself(two, "a", "b")


@story
async def test_tables_that_are_created_together_with_one_metadata_folder_stay_themselves():
    ground, one, two, keys = await ground_with_a_folder()
    here = {"action": "set-properties", "updates": HERE}
    await transact(one, keys.next(), created(one, "a", here), created(one, "b", here))
    await one.settle()
    assert await each_shows_itself(two, "a", "b")
    assert not (await ground.audit()).gaps


@story
async def test_a_commit_that_follows_its_name_to_another_table_does_not_take_its_file_along():
    """It was prepared for the table that the name meant before, under the same number and in the same folder."""
    _, one, two, _ = await ground_with_a_folder()
    await one.create("a", "first", properties=HERE)
    await one.load("a")
    await two.rename("a", "old", "rename")
    await two.create("a", "second", properties=HERE)
    await one.commit("a", "K")
    assert await each_shows_itself(two, "a", "old")
    assert await labels(two, "a", "old") == ["K", None]


@story
async def test_what_another_table_left_under_a_name_is_never_adopted():
    _, one, two, keys = await ground_with_a_folder()
    for name in ("a", "b"):
        await one.create(name, f"create {name}", properties=HERE)
    name_of = MetadataFiles.name

    def one_name(self: MetadataFiles, key: RequestKey, number: int, table: str, behind: str = "") -> str:
        return name_of(self, key, number, "any", behind)

    for server in (one, two):
        server.ws.files.name = one_name.__get__(server.ws.files)  # type: ignore[method-assign]
    asked: Any = transact(one, keys.next(), *marks("x", "a", "b"))
    with pytest.raises(CorruptObject, match="has the metadata of"):
        await asked
    assert await labels(two, "a", "b") == [None, None]
    here = {"action": "set-properties", "updates": HERE}
    with pytest.raises(CorruptObject, match="has the metadata of"):
        await transact(one, keys.next(), created(one, "c", here), created(one, "d", here))

"""A name that means another table since: a transaction is judged on the table that it means now, and so is its no (C2, C6)."""

import pytest

from arco.kernel.errors import Conflict
from unit.catalog.ground import POINTER, Server, new_column, story
from unit.txn.test_rules_of_transactions import change, ground_of, labels, marks, transact


async def handed_over(server: Server, rename: str, create: str) -> str:
    """`a` is `old` now, and another table has its name."""
    await server.rename("a", "old", rename)
    return await server.create("a", create)


def of_table(uuid: str) -> dict[str, str]:
    return {"type": "assert-table-uuid", "uuid": uuid}


@story
async def test_a_no_about_the_table_that_a_name_meant_before_is_never_said():
    """Its process remembers the old table when it stages; when it judges, another of its requests has learned of the new one."""
    ground, one, two, keys = await ground_of("a", "b")
    for name in ("a", "b"):
        await one.load(name)
    again = await handed_over(two, "rename", "create")
    one.line.after("get", POINTER, lambda: one.load("b"))
    key, changes = keys.next(), [change("a", "x", of_table(again)), change("b", "x")]
    await transact(one, key, *changes)
    assert one.line.used_up
    assert await labels(two, "a", "b", "old") == ["x", "x", None]
    await transact(ground.server(), key, *changes)


@story
async def test_a_no_that_is_found_while_preparing_again_is_about_the_table_that_the_name_means():
    """The pointer moved on, and on the newer version the requirement fails: but the name means another table by then."""
    _, one, two, keys = await ground_of("a", "b")
    for name in ("a", "b"):
        await one.load(name)

    async def rival() -> None:
        await handed_over(two, "rename", "create")
        await two.commit("old", "more", new_column(1, "c"))

    one.line.before("put", POINTER, rival)
    guard = {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 1}
    await transact(one, keys.next(), change("a", "x", guard), change("b", "x"))
    assert await labels(two, "a", "b", "old") == ["x", "x", None]


@story
async def test_a_no_about_the_table_that_the_name_means_is_said_though_other_names_change():
    _, one, two, keys = await ground_of("a", "b")
    for name in ("a", "b"):
        await one.load(name)
    one.line.after("get", POINTER, lambda: two.rename("b", "other", "rename"))
    with pytest.raises(Conflict, match="UUID does not match"):
        await transact(one, keys.next(), change("a", "x", of_table("0194200a-0000-7000-8000-00000000ffff")))
    await transact(two, keys.next(), *marks("y", "a", "other"))

"""`verify` while transactions are under way: what is not decided is no damage, and what was decided is looked at."""

from typing import Any

import pytest

from arco.catalog.verify import verify
from arco.storage.findings import Report
from arco.storage.port import Always
from unit.catalog.ground import METADATA, Ground, story
from unit.txn.test_creations import undecided
from unit.txn.test_rules_of_transactions import ground_of, marks, transact


async def verified(ground: Ground) -> Report:
    return await verify(ground.server().catalog, deep=True)


async def spoiled(ground: Ground, name: str) -> None:
    found = await ground.store.get(name)
    assert found is not None
    await ground.store.put(name, found.data[:40], Always())


async def new_table() -> tuple[Ground, Any, str]:
    """One whose creation is not decided yet."""
    ground, one, _, keys = await ground_of("a")
    key = keys.next()
    return ground, await undecided(one, key), one.ws.records.key(key)


@story
async def test_what_is_not_decided_is_under_way_and_no_damage():
    ground, _, _ = await new_table()
    report = await verified(ground)
    assert report.findings == []
    assert (report.counts["under_way"], report.counts["iceberg_tables"]) == (2, 1)


@story
async def test_what_was_decided_and_not_finished_is_whole():
    ground, decision, _ = await new_table()
    await decision.land()
    report = await verified(ground)
    assert report.findings == []
    assert (report.counts["under_way"], report.counts["iceberg_tables"]) == (1, 2)
    assert report.counts["receipts_to_be_written"] == 2


@story
async def test_the_missing_file_of_a_table_that_was_decided_is_missed():
    ground, decision, _ = await new_table()
    await decision.land()
    (name,) = [key for key in (await ground.audit()).objects if METADATA in key and "/new-" in key]
    await ground.store.delete(name)
    assert [one.code for one in (await verified(ground)).findings] == ["metadata_missing"]


@pytest.mark.parametrize("is_decided", [False, True], ids=["undecided", "decided"])
def test_a_record_that_cannot_be_read_is_found_by_who_it_keeps_from_being_read(is_decided: bool):
    @story
    async def tell() -> None:
        ground, decision, record = await new_table()
        if is_decided:
            await decision.land()
        await spoiled(ground, record)
        found = (await verified(ground)).findings
        assert [one.code for one in found] == ["transaction_unreadable", "transaction_unreadable"]
        assert {one.subject for one in found} == {record}
        assert all(record in one.what for one in found)
        assert "db.new" in found[0].what
        assert "db.a" in found[1].what
        assert all("pointer" not in one.todo and "record" in one.todo and "restore" in one.todo for one in found)

    tell()


@story
async def test_a_record_of_a_later_version_is_read_by_a_later_arco_and_nothing_is_restored():
    """The pointers are whole: to set one back would set its table back."""
    ground, decision, record = await new_table()
    await decision.land()
    found = await ground.store.get(record)
    assert found is not None
    await ground.store.put(record, found.data.replace(b'"format_version":1', b'"format_version":7'), Always())
    findings = (await verified(ground)).findings
    assert [one.code for one in findings] == ["transaction_unreadable", "transaction_unreadable"]
    for one in findings:
        assert one.subject == record
        assert "pip install --upgrade arco" in one.todo
        assert "restore" not in one.todo


@story
async def test_a_record_that_was_set_back_behind_its_pointer_is_named_and_not_the_pointer():
    ground, one, _, keys = await ground_of("a")
    key = keys.next()
    await undecided(one, key)
    record, pointer = one.ws.records.key(key), one.ws.pointers.key((await ground.server().load("a")).uuid)
    found = await ground.store.get(pointer)
    assert found is not None
    await ground.store.put(pointer, found.data.replace(b'"attempt":1', b'"attempt":2'), Always())
    findings = (await verified(ground)).findings
    assert [one.code for one in findings] == ["transaction_set_back"]
    assert findings[0].subject == record
    assert "newer" in findings[0].todo
    assert "arco verify" not in findings[0].todo


@story
async def test_a_finished_transaction_leaves_nothing_under_way():
    ground, one, _, keys = await ground_of("a", "b")
    await transact(one, keys.next(), *marks("x", "a", "b"))
    await one.settle()
    report = await verified(ground)
    assert report.findings == []
    assert "under_way" not in report.counts

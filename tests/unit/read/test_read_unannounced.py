"""Commits to tables are in fresh answers before anybody folds them: by the fold's rules, and at a bounded cost."""

from pathlib import Path
from typing import Any

import pytest

from arco.fold.tables import COLUMNS, ICEBERG_COMMITS, ICEBERG_TABLES, SCHEMAS
from arco.fold.vocabulary import Table
from arco.read import unannounced
from arco.read.assets import asset
from arco.read.library import Binding
from arco.read.reader import Reader
from arco.read.schemas import current_columns
from stand_ins.lake import SCHEMA
from unit.read.test_read_plain_tables import ORDERS, Ground, run

TOLD_BY_COMMITS = (ICEBERG_TABLES, ICEBERG_COMMITS, SCHEMAS, COLUMNS)
DISCOUNT = {"id": 2, "name": "discount", "type": "long", "required": False}


def appended(number: int) -> tuple[dict[str, Any], ...]:
    snapshot = {
        "snapshot-id": number, "sequence-number": number, "timestamp-ms": 1_735_689_600_000 + number, "manifest-list": "x",
        "schema-id": 0, "summary": {"operation": "append", "added-records": "5", "total-records": str(5 * number)},
    }  # fmt: skip
    return (
        {"action": "add-snapshot", "snapshot": snapshot},
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": number},
    )


def evolved() -> tuple[dict[str, Any], ...]:
    schema = {**SCHEMA, "schema-id": 1, "fields": [*SCHEMA["fields"], DISCOUNT]}
    return {"action": "add-schema", "schema": schema, "last-column-id": 2}, {
        "action": "set-current-schema",
        "schema-id": -1,
    }


async def rows_of(reader: Reader, table: Table) -> list[dict[str, Any]]:
    """Without the orders: an event that is announced later stands elsewhere."""
    rows = await reader.rows(f"SELECT * EXCLUDE (bucket) FROM {await reader.relation(table)} ORDER BY ALL")
    return [{name: value for name, value in row.items() if not name.endswith("_order")} for row in rows]


def test_a_commit_from_outside_is_in_a_fresh_answer_as_the_fold_will_have_it(tmp_path: Path) -> None:
    async def test(ground: Ground) -> None:
        await ground.lake.table(*ORDERS)
        await ground.fold()
        await ground.lake.commit(ORDERS, *appended(1))
        await ground.lake.commit(ORDERS, *evolved())
        reader = await ground.reader(fresh=True)
        page = await asset(reader, "shop.orders", ground.lake.clock.now_ms())
        assert page.table is not None
        assert (page.table.snapshot_id, page.table.total_rows, page.table.external_principal) == (1, 5, "anonymous")
        assert [one.path for one in (await current_columns(reader, "shop.orders")).columns] == ["a", "discount"]
        fresh = [await rows_of(reader, table) for table in TOLD_BY_COMMITS]
        before = [await rows_of(await ground.reader(), table) for table in TOLD_BY_COMMITS]
        assert [len(one) for one in before] == [1, 1, 1, 1], "nobody folded them yet"

        await ground.fold()
        folded = await ground.reader()
        assert [await rows_of(folded, table) for table in TOLD_BY_COMMITS] == fresh
        again = await ground.reader(fresh=True)
        assert [await rows_of(again, table) for table in TOLD_BY_COMMITS] == fresh

    run(test, tmp_path)


def test_to_ask_for_commits_is_not_to_announce_them(tmp_path: Path) -> None:
    async def test(ground: Ground) -> None:
        await ground.lake.table(*ORDERS)
        await ground.lake.settle()
        reader = await ground.reader(fresh=True)
        assert len(await rows_of(reader, ICEBERG_TABLES)) == 1
        assert await ground.lake.keys("/ledger/") == []

    run(test, tmp_path)


def test_what_a_receipt_says_is_read_once_and_old_days_are_not_listed(tmp_path: Path) -> None:
    async def test(ground: Ground) -> None:
        lake = ground.lake
        await lake.table(*ORDERS, commits=3)
        await ground.fold()
        lake.clock.at_ms += 5 * 86_400_000
        await lake.commit(ORDERS, *appended(1))
        await ground.fold()
        await lake.commit(ORDERS, *appended(2))
        read, listed = list[str](), list[str]()
        get, list_page = lake.store.get, lake.store.list_page

        async def get_noted(key: str) -> Any:
            read.append(key)
            return await get(key)

        async def list_noted(prefix: str, after: str = "", *more: Any) -> Any:
            page = await list_page(prefix, after, *more)
            listed.extend(entry.key for entry in page.entries)
            return page

        lake.store.get, lake.store.list_page = get_noted, list_noted  # type: ignore[method-assign]
        for _ in range(2):
            reader = await ground.reader(fresh=True)
            assert len(await rows_of(reader, ICEBERG_COMMITS)) == 6
        assert len([key for key in read if "/events/" in key]) == 1
        days = {key.split("/events/")[1].split("/")[0] for key in listed if "/events/" in key}
        assert len(days) == 1, "the commits of five days ago were folded four days ago"

    run(test, tmp_path)


def test_more_commits_than_are_looked_at_are_said_to_be_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unannounced, "FRESH_RECEIPTS_MAX", 2)

    async def test(ground: Ground) -> None:
        await ground.lake.table(*ORDERS, commits=3)
        await ground.lake.settle()
        opened = await ground.library.open(Binding(fresh=True))
        assert opened.warning == "2 older commits of tables wait for the fold and are not in this answer"
        assert len(await rows_of(opened.reader, ICEBERG_COMMITS)) == 2
        await ground.fold()
        assert (await ground.library.open(Binding(fresh=True))).warning is None

    run(test, tmp_path)

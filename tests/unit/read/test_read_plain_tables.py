"""Tables that no project made: told, folded, listed, found and shown by their names, and gone when they are dropped."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from arco.catalog.hand_lineage import End, HandLineage, Words
from arco.catalog.manifest import Author
from arco.catalog.telling import Teller
from arco.fold.folding import Folding
from arco.fold.heads import Heads
from arco.fold.passes import fold_pass
from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import NotFound
from arco.kernel.ids import EventId
from arco.ledger.appender import Appender
from arco.ledger.catalog_events import ASSET_DEPLOYED, AssetDeployed
from arco.ledger.drafts import Draft
from arco.ledger.payloads import derived_event_id
from arco.read.assets import MADE_HERE, AssetLine, Filter, asset, assets, health, health_list
from arco.read.diff_snapshots import snapshot_diff
from arco.read.graph import Direction
from arco.read.health import Status
from arco.read.library import Binding, Library
from arco.read.lineage import lineage
from arco.read.reader import Reader
from arco.read.schemas import current_columns
from arco.read.search import search
from arco.storage.keys import Domain
from arco.surface.receipts import receipts_of
from fixtures.fold.histories import ulid
from fixtures.state.arrow_work import ArrowWork
from stand_ins.lake import SCOPE, Lake

ORDERS, LINES, RECENT = (("shop",), "orders"), (("shop",), "lines"), (("shop",), "recent")


class Ground:
    """A lake that people work in, somebody who folds it, and somebody who asks."""

    def __init__(self, folder: Path) -> None:
        self.lake = Lake()
        store, clock, entropy = self.lake.store, self.lake.clock, SeededEntropy("reader")
        heads = Heads(store, SCOPE, clock, entropy)
        receipts = receipts_of(self.lake.catalog.parts)
        tell = Teller(store, SCOPE, clock, entropy).tell
        self.folding = Folding(heads, ArrowWork(store, SCOPE), receipts=receipts, tell=tell)
        self.library = Library(heads, cache=folder, receipts=receipts_of(self.lake.catalog.parts))
        self.ledger = Appender(store, SCOPE, clock, entropy, gather_s=0)

    async def fold(self) -> None:
        await self.lake.settle()
        self.lake.clock.at_ms += 1000
        assert not (await fold_pass(self.folding)).failed

    async def reader(self, **binding: Any) -> Reader:
        return (await self.library.open(Binding(**binding))).reader

    async def listed(self, **wanted: Any) -> list[AssetLine]:
        return list((await assets(await self.reader(), Filter(**wanted))).items)

    async def names(self, **wanted: Any) -> list[str]:
        return [one.asset for one in await self.listed(**wanted)]

    async def found(self, query: str, **more: Any) -> list[str]:
        return [one.name for one in (await search(await self.reader(**more), query)).hits]

    async def deploy(self, name: str, asset_id: str, kind: str = "python") -> None:
        deployed = AssetDeployed(
            asset_id=asset_id, asset=name, kind=kind, deployment="d", project="p", code_version="c", fingerprint="f",
            definition={},
        )  # fmt: skip
        event = EventId(derived_event_id(1, name))
        draft = Draft(type=ASSET_DEPLOYED, source="arco/servo", subject=name, id=event, data=deployed.data())
        await self.ledger.append(Domain.CATALOG, [draft])


def run(test: Callable[[Ground], Awaitable[None]], folder: Path) -> None:
    async def go() -> None:
        ground = Ground(folder)
        try:
            await ground.lake.namespace("shop")
            await test(ground)
        finally:
            await ground.ledger.close()
            ground.library.close()

    asyncio.run(go())


def test_a_table_is_listed_by_its_name_until_it_is_dropped(tmp_path: Path) -> None:
    async def test(ground: Ground) -> None:
        lake = ground.lake
        uuid = await lake.table(*ORDERS, commits=1)
        await lake.view(*RECENT)
        await lake.describe(ORDERS, owner="ann", tags=["raw"], description="What was bought")
        await ground.fold()
        (orders, recent) = await ground.listed()
        assert (orders.asset, orders.asset_id, orders.kind, orders.namespace) == ("shop.orders", uuid, "table", "shop")
        assert (orders.owners, orders.tags, orders.description) == (("ann",), ("raw",), "What was bought")
        assert (orders.made_by_project, orders.project, orders.retired) == (False, None, False)
        assert (recent.asset, recent.kind) == ("shop.recent", "view")
        assert await ground.names(tag="raw") == await ground.names(owner="ann") == ["shop.orders"]
        assert await ground.names(project="p") == await ground.names(namespace="sho") == []
        assert await ground.names(kind="view") == ["shop.recent"]

        await lake.rename(ORDERS, LINES)
        await ground.fold()
        assert await ground.names() == ["shop.lines", "shop.recent"]
        await lake.drop(LINES)
        await ground.fold()
        assert await ground.names() == ["shop.recent"]
        gone = (await ground.listed(retired=True))[0]
        assert (gone.asset, gone.retired) == ("shop.lines", True)
        restored = lake.catalog.parts.tier1.names.last_dropped(*LINES)
        assert restored is not None
        await lake.catalog.tables.undrop(restored, *ORDERS, lake.key(), Author())
        await ground.fold()
        assert await ground.names() == ["shop.orders", "shop.recent"]
        # Their health is listed as it is given for one of them; what is measured is what projects made.
        reader, now_ms = await ground.reader(), lake.clock.now_ms()
        listed = (await health_list(reader, now_ms)).health
        assert [one.asset for one in listed] == ["shop.orders", "shop.recent"]
        assert listed == tuple(
            [one for name in await ground.names() for one in (await health(reader, name, now_ms)).health]
        )
        assert (await health_list(reader, now_ms, MADE_HERE)).health == ()

    run(test, tmp_path)


def test_the_page_of_a_table_says_what_its_commits_say(tmp_path: Path) -> None:
    async def test(ground: Ground) -> None:
        uuid = await ground.lake.table(*ORDERS, commits=2)
        await ground.fold()
        reader, now_ms = await ground.reader(), ground.lake.clock.now_ms()
        for asked in ("shop.orders", "orders", uuid):
            page = await asset(reader, asked, now_ms)
            assert (page.asset.asset, page.asset.made_by_project) == ("shop.orders", False)
            assert page.table is not None
            assert page.table.table_uuid == uuid
            assert page.freshness.last_materialized_at == page.table.committed_at is not None
            assert (page.status, page.definition, page.partitioning) == (Status.HEALTHY, {}, [])
        assert [one.path for one in (await current_columns(reader, "shop.orders")).columns] == ["a"]
        with pytest.raises(NotFound) as refused:
            await asset(reader, "shop.ordres", now_ms)
        assert refused.value.hint == "did you mean shop.orders?"

    run(test, tmp_path)


def test_tables_whose_names_have_dots_are_told_apart_as_they_are_written(tmp_path: Path) -> None:
    async def test(ground: Ground) -> None:
        await ground.lake.namespace("shop", "eu")
        dotted, plain = await ground.lake.table(("shop",), "eu.orders"), await ground.lake.table(("shop", "eu"), "orders")
        await ground.lake.namespace("x.y")
        other = await ground.lake.table(("x.y",), 'the "best"')
        await ground.fold()
        reader, now_ms = await ground.reader(), ground.lake.clock.now_ms()

        async def found(asked: str) -> str:
            return (await asset(reader, asked, now_ms)).asset.asset_id

        for _ in range(2):
            assert await found('shop."eu.orders"') == dotted
            assert await found("shop.eu.orders") == await found('"shop".eu.orders') == plain
            assert {await found(one) for one in ('"x.y"."the ""best"""', 'x.y.the "best"')} == {other}
        await ground.lake.drop((("shop", "eu"), "orders"))
        await ground.fold()
        reader = await ground.reader()
        assert await found("shop.eu.orders") == dotted

    run(test, tmp_path)


def test_a_table_is_found_by_the_name_that_it_has_now(tmp_path: Path) -> None:
    async def test(ground: Ground) -> None:
        await ground.lake.table(*ORDERS)
        await ground.fold()
        (hit,) = (await search(await ground.reader(), "ordres")).hits
        assert (hit.name, hit.kind, hit.matched) == ("shop.orders", "table", ("name:orders",))
        await ground.lake.rename(ORDERS, LINES)
        await ground.fold()
        assert await ground.found("orders") == []
        assert await ground.found("lines") == ["shop.lines"]
        await ground.lake.drop(LINES)
        await ground.fold()
        assert await ground.found("lines") == []

    run(test, tmp_path)


def test_a_table_is_found_by_what_people_say_of_it_now_wherever_it_is(tmp_path: Path) -> None:
    async def test(ground: Ground) -> None:
        lake = ground.lake
        await lake.namespace("attic")
        await lake.table(*ORDERS)
        await lake.describe(ORDERS, owner="ann", tags=["bronze"], description="What was bought")
        await ground.fold()
        assert await ground.found("bronze") == await ground.found("bougth") == await ground.found("ann") == ["shop.orders"]
        await lake.describe(ORDERS, tags=["golden"], description="Everything sold, per day")
        assert await ground.found("golden", fresh=True) == ["shop.orders"]
        await ground.fold()
        assert await ground.found("golden") == await ground.found("sold") == await ground.found("ann") == ["shop.orders"]
        assert await ground.found("bronze") == await ground.found("bought") == []

        await lake.rename(ORDERS, (("attic",), "orders"))
        await ground.fold()
        (hit,) = (await search(await ground.reader(), "golden", namespace="attic")).hits
        assert (hit.name, hit.namespace, hit.matched) == ("attic.orders", "attic", ("tag:golden",))
        assert (await search(await ground.reader(), "golden", namespace="shop")).hits == ()
        assert await ground.found("golden") == ["attic.orders"]
        await lake.describe((("attic",), "orders"), tags=[], owner=None)
        await ground.fold()
        assert await ground.found("golden") == await ground.found("ann") == []

    run(test, tmp_path)


def test_a_table_is_found_by_the_columns_that_it_has_now(tmp_path: Path) -> None:
    async def test(ground: Ground) -> None:
        lake = ground.lake
        await lake.namespace("attic")
        await lake.table(*ORDERS)
        await lake.table(*LINES)
        for name in ("shipped", "delivered"):
            fields = [{"id": 1, "name": "a", "type": "long", "required": False}]
            fields.append({"id": 2, "name": name, "type": "long", "required": False})
            schema = {"type": "struct", "fields": fields}
            await lake.commit(
                ORDERS,
                {"action": "add-schema", "schema": schema, "last-column-id": 2},
                {"action": "set-current-schema", "schema-id": -1},
            )
            await ground.fold()
            assert await ground.found(name) == ["shop.orders"]
        assert await ground.found("shipped") == [], "it was renamed since"
        (hit,) = (await search(await ground.reader(), "deliverd", namespace="shop")).hits
        assert (hit.name, hit.kind, hit.matched) == ("shop.orders", "table", ("column:delivered",))
        await lake.rename(ORDERS, (("attic",), "orders"))
        await ground.fold()
        assert await ground.found("delivered") == ["attic.orders"]
        assert (await search(await ground.reader(), "delivered", namespace="shop")).hits == ()

    run(test, tmp_path)


def test_a_table_of_a_project_is_not_listed_twice(tmp_path: Path) -> None:
    """By its identity, and where an asset that others write is called so."""

    async def test(ground: Ground) -> None:
        lake = ground.lake
        await lake.table(*ORDERS)
        await lake.table(*LINES)
        await ground.deploy("other.name", (await lake.inventory.find(ORDERS)).asset_id)
        await ground.deploy("shop.lines", ulid(77), kind="source")
        await ground.fold()
        assert [(one.asset, one.made_by_project) for one in await ground.listed()] == [
            ("other.name", True),
            ("shop.lines", True),
        ]
        assert await ground.found("lines") == ["shop.lines"]
        assert await ground.found("orders") == []

    run(test, tmp_path)


def test_the_name_of_a_dropped_table_is_the_next_ones(tmp_path: Path) -> None:
    async def test(ground: Ground) -> None:
        lake = ground.lake
        first = await lake.table(*ORDERS)
        await lake.drop(ORDERS)
        second = await lake.table(*ORDERS)
        await ground.fold()
        assert [one.asset_id for one in await ground.listed()] == [second]
        assert {one.asset_id for one in await ground.listed(retired=True)} == {first, second}
        page = await asset(await ground.reader(), "shop.orders", lake.clock.now_ms())
        assert page.asset.asset_id == second

    run(test, tmp_path)


def test_what_nobody_told_yet_is_in_fresh_answers(tmp_path: Path) -> None:
    async def test(ground: Ground) -> None:
        await ground.fold()
        await ground.lake.table(*ORDERS)
        assert await ground.names() == []
        fresh = await ground.reader(fresh=True)
        assert [one.asset for one in (await assets(fresh)).items] == ["shop.orders"]
        assert await ground.found("orders", fresh=True) == ["shop.orders"]
        ledger = await ground.lake.keys("/ledger/")
        assert ledger == [], "to ask is not to tell"

    run(test, tmp_path)


def test_lineage_by_hand_is_found_by_the_name_of_the_table(tmp_path: Path) -> None:
    async def test(ground: Ground) -> None:
        lake = ground.lake
        uuids = [await lake.table(*ORDERS), await lake.table(*LINES)]
        said = HandLineage(lake.catalog, ground.ledger)
        await said.record(End(LINES), End(ORDERS), (), Words("ann"), lake.key())
        await ground.fold()
        found = await lineage(await ground.reader(), "shop.orders", Direction.UPSTREAM)
        assert [(one.id, one.name, one.kind) for one in found.nodes] == [
            (uuids[0], "shop.orders", "table"),
            (uuids[1], "shop.lines", "table"),
        ]

    run(test, tmp_path)


def test_two_snapshots_say_which_names_came_and_went(tmp_path: Path) -> None:
    async def test(ground: Ground) -> None:
        await ground.lake.table(*ORDERS)
        await ground.fold()
        before = await ground.reader()
        await ground.lake.table(*LINES)
        await ground.lake.drop(ORDERS)
        await ground.fold()
        found = await snapshot_diff(before, await ground.reader())
        (names,) = (one for one in found.tables if one.table == "tables")
        assert (names.added, names.changed, names.removed) == (1, 1, 0)
        assert {(one.after or {})["table"]: (one.after or {})["dropped"] for one in names.rows} == {
            "shop.lines": False,
            "shop.orders": True,
        }

    run(test, tmp_path)

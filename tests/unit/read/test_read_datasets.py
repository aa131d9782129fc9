"""Lineage that other systems send meets the catalog: their names for a table find it, and names that are not ours do not."""

from pathlib import Path
from typing import Any

import pytest

from arco.catalog.hand_lineage import End, HandLineage, Words
from arco.ledger.openlineage import openlineage_drafts
from arco.read.graph import Direction
from arco.read.impact import impact
from arco.read.lineage import Extras, lineage
from arco.read.reader import Reader
from arco.storage.keys import Domain
from fixtures.fold.histories import ulid
from unit.read.test_read_plain_tables import LINES, ORDERS, Ground, run

RUN = "0199d2f1-5f99-7000-8000-000000000001"
POSTGRES = {"namespace": "postgres://db:5432", "name": "shop.public.orders"}
REPORT = {"namespace": "looker://bi", "name": "sales"}


def dataset(namespace: str, name: str, *symlinks: tuple[str, str]) -> dict[str, Any]:
    links = [{"namespace": one, "name": other, "type": "TABLE"} for one, other in symlinks]
    return {"namespace": namespace, "name": name, "facets": {"symlinks": {"identifiers": links}} if links else {}}


async def send(ground: Ground, inputs: list[dict[str, Any]], outputs: list[dict[str, Any]], run: str = RUN) -> None:
    event = {
        "eventTime": "2025-10-11T09:08:07.065Z", "eventType": "COMPLETE", "producer": "https://example.com",
        "run": {"runId": run}, "job": {"namespace": "airflow", "name": "load"}, "inputs": inputs, "outputs": outputs,
    }  # fmt: skip
    drafts = [draft for draft in openlineage_drafts(event) if draft.type.domain == Domain.LINEAGE]
    await ground.ledger.append(Domain.LINEAGE, drafts)


async def beyond(reader: Reader, asked: str, direction: Direction) -> list[tuple[str, str]]:
    found = await lineage(reader, asked, direction, depth=3)
    return [(one.name, one.kind) for one in found.nodes if one.depth]


def test_a_run_of_another_system_is_in_the_lineage_of_the_tables_it_read_and_wrote(tmp_path: Path) -> None:
    async def test(ground: Ground) -> None:
        uuids = [await ground.lake.table(*ORDERS), await ground.lake.table(*LINES)]
        await send(ground, [POSTGRES], [dataset("arco", "shop.orders")])
        await send(ground, [dataset("arco", "shop.orders")], [dataset("arco", "shop.lines"), REPORT])
        for reader in (await ground.reader(fresh=True), await _folded(ground)):
            assert await beyond(reader, "shop.lines", Direction.UPSTREAM) == [
                ("shop.orders", "table"),
                ("shop.public.orders", "external"),
            ]
            assert await beyond(reader, "shop.orders", Direction.DOWNSTREAM) == [
                ("sales", "external"),
                ("shop.lines", "table"),
            ]
            found = await lineage(reader, "shop.lines", Direction.UPSTREAM, extras=Extras(executions=True))
            (edge,) = found.edges
            assert (edge.source_id, edge.source_kind, edge.target_id) == (uuids[0], "table", uuids[1])
            assert (edge.recorded_by, edge.last_run_id, found.executions) == ("openlineage", RUN, {edge.edge_id: 1})
            assert [one.asset for one in (await impact(reader, "shop.orders")).affected] == ["sales", "shop.lines"]

    run(test, tmp_path)


async def _folded(ground: Ground) -> Reader:
    await ground.fold()
    return await ground.reader()


@pytest.mark.parametrize(
    ("namespace", "name", "symlinks"),
    [
        ("arco", "shop.orders", ()),
        ("arco", "arco.shop.orders", ()),
        ("shop", "orders", ()),
        ("trino://host:8080", "arco.shop.orders", ()),
        ("{bucket}", "{path}", ()),
        ("{bucket}", "/{path}/", ()),
        ("s3://elsewhere", "orders", (("arco", "shop.orders"),)),
        ("hive://host:9083", "sales.orders", (("{bucket}", "{path}"),)),
    ],
)
def test_a_dataset_is_the_table_that_its_names_say(
    tmp_path: Path, namespace: str, name: str, symlinks: tuple[tuple[str, str], ...]
) -> None:
    async def test(ground: Ground) -> None:
        await ground.lake.table(*ORDERS)
        scheme, _, rest = (await ground.lake.inventory.find(ORDERS)).location.partition("://")
        bucket, _, path = rest.partition("/")
        place = {"bucket": f"{scheme}://{bucket}", "path": path}
        links = [(one.format(**place), other.format(**place)) for one, other in symlinks]
        await send(ground, [POSTGRES], [dataset(namespace.format(**place), name.format(**place), *links)])
        reader = await _folded(ground)
        assert await beyond(reader, "shop.orders", Direction.UPSTREAM) == [("shop.public.orders", "external")]

    run(test, tmp_path)


@pytest.mark.parametrize(
    ("namespace", "name", "symlinks"),
    [
        ("hive://host:9083", "shop.orders", ()),
        ("postgres://db:5432", "shop.orders", ()),
        ("s3://elsewhere", "shop/orders", (("hive://host:9083", "shop.orders"),)),
        ("arco", "orders", ()),
    ],
)
def test_another_systems_table_of_the_same_name_is_not_ours(
    tmp_path: Path, namespace: str, name: str, symlinks: tuple[tuple[str, str], ...]
) -> None:
    async def test(ground: Ground) -> None:
        await ground.lake.table(*ORDERS)
        await send(ground, [POSTGRES], [dataset(namespace, name, *symlinks)])
        assert await beyond(await _folded(ground), "shop.orders", Direction.UPSTREAM) == []

    run(test, tmp_path)


def test_what_a_person_calls_external_stays_outside(tmp_path: Path) -> None:
    async def test(ground: Ground) -> None:
        lake = ground.lake
        await lake.table(*ORDERS)
        await lake.table(*LINES)
        said = HandLineage(lake.catalog, ground.ledger)
        await said.record(End(LINES), End(external="shop.orders"), (), Words("ann"), lake.key())
        reader = await _folded(ground)
        assert await beyond(reader, "shop.orders", Direction.UPSTREAM) == []
        assert await beyond(reader, "shop.lines", Direction.DOWNSTREAM) == [("shop.orders", "external")]

    run(test, tmp_path)


def test_a_dataset_of_a_projects_table_is_the_asset_under_whatever_name_it_has_now(tmp_path: Path) -> None:
    async def test(ground: Ground) -> None:
        lake = ground.lake
        await lake.table(*ORDERS)
        entry = await lake.inventory.find(ORDERS)
        scheme, _, rest = entry.location.partition("://")
        bucket, _, path = rest.partition("/")
        await ground.deploy("other.name", entry.asset_id)
        await ground.deploy("shop.lines", ulid(77), kind="source")
        await send(ground, [dataset("arco", "shop.lines")], [dataset(f"{scheme}://{bucket}", path)])
        reader = await _folded(ground)
        assert await beyond(reader, "other.name", Direction.UPSTREAM) == [("shop.lines", "asset")]
        (edge,) = (await lineage(reader, "other.name", Direction.UPSTREAM)).edges
        assert (edge.source, edge.source_called) == ("shop.lines", None)
        assert (edge.target, edge.target_called) == ("other.name", path), (
            "by the name of the node, and by the one it was told by"
        )
        # A name means what it means now: once there is a table of that name, an edge that named it is about it.
        await send(ground, [POSTGRES], [dataset("arco", "shop.late")], run=RUN[:-1] + "2")
        await ground.fold()
        await lake.table(("shop",), "late")
        reader = await _folded(ground)
        assert await beyond(reader, "shop.late", Direction.UPSTREAM) == [("shop.public.orders", "external")]

    run(test, tmp_path)

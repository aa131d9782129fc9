"""Deployments: identities that survive, what may not change without saying so, and going back."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest

from arco import asset, daily, source, static, weekly
from arco.kernel.clock import Clock
from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import Conflict, CorruptObject, InvalidInput, NotFound, Superseded, UnknownFormat
from arco.kernel.ids import ColumnId
from arco.kernel.scope import Scope
from arco.quality.schemas import Schema
from arco.servo.deploy.columns import TableColumns, column_id, column_ids
from arco.servo.deploy.deploying import Deployments, deployed
from arco.servo.deploy.manifest import Deployment, decode_deployment
from arco.servo.sdk.authoring import Asset
from arco.servo.sdk.project import Project, assembled
from arco.storage.memory import MemoryStore
from arco.storage.paging import walk
from arco.storage.port import Object
from stand_ins.hand_clock import HandClock
from stand_ins.shared_store import Line

T = TypeVar("T")
Assets = dict[str, dict[str, Any]]


def project(assets: Assets, name: str = "shop") -> Project:
    """A project of these assets and their options."""

    def made(called: str, given: dict[str, Any]) -> Asset[Any, Any]:
        def function() -> object: ...

        return asset(name=called, **given)(function)

    written = [made(called, given).written for called, given in assets.items()]
    return assembled(written, folder=Path(), name=name, namespace="shop")


class Desk:
    """Somebody who deploys, on a store of their own."""

    def __init__(self) -> None:
        self.clock = HandClock()
        self.store = MemoryStore(self.clock)
        clock: Clock = self.clock
        self.deployments = Deployments(self.store, Scope.of(), clock, SeededEntropy("deploy"))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        self.clock.at_ms += 1000
        return asyncio.run(work)

    def deploy(self, assets: Assets, **how: Any) -> Deployment:
        return self.run(self.deployments.deploy(project(assets), by="ann", **how))[0]

    def objects(self) -> dict[str, bytes]:
        async def all_of_them() -> dict[str, bytes]:
            keys = [one.key async for one in walk(self.store, "")]
            return {key: (await self.store.get(key)).data for key in keys}  # type: ignore[union-attr]

        return asyncio.run(all_of_them())


@pytest.fixture
def desk() -> Desk:
    return Desk()


def ids(found: Deployment) -> dict[str, str]:
    return {name: one.asset_id for name, one in found.assets.items()}


def columns(found: Deployment, name: str = "shop.a") -> dict[str, str]:
    schema = found.assets[name].schema
    assert schema is not None
    return {".".join(one.path): one.column_id for one in schema.columns}


# Identities of assets


def test_an_asset_keeps_its_identity(desk: Desk) -> None:
    first = desk.deploy({"a": {}, "b": {}})
    second = desk.deploy({"a": {"tags": "new"}, "b": {}, "c": {}})
    assert ids(second).items() >= ids(first).items()
    assert len(set(ids(second).values())) == 3
    assert second.previous == first.id


def test_what_says_the_same_is_no_new_deployment(desk: Desk) -> None:
    given: Assets = {"a": {"schema": {"id": "long"}}}
    first = desk.deploy(given)
    before = desk.objects()
    assert desk.deploy(given) == first
    assert desk.objects() == before


def test_a_declared_rename_is_the_same_asset(desk: Desk) -> None:
    first = desk.deploy({"a": {}})
    second, changed = desk.run(desk.deployments.deploy(project({"b": {"renamed_from": "a"}}), by="ann"))
    assert ids(second)["shop.b"] == ids(first)["shop.a"]
    assert second.assets["shop.b"].former_keys == ("shop.a",)
    assert changed.renamed == (("shop.a", "shop.b"),)
    third = desk.deploy({"b": {"renamed_from": "a"}, "a": {}} | {"b": {}})
    assert ids(third)["shop.b"] == ids(first)["shop.a"] != ids(third)["shop.a"]
    assert third.assets["shop.b"].former_keys == ("shop.a",)


def test_two_assets_are_never_one(desk: Desk) -> None:
    desk.deploy({"a": {}})
    with pytest.raises(InvalidInput, match=r"shop\.c says it was shop\.a, and so does shop\.b"):
        desk.deploy({"b": {"renamed_from": "a"}, "c": {"renamed_from": "a"}})
    with pytest.raises(InvalidInput, match=r"shop\.b says it was shop\.a, which still is an asset"):
        desk.deploy({"a": {}, "b": {"renamed_from": "a"}})


def test_what_is_retired_comes_back_as_itself(desk: Desk) -> None:
    first = desk.deploy({"a": {"schema": {"id": "long"}}, "b": {}})
    second, changed = desk.run(desk.deployments.deploy(project({"b": {}}), by="ann"))
    assert changed.retired == ("shop.a",)
    assert set(second.retired) == {"shop.a"}
    third = desk.deploy({"a": {"schema": {"id": "long"}}, "b": {}})
    assert ids(third) == ids(first)
    assert columns(third) == columns(first)
    assert third.retired == {}


# Rollback


def test_rollback_and_forward_again(desk: Desk) -> None:
    first, second = desk.deploy({"a": {}}), desk.deploy({"a": {}, "b": {}})
    assert desk.run(desk.deployments.rollback("shop", by="ann")).id == first.id
    assert desk.run(desk.deployments.current("shop")) == first
    assert desk.run(desk.deployments.history("shop")) == (first.id, second.id)
    assert desk.run(desk.deployments.rollback("shop", second.id, by="ann")).id == second.id


def test_going_back_twice_goes_back_twice(desk: Desk) -> None:
    first, second, _ = desk.deploy({"a": {}}), desk.deploy({"a": {}, "b": {}}), desk.deploy({"b": {}})
    assert desk.run(desk.deployments.rollback("shop", by="ann")).id == second.id
    assert desk.run(desk.deployments.rollback("shop", by="ann")).id == first.id
    with pytest.raises(InvalidInput, match="no deployment before this one"):
        desk.run(desk.deployments.rollback("shop", by="ann"))
    desk.deploy({"c": {}})
    assert desk.run(desk.deployments.rollback("shop", by="ann")).id == first.id


def test_identities_made_after_a_rollback_are_those_from_before_it(desk: Desk) -> None:
    desk.deploy({"a": {"schema": {"id": "long"}}})
    second = desk.deploy({"a": {"schema": {"id": "long", "note": "string"}}, "b": {}})
    desk.run(desk.deployments.rollback("shop", by="ann"))
    third = desk.deploy({"a": {"schema": {"id": "long", "note": "string"}, "tags": "mended"}, "b": {}})
    assert ids(third) == ids(second)
    assert columns(third) == columns(second)


def test_the_code_of_a_deployment_that_counts_again_is_no_news(desk: Desk) -> None:
    first = desk.deploy({"a": {"schema": {"id": "long"}}})
    desk.deploy({"a": {"schema": {"id": "long", "note": "string"}}, "b": {}})
    desk.run(desk.deployments.rollback("shop", by="ann"))
    stored = desk.objects()
    assert desk.deploy({"a": {"schema": {"id": "long"}}}) == first
    assert desk.objects() == stored


def test_names_swapped_around_a_rollback_stay_two_assets(desk: Desk) -> None:
    first = desk.deploy({"a": {}})
    desk.deploy({"b": {"renamed_from": "a"}})
    desk.run(desk.deployments.rollback("shop", by="ann"))
    third = desk.deploy({"a": {}, "b": {}})
    assert ids(third)["shop.a"] == ids(first)["shop.a"]
    assert len(set(ids(third).values())) == 2


def test_there_is_nothing_to_go_back_to(desk: Desk) -> None:
    with pytest.raises(NotFound, match="never deployed"):
        desk.run(desk.deployments.rollback("shop", by="ann"))
    desk.deploy({"a": {}})
    with pytest.raises(InvalidInput, match="no deployment before this one"):
        desk.run(desk.deployments.rollback("shop", by="ann"))
    with pytest.raises(NotFound, match="there is no deployment 01JD7Z0Q3V8K4M2N6P9R5T1WXY"):
        desk.run(desk.deployments.rollback("shop", "01JD7Z0Q3V8K4M2N6P9R5T1WXY", by="ann"))
    other = desk.run(desk.deployments.deploy(project({"x": {}}, "other"), by="ann"))[0]
    with pytest.raises(InvalidInput, match="is of project other"):
        desk.run(desk.deployments.rollback("shop", other.id, by="ann"))


def overtaken(desk: Desk, mine: Project, theirs: Project) -> tuple[Deployment, Deployment]:
    """Somebody deploys, and just before that counts, somebody else does."""
    line, other = Line(desk.store), Deployments(desk.store, Scope.of(), desk.clock, SeededEntropy("other"))
    slow = Deployments(line, Scope.of(), desk.clock, SeededEntropy("slow"))
    quicker: list[Deployment] = []

    async def overtakes() -> None:
        quicker.append((await other.deploy(theirs, by="bob"))[0])

    line.before("put", "head", overtakes)
    mine_counts, _ = desk.run(slow.deploy(mine, by="ann"))
    return mine_counts, quicker[0]


@pytest.mark.parametrize("deployed_before", [True, False])
def test_two_who_deploy_the_same_at_once_have_one_deployment(desk: Desk, deployed_before: bool) -> None:
    """A scheduler that starts and somebody who says `arco run`, both from the project as it is now."""
    if deployed_before:
        desk.deploy({"b": {}})
    same = project({"a": {"schema": LONG}})
    mine, theirs = overtaken(desk, same, same)
    assert mine == theirs == desk.run(desk.deployments.current("shop"))
    assert len(desk.run(desk.deployments.history("shop"))) == 1 + deployed_before


def test_who_is_overtaken_by_another_deployment_is_told(desk: Desk) -> None:
    with pytest.raises(Conflict, match="somebody else deployed"):
        overtaken(desk, project({"a": {}}), project({"b": {}}))
    counts = desk.run(desk.deployments.current("shop"))
    assert counts is not None
    assert list(counts.assets) == ["shop.b"]


def test_code_that_was_superseded_counts_again_only_on_purpose(desk: Desk) -> None:
    old, new = {"a": {"schema": LONG}}, {"a": {"schema": {**LONG, "note": "string"}}, "b": {}}
    first, second = desk.deploy(old), desk.deploy(new)
    with pytest.raises(Superseded, match=f"deployment {second.id} of shop counts, .* deployed as {first.id} before"):
        desk.deploy(old, goes_back=False)
    assert desk.run(desk.deployments.current("shop")) == second
    third = desk.deploy(old, allow_breaking=True)
    with pytest.raises(Superseded, match=f"deployment {third.id} of shop counts"):
        desk.deploy(new, goes_back=False)
    assert desk.deploy(old, goes_back=False) == third
    newer = desk.deploy({"a": {"schema": LONG, "tags": "newer"}}, goes_back=False)
    assert desk.run(desk.deployments.current("shop")) == newer


def test_nobody_undoes_a_rollback_by_starting(desk: Desk) -> None:
    first, second = desk.deploy({"a": {}}), desk.deploy({"a": {}, "b": {}})
    desk.run(desk.deployments.rollback("shop", by="ann"))
    with pytest.raises(Superseded, match=f"deployed as {second.id} before"):
        desk.deploy({"a": {}, "b": {}}, goes_back=False)
    assert desk.deploy({"a": {}}, goes_back=False) == first


def test_code_from_before_a_rename_is_known_though_its_identities_would_be_others(desk: Desk) -> None:
    desk.deploy({"a": {}})
    desk.deploy({"b": {"renamed_from": "a"}})
    with pytest.raises(Superseded):
        desk.deploy({"a": {}}, goes_back=False)


def test_only_code_that_is_news_is_looked_for_among_earlier_deployments(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(40):
        desk.deploy({"a": {"tags": f"t{number}"}})
    read: list[str] = []
    get = desk.store.get

    async def noted(key: str) -> Object | None:
        read.append(key)
        return await get(key)

    monkeypatch.setattr(desk.store, "get", noted)
    desk.deploy({"a": {"tags": "t39"}}, goes_back=False)
    assert len(read) == 2, "the head, and what counts"
    with pytest.raises(Superseded):
        desk.deploy({"a": {"tags": "t0"}}, goes_back=False)
    assert len(read) > 40
    read.clear()
    desk.deploy({"a": {"tags": "t0"}})
    assert len(read) < 10, "who goes back on purpose does not look"


# Schemas


LONG = {"id": "long not null", "amount": "int"}


def test_columns_keep_their_ids_by_name(desk: Desk) -> None:
    first = desk.deploy({"a": {"schema": LONG}})
    second = desk.deploy({"a": {"schema": {"note": "string", "amount": "long", "id": "long not null"}}})
    assert columns(second).items() >= columns(first).items()
    assert len(set(columns(second).values())) == 3
    verdict = second.verdicts["shop.a"]
    assert verdict.compatibility == "backward"
    assert verdict.changes == (
        "add an optional column: note",
        "widen a type: amount (int → long)",
        "reorder columns: the table",
    )
    assert (verdict.refused, verdict.in_place) == ((), True)


def test_a_dropped_column_does_not_come_back(desk: Desk) -> None:
    first = desk.deploy({"a": {"schema": LONG}})
    second = desk.deploy({"a": {"schema": {"id": "long not null"}}})
    third = desk.deploy({"a": {"schema": LONG}})
    schema = third.assets["shop.a"].schema
    assert schema is not None
    assert columns(third)["amount"] != columns(first)["amount"]
    assert [one.column_id for one in schema.dropped] == [columns(first)["amount"]]
    assert second.verdicts["shop.a"].changes == ("drop a column: amount",)


def field(number: int | None, name: str, kind: Any = "long", **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **({} if number is None else {"id": number}), **more}


def struct(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


def test_written_ids_make_a_rename(desk: Desk) -> None:
    inside = struct(field(None, "street", "string"))
    first = desk.deploy({"a": {"schema": struct(field(1, "id"), field(2, "place", inside))}})
    second = desk.deploy({"a": {"schema": struct(field(1, "order_id"), field(2, "address", inside))}})
    assert columns(second)["order_id"] == columns(first)["id"]
    assert columns(second)["address.street"] == columns(first)["place.street"]
    assert second.verdicts["shop.a"].changes == (
        "rename a column: order_id (id → order_id)",
        "rename a column: address (place → address)",
    )


def test_a_written_id_of_a_dropped_column_is_refused(desk: Desk) -> None:
    desk.deploy({"a": {"schema": struct(field(1, "id"), field(2, "old"))}})
    desk.deploy({"a": {"schema": struct(field(1, "id"))}})
    with pytest.raises(InvalidInput, match=r"'new' has id 2, which the dropped column 'old' had"):
        desk.deploy({"a": {"schema": struct(field(1, "id"), field(2, "new"))}})


def test_another_written_id_is_another_column(desk: Desk) -> None:
    first = desk.deploy({"a": {"schema": struct(field(1, "id"), field(2, "amount"))}})
    second = desk.deploy({"a": {"schema": struct(field(1, "id"), field(3, "amount"))}})
    assert columns(second)["amount"] != columns(first)["amount"]
    third = desk.deploy({"a": {"schema": {"id": "long", "amount": "long"}}})
    assert columns(third) == columns(second)
    fourth = desk.deploy({"a": {"schema": struct(field(1, "id"), field(3, "total"))}})
    assert columns(fourth)["total"] == columns(second)["amount"]


def test_ids_may_be_written_later(desk: Desk) -> None:
    first = desk.deploy({"a": {"schema": {"id": "long", "amount": "long"}}})
    second = desk.deploy({"a": {"schema": struct(field(1, "id"), field(2, "amount"))}})
    assert columns(second) == columns(first)
    assert second.verdicts == {}


# Columns of tables


def table(uuid: str, *names: str, first: int = 1) -> dict[str, TableColumns]:
    """The table of `a`, with fields numbered from the first on."""
    return {"shop.a": TableColumns(uuid, {(name,): number for number, name in enumerate(names, first)})}


def tie(found: Deployment) -> dict[str, tuple[str | None, int | None]]:
    schema = found.assets["shop.a"].schema
    assert schema is not None
    return {".".join(one.path): (one.table_uuid, one.field_id) for one in schema.columns}


def test_a_column_is_known_by_its_field_once_there_is_a_table(desk: Desk) -> None:
    first = desk.deploy({"a": {"schema": LONG}})
    assert set(tie(first).values()) == {(None, None)}
    second = desk.deploy({"a": {"schema": LONG, "tags": "new"}}, tables=table("t1", "id", "amount"))
    assert tie(second) == {"id": ("t1", 1), "amount": ("t1", 2)}
    own = ids(second)["shop.a"]
    assert columns(second) == {"id": str(column_id(own, "t1", 1)), "amount": str(column_id(own, "t1", 2))}
    assert second.verdicts == {}
    assert second.assets["shop.a"].schema.dropped == ()


def test_a_table_that_is_there_by_now_is_no_new_deployment(desk: Desk) -> None:
    first = desk.deploy({"a": {"schema": LONG}})
    assert desk.deploy({"a": {"schema": LONG}}, tables=table("t1", "id", "amount")) == first


def test_a_column_that_was_renamed_in_its_table_keeps_its_id(desk: Desk) -> None:
    first = desk.deploy({"a": {"schema": LONG}}, tables=table("t1", "id", "amount"))
    second = desk.deploy({"a": {"schema": LONG, "tags": "new"}}, tables=table("t1", "id", "total"))
    assert columns(second) == columns(first)
    renamed = TableColumns("t1", {("id",): 1, ("total",): 2})
    assert column_ids(ids(first)["shop.a"], renamed)[("total",)] == ColumnId(columns(first)["amount"])


def test_a_column_that_is_renamed_by_its_written_id_keeps_its_field(desk: Desk) -> None:
    tables = table("t1", "id", "amount")
    first = desk.deploy({"a": {"schema": struct(field(1, "id"), field(2, "amount"))}}, tables=tables)
    second = desk.deploy({"a": {"schema": struct(field(1, "id"), field(2, "total"))}}, tables=tables)
    assert columns(second)["total"] == columns(first)["amount"]
    assert tie(second)["total"] == ("t1", 2)
    assert second.verdicts["shop.a"].changes == ("rename a column: total (amount → total)",)


def test_a_table_that_was_made_anew_has_other_columns_of_the_same_asset(desk: Desk) -> None:
    first = desk.deploy({"a": {"schema": LONG}}, tables=table("t1", "id", "amount"))
    second = desk.deploy({"a": {"schema": LONG, "tags": "new"}}, tables=table("t2", "id", "amount"))
    assert ids(second) == ids(first)
    assert not set(columns(second).values()) & set(columns(first).values())
    assert tie(second) == {"id": ("t2", 1), "amount": ("t2", 2)}
    assert second.verdicts == {}


def test_a_column_comes_back_if_its_field_is_still_there_and_not_otherwise(desk: Desk) -> None:
    tables = table("t1", "id", "amount")
    first = desk.deploy({"a": {"schema": LONG}}, tables=tables)
    second = desk.deploy({"a": {"schema": {"id": "long not null"}}}, tables=tables)
    assert [one.column_id for one in second.assets["shop.a"].schema.dropped] == [columns(first)["amount"]]
    third = desk.deploy({"a": {"schema": LONG}}, tables=tables)
    assert columns(third) == columns(first)
    assert third.assets["shop.a"].schema.dropped == ()
    desk.deploy({"a": {"schema": {"id": "long not null"}}}, tables=table("t1", "id"))
    fourth = desk.deploy({"a": {"schema": LONG}}, tables={"shop.a": TableColumns("t1", {("id",): 1, ("amount",): 3})})
    assert columns(fourth)["amount"] != columns(first)["amount"]


def test_two_columns_are_never_one_field(desk: Desk) -> None:
    desk.deploy({"a": {"schema": LONG}}, tables=table("t1", "id", "amount"))
    found = desk.deploy({"a": {"schema": {**LONG, "total": "int"}}}, tables=table("t1", "id", "total"))
    assert tie(found)["total"] == ("t1", 2)
    assert len(set(columns(found).values())) == 3


def test_fields_at_every_depth_have_an_identity() -> None:
    inside = struct(field(3, "street", "string"))
    place = field(2, "places", {"type": "list", "element-id": 4, "element": inside, "element-required": False})
    found = Schema.of(struct(field(1, "id"), place))
    fields = TableColumns("t1", {one.path: one.id for one in found.columns if isinstance(one.id, int)})
    made = column_ids("01JD7Z0Q3V8K4M2N6P9R5T1WXY", fields)
    assert set(made) == {("id",), ("places",), ("places", "element"), ("places", "element", "street")}
    assert len(set(made.values())) == 4
    assert made == column_ids("01JD7Z0Q3V8K4M2N6P9R5T1WXY", fields)
    assert made != column_ids("01JD7Z0Q3V8K4M2N6P9R5T1WXZ", fields)


def test_keys_of_maps_are_known_as_such(desk: Desk) -> None:
    def keyed(*fields: dict[str, Any]) -> dict[str, Any]:
        return struct(field(None, "m", {"type": "map", "key": struct(*fields), "value": "long"}))

    desk.deploy({"a": {"schema": keyed(field(None, "x"))}})
    with pytest.raises(InvalidInput, match=r"change a type in any other way: m\.key\.y"):
        desk.deploy({"a": {"schema": keyed(field(None, "x"), field(None, "y"))}})


@pytest.mark.parametrize(
    ("mode", "after", "refused"),
    [
        ("backward", {"id": "long not null", "amount": "string"}, r"amount \(int → string\): rows written before cannot"),
        ("backward", {**LONG, "new": "long not null"}, "add a required column without a default: new"),
        ("forward", {"id": "long not null"}, "drop a column: amount: readers of the old schema still ask for it"),
        ("full", {"id": "long not null"}, "drop a column: amount"),
        ("none", {"id": "string"}, None),
        ("backward", {"id": "long not null"}, None),
        ("forward", {**LONG, "new": "long not null"}, None),
    ],
)
def test_breaking_changes_are_refused_with_the_way_out(desk: Desk, mode: str, after: Any, refused: str | None) -> None:
    first = desk.deploy({"a": {"schema": LONG, "compatibility": mode}})
    changed: Assets = {"a": {"schema": after, "compatibility": mode}}
    if refused is None:
        assert desk.deploy(changed).breaking == ()
        return
    stored = desk.objects()
    with pytest.raises(InvalidInput, match=rf"shop\.a is {mode} compatible: .*{refused}") as raised:
        desk.deploy(changed)
    assert "--allow-breaking" in str(raised.value.hint)
    assert desk.objects() == stored
    forced = desk.deploy(changed, allow_breaking=True)
    assert len(forced.breaking) == len(forced.verdicts["shop.a"].refused) == 1
    assert forced.previous == first.id


def test_a_date_widens_in_format_version_3_only(desk: Desk) -> None:
    for version, allowed in (("2", False), ("3", True)):
        desk = Desk()
        given = {"properties": {"format-version": version}}
        desk.deploy({"a": {"schema": {"at": "date"}, **given}})
        found = desk.run(desk.deployments.prepare(project({"a": {"schema": {"at": "timestamp"}, **given}}), by="ann"))
        assert (not found.after.breaking) is allowed


def test_a_schema_that_is_no_longer_declared_is_remembered(desk: Desk) -> None:
    first = desk.deploy({"a": {"schema": LONG}})
    second = desk.deploy({"a": {}})
    assert columns(second) == columns(first)
    assert second.assets["shop.a"].definition["schema_declared"] is False
    with pytest.raises(InvalidInput, match="change a type"):
        desk.deploy({"a": {"schema": {**LONG, "amount": "string"}}})


def test_other_dimensions_are_refused(desk: Desk) -> None:
    days = daily("date", start="2025-01-01")
    desk.deploy({"a": {"partitions": days}})
    with pytest.raises(InvalidInput, match="partitioned otherwise"):
        desk.deploy({"a": {"partitions": [days, static("region", ["de"])]}})
    grown = desk.deploy({"a": {"partitions": daily("date", start="2024-01-01")}})
    assert grown.breaking == ()


def test_going_back_to_other_dimensions_is_refused_with_the_way_out(desk: Desk) -> None:
    first = desk.deploy({"a": {"partitions": daily("date", start="2025-01-01")}})
    second = desk.deploy({"a": {"partitions": weekly("date", start="2025-01-06")}}, allow_breaking=True)
    with pytest.raises(InvalidInput, match=r"shop\.a is partitioned otherwise") as raised:
        desk.run(desk.deployments.rollback("shop", by="ann"))
    assert "--allow-breaking" in str(raised.value.hint)
    assert desk.run(desk.deployments.current("shop")).id == second.id
    assert desk.run(desk.deployments.rollback("shop", by="ann", allow_breaking=True)).id == first.id


def test_going_back_to_a_schema_that_readers_cannot_follow_is_refused_like_deploying_it(desk: Desk) -> None:
    first = desk.deploy({"a": {"schema": {"id": "long not null", "amount": "int"}}})
    second = desk.deploy({"a": {"schema": {"id": "long not null", "amount": "long"}}})
    with pytest.raises(InvalidInput) as deploying:
        desk.deploy({"a": {"schema": {"id": "long not null", "amount": "int"}}})
    with pytest.raises(
        InvalidInput, match=r"going back breaks what is published: shop\.a is backward compatible"
    ) as raised:
        desk.run(desk.deployments.rollback("shop", by="ann"))
    assert raised.value.message.partition(": ")[2] == deploying.value.message.partition(": ")[2]
    assert "--allow-breaking" in str(raised.value.hint)
    assert desk.run(desk.deployments.current("shop")).id == second.id
    assert desk.run(desk.deployments.rollback("shop", by="ann", allow_breaking=True)).id == first.id


def test_going_back_is_judged_by_what_the_earlier_deployment_asked_for(desk: Desk) -> None:
    desk.deploy({"a": {"schema": {"id": "long", "amount": "int"}, "compatibility": "none"}})
    desk.deploy({"a": {"schema": {"id": "long", "amount": "long"}, "compatibility": "backward"}})
    assert desk.run(desk.deployments.rollback("shop", by="ann"))


def test_preparing_writes_nothing(desk: Desk) -> None:
    found = desk.run(desk.deployments.prepare(project({"a": {}}), by="ann"))
    assert found.is_news
    assert found.difference.added == ("shop.a",)
    assert desk.objects() == {}
    desk.deploy({"a": {}})
    again = desk.run(desk.deployments.prepare(project({"a": {}}), by="bob"))
    assert not again.is_news
    assert not again.difference


# Documents


def test_a_manifest_is_read_as_it_was_written(desk: Desk) -> None:
    found = desk.deploy({"a": {"schema": struct(field(1, "id", doc="Its id."), field(2, "n", **{"initial-default": 0}))}})
    assert decode_deployment(found.encode(), "key") == found
    assert deployed(found).asset_ids == {key: ids(found)[str(key)] for key in project({"a": {}}).assets}
    with pytest.raises(CorruptObject):
        decode_deployment(b"{}", "key")
    with pytest.raises(CorruptObject, match="key is not a deployment"):
        decode_deployment(found.encode().replace(b'"format":"', b'"format":"\xff', 1), "key")
    with pytest.raises(UnknownFormat):
        decode_deployment(found.encode().replace(b'"format_version":1', b'"format_version":9'), "key")


def test_sources_are_deployed_too(desk: Desk) -> None:
    made = assembled([source("raw").written], folder=Path(), name="shop", namespace="shop")
    found = desk.run(desk.deployments.deploy(made, by="ann"))[0]
    assert found.assets["shop.raw"].kind == "source"

"""What the ledger is told of deployments: enough to fold the assets that count, whoever tells it and in whatever order."""

import asyncio
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from arco import asset
from arco.fold.joins import State, joined
from arco.fold.shredding import shred
from arco.fold.tables import ASSETS, DECLARED_SCHEMAS
from arco.fold.vocabulary import Table
from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import CorruptObject, Unavailable
from arco.kernel.scope import Scope
from arco.ledger.envelope import Event
from arco.ledger.reading import events
from arco.servo.deploy.declaration import declared
from arco.servo.deploy.deploying import Deployments
from arco.servo.deploy.head import HeadCodec, Swing
from arco.servo.deploy.telling import tell_all
from arco.servo.sdk.project import Project, assembled
from arco.storage.keys import DeploymentHeadKey, Domain, Word
from arco.storage.memory import MemoryStore
from arco.storage.port import Absent, Condition, Outcome
from stand_ins.hand_clock import HandClock


class LedgerAway(MemoryStore):
    """A store in which nothing can be appended to the ledger for a while."""

    away = False

    async def put(self, key: str, data: bytes, condition: Condition) -> Outcome:
        if self.away and "/ledger/" in key:
            raise Unavailable("the store did not answer")
        return await super().put(key, data, condition)


class Desk:
    def __init__(self) -> None:
        self.clock = HandClock()
        self.store = LedgerAway(self.clock)
        self.deployments = Deployments(self.store, Scope.of(), self.clock, SeededEntropy("told"))

    def run(self, work: Any) -> Any:
        self.clock.at_ms += 1000
        return asyncio.run(work)

    def deploy(self, **assets: dict[str, Any]) -> Any:
        return self.run(self.deployments.deploy(project(assets), by="ann"))[0]

    def deploy_untold(self, **assets: dict[str, Any]) -> None:
        """As by a process that dies after it has swung the head."""
        self.store.away = True
        with pytest.raises(Unavailable):
            self.deploy(**assets)
        self.store.away = False

    def told(self) -> list[Event]:
        return asyncio.run(events(self.store, Scope.of(), Domain.CATALOG))

    def kinds(self) -> list[str]:
        return [f"{event.type.split('.')[1]} {event.subject}" for event in self.told()]


def project(assets: dict[str, dict[str, Any]]) -> Project:
    def function() -> object: ...

    written = [asset(name=name, **given)(function).written for name, given in assets.items()]
    return assembled(written, folder=Path(), name="shop", namespace="shop")


def folded(table: Table, told: list[Event]) -> State:
    return joined(table, (row for event in told for its, row in shred(event) if its is table))


def standing(told: list[Event]) -> dict[str, tuple[Any, Any]]:
    """The names that assets go by, and what of each counts."""
    return {
        row["asset"]: (row["deployment"], row["tags"])
        for row in folded(ASSETS, told).values()
        if row["asset"] is not None and not row["retired"]
    }


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_an_asset_is_known_before_its_first_run(desk: Desk) -> None:
    made = desk.deploy(a={"schema": {"id": "long"}, "tags": "daily"}, b={})
    (row,) = [row for row in folded(ASSETS, desk.told()).values() if row["asset"] == "shop.a"]
    assert row["asset_id"] == made.assets["shop.a"].asset_id
    assert (row["deployment"], row["deployed_by"], row["tags"]) == (made.id, "ann", ["daily"])
    (column,) = folded(DECLARED_SCHEMAS, desk.told()).values()
    assert (column["name"], column["type"], column["required"]) == ("id", "long", False)
    assert desk.kinds() == [
        "deployment_created shop",
        "asset_deployed shop.a",
        "schema_registered shop.a",
        "asset_deployed shop.b",
    ]


def test_only_what_changed_is_told(desk: Desk) -> None:
    desk.deploy(a={}, b={}, c={})
    before = len(desk.told())
    desk.deploy(a={}, b={"tags": "new"}, d={"renamed_from": "c"})
    assert desk.kinds()[before:] == [
        "deployment_created shop",
        "asset_deployed shop.b",
        "asset_deployed shop.d",
        "asset_renamed shop.d",
    ]
    desk.deploy(a={}, b={"tags": "new"})
    assert desk.kinds()[-1] == "asset_removed shop.d"
    assert standing(desk.told()).keys() == {"shop.a", "shop.b"}


def test_what_says_the_same_tells_nothing(desk: Desk) -> None:
    desk.deploy(a={})
    told = desk.told()
    desk.deploy(a={})
    assert desk.told() == told
    assert desk.run(desk.deployments.tell("shop")) == 0
    assert desk.run(desk.deployments.tell("other")) == 0


def test_whoever_looks_next_tells_what_a_dead_one_did_not(desk: Desk) -> None:
    desk.deploy_untold(a={})
    assert desk.told() == []
    desk.deploy(a={})
    assert standing(desk.told()).keys() == {"shop.a"}
    assert desk.run(desk.deployments.tell("shop")) == 0


def test_whoever_folds_tells_what_dead_deployers_did_not(desk: Desk) -> None:
    """Nobody need deploy again. A project that cannot be read does not keep the others waiting, and is not passed over."""
    desk.deploy_untold(a={})
    assert desk.run(tell_all(desk.deployments)) == 1
    assert standing(desk.told()).keys() == {"shop.a"}
    told = desk.told()
    assert desk.run(tell_all(desk.deployments)) == 0
    desk.deploy_untold(a={}, b={})
    damaged = str(DeploymentHeadKey(Scope.of(), Word("aa")))
    desk.run(desk.store.put(damaged, b"?", Absent()))
    with pytest.raises(CorruptObject, match="aa"):
        desk.run(tell_all(desk.deployments))
    assert standing(desk.told()).keys() == {"shop.a", "shop.b"}
    assert len(desk.told()) > len(told)


def test_a_rollback_is_told(desk: Desk) -> None:
    first = desk.deploy(a={"schema": {"id": "long"}}, b={})
    desk.deploy(a={"schema": {"id": "long", "note": "string"}, "tags": "new"})
    desk.run(desk.deployments.rollback("shop", by="bea"))
    assert standing(desk.told()) == {"shop.a": (first.id, []), "shop.b": (first.id, [])}
    assert {row["deployed_by"] for row in folded(ASSETS, desk.told()).values()} == {"bea"}
    # The schema that counts again is the newest one.
    newest = max(folded(DECLARED_SCHEMAS, desk.told()).values(), key=lambda row: row["counted_order"])
    same = [
        row["name"] for row in folded(DECLARED_SCHEMAS, desk.told()).values() if row["schema_hash"] == newest["schema_hash"]
    ]
    assert same == ["id"]


def test_the_order_in_which_swings_are_told_does_not_matter(desk: Desk) -> None:
    desk.deploy(a={}, b={})
    desk.deploy_untold(a={"tags": "one"}, b={})
    desk.deploy_untold(a={}, b={}, c={})
    last = desk.deploy(a={}, c={})
    assert desk.run(desk.deployments.tell("shop")) == 0
    by_swing: dict[int, list[Event]] = {}
    for event in desk.told():
        by_swing.setdefault(event.data["generation"], []).append(event)
    assert sorted(by_swing) == [1, 2, 3, 4]
    for swings in permutations(by_swing.values()):
        arrived = [event for swing in swings for event in swing]
        found = folded(ASSETS, arrived)
        assert {row["asset"] for row in found.values() if not row["retired"]} == set(last.assets)
        assert [row["tags"] for row in found.values() if row["asset"] == "shop.a"] == [[]]


def test_two_who_tell_the_same_swing_tell_it_once(desk: Desk) -> None:
    desk.deploy_untold(a={}, b={})
    other = Deployments(desk.store, Scope.of(), desk.clock, SeededEntropy("other"))

    async def both() -> None:
        await asyncio.gather(desk.deployments.tell("shop"), other.tell("shop"))

    desk.run(both())
    assert desk.kinds() == ["deployment_created shop", "asset_deployed shop.a", "asset_deployed shop.b"]


def test_a_head_from_before_swings_were_counted_has_told_nothing() -> None:
    found = HeadCodec().decode(1, {"deployment": "01JD7Z0Q3V8K4M2N6P9R5T1WXY", "history": []})
    assert (found.swings, found.untold) == (1, (Swing(1, "01JD7Z0Q3V8K4M2N6P9R5T1WXY", None),))
    assert HeadCodec().decode(1, HeadCodec().encode(found)[1]) == found


def test_many_assets_are_told_in_several_segments(desk: Desk) -> None:
    desk.deploy(**{f"a{number}": {} for number in range(600)})
    assert len(standing(desk.told())) == 600


def test_telling_is_no_deployment_in_between(desk: Desk) -> None:
    desk.deploy_untold(a={})

    async def story() -> None:
        found, held = await desk.deployments._prepared(declared(project({"b": {}})), "ann", {})
        await desk.deployments.tell("shop")
        await desk.deployments._write(found.after)
        await desk.deployments._swing(desk.deployments._head("shop"), held, found.after.id, "ann")
        await desk.deployments.tell("shop")

    desk.run(story())
    assert standing(desk.told()).keys() == {"shop.b"}

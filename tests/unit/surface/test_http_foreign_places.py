"""Tables of other formats lie where they like, but not among Arco's own objects and in no other table's folder."""

from collections.abc import Iterator
from typing import Any

import pytest

from arco.catalog.locations import normal_uri
from arco.kernel.entropy import SystemEntropy
from arco.kernel.ids import new_uuid7

from .vending_ground import VendingGround

OTHERS = "/api/v1/tables"
ROOT = "s3://lake"
OURS = f"{ROOT}/default/default"


@pytest.fixture
def ground() -> Iterator[VendingGround]:
    made = VendingGround()
    assert made.post("/iceberg/v1/acme.prod/namespaces", {"namespace": ["ns"]}).status == 200
    yield made
    made.runner.close()


def register(ground: VendingGround, location: str, name: str = "o", **headers: str) -> Any:
    return ground.post(OTHERS, {"namespace": ["ns"], "name": name, "format": "DELTA", "location": location}, **headers)


def registered(ground: VendingGround) -> list[str]:
    return [one["name"] for one in ground.get(OTHERS).json["tables"]]


def commits(ground: VendingGround) -> list[str]:
    found = ground.runner.run(ground.store.list_page("default/default/_catalog/core/commits/"))
    return [one.key for one in found.entries]


@pytest.mark.parametrize(
    "location",
    [
        "s3://elsewhere/t",
        "s3://lake-2/default/default/_catalog",
        "s3://elsewhere/a//b",
        "abfss://c@a.dfs.core.windows.net/t",
        "/data/t.csv",
        f"{OURS}/delta/t",
        f"{ROOT}/bronze/orders",
        f"{ROOT}/Bronze/orders/t",
        f"{ROOT}/bronze",
    ],
)
def test_it_may_lie_anywhere_else(ground: VendingGround, location: str) -> None:
    assert register(ground, location).status == 200


@pytest.mark.parametrize(
    ("location", "why"),
    [
        (f"{OURS}/_catalog", "Arco's own"),
        (f"{OURS}/_catalog/ledger/t/", "Arco's own"),
        ("s3a://lake/default/default/_catalog/t", "Arco's own"),
        (f"{ROOT}/nobody/yet/_catalog/t", "Arco's own"),
        (f"{OURS}/data", "places tables"),
        (f"{OURS}/data/orders", "places tables"),
        (f"{OURS}/views/v", "places tables"),
        (OURS, "this workspace"),
        (f"{ROOT}/default", "this workspace"),
        (f"{ROOT}/", "everything"),
        (f"{ROOT}/acme/prod", "acme/prod"),
        (f"{ROOT}/acme/prod/delta/t", "acme/prod"),
        (f"{ROOT}/acme", "acme/prod"),
        (f"{ROOT}/x/../default/default/_catalog", "winds"),
        (f"{OURS}/delta/%2e%2e/_catalog", "winds"),
        (f"{ROOT}//default/default/_catalog", "winds"),
    ],
)
def test_it_does_not_lie_among_arcos_own_objects(ground: VendingGround, location: str, why: str) -> None:
    before = commits(ground)
    answer = register(ground, location)
    assert (answer.status, why in answer.json["detail"]) == (400, True), answer.json
    assert (registered(ground), commits(ground)) == ([], before)


def test_it_does_not_lie_at_in_or_around_another_table(ground: VendingGround) -> None:
    assert register(ground, "s3://elsewhere/shop/orders", "first").status == 200
    for location in (
        "s3://elsewhere/shop/orders/",
        "s3a://elsewhere/shop/orders/2025",
        "s3://elsewhere/shop",
        "s3://elsewhere",
    ):
        answer = register(ground, location)
        assert answer.status == 409
        assert "ns.first" in answer.json["detail"]
    assert registered(ground) == ["first"]
    assert register(ground, "s3://elsewhere/shop/orders_2").status == 200


def test_the_place_of_one_that_was_dropped_is_free(ground: VendingGround) -> None:
    """Its files were never Arco's. Those of an Iceberg table are, until it is purged."""
    assert register(ground, "s3://elsewhere/t", "first").status == 200
    assert ground.ask("DELETE", f"{OTHERS}?namespace=ns&name=first").status == 204
    assert register(ground, "s3://elsewhere/t", "second").status == 200


def test_a_retry_hears_what_the_first_heard(ground: VendingGround) -> None:
    key = {"Idempotency_Key": new_uuid7(ground.clock, SystemEntropy())}
    uuids = {register(ground, "s3://elsewhere/t", **key).json["uuid"] for _ in range(2)}
    assert len(uuids) == 1
    late = {"Idempotency_Key": new_uuid7(ground.clock, SystemEntropy())}
    assert register(ground, "s3://elsewhere/t/x", "inner", **late).status == 409
    assert ground.ask("DELETE", f"{OTHERS}?namespace=ns&name=o").status == 204
    assert register(ground, "s3://elsewhere/t/x", "inner", **late).status == 409
    assert register(ground, "s3://elsewhere/t/x", "inner").status == 200


def test_a_path_with_a_colon_is_a_path():
    """And no scheme: it would lie nowhere, and so in nobody's folder."""
    assert normal_uri("/lake/default/default/_catalog/a:b") == "file:///lake/default/default/_catalog/a:b"
    assert normal_uri("file:/lake/a:b") == "file:///lake/a:b"

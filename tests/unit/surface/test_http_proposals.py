"""Where Arco puts tables is told with their namespace, and a place below it is a proposal: what Trino needs to stage one."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from arco.catalog.policy import LocationPolicy
from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy

from .vending_ground import NAMESPACES, SCHEMA, TABLES, VendingGround

VIEWS = f"{NAMESPACES}/ns/views"
DATA = "s3://lake/default/default/data"
VERSION = {
    "version-id": 1,
    "schema-id": 0,
    "timestamp-ms": 1735689600000,
    "summary": {},
    "default-namespace": ["ns"],
    "representations": [{"type": "sql", "sql": "SELECT 1", "dialect": "trino"}],
}


@pytest.fixture
def ground() -> Iterator[VendingGround]:
    made = VendingGround()
    yield made
    made.runner.close()


def stage(ground: VendingGround, location: str) -> Any:
    return ground.post(TABLES, {"name": "t", "schema": SCHEMA, "stage-create": True, "location": location})


def test_a_namespace_says_where_its_tables_lie(ground: VendingGround) -> None:
    made = ground.post(NAMESPACES, {"namespace": ["a"], "properties": {"k": "v"}})
    assert made.json["properties"] == {"location": DATA, "k": "v"}
    assert ground.get(f"{NAMESPACES}/a").json["properties"] == made.json["properties"]
    ground.post(f"{NAMESPACES}/a/properties", {"updates": {"location": f"{DATA}/a"}})
    assert ground.get(f"{NAMESPACES}/a").json["properties"]["location"] == f"{DATA}/a"
    ground.post(f"{NAMESPACES}/a/properties", {"removals": ["location"]})
    assert ground.get(f"{NAMESPACES}/a").json["properties"]["location"] == DATA


def test_what_a_namespace_says_of_itself_can_be_sent_back(ground: VendingGround) -> None:
    said = ground.get(f"{NAMESPACES}/ns").json["properties"]
    assert ground.post(NAMESPACES, {"namespace": ["copy"], "properties": said}).status == 200
    assert ground.post(f"{NAMESPACES}/ns/properties", {"updates": said}).status == 200


@pytest.mark.parametrize(
    "place",
    [
        "file:///etc",
        "s3://other/place",
        "s3://lake/default/default/_catalog",
        "s3://lake/default/other/data",
        f"{DATA}/../x",
        "",
    ],
)
def test_a_namespace_says_no_place_in_which_none_of_its_tables_could_lie(ground: VendingGround, place: str) -> None:
    """They would be put elsewhere without a word, or refused one by one."""
    asked = {"location": place}
    made = ground.post(NAMESPACES, {"namespace": ["a"], "properties": asked})
    assert made.error == (400, "BadRequestException")
    assert DATA in made.json["error"]["message"]
    assert ground.get(f"{NAMESPACES}/a").status == 404
    assert ground.post(f"{NAMESPACES}/ns/properties", {"updates": asked}).error == (400, "BadRequestException")
    assert ground.get(f"{NAMESPACES}/ns").json["properties"] == {"location": DATA}


def test_a_namespace_may_say_a_place_that_the_operator_lists(tmp_path: Path) -> None:
    listed = f"file://{tmp_path}"
    ground = VendingGround(LocationPolicy.of([listed], SystemClock(), SystemEntropy()))
    made = ground.post(NAMESPACES, {"namespace": ["a"], "properties": {"location": f"{listed}/a"}})
    assert made.json["properties"] == {"location": f"{listed}/a"}
    refused = ground.post(NAMESPACES, {"namespace": ["b"], "properties": {"location": "s3://other/b"}})
    assert listed in refused.json["error"]["message"]
    ground.runner.close()


@pytest.mark.parametrize("place", [f"{DATA}/t-0123", f"{DATA}/t-0123/", "s3a://lake/default/default/data/t", f"{DATA}/a/b"])
def test_a_place_below_it_is_arcos_to_choose(ground: VendingGround, place: str) -> None:
    metadata = stage(ground, place).json["metadata"]
    assert metadata["location"] == f"{DATA}/t-{metadata['table-uuid']}"
    made = ground.post(TABLES, {"name": "t", "schema": SCHEMA, "location": place}).json["metadata"]
    assert made["location"] == f"{DATA}/t-{made['table-uuid']}"


def test_the_place_of_another_table_is_not_taken(ground: VendingGround) -> None:
    theirs = ground.create().json["metadata"]["location"]
    ours = ground.post(TABLES, {"name": "ours", "schema": SCHEMA, "location": theirs}).json["metadata"]["location"]
    assert not ours.startswith(theirs)


@pytest.mark.parametrize(
    "place",
    [
        DATA,
        "s3://lake/default/default",
        "s3://lake/default/other/data/t",
        "s3://lake/default/default/views/t",
        f"{DATA}/../_catalog",
        f"{DATA}/t/%2e%2e/x",
        f"{DATA}s/t",
        "s3://other/default/default/data/t",
    ],
)
def test_every_other_place_is_refused(ground: VendingGround, place: str) -> None:
    assert stage(ground, place).error == (400, "BadRequestException")


def test_a_view_stays_where_arco_put_it(ground: VendingGround) -> None:
    body = {"name": "v", "schema": SCHEMA, "view-version": VERSION, "properties": {}, "location": f"{DATA}/v-0123"}
    made = ground.post(VIEWS, body).json["metadata"]
    assert made["location"] == f"s3://lake/default/default/views/v-{made['view-uuid']}"
    proposed = {"action": "set-location", "location": f"{DATA}/v-4567"}
    other = {"action": "set-properties", "updates": {"a": "1"}}
    changed = ground.post(f"{VIEWS}/v", {"requirements": [], "updates": [proposed, other]}).json["metadata"]
    assert (changed["location"], changed["properties"]) == (made["location"], {"a": "1"})
    elsewhere = {"action": "set-location", "location": "s3://other/v"}
    assert ground.post(f"{VIEWS}/v", {"requirements": [], "updates": [elsewhere]}).status == 400


def test_a_table_is_not_moved_by_a_proposal(ground: VendingGround) -> None:
    ground.create()
    moving = {"action": "set-location", "location": f"{DATA}/t-4567"}
    assert ground.post(f"{TABLES}/t", {"requirements": [], "updates": [moving]}).status == 400

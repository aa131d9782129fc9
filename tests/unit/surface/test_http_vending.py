"""Who asks gets credentials for the files of a table, and nobody ever gets any for others: the routes, with a token service."""

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from arco.catalog.policy import LocationPolicy
from arco.govern.vending import Access
from arco.kernel.entropy import SeededEntropy
from arco.kernel.ids import new_uuid7
from arco.storage.port import Absent
from stand_ins.asgi import Answer

from .vending_ground import CANARY, DELEGATED, NAMESPACES, SCHEMA, TABLES, VendingGround

TABLE = f"{TABLES}/t"
DATA = "s3://lake/default/default/data/"


@pytest.fixture
def ground() -> Iterator[VendingGround]:
    made = VendingGround()
    yield made
    made.runner.close()


def credential(answer: Answer) -> dict[str, Any]:
    assert answer.status == 200, answer.json
    (one,) = answer.json["storage-credentials"]
    return one


def own_folder(answer: Answer) -> str:
    """The folder of the table in an answer, as policies spell it."""
    return answer.json["metadata"]["location"].removeprefix("s3://") + "/*"


# Who gets what


def test_a_create_and_a_load_carry_credentials_for_the_tables_own_folder(ground: VendingGround) -> None:
    created = ground.create()
    loaded = ground.get(TABLE, **DELEGATED)
    for answer in (created, loaded):
        assert credential(answer)["prefix"] == answer.json["metadata"]["location"] + "/"
        assert credential(answer)["config"]["s3.session-token"] == CANARY
        assert answer.headers["cache-control"] == "no-store"
    assert ground.service.folders == [own_folder(created)]


def test_who_does_not_ask_gets_none(ground: VendingGround) -> None:
    ground.post(TABLES, {"name": "t", "schema": SCHEMA})
    for headers in ({}, {"X_Iceberg_Access_Delegation": "remote-signing"}):
        loaded = ground.get(TABLE, **headers)
        assert "storage-credentials" not in loaded.json
        assert loaded.json["config"] == {"s3.region": "eu-west-1"}
        assert "cache-control" not in loaded.headers
    assert not ground.service.policies


@pytest.mark.parametrize("word", ["vended-credentials,remote-signing", "remote-signing, Vended-Credentials"])
def test_the_header_is_a_list(ground: VendingGround, word: str) -> None:
    ground.create()
    assert credential(ground.get(TABLE, X_Iceberg_Access_Delegation=word))


def test_they_are_where_trino_and_pyiceberg_look_too(ground: VendingGround) -> None:
    for answer in (ground.create(), ground.get(TABLE, **DELEGATED)):
        assert credential(answer)["config"].items() <= answer.json["config"].items()
        assert "client.refresh-credentials-endpoint" in answer.json["config"]


def test_a_staged_create_carries_them_and_no_way_to_new_ones(ground: VendingGround) -> None:
    staged = ground.create("staged", **{"stage-create": True})
    assert "metadata-location" not in staged.json
    assert credential(staged)["config"].items() <= staged.json["config"].items()
    assert "client.refresh-credentials-endpoint" not in staged.json["config"]
    assert ground.service.folders == [own_folder(staged)]


def test_a_registered_table_gets_them_in_its_own_folder(ground: VendingGround) -> None:
    location = ground.create().json["metadata-location"]
    ground.ask("DELETE", TABLE)
    body = {"name": "again", "metadata-location": location}
    registered = ground.post(f"{NAMESPACES}/ns/register", body, **DELEGATED)
    assert credential(registered)["prefix"].startswith(DATA)


def test_the_way_to_new_ones_is_told_and_works(ground: VendingGround) -> None:
    for levels in (["a b"], ["a b", "ü/x"]):
        ground.post(NAMESPACES, {"namespace": levels})
    odd = f"{NAMESPACES}/a%20b%1F%C3%BC%2Fx/tables"
    created = ground.post(odd, {"name": "t/1?", "schema": SCHEMA}, **DELEGATED)
    path = created.json["config"]["client.refresh-credentials-endpoint"]
    assert path == "v1/default.default/namespaces/a%20b%1F%C3%BC%2Fx/tables/t%2F1%3F/credentials"
    refreshed = ground.get(f"/iceberg/{path}")
    assert list(refreshed.json) == ["storage-credentials"]
    assert credential(refreshed) == credential(created)
    assert refreshed.headers["cache-control"] == "no-store"


def test_they_are_made_anew_when_half_of_their_life_is_gone(ground: VendingGround) -> None:
    ground.create()
    ground.clock.at_ms += 1_801_000
    assert credential(ground.get(f"{TABLE}/credentials"))["config"]["s3.access-key-id"] == "ASIA2"


def test_a_server_that_vends_says_so(ground: VendingGround) -> None:
    name = "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials"
    assert name in ground.get("/iceberg/v1/config").json["endpoints"]


def test_a_table_that_is_not_there_has_none(ground: VendingGround) -> None:
    assert ground.get(f"{TABLES}/no/credentials", **DELEGATED).error == (404, "NoSuchTableException")
    assert not ground.service.policies


def test_a_server_for_readers_hands_out_reading() -> None:
    ground = VendingGround(access=Access.READ)
    ground.create()
    assert ground.service.policies[0]["Statement"][0]["Action"] == ["s3:GetObject"]
    ground.runner.close()


# Not for other places: each of these was a hole in a catalog that people use


class Anywhere(LocationPolicy):
    """An operator who lets tables be registered and placed anywhere. No reason to hand out keys to it."""

    def allows(self, location: str) -> bool:
        return True


@pytest.fixture
def lenient() -> Iterator[VendingGround]:
    made = VendingGround(Anywhere())
    yield made
    made.runner.close()


@pytest.mark.parametrize("place", ["s3://lake", "s3://lake/default", "s3://lake/default/default/data", "s3://lake/x/../y"])
def test_cve_2026_42809_a_staged_create_vends_nothing_for_a_place_of_the_callers_choice(
    ground: VendingGround, lenient: VendingGround, place: str
) -> None:
    assert ground.create("t", location=place, **{"stage-create": True}).status == 400
    answer = lenient.create("t", location=place, **{"stage-create": True})
    assert "storage-credentials" not in answer.json
    assert CANARY not in answer.body.decode()
    assert not ground.service.policies
    assert not lenient.service.policies


@pytest.mark.parametrize("setting", ["write.metadata.path", "write.data.path", "write.object-storage.path"])
def test_cve_2026_42812_a_setting_alone_moves_no_credentials(lenient: VendingGround, setting: str) -> None:
    victim = lenient.create("victim").json["metadata"]["location"]
    lenient.create("t")
    updates = [{"action": "set-properties", "updates": {setting: f"{victim}/data"}}]
    lenient.post(TABLE, {"requirements": [], "updates": updates})
    lenient.clock.at_ms += 3_600_000
    before = len(lenient.service.policies)
    moved = lenient.get(TABLE, **DELEGATED)
    assert moved.json["metadata"]["properties"] == {setting: f"{victim}/data"}
    assert "storage-credentials" not in moved.json
    assert lenient.get(f"{TABLE}/credentials").error == (403, "ForbiddenException")
    assert len(lenient.service.policies) == before


@pytest.mark.parametrize("name", ["*", "t*", "?", "${aws:username}", "a' || '", 'q"', "...", "%2e%2e", "a/b", "ü\u202e"])
def test_cve_2026_42810_and_42811_names_are_not_in_any_policy(ground: VendingGround, name: str) -> None:
    created = ground.create(name)
    if created.status == 200:
        (folder,) = ground.service.folders
        assert folder == own_folder(created)
        uuid = created.json["metadata"]["table-uuid"]
        assert folder.endswith(f"-{uuid}/*")
        assert not set(folder.removesuffix("/*")) & set("*?$'\"")
    else:
        assert not ground.service.policies


def test_metadata_that_says_it_lies_with_another_table_gets_nothing(lenient: VendingGround) -> None:
    victim = lenient.create("victim").json["metadata"]
    forged = {**victim, "table-uuid": new_uuid7(lenient.clock, SeededEntropy(9))}
    key = "default/default/data/forged/metadata/00000-forged.metadata.json"
    lenient.runner.run(lenient.store.put(key, json.dumps(forged).encode(), Absent()))
    body = {"name": "mine", "metadata-location": f"s3://lake/{key}"}
    registered = lenient.post(f"{NAMESPACES}/ns/register", body, **DELEGATED)
    assert registered.status == 200
    assert "storage-credentials" not in registered.json
    assert lenient.get(f"{TABLES}/mine/credentials").error == (403, "ForbiddenException")
    assert lenient.service.folders == [victim["location"].removeprefix("s3://") + "/*"]


# Never kept


def test_a_create_that_is_repeated_gets_new_ones_and_the_marker_has_none(ground: VendingGround) -> None:
    key = new_uuid7(ground.clock, SeededEntropy(5))
    body = {"name": "t", "schema": SCHEMA}
    first = ground.post(TABLES, body, Idempotency_Key=key, **DELEGATED)
    ground.clock.at_ms += 1_900_000
    again = ground.post(TABLES, body, Idempotency_Key=key, **DELEGATED)
    assert again.json["metadata"] == first.json["metadata"]
    assert credential(first)["config"]["s3.access-key-id"] == "ASIA1"
    assert credential(again)["config"]["s3.access-key-id"] == "ASIA2"
    plain = ground.post(TABLES, body, Idempotency_Key=key)
    assert "storage-credentials" not in plain.json
    stored = ground.everything()
    assert any("iceberg_idempotency" in name for name in stored)
    assert not [name for name, data in stored.items() if CANARY.encode() in data or b"ASIA" in data]


def test_no_line_of_the_log_has_one(ground: VendingGround, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        ground.create()
        ground.get(TABLE, **DELEGATED)
        ground.service.silent = True
        ground.clock.at_ms += 3_600_000
        ground.get(TABLE, **DELEGATED)
    assert caplog.records
    told = "\n".join(f"{record.getMessage()} {record.__dict__}" for record in caplog.records)
    assert CANARY not in told
    assert "ASIA" not in told


# Tags


def test_nothing_has_changed_only_while_the_credentials_live(ground: VendingGround) -> None:
    tag = ground.create().headers["etag"]
    assert ground.get(TABLE, If_None_Match=tag, **DELEGATED).status == 304
    # What a server does beside requests moves this clock, too, by a second now and then.
    ground.clock.at_ms += 3_200_000
    unchanged = ground.get(TABLE, If_None_Match=f'"other", {tag}', **DELEGATED)
    assert (unchanged.status, unchanged.headers["etag"]) == (304, tag)
    ground.clock.at_ms += 200_000
    fresh = ground.get(TABLE, If_None_Match=tag, **DELEGATED)
    assert credential(fresh)["config"]["s3.access-key-id"] == "ASIA2"
    assert fresh.headers["etag"] != tag


def test_a_tag_with_credentials_is_another_than_one_without(ground: VendingGround) -> None:
    tag = ground.create().headers["etag"]
    plain = ground.get(TABLE).headers["etag"]
    assert ground.get(TABLE, If_None_Match=tag).status == 200
    assert ground.get(TABLE, If_None_Match=plain).status == 304
    assert ground.get(TABLE, If_None_Match=plain, **DELEGATED).status == 200
    assert ground.get(f"{TABLE}?snapshots=refs", If_None_Match=tag, **DELEGATED).status == 200


@pytest.mark.parametrize("end", ["-zz", "-", "", "-" + "f" * 10_000, "-1"])
def test_a_tag_that_somebody_made_up_is_none(ground: VendingGround, end: str) -> None:
    base = ground.create().headers["etag"].strip('"').partition("-")[0]
    status = ground.get(TABLE, If_None_Match=f'"{base}{end}"', **DELEGATED).status
    # An end that is far away may be made up: who does so sees no new credentials.
    assert status == (304 if end == "-" + "f" * 10_000 else 200)


def test_keys_that_are_passed_on_are_told_anew_once_the_server_was_given_others() -> None:
    """They have no end of their own: a client that holds the old ones would hear for ever that nothing has changed."""
    first, rotated, sessions = VendingGround(given=f"{CANARY}-1"), VendingGround(given=f"{CANARY}-2"), VendingGround()
    tag = first.create().headers["etag"]
    assert CANARY not in tag
    assert first.get(TABLE, If_None_Match=tag, **DELEGATED).status == 304
    location = first.get(TABLE).json["metadata-location"]
    for later in (rotated, sessions):
        later.create()
        assert later.get(TABLE).json["metadata-location"] == location
        fresh = later.get(TABLE, If_None_Match=tag, **DELEGATED)
        assert fresh.status == 200
        assert credential(fresh)["config"]["s3.secret-access-key"] != f"{CANARY}-1"
    for one in (first, rotated, sessions):
        one.runner.close()


@pytest.mark.parametrize("before", list(Access))
def test_who_was_told_what_it_may_do_hears_of_it_when_that_has_changed(before: Access) -> None:
    """A client that keeps reading keys for an hour after the operator allowed it to write is refused by the store until then."""
    (after,) = set(Access) - {before}
    first, later = VendingGround(access=before), VendingGround(access=after)
    tag = first.create().headers["etag"]
    assert first.get(TABLE, If_None_Match=tag, **DELEGATED).status == 304
    location = first.get(TABLE).json["metadata-location"]
    later.create()
    assert later.get(TABLE).json["metadata-location"] == location
    assert later.get(TABLE, If_None_Match=tag, **DELEGATED).status == 200
    for one in (first, later):
        one.runner.close()


def test_a_commit_changes_the_tag(ground: VendingGround) -> None:
    tag = ground.create().headers["etag"]
    updates = [{"action": "set-properties", "updates": {"a": "1"}}]
    ground.post(TABLE, {"requirements": [], "updates": updates})
    assert ground.get(TABLE, If_None_Match=tag, **DELEGATED).status == 200


def test_under_a_new_name_a_client_is_told_where_new_ones_are(ground: VendingGround) -> None:
    tag = ground.create().headers["etag"]
    names = {"source": {"namespace": ["ns"], "name": "t"}, "destination": {"namespace": ["ns"], "name": "renamed"}}
    assert ground.post("/iceberg/v1/default.default/tables/rename", names).status == 204
    told = ground.get(f"{TABLES}/renamed", If_None_Match=tag, **DELEGATED)
    assert told.status == 200
    assert ground.get(f"/iceberg/{told.json['config']['client.refresh-credentials-endpoint']}").status == 200
    assert ground.get(f"{TABLES}/renamed", If_None_Match=told.headers["etag"], **DELEGATED).status == 304


# A silent service


def test_a_silent_service_is_no_reason_to_say_that_nothing_was_created(ground: VendingGround) -> None:
    ground.service.silent = True
    assert ground.create().error == (504, "CommitStateUnknownException")
    assert ground.get(TABLE).status == 200
    assert ground.get(TABLE, **DELEGATED).error == (503, "ServiceUnavailableException")
    staged = ground.create("staged", **{"stage-create": True})
    assert staged.error == (503, "ServiceUnavailableException")

"""What did not change is answered with the bytes that are there, and never without asking the store."""

import asyncio
import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from arco.kernel.clock import SystemClock
from arco.kernel.limits import ANSWERS_KEPT_BYTES_MAX
from arco.storage.memory import MemoryStore
from arco.surface.http.app import App
from arco.surface.http.exchange import Response
from arco.surface.http.kept_answers import KeptAnswers
from stand_ins.asgi import Answer, ask, make_app

NAMESPACES = "/iceberg/v1/default.default/namespaces"
TABLE, VIEW = f"{NAMESPACES}/ns/tables/t", f"{NAMESPACES}/ns/views/v"
SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "a", "type": "long", "required": False}]}
VERSION = {
    "version-id": 1, "schema-id": 0, "timestamp-ms": 1_750_000_000_000, "summary": {}, "default-namespace": ["ns"],
    "representations": [{"type": "sql", "sql": "select 1 as a", "dialect": "spark"}],
}  # fmt: skip


@dataclass
class TwoServers:
    """On one store, with a table and a view, both large enough to be packed."""

    runner: asyncio.Runner
    one: App
    other: App

    def send(self, app: App, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        data = b"" if body is None else json.dumps(body).encode()
        answer = self.runner.run(ask(app, method, path, data, **headers))
        assert answer.status in {200, 304}, answer.body
        return answer


@pytest.fixture
def servers() -> Iterator[TwoServers]:
    store = MemoryStore(SystemClock())
    with asyncio.Runner() as runner:
        found = TwoServers(runner, make_app(store=store), make_app(store=store))
        large = {"properties": {"note": "word " * 20_000}}
        found.send(found.one, "POST", NAMESPACES, {"namespace": ["ns"]})
        found.send(found.one, "POST", f"{NAMESPACES}/ns/tables", {"name": "t", "schema": SCHEMA, **large})
        view = {"name": "v", "schema": SCHEMA, "view-version": VERSION, **large}
        found.send(found.one, "POST", f"{NAMESPACES}/ns/views", view)
        yield found
        for app in (found.one, found.other):
            runner.run(app._state.settle())


@pytest.mark.parametrize("path", [TABLE, f"{TABLE}?snapshots=refs", VIEW], ids=["table", "branches", "view"])
def test_what_did_not_change_is_neither_made_nor_packed_again(servers: TwoServers, path: str):
    kept = servers.one._state.answers
    first = servers.send(servers.one, "GET", path, Accept_Encoding="gzip")
    assert first.headers["content-encoding"] == "gzip"
    before = dict(kept._kept.items())
    assert len(before) == 2
    assert servers.send(servers.one, "GET", path, Accept_Encoding="gzip").body == first.body
    assert all(kept._kept.get(key) is made for key, made in before.items())
    assert gzip.decompress(first.body) == servers.send(servers.one, "GET", path).body
    assert len(kept._kept) == 2


@pytest.mark.parametrize("path", [TABLE, VIEW], ids=["table", "view"])
def test_what_another_server_changed_is_not_answered_from_what_is_kept(servers: TwoServers, path: str):
    before = servers.send(servers.one, "GET", path)
    change = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"x": "1"}}]}
    servers.send(servers.other, "POST", path, change)
    after = servers.send(servers.one, "GET", path)
    assert after.headers["etag"] != before.headers["etag"]
    assert after.json["metadata"]["properties"]["x"] == "1"


LISTS = [f"{NAMESPACES}/ns/tables{query}" for query in ("", "?pageToken=", "?pageToken=&pageSize=1", "?pageSize=5")]


@pytest.mark.parametrize("path", LISTS)
def test_a_list_of_names_that_did_not_change_is_not_made_again(servers: TwoServers, path: str):
    kept = servers.one._state.answers
    first = servers.send(servers.one, "GET", path)
    ((key, made),) = kept._kept.items()
    assert servers.send(servers.one, "GET", path).body == first.body == made
    assert kept._kept.get(key) is made


@pytest.mark.parametrize("size", ["0" * 4000 + "5", "+" * 4000 + "5"], ids=["zeros", "spaces"])
def test_a_size_that_is_spelled_at_length_is_not_kept_with_a_list(servers: TwoServers, size: str):
    assert servers.send(servers.one, "GET", f"{NAMESPACES}/ns/tables?pageSize={size}").json["identifiers"]
    assert len(servers.one._state.answers._kept) == 0


def test_lists_of_other_pages_kinds_and_namespaces_are_kept_apart(servers: TwoServers):
    servers.send(servers.one, "POST", NAMESPACES, {"namespace": ["ns", "more"]})
    servers.send(servers.one, "POST", f"{NAMESPACES}/ns/tables", {"name": "u", "schema": SCHEMA})
    paths = [*LISTS, f"{NAMESPACES}/ns/views", f"{NAMESPACES}/ns%1Fmore/tables"]
    told = [servers.send(servers.one, "GET", path).json for path in paths + paths]
    assert told[: len(paths)] == told[len(paths) :]
    assert [[one["name"] for one in answer["identifiers"]] for answer in told[: len(paths)]] == [
        ["t", "u"], ["t", "u"], ["t"], ["t", "u"], ["v"], [],
    ]  # fmt: skip
    assert [answer.get("next-page-token", "not told") is None for answer in told[: len(paths)]] == [
        False, True, False, True, False, False,
    ]  # fmt: skip


@pytest.mark.parametrize("path", LISTS)
def test_a_name_that_another_server_gave_is_not_missing_from_what_is_kept(servers: TwoServers, path: str):
    servers.send(servers.one, "GET", path)
    servers.send(servers.other, "POST", f"{NAMESPACES}/ns/tables", {"name": "a", "schema": SCHEMA})
    assert servers.send(servers.one, "GET", path).json["identifiers"][0]["name"] == "a"


def test_a_table_of_all_snapshots_and_one_of_branches_are_kept_apart(servers: TwoServers):
    tags = [servers.send(servers.one, "GET", f"{TABLE}{query}").headers["etag"] for query in ("", "?snapshots=refs")]
    assert len({tag for (tag, _), _ in servers.one._state.answers._kept.items()}) == len(set(tags)) == 2


@pytest.mark.parametrize("known", ["{}", "W/{}", '"other", {}', "*"])
def test_who_knows_the_table_is_told_that_it_did_not_change(servers: TwoServers, known: str):
    tag = servers.send(servers.one, "GET", TABLE).headers["etag"]
    answer = servers.send(servers.one, "GET", TABLE, If_None_Match=known.replace("{}", tag))
    assert (answer.status, answer.body, answer.headers["etag"]) == (304, b"", tag)


@pytest.mark.parametrize("known", ['"other"', "{}x", "x{}"])
def test_who_knows_something_else_is_answered(servers: TwoServers, known: str):
    tag = servers.send(servers.one, "GET", TABLE).headers["etag"]
    assert servers.send(servers.one, "GET", TABLE, If_None_Match=known.replace("{}", tag)).status == 200


def asked(kept: KeptAnswers, tag: str, size: int) -> Response:
    return kept.response(tag, lambda: tag.encode() * size, {})


def test_what_was_asked_for_last_is_kept_within_so_many_bytes():
    kept = KeptAnswers(bytes_max=30)
    a = asked(kept, "a", 10).body
    b = asked(kept, "b", 10).body
    assert asked(kept, "a", 10).body is a
    asked(kept, "c", 20)
    assert kept.size_bytes == 30
    assert asked(kept, "a", 10).body is a
    assert asked(kept, "b", 10).body is not b


def test_packed_bytes_count_too_and_what_is_too_large_is_not_kept():
    kept = KeptAnswers(bytes_max=100)
    response = asked(kept, "a", 60)
    packed = response.pack(response.body)
    assert gzip.decompress(packed) == response.body
    assert kept.size_bytes == 60 + len(packed)
    assert len(asked(kept, "b", 101).body) == 101
    assert kept.size_bytes == 60 + len(packed)


def test_a_server_keeps_no_more_than_it_may():
    assert KeptAnswers()._bytes_max == ANSWERS_KEPT_BYTES_MAX

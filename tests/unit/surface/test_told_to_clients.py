"""What a server tells clients of its store, beside metadata: whoever was told something else hears of it."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from arco.catalog.policy import LocationPolicy
from arco.kernel.entropy import SeededEntropy
from arco.kernel.ids import UlidSource
from arco.storage.memory import MemoryStore
from arco.storage.roots import parse_root
from arco.surface.http.app import App
from arco.surface.http.client_config import client_config
from arco.surface.http.for_clients import ForClients
from arco.surface.http.server_state import ServerState
from stand_ins.asgi import Answer, ask
from stand_ins.hand_clock import HandClock

CANARY = "canary-of-a-secret"
NAMESPACES = "/iceberg/v1/default.default/namespaces"
TABLES, VIEWS = f"{NAMESPACES}/ns/tables", f"{NAMESPACES}/ns/views"
SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "a", "type": "long", "required": False}]}
VIEW = {
    "name": "v",
    "schema": SCHEMA,
    "view-version": {
        "version-id": 1, "schema-id": 0, "timestamp-ms": 1_700_000_000_000, "summary": {}, "default-namespace": ["ns"],
        "representations": [{"type": "sql", "sql": "select 1 as a", "dialect": "spark"}],
    },
}  # fmt: skip

KEYS = {"region": "eu-west-1", "access_key_id": "AKIA1", "secret_access_key": f"{CANARY}-1"}
PUBLIC = {"region": "eu-west-1", "endpoint": "https://one.test"}


class OneBucket:
    """Servers on one bucket, each with its own settings."""

    def __init__(self) -> None:
        self.runner = asyncio.Runner()
        self.clock = HandClock()
        self.store = MemoryStore(self.clock)

    def server(self, known: Mapping[str, str]) -> App:
        entropy = SeededEntropy(7)
        told = ForClients(client_config(parse_root("s3://lake"), known))
        state = ServerState(self.store, "s3://lake", told, LocationPolicy(), self.clock, entropy)
        return App(state, UlidSource(self.clock, entropy))

    def send(self, app: App, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        return self.runner.run(ask(app, method, path, b"" if body is None else json.dumps(body).encode(), **headers))

    def with_a_table(self, known: Mapping[str, str]) -> App:
        app = self.server(known)
        assert self.send(app, "POST", NAMESPACES, {"namespace": ["ns"]}).status == 200
        assert self.send(app, "POST", TABLES, {"name": "t", "schema": SCHEMA}).status == 200
        assert self.send(app, "POST", VIEWS, VIEW).status == 200
        return app


@pytest.fixture
def bucket() -> Iterator[OneBucket]:
    made = OneBucket()
    with made.runner:
        yield made


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        (KEYS, {**KEYS, "secret_access_key": f"{CANARY}-2"}),
        (KEYS, {**KEYS, "access_key_id": "AKIA2"}),
        (KEYS, {**KEYS, "session_token": CANARY}),
        (KEYS, PUBLIC),
        (PUBLIC, {**PUBLIC, "endpoint": "https://two.test"}),
    ],
    ids=["secret", "key", "session", "no keys any more", "address"],
)
def test_who_was_told_other_keys_or_another_address_is_told_the_new_ones(bucket: OneBucket, earlier, later):
    before, after = bucket.with_a_table(earlier), bucket.server(later)
    tag = bucket.send(before, "GET", f"{TABLES}/t").headers["etag"]
    assert bucket.send(before, "GET", f"{TABLES}/t", If_None_Match=tag).status == 304
    assert bucket.send(bucket.server(earlier), "GET", f"{TABLES}/t", If_None_Match=tag).status == 304
    told = bucket.send(after, "GET", f"{TABLES}/t", If_None_Match=tag)
    assert (told.status, told.json["config"]) == (200, client_config(parse_root("s3://lake"), later))
    assert CANARY not in tag
    views = [bucket.send(app, "GET", f"{VIEWS}/v").headers["etag"] for app in (before, after)]
    assert views[0] != views[1]


def test_a_commit_which_tells_no_keys_is_no_proof_that_a_client_has_them(bucket: OneBucket):
    earlier, later = bucket.with_a_table(KEYS), bucket.server({**KEYS, "secret_access_key": f"{CANARY}-2"})
    updates = [{"action": "set-properties", "updates": {"a": "1"}}]
    bucket.send(earlier, "GET", f"{TABLES}/t")
    committed = bucket.send(later, "POST", f"{TABLES}/t", {"requirements": [], "updates": updates})
    assert bucket.send(later, "GET", f"{TABLES}/t", If_None_Match=committed.headers["etag"]).status == 200


@pytest.mark.parametrize(("known", "kept"), [(KEYS, "no-store"), (PUBLIC, None)])
def test_an_answer_with_keys_is_kept_by_nobody_on_its_way(bucket: OneBucket, known, kept):
    app = bucket.with_a_table(known)
    loaded = bucket.send(app, "GET", f"{TABLES}/t")
    answers = [
        loaded,
        bucket.send(app, "GET", f"{TABLES}/t", If_None_Match=loaded.headers["etag"]),
        bucket.send(app, "POST", TABLES, {"name": "u", "schema": SCHEMA}),
        bucket.send(app, "POST", TABLES, {"name": "s", "schema": SCHEMA, "stage-create": True}),
        bucket.send(app, "GET", f"{VIEWS}/v"),
    ]
    assert [answer.status for answer in answers] == [200, 304, 200, 200, 200]
    assert [answer.headers.get("cache-control") for answer in answers] == [kept] * 5

"""A store that takes requests and does not answer, behind a real server: what clients hear, and who is served all the same.

Nobody is told "nothing was done" of what may have been done (PROTOCOLS C8). Limits are counted, never timed: what the server
lets a client wait is set short, and everything else is held until the store speaks again.
"""

import json
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from hostile.raw import Reply, ask
from servers.fault_proxy import Fault, FaultProxy, running
from servers.launch import Server, seaweedfs

from .logged_server import serving

NAMESPACES = "/iceberg/v1/default.default/namespaces"
TABLES = f"{NAMESPACES}/ns/tables"
SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "a", "type": "long", "required": False}]}
AT_ONCE = 8
RETRIES = 60


@dataclass(frozen=True)
class Lake:
    address: str
    proxy: FaultProxy

    def post(self, path: str, body: object, key: str | None = None) -> Reply:
        lines = [] if key is None else [f"Idempotency-Key: {key}"]
        return ask(self.address, "POST", path, json.dumps(body).encode(), *lines)

    def get(self, path: str) -> Reply:
        return ask(self.address, "GET", path)

    def go_silent(self) -> None:
        self.proxy.plan(lambda _method, _path, _headers: True, Fault.SILENT_BEFORE, times=1_000_000)

    def metric(self, name: str, **labels: str) -> float:
        reply = self.get("/metrics")
        assert reply.status == 200
        samples = (one for family in text_string_to_metric_families(reply.body.decode()) for one in family.samples)
        return sum(one.value for one in samples if one.name == name and labels.items() <= one.labels.items())


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with seaweedfs(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def lake(store: Server, tmp_path: Path) -> Iterator[Lake]:
    with running(store.endpoint) as proxy:
        options = {**store.options, "endpoint": proxy.endpoint}
        words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        limits = ("--timeout", "1", "--at-once", str(AT_ONCE), "--any-key")
        with serving(f"{store.url}/{tmp_path.name}", tmp_path / "server.log", *words, *limits) as server:
            found = Lake(server.address, proxy)
            assert found.post(NAMESPACES, {"namespace": ["ns"]}).status == 200
            for name in ("t", "u"):
                assert found.post(TABLES, {"name": name, "schema": SCHEMA}).status == 200
                assert found.get(f"{TABLES}/{name}").status == 200
            yield found
            # What is still held must end before the server does.
            proxy.speak()


def change(value: str) -> dict[str, object]:
    return {"requirements": [], "updates": [{"action": "set-properties", "updates": {value: "set"}}]}


def told(reply: Reply) -> tuple[int, str, bool]:
    """The status, the exception that clients know, and whether it may come again."""
    return reply.status, reply.json["error"]["type"], "retry-after" in reply.headers


NOTHING_DONE = (503, "ServiceUnavailableException", True)
NOT_KNOWN = (504, "CommitStateUnknownException", False)
NOT_KNOWN_ASK_AGAIN = (504, "CommitStateUnknownException", True)


def new_key() -> str:
    return str(uuid.uuid4())


def test_of_what_waits_for_a_silent_store_clients_hear_what_is_true_and_others_are_served(lake: Lake) -> None:
    lake.go_silent()
    asked = (
        (lambda: lake.get(f"{TABLES}/t"), NOTHING_DONE),
        (lambda: lake.post(TABLES, {"name": "new", "schema": SCHEMA}), NOT_KNOWN),
        (lambda: lake.post(TABLES, {"name": "keyed", "schema": SCHEMA}, new_key()), NOT_KNOWN_ASK_AGAIN),
        (lambda: lake.post(f"{TABLES}/t", change("plain")), NOT_KNOWN),
        (lambda: lake.post(f"{TABLES}/u", change("keyed"), new_key()), NOT_KNOWN_ASK_AGAIN),
    )
    with ThreadPoolExecutor(len(asked)) as pool:
        replies = list(pool.map(lambda one: one[0](), asked))
    assert [told(reply) for reply in replies] == [expected for _, expected in asked]
    # They go on though their clients were answered; who asks nothing of the store is not held up by them.
    assert lake.metric("arco_http_requests_under_way") == len(asked) + 1  # the question itself is one
    assert lake.get("/health").status == 200
    assert lake.get("/iceberg/v1/config").status == 200


def test_a_full_server_sends_away_at_once_and_asks_the_silent_store_nothing(lake: Lake) -> None:
    lake.go_silent()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        assert {told(one) for one in pool.map(lambda _: lake.get(f"{TABLES}/t"), range(AT_ONCE))} == {NOTHING_DONE}
    assert lake.metric("arco_http_requests_under_way") == AT_ONCE + 1
    before = len(lake.proxy.requests)
    for _ in range(3):
        assert told(lake.get(f"{TABLES}/t")) == NOTHING_DONE
        assert told(lake.post(f"{TABLES}/t", change("plain"))) == NOTHING_DONE
        assert told(lake.post(f"{TABLES}/t", change("keyed"), new_key())) == NOT_KNOWN_ASK_AGAIN
    assert lake.metric("arco_http_shed_total", reason="requests") == 9
    assert lake.metric("arco_http_requests_under_way") == AT_ONCE + 1
    assert len(lake.proxy.requests) == before
    assert lake.get("/health").status == 200


def test_what_was_not_known_is_done_once_by_whoever_asks_again_with_its_key(lake: Lake) -> None:
    lake.go_silent()
    key = new_key()
    assert told(lake.post(f"{TABLES}/t", change("keyed"), key)) == NOT_KNOWN_ASK_AGAIN
    lake.proxy.speak()
    replies = (lake.post(f"{TABLES}/t", change("keyed"), key) for _ in range(RETRIES))
    done = next(reply for reply in replies if told_or_done(reply))
    assert done.status == 200
    loaded = lake.get(f"{TABLES}/t").json["metadata"]
    assert loaded["properties"]["keyed"] == "set"
    assert len(loaded["metadata-log"]) == 1, "one commit, however often it was sent"


def told_or_done(reply: Reply) -> bool:
    """Whether it is over. Until then its client hears that it is not known, and when to ask again."""
    if reply.status == 504:
        assert told(reply) == NOT_KNOWN_ASK_AGAIN
        return False
    return True

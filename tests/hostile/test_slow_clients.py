"""Hundreds of clients that send slowly or do not read: they hold connections, and nobody else is held up."""

import contextlib
import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from .process import ServerProcess, server_process
from .raw import Wire, ask, head, wire

NAMESPACES = "/iceberg/v1/default.default/namespaces"
SLOW = 300


@pytest.fixture(scope="module", params=["1", "2"], ids=["one worker", "two workers"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    root: Path = tmp_path_factory.mktemp("slow") / "lake"
    with server_process(root, "--workers", request.param, "--at-once", "64") as made:
        wide = [{"id": n, "name": f"column_{n}", "type": "long", "required": False} for n in range(1, 2000)]
        table = {"name": "wide", "schema": {"type": "struct", "fields": wide}}
        assert ask(made.address, "POST", NAMESPACES, json.dumps({"namespace": ["ns"]}).encode()).status == 200
        assert ask(made.address, "POST", f"{NAMESPACES}/ns/tables", json.dumps(table).encode()).status == 200
        yield made


def is_served(server: ServerProcess) -> bool:
    """Whether somebody who behaves is answered, and can commit."""
    change = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"x": "1"}}]}
    committed = ask(server.address, "POST", f"{NAMESPACES}/ns/tables/wide", json.dumps(change).encode())
    loaded = ask(server.address, "GET", f"{NAMESPACES}/ns/tables/wide")
    return (committed.status, loaded.status) == (200, 200)


def connections(server: ServerProcess) -> float:
    lines = ask(server.address, "GET", "/metrics").body.decode().splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith("arco_http_connections"))


def have_come(server: ServerProcess, count: int) -> bool:
    """Soon: a connection is made before a worker takes it, and another worker may answer meanwhile."""
    until_s = time.monotonic() + 10
    while connections(server) <= count and time.monotonic() < until_s:
        time.sleep(0.05)
    return connections(server) > count


def test_bodies_that_never_end_hold_no_place_among_the_requests(server: ServerProcess) -> None:
    with ExitStack() as stack:
        for _ in range(SLOW):
            one = stack.enter_context(wire(server.address))
            one.send(head("POST", f"{NAMESPACES}/ns/tables", "Content-Length: 1000") + b"{")
        assert have_come(server, SLOW)
        assert is_served(server)


def test_heads_that_never_end_hold_nobody_up(server: ServerProcess) -> None:
    with ExitStack() as stack:
        for _ in range(SLOW):
            stack.enter_context(wire(server.address)).send(b"GET /iceberg/v1/config HT")
        assert is_served(server)


def test_answers_that_nobody_reads_hold_nobody_up(server: ServerProcess) -> None:
    with ExitStack() as stack:
        greedy: list[Wire] = []
        for _ in range(SLOW // 10):
            one = stack.enter_context(wire(server.address))
            greedy.append(one)
            with contextlib.suppress(TimeoutError, BlockingIOError):
                one.socket.settimeout(0.2)
                one.send(head("GET", f"{NAMESPACES}/ns/tables/wide") * 200)
        assert is_served(server)

"""`arco serve --workers`: several processes that are one server to its clients."""

import json
import os
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from hostile.process import ServerProcess, server_process, workers_of
from hostile.raw import ask, head, wire

NAMESPACES = "/iceberg/v1/default.default/namespaces"
SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "a", "type": "long", "required": False}]}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "lake"


def post(server: ServerProcess, path: str, body: object) -> int:
    return ask(server.address, "POST", path, json.dumps(body).encode()).status


def with_tables(server: ServerProcess, *names: str) -> list[str]:
    assert post(server, NAMESPACES, {"namespace": ["ns"]}) == 200
    for name in names:
        assert post(server, f"{NAMESPACES}/ns/tables", {"name": name, "schema": SCHEMA}) == 200
    return [f"{NAMESPACES}/ns/tables/{name}" for name in names]


def set_property(name: str, value: str) -> dict[str, object]:
    return {"requirements": [], "updates": [{"action": "set-properties", "updates": {name: value}}]}


def test_they_are_one_server_and_commits_of_many_clients_land_once_each(root: Path) -> None:
    with server_process(root, "--workers", "3") as server:
        assert len(workers_of(server.popen.pid)) == 3
        paths = with_tables(server, "a", "b", "c", "d")

        def commit(number: int) -> int:
            return post(server, paths[number % 4], set_property(f"p{number}", "x"))

        with ThreadPoolExecutor(12) as pool:
            assert set(pool.map(commit, range(120))) == {200}
        for at, path in enumerate(paths):
            loaded = ask(server.address, "GET", path).json
            assert set(loaded["metadata"]["properties"]) >= {f"p{number}" for number in range(at, 120, 4)}
            assert len(loaded["metadata"]["metadata-log"]) == 30
        names = ask(server.address, "GET", f"{NAMESPACES}/ns/tables").json["identifiers"]
        assert [one["name"] for one in names] == ["a", "b", "c", "d"]
        assert server.stop() == 0
    assert "Traceback" not in server.log
    # One line a request, whichever worker did the work.
    lines = [json.loads(line) for line in server.log.splitlines()]
    ids = [line["request_id"] for line in lines if line["message"] == "request"]
    assert len(ids) == len(set(ids)) == 1 + 4 + 120 + 4 + 1


def test_a_worker_that_dies_is_replaced_and_the_others_go_on(root: Path) -> None:
    with server_process(root, "--workers", "2") as server:
        (path,) = with_tables(server, "t")
        for number, victim in enumerate(workers_of(server.popen.pid)):
            os.kill(victim, signal.SIGKILL)
            # Whoever owned the table: what comes now is done by somebody.
            assert post(server, path, set_property(f"p{number}", "x")) == 200
            while len(workers_of(server.popen.pid)) < 2 or victim in workers_of(server.popen.pid):
                assert ask(server.address, "GET", "/health").status == 200
        assert ask(server.address, "GET", "/ready").status == 200
        assert set(ask(server.address, "GET", path).json["metadata"]["properties"]) >= {"p0", "p1"}
        assert server.stop() == 0
    assert server.log.count("another one starts") == 2


def test_told_to_stop_all_of_them_finish_what_they_were_asked(root: Path) -> None:
    with server_process(root, "--workers", "2") as server:
        paths = with_tables(server, "a", "b", "c", "d")
        body = json.dumps(set_property("x", "1")).encode()
        with wire(server.address) as one, wire(server.address) as two, wire(server.address) as three:
            asking = dict(zip((one, two, three), paths, strict=False))
            for connection, path in asking.items():
                connection.send(head("POST", path, f"Content-Length: {len(body)}", "Expect: 100-continue"))
                assert connection.reply().status == 100
            server.popen.terminate()
            for connection in asking:
                connection.send(body)
            assert [connection.reply().status for connection in asking] == [200, 200, 200]
        assert server.popen.wait(90) == 0
        receipts = [name for name in server.objects() if "/iceberg/committed/" in name]
        assert len(receipts) >= 3
    with server_process(root) as server:
        assert all(ask(server.address, "GET", path).json["metadata"]["properties"]["x"] == "1" for path in paths[:3])


def test_workers_without_their_parent_end_by_themselves(root: Path) -> None:
    with server_process(root, "--workers", "2") as server:
        workers = workers_of(server.popen.pid)
        server.popen.kill()
        server.popen.wait()
        while any(_runs(pid) for pid in workers):
            os.sched_yield()


@pytest.mark.parametrize("workers", ["1", "2"])
def test_all_of_them_end_in_order_when_nobody_holds_their_standard_input(root: Path, workers: str) -> None:
    with server_process(root, "--workers", workers, "--until-stdin-ends", stdin=subprocess.PIPE) as server:
        processes = workers_of(server.popen.pid)
        assert server.popen.stdin is not None
        server.popen.stdin.write("what is said is not heard\n")
        server.popen.stdin.flush()
        with_tables(server, "a")
        server.popen.stdin.close()  # as when whoever held it is killed
        assert server.popen.wait(60) == 0
        assert not [pid for pid in processes if _runs(pid)]
    assert "Traceback" not in server.log


def _runs(pid: int) -> bool:
    """Nobody waits for a process whose parent is gone: it may stay in the list as a name of the dead."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except FileNotFoundError:
        return False


def counted_of(server: ServerProcess, name: str, **labels: str) -> float:
    families = text_string_to_metric_families(ask(server.address, "GET", "/metrics").body.decode())
    samples = [one for family in families for one in family.samples]
    return sum(one.value for one in samples if one.name == name and labels.items() <= one.labels.items())


def test_whichever_worker_is_asked_tells_of_the_requests_of_all_a_moment_later(root: Path) -> None:
    with server_process(root, "--workers", "2") as server:
        (path,) = with_tables(server, "a")
        for _ in range(12):
            assert ask(server.address, "HEAD", path).status == 204
        while counted_of(server, "arco_http_requests_total", status="204") < 12:
            os.sched_yield()
        assert {counted_of(server, "arco_http_requests_total", status="204") for _ in range(12)} == {12}


def test_whichever_worker_is_asked_tells_what_all_of_them_counted_and_the_dead_too(root: Path) -> None:
    def counted() -> float:
        return counted_of(server, "arco_commits_total", outcome="landed")

    with server_process(root, "--workers", "2") as server:
        paths = with_tables(server, "a", "b", "c", "d")
        for number in range(12):
            assert post(server, paths[number % 4], set_property("x", str(number))) == 200
        assert {counted() for _ in range(12)} == {12}
        for victim in workers_of(server.popen.pid):
            os.kill(victim, signal.SIGKILL)
            while len(workers_of(server.popen.pid)) < 2 or victim in workers_of(server.popen.pid):
                os.sched_yield()
        assert {counted() for _ in range(4)} == {12}
        assert post(server, paths[0], set_property("x", "last")) == 200
        assert counted() == 13

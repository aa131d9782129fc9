"""`arco serve` as people run it: with a token, with TLS, with clients that use its page, and told to stop."""

import html
import json
import re
import socket
import ssl
import subprocess
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

import duckdb
import duckdb_extensions
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import UnauthorizedError

from hostile.process import ServerProcess, server_process
from hostile.raw import Wire, ask, head, wire
from servers.launch import process

TOKEN = "canary-token-7d01"
NAMESPACES = "/iceberg/v1/default.default/namespaces"
SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "a", "type": "long", "required": False}]}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "lake"


def post(server: ServerProcess, path: str, body: object) -> int:
    return ask(server.address, "POST", path, json.dumps(body).encode()).status


def with_a_table(server: ServerProcess) -> str:
    """The path of a table that was just made."""
    assert post(server, NAMESPACES, {"namespace": ["ns"]}) == 200
    assert post(server, f"{NAMESPACES}/ns/tables", {"name": "t", "schema": SCHEMA}) == 200
    return f"{NAMESPACES}/ns/tables/t"


def recipes_of(server: ServerProcess) -> dict[str, str]:
    with urllib.request.urlopen(f"{server.address}/") as answer:
        text = answer.read().decode()
    found = re.findall(r'<section id="(\w+)">.*?<pre[^>]*>(.*?)</pre>', text, re.DOTALL)
    return {name: html.unescape(recipe) for name, recipe in found}


# Stopping


def test_a_server_that_is_told_to_stop_finishes_what_it_was_asked(root):
    with server_process(root) as server:
        path = with_a_table(server)
        change = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"x": "1"}}]}
        body = json.dumps(change).encode()
        with wire(server.address) as asking, wire(server.address) as resting:
            asking.send(head("POST", path, f"Content-Length: {len(body)}", "Expect: 100-continue"))
            assert asking.reply().status == 100  # the request is under way
            server.popen.terminate()
            assert resting.is_closed()  # and the server has heard that it is to stop
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", urlsplit(server.address).port))
            asking.send(body)
            reply = asking.reply()
            assert (reply.status, reply.headers["connection"]) == (200, "close")
            location = reply.json["metadata-location"]
        assert server.popen.wait(60) == 0
        receipts = [data for name, data in server.objects().items() if "/iceberg/committed/" in name]
        assert any(json.loads(data)["commit"]["metadata_location"] == location for data in receipts)
    with server_process(root) as server:
        assert ask(server.address, "GET", path).json["metadata"]["properties"]["x"] == "1"


def test_ctrl_c_ends_it_as_well_and_without_a_word(root):
    with server_process(root) as server:
        server.popen.send_signal(2)
        assert server.popen.wait(60) == 0
        assert "Traceback" not in server.log


# Access


def test_a_token_from_the_environment_is_wanted_by_everything_but_the_probes(root):
    with server_process(root, "--oauth", "--log-level", "debug", ARCO_TOKEN=TOKEN) as server:
        uri = f"{server.address}/iceberg"
        for path in ("/health", "/ready", "/"):
            assert ask(server.address, "GET", path).status == 200
        refused = ask(server.address, "GET", NAMESPACES)
        assert refused.json["error"]["type"] == "NotAuthorizedException"
        assert refused.headers["www-authenticate"].startswith("Bearer ")
        with pytest.raises(UnauthorizedError):
            load_catalog("arco", type="rest", uri=uri, token="wrong")
        load_catalog("arco", type="rest", uri=uri, token=TOKEN).create_namespace("by_token")
        by_oauth = load_catalog(
            "arco", type="rest", uri=uri, credential=f"me:{TOKEN}", **{"oauth2-server-uri": f"{uri}/v1/oauth/tokens"}
        )
        assert by_oauth.list_namespaces() == [("by_token",)]
        recipe = recipes_of(server)["duckdb"].replace("YOUR_TOKEN", TOKEN)
        assert duckdb_with_extensions().execute(recipe).fetchall() == []
        assert server.stop() == 0
        assert server.log.count('"message":"request"') > 5
        assert TOKEN not in server.log
    assert not [name for name, data in server.objects().items() if TOKEN.encode() in data]


def test_tls_is_spoken_with_the_given_certificate(root, tmp_path):
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
    ]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(cert)]
    subprocess.run(command, check=True, capture_output=True)
    with server_process(root, "--tls-cert", str(cert), "--tls-key", str(key)) as server:
        assert server.address.startswith("https://127.0.0.1:")
        trusting = ssl.create_default_context(cafile=cert)
        with urllib.request.urlopen(f"{server.address}/health", context=trusting) as answer:
            assert answer.status == 200
        with urllib.request.urlopen(f"{server.address}/", context=trusting) as answer:
            assert f"{server.address}/iceberg" in answer.read().decode()
        assert post_over_tls(server, trusting) == 200
        # Whoever speaks plainly to it is not understood, and the server goes on.
        place = urlsplit(server.address)
        with socket.create_connection((place.hostname, place.port)) as plain:
            plain.sendall(head("GET", "/health"))
            assert Wire(plain).is_closed()
        with urllib.request.urlopen(f"{server.address}/health", context=trusting) as answer:
            assert answer.status == 200


def post_over_tls(server: ServerProcess, trusting: ssl.SSLContext) -> int:
    body = json.dumps({"namespace": ["tls"]}).encode()
    request = urllib.request.Request(f"{server.address}{NAMESPACES}", data=body, method="POST")
    with urllib.request.urlopen(request, context=trusting) as answer:
        return answer.status


# What it says of itself


def duckdb_with_extensions() -> duckdb.DuckDBPyConnection:
    """The recipe installs the extension from the internet unless it is there; here it comes from its package."""
    for name in ("avro", "httpfs", "iceberg"):
        duckdb_extensions.import_extension(name)
    return duckdb.connect()


def test_what_the_page_says_can_be_copied_and_works(root):
    with server_process(root) as server:
        with_a_table(server)
        recipes = recipes_of(server)
        assert set(recipes) == {"spark", "pyiceberg", "duckdb", "trino", "flink", "datafusion", "go"}
        found: dict[str, object] = {"print": print}
        exec(recipes["pyiceberg"], found)
        assert found["catalog"].list_tables("ns") == [("ns", "t")]  # type: ignore[attr-defined]
        tables = duckdb_with_extensions().execute(recipes["duckdb"]).fetchall()
        assert [row[:3] for row in tables] == [("arco", "ns", "t")]


def test_the_log_has_a_line_of_json_for_each_request(root):
    with server_process(root) as server:
        path = with_a_table(server)
        with wire(server.address) as connection:
            connection.send(b"not http\r\n\r\n")
            assert connection.reply().status == 400
        answers = [ask(server.address, "GET", path), ask(server.address, "GET", f"{path}x")]
        assert server.stop() == 0
        lines = [json.loads(line) for line in server.log.splitlines()]
        by_id = {line["request_id"]: line for line in lines if line["message"] == "request"}
        for answer in answers:
            line = by_id[answer.headers["x-request-id"]]
            assert (line["status"], line["bytes"]) == (answer.status, len(answer.body))
            assert line["route"] == "/iceberg/v1/{prefix}/namespaces/{namespace}/tables/{table}"
        assert any("Invalid HTTP request" in line["message"] and line["level"] == "warning" for line in lines)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_where_other_programs_count_is_no_business_of_a_server(root, tmp_path, workers):
    elsewhere = tmp_path / "counts of others"
    elsewhere.mkdir()
    for folder in (elsewhere, tmp_path / "no such folder"):
        with server_process(root, "--workers", workers, PROMETHEUS_MULTIPROC_DIR=str(folder)) as server:
            assert ask(server.address, "GET", "/ready").status == 200
            assert b"arco_http_requests_total" in ask(server.address, "GET", "/metrics").body
    assert list(elsewhere.iterdir()) == []


def test_a_store_that_is_gone_makes_the_server_not_ready(tmp_path):
    folder = tmp_path / "s3"
    folder.mkdir()
    with process("seaweedfs", folder) as running:
        store = running.server
        options = [part for word, value in store.options.items() for part in ("-o", f"{word}={value}")]
        with server_process(tmp_path / "lake", "--root", f"{store.url}/lake", *options) as server:
            assert ask(server.address, "GET", "/ready").status == 200
            running.stop()
            reply = ask(server.address, "GET", "/ready")
            assert (reply.status, reply.headers["retry-after"]) == (503, "1")
            reason = reply.json["error"]["message"].removeprefix("the store does not answer: ")
            assert reason in {"timeout", "unavailable"}
            assert ask(server.address, "GET", "/health").status == 200


def test_a_large_answer_comes_packed_over_the_network(root):
    with server_process(root) as server:
        wide = {
            "type": "struct",
            "fields": [{"id": n, "name": f"column_{n}", "type": "long", "required": False} for n in range(1, 900)],
        }
        assert post(server, NAMESPACES, {"namespace": ["ns"]}) == 200
        assert post(server, f"{NAMESPACES}/ns/tables", {"name": "wide", "schema": wide}) == 200
        path = f"{NAMESPACES}/ns/tables/wide"
        plain, packed = ask(server.address, "GET", path), ask(server.address, "GET", path, b"", "Accept-Encoding: gzip")
        assert packed.headers["content-encoding"] == "gzip"
        assert len(packed.body) * 5 < len(plain.body)
        assert packed.json == plain.json

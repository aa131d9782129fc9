"""Requests made from Iceberg's own REST description, and answers held against it: no server error, no answer of another shape.

The server has a token: every operation that it knows is asked, and none answers without it. Another one, on a bucket, vends
credentials: what carries them is asked there. The description is not part of this repository: `ICEBERG_OPENAPI` says where it
lies. `SCHEMATHESIS_REQUESTS` says how many requests to make, for long campaigns (`make soak`).
"""

import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance

from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.kernel.ids import new_uuid7
from tests.servers.launch import SEAWEEDFS_ROLE_ARN, seaweedfs

from .feed_description import described_feed
from .ground import NAMESPACES, SCHEMA, TABLES, VIEW_SCHEMA, VIEW_VERSION, VIEWS
from .process import server_process

OPENAPI = os.environ.get("ICEBERG_OPENAPI", "")
REQUESTS = int(os.environ.get("SCHEMATHESIS_REQUESTS", "0"))
FEED = "/v1/{prefix}/events"
TABLE = "/v1/{prefix}/namespaces/{namespace}/tables/{table}"
CREDENTIALS = f"GET {TABLE}/credentials"
CARRIERS = [CREDENTIALS, f"GET {TABLE}", "POST /v1/{prefix}/namespaces/{namespace}/tables"]
DELEGATED = {"X-Iceberg-Access-Delegation": "vended-credentials"}
BOTH_MODES = pytest.mark.parametrize(
    "mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=lambda mode: mode.value
)
TOKEN = "token-of-the-described"
KEY = "Idempotency-Key"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
CHECKS = [not_a_server_error, content_type_conformance, response_schema_conformance]
# What is there to be found, among names that are not.
KNOWN = {"prefix": "default.default", "namespace": "ns", "table": "t", "view": "v"}
# Answers about HTTP itself, which a description of the catalog need not list.
ABOUT_HTTP = {405, 408, 413, 414, 415, 431}
# A namespace may have a parent, which may be missing; the description does not think of it.
NOT_DESCRIBED = {"POST /v1/{prefix}/namespaces": {404}}

if REQUESTS and not Path(OPENAPI).is_file():
    # A campaign that makes no request has shown nothing.
    pytest.exit("set ICEBERG_OPENAPI to the path of Iceberg's rest-catalog-open-api.yaml", returncode=2)

pytestmark = pytest.mark.skipif(not OPENAPI, reason="ICEBERG_OPENAPI does not say where Iceberg's REST description lies")


if REQUESTS:
    pytestmark = [pytestmark, pytest.mark.timeout(4 * 3600)]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with a token, on a folder."""
    root = Path(tmp_path_factory.mktemp("described")) / "lake"
    with server_process(root, "--log-level", "warning", ARCO_TOKEN=TOKEN) as server:
        found(server.address)
        yield server.address
        assert "Traceback" not in server.log


@pytest.fixture(scope="module")
def vending_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with a token, on a bucket, that vends."""
    with seaweedfs(tmp_path_factory.mktemp("s3")) as store:
        options = [part for word, value in store.options.items() for part in ("-o", f"{word}={value}")]
        vend = ("--vend", "sts", "--vend-role", SEAWEEDFS_ROLE_ARN, "--vend-endpoint", store.endpoint)
        beside = Path(tmp_path_factory.mktemp("log")) / "lake"
        flags = ("--root", f"{store.url}/lake", *options, *vend, "--log-level", "warning")
        with server_process(beside, *flags, ARCO_TOKEN=TOKEN) as server:
            found(server.address)
            yield server.address
            assert "Traceback" not in server.log


def found(address: str) -> None:
    """A namespace, a table and a view."""
    for path, body in (
        (NAMESPACES, {"namespace": ["ns"], "properties": {"a": "1"}}),
        (TABLES, {"name": "t", "schema": SCHEMA}),
        (VIEWS, {"name": "v", "schema": VIEW_SCHEMA, "view-version": VIEW_VERSION, "properties": {}}),
    ):
        answer = requests.post(f"{address}{path}", json=body, headers=BEARER, timeout=60)
        assert answer.status_code == 200, answer.text


@cache
def described() -> dict[str, Any]:
    """Every operation of the description, by its name in the list of endpoints; those that delete come last."""
    document = yaml.safe_load(Path(OPENAPI).read_text())
    document["paths"].setdefault(FEED, described_feed())
    for path in document["paths"].values():
        for operation in path.values():
            for response in operation.get("responses", {}).values() if isinstance(operation, dict) else ():
                _wrap(response)
    found = [result.ok() for result in schemathesis.openapi.from_dict(document).get_all_operations()]
    found.sort(key=lambda operation: operation.method == "delete")
    return {f"{operation.method.upper()} {operation.path}": operation for operation in found}


def _wrap(response: dict[str, Any]) -> None:
    """The description wraps all errors, it says, and its examples are wrapped; some routes of views name the inner shape."""
    for content in response.get("content", {}).values():
        if content["schema"].get("$ref", "").endswith("/ErrorModel"):
            content["schema"] = {"$ref": "#/components/schemas/IcebergErrorResponse"}


def endpoints_of(address: str) -> list[str]:
    found: list[str] = requests.get(f"{address}/iceberg/v1/config", headers=BEARER, timeout=60).json()["endpoints"]
    return found


def advertised(address: str) -> list[str]:
    endpoints = endpoints_of(address)
    return [name for name in described() if name in {*endpoints, "GET /v1/config"}]


def test_what_the_server_advertises_is_described(address: str) -> None:
    endpoints = endpoints_of(address)
    assert set(endpoints) <= set(described())
    assert len(advertised(address)) == len(endpoints) + 1
    assert CREDENTIALS not in endpoints


@BOTH_MODES
def test_answers_are_as_described(address: str, mode: GenerationMode) -> None:
    replayed = check_all(address, mode, advertised(address), REQUESTS or 400)
    assert replayed, "no request was sent twice under its key"
    # Made by the letter, some are done and some are refused for what they say: a key that is no good would refuse all of them.
    assert mode is GenerationMode.NEGATIVE or {status // 100 for status in replayed} > {2}


@BOTH_MODES
def test_answers_with_credentials_are_as_described(vending_address: str, mode: GenerationMode) -> None:
    """What carries credentials, asked for with the header that asks for them."""
    assert CREDENTIALS in endpoints_of(vending_address)
    check_all(vending_address, mode, CARRIERS, 32 if not REQUESTS else REQUESTS // 20, DELEGATED)


def check_all(
    address: str, mode: GenerationMode, names: list[str], requests_max: int, more: dict[str, str] | None = None
) -> list[int]:
    """Each operation gets its share of the requests, which both modes have together. How those that were sent twice came out."""
    complaints: list[str] = []
    replayed: list[int] = []
    for name in names:
        try:
            replayed += ask_and_check(address, name, mode, -(-requests_max // (2 * len(names))), BEARER | (more or {}))
        except FailureGroup as group:
            complaints += [f"{name}: {one}" for one in group.exceptions]
        except (Failure, AssertionError) as failure:
            complaints.append(f"{name}: {failure}")
    assert not complaints, "\n\n".join(complaints)
    return replayed


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {TOKEN}"}], ids=str)
def test_nothing_is_answered_without_the_token(address: str, headers: dict[str, str]) -> None:
    """Also not what the description has and this server does not: who has no token is not told which."""
    for name, operation in described().items():
        values = {one: KNOWN.get(one, "x") for one in re.findall(r"{([^}]+)}", operation.path)}
        path = operation.path.format(**values)
        for body in (None, {}):
            answer = requests.request(operation.method, f"{address}/iceberg{path}", json=body, headers=headers, timeout=60)
            assert answer.status_code == 401, f"{name}: {answer.status_code}"


def ask_and_check(address: str, name: str, mode: GenerationMode, examples: int, headers: dict[str, str]) -> list[int]:
    """The same requests every time: the description decides them, and nothing else but their keys. How those that were sent
    twice were answered."""
    replayed: list[int] = []
    operation = described()[name]
    takes_a_key = any(one.name.lower() == KEY.lower() for one in operation.headers)
    documented = {int(code) for code in operation.definition.raw["responses"] if str(code).isdigit()}

    @given(case=operation.as_strategy(generation_mode=mode), seldom=st.integers(0, 3))
    @settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def check(case: Any, seldom: int) -> None:
        if seldom:
            case.path_parameters.update({name: KNOWN[name] for name in case.path_parameters if name in KNOWN})
            # Made by the letter it is any UUID: one that this server takes has the time in it.
            case.headers.pop(KEY, None)
        key = {KEY: new_uuid7(SystemClock(), SystemEntropy())} if takes_a_key and seldom > 1 else {}
        for word in [word for word in case.headers if word.lower() in {"authorization", *map(str.lower, headers)}]:
            del case.headers[word]
        response = case.call(base_url=f"{address}/iceberg", headers=headers | key)
        if key:
            # Sent again it is answered alike, whatever it came to; the key may be spelled in capitals.
            again = case.call(base_url=f"{address}/iceberg", headers=headers | {KEY: key[KEY].upper()})
            assert again.status_code == response.status_code, f"sent again: {again.status_code}: {case.as_curl_command()}"
            replayed.append(response.status_code)
        sensible = documented | ABOUT_HTTP | NOT_DESCRIBED.get(name, set())
        assert response.status_code in sensible, f"{response.status_code}: {case.as_curl_command()}"
        if response.status_code in documented:
            case.validate_response(response, checks=CHECKS)

    check()
    return replayed

"""Requests made from Iceberg's own REST description, and answers held against it: no server error, no answer of another shape.

The description is not part of this repository: `ICEBERG_OPENAPI` says where it lies.
"""

import os
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

from .ground import ground

OPENAPI = os.environ.get("ICEBERG_OPENAPI", "")
EXAMPLES_MAX = 8
CHECKS = [not_a_server_error, content_type_conformance, response_schema_conformance]
# What is there to be found, among names that are not.
KNOWN = {"prefix": "default.default", "namespace": "ns", "table": "t", "view": "v"}
# Answers about HTTP itself, which a description of the catalog need not list.
ABOUT_HTTP = {405, 408, 413, 414, 415, 431}
# A namespace may have a parent, which may be missing; the description does not think of it.
NOT_DESCRIBED = {"POST /v1/{prefix}/namespaces": {404}}

pytestmark = pytest.mark.skipif(not OPENAPI, reason="ICEBERG_OPENAPI does not say where Iceberg's REST description lies")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with ground(Path(tmp_path_factory.mktemp("described")) / "lake") as made:
        yield made.server.address


@cache
def described() -> dict[str, Any]:
    """Every operation of the description, by its name in the list of endpoints; those that delete come last."""
    document = yaml.safe_load(Path(OPENAPI).read_text())
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


def advertised(address: str) -> list[str]:
    endpoints = requests.get(f"{address}/iceberg/v1/config", timeout=60).json()["endpoints"]
    return [name for name in described() if name in {*endpoints, "GET /v1/config"}]


def test_what_the_server_advertises_is_described(address: str) -> None:
    endpoints = requests.get(f"{address}/iceberg/v1/config", timeout=60).json()["endpoints"]
    assert set(endpoints) <= set(described())
    assert len(advertised(address)) == len(endpoints) + 1


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=lambda mode: mode.value)
def test_answers_are_as_described(address: str, mode: GenerationMode) -> None:
    complaints: list[str] = []
    for name in advertised(address):
        try:
            ask_and_check(address, name, mode)
        except FailureGroup as group:
            complaints += [f"{name}: {one}" for one in group.exceptions]
        except (Failure, AssertionError) as failure:
            complaints.append(f"{name}: {failure}")
    assert not complaints, "\n\n".join(complaints)


def ask_and_check(address: str, name: str, mode: GenerationMode) -> None:
    """The same requests every time: the description decides them, and nothing else."""
    operation = described()[name]
    documented = {int(code) for code in operation.definition.raw["responses"] if str(code).isdigit()}

    @given(case=operation.as_strategy(generation_mode=mode), seldom=st.integers(0, 3))
    @settings(
        max_examples=EXAMPLES_MAX,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def check(case: Any, seldom: int) -> None:
        if seldom:
            case.path_parameters.update({name: KNOWN[name] for name in case.path_parameters if name in KNOWN})
            # Made by the letter it is any UUID: one that this server takes has the time in it.
            case.headers.pop("Idempotency-Key", None)
        response = case.call(base_url=f"{address}/iceberg")
        sensible = documented | ABOUT_HTTP | NOT_DESCRIBED.get(name, set())
        assert response.status_code in sensible, f"{response.status_code}: {case.as_curl_command()}"
        if response.status_code in documented:
            case.validate_response(response, checks=CHECKS)

    check()

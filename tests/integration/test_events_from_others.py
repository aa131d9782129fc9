"""Events and lineage on a running server, as other systems send them: plain HTTP, and what is in the ledger afterwards."""

import gzip
import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from openlineage.client import OpenLineageClient, event_v2

from .arco_server import arco_server

RUN = "0199d2f1-5f99-7000-8000-000000000001"
PRODUCER = "https://github.com/OpenLineage/OpenLineage/tree/1.40.0/client/python"
# The documents that the Python client of OpenLineage sends for a run with one input and one output.
STARTED: dict[str, Any] = {
    "eventTime": "2025-10-11T09:08:07.065123+00:00",
    "eventType": "START",
    "inputs": [],
    "job": {"facets": {}, "name": "load.orders", "namespace": "airflow"},
    "outputs": [],
    "producer": PRODUCER,
    "run": {"facets": {}, "runId": RUN},
    "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
}
COMPLETED = STARTED | {
    "eventTime": "2025-10-11T09:09:07.000000+00:00",
    "eventType": "COMPLETE",
    "inputs": [{"facets": {}, "inputFacets": {}, "name": "public.orders", "namespace": "postgres://db:5432"}],
    "outputs": [{"facets": {}, "name": "warehouse/orders", "namespace": "s3://lake", "outputFacets": {}}],
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(tmp_path_factory.mktemp("lake"))


@pytest.fixture(scope="module")
def address(root: Path) -> Iterator[str]:
    with arco_server(root) as found:
        yield found.removesuffix("/iceberg")


def post(url: str, body: Any, **headers: str) -> tuple[int, str, Any]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    request = urllib.request.Request(url, data=data, headers={"Content-Type": "application/json"} | named)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.headers["Content-Type"], json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, error.headers["Content-Type"], json.loads(error.read())


def stats(root: Path) -> dict[str, Any]:
    """What another process sees in the ledger."""
    arco = Path(sys.executable).with_name("arco")
    done = subprocess.run(
        [str(arco), "ledger", "stats", "--root", str(root), "--json"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return {one["domain"]: one for one in json.loads(done.stdout)["domains"]}


def test_what_is_answered_is_in_the_ledger_for_everybody(address: str, root: Path) -> None:
    before = stats(root)["execution"]["events"]
    ended = {"run_id": "r", "state": "failed", "tasks": {}, "started_ms": None, "ended_ms": 1}
    events = [
        {"specversion": "1.0", "id": f"{n}", "source": "airflow", "type": "execution.run_completed.v1", "data": ended}
        for n in range(1000)
    ]
    packed = gzip.compress(json.dumps(events).encode())
    status, _, answer = post(
        f"{address}/api/v1/events", packed, Content_Type="application/cloudevents-batch+json", Content_Encoding="gzip"
    )
    assert (status, answer["accepted"]) == (202, 1000)
    found = stats(root)["execution"]
    assert found["events"] == before + 1000
    assert found["set_aside"] == []


def test_what_is_refused_is_nowhere(address: str, root: Path) -> None:
    before = stats(root)
    status, kind, problem = post(f"{address}/api/v1/events", [{"type": "audit.action_recorded.v1"}, 7])
    assert (status, kind, [one["index"] for one in problem["errors"]]) == (400, "application/problem+json", [0, 1])
    assert stats(root) == before


@pytest.mark.parametrize("packing", ["identity", "gzip"])
def test_openlineage_is_taken_where_its_clients_post(address: str, root: Path, packing: str) -> None:
    for event in (STARTED, COMPLETED, COMPLETED):
        body = json.dumps(event).encode()
        data = gzip.compress(body) if packing == "gzip" else body
        status, _, answer = post(f"{address}/api/v1/lineage", data, Content_Encoding=packing)
        assert status == 202, answer
    found = stats(root)
    assert found["lineage"]["set_aside"] == found["execution"]["set_aside"] == []
    assert found["lineage"]["events"] >= 3


def test_the_client_of_openlineage_itself(address: str, root: Path) -> None:
    before = stats(root)["lineage"]["events"]
    sender = OpenLineageClient(url=address)
    sender.emit(
        event_v2.RunEvent(
            eventTime="2025-10-12T09:08:07.065123+00:00",
            eventType=event_v2.RunState.COMPLETE,
            run=event_v2.Run(runId=RUN),
            job=event_v2.Job(namespace="airflow", name="load.orders"),
            inputs=[event_v2.InputDataset(namespace="postgres://db:5432", name="public.orders")],
            outputs=[event_v2.OutputDataset(namespace="s3://lake", name="warehouse/orders")],
            producer=PRODUCER,
        )
    )
    assert stats(root)["lineage"]["events"] == before + 2


def test_lineage_of_others_is_the_tables_own_before_a_fold_and_after_it(address: str, root: Path) -> None:
    spaces = f"{address}/iceberg/v1/default.default/namespaces"
    assert post(spaces, {"namespace": ["shop"]})[0] == 200
    schema = {"type": "struct", "fields": [{"id": 1, "name": "a", "type": "long", "required": False}]}
    status, _, made = post(f"{spaces}/shop/tables", {"name": "orders", "schema": schema})
    assert status == 200, made
    # As the integration for Spark names it: by where its files lie.
    place = {"namespace": "file", "name": urlsplit(made["metadata"]["location"]).path}
    event = COMPLETED | {"run": {"runId": RUN[:-1] + "9"}, "outputs": [place]}
    assert post(f"{address}/api/v1/lineage", event)[0] == 202
    used = event | {"run": {"runId": RUN[:-1] + "8"}, "inputs": [place], "outputs": [{"namespace": "bi", "name": "sales"}]}
    assert post(f"{address}/api/v1/lineage", used)[0] == 202

    def beyond(direction: str, fresh: str) -> list[tuple[str, str]]:
        url = f"{address}/api/v1/assets/shop.orders/lineage?direction={direction}&fresh={fresh}"
        with urllib.request.urlopen(url, timeout=60) as answer:
            return [(one["name"], one["kind"]) for one in json.loads(answer.read())["nodes"] if one["depth"]]

    assert beyond("upstream", "true") == [("public.orders", "external")]
    assert beyond("downstream", "true") == [("sales", "external")]
    arco = Path(sys.executable).with_name("arco")
    subprocess.run([str(arco), "fold", "--root", str(root)], capture_output=True, timeout=240, check=True)
    assert beyond("upstream", "false") == [("public.orders", "external")]
    assert beyond("downstream", "false") == [("sales", "external")]

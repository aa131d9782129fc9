"""What clients measured: kept of namespaces that are there, also of tables that are not; a path makes no workspace."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from arco.kernel.clock import SystemClock
from arco.kernel.scope import Scope
from arco.storage.memory import MemoryStore
from arco.storage.workspaces import is_in_use, workspaces
from arco.surface.http.app import App
from stand_ins.asgi import Answer, ask, make_app

HOME = "/iceberg/v1/default.default/namespaces"
REPORT = {"report-type": "scan-report", "table-name": "ns.t", "snapshot-id": 1}


class Reporting:
    """Two servers on one store; a namespace was made through the first."""

    def __init__(self, runner: asyncio.Runner) -> None:
        self.runner = runner
        self.store = MemoryStore(SystemClock())
        self.one, self.other = (make_app(store=self.store, seed=seed) for seed in (1, 2))
        assert self.send(self.one, HOME, {"namespace": ["ns"]}).status == 200

    def send(self, app: App, path: str, body: Any, method: str = "POST", **headers: str) -> Answer:
        return self.runner.run(ask(app, method, path, b"" if body is None else json.dumps(body).encode(), **headers))

    def report(self, app: App, path: str) -> Answer:
        return self.send(app, f"{path}/tables/t/metrics", REPORT)


@pytest.fixture
def reporting() -> Iterator[Reporting]:
    with asyncio.Runner() as runner:
        yield Reporting(runner)


def test_a_report_of_a_table_that_is_not_there_is_kept(reporting: Reporting) -> None:
    assert reporting.report(reporting.one, f"{HOME}/ns").status == 204
    assert [key for key in reporting.store._objects if "/ledger/iceberg/" in key]


def test_a_server_that_has_not_read_the_names_yet_looks_before_it_refuses(reporting: Reporting) -> None:
    assert reporting.report(reporting.other, f"{HOME}/ns").status == 204
    assert reporting.send(reporting.one, HOME, {"namespace": ["later"]}).status == 200
    assert reporting.report(reporting.other, f"{HOME}/later").status == 204


def test_a_report_of_a_namespace_that_is_known_asks_the_store_nothing(reporting: Reporting, monkeypatch) -> None:
    def asked(*_: object) -> None:
        raise AssertionError

    for request in ("head", "get", "list_page"):
        monkeypatch.setattr(reporting.store, request, asked)
    assert reporting.report(reporting.one, f"{HOME}/ns").status == 204


def test_a_report_of_what_is_not_there_makes_no_workspace(reporting: Reporting) -> None:
    before = dict(reporting.store._objects)
    for path in (f"{HOME}/no", "/iceberg/v1/aaa.x/namespaces/ns"):
        assert reporting.report(reporting.one, path).error == (404, "NoSuchNamespaceException")
    assert reporting.store._objects.keys() == before.keys()
    assert reporting.runner.run(workspaces(reporting.store, 10)) == [Scope.of()]
    assert not reporting.runner.run(is_in_use(reporting.store, Scope.of("aaa", "x")))
    assert not reporting.one._state._appenders.keys() - {Scope.of()}

"""Marks of personal data: on columns that are there, and with the column wherever its name goes."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from arco.catalog.model import Governance
from stand_ins.asgi import Answer, ask, make_app

NAMESPACES = "/iceberg/v1/default.default/namespaces"
TABLE = f"{NAMESPACES}/ns/tables/t"
ONE = "/api/v1/tables?namespace=ns&name="
MAIL = {"id": 1, "name": "mail", "type": "string", "required": False}
CITY = {"id": 3, "name": "city", "type": "string", "required": False}
ADDRESS = {"id": 2, "name": "address", "required": False, "type": {"type": "struct", "fields": [CITY]}}


class Served:
    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self.app = make_app()
        self.send("POST", NAMESPACES, {"namespace": ["ns"]})
        self.send("POST", f"{NAMESPACES}/ns/tables", {"name": "t", "schema": struct(MAIL, ADDRESS)})

    def send(self, method: str, path: str, body: object = None) -> Answer:
        return self._runner.run(ask(self.app, method, path, b"" if body is None else json.dumps(body).encode()))

    def mark(self, name: str = "t", **marks: str) -> Answer:
        return self.send("PATCH", f"{ONE}{name}", {"pii_columns": marks})

    def marks(self, name: str = "t") -> Any:
        return self.send("GET", f"{ONE}{name}").json["pii_columns"]

    def now(self, *fields: dict[str, Any]) -> None:
        """The table gets another schema."""
        updates = [{"action": "add-schema", "schema": struct(*fields)}, {"action": "set-current-schema", "schema-id": -1}]
        answer = self.send("POST", TABLE, {"requirements": [], "updates": updates})
        assert answer.status == 200, answer.json

    def end(self) -> None:
        self._runner.run(self.app._state.settle())
        self._runner.close()


def struct(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


@pytest.fixture
def served() -> Iterator[Served]:
    made = Served()
    yield made
    made.end()


def test_a_mark_of_a_column_that_is_not_there_is_refused_with_its_name(served: Served) -> None:
    answer = served.mark(mail="email", mial="email", phone="phone")
    assert answer.status == 400
    assert "mial, phone" in answer.json["detail"]
    assert served.marks() == {}


def test_a_mark_goes_with_its_column_at_any_depth(served: Served) -> None:
    assert served.send("PATCH", f"{ONE}t", {"pii_columns": {"mail": "email", "address.city": "place"}}).status == 204
    served.now({**MAIL, "name": "contact"}, {**ADDRESS, "name": "home"})
    assert served.marks() == {"contact": "email", "home.city": "place"}
    served.now(
        {**MAIL, "name": "contact"},
        {**ADDRESS, "name": "home"},
        {"id": 4, "name": "mail", "type": "long", "required": False},
    )
    assert served.marks() == {"contact": "email", "home.city": "place"}, "a new column of the old name is another"


def test_a_mark_whose_column_is_gone_is_shown_and_may_be_sent_back(served: Served) -> None:
    assert served.mark(mail="email").status == 204
    served.now(ADDRESS)
    assert served.marks() == {"mail": "email"}
    assert served.mark(mail="email", address="place").status == 204
    assert served.marks() == {"mail": "email", "address": "place"}
    served.now({**MAIL, "name": "mail2"}, ADDRESS)
    assert served.marks() == {"mail2": "email", "address": "place"}, "its column came back"
    assert served.mark(address="place").status == 204
    assert served.mark(mail="email").status == 400


def test_marks_of_another_format_are_held_against_the_columns_that_were_told(served: Served) -> None:
    body = {"namespace": ["ns"], "name": "c", "format": "CSV", "location": "s3://x/y", "pii_columns": {"m": "email"}}
    columns = [{"name": "n", "type": "string"}]
    assert served.send("POST", "/api/v1/tables", body | {"columns": columns}).status == 400
    assert served.send("POST", "/api/v1/tables", body).status == 200, "nobody told its columns"
    assert served.mark("c", z="email").status == 204
    assert served.send("PATCH", f"{ONE}c", {"columns": columns}).status == 204
    assert served.mark("c", m="email").status == 400
    assert served.mark("c", n="email").status == 204
    assert served.marks("c") == {"n": "email"}
    new = {"columns": [{"name": "o", "type": "string"}], "pii_columns": {"o": "email"}}
    assert served.send("PATCH", f"{ONE}c", new).status == 204


def test_the_ids_are_nobody_elses_to_set(served: Served) -> None:
    assert served.send("PATCH", f"{ONE}t", {"pii_field_ids": {"mail": 3}}).status == 400


def test_marks_of_before_ids_were_kept_are_shown_by_their_name() -> None:
    assert msgspec.convert({"pii_columns": {"mail": "email"}}, Governance).pii_field_ids == {}

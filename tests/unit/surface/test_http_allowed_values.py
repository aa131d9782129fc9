"""What is refused says what is taken: words of a list, codecs of metadata files, pages, keys."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from arco.catalog.subject import Tables
from arco.iceberg.metadata import TableMetadata
from stand_ins.asgi import Answer, ask, make_app

NAMESPACES = "/iceberg/v1/default.default/namespaces"
TABLES = f"{NAMESPACES}/ns/tables"
SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "a", "type": "long", "required": False}]}
CODEC = "write.metadata.compression-codec"
OTHER = {"namespace": ["ns"], "name": "o", "format": "CSV", "location": "s3://x/y"}


class Served:
    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self.app = make_app()
        self.send("POST", NAMESPACES, {"namespace": ["ns"]})
        self.send("POST", TABLES, {"name": "t", "schema": SCHEMA})

    def send(self, method: str, path: str, body: object = None, **headers: str) -> Answer:
        data = b"" if body is None else json.dumps(body).encode()
        return self._runner.run(ask(self.app, method, path, data, **headers))

    def set(self, value: str) -> Answer:
        updates = [{"action": "set-properties", "updates": {CODEC: value}}]
        return self.send("POST", f"{TABLES}/t", {"requirements": [], "updates": updates})

    def end(self) -> None:
        self._runner.run(self.app._state.settle())
        self._runner.close()


@pytest.fixture
def served() -> Iterator[Served]:
    made = Served()
    yield made
    made.end()


@pytest.mark.parametrize(
    ("method", "path", "body", "words"),
    [
        ("POST", "/api/v1/tables", OTHER | {"format": "ORC"}, "DELTA, PARQUET, CSV"),
        ("POST", "/api/v1/tables", OTHER | {"sensitivity": "HIGH"}, "PUBLIC, INTERNAL, CONFIDENTIAL, RESTRICTED"),
        (
            "PATCH",
            "/api/v1/tables?namespace=ns&name=t",
            {"sensitivity": "HIGH"},
            "PUBLIC, INTERNAL, CONFIDENTIAL, RESTRICTED",
        ),
    ],
)
def test_a_word_that_is_not_on_the_list_is_refused_with_the_list(
    served: Served, method: str, path: str, body: Any, words: str
) -> None:
    answer = served.send(method, path, body)
    assert answer.status == 400
    assert words in answer.body.decode()


def test_a_page_size_that_is_no_number_is_said_to_be_one(served: Served) -> None:
    for path in (NAMESPACES, TABLES):
        message = served.send("GET", f"{path}?pageSize=x").json["error"]["message"]
        assert "pageSize is 'x'" in message
        assert "pageToken" not in message
        assert "pageToken" in served.send("GET", f"{path}?pageToken=x&pageSize=1").json["error"]["message"]


def test_a_key_that_is_none_is_not_told_to_be_in_small_letters(served: Served) -> None:
    answer = served.send("POST", NAMESPACES, {"namespace": ["x"]}, Idempotency_Key="NOT-A-KEY")
    assert answer.status == 400
    assert "lower case" not in answer.json["error"]["message"]


def test_metadata_is_compressed_with_gzip_or_not_at_all(served: Served) -> None:
    for value in ("zstd", "lz4", ""):
        refusal = served.set(value)
        assert refusal.status == 400
        assert "none or gzip" in refusal.json["error"]["message"]
        body = {"name": "u", "schema": SCHEMA, "properties": {CODEC: value}}
        assert served.send("POST", TABLES, body).status == 400
        assert served.send("POST", TABLES, body | {"stage-create": True}).status == 400
    for value in ("gzip", "GZIP", "none"):
        assert served.set(value).status == 200


def test_a_table_that_has_another_codec_of_old_is_written_plain() -> None:
    metadata = TableMetadata({"location": "s3://b/t", "properties": {CODEC: "zstd"}})
    assert Tables().metadata_file(metadata, "00000-a.metadata.json") == "s3://b/t/metadata/00000-a.metadata.json"

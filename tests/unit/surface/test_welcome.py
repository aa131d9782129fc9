"""The page at /: what runs, how to connect, and nothing that is not for everybody."""

import asyncio
import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest

from arco.kernel.secret import Secret
from arco.surface.http.access import Access
from arco.surface.http.app import Setup
from arco.surface.http.connecting import Place, recipes
from arco.surface.http.welcome import About
from stand_ins.asgi import Answer, ask, make_app

CANARY = "canary-5e0b"
ABOUT = About("1.2.3", "s3://bucket/lake", "s3", "http")


def page(access: Access, **headers: str) -> Answer:
    answer = asyncio.run(ask(make_app(Setup(access=access, about=ABOUT)), "GET", "/", **headers))
    assert answer.status == 200
    return answer


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in {"meta", "!doctype"}:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_says_what_runs_and_how_to_connect():
    text = page(Access()).body.decode()
    for word in ("1.2.3", "s3://bucket/lake", "default/default", "http://127.0.0.1:8181/iceberg", "from this machine only"):
        assert word in text
    for client in ("Spark", "PyIceberg", "DuckDB", "Trino", "Flink", "DataFusion"):
        assert f"<h3>{client}</h3>" in text


def test_the_page_is_whole_html_without_scripts_and_without_anything_from_elsewhere():
    answer = page(Access())
    tags = Tags(answer.body.decode())
    assert tags.open == []
    names = [name for name, _ in tags.seen]
    assert not {"script", "img", "link", "iframe", "form"} & set(names)
    links = [attributes["href"] for name, attributes in tags.seen if name == "a"]
    assert links
    assert all(link.startswith(("#", "/")) for link in links)
    targets = {f"#{attributes['id']}" for _, attributes in tags.seen if "id" in attributes}
    assert {link for link in links if link.startswith("#")} <= targets
    style = re.findall(r"<style>(.*?)</style>", answer.body.decode(), re.DOTALL)[0]
    allowed = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{allowed}'" in answer.headers["content-security-policy"]
    assert answer.headers["content-type"] == "text/html; charset=utf-8"


def test_a_server_with_a_token_tells_strangers_neither_its_root_nor_its_version_nor_the_token():
    text = page(Access(Secret(CANARY))).body.decode()
    for word in ("1.2.3", "s3://bucket/lake", CANARY):
        assert word not in text
    assert "with a bearer token" in text
    assert text.count("YOUR_TOKEN") == 7


@pytest.mark.parametrize("host", ["<script>alert(1)</script>", "a'b", 'a"b', "q q", "x" * 300])
def test_a_host_that_is_none_is_not_repeated(host):
    text = page(Access(Secret(CANARY)), Host=host).body.decode()
    assert host not in text
    assert "http://localhost/iceberg" in text


def test_a_server_open_to_everybody_says_so():
    assert (
        "open to everybody who can reach it"
        in page(Access(None, this_machine_only=False), Host="lake.example").body.decode()
    )


@pytest.mark.parametrize("kind", ["file", "s3", "gs", "az"])
@pytest.mark.parametrize("wants_token", [True, False])
def test_every_recipe_names_the_catalog_and_the_warehouse(kind, wants_token):
    for recipe in recipes(Place("https://lake.example/iceberg", "acme/prod", kind, wants_token)):
        assert "https://lake.example/iceberg" in recipe.text
        assert "acme/prod" in recipe.text
        assert ("YOUR_TOKEN" in recipe.text) is wants_token

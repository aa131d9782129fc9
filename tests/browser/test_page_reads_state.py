"""A page alone asks the folded state: links, range requests, DuckDB-WASM. Everything it runs is in docs/browser.md."""

import base64
import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any
from urllib.parse import quote

import pytest

from arco.fold.vocabulary import bucket_of
from arco.fold.words import trigrams, words_of_name, words_of_text
from arco.read.linked_files import Wanted
from browser.chromium import Asked, Chromium, Page, Said
from browser.conftest import RUNS, Lake, Sites
from tests.integration.logged_server import Serving

pytestmark = pytest.mark.browser

FILES = "/api/v1/catalog/files/"
LINE = (
    *("asset_id", "asset", "namespace", "kind", "project", "description", "owners", "tags", "retired"),
    *("fresh_within_s", "deployed_at"),
)
VERSION = (
    *("partition_id", "partition_key", "materialization_id", "run_id", "task_id", "attempt", "table_uuid", "snapshot_id"),
    *("sequence_number", "schema_id", "mode", "rows", "bytes", "files", "code", "code_version", "plan_fingerprint"),
    *("checks_failed", "quality", "started_at", "published_at"),
)


def every(server: Serving, path: str) -> list[dict[str, Any]]:
    """All pages of a list, as the API answers it."""
    found: list[dict[str, Any]] = []
    cursor = ""
    while cursor is not None:
        page = server.get(f"{path}&limit=1000{cursor and f'&cursor={quote(cursor)}'}")
        found += page["items"]
        cursor = page["next_cursor"]
    return found


def selected(columns: Iterable[str]) -> str:
    """Columns for a page, moments as milliseconds."""
    return ", ".join(f"epoch_ms({name})::DOUBLE AS {name}" if name.endswith("_at") else name for name in columns)


def as_page(row: dict[str, Any], columns: Iterable[str]) -> dict[str, Any]:
    """Those columns of a row of the API, as a page has them."""

    def value(name: str) -> Any:
        found = row[name]
        return datetime.fromisoformat(found).timestamp() * 1000 if name.endswith("_at") and found else found

    return {name: value(name) for name in columns}


def objects(requests: Iterable[Asked]) -> set[str]:
    """The objects that were read through links."""
    return {json.loads(_decoded(one.url.rpartition("/")[2]))[1] for one in requests if FILES in one.url}


def _decoded(token: str) -> bytes:
    said = token.partition(".")[0]
    return base64.urlsafe_b64decode(said + "=" * (-len(said) % 4))


def fetched(server: Serving, since: int = 0) -> list[dict[str, Any]]:
    """What the server was asked for through links, by its own log: a browser's cache is not in it."""
    return [line for line in server.lines()[since:] if line.get("route") == f"{FILES}{{token}}" and line["method"] == "GET"]


# Answers


def test_a_page_lists_assets_as_the_api_does(page: Page, server: Serving) -> None:
    links = page.call("open", server.address, {"tables": ["assets"]})
    assert {one["layer"] for one in links["files"]} == {0, 1}, "rows of one asset are in several files"
    rows = page.call("ask", f"SELECT {selected(LINE)} FROM assets WHERE NOT coalesce(retired, false) ORDER BY asset")
    assert rows == [as_page(row, LINE) for row in every(server, "/api/v1/assets?")]
    assert len(rows) > 4000


def test_a_page_lists_what_was_published_of_an_asset_from_the_files_of_its_bucket(
    page: Page, server: Serving, lake: Lake
) -> None:
    page.call("open", server.address, {"tables": ["assets"]})
    (found,) = page.call("ask", "SELECT asset_id FROM assets WHERE asset = 'shop.orders'")
    here = page.call("words", [found["asset_id"]], [])["buckets"][0]
    opened = page.tried("open", server.address, {"tables": ["materializations"], "buckets": [here]})
    asked = page.tried(
        "ask",
        f"""SELECT {selected(VERSION)} FROM materializations WHERE bucket = {here} AND asset_id = '{found["asset_id"]}'
            ORDER BY materializations.published_at DESC, materialization_id DESC, partition_id DESC""",
    )
    assert asked.value == [as_page(row, VERSION) for row in every(server, "/api/v1/assets/shop.orders/materializations?")]
    assert len(asked.value) > 50
    read = objects(opened.requests + asked.requests)
    assert read == set(lake.named(Wanted(tables=("materializations",), buckets=(here,))))
    assert read < set(lake.named(Wanted(tables=("materializations",))))


def test_a_page_reads_parts_of_files_and_only_those_that_it_has_links_to(page: Page, server: Serving, lake: Lake) -> None:
    before = len(server.lines())
    first = lake.snapshots[0]
    opened = page.tried("open", server.address, {"snapshot": first, "tables": ["runs"]})
    asked = page.tried("ask", "SELECT state, count(*)::INTEGER AS runs FROM runs GROUP BY 1")
    failed = {row["state"]: row["runs"] for row in asked.value}["failed"]
    assert failed == len(every(server, f"/api/v1/runs?state=failed&snapshot={first}")) > RUNS / 16
    there = lake.named(Wanted(tables=("runs",)), first)
    assert objects(opened.requests + asked.requests) == set(there)
    parts = fetched(server, before)
    assert {line["status"] for line in parts} == {206}
    assert 0 < sum(line["bytes"] for line in parts) < sum(there.values()) / 4


def test_a_page_that_asks_again_finds_what_it_fetched_in_its_cache(
    browser: Chromium, sites: Sites, page: Page, server: Serving
) -> None:
    def fetched_by(one: Page) -> int:
        before = len(server.lines())
        one.call("open", server.address, {"tables": ["tasks"], "expires_s": 86_400})
        assert one.call("ask", "SELECT count(*)::INTEGER AS tasks FROM tasks")[0]["tasks"] > 0
        return sum(line["bytes"] for line in fetched(server, before))

    assert fetched_by(page) > 0
    another = browser.again(page, f"{sites.named}/")
    another.call("start")
    assert fetched_by(another) == 0


# Search


@pytest.mark.parametrize(
    ("namespace", "query"),
    [
        ("shop", "ord"),  # a beginning
        ("shop", "custmers"),  # a letter is missing
        ("team17", "invioce daily"),  # two letters changed places; two words
        ("ops", "m"),
        ("ops", "predictor"),  # it was called so once: the index still has the word, the asset does not
        ("ops", "old"),  # retired
        ("shop", "sales"),  # a former name
        ("shop", "currency"),  # a column
        ("team03", "nothinglikeit"),
    ],
)
def test_a_page_searches_with_the_files_of_the_index_alone(
    page: Page, server: Serving, lake: Lake, namespace: str, query: str
) -> None:
    said = page.tried("search", server.address, namespace, query)
    assert said.error is None, said.error
    expected = server.get(f"/api/v1/search?namespace={namespace}&q={quote(query)}")["hits"]
    assert [(hit["id"], hit["name"], round(hit["score"], 4)) for hit in said.value] == [
        (hit["id"], hit["name"], hit["score"]) for hit in expected
    ]
    read = objects(said.requests)
    index = set(lake.named(Wanted(namespace=namespace)))
    assert {key.split("/")[-2] for key in index} == {"postings", "trigrams"}
    assets = {bucket_of(hit["id"]) for hit in said.value}
    assert read <= index | set(lake.named(Wanted(tables=("assets",))))
    if assets:
        assert read - index == set(lake.named(Wanted(tables=("assets",), buckets=tuple(assets))))


def test_a_search_in_a_namespace_fetches_a_part_of_the_index(
    browser: Chromium, sites: Sites, server: Serving, lake: Lake
) -> None:
    fresh = browser.visit(f"{sites.named}/")
    fresh.call("start")
    before = len(server.lines())
    said = fresh.tried("search", server.address, "team05", "shipm")
    assert len(said.value) == 10
    index = lake.named(Wanted(tables=("postings", "trigrams")))
    read = objects(said.requests)
    assert 0 < len(read & set(index)) < len(index)
    parts = fetched(server, before)
    assert {line["status"] for line in parts} == {206}
    of_assets = sum(lake.named(Wanted(tables=("assets",))).values())
    assert sum(line["bytes"] for line in parts) < of_assets + sum(index.values()) / 2


def test_a_page_splits_words_and_finds_buckets_as_the_fold_does(page: Page) -> None:
    names = [
        "shop.orders", "shop.OrderLines2024", "a", "ops.HTTPServerLog", "données.Été_été", "x.naïveÜber", "größe.ÄußereMaße",
        "weird..name", "emoji.😀smile", "数据.订单表", "roman.Ⅷth", "v1.2.3", "UPPER", "mixedCASEName", "_under_score_",
        "x" * 100,
    ]  # fmt: skip
    sentences = [
        "What shop.orders holds",
        "It's 3pm: HTTPError², naïve café — 12,345 rows!",
        "",
        "e\u0301tude",
        "İstanbul ΣΑΣ",
    ]
    assert page.call("words", names, sentences) == {
        "names": [words_of_name(name) for name in names],
        "sentences": [words_of_text(sentence) for sentence in sentences],
        "trigrams": [trigrams(name) for name in names],
        "buckets": [bucket_of(name) for name in names],
    }


# Refusals


def link(server: Serving, **asked: Any) -> str:
    url: str = server.links({"tables": ["assets"], **asked})["files"][0]["url"]
    return url


def test_an_altered_link_opens_nothing_in_a_page(page: Page, server: Serving) -> None:
    url = link(server)
    assert page.call("read", url)[0]["rows"] > 0
    begin, _, token = url.rpartition("/")
    for at in (0, len(token) // 2, token.index(".") + 1):
        wrong = f"{begin}/{token[:at]}{'A' if token[at] != 'A' else 'B'}{token[at + 1 :]}"
        said = page.tried("read", wrong)
        assert said.error is not None
        assert "Failed to open file" in said.error
        assert {one.status for one in said.requests} == {403}


def test_an_expired_link_opens_nothing_in_a_page(page: Page, server: Serving) -> None:
    url = link(server, expires_s=2)
    while page.call("fetch", url, {"cache": "no-store", "headers": {"Range": "bytes=0-0"}})["status"] != 403:
        pass
    said = page.tried("read", url)
    assert said.error is not None
    assert "Failed to open file" in said.error
    assert {one.status for one in said.requests} == {403}


def test_a_page_sees_what_it_needs_of_an_answer(page: Page, server: Serving) -> None:
    whole = page.call("fetch", link(server), {"cache": "no-store"})
    part = page.call("fetch", link(server), {"cache": "no-store", "headers": {"Range": "bytes=-8"}})
    assert (whole["status"], part["status"], part["size"]) == (200, 206, 8)
    assert part["headers"]["content-range"] == f"bytes {whole['size'] - 8}-{whole['size'] - 1}/{whole['size']}"
    for name in ("etag", "accept-ranges", "content-length", "cache-control"):
        assert part["headers"][name]


def test_a_page_of_another_site_gets_nothing(browser: Chromium, sites: Sites, server: Serving) -> None:
    stranger = browser.visit(f"{sites.unnamed}/")
    stranger.call("start")
    before = len(server.lines())
    for call in (
        ("open", server.address, {"tables": ["assets"]}),
        ("fetch", link(server), {"headers": {"Range": "bytes=0-3"}}),
        ("read", link(server)),
    ):
        assert blocked(stranger.tried(*call)), call
    asked = [line for line in server.lines()[before:] if line["route"] and "catalog" in line["route"]]
    # Ours, for the links, were answered; the page's were not.
    assert {line["status"] for line in asked if line["method"] != "POST"} == {403}


def test_a_page_of_a_named_site_reaches_links_and_nothing_else(page: Page, server: Serving) -> None:
    for path in ("/api/v1/assets", "/api/v1/runs", "/iceberg/v1/config", "/api/v1/catalog/snapshot"):
        assert blocked(page.tried("fetch", f"{server.address}{path}", {})), path
    key = next(iter(objects([Asked("GET", link(server))])))
    for path in ("", "/", f"/{key}", f"/{quote(key, safe='')}", "/?list-type=2&prefix="):
        said = page.tried("fetch", f"{server.address}{FILES.rstrip('/')}{path}", {})
        # A parameter that a link does not have is refused by its name.
        assert blocked(said) or said.value["status"] in ({400} if "?" in path else {403, 404}), path


def blocked(said: Said) -> bool:
    """The browser kept the answer from the page: it has nothing that names its site."""
    shown = [one for one in said.requests if "access-control-allow-origin" in one.headers]
    return said.error is not None and not said.value and not shown


def test_nothing_left_this_machine(page: Page, server: Serving, sites: Sites) -> None:
    page.call("open", server.address, {"tables": ["assets"]})
    origins = {"/".join(one.url.split("/")[:3]) for one in page.seen}
    assert origins == {sites.named, server.address}

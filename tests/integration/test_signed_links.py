"""DuckDB reads the catalog's own state through links, as it does in a browser: from a real server, and from a bucket."""

import asyncio
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.storage.roots import open_root
from fixtures.state.published_state import publish, publish_in_folder
from fixtures.state.state_world import NOW_MS, START_MS, World
from stand_ins.hand_clock import HandClock
from tests.servers.launch import seaweedfs

from .duckdb_session import Duck, duckdb_session
from .logged_server import serving

RUNS = 30_000


def world() -> World:
    """So many runs that no engine reads a whole file for one column of it."""
    found = World()
    for number in range(RUNS):
        found.run(f"{number}", "shop", START_MS + number, "succeeded" if number % 7 else "failed", 1)
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("lake")
    asyncio.run(publish_in_folder(root, world(), NOW_MS))
    return root


@pytest.fixture
def duck(duckdb_extensions: Path) -> Iterator[Duck]:
    with duckdb_session(duckdb_extensions) as found:
        yield found


def failed(duck: Duck, links: dict[str, Any]) -> Any:
    listed = ", ".join(f"'{one['url']}'" for one in links["files"])
    return duck.one(f"SELECT count(*) FROM read_parquet([{listed}]) WHERE state = 'failed'")


def test_duckdb_reads_a_link_in_parts(folder: Path, tmp_path: Path, duck: Duck) -> None:
    with serving(str(folder), tmp_path / "log") as server:
        links = server.links({"tables": ["runs"]})
        assert links["via"] == "server"
        assert failed(duck, links) == len(range(0, RUNS, 7))
    # Once the server has ended: a line is written after its answer was sent.
    asked = [line for line in server.lines() if line.get("route") == "/api/v1/catalog/files/{token}"]
    parts = [line for line in asked if line["status"] == 206]
    assert len(parts) >= 2 * len(links["files"])
    assert {line["status"] for line in asked} <= {200, 206}
    # A column of a table: what was sent is a part of what is there.
    assert sum(line["bytes"] for line in asked) < sum(one["bytes"] for one in links["files"]) / 2
    text = (tmp_path / "log").read_text()
    assert not [one for one in links["files"] if one["url"].rpartition("/")[2] in text]


def test_a_link_is_named_as_engines_expect_files_to_be(folder: Path, tmp_path: Path, duck: Duck) -> None:
    with serving(str(folder), tmp_path / "log") as server:
        url = server.links({"tables": ["runs"]})["files"][0]["url"]
        assert duck.one(f"SELECT count(*) > 0 FROM '{url}'") is True


def test_a_link_that_was_changed_or_is_of_another_server_opens_nothing(folder: Path, tmp_path: Path) -> None:
    with serving(str(folder), tmp_path / "one") as one, serving(str(folder), tmp_path / "other") as other:
        url = one.links({"tables": ["runs"]})["files"][0]["url"]
        for wrong in (url.replace(one.address, other.address), url.replace(".parquet", "x.parquet"), f"{url}/../x"):
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(wrong, timeout=30)
            assert refused.value.code in {403, 404}
            refused.value.close()


def test_a_bucket_answers_its_own_links(tmp_path: Path, duck: Duck) -> None:
    with seaweedfs(tmp_path / "s3") as bucket:
        asyncio.run(_published_in(f"{bucket.url}/lake", dict(bucket.options)))
        options = [part for word, value in bucket.options.items() for part in ("-o", f"{word}={value}")]
        with serving(f"{bucket.url}/lake", tmp_path / "log", *options) as server:
            links = server.links({"tables": ["runs"], "expires_s": 60})
            assert links["via"] == "store"
            assert all(one["url"].startswith(bucket.endpoint) for one in links["files"])
            assert failed(duck, links) == len(range(0, RUNS, 7))
            assert not [line for line in server.lines() if line.get("route") == "/api/v1/catalog/files/{token}"]
            through = server.links({"tables": ["runs"], "via": "server"})
            assert failed(duck, through) == len(range(0, RUNS, 7))


async def _published_in(url: str, options: dict[str, str]) -> None:
    store = open_root(url, options, SystemClock(), SystemEntropy())
    try:
        await publish(store, world(), NOW_MS, HandClock())
    finally:
        await store.close()

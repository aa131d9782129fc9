"""One lake, one server, one browser for all tests of this folder, and a page of a site that the server was told of."""

import asyncio
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from arco.fold.heads import Heads
from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.read.linked_files import Wanted, cut_of, linked_files
from arco.storage.local import LocalStore
from browser.chromium import Chromium, Page, chromium
from browser.site_server import serving_site
from browser.toolbox import HERE, toolbox
from fixtures.document_blocks import write_blocks
from fixtures.state.published_state import SCOPE, publish_in_folder
from fixtures.state.shop_story import told
from fixtures.state.state_world import NOW_MS, START_MS, World
from tests.integration.logged_server import Serving, serving

RUNS = 20_000
TEAMS = [f"team{number:02}" for number in range(40)]
_WHAT = (
    "invoice",
    "shipment",
    "customer",
    "payment",
    "warehouse",
    "forecast",
    "refund",
    "session",
    "campaign",
    "inventory",
)
_HOW = ("daily", "hourly", "latest", "history", "summary", "snapshot", "clean", "raw", "joined", "ranked")


def world() -> World:
    """The small world, and beside it so many runs and assets that no engine needs whole files for one answer."""
    found = told()
    for number in range(RUNS):
        found.run(f"{number}", "shop", START_MS + number, "succeeded" if number % 7 else "failed", 1)
    for team, (what, how) in itertools.product(TEAMS, itertools.product(_WHAT, _HOW)):
        found.asset(f"{team}.{what}_{how}", description=f"The {how} {what} of {team}, by {what} number", kind="sql")
    return found


@dataclass(frozen=True)
class Sites:
    """Two sites with the same page; the server was told of the first."""

    named: str
    unnamed: str


@dataclass(frozen=True)
class Lake:
    """A root with two snapshots: the first has bases alone, the second deltas on top of them."""

    root: Path
    snapshots: list[str]

    def named(self, wanted: Wanted, snapshot: str | None = None) -> dict[str, int]:
        """The sizes of the files that the manifests name in a scope, by their names."""

        async def look() -> dict[str, int]:
            store = LocalStore(str(self.root), SystemClock(), SystemEntropy())
            try:
                cut = await cut_of(Heads(store, SCOPE, SystemClock(), SystemEntropy()), snapshot)
                return {one.file.key: one.file.bytes for one in linked_files(cut, SCOPE, wanted)}
            finally:
                await store.close()

        return asyncio.run(look())


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    root = tmp_path_factory.mktemp("lake")
    return Lake(root, asyncio.run(publish_in_folder(root, world(), NOW_MS, parts=2)))


@pytest.fixture(scope="session")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    pages = tmp_path_factory.mktemp("site")
    assert write_blocks(HERE.parents[1] / "docs" / "browser.md", pages) == ["state.mjs", "search.mjs"]
    for file in (HERE / "site").iterdir():
        (pages / file.name).write_bytes(file.read_bytes())
    box = toolbox()
    mounts = {"/": pages, "/packages/": box / "node_modules", "/extensions/": box / "extensions"}
    with serving_site(mounts) as named, serving_site(mounts) as unnamed:
        yield Sites(named, unnamed)


@pytest.fixture(scope="session")
def server(lake: Lake, sites: Sites, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(str(lake.root), tmp_path_factory.mktemp("log") / "log", "--allow-origin", sites.named) as found:
        yield found


@pytest.fixture(scope="session")
def browser() -> Iterator[Chromium]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="session")
def page(browser: Chromium, sites: Sites) -> Page:
    """The page of a site that the server was told of, with its engine running."""
    found = browser.visit(f"{sites.named}/")
    found.call("start")
    return found

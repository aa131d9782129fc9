"""Transactions that older code left in a bucket, done, refused and half way, are what they were; and today's are too."""

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from arco.catalog.catalog import Catalog
from arco.catalog.manifest import Author
from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import NoSuchTable
from arco.kernel.limits import TRANSACTION_STALE_S
from arco.storage.local import LocalStore
from tests.compat.txn_story import BANK, BASE_URI, SCOPE, STORED, TABLES, tell, write
from tests.stand_ins.hand_clock import HandClock

_LATER_MS = 3_600_000


@pytest.fixture(params=[*sorted(path.name for path in STORED.iterdir()), "today"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    place = tmp_path / request.param
    if request.param == "today":
        write(asyncio.run(tell()), place)
    else:
        shutil.copytree(STORED / request.param, place)
    return place


def with_catalog(folder: Path, work: Any) -> None:
    async def run() -> None:
        clock = HandClock()
        clock.at_ms += _LATER_MS
        store = LocalStore(str(folder), clock, SeededEntropy("reader"))
        try:
            await work(Catalog.open(store, BASE_URI, SCOPE, clock, SeededEntropy("reader")), clock)
        finally:
            await store.close()

    asyncio.run(run())


async def _labels(catalog: Catalog) -> list[str | None]:
    loads = [(await catalog.tables.load(BANK, name))[1] for name in TABLES]
    return [base.metadata.properties.get("last") for base in loads]


def test_what_was_decided_counts_and_what_was_not_does_not(folder: Path) -> None:
    async def look(catalog: Catalog, _: HandClock) -> None:
        assert await _labels(catalog) == ["decided", "decided", None]
        names = (await catalog.parts.tier1.current()).names
        assert [entry.name for entry in names.inhabitants(BANK)] == ["audit", "credit", "debit", "fees", "ledger"]
        with pytest.raises(NoSuchTable):
            await catalog.tables.load(BANK, "never")

    with_catalog(folder, look)


def test_whoever_writes_next_finishes_or_clears_them(folder: Path) -> None:
    async def write_on(catalog: Catalog, clock: HandClock) -> None:
        clock.at_ms += round(TRANSACTION_STALE_S * 1000)
        for name in ("debit", "credit", "fees", "audit"):
            await catalog.tables.drop(
                BANK, name, purge=False, key=catalog.parts.markers.request_key(None, "drop", name), author=Author()
            )
        names = (await catalog.parts.tier1.current()).names
        assert (names.reserved, [entry.name for entry in names.inhabitants(BANK)]) == ({}, ["ledger"])

    with_catalog(folder, write_on)

"""Tables of real clients, maintained: PyIceberg writes through a real server, snapshots expire, files go, all read on."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.table import Table

from arco.catalog.catalog import Catalog
from arco.catalog.verify import verify
from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.kernel.scope import Scope
from arco.storage.port import ObjectInfo, ObjectStore
from arco.storage.roots import open_root
from arco.upkeep.passes import jobs_named, upkeep_pass
from arco.upkeep.report import Report
from arco.upkeep.sweep import Setting

from .arco_server import arco_server
from .duckdb_session import duckdb_session

MAINTAINED = {
    "maintenance.expire-snapshots.enabled": "true",
    "maintenance.orphan-files.enabled": "true",
    "history.expire.max-snapshot-age-ms": "1",
    "history.expire.min-snapshots-to-keep": "2",
}
MONTH_MS = 30 * 24 * 3600 * 1000


class MonthLater:
    """A store of which upkeep is told, when it asks for the time, that it is a month later."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def head(self, key: str) -> ObjectInfo | None:
        found = await self._store.head(key)
        if found is None or not key.endswith("/upkeep/clock.json"):
            return found
        return ObjectInfo(found.key, found.size_bytes, found.version, found.modified_ms + MONTH_MS)


def a_month_later(root: Path, *kinds: str) -> dict[str, Report]:
    """Upkeep by a process of its own, a month from now."""

    async def work() -> dict[str, Report]:
        clock, entropy = SystemClock(), SystemEntropy()
        store = open_root(str(root), {}, clock, entropy)
        try:
            later: Any = MonthLater(store)
            catalog = Catalog.open(later, f"file://{root}", Scope.of("default", "default"), clock, entropy)
            reports = await upkeep_pass(Setting(catalog.parts), jobs_named(kinds))
            found = await verify(catalog, deep=True)
            assert found.clean, found.findings
            return {one.kind: one for one in reports}
        finally:
            await store.close()

    return asyncio.run(work())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "lake"


@pytest.fixture
def catalog(root: Path) -> Iterator[RestCatalog]:
    with arco_server(root) as address, RestCatalog("arco", uri=address) as found:
        found.create_namespace("shop")
        yield found


def appended(catalog: RestCatalog, times: int) -> Table:
    table = catalog.create_table("shop.orders", schema=pa.schema([("a", pa.int64())]), properties=MAINTAINED)
    for number in range(times):
        table.overwrite(pa.table({"a": [number]}))
    return table


def files(root: Path) -> set[str]:
    return {path.name for path in root.rglob("*") if path.suffix in {".parquet", ".avro"} and "/data/orders-" in str(path)}


def test_expired_snapshots_are_gone_and_kept_ones_are_read(root: Path, catalog: RestCatalog, tmp_path: Path) -> None:
    table = appended(catalog, 4)
    before = [one.snapshot_id for one in table.refresh().snapshots()]
    with table.manage_snapshots() as change:
        change.create_tag(before[0], "first")
    reports = a_month_later(root, "snapshots")
    assert reports["snapshots"].failed is None
    table.refresh()
    kept = [one.snapshot_id for one in table.snapshots()]
    assert set(kept) == {before[0], *before[-2:]}
    assert table.scan(snapshot_id=before[0]).to_arrow()["a"].to_pylist() == [0], "the tag holds it"
    assert table.scan(snapshot_id=kept[-1]).to_arrow()["a"].to_pylist() == [3]
    with pytest.raises(ValueError, match="not found"):
        table.scan(snapshot_id=before[1]).to_arrow()
    rows = {one: table.scan(snapshot_id=one).to_arrow() for one in kept}
    there = files(root)
    reports = a_month_later(root, "files")
    assert reports["files"].deleted > 0
    assert files(root) < there
    assert {one: table.scan(snapshot_id=one).to_arrow() for one in kept} == rows
    with duckdb_session(tmp_path / "duck") as duck:
        assert duck.column(f"SELECT a FROM iceberg_scan('{table.metadata_location.removeprefix('file://')}')") == [3]


def test_what_a_client_left_behind_goes_and_what_it_goes_on_with_stays(root: Path, catalog: RestCatalog) -> None:
    table = appended(catalog, 2)
    place = Path(table.location().removeprefix("file://"))
    (place / "data" / "lost.parquet").write_bytes(b"of a job that died")
    report = a_month_later(root, "files")["files"]
    assert (report.deleted, report.why) == (1, {"no version of its table in reach names it": 1})
    table.append(pa.table({"a": [9]}))
    assert sorted(table.refresh().scan().to_arrow()["a"].to_pylist()) == [1, 9]


def test_from_the_shell_a_table_is_maintained_because_somebody_asks(root: Path, catalog: RestCatalog) -> None:
    table = catalog.create_table(
        "shop.orders", schema=pa.schema([("a", pa.int64())]), properties={"history.expire.max-snapshot-age-ms": "1"}
    )
    for number in range(3):
        table.overwrite(pa.table({"a": [number]}))
    command = [str(Path(sys.executable).with_name("arco")), "upkeep", "--root", str(root), "--only", "snapshots", "--json"]

    def shell(*more: str) -> dict[str, Any]:
        done = subprocess.run([*command, *more], capture_output=True, text=True, check=True)
        found: dict[str, Any] = json.loads(done.stdout)["reports"][0]
        return found

    assert shell()["looked_at"] == 0, "it does not ask for it itself"
    dry = shell("--table", "shop.orders", "--dry-run")
    assert len([note for note in dry["notes"] if "would expire" in note]) == dry["changed"] > 0
    assert len(table.refresh().snapshots()) == dry["changed"] + 1
    assert shell("--table", "shop.orders")["changed"] == dry["changed"]
    assert len(table.refresh().snapshots()) == 1
    assert table.scan().to_arrow()["a"].to_pylist() == [2]


def test_a_table_whose_old_metadata_pyiceberg_deletes_is_well_and_has_its_upkeep_after_a_quiet_day(
    root: Path, catalog: RestCatalog
) -> None:
    forgetful = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "2"}
    table = catalog.create_table("shop.orders", schema=pa.schema([("a", pa.int64())]), properties=MAINTAINED | forgetful)
    for number in range(6):
        table.overwrite(pa.table({"a": [number]}))
    place = Path(table.location().removeprefix("file://"))
    left = sorted(path.name for path in (place / "metadata").glob("*.metadata.json"))
    assert len(left) == 3, "PyIceberg took the others away"
    lost = place / "data" / "lost.parquet"
    lost.write_bytes(b"of a job that died")
    command = [str(Path(sys.executable).with_name("arco")), "upkeep", "--root", str(root), "--only", "files"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "write.metadata.previous-versions-max (2 now)" in " ".join(done.stdout.split())
    report = a_month_later(root, "files")["files"]
    assert (report.deleted, report.notes, lost.exists()) == (1, (), False)
    assert table.refresh().scan().to_arrow()["a"].to_pylist() == [5]

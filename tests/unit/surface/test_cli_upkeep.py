"""`arco upkeep` and `arco purge` in a shell, on a real folder whose objects are made old."""

import asyncio
import os
from pathlib import Path

import pytest

from arco.kernel.errors import InvalidInput
from arco.surface.cli.durations import seconds_of
from arco.upkeep.jobs import JOBS
from stand_ins.lake import Lake
from unit.surface.cli.shell import Shell, arco

__all__ = ["arco"]


async def _write(home: Path) -> None:
    lake = Lake(base_uri=f"file://{home}/lake")
    await lake.namespace("shop")
    await lake.table(("shop",), "orders", commits=2)
    await lake.table(("shop",), "old", commits=1)
    await lake.drop((("shop",), "old"))
    await lake.view(("shop",), "recent")
    await lake.settle()
    await lake.write_to(home / "lake")


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lake in which everything was written a month ago."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ARCO_ROOT", "lake")
    asyncio.run(_write(tmp_path))
    for path in (tmp_path / "lake").rglob("*"):
        if path.is_file():
            before = path.stat().st_mtime - seconds_of("30d")
            os.utime(path, (before, before))
    return tmp_path / "lake"


def objects(lake: Path, part: str = "") -> list[str]:
    found = (str(path.relative_to(lake)) for path in lake.rglob("*") if path.is_file())
    return sorted(name for name in found if part in name and not name.startswith(".arco/"))


def test_a_dry_run_says_why_and_changes_nothing(arco: Shell, lake: Path) -> None:
    before = objects(lake)
    ended = arco("upkeep", "--dry-run")
    assert (ended.code, ended.err) == (0, "")
    assert "WOULD GO" in ended.out
    assert "30 days" in ended.out
    assert "its commit happened or never will" in ended.out
    assert [name for name in objects(lake) if name not in before] == ["default/default/_catalog/upkeep/clock.json"]


def test_upkeep_takes_garbage_away_and_says_so(arco: Shell, lake: Path) -> None:
    assert objects(lake, "/pending/")
    ended = arco("upkeep", "--json")
    reports = {one["kind"]: one for one in ended.json["reports"]}
    assert reports["receipts"]["deleted"] > 0
    assert not objects(lake, "/pending/")
    assert "shop.orders" in arco("ls").out
    assert arco("verify", "--deep").code == 0
    told = arco("ledger", "stats", "--json").json["domains"]
    assert next(one["events"] for one in told if one["domain"] == "audit") >= 1


def test_only_some_kinds(arco: Shell, lake: Path) -> None:
    ended = arco("upkeep", "--only", "markers", "--json")
    assert [one["kind"] for one in ended.json["reports"]] == ["markers"]
    assert objects(lake, "/pending/")
    refused = arco("upkeep", "--only", "dust")
    assert refused.code == 2
    assert "no kind 'dust'" in refused.err
    assert "markers" in refused.err


def test_purge_deletes_what_was_dropped_for_good(arco: Shell, lake: Path) -> None:
    files = objects(lake, "/data/old-")
    assert files
    assert "nobody to ask" in arco("purge", "--older-than", "1d").err
    shown = arco("purge", "--older-than", "1d", "--dry-run")
    assert "shop.old, dropped" in shown.out
    assert objects(lake, "/data/old-") == files
    assert arco("purge", "--older-than", "1d", "--yes").code == 0
    assert not objects(lake, "/data/old-")
    assert arco("undrop", "shop.old").code == 2
    assert arco("verify", "--deep").code == 0


def test_one_table_is_maintained_because_somebody_asks(arco: Shell, lake: Path) -> None:
    lost = next((lake / "default/default/data").glob("orders-*")) / "data" / "lost.parquet"
    lost.parent.mkdir(exist_ok=True)
    lost.write_bytes(b"of a job that died")
    os.utime(lost, (lost.stat().st_mtime - seconds_of("30d"),) * 2)
    assert arco("upkeep", "--only", "files", "--json").json["reports"][0]["looked_at"] == 0
    dry = arco("upkeep", "--only", "files", "--table", "shop.orders", "--dry-run")
    assert "lost.parquet" in dry.out
    assert "no version of its table in reach names it" in dry.out
    assert lost.exists()
    assert arco("upkeep", "--only", "files", "--table", "shop.orders").code == 0
    assert not lost.exists()
    assert arco("upkeep", "--table", "shop.nothing").code == 2
    assert "shop.recent is no Iceberg table" in arco("upkeep", "--only", "files", "--table", "shop.recent").err


def test_maintain_says_what_it_would_rewrite(arco: Shell, lake: Path) -> None:
    assert "nothing that would be worth rewriting" in arco("maintain", "--all", "--dry-run").out
    refused = arco("maintain", "--dry-run")
    assert (refused.code, "which tables?" in refused.err) == (2, True)
    found = arco("maintain", "shop.orders", "--dry-run", "--json").json["tables"]
    assert [(one["table"], one["groups"], one["refused"]) for one in found] == [("shop.orders", [], None)]


async def _upgrade(home: Path) -> None:
    lake = Lake(base_uri=f"file://{home}/lake")
    await lake.namespace("shop")
    await lake.table(("shop",), "orders", commits=2)
    await lake.table(("shop",), "lineage", commits=1)
    await lake.commit((("shop",), "lineage"), {"action": "upgrade-format-version", "format-version": 3})
    await lake.settle()
    await lake.write_to(home / "lake")


def test_a_named_table_that_cannot_be_rewritten_is_refused_in_one_line_before_anything_is_done(
    arco: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asyncio.run(_upgrade(tmp_path))
    monkeypatch.setenv("ARCO_ROOT", "lake")
    before = objects(tmp_path / "lake")
    for tables in (["shop.lineage"], ["shop.orders", "shop.lineage"]):
        ended = arco("maintain", *tables)
        assert (ended.code, ended.out) == (2, "")
        (line,) = ended.err.splitlines()
        assert "shop.lineage: this table has format version 3" in line
        assert "row ids" in line
    assert objects(tmp_path / "lake") == before
    assert arco("maintain", "--all").code == 0, "of all tables it is left as it is"
    assert objects(tmp_path / "lake") == before


def test_verify_repairs_what_can_be_derived(arco: Shell, lake: Path) -> None:
    receipts = objects(lake, "/committed/")
    for name in receipts:
        if '"commit_number":2' in (lake / name).read_text():
            (lake / name).unlink()
    assert len(objects(lake, "/committed/")) == len(receipts) - 1
    ended = arco("verify", "--repair", "--deep")
    assert ended.code == 0
    assert "repaired: the receipt of commit 2 of shop.orders was written" in ended.out
    assert objects(lake, "/committed/") == receipts
    assert "nothing to repair" in arco("verify", "--repair").out
    assert arco("verify", "--repair", "--json").json["repaired"] == []


def test_a_repair_of_what_is_whole_writes_nothing_at_all(arco: Shell, lake: Path) -> None:
    def contents() -> dict[str, tuple[bytes, int]]:
        return {name: ((lake / name).read_bytes(), (lake / name).stat().st_mtime_ns) for name in objects(lake)}

    before = contents()
    ended = arco("verify", "--repair")
    assert (ended.code, "nothing to repair" in ended.out) == (0, True)
    assert contents() == before


def test_where_every_job_failed_nobody_says_that_there_is_nothing_to_do(arco: Shell, lake: Path) -> None:
    manifest = lake / "default/default/_catalog/manifests/catalog.manifest.json"
    manifest.write_text("{nope")
    ended = arco("upkeep", "--only", "dropped", "--only", "snapshots")
    assert ended.code == 1
    assert "nothing here to look after" not in ended.out
    assert "dropped: " in ended.err
    assert "snapshots: " in ended.err


def test_help_names_every_kind(arco: Shell) -> None:
    said = " ".join(arco("upkeep", "--help").out.split())
    assert all(f"{job.kind}," in said or f"or {job.kind}" in said or f"{job.kind} or" in said for job in JOBS)


def test_help_teaches(arco: Shell) -> None:
    told = arco("upkeep", "--help").out
    assert "--dry-run" in told
    assert "never deleted" in told


@pytest.mark.parametrize("text", ["", "10", "m", "0s", "-1h", "1.5h", "10 years", "9999999d"])
def test_a_length_of_time_is_written_in_one_way(text: str) -> None:
    with pytest.raises(InvalidInput, match="no length of time"):
        seconds_of(text)
    assert [seconds_of(one) for one in ("30s", "10m", "2h", "7d")] == [30, 600, 7200, 604_800]

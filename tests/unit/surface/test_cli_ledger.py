"""`arco ledger stats` on a folder: what is there, what is missing, what is not understood."""

import asyncio
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.kernel.scope import Scope
from arco.ledger.appender import Appender
from arco.ledger.drafts import Draft
from arco.ledger.envelope import EventType
from arco.storage.keys import Domain
from arco.storage.local import LocalStore
from arco.surface.cli.main import app

ENDED = {"run_id": "r1", "state": "succeeded", "tasks": {}, "started_ms": 1, "ended_ms": 2}


def draft(kind: str, **data: object) -> Draft:
    return Draft(type=EventType(kind), source="test", data=data)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Three segments of one writer, one of another, and types of all kinds."""

    async def story() -> None:
        store = LocalStore(str(tmp_path / "lake"), SystemClock(), SystemEntropy())
        appender = Appender(store, Scope.of(), SystemClock(), SystemEntropy())
        for _ in range(3):
            await appender.append(Domain.EXECUTION, [draft("execution.run_completed.v1", **ENDED)] * 2)
        await appender.append(
            Domain.QUALITY,
            [draft("quality.check_executed.v9", x=1), draft("quality.moon_risen.v1"), draft("quality.check_executed.v1")],
        )
        await store.close()

    asyncio.run(story())
    return tmp_path / "lake"


def run(lake: Path, *flags: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["ledger", "stats", "--root", str(lake), *flags])
    return result.exit_code, result.output


def stats(lake: Path) -> tuple[int, dict]:
    code, output = run(lake, "--json")
    return code, {one["domain"]: one for one in json.loads(output)["domains"]}


def segments(lake: Path, domain: str) -> list[Path]:
    return sorted((lake / "default" / "default" / "_catalog" / "ledger" / domain).rglob("*.jsonl"))


def test_everything_is_counted_by_domain_and_day(lake: Path) -> None:
    code, found = stats(lake)
    assert code == 0
    assert set(found) == {domain.value for domain in Domain}
    execution, files = found["execution"], segments(lake, "execution")
    assert (execution["segments"], execution["events"], execution["writers"]) == (3, 6, 1)
    assert execution["bytes"] == sum(file.stat().st_size for file in files)
    (day,) = execution["days"]
    assert day == {"day": files[0].parent.name, "segments": 3, "events": 6, "bytes": execution["bytes"]}
    assert found["audit"] == {
        "domain": "audit", "segments": 0, "events": 0, "bytes": 0, "archived": 0, "writers": 0, "days": [], "gaps": [],
        "set_aside": [], "damaged": [],
    }  # fmt: skip


def test_what_is_not_understood_is_counted_with_the_reason(lake: Path) -> None:
    _, found = stats(lake)
    assert found["quality"]["set_aside"] == [
        {"type": "quality.check_executed.v1", "reason": "invalid_data", "events": 1},
        {"type": "quality.check_executed.v9", "reason": "unknown_version", "events": 1},
        {"type": "quality.moon_risen.v1", "reason": "unknown_type", "events": 1},
    ]


def test_people_see_the_same(lake: Path) -> None:
    code, text = run(lake)
    assert code == 0
    assert [line.split() for line in text.splitlines() if line.startswith("execution")] == [
        ["execution", "3", "6", *text.split("execution")[1].split()[2:4], "1"]
    ]
    assert "1 event of quality.check_executed.v9 set aside: unknown version" in text


def test_a_missing_segment_is_a_gap(lake: Path) -> None:
    header = json.loads(segments(lake, "execution")[1].read_text().splitlines()[0])
    segments(lake, "execution")[1].unlink()
    code, found = stats(lake)
    assert code == 1
    assert found["execution"]["gaps"] == [{"writer": header["writer_id"], "missing": [[2, 2]]}]
    assert f"writer {header['writer_id']} lacks segment 2" in run(lake)[1]


def test_what_was_moved_to_the_archive_is_still_counted_and_once(lake: Path) -> None:
    """One was moved; of another the copy is there, and the old object not yet gone."""
    _, before = stats(lake)
    first, second, _ = segments(lake, "execution")
    for one in (first, second):
        aside = Path(str(one).replace("/_catalog/ledger/", "/_catalog/archive/"))
        aside.parent.mkdir(parents=True, exist_ok=True)
        aside.write_bytes(one.read_bytes())
    first.unlink()
    code, found = stats(lake)
    assert code == 0, "nothing is missing"
    assert found["execution"] == before["execution"] | {"archived": 2}
    assert run(lake)[1].count("execution: 2 segments of these in the archive") == 1


def test_a_damaged_segment_is_named(lake: Path) -> None:
    broken = segments(lake, "execution")[0]
    broken.write_text(broken.read_text().replace("succeeded", "successful", 1))
    code, found = stats(lake)
    assert code == 1
    (damage,) = found["execution"]["damaged"]
    assert broken.name in damage["segment"]
    assert "checksum" in damage["message"]
    assert found["execution"]["events"] == 4


def test_an_empty_ledger_says_so(tmp_path: Path) -> None:
    code, text = run(tmp_path / "new")
    assert (code, text.strip().endswith("is empty.")) == (0, True)

"""What could not be folded, and what is missing, is seen by people: over HTTP and in the shell."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from arco.fold.folding import Folding
from arco.fold.heads import Heads
from arco.fold.passes import fold_pass
from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.kernel.scope import Scope
from arco.ledger.appender import Appender
from arco.ledger.drafts import Draft
from arco.ledger.envelope import EventType
from arco.storage.keys import Domain, prefix_of
from arco.storage.local import LocalStore
from arco.storage.paging import walk
from arco.storage.port import ObjectStore
from arco.surface.cli.main import app
from fixtures.state.arrow_work import ArrowWork
from unit.surface.http_ground import HttpGround

LETTERS = "fold/dead-letters"
SCOPE = Scope.of()


def draft(kind: str, **data: object) -> Draft:
    return Draft(type=EventType(kind), source="test", data=data)


async def fill(store: ObjectStore) -> None:
    """Three segments, the second of which is lost: one event of a version to come, and one that is wrong."""
    clock, entropy = SystemClock(), SystemEntropy()
    appender = Appender(store, SCOPE, clock, entropy)
    for kind in ("quality.check_executed.v9", "quality.check_executed.v1", "quality.check_executed.v1"):
        await appender.append(Domain.QUALITY, [draft(kind, check_id=7)])
    await appender.close()
    stored = [one.key async for one in walk(store, prefix_of(SCOPE, "_catalog", "ledger"))]
    await store.delete(sorted(stored)[1])
    await fold_pass(Folding(Heads(store, SCOPE, clock, entropy), ArrowWork(store, SCOPE)))


@pytest.fixture
def ground() -> Iterator[HttpGround]:
    standing = HttpGround(published=False)
    standing.runner.run(fill(standing.store))
    yield standing
    standing.close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    async def story() -> None:
        store = LocalStore(str(tmp_path), SystemClock(), SystemEntropy())
        await fill(store)
        await store.close()

    asyncio.run(story())
    return tmp_path


def typed(root: Path, *words: str) -> str:
    result = CliRunner().invoke(app, ["ledger", "letters", *words, "--root", str(root)])
    assert result.exit_code == 0, result.exception
    return result.output


def test_letters_are_told_with_their_reasons_page_by_page(ground: HttpGround) -> None:
    first = ground.told(LETTERS, limit=1)
    assert len(first["items"]) == 1
    second = ground.told(LETTERS, limit=1, cursor=first["next_cursor"])
    found: list[dict[str, Any]] = first["items"] + second["items"]
    assert second["next_cursor"] is None
    assert sorted((one["head"], one["unknown"]) for one in found) == [("quality", False), ("quality", True)]
    assert all(one["reason"] and one["event_id"] in one["line"] for one in found)
    assert ground.told(LETTERS)["items"] == found
    assert ground.told(LETTERS, head="execution") == {"items": [], "next_cursor": None}
    assert ground.told(LETTERS, warehouse="default/other")["items"] == []


@pytest.mark.parametrize(
    "wrong", [{"head": "moon"}, {"cursor": "../../other"}, {"cursor": "\0"}, {"limit": 0}, {"limit": 1001}]
)
def test_what_is_wrong_is_refused(ground: HttpGround, wrong: dict[str, Any]) -> None:
    assert ground.problem(LETTERS, **wrong)["status"] == 400


@pytest.mark.parametrize("head", ["moon", "root", "catalog"])
def test_heads_that_nothing_is_folded_into_are_not_offered(ground: HttpGround, head: str) -> None:
    said = ground.problem(LETTERS, head=head)["detail"]
    assert said.endswith("it is one of execution, quality, lineage, assets, iceberg, search")


def test_a_snapshot_says_what_is_missing_and_what_was_refused(ground: HttpGround) -> None:
    (quality,) = [one for one in ground.told("catalog/snapshot")["heads"] if one["head"] == "quality"]
    assert (quality["events"], quality["refused"], quality["set_aside"]) == (0, 1, 1)
    assert [(gap["first"], gap["last"]) for gap in quality["gaps"]] == [(2, 2)]
    assert quality["more_gaps"] == 0


def test_people_read_the_reasons_in_the_shell(root: Path) -> None:
    text = typed(root)
    assert "knows no event quality.check_executed.v9" in text
    assert "2 letters" in text
    assert "there are more" in typed(root, "--limit", "1")
    assert "every event could be folded" in typed(root, "--domain", "lineage")
    assert len(json.loads(typed(root, "--json"))["items"]) == 2

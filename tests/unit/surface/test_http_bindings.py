"""Which state an answer over HTTP is of, and who need not be told it again."""

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from arco.fold.folding import Folding
from arco.fold.passes import fold_pass
from arco.kernel.entropy import SeededEntropy
from arco.kernel.scope import Scope
from arco.ledger.appender import Appender
from arco.ledger.drafts import Draft
from arco.storage.keys import Domain
from fixtures.state.arrow_work import ArrowWork
from fixtures.state.state_world import DAY_MS, NOW_MS
from stand_ins.asgi import ask
from unit.read.test_read_library import RUN, begun, completed, created, made
from unit.surface.http_ground import HttpGround

OUTPUTS = f"runs/{RUN}/outputs"


class Living(HttpGround):
    """Somebody appends, somebody folds, and the server answers."""

    def __init__(self) -> None:
        super().__init__(published=False)
        self.folding = Folding(self.heads, ArrowWork(self.store, Scope.of()))
        self.ledger = Appender(self.store, Scope.of(), self.clock, SeededEntropy(5), gather_s=0)

    def happened(self, *drafts: Draft) -> None:
        self.clock.at_ms += 1000
        self.runner.run(self.ledger.append(Domain.EXECUTION, drafts))

    def fold(self) -> str:
        self.clock.at_ms += 1000
        root = self.runner.run(fold_pass(self.folding)).root.manifest
        assert root is not None
        return root.snapshot

    def published(self, **query: Any) -> tuple[str, list[str]]:
        """The snapshot of an answer, and what it says that the run published."""
        found = self.told(OUTPUTS, **query)
        return found["snapshot"], [one["materialization_id"] for one in found["outputs"]]

    def close(self) -> None:
        self.runner.run(self.ledger.close())
        super().close()


@pytest.fixture
def living() -> Iterator[Living]:
    made = Living()
    yield made
    made.close()


@pytest.fixture(scope="module")
def still() -> Iterator[HttpGround]:
    made = HttpGround()
    yield made
    made.close()


# Which state


def test_before_the_first_fold_there_is_nothing_and_no_past(living: Living) -> None:
    assert living.told("assets") == {"snapshot": "", "fresh": False, "warning": None, "items": [], "next_cursor": None}
    found = living.told("catalog/snapshot")
    assert (found["snapshot"], found["published_at"], found["heads"]) == ("", None, [])
    problem = living.problem("assets", as_of="2025-01-01T00:00:00Z")
    assert (problem["status"], problem["code"], problem["oldest"]) == (410, "beyond_reach", None)


def test_a_state_is_found_by_its_id_and_by_its_moment(living: Living) -> None:
    living.happened(created(tasks=3), made("m1"))
    first, first_ms = living.fold(), living.clock.at_ms
    living.happened(made("m2", task="t2"))
    second = living.fold()
    assert living.published() == (second, ["m1", "m2"])
    assert living.published(snapshot=first) == (first, ["m1"])
    assert living.published(as_of=str(first_ms)) == (first, ["m1"])
    at = living.told("catalog/snapshot", snapshot=first)["published_at"]
    assert living.published(as_of=at) == (first, ["m1"])
    assert living.published(as_of=at.replace("T06", "T08").replace("Z", "+02:00")) == (first, ["m1"])
    assert living.published(as_of="2100-01-01T00:00:00Z") == (second, ["m1", "m2"])


def test_a_moment_beyond_the_reach_is_gone_and_the_oldest_is_told(living: Living) -> None:
    living.happened(created(), made("m1"))
    first = living.fold()
    living.happened(made("m2", task="t2"))
    living.fold()
    problem = living.problem(OUTPUTS, as_of="1960-01-01T00:00:00Z")
    oldest = living.told("catalog/snapshot", snapshot=first)["published_at"]
    assert (problem["status"], problem["type"], problem["oldest"]) == (410, "urn:arco:error:beyond_reach", oldest)
    assert living.published(as_of=problem["oldest"]) == (first, ["m1"])
    living.clock.at_ms += 31 * DAY_MS
    assert living.problem(OUTPUTS, as_of=oldest)["status"] == 410


def test_a_fresh_answer_has_what_is_not_folded_yet_and_says_so(living: Living) -> None:
    living.happened(created(), begun("t1"), made("m1"))
    first = living.fold()
    living.happened(made("m2", task="t2"))
    assert living.published() == (first, ["m1"])
    fresh = living.told(OUTPUTS, fresh=True)
    assert (fresh["snapshot"], fresh["fresh"]) == (first, True)
    assert [one["materialization_id"] for one in fresh["outputs"]] == ["m1", "m2"]


def test_a_run_has_three_answers(living: Living) -> None:
    answer = living.get(OUTPUTS, as_of_run=RUN)
    problem = living.problem(OUTPUTS, as_of_run=RUN)
    assert (problem["status"], problem["code"], answer.headers["retry-after"]) == (404, "pending_ingestion", "5")
    living.happened(created(tasks=2), begun("t1"), begun("t2"), made("m1"), completed(succeeded=2))
    part = living.fold()
    found = living.told("catalog/snapshot", as_of_run=RUN)
    assert (found["snapshot"], found["ingestion"]) == (part, "partially_ingested")
    assert "missing" in found["warning"]
    assert living.told(OUTPUTS, as_of_run=RUN)["warning"] == found["warning"]
    living.happened(made("m2", task="t2"))
    whole = living.fold()
    living.happened(made("later", task="t9"))
    living.fold()
    found = living.told("catalog/snapshot", as_of_run=RUN)
    assert (found["snapshot"], found["ingestion"], found["warning"]) == (whole, "fully_ingested", None)
    assert living.published(as_of_run=RUN) == (whole, ["m1", "m2"])


def test_the_pages_of_a_list_keep_to_the_snapshot_they_began_in(living: Living) -> None:
    living.happened(*(created(f"01JCW4ZZZZ000000000000001{number}") for number in range(5)))
    first = living.fold()
    page = living.told("runs", limit=2)
    seen = [one["run_id"] for one in page["items"]]
    living.happened(created("01JCW4ZZZZ0000000000000099"))
    second = living.fold()
    while page["next_cursor"] is not None:
        page = living.told("runs", limit=2, cursor=page["next_cursor"])
        assert page["snapshot"] == first
        seen += [one["run_id"] for one in page["items"]]
    assert sorted(seen) == [f"01JCW4ZZZZ000000000000001{number}" for number in range(5)]
    cursor = living.told("runs", limit=2)["next_cursor"]
    assert living.told("runs", cursor=cursor)["snapshot"] == second
    assert "another question" in living.problem("runs", cursor=cursor, state="failed")["detail"]
    assert "belongs to snapshot" in living.problem("runs", cursor=cursor, snapshot=first)["detail"]


def test_fresh_pages_go_on_where_they_ended(living: Living) -> None:
    living.happened(*(created(f"01JCW4ZZZZ000000000000001{number}") for number in range(5)))
    page = living.told("runs", limit=2, fresh=True)
    seen = [one["run_id"] for one in page["items"]]
    while page["next_cursor"] is not None:
        page = living.told("runs", limit=2, fresh=True, cursor=page["next_cursor"])
        seen += [one["run_id"] for one in page["items"]]
    assert len(set(seen)) == len(seen) == 5


def test_two_snapshots_are_compared(living: Living) -> None:
    living.happened(created())
    first = living.fold()
    living.happened(completed())
    second = living.fold()
    found = living.told("catalog/diff", before=first)
    assert (found["before"], found["snapshot"]) == (first, second)
    (runs,) = found["tables"]
    assert (runs["table"], runs["added"], runs["removed"], runs["changed"]) == ("runs", 0, 0, 1)
    assert runs["rows"][0]["after"]["state"] == "succeeded"
    assert living.told("catalog/diff", before=second, snapshot=first)["tables"][0]["changed"] == 1
    assert living.told("catalog/diff", before=second)["tables"] == []


# Who need not be told again


def test_an_answer_that_is_known_is_not_sent_again(still: HttpGround) -> None:
    first = still.get("assets", tag="ml")
    etag = first.headers["etag"]
    again = still.get("assets", known=etag, tag="ml")
    assert (again.status, again.body, again.headers["etag"]) == (304, b"", etag)
    assert still.get("assets", known=f'"other", W/{etag}', tag="ml").status == 304
    assert still.get("assets", known='"other"', tag="ml").status == 200
    # The same question of the same state, asked for otherwise.
    assert still.get("assets", known=etag, tag="ml", snapshot=still.snapshot).status == 304
    assert still.get("assets", known=etag, tag="ml", as_of=str(NOW_MS)).status == 304


def test_another_question_or_another_state_has_another_tag(living: Living) -> None:
    living.happened(created(), begun("t1"), made("m1"))
    first = living.fold()
    tags = [
        living.get(path, **query).headers["etag"]
        for path, query in (
            ("runs", {}),
            ("runs", {"state": "failed"}),
            ("runs", {"project": "failed"}),
            ("runs", {"limit": "7"}),
            ("runs", {"warehouse": "default/other"}),
            (f"runs/{RUN}", {}),
            (f"runs/{RUN}/tasks", {}),
            (OUTPUTS, {}),
            ("catalog/snapshot", {}),
        )
    ]
    assert len(set(tags)) == len(tags)
    living.happened(completed(succeeded=2))
    living.fold()
    now = living.get("runs").headers["etag"]
    assert now not in tags
    assert living.get("runs", known=tags[0]).status == 200
    assert living.get("runs", known=tags[0], snapshot=first).status == 304
    # The same state with a warning is another answer.
    assert living.get("runs", as_of_run=RUN).headers["etag"] not in {*tags, now}


def test_what_changes_without_a_fold_has_no_tag(still: HttpGround) -> None:
    for path, query in (
        ("runs", {"fresh": "true"}),
        ("health", {}),
        ("sla", {}),
        ("assets/shop.orders", {}),
        ("assets/shop.orders/health", {}),
        ("assets/shop.orders/explain", {}),
    ):
        answer = still.get(path, **query)
        assert (answer.status, answer.headers.get("etag"), answer.headers["cache-control"]) == (200, None, "no-store")
    pinned = still.get("health", snapshot=still.snapshot)
    assert still.get("health", known=pinned.headers["etag"], snapshot=still.snapshot).status == 304
    assert still.get("health", known=pinned.headers["etag"], as_of=str(NOW_MS + 5)).status == 304


def test_a_known_answer_is_not_looked_up(still: HttpGround) -> None:
    etag = still.get("search", q="orders").headers["etag"]
    reader = still.runner.run(still.state.libraries.of(Scope.of()).open()).reader
    before = dict(reader.touched)
    reader.touched.clear()
    try:
        assert still.get("search", known=etag, q="orders").status == 304
        assert reader.touched == {}
    finally:
        reader.touched |= before


# Side by side


def test_many_first_questions_at_once_are_all_answered(still: HttpGround) -> None:
    """Nothing is open yet: they share one database, and what it holds is made once."""
    still.state.libraries.close()
    paths = ["assets", "runs", "assets/shop.orders", "health", "search?q=orders", "sla", "catalog/snapshot"]

    async def all_at_once() -> list[int]:
        asked = [ask(still.app, "GET", f"/api/v1/{path}") for path in paths * 4]
        return [answer.status for answer in await asyncio.gather(*asked)]

    assert still.runner.run(all_at_once()) == [200] * 28


def test_many_fresh_questions_at_once_are_all_answered(living: Living) -> None:
    living.happened(created(), begun("t1"), made("m1"))

    async def all_at_once() -> list[Any]:
        asked = [ask(living.app, "GET", f"/api/v1/{OUTPUTS}?fresh=true") for _ in range(8)]
        return [answer.json["outputs"][0]["materialization_id"] for answer in await asyncio.gather(*asked)]

    assert living.runner.run(all_at_once()) == ["m1"] * 8


def test_the_loop_goes_on_while_a_question_is_answered(still: HttpGround) -> None:
    """A slow query of DuckDB holds up nobody: the loop turns meanwhile."""
    reader = still.runner.run(still.state.libraries.of(Scope.of()).open()).reader

    async def turns() -> int:
        slow = asyncio.ensure_future(reader.rows("SELECT sum(a.range * b.range) AS n FROM range(6000) a, range(6000) b"))
        count = 0
        while not slow.done():
            count += 1
            await asyncio.sleep(0)
        await slow
        return count

    assert still.runner.run(turns()) > 100


def test_a_server_that_ends_leaves_no_files_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ground = HttpGround()
    ground.told("assets")
    assert [one.name.rpartition("-")[0] for one in tmp_path.iterdir()] == ["arco-state"]
    ground.close()
    assert list(tmp_path.iterdir()) == []

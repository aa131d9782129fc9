"""Rows that were set aside are put back into the partitions that they were set aside from: once, or not at all."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from arco.iceberg.changes import AddSchema, SetCurrentSchema
from arco.kernel import crash_points
from arco.kernel.errors import Conflict, InvalidInput, NotFound, PartitionsTouched
from arco.ledger.appender import Appender
from arco.ledger.drafts import Draft
from arco.ledger.execution_events import MATERIALIZATION_COMPLETED, OUTPUT_RELEASED
from arco.ledger.payloads import SERVO
from arco.ledger.reading import events
from arco.servo.execute.desk import Desk, Outcome
from arco.servo.execute.desk_decisions import Stage, Verdict, decision_object
from arco.servo.execute.held import Held, decisions, published, rows_set_aside
from arco.servo.execute.released_rows import _table, write_rows
from arco.servo.execute.snapshots import Append
from arco.storage.keys import Domain
from fixtures.servo.lake import Lake
from unit.servo.execute.test_desk import BY_DAY, SCHEMA, DiedError, dying_at

ASIDE = {
    "type": "struct",
    "fields": [
        *SCHEMA["fields"],
        {"id": 3, "name": "arco_rules", "type": "string", "required": False},
        {"id": 4, "name": "arco_run_id", "type": "string", "required": False},
        {"id": 5, "name": "arco_task_id", "type": "string", "required": False},
        {"id": 6, "name": "arco_at", "type": "timestamptz", "required": False},
    ],
}
STEPS = ["quarantine.claimed", "quarantine.rows_written", "quarantine.committed", "quarantine.told"]


class Shop:
    """A table with a row of each of two days, and two rows that were set aside when they were made."""

    def __init__(self, lake: Lake, mode: str = "replace") -> None:
        self.lake = lake
        self.made = self.lake.materialization()
        base = self.lake.create("t", SCHEMA, partition_spec=BY_DAY)
        self.publish({"day": [1, 2], "n": [10, 20]}, base, materialization_id=self.made)
        aside = self.lake.create("t__quarantine", ASIDE)
        bad = {"day": [1, 1], "n": [-1, -2]} | {
            "arco_rules": ["in_range(n)"] * 2, "arco_run_id": ["r"] * 2, "arco_task_id": ["t"] * 2,
            "arco_at": [datetime(2025, 1, 1, tzinfo=UTC)] * 2,
        }  # fmt: skip
        others = {word: [*values, values[0]] for word, values in bad.items()} | {"arco_task_id": ["t", "t", "another"]}
        files = write_rows(_typed(others, aside), aside, self.lake.io, self.lake.entropy)
        facts = {"arco.asset": "db.t", "arco.asset-id": "a"}
        words = {"materialization_id": self.made, "run_id": "r", "task_id": "t/quarantine", "facts": facts}
        self.lake.publish("t__quarantine", aside, files, Append(), **words)
        self.lake.run(self._tell(mode, base.table_uuid))

    async def _tell(self, mode: str, table_uuid: str) -> None:
        parts = self.lake.catalog.parts
        said = {
            "materialization_id": str(self.made), "run_id": "r", "task_id": "t", "attempt": 1, "asset": "db.t",
            "asset_id": "a", "table_uuid": table_uuid, "partitions": [{"day": [1, 3]}], "code": "c", "code_version": "v",
            "plan_fingerprint": "p", "inputs": {}, "input_snapshots": {}, "snapshot_id": 1, "rows": 2, "bytes": 1000,
            "files": 2, "schema_id": 0, "started_ms": 1, "published_ms": 2, "mode": mode,
        }  # fmt: skip
        ledger = Appender(self.lake.store, parts.scope, parts.clock, parts.entropy)
        await ledger.append(Domain.EXECUTION, [Draft(type=MATERIALIZATION_COMPLETED, source=SERVO, data=said)])
        await ledger.close()

    def publish(self, rows: dict[str, list[Any]], base: Any = None, **more: Any) -> None:
        table = base or self.lake.load("t")
        self.lake.publish(
            "t", table, write_rows(_typed(rows, table), table, self.lake.io, self.lake.entropy), Append(), **more
        )

    def events(self) -> list[Any]:
        return self.lake.run(events(self.lake.store, self.lake.catalog.parts.scope, Domain.EXECUTION))

    def aside(self) -> Held:
        (one,) = rows_set_aside(self.lake.load("t__quarantine"), decisions(self.events()), published(self.events()))
        return one

    def decide(self, verdict: Verdict = Verdict.RELEASE, who: str = "ann", why: str = "they are right") -> Outcome:
        catalog = self.lake.another()
        try:
            return self.lake.run(Desk(catalog, who).decide(self.aside(), verdict, who, why))
        finally:
            self.lake.run(catalog.parts.afterwards.settle())

    def rows(self) -> list[tuple[int, int]]:
        found = _table(self.lake.load("t"), self.lake.io).scan().to_arrow().to_pylist()
        return sorted((one["day"], one["n"]) for one in found)

    def stage(self) -> Stage | None:
        found = self.lake.run(decision_object(self.lake.catalog.parts, str(self.made), "rows").read())
        return None if found is None else found.value.stage


def _typed(rows: dict[str, list[Any]], table: Any) -> pa.Table:
    kinds = {"int": pa.int32(), "long": pa.int64(), "string": pa.string(), "timestamptz": pa.timestamp("us", "UTC")}
    return pa.table(
        {one["name"]: pa.array(rows[one["name"]], kinds[one["type"]]) for one in table.current_schema["fields"]}
    )


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with Lake(tmp_path / "lake") as lake:
        yield lake
    crash_points.install(None)


@pytest.fixture
def shop(lake: Lake) -> Shop:
    return Shop(lake)


def test_rows_are_put_back_once_with_who_and_why(shop: Shop) -> None:
    done = shop.decide()
    assert shop.rows() == [(1, -2), (1, -1), (1, 10), (2, 20)]
    table = shop.lake.load("t")
    assert done.snapshot_id == table.current_snapshot_id
    summary = table.snapshots[-1]["summary"]
    assert (summary["arco.released-rows"], summary["arco.released-by"]) == (str(shop.made), "ann")
    first, completed, released = (event.data for event in shop.events())
    assert (released["what"], released["who"], released["why"]) == ("rows", "ann", "they are right")
    assert (completed["rows"], completed["snapshot_id"], completed["partitions"]) == (
        4,
        done.snapshot_id,
        first["partitions"],
    )
    assert completed["materialization_id"] != first["materialization_id"]
    again = shop.decide(who="bob", why="me too")
    assert (again.decision.who, again.snapshot_id) == ("ann", done.snapshot_id)
    assert len(shop.rows()) == 4
    assert len(shop.events()) == 3
    with pytest.raises(Conflict, match="ann decided otherwise"):
        shop.decide(Verdict.DISCARD)


@pytest.mark.parametrize("point", STEPS)
def test_whoever_dies_half_way_is_finished_in_their_name_and_nothing_is_put_back_twice(shop: Shop, point: str) -> None:
    crash_points.install(dying_at(point))
    with pytest.raises(DiedError):
        shop.decide()
    assert shop.stage() is Stage.OPEN
    with pytest.raises(Conflict, match="ann is about to release it"):
        shop.decide(Verdict.DISCARD, "bob")
    assert shop.decide(who="bob", why="other words").decision.who == "ann"
    assert shop.rows() == [(1, -2), (1, -1), (1, 10), (2, 20)]
    kinds = [event.type for event in shop.events()]
    assert (kinds.count(MATERIALIZATION_COMPLETED), kinds.count(OUTPUT_RELEASED)) == (2, 1)
    assert shop.stage() is Stage.DONE


def test_two_who_release_at_once_put_the_rows_back_once(shop: Shop) -> None:
    one = shop.aside()

    async def both() -> None:
        catalogs = [shop.lake.another() for _ in range(2)]
        await asyncio.gather(*(Desk(catalog, "x").decide(one, Verdict.RELEASE, "x", "y") for catalog in catalogs))
        await asyncio.gather(*(catalog.parts.afterwards.settle() for catalog in catalogs))

    shop.lake.run(both())
    assert len(shop.rows()) == 4


def test_a_partition_that_was_published_since_is_left_as_it_is(shop: Shop) -> None:
    shop.publish({"day": [2], "n": [21]})
    with pytest.raises(PartitionsTouched):
        shop.decide()
    assert shop.rows() == [(1, 10), (2, 20), (2, 21)]
    assert shop.stage() is Stage.REFUSED
    shop.decide(Verdict.DISCARD)  # what was refused is on the desk, for the next who decides
    assert shop.rows() == [(1, 10), (2, 20), (2, 21)]


def test_what_was_published_in_other_partitions_since_stays(shop: Shop) -> None:
    shop.publish({"day": [7], "n": [70]})
    shop.decide()
    assert shop.rows() == [(1, -2), (1, -1), (1, 10), (2, 20), (7, 70)]


def test_rows_of_a_table_with_other_columns_are_not_put_back(shop: Shop) -> None:
    wider = {**SCHEMA, "fields": [*SCHEMA["fields"], {"id": 3, "name": "m", "type": "long", "required": False}]}
    shop.lake.commit("t", AddSchema(wider), SetCurrentSchema(-1))
    with pytest.raises(PartitionsTouched, match="other columns"):
        shop.decide()
    assert shop.stage() is Stage.REFUSED


@pytest.mark.parametrize("mode", ["append", "merge"])
def test_rows_of_an_asset_that_adds_to_what_was_are_refused_before_anything_is_claimed(lake: Lake, mode: str) -> None:
    shop = Shop(lake, mode)
    with pytest.raises(InvalidInput, match=f"db.t is written by {mode}"):
        shop.decide()
    assert shop.stage() is None
    shop.decide(Verdict.DISCARD)
    assert len(shop.rows()) == 2


def test_rows_that_are_gone_are_said_to_be(shop: Shop) -> None:
    one = shop.aside()
    gone = Held(**{name: getattr(one, name) for name in Held.__slots__} | {"task_id": "nobody"})
    with pytest.raises(NotFound, match="not in quarantine any more"):
        shop.lake.run(Desk(shop.lake.another(), "ann").decide(gone, Verdict.RELEASE, "ann", "why"))

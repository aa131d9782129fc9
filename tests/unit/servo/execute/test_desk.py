"""The quarantine desk: what is held back is published once or given up once, whoever decides, dies or comes late."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from arco.iceberg.metadata import TableMetadata
from arco.kernel import crash_points
from arco.kernel.errors import Conflict, InvalidInput, NotFound, PartitionsTouched
from arco.ledger.appender import Appender
from arco.ledger.drafts import Draft
from arco.ledger.execution_events import (
    MATERIALIZATION_COMPLETED,
    OUTPUT_DISCARDED,
    OUTPUT_HELD,
    OUTPUT_RELEASED,
    OutputHeld,
)
from arco.ledger.payloads import SERVO
from arco.ledger.reading import events
from arco.servo.execute.desk import Desk, Outcome
from arco.servo.execute.desk_decisions import Stage, Verdict, decision_object
from arco.servo.execute.held import Held, held_outputs, still_open
from arco.servo.execute.snapshots import Append, ReplaceAll, Replay
from arco.storage.keys import Domain
from fixtures.servo.lake import Lake, data_file

SCHEMA = {
    "type": "struct",
    "fields": [
        {"id": 1, "name": "day", "type": "int", "required": False},
        {"id": 2, "name": "n", "type": "long", "required": False},
    ],
}
BY_DAY = {"fields": [{"source-id": 1, "field-id": 1000, "name": "day", "transform": "identity"}]}
RELEASE, DISCARD = Verdict.RELEASE, Verdict.DISCARD


class DiedError(BaseException):
    """A process that is gone."""


@pytest.fixture
def lake() -> Iterator[Lake]:
    with Lake() as lake:
        yield lake
    crash_points.install(None)


def held(lake: Lake, base: TableMetadata, name: str, day: int | None = 1, change: Any = None, **more: Any) -> Held:
    """An output of one file that its checks held back."""
    materialization = lake.materialization()
    branch = f"held-{materialization}"
    values = () if day is None else (day,)
    file = data_file(base, f"{name}.parquet", *values)
    lake.publish("t", base, (file,), change or Append(), ref=branch, materialization_id=materialization, **more)
    completed = {
        "materialization_id": materialization, "run_id": "r", "task_id": "t", "attempt": 1, "asset": "db.t", "asset_id": "a",
        "table_uuid": base.table_uuid, "partitions": [{"day": [day, day]}], "code": "c", "code_version": "v",
        "plan_fingerprint": "p", "inputs": {}, "input_snapshots": {}, "snapshot_id": 1, "rows": 10, "bytes": 1000, "files": 1,
        "schema_id": 0, "started_ms": 1, "published_ms": 2,
    }  # fmt: skip
    said = OutputHeld(
        materialization_id=str(materialization), run_id="r", task_id="t", asset="db.t", asset_id="a", partitions=[],
        action="quarantine", reasons=("unique(n)",), branch=branch, snapshot_id=1, completed=completed,
    )  # fmt: skip
    parts = lake.catalog.parts

    async def tell() -> None:
        ledger = Appender(lake.store, parts.scope, parts.clock, parts.entropy)
        draft = Draft(type=OUTPUT_HELD, source=SERVO, subject="db.t", data=said.data(), idempotencykey=str(materialization))
        await ledger.append(Domain.EXECUTION, [draft])
        await ledger.close()

    lake.run(tell())
    return next(one for one in on_desk(lake) if one.materialization_id == materialization)


def on_desk(lake: Lake) -> list[Held]:
    return held_outputs(told(lake))


def told(lake: Lake) -> list[Any]:
    return lake.run(events(lake.store, lake.catalog.parts.scope, Domain.EXECUTION))


def decide(lake: Lake, one: Held, verdict: Verdict, who: str = "ann", why: str = "it is right") -> Outcome:
    return lake.run(Desk(lake.another(), who).decide(one, verdict, who, why))


def stage(lake: Lake, one: Held) -> Stage | None:
    found = lake.run(decision_object(lake.catalog.parts, one.materialization_id, one.what).read())
    return None if found is None else found.value.stage


def names(lake: Lake, **which: Any) -> list[str]:
    return lake.paths(lake.load("t"), **which)


def test_a_branch_that_main_leads_to_becomes_main(lake: Lake) -> None:
    base = lake.create("t", SCHEMA, partition_spec=BY_DAY)
    base = lake.publish("t", base, (data_file(base, "old.parquet", 0),)).metadata
    one = held(lake, base, "new")
    assert names(lake) == ["old.parquet"]
    decide(lake, one, RELEASE)
    table = lake.load("t")
    assert names(lake) == ["new.parquet", "old.parquet"]
    assert sorted(table.refs) == ["main"]
    kinds = [event.type for event in told(lake)]
    assert kinds == [OUTPUT_HELD, MATERIALIZATION_COMPLETED, OUTPUT_RELEASED]
    completed = told(lake)[1].data
    assert completed["snapshot_id"] == table.current_snapshot_id
    (settled,) = on_desk(lake)
    assert settled.settled is not None
    assert (settled.settled.verdict, settled.settled.who, settled.settled.why) == ("released", "ann", "it is right")
    assert still_open([settled]) == []
    assert stage(lake, one) is Stage.DONE


def test_an_output_that_was_to_make_the_table(lake: Lake) -> None:
    base = lake.create("t", SCHEMA, partition_spec=BY_DAY)
    one = held(lake, base, "new")
    decide(lake, one, RELEASE)
    assert names(lake) == ["new.parquet"]


def test_what_main_did_in_other_partitions_stays_when_a_branch_is_released(lake: Lake) -> None:
    base = lake.create("t", SCHEMA, partition_spec=BY_DAY)
    first = data_file(base, "one.parquet", 1)
    base = lake.publish("t", base, (first, data_file(base, "two.parquet", 2))).metadata
    replaced = Replay(frozenset({first.file_path.removeprefix("file://")}), frozenset())
    one = held(lake, base, "one_again", change=replaced)
    lake.publish("t", lake.load("t"), (data_file(base, "three.parquet", 3),))
    assert names(lake) == ["one.parquet", "three.parquet", "two.parquet"]
    decide(lake, one, RELEASE)
    assert names(lake) == ["one_again.parquet", "three.parquet", "two.parquet"]
    assert sorted(lake.load("t").refs) == ["main"]


def test_main_that_went_on_in_the_same_partition_is_not_undone(lake: Lake) -> None:
    base = lake.create("t", SCHEMA, partition_spec=BY_DAY)
    one = held(lake, base, "late", change=ReplaceAll())
    lake.publish("t", lake.load("t"), (data_file(base, "newer.parquet", 1),))
    with pytest.raises(PartitionsTouched, match="changed rows of t"):
        decide(lake, one, RELEASE)
    assert names(lake) == ["newer.parquet"]
    assert stage(lake, one) is Stage.REFUSED
    assert len(still_open(on_desk(lake))) == 1
    decide(lake, one, DISCARD, why="a newer one is there")
    assert still_open(on_desk(lake)) == []


def test_a_table_without_partitions_is_one_place(lake: Lake) -> None:
    base = lake.create("t", SCHEMA)
    one = held(lake, base, "late", day=None, change=ReplaceAll())
    lake.publish("t", lake.load("t"), (data_file(base, "newer.parquet"),))
    with pytest.raises(PartitionsTouched):
        decide(lake, one, RELEASE)


def test_a_discard_takes_the_branch_and_deletes_nothing(lake: Lake) -> None:
    base = lake.create("t", SCHEMA, partition_spec=BY_DAY)
    one = held(lake, base, "bad")
    snapshots = len(lake.load("t").snapshots)
    decide(lake, one, DISCARD, why="broken source")
    table = lake.load("t")
    assert table.refs == {}
    assert len(table.snapshots) == snapshots
    assert [event.type for event in told(lake)] == [OUTPUT_HELD, OUTPUT_DISCARDED]


def test_done_twice_is_done_once(lake: Lake) -> None:
    base = lake.create("t", SCHEMA, partition_spec=BY_DAY)
    one = held(lake, base, "new")
    first = decide(lake, one, RELEASE, "ann", "it is right")
    second = decide(lake, one, RELEASE, "bob", "so it is")
    assert first.snapshot_id == second.snapshot_id
    assert (second.decision.who, second.decision.why) == ("ann", "it is right")
    assert len(told(lake)) == 3
    with pytest.raises(Conflict, match="ann decided otherwise: release"):
        decide(lake, one, DISCARD, "bob", "no")


def test_two_people_at_once_publish_it_once(lake: Lake) -> None:
    base = lake.create("t", SCHEMA, partition_spec=BY_DAY)
    one = held(lake, base, "new")

    async def both() -> list[Any]:
        desks = [Desk(lake.another(), who).decide(one, RELEASE, who, "me first") for who in ("ann", "bob")]
        return await asyncio.gather(*desks)

    first, second = lake.run(both())
    assert first.snapshot_id == second.snapshot_id
    assert first.decision.who == second.decision.who
    assert names(lake) == ["new.parquet"]
    assert len(told(lake)) == 3


def dying_at(point: str) -> Callable[[str], None]:
    def hook(reached: str) -> None:
        if reached == point:
            crash_points.install(None)
            raise DiedError

    return hook


@pytest.mark.parametrize("verdict", Verdict)
@pytest.mark.parametrize("point", ["quarantine.claimed", "quarantine.committed", "quarantine.told"])
def test_whoever_dies_half_way_is_finished_in_their_name(lake: Lake, point: str, verdict: Verdict) -> None:
    base = lake.create("t", SCHEMA, partition_spec=BY_DAY)
    one = held(lake, base, "new")
    crash_points.install(dying_at(point))
    with pytest.raises(DiedError):
        decide(lake, one, verdict, "ann", "first words")
    assert stage(lake, one) is Stage.OPEN
    other = next(kind for kind in Verdict if kind is not verdict)
    with pytest.raises(Conflict, match=f"ann is about to {verdict.value} it"):
        decide(lake, one, other, "bob", "other words")
    decide(lake, one, verdict, "bob", "other words")
    (settled,) = on_desk(lake)
    assert settled.settled is not None
    assert (settled.settled.who, settled.settled.why) == ("ann", "first words")
    assert len(told(lake)) == (3 if verdict is RELEASE else 2)
    assert stage(lake, one) is Stage.DONE


def test_a_branch_that_somebody_else_took_away(lake: Lake) -> None:
    base = lake.create("t", SCHEMA, partition_spec=BY_DAY)
    one, other = held(lake, base, "new"), held(lake, base, "other", 2)
    decide(lake, one, DISCARD)
    gone = Held(**{**{name: getattr(other, name) for name in Held.__slots__}, "branch": one.branch})
    with pytest.raises(NotFound, match="is gone"):
        decide(lake, gone, RELEASE)


def test_a_decision_needs_a_reason(lake: Lake) -> None:
    base = lake.create("t", SCHEMA, partition_spec=BY_DAY)
    one = held(lake, base, "new")
    with pytest.raises(InvalidInput, match="without a reason"):
        decide(lake, one, RELEASE, why=" ")
    assert stage(lake, one) is None

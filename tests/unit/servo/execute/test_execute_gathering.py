"""Gathering facts: what is published, whoever died, and what still stands of it."""

from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from arco.catalog.manifest import Author
from arco.iceberg import changes
from arco.kernel.errors import NotFound
from arco.ledger.reading import events
from arco.ledger.run_entries import EventsAppended
from arco.servo.deploy.dynamic_values import DynamicDimensions
from arco.servo.execute.gathering import load_snapshot, store_snapshot
from arco.servo.plan.facts import PlanningSnapshot, decode_snapshot
from arco.servo.sdk.authoring import asset, source
from arco.servo.sdk.dimensions import dynamic
from arco.servo.sdk.inputs import files
from arco.storage.keys import Domain, parse
from arco.storage.paging import walk
from fixtures.servo.lake import Lake, data_file
from fixtures.servo.pipeline import Pipeline

AUTHOR = Author("tests", None)
NOW_MS = int(datetime(2025, 1, 31, tzinfo=UTC).timestamp() * 1000)


@asset
def a() -> object: ...


@asset
def b(a: object) -> object: ...


outside = source("outside")


@pytest.fixture
def lake():
    with Lake() as found:
        yield found


@pytest.fixture
def shop(lake) -> Pipeline:
    return Pipeline(lake, a, b, outside)


def made_of(facts: PlanningSnapshot, name: str = "a") -> list[str]:
    return [one.id for one in facts.of(f"db.{name}").materializations]


def to_snapshot(number: int) -> changes.SetSnapshotRef:
    return changes.SetSnapshotRef(ref_name="main", type="branch", snapshot_id=number)


def names(lake: Lake, count: int) -> list[str]:
    return [str(lake.materialization()) for _ in range(count)]


def test_nothing_is_known_of_a_project_that_never_ran(shop):
    assert shop.facts().assets == {}


def test_what_the_ledger_says_is_published_is_known_with_its_table(lake, shop):
    uuid, (one,) = shop.table("a"), names(lake, 1)
    snapshot_id = shop.publish("a", one)
    shop.append(shop.made("a", one, snapshot_id))
    found = shop.facts().of("db.a")
    assert [(made.id, made.rows, made.snapshot_id) for made in found.materializations] == [(one, 10, snapshot_id)]
    assert (found.table.table_uuid, found.table.snapshot_id, found.table.schema_id) == (uuid, snapshot_id, 0)
    assert found.table.metadata_location == lake.location("a")
    assert not found.table.external_commit
    assert [field["name"] for field in found.table.schema["fields"]] == [
        field["name"] for field in lake.load("a").current_schema["fields"]
    ]


def test_deadlines_are_among_the_facts(lake):
    @asset(name="a", fresh_within="6h")
    def hurried() -> object: ...

    shop, (one,) = Pipeline(lake, hurried), names(lake, 1)
    shop.table("a")
    assert shop.facts(now_ms=NOW_MS).of("db.a").fresh_until_ms == NOW_MS
    shop.append(shop.made("a", one, shop.publish("a", one)))
    found = shop.facts(now_ms=NOW_MS).of("db.a")
    assert found.fresh_until_ms == found.materializations[0].published_ms + 6 * 3_600_000


def test_the_same_facts_have_the_same_id_and_others_another(lake, shop):
    shop.table("a")
    (one,) = names(lake, 1)
    snapshot_id = shop.publish("a", one)
    before = shop.facts(now_ms=NOW_MS)
    assert shop.facts(now_ms=NOW_MS) == before
    assert shop.facts(now_ms=NOW_MS + 1).id != before.id
    shop.append(shop.made("a", one, snapshot_id))
    assert shop.facts(now_ms=NOW_MS).id != before.id


def test_facts_are_stored_once_under_their_id_and_found_again(lake, shop):
    shop.table("a")
    facts = shop.facts()
    with pytest.raises(NotFound, match="no planning snapshot"):
        lake.run(load_snapshot(lake.catalog, facts.id))
    lake.run(store_snapshot(lake.catalog, facts))
    lake.run(store_snapshot(lake.catalog, facts))
    assert lake.run(load_snapshot(lake.another(), facts.id)) == facts
    assert decode_snapshot(facts.encode(), "x") == facts


def test_gathering_writes_nothing(lake, shop):
    shop.table("a")

    async def listed():
        return [entry.key async for entry in walk(lake.store, "default/")]

    lake.run(lake.catalog.parts.afterwards.settle())
    before = lake.run(listed())
    shop.facts()
    assert lake.run(listed()) == before


# Other systems


def test_what_others_say_of_an_asset_is_not_what_was_published(lake, shop):
    """Anybody who may send events could otherwise make a partition look fresh, or a run that still owes events look done."""
    shop.table("a")
    (one,) = names(lake, 1)
    log = shop.started()
    shop.stage(log, one, shop.made("a", one, shop.publish("a", one)))
    shop.end(log, one)
    said = [shop.completed(log.run), shop.made("a", "01JGQ0000000000000000000M9", 5), shop.held("a", "x", partitions=[7])]
    shop.append(*(msgspec.structs.replace(draft, source="airflow") for draft in said))
    assert made_of(shop.facts()) == [one]


# The outbox


def test_a_publish_that_the_log_knows_and_the_ledger_does_not_is_published(lake, shop):
    """A crash between the entry of the log and the append to the ledger."""
    shop.table("a")
    (one,) = names(lake, 1)
    log = shop.started()
    shop.stage(log, one, shop.made("a", one, shop.publish("a", one)))
    shop.end(log, one)
    assert lake.run(events(lake.store, log.scope, Domain.EXECUTION)) == []
    assert made_of(shop.facts()) == [one]


def test_a_publish_that_only_the_table_knows_is_published(lake, shop):
    """A crash between the commit and the entry of the log that says it landed."""
    shop.table("a")
    (one,) = names(lake, 1)
    log = shop.started()
    shop.stage(log, one, shop.made("a", one, 5))
    assert made_of(shop.facts()) == []
    shop.publish("a", one)
    assert made_of(shop.facts()) == [one]


def test_events_of_a_log_count_once_whether_they_were_delivered_or_not(lake, shop):
    shop.table("a")
    (one,) = names(lake, 1)
    log, event = shop.started(), shop.made("a", one, shop.publish("a", one))
    shop.stage(log, one, event)
    shop.end(log, one)
    shop.append(event)
    assert made_of(shop.facts()) == [one]
    shop.paid(log)
    assert made_of(shop.facts()) == [one]


def test_what_was_delivered_while_the_ledger_was_being_read_is_not_missed(lake, shop, monkeypatch):
    """The names of the runs, then the ledger, then the logs: the log still has what it no longer owes."""
    shop.table("a")
    (one,) = names(lake, 1)
    log, event = shop.started(), shop.made("a", one, shop.publish("a", one))
    shop.stage(log, one, event)
    shop.end(log, one)

    async def read_then_overtaken(*arguments):
        found = await events(*arguments)
        await shop.appender.append(Domain.EXECUTION, [event])
        await log.append([EventsAppended(through=log.state.sequence)])
        return found

    monkeypatch.setattr("arco.read.planned_on.events", read_then_overtaken)
    assert made_of(shop.facts()) == [one]


def test_the_log_of_a_completed_run_is_not_opened(lake, shop):
    shop.table("a")
    (one,) = names(lake, 1)
    log = shop.started()
    shop.stage(log, one, shop.made("a", one, shop.publish("a", one)))
    shop.end(log, one)
    shop.append(shop.completed(log.run))
    assert made_of(shop.facts()) == [], "the completion in the ledger says that everything before it is there"


def test_a_run_that_was_planned_and_never_created_says_nothing(lake, shop):
    log = shop.started()

    async def forget_the_log():
        for entry in [one async for one in walk(lake.store, "default/default/_catalog/runs/")]:
            if "/log/" in str(parse(entry.key)):
                await lake.store.delete(entry.key)

    lake.run(forget_the_log())
    assert log.state.sequence == 1
    assert shop.facts().assets == {}


def test_a_publish_that_never_landed_is_no_fact(lake, shop):
    shop.table("a")
    (one,) = names(lake, 1)
    log = shop.started()
    shop.stage(log, one, shop.made("a", one, 5))
    assert not log.state.owed
    assert made_of(shop.facts()) == []


# What still stands


def test_what_was_published_to_a_table_that_was_dropped_is_gone(lake, shop):
    shop.table("a")
    (one,) = names(lake, 1)
    shop.append(shop.made("a", one, shop.publish("a", one)))
    lake.run(lake.catalog.tables.drop(("db",), "a", purge=False, key=lake.key("drop"), author=AUTHOR))
    assert shop.facts().of("db.a").materializations == ()
    shop.table("a")
    assert made_of(shop.facts()) == []


def test_what_a_table_was_set_back_behind_is_gone(lake, shop):
    shop.table("a")
    one, two = names(lake, 2)
    first = shop.publish("a", one)
    shop.append(shop.made("a", one, first))
    shop.append(shop.made("a", two, shop.publish("a", two)))
    assert made_of(shop.facts()) == [two], "what lies under a later publish of the same partitions is no fact"
    lake.commit("a", to_snapshot(first))
    assert made_of(shop.facts()) == [one]


def test_an_event_that_was_appended_late_is_no_later_publish(lake, shop):
    shop.table("a")
    one, two = names(lake, 2)
    late = shop.made("a", one, shop.publish("a", one))
    shop.append(shop.made("a", two, shop.publish("a", two)))
    shop.append(late)
    assert made_of(shop.facts()) == [two]


def test_a_commit_of_somebody_else_is_seen(lake, shop):
    shop.table("a")
    (one,) = names(lake, 1)
    shop.append(shop.made("a", one, shop.publish("a", one)))
    base = lake.load("a")
    snapshot = {
        **base.snapshots[-1],
        "snapshot-id": 77,
        "parent-snapshot-id": base.current_snapshot_id,
        "sequence-number": base.last_sequence_number + 1,
    }
    rewritten = {**snapshot, "summary": {"operation": "replace"}}
    lake.commit("a", changes.AddSnapshot(rewritten), to_snapshot(77))
    assert not shop.facts().of("db.a").table.external_commit, "rewriting files changes no row"
    appended = {**snapshot, "snapshot-id": 78, "parent-snapshot-id": 77, "sequence-number": base.last_sequence_number + 2}
    lake.commit(
        "a",
        changes.AddSnapshot({**appended, "summary": {"operation": "append"}}),
        to_snapshot(78),
    )
    found = shop.facts().of("db.a")
    assert found.table.external_commit
    assert [made.id for made in found.materializations] == [one]


def test_what_another_project_publishes_to_the_same_table_is_seen(lake, shop):
    shop.table("a")
    mine, theirs = names(lake, 2)
    shop.append(shop.made("a", mine, shop.publish("a", mine)))
    assert not shop.facts().of("db.a").table.external_commit
    shop.publish("a", theirs)
    assert shop.facts().of("db.a").table.external_commit


def test_what_was_held_back_is_known_with_its_reasons(lake, shop):
    shop.table("a")
    (one,) = names(lake, 1)
    shop.append(shop.held("a", one))
    (held,) = shop.facts().of("db.a").held
    assert (held.id, held.reasons, held.branch) == (one, ("unique(id)",), "quarantine")


def test_a_renamed_asset_keeps_what_it_published(lake, shop):
    shop.table("a")
    (one,) = names(lake, 1)
    shop.append(shop.made("a", one, shop.publish("a", one)))

    @asset(name="c", renamed_from="a", table="db.a")
    def renamed() -> object: ...

    later = Pipeline(lake, renamed, outside)
    assert made_of(later.facts(), "c") == [one]


# Sources, files, values


def test_a_source_without_partitions_has_the_version_of_its_last_change(lake, shop):
    assert shop.facts().of("db.outside").table is None
    shop.table("outside")
    assert shop.facts().of("db.outside").table.versions == []
    base = lake.load("outside")
    done = lake.publish("outside", base, (data_file(base, "x"),))
    found = shop.facts().of("db.outside").table
    assert found.versions == [{"partitions": [{}], "version": f"snapshot {done.snapshot_id}"}]


def test_the_files_of_an_input_are_listed_below_the_projects_folder(lake, tmp_path: Path):
    @asset(inputs={"landed": files("landing/**/*.json")})
    def read(landed: object) -> object: ...

    shop = Pipeline(lake, read, folder=tmp_path)
    assert shop.facts().of("db.read").files["landed"].files == ()
    (tmp_path / "landing" / "deep").mkdir(parents=True)
    (tmp_path / "landing" / "deep" / "x.json").write_text("{}")
    first = shop.facts().of("db.read").files["landed"]
    assert first.files == ((tmp_path / "landing/deep/x.json").as_posix(),)
    (tmp_path / "landing" / "deep" / "x.json").write_text("{ }")
    assert shop.facts().of("db.read").files["landed"].fingerprint != first.fingerprint


def test_values_of_a_dynamic_dimension_are_facts(lake):
    @asset(partitions=dynamic("customer"))
    def per_customer() -> object: ...

    shop = Pipeline(lake, per_customer)
    assert shop.facts().assets == {}
    dimensions = DynamicDimensions(lake.store, lake.catalog.parts.scope, lake.clock, lake.entropy)
    asset_id = shop.asset_id("per_customer")
    assert lake.run(dimensions.add(asset_id, "customer", ["x", "y", "x"])) == ("x", "y")
    assert lake.run(dimensions.add(asset_id, "customer", ["z"])) == ("x", "y", "z")
    assert lake.run(dimensions.remove(asset_id, "customer", ["y", "unknown"])) == ("x", "z")
    assert shop.facts().of("db.per_customer").dynamic == {"customer": ["x", "z"]}

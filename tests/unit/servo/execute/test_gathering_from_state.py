"""Facts from the folded state and what is not folded yet: the same as from the whole ledger, for a price that does not grow."""

import msgspec
import pytest

from arco.fold.finding import Finder
from arco.fold.tables import tables_of
from arco.iceberg import changes
from arco.kernel.clock import SystemClock
from arco.ledger.drafts import Draft
from arco.ledger.envelope import EventType
from arco.ledger.quality_events import CHECK_EXECUTED
from arco.ledger.run_entries import EventsAppended
from arco.read.planned_on import rows_of_state
from arco.servo.sdk.authoring import asset
from arco.storage.keys import Domain, Head
from arco.storage.memory import MemoryStore
from arco.storage.paging import walk
from fixtures.servo.lake import Lake
from fixtures.servo.pipeline import Pipeline


@asset
def a() -> object: ...


@asset
def b(a: object) -> object: ...


class Sized(MemoryStore):
    """A store that says what was read of it, and how often it was listed."""

    def __init__(self, clock: SystemClock) -> None:
        super().__init__(clock)
        self.read: dict[str, int] = {}
        self.listed = 0

    async def get(self, key):
        found = await super().get(key)
        self.read[key] = 0 if found is None else len(found.data)
        return found

    async def list_page(self, *arguments):
        self.listed += 1
        return await super().list_page(*arguments)


@pytest.fixture
def store() -> Sized:
    return Sized(SystemClock())


@pytest.fixture
def lake(store):
    with Lake(store=store) as found:
        yield found


@pytest.fixture
def shop(lake) -> Pipeline:
    made = Pipeline(lake, a, b)
    made.table("a")
    return made


def publish(shop: Pipeline, times: int = 1, **more) -> list[str]:
    made = []
    for _ in range(times):
        one = str(shop.lake.materialization())
        number = shop.lake.load("a").last_sequence_number + 1
        shop.append(shop.made("a", one, shop.publish("a", one), sequence_number=number, **more))
        made.append(one)
    return made


def made_of(shop: Pipeline) -> list[str]:
    return [one.id for one in shop.facts().of("db.a").materializations]


def cost(shop: Pipeline) -> tuple[int, int]:
    """The requests and the bytes of one look, beside those of the table and of consumed lists: of these there are at most 16."""
    store = shop.lake.store
    store.read.clear()
    store.listed = 0
    shop.facts()
    read = {key: size for key, size in store.read.items() if "/metadata/" not in key and "/consumed/" not in key}
    return len(read) + store.listed, sum(read.values())


def test_what_is_folded_is_known_without_the_ledger(lake, shop):
    made = publish(shop, 3)
    assert shop.facts().state == ""
    shop.fold()
    shop.move_aside()

    async def forget_the_archive() -> None:
        for entry in [one async for one in walk(lake.store, "default/default/_catalog/archive/")]:
            await lake.store.delete(entry.key)

    lake.run(forget_the_archive())
    found = shop.facts()
    assert (made_of(shop), bool(found.state)) == (made[-1:], True)


def test_what_is_not_folded_yet_is_added(lake, shop):
    publish(shop)
    shop.fold()
    (later,) = publish(shop)
    assert made_of(shop) == [later]
    found = shop.facts()
    assert found.state
    assert found.read_up_to == found.of("db.a").materializations[0].position


def test_what_a_run_owes_the_ledger_is_added(lake, shop):
    publish(shop)
    shop.fold()
    log, one = shop.started(), str(lake.materialization())
    shop.stage(log, one, shop.made("a", one, shop.publish("a", one), sequence_number=9))
    assert made_of(shop) == [one], "only the table knows that it landed"
    shop.end(log, one)
    assert made_of(shop) == [one], "only the log knows"


def test_the_price_does_not_grow_with_what_is_folded(lake, shop):
    costs = []
    for _ in range(3):
        publish(shop, 20, inputs={"x": [{"partitions": [{}], "version": "v" * 500}]})
        shop.fold()
        shop.move_aside()
        shop.merge()
        costs.append(cost(shop))
    requests, sizes = zip(*costs, strict=True)
    assert max(requests) == min(requests)
    assert max(sizes) < 1.1 * min(sizes)


def test_a_table_that_was_set_back_has_what_lay_under_the_last_publish(lake, shop):
    first, _ = publish(shop, 2)
    shop.fold()
    shop.move_aside()
    lake.commit("a", changes.SetSnapshotRef("main", lake.load("a").snapshots[0]["snapshot-id"], "branch"))
    assert made_of(shop) == [first]
    assert shop.facts().state == "", "the state has forgotten it, the ledger has not"


def test_state_of_before_publishes_were_kept_is_not_enough(lake, shop, monkeypatch):
    """A head that an older Arco began lacks what came before: nobody may take it for everything."""
    (one,) = publish(shop)
    monkeypatch.setattr("arco.fold.folding.all_tables", lambda _: ())
    shop.fold()
    monkeypatch.undo()
    publish(shop)
    shop.fold()
    found = shop.facts()
    assert found.state == ""
    assert [made.id for made in found.of("db.a").materializations] != [one]


def test_state_of_before_words_were_kept_by_version_is_not_enough_if_it_has_words(lake, shop, monkeypatch):
    """A word about one version took the place of one about all: what is gone there is in the ledger still."""
    publish(shop)
    shop.append(shop.quarantined("a"), domain=Domain.QUALITY)
    monkeypatch.setattr("arco.fold.folding.all_tables", lambda head: tuple(table.name for table in tables_of(head)))
    shop.fold()
    monkeypatch.undo()
    found = shop.facts()
    assert (found.state, len(found.of("db.a").quarantined)) == ("", 1)


def test_words_that_are_folded_into_a_head_without_any_are_all_of_them(lake, shop, monkeypatch):
    publish(shop)
    result = {"check": "unique(id)", "kind": "unique", "severity": "error", "passed": True, "measured": None}
    told = {"check_id": "c", "run_id": "r", "task_id": "t", "materialization_id": "m", "asset": "db.a", "partitions": [{}]}
    checked = {**told, "asset_id": shop.asset_id("a"), "result": result, "action": "continue"}
    shop.append(Draft(type=CHECK_EXECUTED, source="arco/servo", data=checked), domain=Domain.QUALITY)
    monkeypatch.setattr("arco.fold.folding.all_tables", lambda head: tuple(table.name for table in tables_of(head)))
    shop.fold()
    monkeypatch.undo()
    shop.append(shop.quarantined("a"), domain=Domain.QUALITY)
    shop.fold()
    found = shop.facts()
    assert (bool(found.state), len(found.of("db.a").quarantined)) == (True, 1)


def test_what_others_said_and_could_not_be_folded_does_not_make_plans_read_the_ledger(lake, shop):
    (one,) = publish(shop)
    bad = shop.made("a", str(lake.materialization()), 5, partitions=[{"date": ["2025-01-01", "2025-01-02"]}])
    shop.append(msgspec.structs.replace(bad, source="airflow"))
    later = msgspec.structs.replace(bad, source="airflow", type=EventType("execution.weather.v1"), id=None)
    shop.append(later)
    shop.fold()
    found = shop.facts()
    assert (bool(found.state), [made.id for made in found.of("db.a").materializations]) == (True, [one])
    shop.append(msgspec.structs.replace(later, source="arco/servo"))
    shop.fold()
    assert shop.facts().state == "", "what Servo said is not all there"


def test_a_segment_that_is_consumed_and_moved_while_the_ledger_is_listed_is_not_missed(lake, shop, monkeypatch):
    publish(shop)
    shop.fold()
    (later,) = publish(shop)
    find, done = Finder.find, []

    async def overtaken(self, head, consumed, *, receipts):
        if head is Head.EXECUTION and not done:
            done.append(head)
            monkeypatch.undo()
            await shop._fold()
            await shop._move_aside()
        return await find(self, head, consumed, receipts=receipts)

    monkeypatch.setattr("arco.fold.finding.Finder.find", overtaken)
    found = shop.facts()
    assert [made.id for made in found.of("db.a").materializations] == [later]
    assert done


def test_what_was_delivered_while_the_state_was_being_read_is_not_missed(lake, shop, monkeypatch):
    """The open runs, then the ledger, then their logs: a log still has what it no longer owes."""
    publish(shop)
    shop.fold()
    log, one = shop.started(), str(lake.materialization())
    event = shop.made("a", one, shop.publish("a", one), sequence_number=9)
    shop.stage(log, one, event)
    shop.end(log, one)

    async def read_then_overtaken(*arguments):
        found = await rows_of_state(*arguments)
        await shop.appender.append(Domain.EXECUTION, [event])
        await log.append([EventsAppended(through=log.state.sequence)])
        return found

    monkeypatch.setattr("arco.servo.execute.gathering.rows_of_state", read_then_overtaken)
    assert made_of(shop) == [one]


def test_what_people_hold_back_and_what_checks_found_are_facts(lake, shop):
    found = {"check": "unique(id)", "passed": False, "severity": "warning", "action": "warn", "failed_rows": 2}
    publish(shop, checks=(found,), checks_failed=("unique(id)",))
    shop.append(shop.quarantined("a"), domain=Domain.QUALITY)
    from_ledger = shop.facts(now_ms=1).of("db.a")
    (check,) = from_ledger.materializations[0].checks
    assert (check.check, check.passed, check.failed_rows) == ("unique(id)", False, 2)
    (word,) = from_ledger.quarantined
    assert (word.who, word.why, word.quarantined) == ("ann", "wrong prices", True)
    shop.fold()
    assert shop.facts(now_ms=1).of("db.a") == from_ledger
    assert shop.facts(now_ms=1).state

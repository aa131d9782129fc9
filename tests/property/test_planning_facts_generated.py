"""One definition of the facts: from the whole ledger, or from any folded state and the rest, they are the same byte for byte."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from arco.catalog.catalog import Catalog
from arco.iceberg.changes import SetSnapshotRef
from arco.kernel.scope import Scope
from arco.servo.execute.gathering import gather
from arco.servo.plan.facts import PlanningSnapshot
from arco.servo.sdk.authoring import asset
from arco.servo.sdk.dimensions import daily
from arco.storage.keys import Domain, Head, HeadKey
from arco.storage.memory import MemoryStore
from arco.storage.paging import walk
from arco.storage.port import Absent
from fixtures.servo.lake import Lake
from fixtures.servo.pipeline import Pipeline

NOW_MS = 1_738_281_600_000  # 2025-01-31
DAYS = [f"2025-01-{day:02}" for day in range(1, 5)]


@asset(partitions=daily("date", start="2025-01-01"))
def a() -> object: ...


class Story:
    """What runs do to one asset, some of it told late or not at all."""

    def __init__(self, lake: Lake) -> None:
        self.lake, self.shop = lake, Pipeline(lake, a)
        self.shop.table("a")
        self.told: list[Any] = []
        self.later: list[Any] = []
        self.held: list[str] = []
        self.at_ms = 1

    def partitions(self, first: int, last: int) -> list[dict[str, Any]]:
        return [{"date": [DAYS[first], DAYS[max(first + 1, last)]]}]

    def made(self, first: int, last: int) -> tuple[str, Any]:
        self.at_ms += 1
        one, number = str(self.lake.materialization()), self.lake.load("a").last_sequence_number + 1
        words = {"partitions": self.partitions(first, last), "grain": {"date": "daily"}, "published_ms": self.at_ms}
        return one, self.shop.made("a", one, self.shop.publish("a", one), sequence_number=number, **words)

    def publish(self, first: int, last: int) -> None:
        self.shop.append(self.made(first, last)[1])

    def late(self, first: int, last: int) -> None:
        self.later.append(self.made(first, last)[1])

    def unsent(self, first: int, last: int) -> None:
        """Only the log of a run says it, or only the table."""
        log = self.shop.started()
        one, event = self.made(first, last)
        self.shop.stage(log, one, event)
        if last > 1:
            self.shop.end(log, one)
        self.later.append(event)

    def again(self, first: int, _: int) -> None:
        self.shop.append(*self.later[first : first + 1])

    def hold(self, first: int, last: int) -> None:
        self.held.append(str(self.lake.materialization()))
        self.shop.append(self.shop.held("a", self.held[-1], partitions=self.partitions(first, last)))

    def discard(self, first: int, _: int) -> None:
        for one in self.held[first : first + 1]:
            self.shop.append(self.shop.discarded("a", one))

    def quarantine(self, first: int, last: int, *, released: bool = False, version: str | None = None) -> None:
        self.at_ms += 1
        said = {"partitions": self.partitions(first, last), "materialization_id": version}
        word = self.shop.quarantined("a", released=released, time_ms=self.at_ms, **said)
        self.shop.append(word, domain=Domain.QUALITY)

    def release(self, first: int, last: int) -> None:
        self.quarantine(first, last, released=True)

    def release_version(self, first: int, last: int) -> None:
        """Of one version alone, of the last that was made or of one that nobody knows."""
        self.quarantine(first, last, released=True, version=(self.held or ["01JGFJK0YG0000000000000000"])[-1])

    def back(self, first: int, _: int) -> None:
        for snapshot in self.lake.load("a").snapshots[first : first + 1]:
            self.lake.commit("a", SetSnapshotRef("main", snapshot["snapshot-id"], "branch"))

    def fold(self, *_: int) -> None:
        self.shop.fold()

    def merge(self, *_: int) -> None:
        self.shop.merge()

    def move(self, *_: int) -> None:
        self.shop.move_aside()


STEPS = (Story.publish, Story.publish, Story.publish, Story.late, Story.unsent, Story.again, Story.hold, Story.discard,
         Story.quarantine, Story.release, Story.release_version, Story.back, Story.fold, Story.fold, Story.merge,
         Story.move)  # fmt: skip
steps = st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 2), st.integers(1, 3)), min_size=3, max_size=12)


def facts(story: Story, store: Any) -> PlanningSnapshot:
    lake = story.lake
    catalog = Catalog.open(store, lake.root, Scope.of("default", "default"), lake.clock, lake.entropy)
    return lake.run(gather(catalog, story.shop.project, story.shop.deployment, now_ms=NOW_MS))


async def without_state(lake: Lake) -> MemoryStore:
    """The same store before anything was folded: everything in the ledger or the archive, and no head."""
    copy, scope = MemoryStore(lake.clock), lake.catalog.parts.scope
    heads = {str(HeadKey(scope, head)) for head in (Head.EXECUTION, Head.QUALITY)}
    async for entry in walk(lake.store, ""):
        if entry.key not in heads:
            found = await lake.store.get(entry.key)
            assert found is not None
            await copy.put(entry.key, found.data, Absent())
    return copy


@settings(max_examples=25)
@given(steps)
def test_facts_from_state_and_tail_are_those_of_the_ledger(done: list[tuple[Any, int, int]]) -> None:
    with Lake() as lake:
        story = Story(lake)
        for step, first, last in done:
            step(story, first, last)
        lake.run(lake.catalog.parts.afterwards.settle())
        found, by_ledger = facts(story, lake.store), facts(story, lake.run(without_state(lake)))
        assert by_ledger.state == ""
        assert (found.id, found.assets) == (by_ledger.id, by_ledger.assets)

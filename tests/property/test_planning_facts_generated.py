"""One definition of the facts: from the whole ledger, or from any folded state and the rest, they are the same byte for byte."""

from typing import Any

from hypothesis import HealthCheck, given, settings
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


steps = st.lists(
    st.tuples(
        st.sampled_from(
            "publish publish publish late unsent again hold discard quarantine release back fold fold merge move".split()
        ),
        st.integers(0, 2),
        st.integers(1, 3),
    ),
    min_size=3,
    max_size=12,
)


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

    def step(self, what: str, first: int, last: int) -> None:
        shop, lake = self.shop, self.lake
        match what:
            case "publish":
                shop.append(self.made(first, last)[1])
            case "late":
                self.later.append(self.made(first, last)[1])
            case "unsent":
                log = shop.started()
                one, event = self.made(first, last)
                shop.stage(log, one, event)
                if last > 1:
                    shop.end(log, one)
                self.later.append(event)
            case "again" if self.later:
                shop.append(self.later[first % len(self.later)])
            case "hold":
                self.held.append(str(lake.materialization()))
                shop.append(shop.held("a", self.held[-1], partitions=self.partitions(first, last)))
            case "discard" if self.held:
                shop.append(shop.discarded("a", self.held[first % len(self.held)]))
            case "quarantine" | "release":
                self.at_ms += 1
                word = shop.quarantined(
                    "a", released=what == "release", time_ms=self.at_ms, partitions=self.partitions(first, last)
                )
                shop.append(word, domain=Domain.QUALITY)
            case "back" if lake.load("a").snapshots:
                snapshots = lake.load("a").snapshots
                lake.commit("a", SetSnapshotRef("main", snapshots[first % len(snapshots)]["snapshot-id"], "branch"))
            case "fold":
                shop.fold()
            case "merge":
                shop.merge()
            case "move":
                shop.move_aside()


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


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps)
def test_facts_from_state_and_tail_are_those_of_the_ledger(done: list[tuple[str, int, int]]) -> None:
    with Lake() as lake:
        story = Story(lake)
        for one in done:
            story.step(*one)
        lake.run(lake.catalog.parts.afterwards.settle())
        found, by_ledger = facts(story, lake.store), facts(story, lake.run(without_state(lake)))
        assert by_ledger.state == ""
        assert (found.id, found.assets) == (by_ledger.id, by_ledger.assets)

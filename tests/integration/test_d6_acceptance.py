"""The ten acceptance tests of the catalog of what happened, by their numbers, on real Spark and a real folder."""

import asyncio
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from arco.fold.arrow_rows import rows_of
from arco.fold.folding import Folding, Settings
from arco.fold.heads import Heads
from arco.fold.joins import State
from arco.fold.manifests import Caps, Gap, Made, Manifest
from arco.fold.notifying import notify
from arco.fold.passes import Pass, fold_pass
from arco.fold.rebuilding import rebuild, rebuild_several
from arco.fold.search_tables import TRIGRAMS
from arco.fold.shredding import shred_for
from arco.fold.spark_fold import Sizes, SparkFold
from arco.fold.spark_session import Session, SparkSettings
from arco.fold.tables import PARTITIONS, tables_of
from arco.fold.work import StateFile, Work
from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.kernel.errors import InvalidInput, NotFound
from arco.kernel.ids import TableUuid
from arco.kernel.limits import STATE_DELTAS_MAX
from arco.kernel.scope import Scope
from arco.ledger.catalog_events import ASSET_DEPLOYED, AssetDeployed
from arco.ledger.envelope import Event
from arco.ledger.execution_events import MATERIALIZATION_COMPLETED
from arco.ledger.quality_events import CHECK_EXECUTED
from arco.ledger.receipts import Published, Receipt, Source, commit_key, receipt_name
from arco.read.library import Binding, Library
from arco.read.search import search
from arco.storage.keys import Head, Phase
from arco.storage.local import LocalStore
from arco.storage.port import Absent
from fixtures.fold.histories import HEADS, SCOPE, History, states, ulid, write_segments
from fixtures.servo.frames import MARKS
from fixtures.state.arrow_work import ArrowWork

from .spark_local import CONF, running

pytestmark = MARKS

OTHER = Scope.of("default", "other")
TABLE = TableUuid("0194f2c0-0000-7000-8000-000000000001")
REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    scratch = {"spark.local.dir": str(tmp_path_factory.mktemp("scratch"))}
    with running(SparkSettings("local[2]", "d6-tests", CONF | scratch)) as found:
        yield found


@dataclass
class Lake:
    """A lake in a folder, with a ledger that tests write and a fold on Spark."""

    session: Session
    root: Path
    sizes: Sizes

    def __post_init__(self) -> None:
        self.root.mkdir()
        self.store = LocalStore(str(self.root), SystemClock(), SystemEntropy())

    def heads(self, scope: Scope = SCOPE) -> Heads:
        return Heads(self.store, scope, SystemClock(), SystemEntropy())

    def spark(self, scope: Scope = SCOPE) -> SparkFold:
        return SparkFold(self.session, str(self.root), {}, scope, sync=False, sizes=self.sizes)

    def fold(self, work: Work | None = None, scope: Scope = SCOPE, caps: Caps | None = None) -> Pass:
        settings = Settings(caps=caps or Caps())
        done = asyncio.run(fold_pass(Folding(self.heads(scope), work or self.spark(scope), settings)))
        assert not done.failed
        return done

    def manifest(self, head: Head) -> Manifest:
        found = asyncio.run(self.heads().read(head)).manifest
        assert found is not None
        return found

    def rows(self, head: Head) -> dict[str, State]:
        """What readers see of a head's tables: the rows of all its files, joined, by their keys."""

        async def read() -> dict[str, State]:
            library = Library(self.heads(), folder=self.root)
            try:
                reader = (await library.open()).reader
                found: dict[str, State] = {}
                for table in tables_of(head):
                    selected = await reader.arrow(f"SELECT * FROM {await reader.relation(table)}")
                    rows = list(rows_of(table, selected))
                    by_key = {tuple(row[name] for name in table.key_names): row for row in rows}
                    assert len(by_key) == len(rows), f"{table.name} has a key twice"
                    found[table.name] = by_key
                return found
            finally:
                library.close()

        return asyncio.run(read())


@pytest.fixture
def lake(session: Session, tmp_path: Path) -> Lake:
    return Lake(session, tmp_path / "lake", Sizes())


def history(seed: int, head: Head, count: int = 60) -> list[Event]:
    return History(random.Random(seed)).events(head, count)


# 1


def test_1_a_segment_that_is_delivered_ten_times_counts_once(lake: Lake) -> None:
    for seed, head in enumerate(HEADS[:3]):
        events = history(seed, head)
        for copy in range(10):
            write_segments(lake.root, events, len(events), number=100 * seed + copy)
        done = lake.fold()
        assert done.rounds[head].segments == 10
        assert lake.rows(head) == states(head, events)


# 2


def test_2_segments_in_any_order_make_the_same_rows(lake: Lake) -> None:
    events = history(2, Head.EXECUTION, 120)
    parts = [events[at : at + 15] for at in range(0, len(events), 15)]
    order = list(range(len(parts)))
    random.Random(22).shuffle(order)
    for at in range(0, len(order), 3):
        for one in order[at : at + 3]:
            write_segments(lake.root, parts[one], 15, number=one)
        lake.fold()
    assert lake.rows(Head.EXECUTION) == states(Head.EXECUTION, sorted(events, key=lambda event: event.position))


# 3


def test_3_numbers_that_are_missing_are_reported(lake: Lake) -> None:
    events = history(3, Head.QUALITY, 30)
    write_segments(lake.root, events[:20], 5)
    late = write_segments(lake.root, events[20:], 5, number=10)
    lake.fold()
    gaps = lake.manifest(Head.QUALITY).gaps
    assert gaps == (Gap(writer_id=ulid(1), first=5, last=10),)
    # Those that arrive late close it.
    write_segments(lake.root, events[:6], 1, number=4)
    lake.fold()
    assert lake.manifest(Head.QUALITY).gaps == ()
    assert late


# 4


def killed_at(lake: Lake, point: str, *words: str) -> None:
    """A command that dies at a place."""
    command = [sys.executable, "-m", "tests.integration.run_killed", point, "1", *words]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(REPOSITORY), str(REPOSITORY / "tests")])}
    killed = subprocess.run(
        [*command, "--root", str(lake.root), "--spark", "local[1]"],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr


@pytest.mark.parametrize(
    "point", ["fold.folded", "fold.letters_written", "fold.list_written", "fold.manifest_written", "fold.head_swung"]
)
def test_4_a_fold_that_is_killed_is_done_again_to_the_same_rows(lake: Lake, point: str) -> None:
    events = history(4, Head.EXECUTION)
    write_segments(lake.root, events, 20)
    killed_at(lake, point, "fold")
    lake.fold()
    assert lake.rows(Head.EXECUTION) == states(Head.EXECUTION, events)
    manifest = lake.manifest(Head.EXECUTION)
    assert manifest.events == len(events)


def test_4_a_rebuild_that_is_killed_changes_nothing_and_is_done_again(lake: Lake) -> None:
    events = history(4, Head.EXECUTION)
    write_segments(lake.root, events, 20)
    lake.fold()
    before = lake.manifest(Head.EXECUTION)
    killed_at(lake, "fold.rebuilt", "rebuild", "--domain", "execution")
    assert lake.manifest(Head.EXECUTION) == before
    after = asyncio.run(rebuild(Folding(lake.heads(), lake.spark()), Head.EXECUTION)).manifest
    assert after is not None
    assert (after.made, after.events) == (Made.REBUILD, before.events)
    asyncio.run(lake.heads().publish_cut())
    assert lake.rows(Head.EXECUTION) == states(Head.EXECUTION, events)


def test_4_a_merge_that_is_killed_is_done_again_to_the_same_rows(lake: Lake) -> None:
    events = _with_one_delta_below_the_cap(lake)
    killed_at(lake, "fold.merged", "fold")
    assert lake.manifest(Head.QUALITY).made is Made.FOLD
    assert lake.fold().merged == (Head.QUALITY,)
    assert lake.rows(Head.QUALITY) == states(Head.QUALITY, events)


def test_4_a_commit_whose_announcement_was_interrupted_is_announced_once(lake: Lake) -> None:
    """Its receipt was told to the ledger, and nobody wrote down that it was."""
    location = f"default/default/data/t-{TABLE}/metadata/00000-{0:032x}.metadata.json"
    commit = Published("e", 0, location, None, None, 1_735_689_600_000, Source("external", "spark-sql"))
    key = commit_key(location, 0)
    receipt = Receipt("arco.receipt", 1, Phase.COMMITTED, str(TABLE), str(key), commit)
    name = receipt_name(SCOPE, Phase.COMMITTED, key, commit.at_ms)
    asyncio.run(lake.store.put(name, msgspec.json.encode(receipt), Absent()))
    killed_at(lake, "fold.receipts_appended", "fold")
    told = subprocess.run(
        [sys.executable, "-c", "from arco.surface.cli.main import run; run()", "fold", "--root", str(lake.root)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    (row,) = lake.rows(Head.ICEBERG)["iceberg_commits"].values()
    assert (row["table_uuid"], row["source"], row["principal"]) == (str(TABLE), "external", "spark-sql")
    assert lake.fold().rounds[Head.ICEBERG].segments == 0


# 5


def test_5_of_two_who_fold_at_once_one_publishes_and_the_other_goes_on(lake: Lake) -> None:
    events = history(5, Head.EXECUTION, 120)
    names = write_segments(lake.root, events, 40)
    works = [lake.spark(), lake.spark()]

    async def both() -> list[Pass]:
        return list(await asyncio.gather(*(fold_pass(Folding(lake.heads(), work)) for work in works)))

    passes = asyncio.run(both())
    assert not any(done.failed for done in passes)
    assert sum(done.rounds[Head.EXECUTION].segments for done in passes) == len(names)
    manifest = lake.manifest(Head.EXECUTION)
    assert manifest.events == len(events)
    assert lake.rows(Head.EXECUTION) == states(Head.EXECUTION, events)


# 6


def test_6_a_workspace_sees_nothing_of_another(lake: Lake) -> None:
    names = write_segments(lake.root, history(6, Head.EXECUTION), 20)
    done = lake.fold()
    assert done.root.manifest is not None
    snapshot = done.root.manifest.snapshot
    assert lake.fold(scope=OTHER).rounds[Head.EXECUTION].segments == 0

    async def story() -> None:
        with pytest.raises(InvalidInput, match="no segment of default/other"):
            await notify(lake.store, OTHER, names, SystemClock(), SystemEntropy())
        library = Library(lake.heads(OTHER), folder=lake.root)
        try:
            with pytest.raises(NotFound):
                await library.open(Binding(snapshot_id=snapshot))
            reader = (await library.open()).reader
            assert await reader.rows(f"SELECT * FROM {await reader.relation(PARTITIONS)}") == []
        finally:
            library.close()

    asyncio.run(story())


# 7


def test_7_a_search_in_one_namespace_fetches_its_files_alone(session: Session, tmp_path: Path) -> None:
    lake = Lake(
        session, tmp_path / "lake", Sizes(segments_per_task=1, rows_per_run=400, rows_per_file=400, bytes_per_file=4_000)
    )
    maker = History(random.Random(7))
    write_segments(lake.root, [_deployed(maker, number) for number in range(400)], 100)
    assert Head.SEARCH in lake.fold(caps=Caps(files=1)).merged
    files = _files(lake.manifest(Head.SEARCH), {"postings", "trigrams"})
    assert len(files) > 8

    async def story() -> None:
        library = Library(lake.heads(), folder=lake.root)
        try:
            reader = (await library.open()).reader
            found = await search(reader, "orders", namespace="team_7")
            assert {hit.name for hit in found.hits} == {f"team_7.orders_{number}" for number in range(7, 400, 40)}
            touched = {key for key in reader.touched if key in files}
            assert 0 < len(touched) <= 4
            # One bucket of each of the two tables: what lies in it of other namespaces comes with it, and nothing else.
            assert all(len(files[key].buckets) < 256 / 4 for key in touched)
        finally:
            library.close()

    asyncio.run(story())
    assert TRIGRAMS.spread_by == "namespace"


# 8


def test_8_more_than_fifty_deltas_become_a_base(lake: Lake) -> None:
    events = _with_one_delta_below_the_cap(lake)
    done = lake.fold()
    assert done.merged == (Head.QUALITY,)
    after = lake.manifest(Head.QUALITY)
    assert after.made is Made.MERGE
    assert all(not table.deltas and table.base for table in after.tables)
    assert lake.rows(Head.QUALITY) == states(Head.QUALITY, events)


def _with_one_delta_below_the_cap(lake: Lake) -> list[Event]:
    """A head that passes the cap with the next fold; the events that it has then."""
    events = [one for one in history(8, Head.QUALITY, 3 * STATE_DELTAS_MAX) if one.type == CHECK_EXECUTED]
    assert len(events) > STATE_DELTAS_MAX
    by_hand = ArrowWork(lake.store, SCOPE)
    for number, event in enumerate(events[: STATE_DELTAS_MAX - 1]):
        write_segments(lake.root, [event], 1, number=number)
        lake.fold(by_hand)
    before = lake.manifest(Head.QUALITY)
    assert max(len(table.deltas) for table in before.tables) == STATE_DELTAS_MAX - 1
    write_segments(lake.root, events[STATE_DELTAS_MAX - 1 :], 1000, number=1000)
    return events


# 9


def test_9_the_current_version_is_derived_whatever_arrives_when(lake: Lake) -> None:
    made = [one for one in history(9, Head.EXECUTION, 200) if one.type == MATERIALIZATION_COMPLETED]
    random.Random(99).shuffle(made)
    for number in range(0, len(made), 8):
        write_segments(lake.root, made[number : number + 8], 8, number=number)
        if number % 24 == 0:
            lake.fold()
    lake.fold()
    current = lake.rows(Head.EXECUTION)["partitions"]
    assert current == states(Head.EXECUTION, made)["partitions"]
    newest: dict[tuple[str, ...], tuple[Any, ...]] = {}
    said = [row for event in made for table, row in shred_for(Head.EXECUTION, event) if table is PARTITIONS]
    for row in said:
        key = tuple(row[name] for name in PARTITIONS.key_names)
        order = (row["sequence_number"] or 0, row["published_at"], row["materialization_id"])
        newest[key] = max(newest.get(key, order), order)
    assert {key: row["materialization_id"] for key, row in current.items()} == {
        key: order[-1] for key, order in newest.items()
    }


# 10


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed: the second implementation cannot run")
def test_10_another_language_makes_the_same_partition_ids() -> None:
    script = REPOSITORY / "tests" / "unit" / "partition_key_vectors.mjs"
    vectors = REPOSITORY / "tests" / "fixtures" / "partition_keys.json"
    done = subprocess.run(["node", str(script), str(vectors)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _files(manifest: Manifest, tables: set[str]) -> dict[str, StateFile]:
    return {file.key: file for file in manifest.files() if file.table in tables}


def _deployed(maker: History, number: int) -> Event:
    """One of many assets: ten in each of forty namespaces."""
    asset = f"team_{number % 40}.orders_{number}"
    made = AssetDeployed(
        asset_id=ulid(40_000 + number),
        asset=asset,
        kind="python",
        deployment=ulid(3),
        project="shop",
        code_version="1",
        fingerprint="f" * 64,
        definition={"description": f"orders number {number}"},
    )
    return maker._event(ASSET_DEPLOYED, made)


# Beyond the ten


def test_a_rebuild_of_thousands_of_events_has_the_rows_that_were_folded_bit_by_bit(lake: Lake) -> None:
    told: dict[Head, list[Event]] = {}
    for seed, head in enumerate(HEADS):
        events = history(300 + seed, head, 1_000)
        random.Random(seed).shuffle(events)
        told[head] = events
        again = events[:100]  # some are delivered twice
        for part, some in enumerate((events[:400], [*again, *events[400:800]], events[800:])):
            write_segments(lake.root, some, 50, number=1_000 * seed + 100 * part)
            lake.fold(caps=Caps(files=2) if part else None)
    folded = {head: lake.rows(head) for head in HEADS}
    for head in HEADS[:3]:  # the others share segments
        assert folded[head] == states(head, told[head])
    made = asyncio.run(rebuild_several(Folding(lake.heads(), lake.spark()), HEADS))
    asyncio.run(lake.heads().publish_cut())
    assert sum(one.manifest.events for one in made if one.manifest is not None) >= 1_000 * len(HEADS)
    for head in HEADS:
        assert lake.manifest(head).made is Made.REBUILD
        assert lake.rows(head) == folded[head]

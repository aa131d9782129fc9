"""The fold on a cluster where Spark runs a task twice, beside a slow one or after a dead one: one copy is published, and once.

The copy that loses has written all of its files before it hangs, or dies. That there were two is proved by what each left behind.
"""

import asyncio
import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import TaskContext

from arco.fold import spark_fold
from arco.fold.arrow_joins import joined
from arco.fold.arrow_rows import conformed, rows_of
from arco.fold.folding import Folding
from arco.fold.heads import Heads
from arco.fold.manifests import Manifest
from arco.fold.spark_fold import Sizes, SparkFold
from arco.fold.spark_session import Session, SparkSettings
from arco.fold.tables import tables_of
from arco.fold.tasks import FoldTask
from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.storage.keys import Head
from arco.storage.roots import open_root
from fixtures.fold.histories import SCOPE, History, states, write_segments
from fixtures.servo.frames import MARKS
from tests.quick_java import QUICK

from .spark_cluster import HOSTS, spark_cluster
from .spark_local import running

pytestmark = MARKS

HEAD = Head.EXECUTION
# Many processes that live for a minute: what they would gain from optimizing their code costs more than it saves.
CONF = {
    "spark.driver.extraJavaOptions": QUICK,
    "spark.executor.extraJavaOptions": QUICK,
    "spark.driver.host": HOSTS[0],
    "spark.driver.bindAddress": HOSTS[0],
    "spark.executor.memory": "512m",
    "spark.default.parallelism": "2",
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.1",
}


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("cluster")
    with spark_cluster(folder) as master:
        conf = CONF | {"spark.local.dir": str(folder)}
        with running(SparkSettings(master, "folded twice", conf, python_path=(folder,))) as found:
            yield found


def lost_first_copy(folder: Path, last: str, *, dies: bool) -> Any:
    """Tasks of the fold; of the one that has a segment the first copy does all of its work, and then dies or never ends."""

    class Lost:
        def __init__(self, *given: Any) -> None:
            self.given = given

        def run(self) -> Any:
            said, copy = FoldTask(*self.given).run(), TaskContext.get().attemptNumber()
            if last in self.given[1]:
                Path(folder, f"copy-{copy}").write_text("\n".join(file.key for file in said.files))
            while last in self.given[1] and copy == 0:
                if dies:
                    os.kill(os.getpid(), signal.SIGKILL)
                time.sleep(0.02)
            return said

    return Lost


@pytest.mark.parametrize("dies", [False, True], ids=["the first never ends", "the first is killed"])
def test_of_two_copies_of_a_task_one_is_published(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, dies: bool
) -> None:
    lake = tmp_path / "lake"
    lake.mkdir()
    events = History(random.Random(3)).events(HEAD, 80)
    names = write_segments(lake, events, 40)
    monkeypatch.setattr(spark_fold, "FoldTask", lost_first_copy(tmp_path, max(names), dies=dies))
    manifest = asyncio.run(folded(session, lake))
    lost, kept = (set(Path(tmp_path, f"copy-{copy}").read_text().split("\n")) for copy in (0, 1))
    published = {file.key for file in manifest.files()}
    assert kept <= published
    assert lost.isdisjoint(published)
    assert all((lake / name).is_file() for name in lost), "the copy that lost had written nothing"
    assert manifest.events == len(events)
    assert published_rows(lake, manifest) == states(HEAD, events)


async def folded(session: Session, root: Path) -> Manifest:
    clock, entropy = SystemClock(), SystemEntropy()
    store = open_root(str(root), {}, clock, entropy, sync=False)
    work = SparkFold(session, str(root), {}, SCOPE, sync=False, sizes=Sizes(segments_per_task=1))
    try:
        done = await Folding(Heads(store, SCOPE, clock, entropy), work).catch_up(HEAD)
    finally:
        work.close()
        await store.close()
    assert done.standing.manifest is not None
    return done.standing.manifest


def published_rows(root: Path, manifest: Manifest) -> dict[str, Any]:
    """The join of the files that a manifest names, as the model has it."""
    found: dict[str, Any] = {}
    for table in tables_of(HEAD):
        files = [conformed(table, pq.read_table(root / one.key)) for one in manifest.table(table.name).files]
        rows = rows_of(table, joined(table, pa.concat_tables(files))) if files else ()
        found[table.name] = {tuple(row[name] for name in table.key_names): row for row in rows}
    return found

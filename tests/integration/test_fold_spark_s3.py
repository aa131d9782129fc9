"""The fold on a bucket: tasks read and write through the store, so Spark needs no connector to it."""

import asyncio
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from arco.fold.arrow_rows import rows_of
from arco.fold.spark_fold import SparkFold
from arco.fold.spark_session import SparkSettings
from arco.fold.tables import tables_of
from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.storage.keys import Head
from arco.storage.port import Always
from arco.storage.roots import open_root
from fixtures.fold.histories import SCOPE, History, states, ulid, write_segments
from fixtures.servo.frames import MARKS
from tests.servers.launch import seaweedfs

from .spark_local import CONF, running

pytestmark = MARKS

HEAD = Head.EXECUTION


def test_a_history_folds_on_a_bucket(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    events = History(random.Random(4)).events(HEAD, 60)
    names = write_segments(tmp_path, events, 30)
    expected = states(HEAD, events)
    with seaweedfs(tmp_path_factory.mktemp("s3")) as server:
        root = f"{server.url}/lake"
        with running(SparkSettings("local[2]", "fold-on-s3", CONF)) as session:
            work = SparkFold(session, root, server.options, SCOPE)

            async def folded() -> dict[str, bytes]:
                """Base and deltas of the same history by their names; the bytes of the base."""
                store = open_root(root, server.options, SystemClock(), SystemEntropy())
                try:
                    for name in names:
                        await store.put(name, (tmp_path / name).read_bytes(), Always())
                    deltas = [await work.fold(HEAD, [name], ulid(at)) for at, name in enumerate(names)]
                    base = await work.merge(HEAD, [file for one in deltas for file in one.files], ulid(99))
                    objects = {file.table: await store.get(file.key) for file in base}
                    return {table: found.data for table, found in objects.items() if found is not None}
                finally:
                    await store.close()

            found = asyncio.run(folded())
            work.close()
    for table in tables_of(HEAD):
        rows = rows_of(table, pq.read_table(pa.BufferReader(found[table.name])))
        assert {tuple(row[name] for name in table.key_names): row for row in rows} == expected[table.name]

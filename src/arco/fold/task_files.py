"""Files of state as tasks read and write them: each written once under a name of its own, measured and hashed as it is made.

They go through the store like every object, so on a folder they are on the disk before anybody can name them, and no bucket sees
a rename. What a task wrote counts if Spark counts the task: one that was killed, repeated or run twice leaves files that nobody
names. What must never enter: Spark, and what rows mean.
"""

import asyncio
import hashlib
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from arco.fold.vocabulary import BUCKET, Table
from arco.fold.work import StateFile
from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.kernel.errors import OutcomeUnknown
from arco.kernel.limits import STATE_ROW_GROUP_ROWS_MAX
from arco.kernel.scope import Scope
from arco.storage.keys import FileName, StateFileKey, Word
from arco.storage.port import Absent, Landed, ObjectStore
from arco.storage.readback import put_settled
from arco.storage.roots import open_root

_READS_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class Place:
    """Where a task reads and writes: the lake, and the words that open it there. Names of its files begin with `into`."""

    root: str
    options: Mapping[str, str]
    scope: Scope
    into: str
    sync: bool = True

    @contextmanager
    def opened(self) -> Iterator["Lake"]:
        clock, entropy = SystemClock(), SystemEntropy()
        # No `asyncio.Runner`: it spells out what a call came to when it puts the signal handlers back, and that is whole objects.
        with closing(asyncio.new_event_loop()) as loop:
            store = open_root(self.root, self.options, clock, entropy, sync=self.sync)
            try:
                yield Lake(self, loop.run_until_complete, store, clock, entropy, entropy.token_bytes(8).hex())
            finally:
                loop.run_until_complete(store.close())


@dataclass(slots=True)
class Lake:
    """The lake as one attempt of a task sees it. `token` is in the names of all files that it writes, and in nobody else's."""

    place: Place
    wait: Callable[[Coroutine[Any, Any, Any]], Any]
    store: ObjectStore
    clock: SystemClock
    entropy: SystemEntropy
    token: str
    files: list[StateFile] = field(default_factory=list)

    def read(self, keys: Sequence[str]) -> Iterator[tuple[str, bytes | None]]:
        """Objects by their names, in this order, some read at once; None where there is none."""
        for at in range(0, len(keys), _READS_AT_ONCE):
            some = keys[at : at + _READS_AT_ONCE]
            yield from zip(some, self.wait(self._read(some)), strict=True)

    def write(self, table: Table, rows: pa.Table) -> None:
        """Rows that are joined and sorted, as one file."""
        data = encoded(rows)
        name = FileName(f"{self.place.into}-{self.token}-{len(self.files):04}.parquet")
        key = str(StateFileKey(self.place.scope, table.head, Word(table.name), name))
        self.wait(self._put(key, data))
        bounds = [pc.min_max(rows.column(name)).as_py() for name in table.key_names]
        self.files.append(
            StateFile(
                table=table.name,
                key=key,
                checksum=hashlib.sha256(data).hexdigest(),
                rows=rows.num_rows,
                bytes=len(data),
                buckets=tuple(pc.unique(rows.column(BUCKET)).to_pylist()),
                least=tuple(one["min"] for one in bounds),
                greatest=tuple(one["max"] for one in bounds),
            )
        )

    async def _read(self, keys: Sequence[str]) -> list[bytes | None]:
        found = await asyncio.gather(*map(self.store.get, keys))
        return [None if one is None else one.data for one in found]

    async def _put(self, key: str, data: bytes) -> None:
        outcome = await put_settled(self.store, key, data, Absent(), clock=self.clock, entropy=self.entropy)
        if not isinstance(outcome, Landed):
            raise OutcomeUnknown(f"{key} may not be stored: {outcome.reason}", hint="fold again")


def encoded(rows: pa.Table) -> bytes:
    """Rows as the bytes of a file. Row groups are small, so that whoever reads by ranges fetches little for one key."""
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, compression="zstd", store_schema=False, row_group_size=STATE_ROW_GROUP_ROWS_MAX)
    data: bytes = sink.getvalue().to_pybytes()
    return data

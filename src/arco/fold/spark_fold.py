"""The fold on Spark: segments to a delta, and files to a base. What is decided about heads and manifests is not known here.

    fold:   share the segments out → a task a share: read, shred, join, write          one job, nothing is shuffled
    merge:  share the buckets of each table out → a task a share: read, join, write    one job, nothing is shuffled

Files are sorted by bucket, so that a task of a merge finds its rows without anybody moving them. Tables that no event speaks of
cost nothing, and history is not looked at: what a batch costs follows from the batch alone.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import TypeVar

import msgspec
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from arco.fold.segment_rows import SegmentReport
from arco.fold.spark_session import Session
from arco.fold.spark_tasks import done
from arco.fold.spark_threads import SparkThreads
from arco.fold.tables import tables_of
from arco.fold.task_files import Place
from arco.fold.tasks import FoldTask, MergeTask, Said
from arco.fold.vocabulary import BUCKETS, Table
from arco.fold.work import Folded, StateFile
from arco.kernel.errors import CorruptObject, NotFound, Unavailable
from arco.kernel.ids import clip
from arco.kernel.scope import Scope
from arco.storage.keys import Head

T = TypeVar("T")

_CORES_UNKNOWN = 4
_AT_ONCE = 2  # a fold and a merge


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much goes into one task and one file: what is held in memory follows from these."""

    segments_per_task: int = 8
    rows_per_run: int = 250_000
    rows_per_file: int = 250_000
    bytes_per_file: int = 16 * 1024 * 1024


@dataclass(slots=True)
class SparkFold:
    """Executes the fold of one workspace in a session. `root` and `options` are the lake's, as the executors open it."""

    session: Session
    root: str
    options: Mapping[str, str]
    scope: Scope
    sync: bool = True
    sizes: Sizes = field(default_factory=Sizes)
    _threads: SparkThreads = field(init=False)

    def __post_init__(self) -> None:
        self._threads = SparkThreads(self.session, _AT_ONCE)

    def close(self) -> None:
        """Let go of the threads. The session is its maker's to stop."""
        self._threads.close()

    async def fold(self, head: Head, segments: Sequence[str], into: str) -> Folded:
        """Read segments by their names, join what their events contribute, write one delta."""
        if not segments:
            return Folded((), 0)
        return await self._call(head, into, self._folded, head, segments, into)

    async def merge(self, head: Head, files: Sequence[StateFile], into: str) -> tuple[StateFile, ...]:
        """Join files of one head, base and deltas alike, into a new base."""
        return await self._call(head, into, self._merged, head, files, into)

    async def _call(self, head: Head, into: str, work: Callable[..., T], *arguments: object) -> T:
        """Something that waits for Spark, on a thread."""
        try:
            return await self._threads.call(
                f"arco-fold-{into}", f"fold {head}", partial(work, *arguments), progressed=lambda _: None
            )
        except (PySparkException, Py4JError) as error:
            raise Unavailable(
                f"Spark could not fold {head}: {clip(_reason(str(error)), 300)}", hint="fold again"
            ) from error

    def _folded(self, head: Head, segments: Sequence[str], into: str) -> Folded:
        place = self._place(into)
        shares = _shares(segments, self._tasks(len(segments)))
        said = done(self.session, [FoldTask(head, share, place, self.sizes.rows_per_run) for share in shares])
        for gone in (name for one in said for name in one.gone):
            raise NotFound(f"{gone} is no longer there", hint="look again which segments there are")
        reports = [report for one in said for report in one.reports]
        return Folded(
            tuple(file for one in said for file in _placed(one.files, one.reports)),
            sum(one.events for one in reports),
            tuple(refused for one in reports for refused in one.refused),
            tuple((one.writer_id, one.writer_seq) for one in reports if one.writer_id is not None),
            tuple(one.appended for one in reports if one.appended is not None),
        )

    def _merged(self, head: Head, files: Sequence[StateFile], into: str) -> tuple[StateFile, ...]:
        given = {table: [file for file in files if file.table == table.name] for table in tables_of(head)}
        tasks = [task for table, some in given.items() for task in self._merges(table, some, into)]
        said = done(self.session, tasks)
        _refuse_unreadable(said)
        return tuple(file for task, one in zip(tasks, said, strict=True) for file in _placed(one.files, given[task.table]))

    def _merges(self, table: Table, files: Sequence[StateFile], into: str) -> Iterator[MergeTask]:
        """A task for each file of the new base: some buckets each, and the files that have rows of them."""
        by_rows = -(-sum(file.rows for file in files) // self.sizes.rows_per_file)
        by_bytes = -(-sum(file.bytes for file in files) // self.sizes.bytes_per_file)
        parts = min(BUCKETS, max(by_rows, by_bytes))
        for part in range(parts):
            first, end = BUCKETS * part // parts, BUCKETS * (part + 1) // parts
            own = {file.key: file.checksum for file in files if any(first <= one < end for one in file.buckets)}
            if own:
                yield MergeTask(table, own, (first, end), self._place(into))

    def _place(self, into: str) -> Place:
        return Place(self.root, dict(self.options), self.scope, into, sync=self.sync)

    def _tasks(self, segments: int) -> int:
        """Tasks for some segments: one for few of them, so that a small batch is few files; and no more than can run at once."""
        cores = _CORES_UNKNOWN if self.session.is_connect else self.session.spark.sparkContext.defaultParallelism
        return max(1, min(cores, segments // self.sizes.segments_per_task))


def _reason(text: str) -> str:
    """What a task raised, where Spark's words have it: the line after the last place of its traceback."""
    found = re.search(r"Traceback \(most recent call last\):\n(?:[ \t].*\n)+(\S.*)", text)
    return found[1] if found else text


def _shares(names: Sequence[str], count: int) -> list[tuple[str, ...]]:
    """Names in so many shares of neighbours, as equal as can be."""
    ends = [len(names) * share // count for share in range(count + 1)]
    return [tuple(names[first:end]) for first, end in pairwise(ends)]


def _refuse_unreadable(said: Iterable[Said]) -> None:
    for one in said:
        for key in one.damaged:
            raise CorruptObject(
                f"{key} is not what was written: its checksum is another", hint="arco rebuild makes it anew"
            )
        for key in one.gone:
            raise NotFound(f"{key} is no longer there", hint="look again which files there are")


def _placed(files: Iterable[StateFile], made_from: Iterable[SegmentReport | StateFile]) -> Iterator[StateFile]:
    """Files with the first and the last position of what they were made from."""
    known = list(made_from)
    first = min((one.first_position for one in known if one.first_position), default=None)
    last = max((one.last_position for one in known if one.last_position), default=None)
    return (msgspec.structs.replace(file, first_position=first, last_position=last) for file in files)

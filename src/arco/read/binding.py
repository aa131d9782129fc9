"""Which cut a question is asked of: the current one, that of a moment, that of a run, or one by its id.

The failure this prevents: a run's own end is taken for the moment to look at, and the cut of that moment was published before
the fold had heard of the run; its outputs are missing, and nobody says so. So a run has three answers: the first cut that has
all of it; the current one, with a warning, while some of it is missing or it goes on; or none, while no output of it is there.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from arco.fold.heads import Heads
from arco.fold.manifests import Manifest, RootManifest
from arco.fold.tables import MATERIALIZATIONS, RUNS, TASKS
from arco.fold.time_travel import cut_as_of, cut_at_sequence, cut_by_id
from arco.kernel.errors import PendingIngestion
from arco.ledger.payloads import SERVO
from arco.read.answers import document
from arco.read.cut import Cut, HeadCut, Layers
from arco.read.publishers import BY_SERVO
from arco.read.reader import Reader
from arco.storage.keys import Head

_SUCCEEDED = "succeeded"


class Ingestion(StrEnum):
    """How much of a run is folded."""

    WHOLE = "fully_ingested"
    PART = "partially_ingested"
    NONE = "pending_ingestion"


@dataclass(frozen=True, slots=True)
class OfRun:
    """The answer for a run. `cut` is None if no output of it is folded yet: ask again."""

    ingestion: Ingestion
    cut: Cut | None = None
    warning: str | None = None


@dataclass(frozen=True, slots=True)
class _Told:
    """What a cut has of a run: how much, by whose word, and whether it has ended."""

    ingestion: Ingestion
    own: bool
    ended: bool


_NOTHING = _Told(Ingestion.NONE, own=True, ended=False)


class Bindings:
    """The cuts of one workspace. `open_cut` makes a reader of one, for the questions that binding itself asks."""

    def __init__(self, heads: Heads, open_cut: Callable[[Cut], Reader]) -> None:
        self._heads = heads
        self._open = open_cut

    async def current(self) -> Cut:
        """What is published now. Before the first fold it is empty."""
        root = await self._heads.read_root()
        return Cut("", 0) if root.manifest is None else await self.cut(root.manifest)

    async def as_of(self, at_ms: int) -> Cut:
        """What readers saw at a moment. BeyondReach if that is too long ago."""
        return await self.cut(await cut_as_of(self._heads, at_ms))

    async def snapshot(self, snapshot_id: str) -> Cut:
        """A cut by its id."""
        return await self.cut(await cut_by_id(self._heads, snapshot_id))

    async def as_of_run(self, run_id: str) -> OfRun:
        """The world as it was when a run had ended, with all that it published in it."""
        root = (await self._heads.read_root()).manifest
        if root is None:
            return OfRun(Ingestion.NONE)
        newest = await self.cut(root)
        told = await self._of_run(newest, run_id)
        if told.ingestion is not Ingestion.WHOLE:
            is_part = told.ingestion is Ingestion.PART
            return OfRun(told.ingestion, newest if is_part else None, _warning(run_id, told) if is_part else None)
        first = await self._first_with(root, run_id, told)
        return OfRun(Ingestion.WHOLE, first)

    async def _first_with(self, newest: RootManifest, run_id: str, told: _Told) -> Cut:
        """The first cut of the chain that has all of a run, by the word that counts now: once there, it stays."""
        low, high = 1, newest.sequence
        found = newest
        while low < high:
            middle = (low + high) // 2
            manifest = await cut_at_sequence(self._heads, newest, middle)
            if manifest is not None and await self._of_run(await self.cut(manifest), run_id) == told:
                found, high = manifest, middle
            else:
                low = middle + 1  # it does not have it, or is beyond reach
        return await self.cut(found)

    async def _of_run(self, cut: Cut, run_id: str) -> _Told:
        reader = self._open(cut)
        try:
            runs = await reader.relation(RUNS, run_id)
            rows = await reader.rows(f"SELECT ended_at, task_states, told_by FROM {runs}")
            if not rows:
                return _NOTHING
            own, ended = rows[0]["told_by"] in {None, SERVO}, rows[0]["ended_at"] is not None
            if ended and not own:
                return _Told(Ingestion.WHOLE, own, ended)  # others say what they published or do not: nothing more is owed
            made = await _publishing_tasks(reader, run_id, BY_SERVO if own else "true")
        finally:
            reader.close()
        owed = (document(rows[0]["task_states"]) or {}).get(_SUCCEEDED, 0)
        if ended and made >= owed:
            return _Told(Ingestion.WHOLE, own, ended)
        return _Told(Ingestion.PART if made else Ingestion.NONE, own, ended)

    async def cut(self, root: RootManifest) -> Cut:
        """The files that a cut through all heads names."""
        tables: dict[str, Layers] = {}
        heads: list[HeadCut] = []
        for one in root.heads:
            manifest = await self._heads.manifest(Head(one.head), one.manifest)
            for table in manifest.tables:
                tables[table.table] = Layers(table.base, tuple((file,) for file in table.deltas))
            heads.append(_head(manifest))
        return Cut(root.snapshot, root.published_ms, tables, tuple(heads))


def _head(manifest: Manifest) -> HeadCut:
    return HeadCut(
        manifest.head,
        manifest.snapshot,
        manifest.sequence,
        manifest.published_ms,
        manifest.events,
        manifest.refused,
        manifest.set_aside,
        manifest.gaps,
        manifest.more_gaps,
    )


async def _publishing_tasks(reader: Reader, run_id: str, told: str) -> int:
    """How many tasks of a run have an output. Outputs lie with their assets, and tasks say which those are."""
    tasks = await reader.relation(TASKS, run_id)
    assets = await reader.rows(f"SELECT DISTINCT asset_id FROM {tasks} WHERE asset_id IS NOT NULL")
    made = await reader.relation(MATERIALIZATIONS, [row["asset_id"] for row in assets])
    rows = await reader.rows(
        f"SELECT count(DISTINCT task_id) AS tasks FROM {made} WHERE run_id = $run AND {told}", {"run": run_id}
    )
    return int(rows[0]["tasks"])


def _warning(run_id: str, told: _Told) -> str:
    why = f"not everything of run {run_id} is folded yet" if told.ended else f"run {run_id} has not ended in what is folded"
    return f"{why}: outputs of it may be missing"


def need_cut(run_id: str, found: OfRun) -> Cut:
    """The cut of a run, or PendingIngestion with what to do."""
    if found.cut is None:
        raise PendingIngestion(f"no output of run {run_id} is folded yet")
    return found.cut

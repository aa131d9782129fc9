"""Which cut a question is asked of: the current one, that of a moment, that of a run, or one by its id.

The failure this prevents: a run's own end is taken for the moment to look at, and the cut of that moment was published before
the fold had heard of the run; its outputs are missing, and nobody says so. So a run has three answers: the first cut that has
all of it; the current one, with a warning, while some of it is missing; or none yet.
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
    """The answer for a run. `cut` is None if nothing of it is folded yet: ask again."""

    ingestion: Ingestion
    cut: Cut | None = None
    warning: str | None = None


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
        has = await self._of_run(newest, run_id)
        if has is not Ingestion.WHOLE:
            return OfRun(has, newest if has is Ingestion.PART else None, _warning(run_id, has))
        first = await self._first_with(root, run_id)
        return OfRun(Ingestion.WHOLE, first)

    async def _first_with(self, newest: RootManifest, run_id: str) -> Cut:
        """The first cut of the chain that has all of a run: once there, it stays."""
        low, high = 1, newest.sequence
        found = newest
        while low < high:
            middle = (low + high) // 2
            manifest = await cut_at_sequence(self._heads, newest, middle)
            if manifest is not None and await self._of_run(await self.cut(manifest), run_id) is Ingestion.WHOLE:
                found, high = manifest, middle
            else:
                low = middle + 1  # it does not have it, or is beyond reach
        return await self.cut(found)

    async def _of_run(self, cut: Cut, run_id: str) -> Ingestion:
        reader = self._open(cut)
        try:
            runs = await reader.relation(RUNS, run_id)
            rows = await reader.rows(f"SELECT ended_at, task_states, told_by FROM {runs}")
            if not rows or rows[0]["ended_at"] is None:
                return Ingestion.NONE
            if rows[0]["told_by"] not in {None, SERVO}:
                return Ingestion.WHOLE  # others say what they published or do not: nothing more is owed
            tasks = await reader.relation(TASKS, run_id)
            assets = await reader.rows(f"SELECT DISTINCT asset_id FROM {tasks} WHERE asset_id IS NOT NULL")
            made = await reader.relation(MATERIALIZATIONS, [row["asset_id"] for row in assets])
            counted = await reader.rows(
                f"SELECT count(DISTINCT task_id) AS tasks FROM {made} WHERE run_id = $run", {"run": run_id}
            )
        finally:
            reader.close()
        published = (document(rows[0]["task_states"]) or {}).get(_SUCCEEDED, 0)
        return Ingestion.WHOLE if counted[0]["tasks"] >= published else Ingestion.PART

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


def _warning(run_id: str, has: Ingestion) -> str | None:
    if has is Ingestion.PART:
        return f"not everything of run {run_id} is folded yet: outputs of it may be missing"
    return None


def need_cut(run_id: str, found: OfRun) -> Cut:
    """The cut of a run, or PendingIngestion with what to do."""
    if found.cut is None:
        raise PendingIngestion(f"nothing of run {run_id} is folded yet")
    return found.cut

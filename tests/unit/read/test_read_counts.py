"""Hazard 7: what is counted is counted from distinct rows, so an event that is delivered again changes no count."""

import asyncio
from pathlib import Path

import pytest

from arco.fold.folding import Folding, Settings
from arco.fold.heads import Heads
from arco.fold.manifests import Caps
from arco.fold.passes import fold_pass
from arco.fold.rebuilding import rebuild
from arco.fold.tables import LINEAGE_EDGES
from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.kernel.scope import Scope
from arco.ledger.appender import Appender
from arco.ledger.drafts import Draft
from arco.ledger.lineage_events import LINEAGE_RECORDED
from arco.read.graph import graph_of
from arco.read.library import Binding, Library
from arco.read.lineage import execution_counts
from arco.storage.keys import Domain, Head
from arco.storage.memory import MemoryStore
from fixtures.state.arrow_work import ArrowWork

SCOPE = Scope.of()
EDGE = {"from": "raw", "from_namespace": "files", "kind": "whole", "to": "orders", "to_namespace": "files"}


def went(run: str) -> Draft:
    data = {"run_id": run, "task_id": "task_1", "edges": [EDGE]}
    return Draft(type=LINEAGE_RECORDED, source="test", idempotencykey=run, data=data)


class Ground:
    """A ledger whose segments are folded one by one, without Spark."""

    def __init__(self, folder: Path) -> None:
        clock, entropy = SystemClock(), SystemEntropy()
        store = MemoryStore(clock)
        self.ledger = Appender(store, SCOPE, clock, entropy)
        self.heads = Heads(store, SCOPE, clock, entropy)
        self.work = ArrowWork(store, SCOPE)
        self.library = Library(self.heads, cache=folder)

    def folding(self, caps: Caps | None = None) -> Folding:
        return Folding(self.heads, self.work, Settings(caps=caps or Caps()))

    async def deliver(self, *runs: str) -> None:
        await self.ledger.append(Domain.LINEAGE, [went(run) for run in runs])

    async def times(self, *, fresh: bool = False) -> int:
        """How often the one edge was gone along, as people are told."""
        opened = await self.library.open(Binding(fresh=fresh))
        try:
            edges = (await graph_of(opened.reader)).edges([0])
            (counted,) = (await execution_counts(opened.reader, edges)).values()
            rows = await opened.reader.rows(f"SELECT edge_id FROM {await opened.reader.relation(LINEAGE_EDGES)}")
            assert len(rows) == 1
            return counted
        finally:
            if fresh:
                opened.reader.close()

    async def close(self) -> None:
        self.library.close()
        await self.ledger.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def test_hazard_07_what_is_delivered_again_is_not_counted_again(folder: Path) -> None:
    async def story() -> None:
        ground = Ground(folder)
        for runs in (["r1"], ["r1"], ["r2", "r1"], ["r1", "r2"]):
            await ground.deliver(*runs)
            await fold_pass(ground.folding(), [Head.LINEAGE])
        assert await ground.times() == 2, "several layers"
        await ground.deliver("r2", "r3")
        assert await ground.times(fresh=True) == 3, "with what is not folded yet"
        await fold_pass(ground.folding(Caps(files=1)), [Head.LINEAGE])
        assert await ground.times() == 3, "merged"
        await rebuild(ground.folding(), Head.LINEAGE)
        await ground.heads.publish_cut()
        assert await ground.times() == 3, "rebuilt"
        await ground.close()

    asyncio.run(story())

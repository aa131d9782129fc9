"""Staging an output for its atomic run: its manifests are written, its commits go into the run's log, and nothing is committed.

    draft a snapshot on what the run has staged so far → write its manifests → stage → on a conflict, on top of the newer one

What must never enter: sending anything to the catalog. The run does that for all of its outputs at once (`schedule/together.py`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from arco.iceberg.changes import AddSnapshot
from arco.iceberg.metadata import TableMetadata
from arco.kernel.errors import Conflict, PartitionsTouched
from arco.kernel.limits import PUBLISH_REBASES_MAX
from arco.ledger.failure_kinds import Category
from arco.ledger.run_entries import Failure, StagedCommit
from arco.ledger.run_state import RunState
from arco.quality.gates import Decision
from arco.servo.execute.outputs import Destinations
from arco.servo.execute.publish import Publication, Publisher
from arco.servo.schedule.executor import Attempt, Done, Output
from arco.servo.schedule.staged_tables import request_of, staged_commit

Stage = Callable[[tuple[StagedCommit, ...]], Output]


@dataclass(frozen=True, slots=True)
class StagingTogether:
    """Stages the outputs of one atomic run in one process."""

    destinations: Destinations
    publisher: Publisher
    state: Callable[[], RunState]

    async def stage(self, attempt: Attempt, publications: Sequence[Publication], output: Stage) -> Done:
        """Write down what the run will do to each table; the first publication is the task's own output."""
        bases = [one.base for one in publications]
        for _ in range(PUBLISH_REBASES_MAX):
            drafts = [await self._commit(one, base) for one, base in zip(publications, bases, strict=True)]
            try:
                await attempt.stage(output(tuple(drafts)))
            except PartitionsTouched:
                raise
            except Conflict as conflict:
                bases = [await self._base_now(*one, conflict) for one in zip(publications, bases, strict=True)]
            else:
                return Done(publications[0].snapshot_id)
        raise PartitionsTouched(f"{publications[0].name}: other tasks stage for this table all the time")

    async def _commit(self, one: Publication, base: TableMetadata) -> StagedCommit:
        _, request = await self.publisher.drafted(one, base)
        table = (one.levels, one.name)
        place = 0 if one.creates else self._stood_on(table, base)
        return staged_commit(table, request, place, one.asset_id if one.creates else None)

    def _stood_on(self, table: tuple[tuple[str, ...], str], base: TableMetadata) -> int:
        """How many of the run's commits a base has: the log may have got more since it was loaded."""
        known = {one["snapshot-id"] for one in base.snapshots}
        return sum(bool(known & _adds(one)) for one in self.state().staged_commits.get(table, ()))

    async def _base_now(self, one: Publication, base: TableMetadata, conflict: Conflict) -> TableMetadata:
        now = await self.destinations.load((one.levels, one.name))
        if now is None:
            return base
        await self.publisher.refuse_other_base(one, base, now, conflict)
        return now


def refused_together(decision: Decision, checks: Sequence[str]) -> Failure:
    """What an output that its gate would hold back means in an atomic run: nothing of the run is published."""
    reason = f"checks failed: {', '.join(checks)}" if checks else f"the gate decided {decision.action.value}"
    hint = "nothing of this run is published; without --atomic the output would be kept on a branch to be looked at"
    return Failure(kind=Category.DATA_QUALITY.value, message=reason, hint=hint)


def _adds(one: StagedCommit) -> set[int]:
    return {update.snapshot["snapshot-id"] for update in request_of(one).updates if isinstance(update, AddSnapshot)}

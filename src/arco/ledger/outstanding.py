"""What runs have done that the ledger does not say yet.

The log of a run is the outbox of its events: between a publish and the append of its event, only the log knows. Whoever reads
the ledger to know what is published reads this beside it, or a crash in between makes a published partition look unpublished.

The names of the runs are taken first, then the ledger is read, then the logs of those runs that the ledger does not call
completed. Of such a log every event counts that it ever owed, delivered or not: an event that was delivered after the ledger
was read is found here, and readers keep one of each id. A run's last event is its completion, so one whose completion is in
the ledger owes nothing of that domain.

Cost: a listing page for a run, or for a thousand objects of many runs; every log that is not completed, whole. What must never
enter: writing.
"""

import asyncio
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from arco.kernel.clock import Clock
from arco.kernel.entropy import Entropy
from arco.kernel.errors import Fenced, NotFound
from arco.kernel.fingerprint import fingerprint
from arco.kernel.ids import EventId, RunId, encode_ulid
from arco.kernel.limits import PLANNING_READS_MAX
from arco.kernel.position import Position
from arco.kernel.scope import Scope
from arco.ledger.drafts import Draft, keyed_event_id, seal
from arco.ledger.envelope import Event
from arco.ledger.run_entries import Batch
from arco.ledger.run_log import RunLog
from arco.ledger.run_state import ACTIVE, TaskStatus
from arco.storage.keys import Domain, RunPlanKey, prefix_of
from arco.storage.port import ObjectStore


@dataclass(frozen=True, slots=True)
class MaybeLanded:
    """The events of an output whose commit was about to be sent when the log ends. They count if the commit landed."""

    materialization_id: str
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class Outstanding:
    """The events of some logs: those that happened, and those of which only the table's history can tell."""

    happened: tuple[Event, ...] = ()
    maybe: tuple[MaybeLanded, ...] = ()


async def run_ids(store: ObjectStore, scope: Scope) -> list[RunId]:
    """Every run there is, oldest first. What a run consists of is stepped over where a page ends in it."""
    prefix = prefix_of(scope, "_catalog", "runs")
    found: dict[str, None] = {}
    after = ""
    while True:
        page = await store.list_page(prefix, after)
        for entry in page.entries:
            found[entry.key.removeprefix(prefix).partition("/")[0]] = None
        if page.next_after is None:
            return [RunId(one) for one in found]
        # Of the objects of a run, its plan has the greatest name.
        after = max(page.next_after, str(RunPlanKey(scope, RunId(next(reversed(found))))))


async def outstanding(
    store: ObjectStore, scope: Scope, runs: Iterable[RunId], domains: Collection[Domain], clock: Clock, entropy: Entropy
) -> Outstanding:
    """What the logs of some runs say that belongs to some domains. A run that was never created, or was deleted, says nothing."""
    wanted = list(runs)
    read: list[Outstanding] = []
    for start in range(0, len(wanted), PLANNING_READS_MAX):
        some = wanted[start : start + PLANNING_READS_MAX]
        read += await asyncio.gather(*(_of_run(store, scope, run, domains, clock, entropy) for run in some))
    return Outstanding(
        tuple(event for one in read for event in one.happened), tuple(one for found in read for one in found.maybe)
    )


async def _of_run(
    store: ObjectStore, scope: Scope, run: RunId, domains: Collection[Domain], clock: Clock, entropy: Entropy
) -> Outstanding:
    happened: list[Event] = []
    last_ms = 0

    def seen(log: RunLog, batch: Batch) -> None:
        nonlocal last_ms
        last_ms = max(last_ms, batch.at_ms)
        happened.extend(_sealed(log.state.owed.get(batch.sequence, ()), domains, scope, last_ms))

    try:
        log, _ = await RunLog.open(store, scope, run, clock, entropy, seen)
    except (NotFound, Fenced):
        return Outstanding()
    # Of an atomic run's outputs none is in a table before all are: the same look tells whether they landed.
    staged = (its.staged for its in log.state.tasks.values() if its.status in ACTIVE | {TaskStatus.STAGED})
    maybe = (
        MaybeLanded(one.materialization_id, tuple(_sealed(one.events, domains, scope, one.at_ms)))
        for one in staged
        if one is not None
    )
    return Outstanding(tuple(happened), tuple(one for one in maybe if one.events))


def _sealed(drafts: Iterable[Draft], domains: Collection[Domain], scope: Scope, at_ms: int) -> Iterable[Event]:
    """The events as the ledger will have them, but for the position: that of the moment when they were written down."""
    for place, draft in enumerate(one for one in drafts if one.type.domain in domains):
        event_id = draft.id or keyed_event_id(scope, draft)
        tick = (at_ms << 16) + min(place, 0xFFFF)
        position = Position(encode_ulid(tick << 64 | int(fingerprint("unsent event", event_id)[:16], 16)))
        yield seal(draft, scope, fresh_id=EventId(event_id), position=position, now_ms=at_ms)

"""Snapshots that have had their time, taken out of their tables by a commit like any other. No file goes here.

What expires is computed on exactly the base that is swung: a tag that somebody sets meanwhile, or a snapshot that is published,
is seen, for a lost swing computes again. Files that only expired snapshots named go later, on proof and after the grace
(`table_files.py`), so that whoever reads an older version finds them.
"""

from dataclasses import dataclass, replace

from arco.catalog.bases import Bases
from arco.catalog.commits import Commits
from arco.catalog.idempotency import RequestKey
from arco.catalog.subject import Tables
from arco.iceberg import updates
from arco.iceberg.expiry import Expiry, Hold, expired
from arco.iceberg.guardrails import Allowed
from arco.iceberg.metadata import TableMetadata
from arco.kernel.crash_points import reach
from arco.kernel.errors import ArcoError
from arco.kernel.ids import new_uuid7
from arco.ledger.receipts import Source, SourceKind
from arco.upkeep.holds import Versions, why_ref
from arco.upkeep.maintained import EXPIRE_SNAPSHOTS, Maintained, forbids_garbage, maintained
from arco.upkeep.sweep import Sweep

SOURCE = Source(kind=SourceKind.UPKEEP, principal="arco upkeep")


@dataclass(frozen=True, slots=True)
class Terms:
    """What is wanted of a commit: that what has had its time by this moment goes, but for what is held."""

    table: Maintained
    now_ms: int
    hold: Hold

    def expired(self, base: TableMetadata) -> Expiry:
        """Nothing of another table, that has the name by now, nor of one that no longer wants it."""
        table = replace(self.table, metadata=base)
        if base.table_uuid != table.entry.uuid or forbids_garbage(base) or not table.wants(EXPIRE_SNAPSHOTS):
            return Expiry()
        return expired(base, self.now_ms, self.hold, why_ref)


class _Expiring(Tables):
    """Tables whose commits let snapshots expire. `going`: what the last one did."""

    going = Expiry()

    def committed(  # type: ignore[override]  # its requests are terms, and nothing else
        self, base: TableMetadata, request: Terms, now_ms: int, previous_location: str, _allowed: Allowed
    ) -> TableMetadata:
        self.going = request.expired(base)
        return updates.apply(base, self.going.updates(), now_ms=now_ms, previous_location=previous_location)


async def collect(sweep: Sweep) -> None:
    versions = Versions(sweep)
    try:
        async for table in maintained(sweep, EXPIRE_SNAPSHOTS):
            await _expire(sweep, table, versions)
    finally:
        versions.close()


async def _expire(sweep: Sweep, table: Maintained, versions: Versions) -> None:
    try:
        terms = Terms(table, sweep.now_ms, (await versions.of(table.metadata)).why)
        going = terms.expired(table.metadata)
    except ArcoError as error:
        sweep.keep("what it holds is not known, so nothing of it expires")
        sweep.tell(error, table.name)
        return
    _say(sweep, table, going)
    if going.is_empty:
        return
    with sweep.apart(table.name, "its snapshots could not be taken out"):
        if not sweep.dry_run:
            going = await _commit(sweep, table, terms)
            reach("upkeep.snapshots_expired")
        sweep.tally.changed += len(going.snapshots) + len(going.refs)


async def _commit(sweep: Sweep, table: Maintained, terms: Terms) -> Expiry:
    parts, subject = sweep.parts, _Expiring()
    key = RequestKey(new_uuid7(parts.clock, parts.entropy), "expireSnapshots", "", durable=False)
    commits: Commits[TableMetadata, Terms] = Commits(parts, subject, Bases(parts, subject))
    await commits.commit(table.entry.namespace, table.entry.name, terms, key, SOURCE)
    await parts.afterwards.settle()
    return subject.going


def _say(sweep: Sweep, table: Maintained, going: Expiry) -> None:
    """Which snapshots go, and which stay because of what they hold."""
    kept = len(table.metadata.snapshots) - len(going.snapshots) - len(going.held)
    for _ in range(kept):
        sweep.keep("it has not had its time")
    for one in going.held:
        sweep.keep("it holds a version of a partition that is kept")
        sweep.tally.notes.append(f"snapshot {one.snapshot_id} of {table.name} stays: {one.why}")
    for ref in going.held_refs:
        sweep.keep("a branch that waits for a decision")
        sweep.tally.notes.append(f"{ref.name!r} of {table.name} stays: {ref.why}; run arco quarantine list")
    if sweep.dry_run:
        sweep.tally.notes += [f"snapshot {one} of {table.name} would expire" for one in going.snapshots]
        sweep.tally.notes += [f"{name!r} of {table.name} would go: its time is over" for name in going.refs]

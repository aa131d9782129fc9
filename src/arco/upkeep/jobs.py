"""The jobs of upkeep, in the order in which a pass does them: what a job leaves to another comes before it.

Each is one file with `collect(sweep)`. First what was left half done is finished, then what nobody needs is taken away.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from arco.upkeep import (
    asked_runs,
    creations,
    dropped,
    feed,
    fold_state,
    markers,
    metadata_files,
    names_state,
    old_metadata,
    pointers,
    receipts,
    reconcile,
    segments,
    snapshots,
    staged,
    table_files,
    temporaries,
    transactions,
)
from arco.upkeep.sweep import Sweep

_DAILY_S = 24 * 3600


@dataclass(frozen=True, slots=True)
class Job:
    """One kind of garbage, and who collects it. `rhythm_s`: how often it is enough for those who go on and on."""

    kind: str
    what: str
    collect: Callable[[Sweep], Awaitable[None]]
    rhythm_s: int = 0


JOBS = (
    Job("transactions", "transactions that nobody finished, and records that nobody needs", transactions.collect),
    Job("reconcile", "receipts of last commits, completed; the log of each table against its receipts", reconcile.collect),
    Job("dropped", "dropped tables that are to be purged, after their hold", dropped.collect),
    Job("staged", "staged creates that nobody finished, and their files", staged.collect),
    Job("pointers", "pointers without a name, and the files of purged tables", pointers.collect),
    Job("creations", "first files of creations that came to nothing", creations.collect),
    Job("snapshots", "snapshots of tables that are maintained, expired by a commit", snapshots.collect),
    Job("files", "files that only expired snapshots named, or nothing at all", table_files.collect, _DAILY_S),
    Job("metadata", "metadata files of commits that never happened", metadata_files.collect),
    Job(
        "versions",
        "metadata files that their table's log no longer names, where the table wants that",
        old_metadata.collect,
    ),
    Job("markers", "markers of keys past their lifetime", markers.collect),
    Job("receipts", "receipts that were folded, or of commits that were only about to happen", receipts.collect),
    Job("feed", "checkpoints of the feed of events that newer ones replaced", feed.collect),
    Job("asked", "requests for runs that were decided about", asked_runs.collect),
    Job("names", "commits and files of tier 1 that its manifest does not name", names_state.collect),
    Job("segments", "consumed segments of the ledger, moved to the archive", segments.collect),
    Job("state", "folded state beyond the reach of as-of", fold_state.collect),
    Job("temporaries", "unfinished writes of killed processes", temporaries.collect),
)

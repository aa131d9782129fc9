"""Everything that `arco verify` looks at beside the catalog itself: each room looks at its own objects, one after the other."""

from arco.catalog.catalog import Catalog
from arco.catalog.verify_feed import verify_feed
from arco.catalog.verify_requests import verify_requests
from arco.fold.heads import Heads
from arco.fold.verify_fold import verify_fold
from arco.kernel.limits import AS_OF_REACH_S
from arco.ledger.verify_ledger import verify_ledger
from arco.ledger.verify_runs import verify_runs
from arco.servo.execute.verify_documents import verify_documents
from arco.storage.findings import Progress, Report, nobody
from arco.storage.looking import Look
from arco.upkeep.verify_notes import verify_notes


async def look_over(catalog: Catalog, report: Report, progress: Progress = nobody, reach_s: int = AS_OF_REACH_S) -> None:
    """Into a report that the catalog's own verification began. What was published longer ago than the reach may be gone."""
    parts = catalog.parts
    look = Look(parts.tier1.store, parts.scope, report, progress)
    await verify_fold(look, Heads(parts.tier1.store, parts.scope, parts.clock, parts.entropy), reach_s)
    await verify_ledger(look)
    await verify_requests(look)
    await verify_feed(look)
    await verify_runs(look)
    await verify_documents(look)
    await verify_notes(look)
    await look.unknown()

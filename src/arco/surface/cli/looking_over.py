"""Everything that `arco verify` looks at beside the catalog itself: each room looks at its own objects, one after the other."""

from arco.fold.heads import Heads
from arco.fold.verify_fold import verify_fold
from arco.ledger.verify_ledger import verify_ledger
from arco.storage.findings import Progress, Report
from arco.storage.looking import Look
from arco.surface.cli.opening import Opened


async def look_over(at: Opened, report: Report, progress: Progress) -> None:
    """Into a report that the catalog's own verification began."""
    parts = at.catalog.parts
    look = Look(parts.tier1.store, parts.scope, report, progress)
    heads = Heads(parts.tier1.store, parts.scope, parts.clock, parts.entropy)
    await verify_fold(look, heads)
    await verify_ledger(look)
    await look.unknown()

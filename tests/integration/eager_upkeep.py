"""`arco upkeep` with next to no grace where safety does not rest on it, so that a test of minutes meets a collector at work.

python eager_upkeep.py SECONDS upkeep --root …

Metadata files of commits that never happened go by their numbers (U2), commits beside the chain after a write of the manifest:
neither needs a grace. Attempts that fell silent are sent back, which never is wrong. Markers, receipts, records and pointers keep
the product's own times: within those a client may still ask.
"""

import sys

from arco.catalog import committer, pointer
from arco.surface.cli.main import run
from arco.upkeep import metadata_files, names_state, reconcile, transactions

if __name__ == "__main__":
    grace_s = float(sys.argv.pop(1))
    for module in (metadata_files, names_state):
        module._KEPT_S = grace_s  # type: ignore[attr-defined]
    for module in (reconcile, transactions):
        module._STALE_S = grace_s  # type: ignore[attr-defined]
    for module in (committer, pointer):
        module.TRANSACTION_STALE_S = grace_s  # type: ignore[attr-defined]
    run()

"""`arco serve` that takes over silent attempts after a given time, so that a test need not wait ten minutes for one.

python impatient_server.py SECONDS serve --root …
"""

import sys

from arco.catalog import committer, idempotency, pointer
from arco.surface.cli.main import run
from arco.txn import claims, meeting

if __name__ == "__main__":
    patience_s = float(sys.argv.pop(1))
    idempotency.IDEMPOTENCY_TAKEOVER_S = patience_s  # type: ignore[assignment]
    for module in (claims, committer, meeting, pointer):
        module.TRANSACTION_STALE_S = patience_s  # type: ignore[attr-defined]
    run()

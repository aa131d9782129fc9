"""`arco serve` that takes over silent attempts after a given time, so that a test need not wait ten minutes for one.

python impatient_server.py SECONDS serve --root …
"""

import sys

from arco.catalog import idempotency
from arco.surface.cli.main import run

if __name__ == "__main__":
    idempotency.IDEMPOTENCY_TAKEOVER_S = float(sys.argv.pop(1))  # type: ignore[assignment]
    run()

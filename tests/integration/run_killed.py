"""A process that does a command and kills itself at a named place: `-m tests.integration.run_killed POINT NTH COMMAND…`."""

import os
import signal
import sys

from arco.kernel import crash_points
from arco.surface.cli.main import run


def main() -> None:
    point, left = sys.argv[1], int(sys.argv[2])

    def reached(name: str) -> None:
        nonlocal left
        if name == point:
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)

    crash_points.install(reached)
    sys.argv = ["arco", *sys.argv[3:]]
    run()


if __name__ == "__main__":
    main()

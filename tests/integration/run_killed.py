"""A process that runs a project and kills itself at a named place: `python -m tests.integration.run_killed FOLDER POINT NTH`."""

import os
import signal
import sys

from arco.kernel import crash_points
from arco.surface.cli.main import run


def main() -> None:
    folder, point, nth = sys.argv[1], sys.argv[2], int(sys.argv[3])
    left = nth

    def reached(name: str) -> None:
        nonlocal left
        if name == point:
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)

    crash_points.install(reached)
    sys.argv = ["arco", "run", "--project", folder, "--parallel", "1"]
    run()


if __name__ == "__main__":
    main()

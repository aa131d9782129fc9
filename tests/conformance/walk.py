# SPDX-License-Identifier: Apache-2.0
"""A client's script, run by the client's own Python against a new server on an empty root.

    python -m tests.conformance.walk folder|s3|s3-vended PYTHON SCRIPT [ARGUMENT...]

The script gets the catalog's address and a folder that it may fill, then the arguments. It fails by its exit code.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.conformance.kit import CannotRun
from tests.conformance.server import on_folder, on_s3, on_vending_s3, server_errors

ROOTS = {"folder": on_folder, "s3": on_s3, "s3-vended": on_vending_s3}


def main(root: str, python: str, script: str, *arguments: str) -> int:
    # Nothing of Arco and of its environment: the client stands alone.
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "SPARK", "VIRTUAL_ENV"))
    }
    with tempfile.TemporaryDirectory(prefix="arco-walk-") as folder:
        work = Path(folder)
        scratch = work / "client"
        scratch.mkdir()
        try:
            with ROOTS[root](work) as address:
                command = [python, "-I", str(Path(script).resolve()), address, str(scratch), *arguments]
                code = subprocess.run(command, cwd=scratch, env=environment, check=False).returncode
        except CannotRun as error:
            print(error, file=sys.stderr)
            return 2
        errors = server_errors(work)
    for error in errors:
        print(f"server error: {error}", file=sys.stderr)
    ok = code == 0 and not errors
    print(f"{Path(script).stem} on {root}: {'passed' if ok else 'FAILED'}", flush=True)
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

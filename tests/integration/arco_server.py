"""A real `arco serve` on a free port, for clients to talk to."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def arco_server(root: Path | str, *arguments: str) -> Iterator[str]:
    """The address of the catalog of a root, for the length of a block."""
    arco = Path(sys.executable).with_name("arco")
    command = [str(arco), "serve", "--root", str(root), "--port", "0", *arguments]
    environment = {**os.environ, "COLUMNS": "400"}
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert server.stdout is not None
        line = server.stdout.readline()
        assert " at http://" in line, f"the server did not start: {line!r}"
        yield line.rpartition(" at ")[2].strip()
    finally:
        server.terminate()
        server.wait(30)
        server.stdout.close()

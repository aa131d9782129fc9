"""A real `arco serve` whose log can be read while it runs."""

import contextlib
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Serving:
    address: str
    log: Path

    def links(self, asked: dict[str, Any]) -> dict[str, Any]:
        request = urllib.request.Request(
            f"{self.address}/api/v1/catalog/signed-urls", json.dumps(asked).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            found: dict[str, Any] = json.load(answer)
            return found

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self.address}{path}", timeout=30) as answer:
            return json.load(answer)

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()]


@contextlib.contextmanager
def serving(root: str, log: Path, *arguments: str) -> Iterator[Serving]:
    """A real `arco serve` that writes its log into a file."""
    command = [sys.executable, "-c", "from arco.surface.cli.main import run; run()", "serve", "--root", root, "--port", "0"]
    environment = {**os.environ, "COLUMNS": "400"}
    with log.open("w") as errors:
        server = subprocess.Popen(
            [*command, "--log", "json", *arguments], stdout=subprocess.PIPE, stderr=errors, text=True, env=environment
        )
        try:
            assert server.stdout is not None
            line = server.stdout.readline()
            assert " at http://" in line, f"the server did not start: {line!r}, {log.read_text()}"
            yield Serving(line.rpartition(" at ")[2].strip().removesuffix("/iceberg"), log)
        finally:
            server.terminate()
            server.wait(30)
            server.stdout.close()

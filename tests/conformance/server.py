# SPDX-License-Identifier: Apache-2.0
"""An `arco serve` on an empty root, with a log that can be read afterwards."""

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.conformance.kit import CannotRun
from tests.servers.launch import SEAWEEDFS_ROLE_ARN, seaweedfs

STOP_TIMEOUT_S = 30
LOG_LINES_MAX = 20
# Its first line, the indented ones, and then the exception.
TRACEBACK = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n|\n)*(\S.*)")


@contextmanager
def on_folder(work: Path, allowed: Sequence[str] = ()) -> Iterator[str]:
    """The address of a catalog on an empty folder, for the length of a block."""
    root = work / "lake"
    root.mkdir()
    with _serving(work, str(root), {}, allowed) as address:
        yield address


@contextmanager
def on_s3(work: Path, allowed: Sequence[str] = ()) -> Iterator[str]:
    """The address of a catalog on an empty bucket of an S3 server of its own."""
    with seaweedfs(work / "s3") as store, _serving(work, f"{store.url}/lake", store.options, allowed) as address:
        yield address


@contextmanager
def on_vending_s3(work: Path, allowed: Sequence[str] = ()) -> Iterator[str]:
    """The same, of a server that keeps its keys to itself and gives a session of one table to whoever loads it."""
    with seaweedfs(work / "s3") as store:
        vending = ("--vend", "sts", "--vend-role", SEAWEEDFS_ROLE_ARN, "--vend-endpoint", store.endpoint)
        with _serving(work, f"{store.url}/lake", store.options, allowed, vending) as address:
            yield address


@contextmanager
def _serving(
    work: Path, root: str, options: Mapping[str, str], allowed: Sequence[str], more: Sequence[str] = ()
) -> Iterator[str]:
    command = [str(Path(sys.executable).with_name("arco")), "serve", "--root", root, "--port", "0", *more]
    command += [part for word, value in options.items() for part in ("-o", f"{word}={value}")]
    command += [part for location in allowed for part in ("--allow-location", location)]
    with (work / "server.log").open("w") as log:
        server = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, text=True, env={**os.environ, "COLUMNS": "400"}
        )
    try:
        assert server.stdout is not None
        line = server.stdout.readline()
        if " at http://" not in line:
            raise CannotRun(f"the server did not start: {line}{_tail(work / 'server.log')}")
        yield line.rpartition(" at ")[2].strip()
    finally:
        _stop(server)


def _stop(server: subprocess.Popen[str]) -> None:
    server.terminate()
    try:
        server.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
    if server.stdout is not None:
        server.stdout.close()


def server_errors(work: Path) -> list[str]:
    """What the server could not explain itself: each kind of exception in its log, with the number of times."""
    log = work / "server.log"
    if not log.exists():
        return []
    # A log of JSON lines has the traceback in one of them.
    text = log.read_text(errors="replace").replace("\\n", "\n")
    kinds = Counter(found.strip('"}') for found in TRACEBACK.findall(text))
    return [f"{kind} ({times} times)" for kind, times in sorted(kinds.items())]


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-LOG_LINES_MAX:])

"""Who flushes: the system calls that make a disk keep what it was given, counted while a server takes commits.

strace is attached to a running server for twenty commits of one writer. First to one that is known to flush twice for each
request: if it does not count that, its zeros mean nothing, and the table says so. Where strace is not installed or not allowed,
that is said.
"""

import asyncio
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.integration.plain_http import Connection, NotSent, ReplyLost

from flushing_server import FLUSHES
from rest_servers import Running

COMMITS = 20
ATTACHED_S = 30.0
CALLS = ("fsync", "fdatasync", "sync_file_range", "syncfs", "sync", "msync")
_FLUSH = re.compile(rf"^\s*(?:\d+\s+)?({'|'.join(CALLS)})\(")
_TRACER = re.compile(r"^TracerPid:\t(\d+)$", re.MULTILINE)


def report(servers: Mapping[str, Running]) -> str:
    about = f"## Who flushes\n\nCalls of {', '.join(CALLS)}, by strace, over {COMMITS} commits of one writer."
    lines = ["| server | flushes for each commit |", "|---|---|"]
    lines += [f"| {name} | {_told(running)} |" for name, running in servers.items()]
    return f"{about} {_checked()}\n\n" + "\n".join(lines)


def _checked() -> str:
    """Whether the method counts what is known."""
    with _known_to_flush() as known:
        told = _told(known)
    if told == f"{FLUSHES:.1f}":
        return (
            f"Of a server that is known to make {FLUSHES}, {told} were counted. None: what was answered is in memory only."
        )
    return f"**Not to be believed**: of a server that is known to make {FLUSHES}, this counted: {told}."


@contextmanager
def _known_to_flush() -> Iterator[Running]:
    with tempfile.TemporaryDirectory(prefix="arco-flushing-") as folder:
        command = [sys.executable, str(Path(__file__).with_name("flushing_server.py")), folder]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            address = server.stdout.readline().removeprefix("at ").strip()
            yield Running(f"{address}/v1", (server.pid,))
        finally:
            server.kill()
            server.communicate()


def _told(running: Running) -> str:
    try:
        return f"{_flushes(running):.1f}"
    except (OSError, subprocess.SubprocessError, NotSent, ReplyLost) as error:
        return f"not counted: {(str(error).splitlines() or ['?'])[0][:80]}"


def _flushes(running: Running) -> float:
    with tempfile.TemporaryDirectory(prefix="arco-strace-") as folder:
        told = Path(folder) / "calls"
        pids = [part for pid in running.tree() for part in ("-p", str(pid))]
        command = ["strace", "-f", "-qq", "-e", f"trace={','.join(CALLS)}", "-o", str(told), *pids]
        tracer = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            _wait_until_attached(tracer, running)
            asyncio.run(asyncio.wait_for(_commit(running), ATTACHED_S))
        except TimeoutError as error:
            raise OSError(f"no answer for {ATTACHED_S:g} s") from error
        finally:
            if tracer.poll() is None:
                tracer.send_signal(signal.SIGINT)
            tracer.communicate(timeout=30)
        text = told.read_text() if told.exists() else ""
    return sum(bool(_FLUSH.match(line)) for line in text.splitlines()) / COMMITS


def _wait_until_attached(tracer: "subprocess.Popen[str]", running: Running) -> None:
    """To every thread: one that is not watched may be the one that flushes."""
    until = time.monotonic() + ATTACHED_S
    while time.monotonic() < until:
        if tracer.poll() is not None:
            raise OSError(tracer.communicate()[1] or "strace ended")
        if all(_is_traced(pid) for pid in running.tree()):
            return
        time.sleep(0.1)
    raise OSError("strace did not come to all of its threads")


def _is_traced(pid: int) -> bool:
    for status in Path(f"/proc/{pid}/task").glob("*/status"):
        try:
            found = _TRACER.search(status.read_text())
        except (FileNotFoundError, ProcessLookupError):
            continue  # a thread that has ended
        if found is None or found.group(1) == "0":
            return False
    return True


async def _commit(running: Running) -> None:
    address, _, path = running.base.removeprefix("http://").partition("/")
    connection = await Connection.open(f"http://{address}")
    for number in range(COMMITS):
        body = {
            "requirements": [],
            "updates": [{"action": "set-properties", "updates": {"flushed": f"{time.time_ns()}-{number}"}}],
        }
        reply = await connection.ask("POST", f"/{path}/namespaces/db/tables/t000000", body, Content_Type="application/json")
        if reply.status != 200:
            raise OSError(f"a commit was answered with {reply.status}")
    connection.close()

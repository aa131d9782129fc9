"""Who flushes: the system calls that make a disk keep what it was given, counted while a server takes commits.

strace is attached to a running server for twenty commits of one writer. Where it is not installed or not allowed, that is said.
"""

import asyncio
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from tests.integration.plain_http import Connection

from rest_servers import Running

COMMITS = 20
_FLUSH = re.compile(r"^\s*(?:\d+\s+)?(?:<\.\.\. )?(fsync|fdatasync|sync_file_range|syncfs|sync)\b")


def report(servers: Mapping[str, Running]) -> str:
    lines = ["| server | flushes for each commit |", "|---|---|"]
    for name, running in servers.items():
        try:
            lines.append(f"| {name} | {_flushes(running):.1f} |")
        except (OSError, subprocess.SubprocessError) as error:
            lines.append(f"| {name} | not counted: {str(error).splitlines()[0][:80]} |")
    about = f"## Who flushes\n\nCalls of fsync and its kin, by strace, over {COMMITS} commits of one writer."
    return f"{about} None: what was answered is in memory only.\n\n" + "\n".join(lines)


def _flushes(running: Running) -> float:
    with tempfile.TemporaryDirectory(prefix="arco-strace-") as folder:
        told = Path(folder) / "calls"
        pids = [part for pid in running.tree() for part in ("-p", str(pid))]
        calls = "trace=fsync,fdatasync,sync_file_range,syncfs,sync"
        tracer = subprocess.Popen(
            ["strace", "-f", "-qq", "-e", calls, "-o", str(told), *pids], stderr=subprocess.PIPE, text=True
        )
        time.sleep(2.0)  # it attaches to every thread, one after the other
        if tracer.poll() is not None:
            raise OSError(tracer.communicate()[1] or "strace ended")
        asyncio.run(_commit(running))
        tracer.send_signal(signal.SIGINT)
        tracer.communicate(timeout=30)
        text = told.read_text() if told.exists() else ""
    return sum("resumed" not in line and bool(_FLUSH.match(line)) for line in text.splitlines()) / COMMITS


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

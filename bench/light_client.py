"""Reads by a client that takes next to no processor time: wrk, in a process of its own.

A client in Python spends more on a request than most servers spend on its answer. On two cores it would take one, and decide how
many answers there are: every server that is faster than it looks the same. What must never enter: requests that are not reads;
who commits has to look at each answer.
"""

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_SCRIPT = Path(__file__).with_name("light_client.lua")
_MISSING = "wrk is missing: install it, for example with apt-get install wrk"


@dataclass(frozen=True, slots=True)
class Reads:
    """What was read in a time. `latencies_ms` are so many points of their distribution, evenly apart."""

    per_s: float
    requests: int
    latencies_ms: list[float]


def need_wrk() -> None:
    if shutil.which("wrk") is None:
        raise SystemExit(_MISSING)


def read(address: str, method: str, paths: Sequence[str], clients: int, seconds: float) -> Reads:
    """As many requests as so many clients get answered; an OSError if one of them was refused or got no answer."""
    command = ["wrk", "-t1", f"-c{clients}", f"-d{max(1, round(seconds))}s", "-s", str(_SCRIPT), address]
    told = {**os.environ, "METHOD": method, "PATHS": "\n".join(paths)}
    ended = subprocess.run(command, env=told, capture_output=True, text=True, timeout=seconds + 60, check=False)
    if ended.returncode != 0:
        raise OSError(f"wrk ended with {ended.returncode}: {(ended.stderr or ended.stdout)[-300:]}")
    found = dict(line.split(" ", 1) for line in ended.stdout.splitlines() if line.startswith("arco:"))
    if found["arco:wrong"] != "0":
        raise OSError(f"{found['arco:wrong']} requests were refused, or had no answer")
    requests = int(found["arco:requests"])
    if not requests:
        raise OSError("no answer at all")
    points = [int(point) / 1000 for point in found["arco:latencies_us"].split()]
    return Reads(requests / (int(found["arco:duration_us"]) / 1e6), requests, points)

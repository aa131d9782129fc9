"""The catalog beside others, in one run: the same requests to each server, in turn, on one machine.

All servers run at once; every figure is taken in rounds that go from one server to the next, so that what the machine does
meanwhile falls on all of them. A cell has the median rate of the rounds, the processor time that the server took for one request,
and for loads the latencies of all rounds. `make bench-catalog` prints the tables and writes bench/results/catalog.md; the second
part of that file, what can be counted instead of timed, is `catalog.py`'s.
Usage: python bench/catalog_peers.py [--seconds 3] [--rounds 3] [--servers arco seaweedfs …] [--tables 1000]
"""

import argparse
import asyncio
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.integration.plain_http import Connection, NotSent, ReplyLost  # noqa: E402

import flush_counts  # noqa: E402
import rest_servers  # noqa: E402
from catalog import TITLE as COUNTED  # noqa: E402
from many_loads import loads_report  # noqa: E402
from rest_servers import Running, all_of  # noqa: E402

RESULTS = ROOT / "bench" / "results" / "catalog.md"
NAMESPACE = "db"
SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": n, "name": f"column_{n}", "type": "long", "required": False} for n in range(1, 11)],
}
# Optional in the specification; one of the servers refuses a body without them.
REQUIRED_BY_SOME = {
    "partition-spec": {"spec-id": 0, "fields": []},
    "write-order": {"order-id": 0, "fields": []},
    "stage-create": False,
}
CELLS = (
    "Each cell: median rate, processor time of the server for one request, refused requests that were sent again. The client is "
    "one process beside them."
)
BESIDE = "The faster of one and two workers, flushing, beside each of the others; below 1 we are behind."


@dataclass(slots=True)
class Taken:
    """What a server did in one round of a figure."""

    per_s: float
    processor_ms: float
    latencies_ms: list[float]
    refused: int


@dataclass(slots=True)
class Peer:
    """A server under load, and all that was measured of it."""

    name: str
    running: Running
    connections: list[Connection] = field(default_factory=list)
    made: int = 0
    taken: dict[str, list[Taken]] = field(default_factory=dict)
    given_up: dict[str, str] = field(default_factory=dict)

    @property
    def path(self) -> str:
        return "/" + self.running.base.removeprefix("http://").partition("/")[2]

    @property
    def tables(self) -> str:
        return f"{self.path}/namespaces/{NAMESPACE}/tables"

    async def connect(self, clients: int) -> None:
        address = self.running.base.removeprefix("http://").partition("/")[0]
        # While the others were measured, a server may have closed what was at rest.
        self.connections = [one for one in self.connections if one.is_open]
        while len(self.connections) < clients:
            for _ in range(1200):
                try:
                    self.connections.append(await Connection.open(f"http://{address}"))
                    break
                except NotSent:
                    await asyncio.sleep(0.1)
            else:
                raise OSError(f"nobody listens at {address}")

    async def ready(self) -> None:
        """Until it takes a namespace."""
        await self.connect(1)
        last: Any = None
        for _ in range(300):
            try:
                last = await self.connections[0].ask("POST", f"{self.path}/namespaces", {"namespace": [NAMESPACE]}, **_JSON)
                if last.status == 200:
                    return
            except (NotSent, ReplyLost) as error:
                last, self.connections = error, []
                await self.connect(1)
            await asyncio.sleep(0.2)
        raise OSError(f"it never took a namespace: {last}")


_JSON = {"Content_Type": "application/json"}
Act = Callable[[Peer, Connection, int, int], Awaitable[bool]]
"""One request of one client, by its number and the client's; whether it was taken."""


async def _ask(connection: Connection, method: str, path: str, body: Any = None) -> bool:
    reply = await connection.ask(method, path, body, **_JSON)
    if reply.status >= 500 or reply.status == 404:
        raise ReplyLost(f"{reply.status} {reply.body[:200]!r}")
    return reply.status < 300


async def create(peer: Peer, connection: Connection, number: int, _client: int) -> bool:
    body = {"name": f"t{number:06}", "schema": SCHEMA, **REQUIRED_BY_SOME}
    return await _ask(connection, "POST", peer.tables, body)


async def load(peer: Peer, connection: Connection, number: int, client: int) -> bool:
    return await _ask(connection, "GET", f"{peer.tables}/t{(number * 7919 + client * 31) % peer.made:06}")


async def exists(peer: Peer, connection: Connection, number: int, client: int) -> bool:
    return await _ask(connection, "HEAD", f"{peer.tables}/t{(number * 7919 + client * 31) % peer.made:06}")


async def list_whole(peer: Peer, connection: Connection, _number: int, _client: int) -> bool:
    return await _ask(connection, "GET", peer.tables)


async def list_pages(peer: Peer, connection: Connection, _number: int, _client: int) -> bool:
    token = ""
    while token is not None:
        reply = await connection.ask("GET", f"{peer.tables}?pageSize=100&pageToken={token}")
        if reply.status != 200:
            raise ReplyLost(f"{reply.status} {reply.body[:200]!r}")
        token = reply.json().get("next-page-token")
    return True


def _change(number: int, client: int) -> dict[str, Any]:
    return {"requirements": [], "updates": [{"action": "set-properties", "updates": {f"p{client}": str(number)}}]}


async def commit_one(peer: Peer, connection: Connection, number: int, client: int) -> bool:
    return await _ask(connection, "POST", f"{peer.tables}/t000000", _change(number, client))


async def commit_own(peer: Peer, connection: Connection, number: int, client: int) -> bool:
    return await _ask(connection, "POST", f"{peer.tables}/t{1 + client:06}", _change(number, client))


@dataclass(frozen=True, slots=True)
class Figure:
    name: str
    act: Act
    clients: int
    flushes: bool = False
    """Whether a durable server waits for its disk here."""


FIGURES = (
    Figure("load, 1 client", load, 1),
    Figure("load, 8 clients", load, 8),
    Figure("load, 32 clients", load, 32),
    Figure("HEAD, 8 clients", exists, 8),
    Figure("list of all names", list_whole, 1),
    Figure("list in pages of 100", list_pages, 1),
    Figure("commit, 1 writer", commit_one, 1, flushes=True),
    Figure("commit, 8 writers on one table", commit_one, 8, flushes=True),
    Figure("commit, 8 writers on 8 tables", commit_own, 8, flushes=True),
)
CREATE = Figure("create tables, 8 clients", create, 8, flushes=True)


async def _round(peer: Peer, figure: Figure, seconds: float, most: int | None = None) -> Taken:
    """As much as clients get done in a time, or so many requests."""
    await peer.connect(figure.clients)
    latencies: list[float] = []
    refused, next_number = 0, peer.made if figure is CREATE else 0
    until, last = time.perf_counter() + seconds, None if most is None else next_number + most

    async def client(number: int) -> None:
        nonlocal refused, next_number
        connection = peer.connections[number]
        while time.perf_counter() < until if last is None else next_number < last:
            mine, next_number = next_number, next_number + 1
            started = time.perf_counter()
            while not await figure.act(peer, connection, mine, number):
                refused += 1
            latencies.append((time.perf_counter() - started) * 1000)

    before_s, started = peer.running.processor_s(), time.perf_counter()
    await asyncio.gather(*(client(number) for number in range(figure.clients)))
    took_s = time.perf_counter() - started
    spent_s = peer.running.processor_s() - before_s
    if figure is CREATE:
        peer.made = next_number
    return Taken(len(latencies) / took_s, spent_s * 1000 / len(latencies), latencies, refused)


async def _measure(peers: list[Peer], given: argparse.Namespace) -> None:
    for peer in peers:
        await peer.ready()
    each = given.tables // given.rounds
    for _ in range(given.rounds):
        for peer in peers:
            await _note(peer, CREATE, given.seconds, each)
    for peer in peers:
        if not peer.made:
            why = peer.given_up.get(CREATE.name, "")
            peer.given_up = {figure.name: f"no tables could be made: {why}" for figure in FIGURES}
    for figure in FIGURES:
        for peer in peers:
            await _note(peer, figure, given.warm, None, keep=False)
        for _ in range(given.rounds):
            for peer in peers:
                await _note(peer, figure, given.seconds, None)
        print(_row(figure, peers), flush=True)


async def _note(peer: Peer, figure: Figure, seconds: float, most: int | None, *, keep: bool = True) -> None:
    """One round; a server that fails a figure is asked no more for it."""
    if figure.name in peer.given_up:
        return
    try:
        taken = await _round(peer, figure, seconds, most)
    except (ReplyLost, NotSent) as error:
        peer.given_up[figure.name] = str(error)[:200]
        print(f"{peer.name}, {figure.name}: {error}", file=sys.stderr, flush=True)
        for connection in peer.connections:
            connection.close()
        peer.connections = []
        return
    if keep:
        peer.taken.setdefault(figure.name, []).append(taken)


# Tables


def _row(figure: Figure, peers: list[Peer]) -> str:
    cells = []
    for peer in peers:
        rounds = peer.taken.get(figure.name)
        if not rounds:
            cells.append("failed" if figure.name in peer.given_up else "–")
            continue
        processor = statistics.median(one.processor_ms for one in rounds)
        again = sum(one.refused for one in rounds) / sum(len(one.latencies_ms) for one in rounds)
        told = f"{rate(peer, figure):,.0f}/s · {processor:.2f} ms"
        cells.append(told + (f" · {again:.0%} again" if again >= 0.005 else ""))
    return f"| {figure.name} | " + " | ".join(cells) + " |"


def rate(peer: Peer, figure: Figure) -> float:
    return statistics.median(one.per_s for one in peer.taken[figure.name])


def _latencies(figure: Figure, peers: list[Peer]) -> str:
    cells = []
    for peer in peers:
        found = sorted(ms for one in peer.taken.get(figure.name, ()) for ms in one.latencies_ms)
        points = [found[min(len(found) - 1, int(len(found) * part))] for part in (0.5, 0.95, 0.99)] if found else []
        cells.append(" / ".join(f"{point:.1f}" for point in points) or "–")
    return f"| {figure.name} | " + " | ".join(cells) + " |"


def _beside(peers: list[Peer]) -> list[str]:
    """Our best beside each other: how many times as fast, figure by figure."""
    ours = [peer for peer in peers if peer.name in {"arco", "arco, 2 workers"}]
    others = [peer for peer in peers if not peer.name.startswith("arco")]
    lines = [_heading(["figure", "ours", *(peer.name for peer in others)])]
    for figure in (CREATE, *FIGURES):
        have = [peer for peer in ours if figure.name in peer.taken]
        if not have:
            continue
        best = max(have, key=lambda peer: rate(peer, figure))
        ratios = [f"{rate(best, figure) / rate(peer, figure):.2f}" if figure.name in peer.taken else "–" for peer in others]
        lines.append(f"| {figure.name} | {best.name} | " + " | ".join(ratios) + " |")
    return lines


def _hot(peers: list[Peer]) -> list[str]:
    one, own = FIGURES[-2], FIGURES[-1]
    cells = [
        f"{rate(peer, one) / rate(peer, own):.2f}" if {one.name, own.name} <= set(peer.taken) else "–" for peer in peers
    ]
    return [_heading(["8 on one beside 8 on 8", *(peer.name for peer in peers)]), "| rate | " + " | ".join(cells) + " |"]


def _heading(columns: list[str]) -> str:
    return f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}"


def _memory(names: list[str], memory: dict[str, tuple[float, float]]) -> list[str]:
    return [
        f"| {what} | " + " | ".join(f"{memory[name][at]:,.0f} MiB" for name in names) + " |"
        for at, what in enumerate(("start", "end"))
    ]


def report(
    peers: list[Peer], missing: dict[str, str], given: argparse.Namespace, memory: dict[str, tuple[float, float]]
) -> str:
    names = [peer.name for peer in peers]
    loads = [figure for figure in FIGURES if figure.name.startswith("load")]
    machine = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the end, Python {platform.python_version()}"
    parts = [
        "# The catalog beside others",
        f"{machine}; {given.rounds} rounds of {given.seconds:g} s each, {given.tables:,} tables. {CELLS}",
        "\n".join([_heading(["figure", *names]), *(_row(figure, peers) for figure in (CREATE, *FIGURES))]),
        "## Latencies of loads\n\np50 / p95 / p99 in ms.",
        "\n".join([_heading(["figure", *names]), *(_latencies(figure, peers) for figure in loads)]),
        f"## How many times as fast\n\n{BESIDE}",
        "\n".join(_beside(peers)),
        "## One hot table",
        "\n".join(_hot(peers)),
        "## Memory\n\nResident, of all processes of a server, after its start and at the end.",
        "\n".join(
            [
                _heading(["", *names]),
                *_memory(names, memory),
            ]
        ),
    ]
    gone = {**{f"`{name}`": why for name, why in missing.items()}}
    gone |= {f"`{peer.name}`, {figure}": why for peer in peers if peer.made for figure, why in peer.given_up.items()}
    gone |= {f"`{peer.name}`": next(iter(peer.given_up.values())) for peer in peers if not peer.made}
    if gone:
        parts.append("Not measured:\n\n" + "\n".join(f"- {what}: {why}" for what, why in gone.items()))
    return "\n\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--warm", type=float, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--sizes", type=int, nargs="*", default=[100, 1_000, 10_000, 100_000])
    parser.add_argument("--servers", nargs="+", default=list(rest_servers.SERVERS), choices=list(rest_servers.SERVERS))
    parser.add_argument("--no-flush-counts", action="store_true")
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="arco-bench-") as folder,
        all_of(given.servers, Path(folder)) as (started, missing),
    ):
        peers = [Peer(name, running) for name, running in started.items()]
        memory = {peer.name: (peer.running.resident_mib(), 0.0) for peer in peers}
        asyncio.run(_measure(peers, given))
        memory = {peer.name: (memory[peer.name][0], peer.running.resident_mib()) for peer in peers}
        text = report(peers, missing, given, memory)
        if not given.no_flush_counts:
            text += "\n\n" + flush_counts.report(peers_by_name(peers))
    text += "\n\n" + "\n".join(loads_report(given.sizes))
    print(text)
    counted = RESULTS.read_text() if RESULTS.exists() else ""
    kept = counted[counted.index(COUNTED) :] if COUNTED in counted else ""
    RESULTS.write_text(f"{text}\n\n{kept}")


def peers_by_name(peers: list[Peer]) -> dict[str, Running]:
    return {peer.name: peer.running for peer in peers}


if __name__ == "__main__":
    main()

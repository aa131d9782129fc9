"""The catalog beside others, in one run: the same requests to each server, in turn, on one machine.

All servers run at once; every figure is taken in rounds that go from one server to the next, so that what the machine does
meanwhile falls on all of them. The file with the results is written after every figure: a run that is cut off leaves what it had
measured. `make bench-catalog` prints the tables and writes bench/results/catalog.md; the second part of that file, what can be
counted instead of timed, is `catalog.py`'s. `--quick` shows in a few minutes that every part works, and writes elsewhere.
Usage: python bench/catalog_peers.py [--quick] [--seconds 2] [--rounds 3] [--servers arco seaweedfs …] [--tables 1000]
"""

import argparse
import asyncio
import os
import platform
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.integration.plain_http import NotSent, ReplyLost  # noqa: E402

import flush_counts  # noqa: E402
import peer_tables  # noqa: E402
import rest_servers  # noqa: E402
from catalog import TITLE as COUNTED  # noqa: E402
from light_client import need_wrk  # noqa: E402
from local_cas import LocalCas  # noqa: E402
from many_loads import loads_lines  # noqa: E402
from peer_figures import CREATE, FIGURES, SERIAL, Figure, Peer, take  # noqa: E402

RESULTS = ROOT / "bench" / "results" / "catalog.md"
QUICK_RESULTS = Path(tempfile.gettempdir()) / "arco-catalog-quick.md"
TABLES_MIN = 9
"""One that all commit to, and one for each of eight writers."""
CREATE_S = 10.0
"""How long a server may take for its share of tables in one round."""
PATIENCE_S = 30.0
"""How much longer than a round a server may hang before it is left out of a figure."""


@dataclass
class Run:
    """One run, and everything it has found so far."""

    given: argparse.Namespace
    peers: list[Peer]
    missing: dict[str, str]
    cas: LocalCas
    flushes: str = ""
    loads: list[str] = field(default_factory=list)
    began_s: float = field(default_factory=time.perf_counter)

    def say(self, what: str) -> None:
        print(f"[{time.perf_counter() - self.began_s:4.0f} s] {what}", file=sys.stderr, flush=True)

    def text(self) -> str:
        given = self.given
        machine = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the end, Python {platform.python_version()}"
        about = f"{machine}; {given.rounds} rounds of {given.seconds:g} s each, {given.tables:,} tables."
        parts = ["# The catalog beside others", about, *peer_tables.tables(self.peers, self.missing, self.cas)]
        return "\n\n".join([*parts, *filter(None, (self.flushes, "\n".join(self.loads)))])

    def write(self) -> None:
        """What was found so far, before what `catalog.py` wrote."""
        earlier = RESULTS.read_text() if RESULTS.exists() else ""
        kept = earlier[earlier.index(COUNTED) :] if COUNTED in earlier else ""
        self.given.results.write_text(f"{self.text()}\n\n{kept}")


async def _measure(run: Run) -> None:
    given = run.given
    for peer in list(run.peers):
        try:
            await peer.ready()
        except OSError as error:
            run.peers.remove(peer)
            run.missing[peer.name] = str(error)[:200]
        peer.memory_mib.append(peer.running.resident_mib() if peer in run.peers else 0.0)
        run.say(f"{peer.name}: {'ready' if peer in run.peers else run.missing[peer.name]}")
    for number in range(given.rounds):
        run.say(f"{CREATE.name}, round {number + 1} of {given.rounds}")
        for peer in run.peers:
            await _note(run, peer, CREATE, CREATE_S, given.tables // given.rounds)
    for peer in run.peers:
        if peer.made < TABLES_MIN:
            why = peer.given_up.get(CREATE.name, f"only {peer.made}")
            peer.given_up = {figure.name: f"tables could not be made: {why}" for figure in (CREATE, *FIGURES)}
    run.write()
    for place, figure in enumerate(FIGURES, 1):
        run.say(f"figure {place} of {len(FIGURES)}: {figure.name}")
        await _figure(run, figure)
        print(peer_tables.row(figure, run.peers), flush=True)
        run.write()
    for peer in run.peers:
        peer.memory_mib.append(peer.running.resident_mib())
        peer.disconnect()


async def _figure(run: Run, figure: Figure) -> None:
    given = run.given
    for peer in run.peers:
        await _note(run, peer, figure, given.warm, None, keep=False)
    for _ in range(given.rounds):
        if figure is SERIAL:
            await asyncio.to_thread(run.cas.round, given.seconds / 2)
        for peer in run.peers:
            await _note(run, peer, figure, given.seconds, None)


async def _note(run: Run, peer: Peer, figure: Figure, seconds: float, most: int | None, *, keep: bool = True) -> None:
    """One round; a server that fails a figure, or hangs in it, is asked no more for it."""
    if figure.name in peer.given_up:
        return
    try:
        taken = await asyncio.wait_for(take(peer, figure, seconds, most), seconds + PATIENCE_S)
    except (ReplyLost, NotSent, TimeoutError) as error:
        peer.given_up[figure.name] = str(error)[:200] or f"no answer for {PATIENCE_S:g} s"
        run.say(f"{peer.name}, {figure.name}: {peer.given_up[figure.name]}")
        peer.disconnect()
        return
    if keep:
        peer.taken.setdefault(figure.name, []).append(taken)


def _given() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few tables and short rounds, to see that it works")
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--warm", type=float)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--tables", type=int)
    parser.add_argument("--sizes", type=int, nargs="*")
    parser.add_argument("--results", type=Path)
    parser.add_argument("--servers", nargs="+", default=list(rest_servers.SERVERS), choices=list(rest_servers.SERVERS))
    parser.add_argument("--no-flush-counts", action="store_true")
    given = parser.parse_args()
    usual = {"seconds": 2, "warm": 1, "rounds": 3, "tables": 1000, "results": RESULTS}
    quick = {"seconds": 1, "warm": 1, "rounds": 1, "tables": 24, "results": QUICK_RESULTS}
    sizes = [100] if given.quick else [100, 1_000, 10_000, 100_000]
    for name, value in {**(quick if given.quick else usual), "sizes": sizes}.items():
        if getattr(given, name) is None:
            setattr(given, name, value)
    return given


def main() -> None:
    given = _given()
    need_wrk()
    with tempfile.TemporaryDirectory(prefix="arco-bench-") as folder:
        place = Path(folder)
        (place / "cas").mkdir()
        run = Run(given, [], {}, LocalCas(place / "cas"))
        run.say(f"starting {', '.join(given.servers)}")
        with rest_servers.all_of(given.servers, place) as (started, run.missing):
            run.peers = [Peer(name, running) for name, running in started.items()]
            asyncio.run(_measure(run))
            if not given.no_flush_counts:
                run.say("who flushes")
                run.flushes = flush_counts.report({peer.name: peer.running for peer in run.peers if peer.made})
                run.write()
    for line in loads_lines(given.sizes):
        run.loads.append(line)
        run.write()
    run.say(f"done: {given.results}")
    print(run.text())


if __name__ == "__main__":
    main()

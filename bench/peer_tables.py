"""The figures of the catalog beside others as tables for people: rates, latencies, ratios with their goals, memory.

Goals: twice every peer that keeps what it answered in every row that waits for no disk, and where writers can share a wait;
ahead of those that keep it in memory only on loads, HEAD and lists; one writer as fast as the disk allows (`local_cas.py`).
"""

import statistics
from collections.abc import Sequence

from local_cas import LocalCas
from peer_figures import CREATE, FIGURES, ONE_TABLE, OWN_TABLES, SERIAL, Figure, Peer

IN_MEMORY = {"reference memory", "nessie"}
"""Peers that forget everything when they end: Nessie keeps its versions in memory here."""
OURS, UNFLUSHED = ("arco", "arco, 2 workers"), "arco, unflushed"
TWICE, AHEAD = 2.0, 1.0
CELLS = (
    "Each cell: median rate, processor time of the server for one request, refused requests that were sent again. The client is "
    "one process beside them: wrk for loads, HEAD and the list of all names, one of Python for what has to look at its answers."
)
BESIDE = (
    "The faster of one and two workers, flushing, beside each of the others, with the goal; below 1 we are behind. Where others "
    "do not wait for their disk, ours without flushing is beside them too; that has no goal."
)


def heading(columns: Sequence[str]) -> str:
    return f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}"


def row(figure: Figure, peers: Sequence[Peer]) -> str:
    return f"| {figure.name} | " + " | ".join(_cell(figure, peer) for peer in peers) + " |"


def _cell(figure: Figure, peer: Peer) -> str:
    rounds = peer.taken.get(figure.name)
    if not rounds:
        return "failed" if figure.name in peer.given_up else "–"
    processor = statistics.median(one.processor_ms for one in rounds)
    again = sum(one.refused for one in rounds) / sum(len(one.latencies_ms) for one in rounds)
    told = f"{peer.rate(figure):,.0f}/s · {processor:.2f} ms"
    return told + (f" · {again:.0%} again" if again >= 0.005 else "")


def _latencies(figure: Figure, peers: Sequence[Peer]) -> str:
    cells = []
    for peer in peers:
        found = sorted(ms for one in peer.taken.get(figure.name, ()) for ms in one.latencies_ms)
        points = [found[min(len(found) - 1, int(len(found) * part))] for part in (0.5, 0.95, 0.99)] if found else []
        cells.append(" / ".join(f"{point:.1f}" for point in points) or "–")
    return f"| {figure.name} | " + " | ".join(cells) + " |"


def goal_beside(figure: Figure, peer: str) -> float | None:
    """How many times as fast as a peer we mean to be; None where its disk, and not its server, would be measured."""
    if peer in IN_MEMORY:
        return None if figure.flushes else AHEAD
    return TWICE if not figure.flushes or figure.grouped else None


def _ratio(figure: Figure, ours: Peer, peer: Peer) -> str:
    if figure.name not in peer.taken:
        return "–"
    ratio, goal = ours.rate(figure) / peer.rate(figure), goal_beside(figure, peer.name)
    if goal is None:
        return f"{ratio:.2f}"
    return f"{ratio:.2f}, goal {goal:g}: {'met' if ratio >= goal else '**missed**'}"


def _beside(peers: Sequence[Peer]) -> list[str]:
    """Our best beside each other: how many times as fast, figure by figure."""
    others = [peer for peer in peers if not peer.name.startswith("arco")]
    lines = [heading(["figure", "ours", *(peer.name for peer in others)])]
    for figure in (CREATE, *FIGURES):
        have = [peer for peer in peers if peer.name in OURS and figure.name in peer.taken]
        if not have:
            continue
        best = max(have, key=lambda peer: peer.rate(figure))
        lines.append(f"| {figure.name} | {best.name} | " + " | ".join(_ratio(figure, best, peer) for peer in others) + " |")
        for free in (peer for peer in peers if figure.flushes and peer.name == UNFLUSHED and figure.name in peer.taken):
            ratios = [f"{free.rate(figure) / one.rate(figure):.2f}" if figure.name in one.taken else "–" for one in others]
            lines.append(f"| {figure.name} | {free.name} | " + " | ".join(ratios) + " |")
    return lines


def _hot(peers: Sequence[Peer]) -> list[str]:
    names = {ONE_TABLE.name, OWN_TABLES.name}
    cells = []
    for peer in peers:
        ratio = peer.rate(ONE_TABLE) / peer.rate(OWN_TABLES) if names <= set(peer.taken) else None
        goal = f", goal 1: {'met' if ratio >= 1 else '**missed**'}" if ratio is not None and peer.name in OURS else ""
        cells.append("–" if ratio is None else f"{ratio:.2f}{goal}")
    return [heading(["8 on one beside 8 on 8", *(peer.name for peer in peers)]), "| rate | " + " | ".join(cells) + " |"]


def _serial(peers: Sequence[Peer], cas: LocalCas) -> list[str]:
    """One writer beside what this disk can do."""
    ours = [peer.rate(SERIAL) for peer in peers if peer.name in OURS and SERIAL.name in peer.taken]
    lines = [heading(["compare-and-swap of one object", "swaps/s", "goal: 0.8 × swaps ÷ 3", "commits/s of one writer", ""])]
    for how, (rate, goal) in cas.goals().items():
        told = f"{max(ours):,.0f} | {'met' if max(ours) >= goal else '**missed**'}" if ours else "– | "
        lines.append(f"| {how} | {rate:,.0f} | {goal:,.0f} | {told} |")
    return lines


def _memory(peers: Sequence[Peer]) -> list[str]:
    lines = [heading(["", *(peer.name for peer in peers)])]
    for what, at in (("start", 0), ("end", -1)):
        cells = [f"{peer.memory_mib[at]:,.0f} MiB" if peer.memory_mib else "–" for peer in peers]
        lines.append(f"| {what} | " + " | ".join(cells) + " |")
    return lines


def _not_measured(peers: Sequence[Peer], missing: dict[str, str]) -> str:
    gone = {f"`{name}`": why for name, why in missing.items()}
    gone |= {f"`{peer.name}`, {figure}": why for peer in peers for figure, why in peer.given_up.items()}
    return "Not measured:\n\n" + "\n".join(f"- {what}: {why}" for what, why in gone.items()) if gone else ""


def tables(peers: Sequence[Peer], missing: dict[str, str], cas: LocalCas) -> list[str]:
    """Every table, of what was measured so far."""
    names = [peer.name for peer in peers]
    figures = [figure for figure in (CREATE, *FIGURES) if any(figure.name in peer.taken for peer in peers)]
    made = {peer.name: peer.made for peer in peers}
    few = [f"{name} has {count:,}" for name, count in made.items() if count < max(made.values(), default=0)]
    parts = [
        CELLS + (f" Not all could make all tables in time: {', '.join(few)}." if few else ""),
        "\n".join([heading(["figure", *names]), *(row(figure, peers) for figure in figures)]),
        "## Latencies\n\np50 / p95 / p99 in ms.",
        "\n".join([heading(["figure", *names]), *(_latencies(figure, peers) for figure in figures)]),
        f"## How many times as fast\n\n{BESIDE}",
        "\n".join(_beside(peers)),
        "## One writer, and what this disk can do",
        "\n".join(_serial(peers, cas)),
        "## One hot table",
        "\n".join(_hot(peers)),
        "## Memory\n\nResident, of all processes of a server, after its start and at the end.",
        "\n".join(_memory(peers)),
        _not_measured(peers, missing),
    ]
    return [part for part in parts if part]

"""One pass over all heads: names are told, what is new is folded, what passed a cap is merged, and the root names the result.
Where much was consumed and lies in the ledger still, it is moved aside.

A head that cannot be folded now does not keep the others waiting, and the root is brought up to date with what there is.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from arco.fold.folding import ALL_HEADS, Folding, Round
from arco.fold.heads import Standing
from arco.fold.manifests import Manifest, RootManifest
from arco.fold.merging import merge
from arco.fold.moving import move_crowd
from arco.fold.tables import FOLDED_FROM
from arco.kernel.errors import ArcoError
from arco.storage.keys import Domain, Head


@dataclass(frozen=True, slots=True)
class Synced:
    """So many segments with events of a type could be seen so long after they were appended."""

    event_type: str
    seconds: float
    segments: int


@dataclass(frozen=True, slots=True)
class Pass:
    """What a pass came to. `merged` are heads that have a new base; `failed`, those that were left as they are, and why;
    `moved`, how many consumed segments went to the archive.

    `synced` says how long ago what was folded had been told, when the root named it.
    `catalog` among those that failed: the ledger was not told of everything that tier 1 did, or that was deployed.
    """

    root: Standing[RootManifest]
    rounds: dict[Head, Round] = field(default_factory=dict)
    merged: tuple[Head, ...] = ()
    failed: dict[Head, ArcoError] = field(default_factory=dict)
    moved: int = 0
    took_s: float = 0.0
    synced: tuple[Synced, ...] = ()


async def fold_pass(folding: Folding, heads: Sequence[Head] = ALL_HEADS) -> Pass:
    """Bring some heads up to date, and the root after them. Raises only if the root cannot be read or swung."""
    rounds: dict[Head, Round] = {}
    failed: dict[Head, ArcoError] = {}
    merged: list[Head] = []
    seen: list[Standing[Manifest]] = []
    if any(Domain.CATALOG in FOLDED_FROM[head] for head in heads):
        try:
            await folding.hear_names()
        except ArcoError as error:
            failed[Head.CATALOG] = error
    for head in heads:
        try:
            rounds[head] = await folding.catch_up(head)
            base = await merge(folding, head, rounds[head].standing)
        except ArcoError as error:
            failed[head] = error
            continue
        merged += [head] if base else []
        seen.append(base or rounds[head].standing)
    root = await folding.heads.publish_cut(seen)
    synced = _synced(rounds.values(), folding.heads.clock.now_ms())
    try:
        moved = await move_crowd(folding, rounds)
    except ArcoError as error:
        failed |= {head: error for head, done in rounds.items() if done.crowd.segments > folding.settings.crowd_max}
        moved = 0
    return Pass(root, rounds, tuple(merged), failed, moved, synced=synced)


def _synced(rounds: Iterable[Round], now_ms: int) -> tuple[Synced, ...]:
    """How long after they were told the events of each type can be seen. What several heads folded is seen once."""
    appended = {one.segment: one for done in rounds for one in done.appended}
    counts = Counter(
        (event_type, _coarse(max(0, now_ms - one.at_ms) / 1000)) for one in appended.values() for event_type in one.types
    )
    return tuple(Synced(event_type, seconds, count) for (event_type, seconds), count in sorted(counts.items()))


def _coarse(seconds: float) -> float:
    """Two digits are enough for a histogram, and keep a pass over many segments short."""
    return float(f"{seconds:.2g}")

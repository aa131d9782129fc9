"""From the tail to Parquet: a delta of what changed, and at the caps a new base of everything.

A checkpoint changes nothing that anybody can see: the state is the same, only written down elsewhere. If others swing the
manifest meanwhile, the file that was written is left to upkeep, and the next checkpoint takes what there is then.
"""

from collections.abc import Awaitable, Callable

import msgspec

from arco.catalog.manifest import Manifest, StateFile
from arco.catalog.state_files import Change, encode_changes, everything
from arco.catalog.tier1 import Tier1
from arco.kernel.clock import Clock
from arco.kernel.crash_points import reach
from arco.kernel.entropy import Entropy
from arco.kernel.errors import OutcomeUnknown
from arco.kernel.fingerprint import content_hash
from arco.kernel.ids import UlidSource
from arco.kernel.limits import STATE_DELTAS_AGE_S_MAX, STATE_DELTAS_BYTES_MAX, STATE_DELTAS_MAX
from arco.storage.cas import Overtaken, Swung
from arco.storage.keys import CatalogStateKey, FileName
from arco.storage.port import Absent, Landed
from arco.storage.readback import put_settled

Encoded = tuple[bytes, int]


Offload = Callable[[Callable[[list[Change]], Encoded], list[Change]], Awaitable[Encoded]]
"""Runs the encoding where it holds nobody up: a thread in a server, right here elsewhere."""


async def right_here(encode: Callable[[list[Change]], Encoded], changes: list[Change]) -> Encoded:
    return encode(changes)


async def checkpoint(tier1: Tier1, clock: Clock, entropy: Entropy, offload: Offload = right_here) -> bool:
    """Fold the tail into a delta, or everything into a new base. False if there was nothing to do, or others came first."""
    await tier1.current()
    held, manifest = tier1.held, tier1.manifest
    if held is None or not manifest.tail:
        return False
    whole = _is_time_for_a_base(manifest, clock.now_ms())
    # Taken before anything is awaited: the state is that of exactly this manifest.
    changes = list(everything(tier1.names) if whole else tier1.changes_up_to(manifest.sequence))
    data, rows = await offload(encode_changes, changes)
    kind = "base" if whole else "delta"
    name = FileName(f"{kind}-{UlidSource(clock, entropy).next()}.parquet")
    key = str(CatalogStateKey(tier1.scope, name))
    file = StateFile(key, rows, len(data), content_hash(data), manifest.sequence, clock.now_ms())
    outcome = await put_settled(tier1.store, file.key, data, Absent(), clock=clock, entropy=entropy)
    if not isinstance(outcome, Landed):
        raise OutcomeUnknown(f"{file.key} could not be written: {outcome.reason}")
    reach("catalog.checkpoint_written")
    swung = await tier1.head.swap(held, _checkpointed(manifest, file, whole=whole))
    if isinstance(swung, Swung | Overtaken):
        await tier1.advance(swung.held)
        return True
    return False


def _is_time_for_a_base(manifest: Manifest, now_ms: int) -> bool:
    """The caps of the deltas: how many, how large, how old."""
    if not manifest.deltas:
        return False
    size_bytes = sum(delta.size_bytes for delta in manifest.deltas)
    age_s = (now_ms - manifest.deltas[0].written_ms) / 1000
    return len(manifest.deltas) >= STATE_DELTAS_MAX or size_bytes > STATE_DELTAS_BYTES_MAX or age_s > STATE_DELTAS_AGE_S_MAX


def _checkpointed(manifest: Manifest, file: StateFile, *, whole: bool) -> Manifest:
    return msgspec.structs.replace(
        manifest,
        checkpointed_sequence=manifest.sequence,
        tail=(),
        base=file if whole else manifest.base,
        deltas=() if whole else (*manifest.deltas, file),
    )

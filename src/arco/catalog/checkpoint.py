"""From the tail to Parquet: a delta of what changed, and at the caps a new base of everything.

A checkpoint changes nothing that anybody can see: the state is the same, only written down elsewhere. If others swing the
manifest meanwhile, the file that was written is left to upkeep, and the next checkpoint takes what there is then.
"""

from collections.abc import Awaitable, Callable

import msgspec

from arco.catalog.manifest import Manifest, StateFile
from arco.catalog.names import Names
from arco.catalog.state_files import Change, encode_changes, everything
from arco.catalog.tier1 import Tier1
from arco.kernel.clock import Clock
from arco.kernel.crash_points import reach
from arco.kernel.entropy import Entropy
from arco.kernel.errors import Conflict, OutcomeUnknown
from arco.kernel.fingerprint import content_hash
from arco.kernel.ids import UlidSource
from arco.kernel.limits import STATE_DELTAS_AGE_S_MAX, STATE_DELTAS_BYTES_MAX, STATE_DELTAS_MAX
from arco.storage.cas import Held, Overtaken, Swung
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
    if tier1.held is None or not await tier1.is_stored(tier1.seen):
        await tier1.reread()
    held, manifest = tier1.held, tier1.manifest
    if held is None or not manifest.tail:
        return False
    whole = _is_time_for_a_base(manifest, clock.now_ms())
    # Taken before anything is awaited: the state is that of exactly this manifest.
    changes = list(everything(tier1.names) if whole else tier1.changes_up_to(manifest.sequence))
    file = await _written(
        tier1, manifest, "base" if whole else "delta", await offload(encode_changes, changes), clock, entropy
    )
    reach("catalog.checkpoint_written")
    swung = await tier1.head.swap(held, _checkpointed(manifest, file, whole=whole))
    if isinstance(swung, Swung | Overtaken):
        await tier1.advance(swung.held)
        return True
    return False


async def write_base(tier1: Tier1, held: Held[Manifest], names: Names, clock: Clock, entropy: Entropy) -> None:
    """A new base, of a state that was made again, under exactly the manifest that it is the state of."""
    encoded = encode_changes(list(everything(names)))
    file = await _written(tier1, held.value, "base", encoded, clock, entropy)
    swung = await tier1.head.swap(held, _checkpointed(held.value, file, whole=True))
    if not isinstance(swung, Swung | Overtaken):
        raise Conflict("others changed the names while their state was made again", hint="repair again")
    await tier1.reread()


async def _written(
    tier1: Tier1, manifest: Manifest, kind: str, encoded: Encoded, clock: Clock, entropy: Entropy
) -> StateFile:
    data, rows = encoded
    name = FileName(f"{kind}-{UlidSource(clock, entropy).next()}.parquet")
    key = str(CatalogStateKey(tier1.scope, name))
    file = StateFile(key, rows, len(data), content_hash(data), manifest.sequence, clock.now_ms())
    outcome = await put_settled(tier1.store, file.key, data, Absent(), clock=clock, entropy=entropy)
    if not isinstance(outcome, Landed):
        raise OutcomeUnknown(f"{file.key} could not be written: {outcome.reason}")
    return file


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

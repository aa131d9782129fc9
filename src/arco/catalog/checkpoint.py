"""From the tail to Parquet: a delta of what changed, and at the caps a new base of everything.

A checkpoint changes nothing that anybody can see: the state is the same, only written down elsewhere. What others commit
meanwhile stays in the tail, and what they checkpoint in deltas: the file says up to which commit it goes. Only where somebody
wrote down the same is it left to upkeep.
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
from arco.kernel.limits import (
    COMMIT_LASTS_S_MAX,
    STATE_DELTAS_AGE_S_MAX,
    STATE_DELTAS_BYTES_MAX,
    STATE_DELTAS_MAX,
    SWAP_ATTEMPTS_MAX,
)
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
    await _know(tier1)
    return await _fold(tier1, clock, entropy, offload, whole=_is_time_for_a_base(tier1.manifest, clock.now_ms()))


async def make_room(tier1: Tier1, clock: Clock, entropy: Entropy) -> bool:
    """For who waits to commit: a delta, which is soon written. A base is left to the checkpointer, unless none seems to come."""
    await _know(tier1)
    return await _fold(tier1, clock, entropy, right_here, whole=len(tier1.manifest.deltas) >= 2 * STATE_DELTAS_MAX)


async def _know(tier1: Tier1) -> None:
    if tier1.held is None or not await tier1.is_stored(tier1.seen):
        await tier1.reread()


async def _fold(tier1: Tier1, clock: Clock, entropy: Entropy, offload: Offload, *, whole: bool) -> bool:
    held, before = tier1.held, tier1.manifest
    if held is None or not before.tail:
        return False
    # Taken before anything is awaited: the state is that of exactly this manifest.
    changes = list(everything(tier1.names) if whole else tier1.changes_up_to(before.sequence))
    encoded = await offload(encode_changes, changes)
    file = await _written(tier1, before, "base" if whole else "delta", encoded, clock, entropy)
    reach("catalog.checkpoint_written")
    for _ in range(SWAP_ATTEMPTS_MAX):
        swung = await tier1.head.swap(held, _checkpointed(held.value, file, whole=whole))
        if isinstance(swung, Swung | Overtaken):
            await tier1.advance(swung.held)
            return True
        held = await tier1.head.read()
        # Looked at after the manifest was read: upkeep writes it anew before it takes away a file that it does not name.
        is_late = clock.now_ms() - file.written_ms > COMMIT_LASTS_S_MAX * 1000
        if held is None or is_late or not _goes_with(held.value, before, whole=whole):
            return False
    return False


def _goes_with(manifest: Manifest, before: Manifest, *, whole: bool) -> bool:
    """Whether a file that was made of a manifest still says something that a later one does not know otherwise."""
    if manifest.base != before.base:
        return False
    return whole or manifest.checkpointed_sequence == before.checkpointed_sequence


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
    """The manifest with a file more. What came after it stays: a delta says how things are, whatever it is put on."""
    up_to = max(manifest.checkpointed_sequence, file.up_to_sequence)
    later = tuple(delta for delta in manifest.deltas if delta.up_to_sequence > file.up_to_sequence)
    return msgspec.structs.replace(
        manifest,
        checkpointed_sequence=up_to,
        tail=tuple(commit for commit in manifest.tail if commit.sequence > up_to),
        base=file if whole else manifest.base,
        deltas=later if whole else (*manifest.deltas, file),
    )

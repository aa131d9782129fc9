"""Events that cannot be folded: kept beside the ledger with the reason, so that nothing is dropped without a word.

The name follows from what was refused, and the object is created only if absent: a round that is done twice leaves one letter.
Letters are written before the manifest that counts them. An event of a type or version that this Arco does not know is set
aside in the same way; its segment stays in the ledger, and a rebuild by an Arco that knows it takes it.
"""

import asyncio
from collections.abc import Sequence

import msgspec

from arco.fold.work import Refused
from arco.kernel.clock import Clock
from arco.kernel.entropy import Entropy
from arco.kernel.errors import BrokenInvariant, OutcomeUnknown
from arco.kernel.fingerprint import fingerprint
from arco.kernel.ids import KeyHash
from arco.kernel.limits import FOLD_READS_MAX
from arco.kernel.scope import Scope
from arco.storage.keys import ArchivedSegmentKey, DeadLetterKey, Head, SegmentKey, parse
from arco.storage.port import Absent, ObjectStore, Unknown
from arco.storage.readback import put_settled

FORMAT = "arco.dead_letter"
FORMAT_VERSION = 1


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """One event, or a whole segment, that a head could not fold. `line` is for people; the segment has the bytes."""

    format: str = FORMAT
    format_version: int = FORMAT_VERSION
    head: str
    segment: str
    event_id: str | None
    unknown: bool
    reason: str
    line: str


def letter_key(scope: Scope, head: Head, refused: Refused) -> DeadLetterKey:
    """Where the letter of a refusal lies. The segment is named by its id, so it is the same letter where it was moved aside."""
    segment = parse(refused.segment)
    if not isinstance(segment, SegmentKey | ArchivedSegmentKey):
        raise BrokenInvariant(f"{refused.segment} is no segment")
    about = fingerprint("dead letter", segment.segment, refused.event_id or "", refused.line)
    return DeadLetterKey(scope, head, segment.segment, KeyHash(about))


async def write_letters(
    store: ObjectStore, scope: Scope, head: Head, refused: Sequence[Refused], clock: Clock, entropy: Entropy
) -> None:
    """Make sure that every refusal has its letter; it may be there already. Raises if the store does not say."""

    async def write(one: Refused) -> None:
        letter = DeadLetter(
            head=head.value,
            segment=one.segment,
            event_id=one.event_id,
            unknown=one.unknown,
            reason=one.reason,
            line=one.line.decode(errors="replace"),
        )
        key, data = str(letter_key(scope, head, one)), msgspec.json.encode(letter, enc_hook=str, order="deterministic")
        outcome = await put_settled(store, key, data, Absent(), clock=clock, entropy=entropy)
        if isinstance(outcome, Unknown):
            raise OutcomeUnknown(f"{key} may be stored: {outcome.reason}", hint="run the fold again")

    for start in range(0, len(refused), FOLD_READS_MAX):
        await asyncio.gather(*(write(one) for one in refused[start : start + FOLD_READS_MAX]))

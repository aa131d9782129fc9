"""Events that cannot be folded: kept beside the ledger with the reason, so that nothing is dropped without a word.

The name follows from what was refused, and the object is created only if absent: a round that is done twice leaves one letter.
Letters are written before the manifest that counts them. An event of a type or version that this Arco does not know is set
aside in the same way; its segment stays in the ledger, and a rebuild by an Arco that knows it takes it. Its letter stays too.
"""

import asyncio
from collections.abc import Sequence

import msgspec

from arco.fold.work import Refused
from arco.kernel.clock import Clock
from arco.kernel.entropy import Entropy
from arco.kernel.errors import BrokenInvariant, CorruptObject, OutcomeUnknown, UnknownFormat
from arco.kernel.fingerprint import fingerprint
from arco.kernel.ids import KeyHash, SegmentId
from arco.kernel.limits import FOLD_READS_MAX
from arco.kernel.scope import Scope
from arco.storage.keys import ArchivedSegmentKey, DeadLetterKey, Head, SegmentKey, parse, prefix_of
from arco.storage.port import Absent, ObjectStore, Unknown
from arco.storage.readback import put_settled

FORMAT = "arco.dead_letter"
FORMAT_VERSION = 1
_LINE_SHOWN_MAX = 1_000


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


class LetterPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some letters, with the beginnings of their lines, and where the next ones begin; no cursor at the end."""

    items: tuple[DeadLetter, ...]
    next_cursor: str | None = None


async def letters(
    store: ObjectStore, scope: Scope, head: Head | None = None, *, limit: int, cursor: str | None = None
) -> LetterPage:
    """What could not be folded, by head and segment."""
    prefix = prefix_of(scope, "_catalog", "dead_letters", *([] if head is None else [head.value]))
    page = await store.list_page(prefix, f"{prefix}{cursor}" if cursor else "", limit)
    keys = [entry.key for entry in page.entries]
    found: list[DeadLetter] = []
    for start in range(0, len(keys), FOLD_READS_MAX):
        some = keys[start : start + FOLD_READS_MAX]
        stored = await asyncio.gather(*map(store.get, some))
        whole = [decode_letter(one.data, key) for key, one in zip(some, stored, strict=True) if one is not None]
        found += [msgspec.structs.replace(one, line=one.line[:_LINE_SHOWN_MAX]) for one in whole]
    return LetterPage(items=tuple(found), next_cursor=page.next_after and page.next_after.removeprefix(prefix))


def decode_letter(data: bytes, key: str) -> DeadLetter:
    try:
        found = msgspec.json.decode(data, type=DeadLetter)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CorruptObject(f"{key} is no dead letter: {error}") from error
    if (found.format, found.format_version) != (FORMAT, FORMAT_VERSION):
        raise UnknownFormat(f"{key} is {found.format} version {found.format_version}")
    return found


def letter_key(scope: Scope, head: Head, refused: Refused) -> DeadLetterKey:
    """Where the letter of a refusal lies. The segment is named by its id, so it is the same letter where it was moved aside."""
    segment = parse(refused.segment)
    if not isinstance(segment, SegmentKey | ArchivedSegmentKey):
        raise BrokenInvariant(f"{refused.segment} is no segment")
    return DeadLetterKey(scope, head, segment.segment, letter_hash(segment.segment, refused.event_id, refused.line))


def letter_hash(segment: SegmentId, event_id: str | None, line: bytes) -> KeyHash:
    """What a letter is called by: what was refused."""
    return KeyHash(fingerprint("dead letter", segment, event_id or "", line))


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

"""Events that the log owes the ledger.

The bodies of a publish's events are in the log before the commit is sent, under their final ids; they are owed from the moment
that the commit is known to have landed. Whoever comes next appends what is owed and then writes that it did. A crash between
the two appends them again: under the same ids, which readers keep once.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator

import msgspec

from arco.kernel.errors import InvalidInput
from arco.kernel.ids import EventId, UlidSource, encode_ulid
from arco.kernel.limits import LEDGER_SEGMENT_BYTES_MAX, LEDGER_SEGMENT_EVENTS_MAX
from arco.kernel.position import Position
from arco.kernel.scope import Scope
from arco.ledger.appender import Appender
from arco.ledger.drafts import Draft, seal
from arco.ledger.envelope import encode
from arco.ledger.run_entries import encoded_size
from arco.ledger.run_state import RunState
from arco.storage.keys import Domain

_ANY_ID = EventId(encode_ulid(0))
_ANY_POSITION = Position(encode_ulid(0))


def named(drafts: Iterable[Draft], scope: Scope, ulids: UlidSource, at_ms: int) -> tuple[Draft, ...]:
    """Events with everything fixed that would otherwise differ each time they are appended: the id and the time.

    One that the ledger would refuse is refused now: in the log it would be owed for ever.
    """
    fixed = tuple(
        msgspec.structs.replace(
            draft,
            id=draft.id if draft.id or draft.idempotencykey else EventId(ulids.next()),
            time_ms=at_ms if draft.time_ms is None else draft.time_ms,
        )
        for draft in drafts
    )
    for draft in fixed:
        if draft.type.domain not in set(Domain):
            raise InvalidInput(f"{draft.type} is an event of no domain", hint=f"one of {', '.join(Domain)}")
        encode(seal(draft, scope, fresh_id=_ANY_ID, position=_ANY_POSITION, now_ms=at_ms))
    return fixed


async def deliver(appender: Appender, state: RunState, after: int = 0) -> int:
    """Append everything that the entries after a number owe; the number through which nothing is owed any more."""
    through = state.sequence
    by_domain: dict[Domain, list[Draft]] = defaultdict(list)
    for number, drafts in state.owed.items():
        if number > after:
            for draft in drafts:
                by_domain[Domain(draft.type.domain)].append(draft)
    for domain, its in sorted(by_domain.items()):
        for some in _pieces(its):
            await appender.append(domain, some)
    return through


def _pieces(drafts: list[Draft]) -> Iterator[list[Draft]]:
    """As many as fit into a segment with room to spare: an envelope adds to every event."""
    piece: list[Draft] = []
    size_bytes = 0
    for draft in drafts:
        size_bytes += encoded_size(draft)
        if piece and (len(piece) == LEDGER_SEGMENT_EVENTS_MAX or size_bytes > LEDGER_SEGMENT_BYTES_MAX // 2):
            yield piece
            piece, size_bytes = [], encoded_size(draft)
        piece.append(draft)
    yield piece

"""Whether the fold would take an event, asked before it is appended: whoever sends it hears why not, and can correct it.

An event that is taken and refused later is a dead letter that nobody who could mend it reads. The answer is that of the fold
itself, from the event alone. What must never enter: reading state.
"""

from arco.fold.shredding import SHREDDERS, shred
from arco.kernel.ids import EventId, encode_ulid
from arco.kernel.position import Position
from arco.kernel.scope import Scope
from arco.ledger.drafts import Draft, seal

_ANY = encode_ulid(0)
_FOLDED = frozenset(kind for known in SHREDDERS.values() for kind in known)


def need_foldable(draft: Draft, scope: Scope, now_ms: int) -> Draft:
    """The draft, if it would be folded. InvalidInput says why not. What no head folds is kept all the same."""
    if draft.type in _FOLDED:
        shred(seal(draft, scope, fresh_id=EventId(_ANY), position=Position(_ANY), now_ms=now_ms))
    return draft

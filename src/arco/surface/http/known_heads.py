"""Requests that came before, byte for byte: what they say is read once.

A client asks for the same tables again and again, and its requests differ in nothing. The same bytes say the same, so what is
kept here never grows old; nor does the way to find out, in one look at the store, whether they get the same answer. What must
never enter: an answer itself, and whether a request may be asked; that is looked at every time.
"""

import msgspec

from arco.kernel.kept import Kept
from arco.kernel.limits import KNOWN_HEAD_BYTES_MAX, KNOWN_HEADS_BYTES_MAX, KNOWN_HEADS_MAX
from arco.surface.http.call import Call, Head
from arco.surface.http.exchange import Again

_OVERHEAD_BYTES = 3_000
"""What a request takes beside its bytes, about: names and values apart, the list and the map of them, and what its answer rests
on."""


class Known(msgspec.Struct, frozen=True):
    """A request, and how it may be answered when it comes again."""

    head: Head
    again: Again | None


class KnownHeads:
    """The requests without a body that one server has heard last, within so many and so many bytes."""

    def __init__(self) -> None:
        self._kept: Kept[bytes, Known] = Kept(bytes_max=KNOWN_HEADS_BYTES_MAX, things_max=KNOWN_HEADS_MAX)
        self.get = self._kept.get

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, data: bytes, call: Call) -> None:
        """A request that was answered. One that was refused, or brings an id of its own, will hardly come again as it is."""
        if len(data) <= KNOWN_HEAD_BYTES_MAX and call.head.request_id is None and (call.status or 0) < 400:
            self._kept.put(data, Known(call.head, call.again), 2 * len(data) + _OVERHEAD_BYTES)

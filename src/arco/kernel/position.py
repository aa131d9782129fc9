"""Positions of events: a hybrid logical clock written as a ULID.

    48 bits  milliseconds, the greater of the machine's clock and what was seen before
    16 bits  a counter within that millisecond
    64 bits  the writer's own random number

Positions of one writer grow strictly, positions of two writers never collide, and all are close to real time. They order
what no sequence number orders; they never decide whether an event counts.
"""

from arco.kernel.clock import Clock
from arco.kernel.entropy import Entropy
from arco.kernel.errors import InvalidInput
from arco.kernel.ids import UlidIdentifier, decode_ulid, encode_ulid
from arco.kernel.limits import POSITION_LEAD_MS_MAX

_COUNTER_BITS = 16
_WRITER_BITS = 64
_COUNTER_MAX = (1 << _COUNTER_BITS) - 1


class Position(UlidIdentifier):
    """Where an event stands among all events."""

    __slots__ = ()
    what = "position"


class HybridClock:
    """Hands out growing positions for one writer."""

    def __init__(self, clock: Clock, entropy: Entropy) -> None:
        self._clock = clock
        self._writer = int.from_bytes(entropy.token_bytes(8), "big")
        self._tick = 0  # milliseconds and counter as one number: the overflow of the counter is the next millisecond

    def next(self) -> Position:
        self._tick = max(self._tick + 1, self._clock.now_ms() << _COUNTER_BITS)
        return Position(encode_ulid(self._tick << _WRITER_BITS | self._writer))

    def observe(self, seen: Position) -> None:
        """Never hand out a position below one already seen.

        A peer whose clock is far ahead would drag everybody with it for good, so such a position is refused.
        """
        tick = decode_ulid(seen) >> _WRITER_BITS
        lead_ms = (tick >> _COUNTER_BITS) - self._clock.now_ms()
        if lead_ms > POSITION_LEAD_MS_MAX:
            raise InvalidInput(
                f"position {seen} lies {lead_ms // 1000} s in the future",
                hint="set the clock of the machine that wrote it",
            )
        self._tick = max(self._tick, tick)

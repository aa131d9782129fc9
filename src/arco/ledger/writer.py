"""Writing the segments of one domain: a name nobody has, created only if absent, and a number that leaves no gap.

Names (hazard 5). A name is a whole ULID and the object is created only if absent. If a stranger has it all the same (two
processes that came out of one memory image draw the same ids), nothing is overwritten and another name is drawn.

Numbers. Readers take a number that is missing below the highest they have seen for a lost segment. Number n + 1 is therefore
given only when n is known to be stored; in every other case the writer ends, and the next segment is number 1 of a new
writer:
  - surely not stored: the old writer ends at n - 1
  - taken by a stranger: the same, and if the stranger shares our writer id we no longer do
  - unknown: it ends at n - 1 or at n, whichever the store decides, now or later
To reuse n for other events would give one number two meanings if the first attempt was only slow; to skip it would be a gap
that no segment ever fills. What must never enter: batching and acknowledging, which are the appender's.
"""

from collections.abc import Sequence

from arco.kernel.clock import Clock, utc_date
from arco.kernel.crash_points import reach
from arco.kernel.entropy import Entropy
from arco.kernel.errors import BrokenInvariant, OutcomeUnknown
from arco.kernel.ids import SegmentId, UlidSource, WriterId
from arco.kernel.limits import LEDGER_NAME_ATTEMPTS_MAX
from arco.kernel.scope import Scope
from arco.ledger.segment import encode_segment
from arco.storage.keys import Day, Domain, SegmentKey
from arco.storage.port import Absent, Landed, Lost, ObjectStore, Unknown
from arco.storage.readback import put_settled


class SegmentWriter:
    """Writes one segment after the other. Safe to go on with after any error."""

    def __init__(self, store: ObjectStore, scope: Scope, domain: Domain, clock: Clock, entropy: Entropy) -> None:
        self._store = store
        self._scope = scope
        self._domain = domain
        self._clock = clock
        self._entropy = entropy
        self._ulids = UlidSource(clock, entropy)
        self._stored: tuple[WriterId, int] | None = None

    async def write(self, lines: Sequence[bytes]) -> SegmentKey:
        """Store events as one segment; when this returns they are durable.

        OutcomeUnknown: they may be stored, now or later. Any other error: they are not, and never will be.
        """
        for _ in range(LEDGER_NAME_ATTEMPTS_MAX):
            writer_id, last = self._stored or (WriterId(self._ulids.next()), 0)
            self._stored = None
            segment = SegmentId(self._ulids.next())
            key = SegmentKey(self._scope, self._domain, Day(utc_date(segment.time_ms)), segment)
            data = encode_segment(key, writer_id, last + 1, lines)
            reach("ledger.segment_named")
            outcome = await put_settled(self._store, str(key), data, Absent(), clock=self._clock, entropy=self._entropy)
            match outcome:
                case Landed():
                    self._stored = (writer_id, last + 1)
                    return key
                case Unknown(reason):
                    raise OutcomeUnknown(
                        f"{key} may be stored: {reason}",
                        hint="append again with the same id or key: readers keep one event of each id",
                    )
                case Lost():
                    continue
        raise BrokenInvariant(
            f"{LEDGER_NAME_ATTEMPTS_MAX} new names in a row for a segment of {self._domain} were taken",
            hint="check the machine's clock and its source of randomness",
        )

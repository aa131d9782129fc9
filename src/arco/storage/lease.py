"""A lease: a way to wait for one another, and an epoch to fence with. It never carries correctness.

A lease bounds waiting, never writing: a holder that stalls past its expiry wakes up and writes. So whoever holds one passes
its `epoch` on to the compare-and-swap object it writes, and that object refuses an older epoch. Stealing is always safe, only
wasteful. Release is a swap to "free" that keeps the epoch (a deleted lease would start counting anew), and it is a
compare-and-swap like every other step: a release can never free the next holder's lease (hazards 3 and 19).
"""

from dataclasses import dataclass, replace
from typing import Any

from arco.kernel.clock import Clock
from arco.kernel.entropy import Entropy
from arco.kernel.errors import CorruptObject, Fenced, InvalidInput, OutcomeUnknown, UnknownFormat
from arco.kernel.ids import HolderId, WriteId
from arco.storage.cas import CasObject, Held, Overtaken, Swung
from arco.storage.port import Lost, ObjectStore, Unknown


@dataclass(frozen=True, slots=True)
class LeaseState:
    """Who holds it and until when by the holder's clock; nobody when `holder` is None."""

    holder: HolderId | None
    expires_ms: int


class LeaseCodec:
    format = "arco.lease"

    def encode(self, value: LeaseState) -> tuple[int, dict[str, Any]]:
        return 1, {"holder": value.holder, "expires_ms": value.expires_ms}

    def decode(self, format_version: int, fields: dict[str, Any]) -> LeaseState:
        if format_version != 1:
            raise UnknownFormat(f"a lease of format version {format_version}")
        try:
            holder = fields["holder"]
            return LeaseState(None if holder is None else HolderId(holder), int(fields["expires_ms"]))
        except (KeyError, TypeError, ValueError, InvalidInput) as error:
            raise CorruptObject(f"a lease with wrong fields: {error}") from error


@dataclass(frozen=True, slots=True)
class Tenure:
    """Proof of having held the lease at some time: pass `epoch` to what you write."""

    epoch: int
    held: Held[LeaseState]


class Lease:
    """One lease for one holder."""

    def __init__(
        self,
        store: ObjectStore,
        key: str,
        holder: HolderId,
        clock: Clock,
        entropy: Entropy,
        *,
        ttl_s: float = 30.0,
    ) -> None:
        self._object = CasObject(store, key, LeaseCodec(), clock, entropy)
        self._holder = holder
        self._clock = clock
        self._ttl_ms = int(ttl_s * 1000)

    async def look(self) -> Held[LeaseState] | None:
        """The lease as it is, for who waits for it."""
        return await self._object.read()

    async def try_acquire(self, *, above: int = 0, silent: WriteId | None = None) -> Tenure | None:
        """Take the lease if it is free or expired; None if somebody else has it, or was faster.

        The epoch is greater than every one before it, and than `above`: what was written under, if the lease itself got lost.
        `silent` is a write that was seen to be the last for as long as a lease lasts, by our own clock: the clock of a holder
        that is gone may have been hours ahead.
        """
        current = await self._object.read()
        wanted = LeaseState(self._holder, self._clock.now_ms() + self._ttl_ms)
        if current is None:
            outcome = await self._object.create(wanted, epoch=above + 1)
        elif current.value.holder is None or current.value.expires_ms <= self._clock.now_ms() or current.write_id == silent:
            outcome = await self._object.swap(current, wanted, epoch=max(current.epoch, above) + 1)
        else:
            return None
        return Tenure(outcome.held.epoch, outcome.held) if isinstance(outcome, Swung) else None

    async def extend(self, tenure: Tenure) -> Tenure:
        """Keep it for longer. Fenced if somebody took it meanwhile."""
        longer = replace(tenure.held.value, expires_ms=self._clock.now_ms() + self._ttl_ms)
        outcome = await self._object.swap(tenure.held, longer, epoch=tenure.epoch)
        match outcome:
            case Swung(held):
                return Tenure(tenure.epoch, held)
            case Unknown(reason):
                raise OutcomeUnknown(f"{self._object.key} may or may not be extended: {reason}")
            case Lost() | Overtaken():
                raise Fenced(f"{self._object.key} was taken over after epoch {tenure.epoch}")

    async def release(self, tenure: Tenure) -> bool:
        """Free it, if it is still ours. False if somebody took it meanwhile."""
        freed = LeaseState(None, 0)
        outcome = await self._object.swap(tenure.held, freed, epoch=tenure.epoch)
        if isinstance(outcome, Unknown):
            raise OutcomeUnknown(f"{self._object.key} may or may not be free: {outcome.reason}")
        return isinstance(outcome, Swung | Overtaken)

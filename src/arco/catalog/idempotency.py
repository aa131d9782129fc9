"""Markers: one durable record per idempotency key, so that a request that is sent twice is done once.

A marker binds a key to one operation and one request. It is claimed before the operation has an effect, renewed before every
further swing, and finished with the answer: a success, or a refusal that every retry will hear again. An answer of which
nobody knows whether it is true (5xx) is never kept. A marker that its owner left unfinished is taken over after a time, by
compare-and-swap; its base never decreases, so that a stalled owner and its successor cannot both commit.

The same record serves all mutations of a workspace: a table in its name would hide that a key was used elsewhere.
"""

import hashlib
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

import msgspec

from arco.catalog.answers import Answer, Refusal
from arco.catalog.in_hand import InHand
from arco.kernel.clock import Clock
from arco.kernel.entropy import Entropy
from arco.kernel.errors import CorruptObject, InvalidInput, KeyReused, OutcomeUnknown, UnknownFormat
from arco.kernel.ids import IdempotencyKey, KeyHash, TimedIdempotencyKey, UlidSource, is_uuid7, time_said
from arco.kernel.limits import (
    DUPLICATE_POLL_S,
    DUPLICATE_WAIT_S,
    HISTORY_KNOWN_S,
    IDEMPOTENCY_KEY_LEAD_S,
    IDEMPOTENCY_LIFETIME_S,
    IDEMPOTENCY_TAKEOVER_S,
    KEYS_CHECKED_KEPT_MAX,
)
from arco.kernel.scope import Scope
from arco.storage.cas import CasObject, Held, Overtaken, Swung
from arco.storage.keys import MarkerKey
from arco.storage.port import Lost, ObjectStore, Unknown

_FORMAT_VERSION = 1


class State(StrEnum):
    IN_PROGRESS = "in_progress"
    SETTLING = "settling"  # taken from its owner by somebody who will know for certain what became of it
    COMMITTED = "committed"
    FAILED = "failed"

    @property
    def is_final(self) -> bool:
        return self in {State.COMMITTED, State.FAILED}


@dataclass(frozen=True, slots=True)
class Tried:
    """A commit that was prepared: its file, the commit that was current then, its own number, and when it was begun."""

    location: str
    base_number: int
    number: int
    begun_ms: int

    @property
    def is_behind_others(self) -> bool:
        """In a group, on versions that may never land: its file must not be adopted."""
        return self.number > self.base_number + 1


class Marker(msgspec.Struct, frozen=True):
    """What is known of one key. `owner` is the process that works on it. `commit_number` is there if it stands behind others."""

    state: State
    key: str
    operation: str
    request_hash: str
    started_ms: int
    attempt: int
    since: int
    minted_ms: int
    answer: Answer | None = None
    refusal: Refusal | None = None
    table_uuid: str | None = None
    binding: int | None = None
    event_id: str | None = None
    base_commit_number: int | None = None
    base_metadata_location: str | None = None
    metadata_location: str | None = None
    owner: str | None = None
    commit_number: int | None = None

    @property
    def tried(self) -> Tried | None:
        """The commit that this request was last about to make."""
        if self.metadata_location is None or self.base_commit_number is None:
            return None
        number = self.commit_number or self.base_commit_number + 1
        return Tried(self.metadata_location, self.base_commit_number, number, self.minted_ms)


class MarkerCodec:
    format = "arco.idempotency_marker"

    def encode(self, value: Marker) -> tuple[int, dict[str, Any]]:
        fields: dict[str, Any] = msgspec.to_builtins(value)
        return _FORMAT_VERSION, fields

    def decode(self, format_version: int, fields: dict[str, Any]) -> Marker:
        if format_version != _FORMAT_VERSION:
            raise UnknownFormat(f"a marker of format version {format_version}")
        try:
            return msgspec.convert(fields, Marker)
        except msgspec.ValidationError as error:
            raise CorruptObject(f"a marker with wrong fields: {error}") from error


@dataclass(frozen=True, slots=True)
class RequestKey:
    """A key with what it is used for. `durable` is False for a key the server made itself: it needs no marker."""

    key: str
    operation: str
    request_hash: str
    durable: bool = True

    @property
    def hash(self) -> str:
        return _hash_of(self.key)


@lru_cache(KEYS_CHECKED_KEPT_MAX)
def _hash_of(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


class Markers:
    """The markers of one workspace."""

    def __init__(
        self, store: ObjectStore, scope: Scope, clock: Clock, entropy: Entropy, *, require_uuid7: bool = True
    ) -> None:
        self._require_uuid7 = require_uuid7
        self._store = store
        self._scope = scope
        self._clock = clock
        self._entropy = entropy
        self._ulids = UlidSource(clock, entropy)
        self._in_hand = InHand(self._ulids.next())
        self._name = lru_cache(KEYS_CHECKED_KEPT_MAX)(self._name_of)

    def working(self, key: RequestKey) -> AbstractContextManager[None]:
        """While this process works on a key. A marker of ours on which nobody works any more was left unfinished."""
        return self._in_hand.working(key.hash)

    def request_key(self, key: str | None, operation: str, request_hash: str) -> RequestKey:
        """The key of a request. One past its lifetime is refused before anything is written."""
        if key is None:
            return RequestKey(self._ulids.next(), operation, request_hash, durable=False)
        # Some spell a UUID in capitals: the same key.
        key = key.lower()
        if not self._require_uuid7 and not is_uuid7(IdempotencyKey(key)):
            return RequestKey(key, operation, request_hash)
        age_s = (self._clock.now_ms() - TimedIdempotencyKey(key).time_ms) / 1000
        if age_s > IDEMPOTENCY_LIFETIME_S:
            raise InvalidInput("this Idempotency-Key is older than its lifetime", hint="make a new one for a new request")
        if age_s < -IDEMPOTENCY_KEY_LEAD_S:
            raise InvalidInput("this Idempotency-Key lies in the future", hint="set the clock of the machine that made it")
        return RequestKey(key, operation, request_hash)

    def may_come_again(self, key: RequestKey) -> bool:
        """Whether a key may be used anew once its marker was collected: it says no time, so nobody can refuse it for its age."""
        return key.durable and not self._require_uuid7 and time_said(key.key) is None

    def fresh(self, key: RequestKey, since: int) -> Marker:
        """A marker for a first attempt. `minted_ms` stays when it is taken over: what is made of it must stay the same."""
        now_ms = self._clock.now_ms()
        return Marker(
            State.IN_PROGRESS, key.key, key.operation, key.request_hash, now_ms, 1, since, now_ms, owner=self._in_hand.owner
        )

    def object(self, key: RequestKey) -> CasObject[Marker]:
        return CasObject(self._store, self._name(key.hash), MarkerCodec(), self._clock, self._entropy)

    def _name_of(self, key_hash: str) -> str:
        return str(MarkerKey(self._scope, KeyHash(key_hash)))

    async def claim(self, key: RequestKey, marker: Marker) -> Held[Marker] | None:
        """Write the first marker of a key; None if there is one already.

        A claim that was under way for a day proves nothing: there may have been a marker, and upkeep collected it. Looking at the
        time before the claim would leave room for a pause between the two.
        """
        held = _held(await self.object(key).create(marker), "claim")
        if held is not None and self._may_be_forgotten(key):
            raise OutcomeUnknown(
                "this request was sent so long ago that its record may be gone", hint="look whether it was done"
            )
        return held

    def _may_be_forgotten(self, key: RequestKey) -> bool:
        """Half of the time that a marker is kept beyond its lifetime is left for clocks that differ."""
        said_ms = time_said(key.key)
        return said_ms is not None and self._clock.now_ms() - said_ms > HISTORY_KNOWN_S * 1000

    async def renew(self, key: RequestKey, held: Held[Marker], marker: Marker) -> Held[Marker]:
        """Replace our own marker. Raises if somebody took it over: this attempt is over then."""
        renewed = _held(await self.object(key).swap(held, marker), "renew")
        if renewed is None:
            raise OutcomeUnknown("another attempt of this request took over")
        return renewed

    async def take_over(self, key: RequestKey, held: Held[Marker]) -> Held[Marker] | None:
        """Make another attempt's marker ours; None if somebody wrote it meanwhile."""
        return _held(await self.object(key).swap(held, self.taken_over(held.value)), "takeover")

    async def existing(self, key: RequestKey) -> Held[Marker]:
        """The marker of a key that is in use, for this request and no other."""
        held = await self.object(key).read()
        if held is None:
            raise OutcomeUnknown("the record of this Idempotency-Key is gone")
        if (held.value.operation, held.value.request_hash) != (key.operation, key.request_hash):
            raise KeyReused("Idempotency-Key reused with different request payload")
        return held

    async def wait(self, key: RequestKey) -> Held[Marker]:
        """The marker of a duplicate: until it is finished, or stale enough to be taken over, or patience ends."""
        waited_s = 0.0
        while True:
            held = await self.existing(key)
            if held.value.state.is_final or (held.value.state is State.IN_PROGRESS and self._is_stale(key, held.value)):
                return held
            if waited_s >= DUPLICATE_WAIT_S:
                raise OutcomeUnknown("this request is still being worked on by another attempt")
            await self._clock.sleep(DUPLICATE_POLL_S)
            waited_s += DUPLICATE_POLL_S

    def _is_stale(self, key: RequestKey, marker: Marker) -> bool:
        """Silent for too long; or left by this very process, where only the asking attempt works on it now."""
        left_by_us = self._in_hand.left_by_us(marker.owner, key.hash)
        return left_by_us or self._clock.now_ms() - marker.started_ms > IDEMPOTENCY_TAKEOVER_S * 1000

    def taken_over(self, marker: Marker) -> Marker:
        return msgspec.structs.replace(
            marker, started_ms=self._clock.now_ms(), attempt=marker.attempt + 1, owner=self._in_hand.owner
        )


def _held(outcome: object, what: str) -> Held[Marker] | None:
    match outcome:
        case Swung(held) | Overtaken(held):
            if isinstance(outcome, Overtaken):
                raise OutcomeUnknown("another attempt of this request took over")
            return held
        case Lost():
            return None
        case Unknown(reason):
            raise OutcomeUnknown(f"the store did not say whether the {what} was written: {reason}")
        case _:
            raise TypeError(outcome)

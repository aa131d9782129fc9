"""Notifications: which segments and receipts were just written, for a fold that does not list.

One small object a domain names the newest of them that somebody was told of; receipts are of the domain `iceberg`. A notification
is a hint: it may come twice, late or not at all, and may name what was folded long ago. The oldest names fall out; a listing
finds what hints missed. What must never enter: taking names out when they are folded, because several heads read one domain.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from arco.kernel.clock import Clock
from arco.kernel.entropy import Entropy
from arco.kernel.errors import Conflict, CorruptObject, InvalidInput, OutcomeUnknown, UnknownFormat
from arco.kernel.ids import clip
from arco.kernel.limits import FOLD_HINTED_SEGMENTS_MAX, SWAP_ATTEMPTS_MAX
from arco.kernel.scope import Scope
from arco.storage.cas import CasObject, Held, Overtaken, Swung
from arco.storage.keys import Domain, HintKey, Phase, ReceiptKey, SegmentKey, parse
from arco.storage.port import Lost, ObjectStore, Unknown
from arco.storage.readback import pause_s

_NAMES = "name segments as POST /api/v1/events answers them, in segments: tenant/workspace/_catalog/ledger/…"


class Hint(msgspec.Struct, frozen=True):
    """Segments and receipts that were notified, oldest notification first, by their whole names."""

    segments: tuple[str, ...] = ()


class HintCodec:
    format = "arco.fold_hint"

    def encode(self, value: Hint) -> tuple[int, dict[str, Any]]:
        fields: dict[str, Any] = msgspec.to_builtins(value)
        return 1, fields

    def decode(self, format_version: int, fields: dict[str, Any]) -> Hint:
        if format_version != 1:
            raise UnknownFormat(f"a hint for the fold has format version {format_version}, not 1")
        try:
            return msgspec.convert(fields, Hint)
        except msgspec.ValidationError as error:
            raise CorruptObject(f"a hint for the fold has wrong fields: {error}") from error


def hint_object(store: ObjectStore, scope: Scope, domain: Domain, clock: Clock, entropy: Entropy) -> CasObject[Hint]:
    return CasObject(store, str(HintKey(scope, domain)), HintCodec(), clock, entropy)


class Notifier:
    """One process that says what it wrote. It remembers what it said last: mostly a notification is one request a domain."""

    def __init__(self, store: ObjectStore, scope: Scope, clock: Clock, entropy: Entropy) -> None:
        self._store, self._scope, self._clock, self._entropy = store, scope, clock, entropy
        self._held: dict[Domain, Held[Hint]] = {}

    async def notify(self, names: Iterable[str]) -> None:
        """Say that segments or receipts were written. After an error it may be said again."""
        by_domain: dict[Domain, dict[str, None]] = {}
        for name in names:
            by_domain.setdefault(_domain(self._scope, name), {})[name] = None
        for domain, fresh in by_domain.items():
            await self._say(domain, fresh)

    async def _say(self, domain: Domain, fresh: dict[str, None]) -> None:
        hint = hint_object(self._store, self._scope, domain, self._clock, self._entropy)
        for attempt in range(SWAP_ATTEMPTS_MAX):
            if attempt:
                await self._clock.sleep(pause_s(min(attempt, 6), self._entropy))
            held = self._held.pop(domain, None) or await hint.read()
            before = () if held is None else held.value.segments
            kept = (*(one for one in before if one not in fresh), *fresh)
            value = Hint(kept[-FOLD_HINTED_SEGMENTS_MAX:])
            match await (hint.create(value) if held is None else hint.swap(held, value)):
                case Swung(after) | Overtaken(after):
                    self._held[domain] = after
                    return
                case Lost():
                    continue
                case Unknown(reason):
                    raise OutcomeUnknown(f"{hint.key} may say it: {reason}", hint="say it again")
        raise Conflict(f"{hint.key} was written by others all the time", hint="say it again")


async def notify(store: ObjectStore, scope: Scope, names: Iterable[str], clock: Clock, entropy: Entropy) -> None:
    """The same, once."""
    await Notifier(store, scope, clock, entropy).notify(names)


async def hinted(store: ObjectStore, scope: Scope, domain: Domain, clock: Clock, entropy: Entropy) -> tuple[str, ...]:
    """What was notified last in a domain."""
    held = await hint_object(store, scope, domain, clock, entropy).read()
    return () if held is None else held.value.segments


def _domain(scope: Scope, name: str) -> Domain:
    try:
        key = parse(name)
    except InvalidInput as error:
        raise InvalidInput(error.message, hint=_NAMES) from None
    if isinstance(key, SegmentKey) and key.scope == scope:
        return key.domain
    if isinstance(key, ReceiptKey) and key.scope == scope and key.phase is Phase.COMMITTED:
        return Domain.ICEBERG
    raise InvalidInput(f"{clip(name)!r} is no segment of {scope.tenant}/{scope.workspace}", hint=_NAMES)

"""Vending: credentials for the files of one table, for a while, made by the store's own token service.

One interface, one file a store (`assume_role.py`, `downscoped_tokens.py`, `shared_access.py`, `given_keys.py`). What was made is
handed out again while half of its life is left, to whoever may load the table, and is forgotten when that ends. It is held in
memory and nowhere else: no marker, no event and no line of the log has it.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from arco.govern.places import ValidatedPlace, Validation
from arco.iceberg.guardrails import Placed
from arco.kernel.clock import Clock
from arco.kernel.errors import BrokenInvariant
from arco.kernel.limits import VENDED_CREDENTIALS_MAX
from arco.kernel.scope import Scope
from arco.kernel.secret import Secret


class Access(StrEnum):
    """What a credential lets its holder do to the files of a table."""

    READ = "read"
    WRITE = "write"


@dataclass(frozen=True, slots=True)
class Grant:
    """What may be done in one place. `stem`: also in folders beside it whose names begin with its name."""

    place: ValidatedPlace
    access: Access
    stem: bool = False

    @property
    def beginning(self) -> str:
        """What the names of all files begin with that are meant."""
        return self.place.path if self.stem else f"{self.place.path}/"


@dataclass(frozen=True, slots=True)
class Credential:
    """Properties for clients, secret ones apart. `expires_ms` is None if nobody knows of an end: then `mark` says which it is,
    in a word that changes with it and says nothing of it.
    """

    prefix: str
    hidden: Mapping[str, Secret]
    plain: Mapping[str, str]
    expires_ms: int | None
    mark: str = ""

    def revealed(self) -> dict[str, str]:
        """As clients read it. Only for an answer on its way out."""
        return {**self.plain, **{word: secret.reveal() for word, secret in self.hidden.items()}}


class Vendor(Protocol):
    """Makes credentials of one store. Each call makes new ones, or says why not."""

    @property
    def refresh_property(self) -> str | None:
        """The property by which clients are told where to ask again; None if there is no need to."""
        ...

    @property
    def lasting_mark(self) -> str | None:
        """The mark of credentials that have no end; None if they end."""
        ...

    async def vend(self, place: ValidatedPlace, access: Access) -> Credential: ...


@dataclass(frozen=True, slots=True)
class _Held:
    """`half_ms`: when half of its own life is gone, however long that is; None if it has no end."""

    credential: Credential
    half_ms: int | None


class Vending:
    """What a server hands out: credentials of one kind of access."""

    def __init__(self, validation: Validation, vendor: Vendor, access: Access, clock: Clock) -> None:
        self._validation = validation
        self._vendor = vendor
        self.access = access
        self._clock = clock
        self._held: OrderedDict[str, _Held] = OrderedDict()
        self._making: dict[str, asyncio.Future[Credential]] = {}

    @property
    def refresh_property(self) -> str | None:
        return self._vendor.refresh_property

    @property
    def lasting_mark(self) -> str | None:
        return self._vendor.lasting_mark

    async def for_table(self, scope: Scope, uuid: str, metadata: Placed) -> Credential:
        """A credential for a table as it is now. AccessDenied if not all of it lies in its own folder."""
        return await self.vend(self._validation.table(scope, uuid, metadata))

    async def vend(self, place: ValidatedPlace) -> Credential:
        """A credential for a place, with at least half of its life before it."""
        if not isinstance(place, ValidatedPlace):
            raise BrokenInvariant("credentials were asked for a place that nobody validated")
        self._forget_what_ends()
        held = self._held.get(place.uri)
        if held is not None:
            return held.credential
        making = self._making.get(place.uri)
        if making is None:
            making = self._making[place.uri] = asyncio.ensure_future(self._made(place))
            making.add_done_callback(lambda _: self._making.pop(place.uri))
        # Many clients may wait for one answer, and one of them may go away.
        return await asyncio.shield(making)

    async def _made(self, place: ValidatedPlace) -> Credential:
        asked_ms = self._clock.now_ms()
        made = await self._vendor.vend(place, self.access)
        half_ms = None if made.expires_ms is None else (asked_ms + made.expires_ms) // 2
        self._held[place.uri] = _Held(made, half_ms)
        while len(self._held) > VENDED_CREDENTIALS_MAX:
            self._held.popitem(last=False)
        return made

    def _forget_what_ends(self) -> None:
        """No life ends before that of one that was made earlier: what was made first is halfway first."""
        now_ms = self._clock.now_ms()
        while self._held:
            oldest = next(iter(self._held.values()))
            if oldest.half_ms is None or now_ms <= oldest.half_ms:
                return
            self._held.popitem(last=False)

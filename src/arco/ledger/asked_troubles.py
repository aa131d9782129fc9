"""Why a run that was asked for waits though somebody looked at it: one small document a request, for whoever asks about it.

It decides nothing. Whoever takes requests writes it when one cannot be started and a person has to look, and tries again all the
same; it is out of date once the request is decided and its run has begun. What must never enter: verdicts (`asked_runs.py`).
"""

from dataclasses import dataclass
from typing import Any

import msgspec

from arco.kernel.clock import Clock
from arco.kernel.entropy import Entropy
from arco.kernel.errors import CorruptObject, UnknownFormat
from arco.kernel.ids import KeyHash
from arco.kernel.scope import Scope
from arco.storage.cas import CasObject
from arco.storage.keys import AskedTroubleKey
from arco.storage.port import ObjectStore


class AskedTrouble(msgspec.Struct, frozen=True, kw_only=True):
    """What kept a request from being started, who found it, and when that was first said."""

    request: str
    message: str
    by: str
    at_ms: int


class AskedTroubleCodec:
    format = "arco.asked_trouble"

    def encode(self, value: AskedTrouble) -> tuple[int, dict[str, Any]]:
        return 1, msgspec.to_builtins(value)

    def decode(self, format_version: int, fields: dict[str, Any]) -> AskedTrouble:
        if format_version != 1:
            raise UnknownFormat(f"what keeps a request, of format version {format_version}")
        try:
            return msgspec.convert(fields, AskedTrouble)
        except msgspec.ValidationError as error:
            raise CorruptObject(f"what keeps a request, with wrong fields: {error}") from error


@dataclass(frozen=True, slots=True)
class AskedTroubles:
    """The troubles of one workspace."""

    store: ObjectStore
    scope: Scope
    clock: Clock
    entropy: Entropy

    async def read(self, request: KeyHash) -> AskedTrouble | None:
        held = await self._object(request).read()
        return None if held is None else held.value

    async def say(self, request: KeyHash, message: str, by: str) -> None:
        """Write down what is wrong; nothing if that is written there."""
        found = await self.read(request)
        if found is None or found.message != message:
            said = AskedTrouble(request=str(request), message=message, by=by, at_ms=self.clock.now_ms())
            await self._object(request).update(lambda _: said)

    def _object(self, request: KeyHash) -> CasObject[AskedTrouble]:
        key = str(AskedTroubleKey(self.scope, request))
        return CasObject(self.store, key, AskedTroubleCodec(), self.clock, self.entropy)

"""Runs that somebody asks for who has no project at hand: the request, and what was decided about it. Both are written once.

The failures this prevents, in order:
  1. a reply is lost, the client sends its request again, and there are two runs
  2. a request is taken by a process that dies, and nobody knows that it was asked for
  3. one process says that there is nothing to do, another starts a run, and the client hears whichever wrote last

A request lies under the hash of its key and is created only if absent. It is open until a verdict about it is there, which is an
object of its own, created only if absent too: the first one counts for everybody, and nothing begins before it. A verdict carries
its request, so it stays right when upkeep has taken the request away, and one that a late retry writes again is no new one.

Servo takes requests, the edges write and show them, upkeep sweeps them. What must never enter: planning, and starting a run.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

import msgspec

from arco.kernel.clock import Clock
from arco.kernel.crash_points import reach
from arco.kernel.entropy import Entropy
from arco.kernel.errors import CorruptObject, KeyReused, OutcomeUnknown, Throttled, UnknownFormat
from arco.kernel.fingerprint import fingerprint
from arco.kernel.identity import asked_run_id
from arco.kernel.ids import KeyHash, RunId
from arco.kernel.limits import ASKED_RUNS_OPEN_MAX
from arco.kernel.scope import Scope
from arco.ledger.run_entries import OnFailure, Seal
from arco.storage.keys import AskedRunKey, AskedVerdictKey, parse, prefix_of
from arco.storage.paging import walk
from arco.storage.port import Absent, Landed, Listed, Lost, ObjectStore, Unknown
from arco.storage.readback import put_settled

_FORMAT, _VERDICT_FORMAT, _FORMAT_VERSION = "arco.asked_run", "arco.asked_verdict", 1


class AskedRun(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be made, in the words of a command line. `id` is the hash of the key that it was asked under.

    `seal` where the server that wrote it has the key that tasks are signed with.
    """

    format: str = _FORMAT
    format_version: int = _FORMAT_VERSION
    id: str
    project: str
    make: tuple[str, ...] = ()
    partitions: dict[str, str] = {}
    mode: str = "stale"
    parameters: dict[str, str] = {}
    max_parallelism: int = 4
    timeout_s: float | None = None
    on_failure: OnFailure = OnFailure.KEEP_GOING
    who: str = "anonymous"
    asked_ms: int = 0
    seal: Seal | None = None

    @property
    def run(self) -> RunId:
        """The run that it becomes, if it becomes one: the same for whoever takes it."""
        return asked_run_id(self.id, self.asked_ms)

    def wants_the_same(self, other: "AskedRun") -> bool:
        """Whether two say the same, whoever asked and when."""
        return _wish(self) == _wish(other)


class Decided(StrEnum):
    """What may become of a request."""

    STARTED = "started"  # as the run that the verdict names
    NOTHING = "nothing_to_do"
    REFUSED = "refused"  # asked again it would be refused again
    WITHDRAWN = "withdrawn"  # by whoever asks, before anybody took it


class AskedVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What was decided about a request, by whom. `run` if one is started: its plan is stored, and its log begins after this."""

    format: str = _VERDICT_FORMAT
    format_version: int = _FORMAT_VERSION
    asked: AskedRun
    decided: Decided
    by: str
    at_ms: int
    run: str | None = None
    message: str = ""


def request_id(key: str) -> KeyHash:
    """What a request is called: made of its key."""
    return KeyHash(fingerprint("asked run", key))


@dataclass(frozen=True, slots=True)
class AskedRuns:
    """The requests of one workspace."""

    store: ObjectStore
    scope: Scope
    clock: Clock
    entropy: Entropy

    async def ask(self, wanted: AskedRun) -> AskedRun:
        """Write a request down. The one that counts: an earlier one under the same key, if it wants the same.

        KeyReused if that wants something else; after OutcomeUnknown, ask again with the same key.
        """
        name = str(AskedRunKey(self.scope, KeyHash(wanted.id)))
        if (before := await self._asked_before(wanted)) is not None:
            return before
        await self._check_room()
        match await put_settled(
            self.store, name, _ENCODER.encode(wanted), Absent(), clock=self.clock, entropy=self.entropy
        ):
            case Unknown(reason):
                raise OutcomeUnknown(f"the request may be written: {reason}", hint="send it again with the same key")
            case Landed() | Lost():
                reach("asked.written")
        # One that was decided and swept while we wrote counts, and not what we wrote in its place.
        found = await self._asked_before(wanted)
        if found is None:
            raise OutcomeUnknown("the request was written and is gone", hint="send it again with the same key")
        return found

    async def find(self, request: KeyHash) -> tuple[AskedRun | None, AskedVerdict | None]:
        """A request and what was decided about it, as far as either is there."""
        decided = await self.verdict(request)
        return (await self.read(request) if decided is None else decided.asked), decided

    async def read(self, request: KeyHash) -> AskedRun | None:
        name = str(AskedRunKey(self.scope, request))
        found = await self.store.get(name)
        return None if found is None else decode_asked(name, found.data, AskedRun)

    async def verdict(self, request: KeyHash) -> AskedVerdict | None:
        name = str(AskedVerdictKey(self.scope, request))
        found = await self.store.get(name)
        return None if found is None else decode_asked(name, found.data, AskedVerdict)

    async def decide(self, wanted: AskedVerdict) -> AskedVerdict:
        """The verdict that counts: ours, or one that was there before."""
        request = KeyHash(wanted.asked.id)
        name = str(AskedVerdictKey(self.scope, request))
        match await put_settled(
            self.store, name, _ENCODER.encode(wanted), Absent(), clock=self.clock, entropy=self.entropy
        ):
            case Landed():
                return wanted
            case Unknown(reason):
                raise OutcomeUnknown(f"request {request} may be decided: {reason}")
            case Lost():
                reach("asked.overtaken")
        theirs = await self.verdict(request)
        if theirs is None:
            raise OutcomeUnknown(f"request {request} was decided, and the verdict is gone")
        return theirs

    async def withdraw(self, asked: AskedRun, who: str) -> AskedVerdict:
        """Take a request back. The verdict that counts: somebody may have begun meanwhile."""
        return await self.decide(
            AskedVerdict(asked=asked, decided=Decided.WITHDRAWN, by=who, at_ms=self.clock.now_ms(), message="withdrawn")
        )

    async def open(self) -> AsyncIterator[tuple[Listed, KeyHash]]:
        """The requests that nobody has swept yet: those that are open, and some that were decided a while ago."""
        async for entry in walk(self.store, prefix_of(self.scope, "_catalog", "asked_runs", "open")):
            key = parse(entry.key)
            if isinstance(key, AskedRunKey):
                yield entry, key.key_hash

    async def _asked_before(self, wanted: AskedRun) -> AskedRun | None:
        found, _ = await self.find(KeyHash(wanted.id))
        if found is not None and not found.wants_the_same(wanted):
            raise KeyReused("this idempotency key was used for another request", hint="use a new key for a new request")
        return found

    async def _check_room(self) -> None:
        folder = prefix_of(self.scope, "_catalog", "asked_runs", "open")
        page = await self.store.list_page(folder, "", ASKED_RUNS_OPEN_MAX)
        if len(page.entries) >= ASKED_RUNS_OPEN_MAX:
            raise Throttled(
                f"{len(page.entries)} requests for runs wait to be taken, or to be swept by upkeep",
                hint="is somebody there who takes them (arco runs take), and does arco upkeep run?",
            )


T = TypeVar("T", AskedRun, AskedVerdict)


def _wish(asked: AskedRun) -> AskedRun:
    return msgspec.structs.replace(asked, who="", asked_ms=0, seal=None)


def decode_asked(name: str, data: bytes, kind: type[T]) -> T:
    try:
        header = _HEADER.decode(data)
        if (header.format, header.format_version) != (_FORMATS[kind], _FORMAT_VERSION):
            raise UnknownFormat(f"{name} is {header.format} version {header.format_version}")
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CorruptObject(f"{name} is no request for a run, nor a verdict about one: {error}") from error


class _Header(msgspec.Struct, frozen=True):
    format: str
    format_version: int


_HEADER = msgspec.json.Decoder(_Header)
_FORMATS: dict[type, str] = {AskedRun: _FORMAT, AskedVerdict: _VERDICT_FORMAT}
_ENCODER = msgspec.json.Encoder(enc_hook=str, order="deterministic")

"""Commits that wait for the same table in one process land together: one swing for all of them (PROTOCOLS C10).

    compute, each on the version before → write (claim ∥ file ∥ pending receipt of each ∥ names ∥ earlier receipts) → swing

Each request keeps its own commit: a version, a file, a marker, a receipt and an answer. What they share is the round trips. Who
comes while a swing of the table is under way joins the group that stands in line behind it.

A version that stands behind others is worth nothing without them. So a group swings only as far as every member before is
whole: behind one whose key is in use, whose write failed, or which adopted somebody else's bytes, the rest begin anew. And
nobody ever adopts a file that stands behind others: who takes such a commit over kills the swing of its group first.

Whatever is not plain is not done here. A request that does not apply behind the others, changes nothing, or may have been sent
before goes alone, and is judged on fresh state.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from arco.catalog.bases import Base
from arco.catalog.lines import Lines, Place
from arco.catalog.model import Entry
from arco.catalog.standing import in_step
from arco.catalog.swinging import Swings
from arco.catalog.versions import Committed, Prepared, Version
from arco.kernel.crash_points import reach
from arco.kernel.errors import ArcoError
from arco.kernel.limits import GROUP_COMMITS_MAX, GROUP_PATIENCE_S_MAX
from arco.kernel.tallies import Tallied
from arco.ledger.receipts import Published
from arco.storage.cas import Overtaken, Swung
from arco.storage.port import Lost, Unknown

M = TypeVar("M")

_PATIENCE = 0.25
"""Of the time that the last turn took."""


@dataclass(frozen=True, slots=True)
class Landed(Generic[M]):
    """Its commit is visible. Its receipt is on its way."""

    prepared: Prepared[M]


@dataclass(frozen=True, slots=True)
class Open(Generic[M]):
    """The swing of its group was not a definite success: history knows."""

    prepared: Prepared[M]
    outcome: Lost | Unknown


@dataclass(frozen=True, slots=True)
class InUse:
    """Its key was claimed before."""


@dataclass(frozen=True, slots=True)
class Again:
    """Nothing of it was swung. It may try with others once more, or must go alone."""

    alone: bool = False


@dataclass(frozen=True, slots=True)
class TooLate:
    """Nothing of it was begun, and nothing will be: it waited for its turn longer than clients should."""


@dataclass(frozen=True, slots=True)
class Done(Generic[M]):
    """It was the only one, and went its own way."""

    result: Committed[M] | None


Fate = Landed[M] | Open[M] | InUse | Again | TooLate | Done[M]


class Member(Protocol[M]):
    """A request that wants to commit."""

    def computed(self, base: Base[M], before: Version[M] | None) -> Prepared[M]: ...

    async def write(self, prepared: Prepared[M]) -> Prepared[M] | None:
        """Everything of its own before the swing; None if its key is in use."""
        ...

    def published(self, prepared: Prepared[M]) -> Published: ...

    def is_named(self, entry: Entry) -> bool: ...

    def is_in_time(self) -> bool: ...

    def begin_in_time(self) -> bool:
        """Begin, unless it has waited for its turn too long."""
        ...

    async def commit_alone(self, entry: Entry, place: Place) -> Committed[M] | None: ...


@dataclass(eq=False, slots=True)
class _Group(Generic[M]):
    """Those who stand in line as one."""

    entry: Entry
    members: list[tuple[Member[M], "asyncio.Future[Fate[M]]"]] = field(default_factory=list)
    wanted: int = 0
    complete: asyncio.Event = field(default_factory=asyncio.Event)

    def add(self, member: Member[M]) -> "asyncio.Future[Fate[M]]":
        fate: asyncio.Future[Fate[M]] = asyncio.get_running_loop().create_future()
        self.members.append((member, fate))
        if len(self.members) >= self.wanted:
            self.complete.set()
        return fate

    async def wait_for(self, wanted: int, patience_s: float) -> None:
        """Until so many are here, or patience ends."""
        if len(self.members) < wanted:
            self.wanted = wanted
            self.complete.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self.complete.wait(), patience_s)


@dataclass(frozen=True, slots=True)
class _Crowd:
    """How many were at a table when its last turn ended, at its head and in line, and how long that turn took."""

    size: int
    took_s: float
    ended_s: float


class Groups(Generic[M]):
    """The groups of one process, at most one a table that still takes members."""

    def __init__(self, swings: Swings[M], lines: Lines) -> None:
        self._swings = swings
        self._lines = lines
        self._forming: dict[str, _Group[M]] = {}
        self._crowds: dict[str, _Crowd] = {}
        self._turns: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._at_table: Counter[str] = Counter()

    def length(self, uuid: str) -> int:
        """How many commits are at a table, waiting or at work."""
        return self._at_table[uuid]

    def comes(self, uuid: str) -> None:
        """One more is at a table; it must say when it goes."""
        self._at_table[uuid] += 1
        self._swings.ws.tallies.add(Tallied.QUEUED)

    def goes(self, uuid: str) -> None:
        self._at_table[uuid] -= 1
        if not self._at_table[uuid]:
            del self._at_table[uuid]
        self._swings.ws.tallies.add(Tallied.QUEUED, -1)

    async def first(self, uuid: str) -> tuple[Place, float]:
        """A place at the head of a table's line, and since when."""
        return await self._lines.place(uuid), self._now_s()

    def ended(self, uuid: str, place: Place, began_s: float) -> None:
        """The turn of one alone is over."""
        try:
            self._note(uuid, 1, began_s)
        finally:
            place.leave()

    def is_wanted(self, uuid: str) -> bool:
        """Whether there is anybody to share a swing with: others are at it, or were a moment ago and will be back."""
        return self._lines.is_busy(uuid) or self._crowd(uuid) is not None

    def _crowd(self, uuid: str) -> _Crowd | None:
        crowd = self._crowds.get(uuid)
        if crowd is not None and self._now_s() - crowd.ended_s > crowd.took_s:
            del self._crowds[uuid]
            return None
        return crowd

    async def join(self, entry: Entry, member: Member[M]) -> Fate[M]:
        """What became of a request in its group."""
        group = self._forming.get(entry.uuid)
        if group is None or len(group.members) >= GROUP_COMMITS_MAX:
            group = self._forming[entry.uuid] = _Group(entry)
            turn = asyncio.get_running_loop().create_task(self._take_turn(group))
            self._turns.add(turn)
            turn.add_done_callback(self._turns.discard)
        self.comes(entry.uuid)
        try:
            return await group.add(member)
        finally:
            self.goes(entry.uuid)

    def turn(self, uuid: str) -> "_Turn[M]":
        """A turn at a table for one alone."""
        return _Turn(self, uuid)

    def _now_s(self) -> float:
        """Also when the last of this process is thrown away, and its event loop does not run any more."""
        self._loop = self._loop or asyncio.get_running_loop()
        return self._loop.time()

    def _note(self, uuid: str, size: int, began_s: float) -> None:
        forming = self._forming.get(uuid)
        crowd, now_s = size + (0 if forming is None else len(forming.members)), self._now_s()
        if crowd > 1:
            self._crowds[uuid] = _Crowd(crowd, now_s - began_s, now_s)
        else:
            self._crowds.pop(uuid, None)

    async def _take_turn(self, group: _Group[M]) -> None:
        """A group's turn at its table. Whatever happens, every member hears something."""
        uuid = group.entry.uuid
        try:
            async with self._lines.at_the_head(uuid) as place:
                crowd = self._crowd(uuid)
                if crowd is not None:
                    # Who was just answered is about to ask again: a swing without them would hold them all up.
                    wanted = min(crowd.size, GROUP_COMMITS_MAX)
                    await group.wait_for(wanted, min(crowd.took_s * _PATIENCE, GROUP_PATIENCE_S_MAX))
                self._close(group)
                self._send_away(group)
                began_s = self._now_s()
                try:
                    if len(group.members) == 1:
                        await self._alone(group, place)
                    elif group.members:
                        await self._together(group)
                finally:
                    self._note(uuid, len(group.members), began_s)
        finally:
            self._close(group)
            for _, fate in group.members:
                _tell(fate, Again(alone=True))

    def _send_away(self, group: _Group[M]) -> None:
        """Before anything of theirs is begun: those who waited too long, and those who went away."""
        for member, fate in group.members:
            if not fate.done() and not member.begin_in_time():
                self._swings.ws.tallies.add(Tallied.QUEUE_TOO_OLD)
                _tell(fate, TooLate())
        group.members = [(member, fate) for member, fate in group.members if not fate.done()]

    def _close(self, group: _Group[M]) -> None:
        if self._forming.get(group.entry.uuid) is group:
            del self._forming[group.entry.uuid]

    async def _alone(self, group: _Group[M], place: Place) -> None:
        [(member, fate)] = group.members
        try:
            _tell(fate, Done(await member.commit_alone(group.entry, place)))
        except ArcoError as error:
            if not fate.done():
                fate.set_exception(error)

    # Several

    async def _together(self, group: _Group[M]) -> None:
        try:
            base = await self._base(group.entry)
        except ArcoError:
            return
        if base is None:
            return
        chain = self._computed(group, base)
        staged = await self._staged(group.entry, base, chain)
        if staged:
            await self._swing(group.entry, staged)

    async def _base(self, entry: Entry) -> Base[M] | None:
        """What this process remembers, or what there is; None if the table's name and pointer are not in step."""
        known = self._swings.bases.known(entry.uuid)
        base = known if known is not None else await self._swings.bases.settled(entry.uuid)
        return base if base is not None and in_step(entry, base.pointer) else None

    def _computed(self, group: _Group[M], base: Base[M]) -> "list[_Link[M]]":
        """Each on the version of the one before it. Who does not apply there, or changes nothing, is left for itself."""
        chain: list[_Link[M]] = []
        for member, fate in group.members:
            if fate.done():
                continue  # it went away
            try:
                prepared = member.computed(base, chain[-1].prepared.after if chain else None)
            except ArcoError:
                continue
            if not prepared.changes_nothing:
                chain.append(_Link(member, fate, prepared))
        return chain

    async def _staged(self, entry: Entry, base: Base[M], chain: "list[_Link[M]]") -> "list[_Link[M]]":
        """Everything before the swing, in one round: as many as may be swung, from the first on."""
        ws = self._swings.ws
        seen = ws.tier1.seen
        names_check = asyncio.ensure_future(ws.tier1.is_unchanged(seen))
        receipts = [asyncio.ensure_future(one) for one in self._swings.receipts_owed(base)]
        writes = [asyncio.ensure_future(link.member.write(link.prepared)) for link in chain]
        await asyncio.wait([names_check, *receipts, *writes])
        whole = _whole(chain, writes)
        if [one for one in (names_check, *receipts) if one.exception() is not None]:
            return []
        if not names_check.result():
            await ws.tier1.renewed()
        reach("commit.staged")
        return _while_they_may(whole, entry)

    async def _swing(self, entry: Entry, chain: "list[_Link[M]]") -> None:
        pairs = [(link.prepared, link.member.published(link.prepared)) for link in chain]
        outcome = await self._swings.swing(pairs)
        match outcome:
            case Swung() | Overtaken():
                work = self._swings.write_receipts(entry.uuid, [published for _, published in pairs])
                self._swings.ws.afterwards.do(work)
                self._swings.ws.tallies.add(Tallied.GROUPED, len(chain))
                for link in chain:
                    _tell(link.fate, Landed(link.prepared))
            case Lost() | Unknown():
                for link in chain:
                    _tell(link.fate, Open(link.prepared, outcome))


class _Turn(Generic[M]):
    """A turn at a table for one alone. Every commit takes one: a generator made into a manager would cost several times this."""

    __slots__ = ("_began_s", "_groups", "_place", "_uuid")

    def __init__(self, groups: Groups[M], uuid: str) -> None:
        self._groups = groups
        self._uuid = uuid
        self._place = Place()
        self._began_s = 0.0

    async def __aenter__(self) -> Place:
        self._groups.comes(self._uuid)
        try:
            self._place, self._began_s = await self._groups.first(self._uuid)
        except BaseException:
            self._groups.goes(self._uuid)
            raise
        return self._place

    async def __aexit__(self, *_: object) -> None:
        try:
            self._groups.ended(self._uuid, self._place, self._began_s)
        finally:
            self._groups.goes(self._uuid)


@dataclass(frozen=True, slots=True)
class _Link(Generic[M]):
    """One commit of a group."""

    member: Member[M]
    fate: "asyncio.Future[Fate[M]]"
    prepared: Prepared[M]


def _whole(chain: "list[_Link[M]]", writes: "Sequence[asyncio.Future[Prepared[M] | None]]") -> "list[_Link[M]]":
    """The commits from the first on whose every part is written. Who failed hears why, who stands behind it begins anew."""
    whole: list[_Link[M]] = []
    broken = False
    for link, write in zip(chain, writes, strict=True):
        error = write.exception()
        if error is not None:
            broken = True
            if not link.fate.done():
                link.fate.set_exception(error)
            continue
        written = write.result()
        if written is None:
            broken = True
            _tell(link.fate, InUse())
        elif broken:
            _tell(link.fate, Again())
        else:
            whole.append(_Link(link.member, link.fate, written))
            broken = written is not link.prepared
    return whole


def _while_they_may(chain: "list[_Link[M]]", entry: Entry) -> "list[_Link[M]]":
    """The commits from the first on whose name still means this table (C2), and that are not too late."""
    may: list[_Link[M]] = []
    for number, link in enumerate(chain):
        if not link.member.is_in_time():
            _tell(link.fate, Again(alone=True))
        elif len(may) < number or not link.member.is_named(entry):
            _tell(link.fate, Again())
        else:
            may.append(link)
    return may


def _tell(fate: "asyncio.Future[Any]", what: object) -> None:
    """Nobody listens any more if the request went away."""
    if not fate.done():
        fate.set_result(what)

"""The short form of the store contract: may this store be trusted with commits?

Stores exist that answer 200 to every conditional write and ignore the condition, and stores that honour it except when two
writers meet. Both lose commits without a word. So a root is tested before it is used: `arco doctor` prints the answers, and
a root that fails is refused. The probes live under a prefix of their own and are removed at the end.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from arco.kernel.clock import Clock
from arco.kernel.entropy import Entropy
from arco.kernel.errors import StoreUnsuitable
from arco.kernel.ids import UlidSource
from arco.storage.paging import walk
from arco.storage.port import Absent, Always, Condition, Landed, Lost, Matches, ObjectStore, Outcome, Version
from arco.storage.readback import put_settled

_RIVALS = 8
_RACES = 5


@dataclass(frozen=True, slots=True)
class Finding:
    """One question to the store, and whether its answer was right."""

    question: str
    ok: bool
    detail: str = ""


class SelfTest:
    """Asks one store the questions that matter, under a prefix nobody else uses."""

    def __init__(self, store: ObjectStore, clock: Clock, entropy: Entropy) -> None:
        self._store = store
        self._clock = clock
        self._entropy = entropy
        self._prefix = f"_arco_doctor/{UlidSource(clock, entropy).next().lower()}/"

    async def run(self) -> list[Finding]:
        """Every finding in order. Raises only if the store cannot be reached or refuses us."""
        questions: tuple[tuple[str, Callable[[], Awaitable[str]]], ...] = (
            ("what is written can be read at once", self._reads_back),
            ("a taken name is not created again", self._creates_once),
            ("a swap of the current version lands, a stale one does not", self._swaps),
            ("a swap of a missing object creates nothing", self._swaps_nothing),
            ("a state that returns has a version of its own, or equal bytes", self._tells_versions),
            (f"of {_RIVALS} creators at once exactly one wins", self._creators_race),
            (f"of {_RIVALS} swappers at once exactly one wins", self._swappers_race),
            ("a listing shows every name, in pages", self._lists),
            ("a range of bytes can be read", self._reads_ranges),
        )
        await self._store.head(f"{self._prefix}reachable")
        findings = []
        try:
            for question, ask in questions:
                objection = await ask()
                findings.append(Finding(question, not objection, objection))
        finally:
            await self._clean_up()
        return findings

    async def _put(self, name: str, data: bytes, condition: Condition) -> Outcome:
        return await put_settled(
            self._store, f"{self._prefix}{name}", data, condition, clock=self._clock, entropy=self._entropy
        )

    async def _start(self, name: str, data: bytes) -> Version:
        match await self._put(name, data, Always()):
            case Landed(version) if version is not None:
                return version
            case outcome:
                raise StoreUnsuitable(f"a plain write did not land: {outcome}")

    async def _data(self, name: str) -> bytes | None:
        found = await self._store.get(f"{self._prefix}{name}")
        return None if found is None else found.data

    async def _reads_back(self) -> str:
        for number in range(5):
            await self._start("fresh", str(number).encode())
            if (found := await self._data("fresh")) != str(number).encode():
                return f"wrote {number}, read {found!r}"
        return ""

    async def _creates_once(self) -> str:
        first = await self._put("once", b"first", Absent())
        second = await self._put("once", b"second", Absent())
        if not isinstance(first, Landed) or not isinstance(second, Lost):
            return f"the first create {_said(first)}, the second {_said(second)}"
        return "" if await self._data("once") == b"first" else "the second create overwrote the first"

    async def _swaps(self) -> str:
        base = await self._start("swap", b"base")
        fresh = await self._put("swap", b"fresh", Matches(base))
        stale = await self._put("swap", b"stale", Matches(base))
        if not isinstance(fresh, Landed) or not isinstance(stale, Lost):
            return f"the swap of the current version {_said(fresh)}, that of the old one {_said(stale)}"
        return "" if await self._data("swap") == b"fresh" else "a stale swap overwrote a newer state"

    async def _swaps_nothing(self) -> str:
        version = await self._start("something", b"x")
        outcome = await self._put("missing", b"ghost", Matches(version))
        if isinstance(outcome, Landed) or await self._data("missing") is not None:
            return "a swap of a missing object created it"
        return ""

    async def _tells_versions(self) -> str:
        first = await self._start("versions", b"a")
        second = await self._start("versions", b"b")
        return "two different states have one version" if first == second else ""

    async def _creators_race(self) -> str:
        return await self._races([(f"race-{race}", Absent()) for race in range(_RACES)], "creators")

    async def _swappers_race(self) -> str:
        names = [f"swap-race-{race}" for race in range(_RACES)]
        return await self._races([(name, Matches(await self._start(name, b"base"))) for name in names], "swappers")

    async def _races(self, races: list[tuple[str, Condition]], who: str) -> str:
        """All races together, each on a name of its own: some stores make rivals wait for a second or more."""
        objections = await asyncio.gather(*(self._race(name, condition, who) for name, condition in races))
        return next((objection for objection in objections if objection), "")

    async def _race(self, name: str, condition: Condition, who: str) -> str:
        """Rivals at once: one is told that it won, and its bytes are the ones that stand."""
        bodies = [f"{who} {one}".encode() for one in range(_RIVALS)]
        outcomes = await asyncio.gather(*(self._put(name, body, condition) for body in bodies))
        winners = [body for body, outcome in zip(bodies, outcomes, strict=True) if isinstance(outcome, Landed)]
        if len(winners) != 1:
            return f"{len(winners)} {who} were told that they won"
        return "" if await self._data(name) == winners[0] else "the bytes of a loser stand"

    async def _lists(self) -> str:
        names = [f"list/{number}" for number in range(7)]
        for name in names:
            await self._start(name, b"")
        found = [entry.key async for entry in walk(self._store, f"{self._prefix}list/", page_keys=3)]
        return "" if found == [self._prefix + name for name in names] else f"listed {len(found)} of {len(names)} names"

    async def _reads_ranges(self) -> str:
        await self._start("range", b"0123456789")
        found = await self._store.get_range(f"{self._prefix}range", 3, 4)
        return "" if found == b"3456" else f"bytes 3 to 6 of 0123456789 were {found!r}"

    async def _clean_up(self) -> None:
        for key in [entry.key async for entry in walk(self._store, self._prefix)]:
            await self._store.delete(key)


def _said(outcome: Outcome) -> str:
    return f"was answered '{type(outcome).__name__.lower()}'"


async def require_suitable(store: ObjectStore, clock: Clock, entropy: Entropy) -> None:
    """Raise StoreUnsuitable with the first wrong answer, if there is one."""
    for finding in await SelfTest(store, clock, entropy).run():
        if not finding.ok:
            raise StoreUnsuitable(f"this store fails '{finding.question}': {finding.detail}")

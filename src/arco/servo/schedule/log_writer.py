"""The one place of a driver that reads and writes its run's log: many proposals, one object.

A proposal is a function from the state to entries. It is called again on the newer state whenever its slot was lost, so it must
decide on what it is given, and say nothing if what it wants is so already: after a reply that never came, nobody knows
whether the entry is there, and the log answers. Proposals that arrive while an object is being written go out together in the
next one, followed by what follows from them all; so an end and the next claims share one object.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from arco.kernel.clock import Clock
from arco.kernel.entropy import Entropy
from arco.kernel.errors import ArcoError, AskHistory, RetryLater, TooLarge
from arco.kernel.limits import RUN_LOG_BYTES_MAX, RUN_LOG_TRIES_MAX
from arco.ledger.run_entries import AnyEntry, encoded_size
from arco.ledger.run_log import RunLog
from arco.ledger.run_state import RunState
from arco.storage.readback import pause_s

_PROPOSED_BYTES_MAX = RUN_LOG_BYTES_MAX // 2
"""What is proposed leaves room in its object for what follows from it."""

Decide = Callable[[RunState], Sequence[AnyEntry]]
Announce = Callable[[AnyEntry, RunState], AnyEntry]


@dataclass(eq=False, slots=True)
class _Proposal:
    decide: Decide
    decided: asyncio.Future[None]
    on_news: bool


@dataclass(slots=True)
class _Trial:
    """What came of trying a group on one state."""

    decided: list[_Proposal]
    refused: list[tuple[_Proposal, ArcoError]]
    entries: list[AnyEntry]


class LogWriter:
    """Appends for one driver. `follow_up` applies what it decides to the state that it is given.

    What is known of the log is a beginning of it, so winning the next slot proves that it was all of it: nothing is read before
    an object is written, unless somebody asks for news or a proposal would be refused.
    """

    def __init__(self, log: RunLog, follow_up: Decide, announce: Announce, clock: Clock, entropy: Entropy) -> None:
        self.log = log
        self._follow_up = follow_up
        self._announce = announce
        self._clock = clock
        self._entropy = entropy
        self._waiting: list[_Proposal] = []
        self._running: asyncio.Task[None] | None = None

    @property
    def state(self) -> RunState:
        return self.log.state

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being decided."""
        return not self._waiting and (self._running is None or self._running.done())

    async def propose(self, decide: Decide, *, on_news: bool = False) -> None:
        """Have something decided. Returns when the log says so; raises why it does not follow, or that the store is silent."""
        proposal = _Proposal(decide, asyncio.get_running_loop().create_future(), on_news)
        self._waiting.append(proposal)
        if self._running is None or self._running.done():
            self._running = asyncio.get_running_loop().create_task(self._run())
        await proposal.decided

    async def nudge(self) -> None:
        """Write what follows from the state by itself."""
        await self.propose(_nothing)

    async def look(self) -> None:
        """Read what others appended, and write what follows from it."""
        await self.propose(_nothing, on_news=True)

    async def _run(self) -> None:
        while self._waiting:
            group, self._waiting = self._waiting, []
            try:
                await self._settle(group)
            except Exception as error:  # noqa: BLE001 - whoever waits must hear of it, whatever it is
                for one in group:
                    _tell(one, error)

    async def _settle(self, group: list[_Proposal]) -> None:
        """Until every proposal of a group is in the log, or is refused."""
        silent: RetryLater | AskHistory | None = None
        read = any(one.on_news for one in group)
        for attempt in range(RUN_LOG_TRIES_MAX):
            if silent is not None:
                await self._clock.sleep(pause_s(min(attempt, 6), self._entropy))
            try:
                if read:
                    await self.log.catch_up()
                trial = self._try(group)
                if trial.refused and not read:
                    read = True
                    continue
                for one, error in trial.refused:
                    _tell(one, error)
                if not trial.entries or await self.log.append(trial.entries):
                    for one in trial.decided:
                        _tell(one, None)
                silent = None
            except (RetryLater, AskHistory) as error:
                silent = error
            read = True
            group = [one for one in group if not one.decided.done()]
            if not group:
                return
        raise silent or RetryLater(f"the log of run {self.log.run} was written by others all the time")

    def _try(self, group: list[_Proposal]) -> _Trial:
        """The proposals that hold now, and the entries of all of them with what follows."""
        trial = _Trial([], [], [])
        size_bytes = 0
        now_ms = self._clock.now_ms()
        with self.state.trial():
            for one in group:
                try:
                    made, its_bytes = self._made(one, now_ms)
                except ArcoError as error:
                    trial.refused.append((one, error))
                    continue
                size_bytes += its_bytes
                if trial.decided and size_bytes > _PROPOSED_BYTES_MAX:
                    break
                for entry in made:
                    self.state.apply(entry, now_ms)
                trial.entries.extend(made)
                trial.decided.append(one)
            trial.entries.extend(self._follow_up(self.state))
            trial.entries[:] = [self._announce(entry, self.state) for entry in trial.entries]
        return trial

    def _made(self, one: _Proposal, now_ms: int) -> tuple[tuple[AnyEntry, ...], int]:
        """The entries of a proposal, which hold, and their size."""
        with self.state.trial():
            made = tuple(one.decide(self.state))
            for entry in made:
                self.state.apply(entry, now_ms)
        size_bytes = encoded_size(made) if made else 0
        if size_bytes > _PROPOSED_BYTES_MAX:
            raise TooLarge(f"{size_bytes} bytes to be written down at once", hint=f"at most {_PROPOSED_BYTES_MAX}")
        return made, size_bytes


def _tell(one: _Proposal, error: Exception | None) -> None:
    if one.decided.done():
        return
    if error is None:
        one.decided.set_result(None)
    else:
        one.decided.set_exception(error)


def _nothing(_state: RunState) -> tuple[AnyEntry, ...]:
    return ()

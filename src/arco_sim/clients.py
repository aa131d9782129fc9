"""Clients that outlive servers: they send a request to one, lose patience, and send the same again to another.

A client does one thing after the other. A request that got no answer in time, or an answer that leaves it open, goes to the next
server under the same key, while the first may still be at work on it. An answer that comes after its client has given up on it
is heard by nobody. What must never enter: what a request means. That is the scenario's.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from arco.catalog.doubt import doubt
from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import ArcoError, AskHistory, AskOperator, FixRequest, OutcomeUnknown, Refresh, RetryLater
from arco.kernel.ids import new_uuid7
from arco_sim.invariants import UNEXPECTED
from arco_sim.linearizability import Operation
from arco_sim.scenario import violate
from arco_sim.world import Env, World

PATIENCE_S = 60.0
PAUSE_S = 180.0
TRIES_MAX = 7
_GIVING_UP_EVERY = 3


@dataclass(eq=False, slots=True)
class Request:
    """What one client wishes, and what it heard. `known` is what the client knows since it first sent it."""

    client: int
    number: int
    wish: str
    key: str = ""
    known: dict[str, Any] = field(default_factory=dict)
    server: int = 0
    tries: int = 0
    attempt: int = 0
    under_way: bool = False
    sent_at_s: float = 0.0
    not_before_s: float = 0.0
    answer: Any = None
    refusal: ArcoError | None = None
    cleaned_up: bool = False
    done: bool = False
    called_at: int = 0
    returned_at: int | None = None
    heard: set[str] = field(default_factory=set)

    def __str__(self) -> str:
        return f"{self.wish} {self.client}-{self.number}"

    @property
    def kind(self) -> str:
        """The first word of the wish."""
        return self.wish.partition(" ")[0]

    @property
    def landed(self) -> bool:
        """The client was told that it was done."""
        return self.answer is not None

    def operation(self, name: str, argument: Any, result: Any, *, key: str = "catalog") -> Operation:
        """The request as a line of a history. Without an answer its outcome is unknown."""
        client = f"client {self.client}"
        return Operation(client, key, name, argument, result, self.called_at, self.returned_at)


Serve = Callable[[Request], Awaitable[Any]]


async def written(request: Request, write: Callable[[], Awaitable[dict[str, Any]]]) -> Any:
    """The body that the client sends, written once with what else it knows then: it may have to read for it. What it cannot
    read is no answer to its request, and who has given up meanwhile sends nothing."""
    if not request.known:
        attempt = request.attempt
        with doubt():
            known = await write()
        # Another attempt may have been quicker to read: one request has one body.
        request.known = request.known or known
        if request.attempt != attempt or not request.under_way:
            raise OutcomeUnknown("its client no longer waits for it")
    return request.known["body"]


async def nothing_but(body: Awaitable[Any]) -> dict[str, Any]:
    """For requests of which a client knows no more than what it sends."""
    return {"body": await body}


class Clients:
    """All clients of a run, and the servers they know, by number."""

    def __init__(self, world: World, scripts: list[list[str]], servers: int) -> None:
        self.world = world
        self.servers = servers
        self.requests = [
            Request(client, number, wish, server=client % servers)
            for client, script in enumerate(scripts)
            for number, wish in enumerate(script)
        ]
        self._entropy = SeededEntropy(f"{world.seed}/clients")

    @property
    def everything_done(self) -> bool:
        return all(request.done for request in self.requests)

    async def serve(self, env: Env, number: int, work: Serve, *, at_once: int = 2) -> None:
        """Be server `number`: take what is sent here until no client wants anything more."""
        tasks: set[asyncio.Task[None]] = set()
        while not self.everything_done:
            request = self._next_for(number) if len(tasks) < at_once else None
            if request is not None:
                attempt = self._begin(request)
                tasks.add(asyncio.get_running_loop().create_task(self._attempt(request, attempt, work)))
                continue
            if len(tasks) >= at_once:
                finished, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            else:
                pause = asyncio.get_running_loop().create_task(env.clock.sleep(self._idle_s()))
                finished, _ = await asyncio.wait([*tasks, pause], return_when=asyncio.FIRST_COMPLETED)
                pause.cancel()
            for task in finished & tasks:
                task.result()
            tasks -= finished
        await asyncio.gather(*tasks)

    def _idle_s(self) -> float:
        """Until a client may lose its patience, or the next of them wishes for anything at all."""
        soonest_s = min((request.not_before_s for request in self.requests if not request.done), default=0.0)
        return max(PATIENCE_S, soonest_s - self.world.loop.now_s)

    def _next_for(self, server: int) -> Request | None:
        """What a client would send here now."""
        now_s = self.world.loop.now_s
        ahead = set()
        for request in self.requests:
            if request.done or request.client in ahead:
                continue
            ahead.add(request.client)
            last_s = request.sent_at_s if request.under_way else request.not_before_s
            if now_s >= last_s + PATIENCE_S:
                self._leave_open(request, "silence")
            if self._is_for(request, server):
                return request
        return None

    def _is_for(self, request: Request, server: int) -> bool:
        ready = self.world.loop.now_s >= request.not_before_s
        return ready and request.server == server and not request.under_way and not request.done

    def _leave_open(self, request: Request, heard: str) -> None:
        """No answer, or one that is none: the next server is asked after a while."""
        request.heard.add(heard)
        request.under_way = False
        request.server = (request.server + 1) % self.servers
        pause_s = 0.0 if heard == "silence" else PAUSE_S
        request.not_before_s = self.world.loop.now_s + pause_s
        request.done = request.tries >= TRIES_MAX

    def _begin(self, request: Request) -> int:
        if not request.key:
            request.key = new_uuid7(_StoreTime(self.world), self._entropy)
            request.called_at = self.world.moment()
        request.tries += 1
        request.attempt += 1
        request.under_way = True
        request.sent_at_s = self.world.loop.now_s
        return request.attempt

    async def _attempt(self, request: Request, attempt: int, work: Serve) -> None:
        try:
            answer = await work(request)
        except (RetryLater, AskHistory, FixRequest, Refresh) as error:
            answer = error
        except AskOperator as error:
            # Nobody damages anything where there are clients: whatever cannot be read, somebody wrote so.
            violate(self.world, UNEXPECTED, f"{request} needs an operator: {error.message}")
            raise
        if request.under_way and request.attempt == attempt:
            self._hear(request, answer)

    def _hear(self, request: Request, answer: Any) -> None:
        match answer:
            case RetryLater():
                self._hear_a_pause(request)
            case AskHistory():
                self._leave_open(request, "unknown")
            case FixRequest() | Refresh():
                request.under_way, request.done, request.refusal = False, True, answer
                request.returned_at = self.world.moment()
            case _:
                request.under_way, request.done, request.answer = False, True, answer
                request.returned_at = self.world.moment()

    def _hear_a_pause(self, request: Request) -> None:
        """503 says that nothing happened and nothing will: a client may clean up, whomever else it asked before."""
        if (request.client + request.number) % _GIVING_UP_EVERY == 0:
            request.under_way, request.done, request.cleaned_up = False, True, True
        else:
            self._leave_open(request, "pause")


class _StoreTime:
    """The true time. A key's own time is its client's, and clients' clocks are right here."""

    def __init__(self, world: World) -> None:
        self._world = world

    def now_ms(self) -> int:
        return self._world.store_time_ms()

    def monotonic_s(self) -> float:
        return self._world.loop.now_s

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

"""One store, many servers: a test decides what happens to single requests on the way from one server to it.

A `Line` is a server's way to the store. Rules are made before the request they are about, are used once, and say what it meets:
a rival who is quicker, silence, a lost reply, or a long wait on the way, at the end of which the request arrives although
whoever sent it is dead. Everything else passes.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from arco.kernel.errors import Unavailable
from arco.storage.memory import MemoryStore
from arco.storage.port import Condition, Object, ObjectInfo, Outcome, Page, SignedMethod, Unknown

Effect = Callable[[], Awaitable[Any]]
Action = Callable[[], Awaitable[object]]


class Delayed:
    """A request on its way. `holds` begins some work and waits until it has sent the request; `land` is the moment the
    store gets it, `answer` the reply."""

    def __init__(self) -> None:
        self._sent = asyncio.Event()
        self._answered = asyncio.Event()
        self._effect: Effect | None = None
        self._result: Any = None
        self._landed = False

    async def wait(self, effect: Effect) -> Any:
        self._effect = effect
        self._sent.set()
        await self._answered.wait()
        return self._result

    async def holds(self, work: Awaitable[Any]) -> "asyncio.Future[Any]":
        """The work goes on by itself, up to this request and after its answer. Nobody has to wait for its end."""
        working: asyncio.Future[Any] = asyncio.ensure_future(work)
        working.add_done_callback(lambda done: done.cancelled() or done.exception())
        sent = asyncio.ensure_future(self._sent.wait())
        await asyncio.wait([working, sent], return_when=asyncio.FIRST_COMPLETED)
        sent.cancel()
        assert self._sent.is_set(), "the work came to its end without this request"
        return working

    async def land(self) -> Any:
        """The store gets it now. Nobody hears the reply."""
        assert self._effect is not None, "the request was never sent"
        assert not self._landed, "a request lands once"
        self._landed = True
        self._result = await self._effect()
        return self._result

    async def answer(self) -> None:
        """The store gets it now, if it has not yet, and the reply is heard."""
        if not self._landed:
            await self.land()
        self._answered.set()

    def fall_silent(self) -> None:
        """The reply to a write never comes, and whoever waits for it has heard so."""
        self._result = Unknown("the reply got lost")
        self._answered.set()


@dataclass(eq=False)
class _Rule:
    what: str
    part: str
    skip: int
    meet: Callable[[Effect], Awaitable[Any]]


@dataclass
class Line:
    """One server's way to a shared store."""

    shared: MemoryStore
    asked: list[str] = field(default_factory=list)
    _rules: list[_Rule] = field(default_factory=list)
    _cut: bool = False

    # What a test may decide

    def before(self, what: str, part: str, action: Action, *, skip: int = 0) -> None:
        """Something happens just before a request reaches the store. `skip` so many requests like it first."""

        async def meet(effect: Effect) -> Any:
            await action()
            return await effect()

        self._rules.append(_Rule(what, part, skip, meet))

    def after(self, what: str, part: str, action: Action, *, skip: int = 0) -> None:
        """Something happens between the effect of a request and its reply."""

        async def meet(effect: Effect) -> Any:
            result = await effect()
            await action()
            return result

        self._rules.append(_Rule(what, part, skip, meet))

    def reached(self, what: str, part: str, *, skip: int = 0) -> asyncio.Event:
        """Says when a request has reached the store and had its effect."""
        event = asyncio.Event()

        async def tell() -> None:
            event.set()

        self.after(what, part, tell, skip=skip)
        return event

    def delay(self, what: str, part: str, *, skip: int = 0) -> Delayed:
        delayed = Delayed()
        self._rules.append(_Rule(what, part, skip, delayed.wait))
        return delayed

    def lose(self, what: str, part: str, *, skip: int = 0) -> None:
        """The request has its effect, and its reply is lost."""

        async def meet(effect: Effect) -> Any:
            await effect()
            return _silence(what)

        self._rules.append(_Rule(what, part, skip, meet))

    def fail(self, what: str, part: str, *, times: int = 1, skip: int = 0) -> None:
        """The store cannot be reached, and nothing is done. A write is known not to have been sent."""

        async def meet(_: Effect) -> Any:
            raise Unavailable("the store cannot be reached")

        self._rules += [_Rule(what, part, skip, meet) for _ in range(times)]

    def cut(self) -> None:
        """The server is gone: nothing that it asks from now on is answered, or arrives."""
        self._cut = True

    # What a server asks

    async def _ask(self, what: str, key: str, effect: Effect) -> Any:
        if self._cut:
            await asyncio.get_running_loop().create_future()
        self.asked.append(f"{what} {key}")
        for rule in self._rules:
            if rule.what == what and rule.part in key:
                if rule.skip:
                    rule.skip -= 1
                    continue
                self._rules.remove(rule)
                return await rule.meet(effect)
        await asyncio.sleep(0)
        return await effect()

    @property
    def used_up(self) -> bool:
        """Whether everything that was decided has happened."""
        return not self._rules

    async def get(self, key: str) -> Object | None:
        found: Object | None = await self._ask("get", key, lambda: self.shared.get(key))
        return found

    async def get_range(self, key: str, start: int, length: int) -> bytes | None:
        found: bytes | None = await self._ask("get", key, lambda: self.shared.get_range(key, start, length))
        return found

    async def head(self, key: str) -> ObjectInfo | None:
        found: ObjectInfo | None = await self._ask("head", key, lambda: self.shared.head(key))
        return found

    async def put(self, key: str, data: bytes, condition: Condition) -> Outcome:
        outcome: Outcome = await self._ask("put", key, lambda: self.shared.put(key, data, condition))
        return outcome

    async def delete(self, key: str) -> None:
        await self._ask("delete", key, lambda: self.shared.delete(key))

    async def list_page(self, prefix: str, after: str = "", limit: int = 1000) -> Page:
        page: Page = await self._ask("list", prefix, lambda: self.shared.list_page(prefix, after, limit))
        return page

    async def sign(self, key: str, method: SignedMethod, ttl_s: int) -> str:
        raise AssertionError("nothing here signs")

    async def close(self) -> None:
        return


def _silence(what: str) -> Unknown:
    if what == "put":
        return Unknown("the reply got lost")
    raise Unavailable("the reply got lost")

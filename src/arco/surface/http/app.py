"""The ASGI application: read a request within limits, find its handler, answer in time, and never show the inside.

    headers → route → access → room → body → handler, here or in the worker that owns what it changes → answer → log

A handler is never cancelled: not when its client goes away, and not when it takes too long. Then the client is told what is
known, and the work goes on to its end. What must never enter: anything that knows what a request means.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from msgspec.structs import replace

from arco.kernel.errors import ArcoError, RetryLater
from arco.kernel.ids import UlidSource
from arco.kernel.secret import Secret
from arco.storage.counted import Trips, counting
from arco.surface.http.access import Access
from arco.surface.http.api import api_endpoints
from arco.surface.http.begun import Rest
from arco.surface.http.bodies import Bodies, Receive
from arco.surface.http.bounds import Bounds
from arco.surface.http.call import Call, Head, Scope, Send, Write
from arco.surface.http.crew import Crew, Owner
from arco.surface.http.deadlines import Deadlines
from arco.surface.http.exchange import Again, Request, Response, decode_query
from arco.surface.http.failures import failure, hidden, no_room, overdue, refusal
from arco.surface.http.handed_over import HANDED_OVER, TRIPS, asked, done_for, heard
from arco.surface.http.iceberg import iceberg_routes
from arco.surface.http.link_tokens import LinkTokens
from arco.surface.http.metrics_routes import MetricsRoutes
from arco.surface.http.oauth import OAuthRoutes
from arco.surface.http.origins import preflight
from arco.surface.http.probes import ProbeRoutes
from arco.surface.http.problems import MEDIA_TYPE, as_problem, speaks_problems
from arco.surface.http.request_log import facts, log_request
from arco.surface.http.routes import NO_ROUTE, Door, Found, Lane, Route, Routes, route
from arco.surface.http.server_state import ServerState
from arco.surface.http.welcome import About, WelcomeRoutes

log = logging.getLogger("arco.http")


@dataclass(frozen=True, slots=True)
class Setup:
    """How one server is set up."""

    access: Access = field(default_factory=Access)
    bounds: Bounds = field(default_factory=Bounds)
    about: About = field(default_factory=About)
    oauth: bool = False
    link_key: Secret | None = None


class Beside(Protocol):
    """What works in the same process for as long as the server runs."""

    def start(self) -> None: ...

    async def stop(self) -> None: ...


class App:
    """One server's application."""

    def __init__(
        self,
        state: ServerState,
        ulids: UlidSource,
        setup: Setup | None = None,
        more: Sequence[Route] = (),
        beside: Sequence[Beside] = (),
        crew: Crew | None = None,
    ) -> None:
        setup = setup or Setup()
        self._crew = crew or Crew(state.clock)
        self.metrics = self._metrics = state.metrics
        self._state = state
        self._ulids = ulids
        self._access = setup.access
        self._bounds = setup.bounds
        self._bodies = Bodies(setup.bounds)
        self._under_way = 0
        self._deadlines = Deadlines(setup.bounds.request_s, self._give_up)
        self._beside = beside
        self._late_answers: set[asyncio.Task[None]] = set()
        self._probes = ProbeRoutes(state, setup.bounds.ready_s)
        self._watch = MetricsRoutes(state, setup.bounds.request_s)
        tokens = LinkTokens.of(setup.link_key, state.entropy)
        endpoints = api_endpoints(state, tokens, setup.about.scheme)
        self.routes = Routes(
            [
                *iceberg_routes(state),
                *(one.route for one in endpoints),
                *(route("OPTIONS", one.path, preflight, Door.LINK, across=True) for one in endpoints if one.across),
                *self._probes.routes(),
                *self._watch.routes(),
                *WelcomeRoutes(setup.about, setup.access).routes(),
                *(OAuthRoutes(setup.access).routes() if setup.oauth else ()),
                *more,
            ]
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        client = scope["client"][0] if scope.get("client") else ""
        call = self.called(Head.in_scope(scope), client)
        call.go_on(receive, send)
        call.is_handed_over = HANDED_OVER in scope
        await self.exchange(call)
        scope[TRIPS] = call.trips

    def called(self, head: Head, client: str, write: Write | None = None) -> Call:
        """A request that was heard just now."""
        return Call(head, head.request_id or self._ulids.next(), client, self._now_s(), write)

    def answers_again(self, call: Call, again: Again) -> bool:
        """Answer a request as the same one was answered before, at once. False if that is not to be had: nothing was sent then.

        `again` is of an answer of this application to a request with the very same head.
        """
        found = self.routes.at(call.method, call.head.raw_path)
        if not isinstance(found, Found) or call.write is None:
            return False
        call.route, call.operation = found.route, found.operation
        if self._refused(call) is not None:
            return False
        with counting(call.operation) as trips:
            response = again()
        call.trips += trips.count
        if response is None:
            return False
        call.answer_whole(response, call.write)
        call.again = again
        self._told(call)
        return True

    async def exchange(self, call: Call) -> None:
        """Answer a request. Of one without a body this may be begun without a task (`begun.py`)."""
        with counting(NO_ROUTE) as trips:
            response = await self._response(call, trips)
            call.trips += trips.count
            await self._answer(call, response)

    async def _response(self, call: Call, trips: Trips) -> Response | None:
        """What to answer; None if the client went away before its request was complete."""
        try:
            call.check_headers()
            found = self.routes.at(call.method, call.head.raw_path)
            if not isinstance(found, Found):
                return self._refused(call) or _not_here(found)
            call.route = found.route
            trips.operation = call.operation = found.operation
            refused = self._refused(call)
            if refused is not None:
                return refused
            if call.body_is_unread:
                return await self._read_and_handled(call, found)
            return await self._handled(call, found, b"")
        except ArcoError as error:
            return self._failed(call, error)
        except asyncio.CancelledError:
            # The server ends and does not wait any longer. What was begun is as it would be after a crash.
            log.warning("a request was cut off by the end of the server", extra=facts(call, self._now_s()))
            return _overdue(call)
        except Exception:
            log.exception("request failed", extra=facts(call, self._now_s()))
            return hidden(call.request_id)

    def _refused(self, call: Call) -> Response | None:
        """Why a request is not looked at any further."""
        across = call.route is not None and call.route.across
        door = call.route.door if call.route else Door.TOKEN
        if door is Door.TOKEN:
            return self._access.refused(call.headers, across=across) or self._no_room(call)
        match door:
            case Door.PROBE:
                return None
            case Door.OPEN | Door.LINK:
                return self._access.refused_page(call.headers, across=across) or self._no_room(call)
            case Door.WATCH:
                return self._access.refused(call.headers, across=across)

    def _no_room(self, call: Call) -> Response | None:
        if self._under_way < self._bounds.requests_at_once:
            return None
        self._metrics.shed("requests")
        return no_room(may_have_landed=call.may_come_again)

    async def _read_and_handled(self, call: Call, found: Found) -> Response | None:
        # What a body takes to arrive is its client's time: only then does the request count.
        async with self._bodies.body(call.receive, call.headers) as body:
            if isinstance(body, bytes):
                return self._refused(call) or await self._handled(call, found, body)
            return body

    async def _handled(self, call: Call, found: Found, body: bytes) -> Response:
        head = call.head
        query = decode_query(head.query_string) if head.query_string else {}
        request = Request(
            call.method, call.path, found.segments, query, call.headers, body, call.request_id, self._access.principal
        )
        owner = None
        if found.route.lane is not Lane.NONE and not call.is_handed_over:
            owner = self._crew.owner(found.lane, len(body))
        work = found.route.handler(request) if owner is None else self._done_by(owner, call, found, request)
        try:
            waits_for = work.send(None)
        except StopIteration as done:
            response: Response = done.value
            return response
        # Who did not have to wait held nobody up: what is under way is what waits.
        self._deadlines.begin(call)
        self._under_way += 1
        self._metrics.working(1)
        try:
            return await Rest(work, waits_for)
        finally:
            self._under_way -= 1
            self._metrics.working(-1)
            self._deadlines.end(call)

    async def _done_by(self, owner: Owner, call: Call, found: Found, request: Request) -> Response:
        """What the worker that owns this answers; done here if it did not begin with it."""
        answer = await owner.ask(lambda number: asked(call, request.body, number))
        self._metrics.handed_over("here" if answer is None else "there")
        if answer is None:
            return await found.route.handler(request)
        call.trips = answer.trips
        return heard(answer)

    def _give_up(self, call: Call) -> None:
        """Answer in the place of a handler that takes too long, and let it go on."""
        task = asyncio.create_task(self._answer(call, _overdue(call)))
        self._late_answers.add(task)
        task.add_done_callback(self._late_answers.discard)

    async def _answer(self, call: Call, response: Response | None) -> None:
        if response is None:
            log.info("the client went away before its request was complete", extra=facts(call, self._now_s()))
            return
        if response.status >= 400 and speaks_problems(call.path) and response.headers.get("Content-Type") != MEDIA_TYPE:
            response = as_problem(response, call.request_id)
        if call.route is not None and call.route.across:
            told = {**response.headers, **self._access.origins.told(call.headers)}
            response = replace(response, headers=told, again=None)
        if call.is_answered:
            said = facts(call, self._now_s(), ended_with=response.status)
            log.warning("a request ended after its client was answered", extra=said)
        else:
            await self._sent(call, response)

    async def _sent(self, call: Call, response: Response) -> None:
        try:
            await call.answer(response, self._bounds.discard_s)
        except ArcoError as error:
            # It has begun and cannot be taken back: the connection ends before the body does, and so every client knows.
            log.error("cut off: %s: %s", error.code, error.one_line(), extra=facts(call, self._now_s()))  # noqa: TRY400
        self._told(call)

    def _told(self, call: Call) -> None:
        """That a request was answered, to who counts and who logs."""
        now_s = self._now_s()
        if not call.is_handed_over:
            self._metrics.request(call.operation, call.status or 0, now_s - call.started_s, call.trips)
        log_request(call, now_s)

    def _failed(self, call: Call, error: ArcoError) -> Response:
        response = failure(error, call.request_id, may_come_again=call.may_come_again)
        if response.status >= 500:
            level = logging.WARNING if isinstance(error, RetryLater) else logging.ERROR
            log.log(level, "%s: %s", error.code, error.one_line(), extra=facts(call, self._now_s()))
        return as_problem(response, call.request_id, error) if speaks_problems(call.path) else response

    def _now_s(self) -> float:
        return self._state.clock.monotonic_s()

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                # Without waiting for it: a server on a silent store says so at /ready, and does not hang.
                self._probes.look()
                await self._crew.open(lambda ask: done_for(self, ask), self._state.wake_fold_here)
                for one in self._beside:
                    one.start()
                await send({"type": "lifespan.startup.complete"})
            else:
                await self._end()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _end(self) -> None:
        """After the last request: finish what answers left to do, within a time."""
        await self._crew.close()
        for one in self._beside:
            await one.stop()
        await self._probes.end()
        await self._watch.end()
        settling = asyncio.create_task(self._state.settle())
        _, unfinished = await asyncio.wait({settling}, timeout=self._bounds.stop_s)
        if unfinished:
            log.warning("what answers left to do is not finished; the next commit of each table will see to it")
        self._state.libraries.close()
        await self._state.store.close()
        self._metrics.write()


def _overdue(call: Call) -> Response:
    return overdue(call.request_id, mutates=call.mutates, may_come_again=call.may_come_again)


def _not_here(methods: frozenset[str]) -> Response:
    if not methods:
        return refusal(404, "there is no such route")
    return refusal(405, "this route does not take that method", Allow=", ".join(sorted(methods)))

"""Requests without a body, answered where they are heard: no task, no scope, no second turn of the event loop.

A read of a folder that knows its tables is done before anybody else could be served, so it is begun in the parser's own callback.
What has to wait after all goes on as uvicorn has it, in a task of uvicorn's, and so does whatever is not plain: a body, an offer
of another protocol, a request that came behind another, a client that does not read. All the rules of `wire.py` hold here too.
What must never enter: what a request means, and whether it may be asked.
"""

import logging
import re
from collections.abc import Coroutine
from contextvars import Context, copy_context
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from arco.kernel.limits import ANSWER_JOINED_BYTES_MAX, KNOWN_HEAD_BYTES_MAX
from arco.surface.http.begun import Rest
from arco.surface.http.bodies import Receive
from arco.surface.http.bounds import Bounds
from arco.surface.http.call import Call, Head, RawHeaders, Scope, Send, Write
from arco.surface.http.exchange import Again
from arco.surface.http.known_heads import KnownHeads
from arco.surface.http.metrics import Metrics
from arco.surface.http.timers import LazyTimer
from arco.surface.http.wire import GuardedProtocol

log = logging.getLogger("arco.http")

# A value that holds an end of line would be two headers.
_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_METHODS = {b"GET": "GET", b"HEAD": "HEAD"}


class Application(Protocol):
    """What answers. `app.py` has the one there is."""

    def called(self, head: Head, client: str, write: Write) -> Call: ...

    def answers_again(self, call: Call, again: Again) -> bool: ...

    def exchange(self, call: Call) -> Coroutine[Any, Any, None]: ...


@dataclass(frozen=True, slots=True)
class _Begun:
    """A request that has to wait, and the context that it was begun in."""

    call: Call
    rest: Rest[None]
    context: Context

    async def go_on(self, _scope: Scope, receive: Receive, send: Send) -> None:
        self.call.go_on(receive, send)
        await self.rest


class DirectProtocol(GuardedProtocol):
    """One connection of a server with an application of ours."""

    application: ClassVar[Application]
    known: ClassVar[KnownHeads]

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        # As uvicorn's own, which is set and thrown away with every request.
        self._rest = LazyTimer(self.loop, self.timeout_keep_alive, self.timeout_keep_alive_handler)
        self._begun: _Begun | None = None
        self._answered: Call | None = None
        """The request whose head was parsed last, if that is all there is of it."""
        self._messages = 0
        self._is_between = True

    # What the event loop calls

    def connection_lost(self, exc: Exception | None) -> None:
        self._rest.end()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        is_begin = self._is_between and not self._idle_bytes
        if is_begin and len(data) <= KNOWN_HEAD_BYTES_MAX and self._is_plain():
            known = self.known.get(data)
            if known is not None:
                # What an answer of uvicorn's left running.
                self._unset_keepalive_if_required()
                self._head.stop()
                answered = self._answer_to(known.head, known.again)
                if answered is not None:
                    if answered.again is not known.again:
                        self.known.keep(data, answered)
                    return
        self._rest.stop()
        self._messages, self._answered = 0, None
        super().data_received(data)
        if is_begin and self._is_between and self._messages == 1:
            self._keep(data)

    def _keep(self, data: bytes) -> None:
        """What was one request and nothing else, from the first byte to the last."""
        if self._answered is not None:
            self.known.keep(data, self._answered)

    # What the parser calls

    def on_message_begin(self) -> None:
        self._messages += 1
        self._is_between, self._answered = False, None
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        if self._begun is None and self._messages == 1 and self._is_plain():
            head = self._heard()
            self._answered = None if head is None else self._answer_to(head)
        if self._answered is not None:
            self._moved_on = True
            self._head.stop()
            return
        self._rest.stop()
        begun, self._begun = self._begun, None
        if begun is None:
            super().on_headers_complete()
            return
        usual, self.app = self.app, begun.go_on
        try:
            begun.context.run(super().on_headers_complete)
        finally:
            self.app = usual

    def on_message_complete(self) -> None:
        self._is_between = True
        if self._answered is None:
            super().on_message_complete()

    # Answering

    def _is_plain(self) -> bool:
        """Whether nothing of this connection is under way, neither a request nor an answer that is not read."""
        return self._is_idle() and not self.flow.write_paused and not self._is_over()

    def _heard(self) -> Head | None:
        """The head that the parser has read, if it is one of a plain read."""
        parser = self.parser
        method = _METHODS.get(parser.get_method())
        if method is None or self.expect_100_continue or parser.should_upgrade() or not parser.should_keep_alive():
            return None
        url = httptools.parse_url(self.url)
        if not url.path or not url.path.isascii() or self.root_path or parser.get_http_version() != "1.1":
            return None
        head = Head.of(method, url.path, url.query or b"", self.headers)
        return None if head.has_body else head

    def _answer_to(self, head: Head, again: Again | None = None) -> Call | None:
        """Begin with a request. None if it has to wait: then it is `_begun`."""
        call = self.application.called(head, self.client[0] if self.client else "", self._write_whole)
        context = copy_context()
        try:
            if again is not None and self.application.answers_again(call, again):
                return call
            work = self.application.exchange(call)
            waits_for = context.run(work.send, None)
        except StopIteration:
            return call
        except Exception:
            # What was sent of it is not known: the client must not take something else for its answer.
            log.exception("an answer could not be given")
            self.transport.abort()
            return call
        self._begun = _Begun(call, Rest(work, waits_for), context)
        return None

    def _write_whole(self, status: int, headers: RawHeaders, body: bytes) -> None:
        head = head_of(status, self.server_state.default_headers + headers)
        if len(body) <= ANSWER_JOINED_BYTES_MAX:
            self.transport.write(head + body)
        else:
            self.transport.write(head)
            self.transport.write(body)
        self.server_state.total_requests += 1
        self._rest.start()


def head_of(status: int, headers: RawHeaders) -> bytes:
    """Everything before the body."""
    lines = [STATUS_LINE[status]]
    for name, value in headers:
        lines += (name, b": ", value, b"\r\n")
    if _CONTROL.search(b"".join([value for _, value in headers])):
        raise ValueError("a header with a control character in it")
    lines.append(b"\r\n")
    return b"".join(lines)


def guarded(bounds: Bounds, application: Application, metrics: Metrics | None = None) -> type[DirectProtocol]:
    """The protocol of one application with these limits, as uvicorn takes it."""
    given = {"bounds": bounds, "metrics": metrics or Metrics(), "application": application, "known": KnownHeads()}
    return type("Guarded", (DirectProtocol,), given)

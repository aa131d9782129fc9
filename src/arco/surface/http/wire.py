"""The HTTP protocol of one connection: uvicorn's, with limits that it does not keep itself.

uvicorn bounds neither the head of a request nor the time it takes, and answers what it cannot parse at once, even while an
earlier request of the same connection is still under way: the client would take the refusal for the answer to that one. Here
a head is bounded in size and time, a client that does not read its answer is cut off, and a refusal waits its turn. What must
never enter: anything about one request's meaning.
"""

import asyncio
import sys
from typing import Any, ClassVar, cast

from httptools import HttpParserUpgrade
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from arco.kernel.errors import TooLarge
from arco.surface.http.bounds import Bounds
from arco.surface.http.exchange import Response
from arco.surface.http.failures import no_room, refusal
from arco.surface.http.metrics import Metrics
from arco.surface.http.one_write import OneWrite
from arco.surface.http.timers import Timer

_NOTHING = memoryview(b"")
_BODY_HEADERS = {b"content-length", b"transfer-encoding"}


class GuardedProtocol(HttpToolsProtocol):
    """One connection."""

    bounds: ClassVar[Bounds] = Bounds()
    metrics: ClassVar[Metrics]

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._head = Timer(self.loop, self.bounds.head_s, self._head_is_overdue)
        # A connection ends when all is sent, which a client can put off for ever by not reading.
        self._reader = Timer(self.loop, self.bounds.answer_s, self._cut_off)
        self._refusal: Response | None = None
        self._is_refused = False
        self._headers_bytes = 0
        self._idle_bytes = 0
        self._moved_on = False
        self._parsed = self._behind_offer = _NOTHING

    # What the event loop calls

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._answers = OneWrite(transport)
        self.metrics.connections.inc()
        if len(self.connections) > self.bounds.connections:
            self.metrics.shed("connections")
            # What would have been asked is not known, so it may be a retry.
            self._refuse(no_room(may_have_landed=True))
        else:
            self._head.start()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head.stop()
        self._reader.stop()
        self.metrics.connections.dec()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            return
        self._moved_on = False
        rest = memoryview(data)
        while rest:
            self._parsed, self._behind_offer = rest, _NOTHING
            super().data_received(rest)  # type: ignore[arg-type]
            rest = _NOTHING if self._is_over() else self._behind_offer
        self._parsed = self._behind_offer = _NOTHING
        # The parser keeps an unfinished line to itself: count what went in while nothing came out.
        self._idle_bytes = 0 if self._moved_on else self._idle_bytes + len(data)
        if self._is_over():
            return
        if self._idle_bytes > self.bounds.url_bytes + self.bounds.headers_bytes:
            self._refuse(refusal(431, "the request's head is too large; nothing was done"))
        elif not self._moved_on and self._is_idle():
            self._head.start()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._reader.start()

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.transport.is_closing():
            self._reader.stop()

    # What the parser calls

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._headers_bytes = 0

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > self.bounds.url_bytes:
            self._stop_parsing(refusal(414, f"the URL is over the limit of {self.bounds.url_bytes} bytes"))

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        self._headers_bytes += len(name) + len(value)
        if len(self.headers) > self.bounds.headers:
            self._stop_parsing(refusal(431, f"there are more than {self.bounds.headers} headers"))
        if self._headers_bytes > self.bounds.headers_bytes:
            self._stop_parsing(refusal(431, f"the headers are over the limit of {self.bounds.headers_bytes} bytes"))

    def on_headers_complete(self) -> None:
        if self.parser.should_upgrade() and any(name in _BODY_HEADERS for name, _ in self.headers):
            # At such an offer the parser stops, and would take the body for the next request.
            self._stop_parsing(refusal(400, "no other protocol is spoken here: send the request without Upgrade"))
        if len(self.pipeline) >= self.bounds.pipelined:
            # Those in line are answered. The others were not looked at, as the end of the connection says.
            self._stop_parsing(refusal(400, "there are too many requests in line; this one was not looked at"))
        super().on_headers_complete()
        # What comes behind a body is counted with the head, and is no header of the request, whose list this was until now.
        self.headers = self.headers.copy()
        self._moved_on = True
        self._head.stop()

    def on_body(self, body: bytes) -> None:
        self._moved_on = True
        super().on_body(body)

    def _stop_parsing(self, response: Response) -> None:
        """Raised through the parser, which makes uvicorn send its refusal: ours, below."""
        self._refusal = response
        raise TooLarge("the head of a request")

    def on_response_complete(self) -> None:
        more = bool(self.pipeline)
        self._answers.let_go()
        super().on_response_complete()
        if self._is_refused and not more:
            self.transport.close()
        if self.transport.is_closing():
            self._reader.start()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answers.begin()
        cycle.transport = cast(asyncio.Transport, self._answers)
        super()._start_asgi_task(cycle, app)

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._reader.start()

    def _unsupported_upgrade_warning(self) -> None:
        """Java's own client offers HTTP/2 with every request, and takes no answer for a no.

        There the parser stops, and says how far it came: what lies behind is the next request, or its beginning.
        """
        stopped = sys.exception()
        if isinstance(stopped, HttpParserUpgrade):
            self._behind_offer = self._parsed[stopped.args[0] :]

    # Refusals

    def send_400_response(self, msg: str) -> None:
        self._refuse(self._refusal or refusal(400, "this is not an HTTP request that can be understood"))

    def _refuse(self, response: Response) -> None:
        """Answer what is no request, and close; or only close, once the requests that came before it are answered."""
        self._is_refused = True
        self._head.stop()
        if self._is_idle():
            self._write(response)
        elif self.pipeline:
            if self.cycle.more_body:
                self.pipeline.popleft()
        elif self.cycle.more_body:
            # The body itself is broken, so nobody has acted on it: whoever reads it hears that the client is gone.
            if not self.cycle.response_started:
                self._write(response)
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            self.transport.close()

    def _write(self, response: Response) -> None:
        headers = {"content-type": "application/json", "connection": "close", **response.headers}
        lines = [f"{name.lower()}: {value}\r\n" for name, value in headers.items()]
        length = f"content-length: {len(response.body)}\r\n\r\n"
        self.transport.write(STATUS_LINE[response.status] + "".join([*lines, length]).encode() + response.body)
        self.transport.close()
        self._reader.start()

    def _cut_off(self) -> None:
        self.transport.abort()

    def _is_idle(self) -> bool:
        last: RequestResponseCycle | None = self.cycle
        return last is None or last.response_complete

    def _is_over(self) -> bool:
        return self._is_refused or self.transport.is_closing()

    def _head_is_overdue(self) -> None:
        if self._is_over():
            return
        if self._idle_bytes:
            self._refuse(refusal(408, "the request took too long to arrive; nothing was done"))
        else:
            self.transport.close()

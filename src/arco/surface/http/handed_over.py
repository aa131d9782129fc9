"""A request on its way to another worker and back: written as a frame there, answered by the same application there.

What must never enter: which worker it goes to (`crew.py`).
"""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from arco.surface.http.bodies import Receive
from arco.surface.http.call import Call, Scope, Send
from arco.surface.http.exchange import Response
from arco.surface.http.handover import Answer, Ask

HANDED_OVER = "arco.handed_over"
"""In the scope of a request that came from another worker."""

TRIPS = "arco.trips"
"""In that scope, once it is answered: the round trips to the store before the answer."""

Application = Callable[[Scope, Receive, Send], Awaitable[None]]

# How a body is sent is settled with the client, by the worker that has it.
_OF_THE_CLIENT = {
    b"accept-encoding",
    b"content-encoding",
    b"content-length",
    b"transfer-encoding",
    b"x-request-id",
    b"expect",
}
_OF_THE_ANSWER = {"Content-Length", "X-Request-Id", "X-Content-Type-Options", "Connection", "Vary"}


def asked(call: Call, body: bytes, number: int) -> Ask:
    headers = [(name, value) for name, value in call.head.raw_headers if name not in _OF_THE_CLIENT]
    headers += [(b"x-request-id", call.request_id.encode()), (b"content-length", str(len(body)).encode())]
    return Ask(number, call.method, call.head.raw_path, call.head.query_string, headers, body)


async def done_for(application: Application, ask: Ask) -> Answer:
    """What this worker answers to a request of another's client."""
    sent: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": ask.body}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    scope: Scope = {
        "type": "http",
        "method": ask.method,
        "raw_path": ask.raw_path,
        "query_string": ask.query_string,
        "headers": ask.headers,
        HANDED_OVER: True,
    }
    await application(scope, receive, send)
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return Answer(ask.number, sent[0]["status"], list(sent[0]["headers"]), body, scope.get(TRIPS, 0))


def heard(answer: Answer) -> Response:
    """The same answer, for the client."""
    headers = {name.decode().title(): value.decode() for name, value in answer.headers}
    return Response(
        answer.status, answer.body, {name: value for name, value in headers.items() if name not in _OF_THE_ANSWER}
    )

"""Events of other systems: `POST /api/v1/events`, one or many, all taken or none.

They are checked, by the fold's own rules too, appended and acknowledged; nothing is read. CloudEvents come as one object, as a
batch, or with their attributes in headers; our own drafts as an object or a list; OpenLineage by its shape. What must never
enter: what an event means.
"""

from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

import msgspec

from arco.fold.foldable import need_foldable
from arco.kernel.errors import InvalidInput, TooLarge
from arco.kernel.limits import POSTED_EVENTS_MAX
from arco.kernel.scope import Scope
from arco.ledger.appender import Appended
from arco.ledger.drafts import Draft
from arco.ledger.envelope import EventKey
from arco.ledger.openlineage import is_openlineage, openlineage_drafts
from arco.ledger.posted import posted_draft, refuse_times_ahead
from arco.surface.http.declaring import API, JSON, Asked, Endpoint, endpoint, scope_of
from arco.surface.http.exchange import Request, Response, json_response
from arco.surface.http.resource import KEY_HEADER, Resource

EVENTS = f"{API}/events"

_ONE = "application/cloudevents+json"
_BATCH = "application/cloudevents-batch+json"
_IN_HEADERS = "ce-"
_KEY_CHARS_MAX = 190  # room for the place of an event behind it


class AcceptedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One event as it is stored now. `index` is the place of the item that made it."""

    index: int
    id: str
    type: str
    position: str


class Accepted(msgspec.Struct, frozen=True, kw_only=True):
    """Events that are durable, and not folded yet. `segments` are the objects of the ledger that have them, for who notifies."""

    accepted: int
    events: tuple[AcceptedEvent, ...]
    segments: tuple[str, ...]


class Events(Resource):
    def endpoints(self) -> list[Endpoint]:
        return [
            endpoint(
                "POST",
                EVENTS,
                "Append events of other systems to the ledger: CloudEvents, drafts or OpenLineage",
                self.post,
                body=(list[dict[str, Any]], dict[str, Any]),
                answers={202: (Accepted,)},
                headers=KEY_HEADER,
                media=(JSON, _ONE, _BATCH),
            )
        ]

    def scope(self, request: Request) -> Scope:
        return scope_of(request)

    async def post(self, request: Request, _: Asked) -> Response:
        scope, key = self.scope(request), request.headers.get("idempotency-key")
        if key is not None and len(EventKey(key)) > _KEY_CHARS_MAX:
            raise InvalidInput(f"an Idempotency-Key of more than {_KEY_CHARS_MAX} characters")

        def drafts_of(placed: tuple[int, Any]) -> Sequence[Draft]:
            index, item = placed
            if is_openlineage(item):
                drafts = openlineage_drafts(item)
            else:
                draft = posted_draft(item, scope, None if key is None else f"{key}:{index}")
                drafts = (need_foldable(draft, scope, self._state.clock.now_ms()),)
            return refuse_times_ahead(drafts, self._state.clock.now_ms())

        items = list(enumerate(bounded(_items(request))))
        appended = await self._state.appender(scope).append_items(items, drafts_of)
        self._state.wake_fold(scope)
        return accepted(appended)


def bounded(items: list[Any]) -> list[Any]:
    if not items:
        raise InvalidInput("there are no events in the body")
    if len(items) > POSTED_EVENTS_MAX:
        raise TooLarge(f"{len(items)} events at once", hint=f"send at most {POSTED_EVENTS_MAX} at once")
    return items


def accepted(appended: tuple[tuple[Appended, ...], ...]) -> Response:
    """The events as they are stored now, by the place of the item that made them."""
    events = (
        AcceptedEvent(index=index, id=str(one.id), type=str(one.type), position=str(one.position))
        for index, several in enumerate(appended)
        for one in several
    )
    segments = dict.fromkeys(str(one.segment) for several in appended for one in several)
    return json_response(Accepted(accepted=len(appended), events=tuple(events), segments=tuple(segments)), 202)


def _items(request: Request) -> list[Any]:
    if f"{_IN_HEADERS}specversion" in request.headers:
        return [_from_headers(request)]
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = request.json()
    if media == _BATCH and not isinstance(body, list):
        raise InvalidInput("a batch of CloudEvents is a JSON array")
    if media == _ONE and isinstance(body, list):
        raise InvalidInput("one CloudEvent is a JSON object", hint=f"send several as {_BATCH}")
    return body if isinstance(body, list) else [body]


def _from_headers(request: Request) -> dict[str, Any]:
    """A CloudEvent in HTTP's binary mode: attributes in headers, percent-encoded, and the data in the body."""
    attributes = {
        name.removeprefix(_IN_HEADERS): _unquoted(name, text)
        for name, text in request.headers.items()
        if name.startswith(_IN_HEADERS)
    }
    return {**attributes, "data": request.json()}


def _unquoted(header: str, text: str) -> str:
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise InvalidInput(f"{header} is no text in UTF-8, percent-encoded") from None

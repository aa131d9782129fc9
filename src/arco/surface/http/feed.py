"""The feed of events over HTTP: a page of it after a cursor, as the draft of Iceberg's specification has it.

    POST /v1/{prefix}/events    {continuation-token, page-size, after-timestamp-ms, operation-types, catalog-objects-by-name, …}

A cursor is a place in the stored feed. Whoever comes back with it gets what comes after it, from any server, after any restart;
what a filter leaves out is passed over, not forgotten. Events of one request come in one answer, unless they are more than were
asked for. An answer ends where it would grow too large, and its cursor says where. What must never enter: the order of events,
and how they are found.
"""

import base64
import binascii
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

from arco.catalog.feed import Feed
from arco.catalog.feed_pages import FeedPage, size_of
from arco.kernel.canonical_json import JsonValue
from arco.kernel.errors import InvalidInput
from arco.kernel.fingerprint import fingerprint
from arco.kernel.ids import clip
from arco.kernel.limits import FEED_ANSWER_BYTES_MAX, FEED_ANSWER_EVENTS_MAX, FEED_ANSWER_PAGES_MAX
from arco.kernel.scope import Scope
from arco.surface.http.exchange import Request, Response, json_response
from arco.surface.http.resource import PREFIX, Resource
from arco.surface.http.routes import Route, route

Event = dict[str, Any]
_DEFAULT_EVENTS = 100
_Text = Annotated[str, msgspec.Meta(max_length=4096)]
_Some = msgspec.Meta(max_length=1000)


class ObjectUuid(msgspec.Struct, frozen=True):
    """A table or view by its identity."""

    uuid: _Text
    type: str

    def __post_init__(self) -> None:
        if self.type not in {"table", "view"}:
            raise ValueError("type is neither table nor view")


class Query(msgspec.Struct, frozen=True, rename="kebab"):
    """What a client asks for. What is absent or null does not limit anything."""

    continuation_token: _Text | None = None
    page_size: int | None = None
    after_timestamp_ms: int | None = None
    operation_types: Annotated[tuple[_Text, ...], _Some] | None = None
    catalog_objects_by_name: Annotated[tuple[tuple[_Text, ...], ...], _Some] | None = None
    catalog_objects_by_id: Annotated[tuple[ObjectUuid, ...], _Some] | None = None
    object_types: Annotated[tuple[_Text, ...], _Some] | None = None
    custom_filters: dict[str, Any] | None = None

    @property
    def events_max(self) -> int:
        size = _DEFAULT_EVENTS if self.page_size is None else self.page_size
        if size < 1:
            raise InvalidInput(f"page-size is {size}", hint="ask for one event or more")
        return min(size, FEED_ANSWER_EVENTS_MAX)

    def wants(self, event: Event) -> bool:
        operation = event["operation"]
        kind = str(operation["operation-type"])
        said = str(operation.get("custom-type", kind))
        return (
            (self.after_timestamp_ms is None or event["timestamp-ms"] >= self.after_timestamp_ms)
            and (self.operation_types is None or bool({kind, said} & set(self.operation_types)))
            and (self.object_types is None or _object_type(said) in self.object_types)
            and (self.catalog_objects_by_name is None or any(map(self._is_in, _names(operation))))
            and (self.catalog_objects_by_id is None or self._is_meant(operation))
        )

    def _is_in(self, name: tuple[str, ...]) -> bool:
        """A namespace stands for everything in it."""
        return any(name[: len(one)] == one for one in self.catalog_objects_by_name or ())

    def _is_meant(self, operation: Event) -> bool:
        return any(operation.get(f"{one.type}-uuid") == one.uuid for one in self.catalog_objects_by_id or ())


class Cursor(msgspec.Struct, frozen=True):
    """The next event that a reader has not been shown: its page, and its place there."""

    page: int = 1
    place: int = 0

    def token(self, scope: Scope) -> str:
        return base64.urlsafe_b64encode(f"{_mark(scope)}.{self.page}.{self.place}".encode()).decode().rstrip("=")

    @classmethod
    def of(cls, token: str | None, scope: Scope) -> "Cursor":
        if token is None:
            return cls()
        try:
            text = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode("ascii")
            mark, page, place = text.split(".")
            cursor = cls(int(page), int(place))
        except (binascii.Error, UnicodeError, ValueError):
            raise _no_token() from None
        if mark != _mark(scope) or cursor.page < 1 or cursor.place < 0 or cursor.token(scope) != token:
            raise _no_token()
        return cursor


class FeedResource(Resource):
    def routes(self) -> list[Route]:
        return [route("POST", f"{PREFIX}/events", self.events)]

    async def events(self, request: Request) -> Response:
        scope, query = self.scope(request), parse_query(request.json())
        reading = Reading(query, Cursor.of(query.continuation_token, scope))
        await reading.run(self._state.feed(scope))
        return json_response(
            {
                "continuation-token": reading.cursor.token(scope),
                "highest-processed-timestamp-ms": reading.highest_ms,
                "events": reading.events,
            }
        )


class Reading:
    """One answer on its way: events that were asked for, from a cursor on."""

    def __init__(self, query: Query, cursor: Cursor) -> None:
        self._query = query
        self._left = query.events_max
        self._left_bytes = FEED_ANSWER_BYTES_MAX
        self.cursor = cursor
        self.events: list[Event] = []
        self.highest_ms = 0

    async def run(self, feed: Feed) -> None:
        refreshed = False
        for _ in range(FEED_ANSWER_PAGES_MAX):
            page = await feed.page(self.cursor.page)
            if page is None and not refreshed:
                # At the end of what is written: look for more, once.
                refreshed = True
                await feed.refresh()
                page = await feed.page(self.cursor.page)
            if page is None:
                await self._check_the_end(feed)
                return
            if not self._take(page):
                return

    async def _check_the_end(self, feed: Feed) -> None:
        """A place after the last page is where the next begins, and nowhere else."""
        last = self.cursor.page - 1
        before = None if last == 0 else await feed.page(last)
        if (last and before is None) or self.cursor.place:
            raise _no_token()
        if before is not None and not self.highest_ms:
            self.highest_ms = max((one["timestamp-ms"] for one in before.events), default=before.at_ms)

    def _take(self, page: FeedPage) -> bool:
        """Go through a page; False if the answer is full."""
        if self.cursor.place > len(page.events):
            raise _no_token()
        for group in _requests(page.events[self.cursor.place :]):
            wanted = [event for event in group if self._query.wants(event)]
            self._left_bytes -= size_of(wanted)
            if self.events and (len(wanted) > self._left or self._left_bytes < 0):
                return False
            if len(wanted) > self._left:
                return self._split(group)
            self._pass(group, wanted)
        self.cursor = Cursor(page.number + 1)
        return self._left > 0

    def _split(self, group: list[Event]) -> bool:
        """A request with more events than were asked for: as many as fit."""
        for event in group:
            if not self._left:
                break
            self._pass([event], [event] if self._query.wants(event) else [])
        return False

    def _pass(self, group: list[Event], wanted: list[Event]) -> None:
        self.events += wanted
        self._left -= len(wanted)
        self.cursor = Cursor(self.cursor.page, self.cursor.place + len(group))
        self.highest_ms = max(self.highest_ms, *(event["timestamp-ms"] for event in group))


def parse_query(body: JsonValue) -> Query:
    try:
        query = msgspec.convert(body, Query)
    except msgspec.ValidationError as error:
        raise InvalidInput(clip(str(error).replace("`", ""), 300), hint="see docs/events.md") from None
    if query.custom_filters:
        raise InvalidInput(f"custom filter {clip(next(iter(query.custom_filters)))!r} is not known", hint="there are none")
    return query


def _requests(events: tuple[Event, ...]) -> Iterator[list[Event]]:
    """Events that came of one request, which stand together."""
    group: list[Event] = []
    for event in events:
        if group and group[0]["request-id"] != event["request-id"]:
            yield group
            group = []
        group.append(event)
    if group:
        yield group


def _names(operation: Event) -> list[tuple[str, ...]]:
    """All names that an operation speaks of."""
    named = [operation[word] for word in ("identifier", "source", "destination") if word in operation]
    names = [(*one["namespace"], one["name"]) for one in named]
    return names or [tuple(operation.get("namespace", ()))]


def _object_type(kind: str) -> str:
    return next((one for one in ("namespace", "table", "view") if one in kind), "")


def _mark(scope: Scope) -> str:
    return fingerprint("feed cursor", scope.prefix)[:8]


def _no_token() -> InvalidInput:
    return InvalidInput("continuation-token is not one of this feed's", hint="pass the token as it was given")

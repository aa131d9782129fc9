"""From a method and a raw path to a handler.

The raw path is split at its slashes before anything is decoded, so that a name may hold any character, a slash included. A
route is a tuple of segments; None stands for one that is left open.
"""

from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

from arco.kernel.limits import ROUTES_KEPT_MAX, ROUTES_KEPT_PATH_BYTES_MAX
from arco.surface.http.exchange import Request, Response, split_path

Handler = Callable[[Request], Coroutine[Any, Any, Response]]

NO_ROUTE = "none"
"""The operation of a request that no route takes."""


class Door(StrEnum):
    """Who may call a route."""

    TOKEN = "token"  # noqa: S105 - a word, not a secret; whoever shows the server's token, if it has one
    OPEN = "open"  # anybody
    LINK = "link"  # whoever has the link: what it needs is in its path
    WATCH = "watch"  # as TOKEN, also when the server is busy: that is when somebody looks
    PROBE = "probe"  # anybody, also when the server is busy: what machines ask every few seconds


class Lane(StrEnum):
    """What a request changes: requests of one lane get in each other's way, and are best done by one process."""

    NONE = "none"
    TABLE = "table"  # one table or view: the workspace, the namespace and the name in the path
    NAMES = "names"  # the names of a workspace


@dataclass(frozen=True, slots=True)
class Route:
    method: str
    template: str
    pattern: tuple[str | None, ...]
    handler: Handler
    door: Door = Door.TOKEN
    across: bool = False
    """Pages of other sites may call it too, if the operator names them."""
    lane: Lane = Lane.NONE


@dataclass(frozen=True, slots=True)
class Found:
    """A route, with what it left open. `operation` is the request in a word that its client cannot choose."""

    route: Route
    segments: tuple[str, ...]
    operation: str

    @property
    def lane(self) -> tuple[str, ...]:
        """The same for all requests that change the same; empty if this one changes nothing that others do."""
        match self.route.lane:
            case Lane.NONE:
                return ()
            case Lane.TABLE:
                return self.segments[:3]
            case Lane.NAMES:
                return self.segments[:1]


def route(
    method: str,
    template: str,
    handler: Handler,
    door: Door = Door.TOKEN,
    *,
    across: bool = False,
    lane: Lane = Lane.NONE,
) -> Route:
    """A route from a template such as /v1/{prefix}/namespaces."""
    parts = template.strip("/").split("/")
    pattern = tuple(None if part.startswith("{") else part for part in parts)
    return Route(method, template, pattern, handler, door, across, lane)


class Routes:
    """All routes, by their number of segments, their first and their last."""

    def __init__(self, routes: list[Route]) -> None:
        self._by_shape: dict[tuple[int, str | None, str | None], list[Route]] = {}
        for one in routes:
            self._by_shape.setdefault(_shape(one.pattern), []).append(one)
        self._kept = lru_cache(ROUTES_KEPT_MAX)(self._at)

    def at(self, method: str, raw_path: bytes) -> Found | frozenset[str]:
        """`find`, for a path as it was sent. Clients ask for the same few tables again and again."""
        look = self._kept if len(raw_path) <= ROUTES_KEPT_PATH_BYTES_MAX else self._at
        return look(method, raw_path)

    def _at(self, method: str, raw_path: bytes) -> Found | frozenset[str]:
        return self.find(method, split_path(raw_path))

    def __iter__(self) -> Iterator[Route]:
        return (one for some in self._by_shape.values() for one in some)

    def _candidates(self, segments: list[str]) -> Iterator[Route]:
        """Routes of the same length that begin and end alike, or leave that open."""
        length, first, last = len(segments), segments[0], segments[-1]
        for shape in ((length, first, last), (length, first, None), (length, None, last), (length, None, None)):
            yield from self._by_shape.get(shape, ())

    def find(self, method: str, segments: list[str]) -> Found | frozenset[str]:
        """The route of a request; or the methods that its path takes, none if there is no such path."""
        by_method: dict[str, Found] = {}
        for one in self._candidates(segments):
            if all(part is None or part == segment for part, segment in zip(one.pattern, segments, strict=True)):
                left = tuple(segment for part, segment in zip(one.pattern, segments, strict=True) if part is None)
                found = Found(one, left, f"{method} {one.template}")
                if one.method == method:
                    return found
                by_method.setdefault(one.method, found)
        # What can be got can be asked about.
        if method == "HEAD" and "GET" in by_method:
            return by_method["GET"]
        return frozenset(by_method) | ({"HEAD"} if "GET" in by_method else set())


def _shape(pattern: tuple[str | None, ...]) -> tuple[int, str | None, str | None]:
    return len(pattern), pattern[0], pattern[-1]

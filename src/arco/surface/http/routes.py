"""From a method and a raw path to a handler.

The raw path is split at its slashes before anything is decoded, so that a name may hold any character, a slash included. A
route is a tuple of segments; None stands for one that is left open.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from arco.surface.http.exchange import Request, Response

Handler = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Route:
    method: str
    template: str
    pattern: tuple[str | None, ...]
    handler: Handler


def route(method: str, template: str, handler: Handler) -> Route:
    """A route from a template such as /v1/{prefix}/namespaces."""
    parts = template.strip("/").split("/")
    return Route(method, template, tuple(None if part.startswith("{") else part for part in parts), handler)


class Routes:
    """All routes, by their number of segments and their first fixed ones."""

    def __init__(self, routes: list[Route]) -> None:
        self._by_length: dict[int, list[Route]] = {}
        for one in routes:
            self._by_length.setdefault(len(one.pattern), []).append(one)

    def find(self, method: str, segments: list[str]) -> tuple[Handler, tuple[str, ...]] | set[str]:
        """The handler with what the route left open; or the methods that the path takes, none if there is no such path."""
        methods: set[str] = set()
        for one in self._by_length.get(len(segments), ()):
            if all(part is None or part == segment for part, segment in zip(one.pattern, segments, strict=True)):
                if one.method == method:
                    left = tuple(segment for part, segment in zip(one.pattern, segments, strict=True) if part is None)
                    return one.handler, left
                methods.add(one.method)
        return methods

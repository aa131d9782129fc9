"""What a route of the platform API takes and answers, declared once: requests are read by it, and the published description
is made of it.

Parameters are a struct. A field that the path names is a part of the path, every other one is a query parameter. One that is not
known is refused: a filter that is misspelt must not list everything.
"""

import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, ClassVar, TypeVar, get_args

import msgspec

from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip
from arco.kernel.scope import Scope
from arco.surface.http.exchange import Request, Response
from arco.surface.http.routes import Door, Handler, Route, route

API = "/api/v1"
JSON = "application/json"

_IN_PATH = re.compile(r"{(\w+)}")


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What every request may say."""

    offers: ClassVar[Mapping[str, Collection[str]]] = {}
    """The words that a parameter takes, where they are fewer than its type has: what others rely on does not change with it."""

    warehouse: Annotated[
        str | None, msgspec.Meta(description="The workspace, as tenant/workspace; default/default without it.")
    ] = None

    @property
    def scope(self) -> Scope:
        return _scope(self.warehouse)


A = TypeVar("A", bound=Asked)
Asks = Callable[[Request, Any], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One route. `answers` has, for each status, the types that the body may be of; `body` those of what is sent."""

    method: str
    path: str
    about: str
    handler: Handler
    asked: type[Asked]
    answers: Mapping[int, tuple[Any, ...]]
    body: tuple[Any, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers that a request may have, and what they are for."""
    media: tuple[str, ...] = (JSON,)
    """The types that a body may be said to be of."""
    tagged: bool = False
    """Answers have an ETag, and 304 is given for one that is known."""
    answer_media: str = JSON
    door: Door = Door.TOKEN
    across: bool = False
    """Pages of other sites may call it too, if the operator names them."""

    @property
    def route(self) -> Route:
        return route(self.method, self.path, self.handler, self.door, across=self.across)

    @property
    def in_path(self) -> tuple[str, ...]:
        return names_in(self.path)


def endpoint(  # noqa: PLR0913 - a declaration has as many parts as a route has
    method: str,
    path: str,
    about: str,
    asks: Asks,
    *,
    asked: type[Asked] = Asked,
    answers: Mapping[int, tuple[Any, ...]],
    body: tuple[Any, ...] = (),
    headers: Mapping[str, str] | None = None,
    media: tuple[str, ...] = (JSON,),
    tagged: bool = False,
    across: bool = False,
) -> Endpoint:
    """A route whose handler gets the request and its parameters, read."""
    in_path = names_in(path)

    async def handler(request: Request) -> Response:
        return await asks(request, read_asked(request, asked, in_path))

    return Endpoint(method, path, about, handler, asked, answers, body, headers or {}, media, tagged, across=across)


def names_in(path: str) -> tuple[str, ...]:
    """The parts of a path that are left open, in their order."""
    return tuple(_IN_PATH.findall(path))


def scope_of(request: Request) -> Scope:
    """The workspace that a request of the platform API means."""
    return _scope(request.one("warehouse"))


def _scope(warehouse: str | None) -> Scope:
    return Scope.parse_warehouse(warehouse) if warehouse else Scope.of()


def read_asked(request: Request, kind: type[A], in_path: tuple[str, ...]) -> A:
    """The parameters of a request, each of its type, or InvalidInput with the name of the one that is wrong."""
    fields = {one.encode_name: one for one in msgspec.structs.fields(kind)}
    takes = [name for name in fields if name not in in_path]
    unknown = sorted(set(request.query) - set(takes))
    if unknown:
        raise InvalidInput(
            f"query parameter {clip(unknown[0])!r} is not known here; it takes {', '.join(_warehouse_last(takes))}"
        )
    given: dict[str, str | None] = {name: request.one(name) for name in request.query}
    given |= zip(in_path, request.segments, strict=True)
    values: dict[str, Any] = {}
    for name, one in fields.items():
        text = given.get(name)
        if text is not None:
            _check_offered(name, text, kind.offers.get(name))
            values[one.name] = _value(name, text, one.type)
        elif one.required:
            raise InvalidInput(f"query parameter {name} is missing")
    return kind(**values)


def _warehouse_last(names: list[str]) -> list[str]:
    return sorted(names, key=lambda name: name == "warehouse")


def _value(name: str, text: str, kind: Any) -> Any:
    try:
        return msgspec.convert(text, kind, strict=False)
    except msgspec.ValidationError as error:
        choices = _choices(kind)
        if choices:
            raise InvalidInput(f"{name}={clip(text)!r} is not known; it is one of {', '.join(choices)}") from None
        raise InvalidInput(f"{name}={clip(text)!r}: {str(error).replace('`', '')}") from None


def _check_offered(name: str, text: str, offered: Collection[str] | None) -> None:
    if offered is not None and text not in offered:
        raise InvalidInput(f"{name}={clip(text)!r} is not known; it is one of {', '.join(offered)}")


def _choices(kind: Any) -> list[str]:
    """The words of an enumeration, also of one that may be left out."""
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return [word.value for word in kind]
    return [word for one in get_args(kind) for word in _choices(one)]

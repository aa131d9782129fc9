"""The description of the platform API (OpenAPI 3.1), made of the declarations of its routes and of nothing else.

Schemas are those of the structs that requests are read into and answers are written from.
"""

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import msgspec

from arco.kernel.fingerprint import fingerprint
from arco.surface.http.declaring import API, Asked, Endpoint, endpoint
from arco.surface.http.exchange import Request, Response, is_known
from arco.surface.http.problems import MEDIA_TYPE, Problem

DESCRIPTION = f"{API}/openapi.json"

Json = dict[str, Any]

_REF = "#/components/schemas/{name}"
_TAG = {"ETag": {"description": "Follows from the snapshot and the question.", "schema": {"type": "string"}}}
_KNOWN = "The answer is the one that the client shows the ETag of."


def with_description(endpoints: Sequence[Endpoint]) -> tuple[Endpoint, ...]:
    """The routes, and one more that describes all of them."""

    @cache
    def written() -> tuple[bytes, str]:
        data = msgspec.json.encode(document(everything))
        return data, f'"{fingerprint("openapi", data)[:32]}"'

    async def show(request: Request, _: Asked) -> Response:
        data, etag = written()
        headers = {"ETag": etag, "Cache-Control": "private, no-cache"}
        return Response(304, headers=headers) if is_known(request, etag) else Response(200, data, headers)

    about = "This description"
    itself = endpoint("GET", DESCRIPTION, about, show, answers={200: (dict[str, Any],)}, tagged=True)
    everything = (*endpoints, itself)
    return everything


def document(endpoints: Sequence[Endpoint]) -> Json:
    """The description of some routes."""
    schemas = _Schemas(endpoints)
    paths: dict[str, Json] = {}
    for one in endpoints:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one, schemas)
    found = {
        "openapi": "3.1.0",
        "info": {
            "title": "Arco's platform API",
            "version": API.rpartition("/v")[2],
            "description": "Errors are problem details (RFC 9457). A parameter that is not known is refused.",
        },
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": dict(sorted(schemas.shared.items())),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }
    plain: Json = msgspec.json.decode(msgspec.json.encode(found))
    return plain


class _Schemas:
    """The schemas of every type that the routes name. Structs of parameters are taken apart, all others are shared."""

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        asked = {one.asked: None for one in endpoints}
        bodies = {
            kind: None
            for one in endpoints
            for kinds in (*one.answers.values(), one.body)
            for kind in kinds
            if _is_struct(kind)
        }
        kinds = [*asked, *bodies, Problem]
        refs, components = msgspec.json.schema_components(kinds, ref_template=_REF)
        self._refs = dict(zip(kinds, refs, strict=True))
        self._asked = {kind: components[self._name(kind)] for kind in asked}
        self.shared = {name: one for name, one in components.items() if name not in {self._name(kind) for kind in asked}}

    def of(self, kinds: tuple[Any, ...]) -> Json:
        found = [self._refs[kind] if kind in self._refs else msgspec.json.schema(kind) for kind in kinds]
        return found[0] if len(found) == 1 else {"anyOf": found}

    def parameters(self, asked: type[Asked]) -> Json:
        found: Json = self._asked[asked]["properties"]
        return found

    def required(self, asked: type[Asked]) -> set[str]:
        return set(self._asked[asked].get("required", ()))

    def _name(self, kind: Any) -> str:
        return str(self._refs[kind]["$ref"]).rpartition("/")[2]


def _is_struct(kind: Any) -> bool:
    return issubclass(getattr(kind, "__origin__", kind), msgspec.Struct)


def _operation(one: Endpoint, schemas: _Schemas) -> Json:
    found: Json = {
        "operationId": _operation_id(one),
        "summary": one.about,
        "tags": [one.path.removeprefix(f"{API}/").partition("/")[0].partition(".")[0]],
        "parameters": [*_parameters(one, schemas), *_headers(one)],
        "responses": _responses(one, schemas),
    }
    if one.body:
        found["requestBody"] = {
            "required": True,
            "content": {media: {"schema": schemas.of(one.body)} for media in one.media},
        }
    return found


def _operation_id(one: Endpoint) -> str:
    words = re.findall(r"\w+", one.path.removeprefix(API))
    return "_".join((one.method.lower(), *words))


def _parameters(one: Endpoint, schemas: _Schemas) -> list[Json]:
    found = []
    for name, schema in schemas.parameters(one.asked).items():
        place = "path" if name in one.in_path else "query"
        said = {"name": name, "in": place, "required": place == "path" or name in schemas.required(one.asked)}
        about, plain = _taken_apart(schema)
        found.append(said | ({"description": about} if about else {}) | {"schema": plain})
    return sorted(found, key=lambda said: (said["in"], not said["required"]))


def _taken_apart(schema: Json) -> tuple[str, Json]:
    """What is said of a parameter, and its schema. One that may be left out is missing then, never null."""
    rest = {key: value for key, value in schema.items() if key != "description" and (key, value) != ("default", None)}
    some = [one for one in rest.pop("anyOf", ()) if one != {"type": "null"}]
    if len(some) == 1:
        rest |= some[0]
    elif some:
        rest["anyOf"] = some
    about = schema.get("description") or rest.get("description", "")
    rest.pop("description", None)
    return about, rest


def _headers(one: Endpoint) -> list[Json]:
    known = (
        {"If-None-Match": "ETags of answers that the client has: it gets 304 if one of them is still right."}
        if one.tagged
        else {}
    )
    return [
        {"name": name, "in": "header", "required": False, "description": about, "schema": {"type": "string"}}
        for name, about in {**one.headers, **known}.items()
    ]


def _responses(one: Endpoint, schemas: _Schemas) -> Json:
    found: Json = {}
    for status, kinds in one.answers.items():
        said: Json = {"description": one.about if kinds else "Done"}
        if one.tagged:
            said["headers"] = _TAG
        if kinds:
            said["content"] = {one.answer_media: {"schema": schemas.of(kinds)}}
        found[str(status)] = said
    if one.tagged:
        found["304"] = {"description": _KNOWN}
    found["default"] = {
        "description": "What went wrong, and what to do",
        "content": {MEDIA_TYPE: {"schema": schemas.of((Problem,))}},
    }
    return found

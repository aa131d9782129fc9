"""An application on a store with the small world published in it, asked without a network."""

import asyncio
from typing import Any
from urllib.parse import quote, urlencode

import jsonschema_rs

from arco.catalog.policy import LocationPolicy
from arco.fold.heads import Heads
from arco.kernel.entropy import SeededEntropy
from arco.kernel.ids import UlidSource
from arco.kernel.scope import Scope
from arco.storage.memory import MemoryStore
from arco.surface.http.api import api_endpoints
from arco.surface.http.app import App
from arco.surface.http.for_clients import ForClients
from arco.surface.http.openapi import document
from arco.surface.http.server_state import ServerState
from fixtures.state.published_state import publish_world
from fixtures.state.shop_story import told
from fixtures.state.state_world import NOW_MS
from stand_ins.asgi import Answer, ask
from stand_ins.hand_clock import HandClock


class HttpGround:
    """`world` is what was put in, `snapshot` what it was published as. It is the time when the story ends."""

    def __init__(self, *, published: bool = True, store: type[MemoryStore] = MemoryStore) -> None:
        self.runner = asyncio.Runner()
        self.clock = HandClock()
        self.clock.at_ms = NOW_MS
        self.store = store(self.clock)
        entropy = SeededEntropy(3)
        self.heads = Heads(self.store, Scope.of(), self.clock, entropy)
        self.state = ServerState(self.store, "memory://", ForClients(), LocationPolicy(), self.clock, entropy)
        self.app = App(self.state, UlidSource(self.clock, entropy))
        self.world = told()
        self.description = document(api_endpoints(self.state))
        self.snapshot = self.publish() if published else ""

    def publish(self, **more: Any) -> str:
        return self.runner.run(publish_world(self.heads, self.world, **more))

    def get(self, path: str, known: str | None = None, **query: Any) -> Answer:
        """An answer, whatever it is. `known` is an ETag that the asker has."""
        texts = {name: str(value).lower() if isinstance(value, bool) else value for name, value in query.items()}
        address = f"/api/v1/{quote(path)}" + (f"?{urlencode(texts)}" if texts else "")
        headers = {} if known is None else {"If_None_Match": known}
        return self.runner.run(ask(self.app, "GET", address, **headers))

    def told(self, path: str, **query: Any) -> Any:
        """The body of an answer that is held against the description."""
        answer = self.get(path, **query)
        assert answer.status == 200, answer.json
        self.check(path, answer)
        return answer.json

    def problem(self, path: str, **query: Any) -> Any:
        """A problem that is held against the description."""
        answer = self.get(path, **query)
        assert answer.status >= 400, answer.json
        assert answer.headers["content-type"] == "application/problem+json"
        self.check(path, answer)
        said = answer.json
        assert (said["status"], said["type"]) == (answer.status, f"urn:arco:error:{said['code']}")
        assert said["instance"] == f"urn:arco:request:{answer.headers['x-request-id']}"
        assert said["title"]
        assert said["detail"]
        return said

    def check(self, path: str, answer: Answer) -> None:
        """Whether an answer is of the shape that is described for its path."""
        responses = self.description["paths"][template_of(self.description, path)]["get"]["responses"]
        response = responses.get(str(answer.status), responses["default"])
        (content,) = response["content"].values()
        validate(self.description, content["schema"], answer.json)

    def close(self) -> None:
        self.state.libraries.close()
        self.runner.close()


def template_of(description: Any, path: str) -> str:
    """The path of the description that fits a real one; the one with most fixed words wins."""
    parts = f"/api/v1/{path}".split("/")
    fitting = [
        one
        for one in description["paths"]
        if len(words := one.split("/")) == len(parts)
        and all(word.startswith("{") or word == part for word, part in zip(words, parts, strict=True))
    ]
    assert fitting, f"{path} is not described"
    return min(fitting, key=lambda one: one.count("{"))


def validate(description: Any, schema: Any, value: Any) -> None:
    """A value against a schema of the description, formats included."""
    whole = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "components": description["components"]}
    jsonschema_rs.Draft202012Validator(whole, validate_formats=True).validate(value)
    _no_more_than_described(description, schema, value)


def _no_more_than_described(description: Any, schema: Any, value: Any) -> None:
    """The fields of an answer are all described."""
    while "$ref" in schema:
        schema = description["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    if isinstance(value, dict) and "properties" in schema:
        assert set(value) <= set(schema["properties"])
        for name, one in value.items():
            _no_more_than_described(description, schema["properties"][name], one)
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        for one in value:
            _no_more_than_described(description, schema["items"], one)

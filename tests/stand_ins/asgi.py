"""The application without a network: requests as ASGI messages, answers as values."""

import asyncio
import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from arco.catalog.policy import LocationPolicy
from arco.kernel.clock import Clock, SystemClock
from arco.kernel.entropy import SeededEntropy
from arco.kernel.ids import UlidSource
from arco.storage.memory import MemoryStore
from arco.storage.port import ObjectStore
from arco.surface.http.app import App, Setup
from arco.surface.http.for_clients import ForClients
from arco.surface.http.routes import Route
from arco.surface.http.server_state import ServerState


@dataclass
class Answer:
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def json(self) -> Any:
        packed = self.headers.get("content-encoding") == "gzip"
        return json.loads(gzip.decompress(self.body) if packed else self.body)

    @property
    def error(self) -> tuple[int, str]:
        """The envelope, checked: its status, and the type that clients act on."""
        assert list(self.json) == ["error"]
        assert set(self.json["error"]) == {"message", "type", "code"}
        assert self.json["error"]["code"] == self.status
        return self.status, self.json["error"]["type"]


def make_app(
    setup: Setup | None = None,
    more: Sequence[Route] = (),
    store: ObjectStore | None = None,
    *,
    clock: Clock | None = None,
    seed: int = 1,
) -> App:
    clock, entropy = clock or SystemClock(), SeededEntropy(seed)
    state = ServerState(store or MemoryStore(clock), "memory://", ForClients(), LocationPolicy(), clock, entropy)
    return App(state, UlidSource(clock, entropy), setup, more)


class Exchange:
    """One request on its way; `messages` are what the client sends after the head."""

    def __init__(
        self,
        method: str,
        path: str,
        body: bytes | Sequence[bytes] = b"",
        headers: Mapping[str, str] | Sequence[tuple[str, str]] = (),
        *,
        ends: bool = True,
    ) -> None:
        raw_path, _, query = path.partition("?")
        pairs = list(headers.items()) if isinstance(headers, Mapping) else list(headers)
        chunks = [body] if isinstance(body, bytes) else list(body)
        names = {name.lower() for name, _ in pairs}
        if any(chunks) and not names & {"content-length", "transfer-encoding"}:
            pairs.append(("content-length", str(sum(map(len, chunks)))))
        if "host" not in names:
            pairs.append(("host", "127.0.0.1:8181"))
        self.scope = {
            "type": "http",
            "method": method,
            "raw_path": raw_path.encode(),
            "query_string": query.encode(),
            "client": ("127.0.0.1", 5),
            "headers": [(name.lower().encode(), value.encode()) for name, value in pairs],
        }
        last = len(chunks) - 1
        self.messages: list[dict[str, Any]] = [
            {"type": "http.request", "body": chunk, "more_body": place < last or not ends}
            for place, chunk in enumerate(chunks)
        ]
        self.answer = Answer()
        self.answered = asyncio.Event()

    def disconnect(self) -> "Exchange":
        self.messages.append({"type": "http.disconnect"})
        return self

    async def run(self, app: App) -> Answer:
        await app(self.scope, self.receive, self.send)
        return self.answer

    async def receive(self) -> dict[str, Any]:
        if not self.messages:
            await asyncio.Event().wait()  # a client that keeps still
        return self.messages.pop(0)

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            assert self.answer.status == 0, "a request is answered once"
            self.answer.status = message["status"]
            self.answer.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            self.answer.body += message.get("body", b"")
            self.answered.set()


async def ask(app: App, method: str, path: str, body: bytes | Sequence[bytes] = b"", **headers: str) -> Answer:
    """One request and its answer. A header's name is written with _ for -."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await Exchange(method, path, body, named).run(app)

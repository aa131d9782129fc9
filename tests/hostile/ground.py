"""A catalog to be hostile to, and what holds after every request: an answer in our words, nothing changed by a refusal."""

import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .process import ServerProcess, server_process
from .raw import Reply, Wire, request, wire

NAMESPACES = "/iceberg/v1/default.default/namespaces"
TABLES = f"{NAMESPACES}/ns/tables"
TABLE = f"{TABLES}/t"
VIEWS = f"{NAMESPACES}/ns/views"
VIEW = f"{VIEWS}/v"
SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "id", "type": "long", "required": True},
        {"id": 2, "name": "at", "type": "timestamptz", "required": False},
        {
            "id": 3,
            "name": "words",
            "type": {"type": "list", "element-id": 4, "element": "string", "element-required": False},
            "required": False,
        },
    ],
}
VIEW_SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}
VIEW_VERSION = {
    "version-id": 1,
    "schema-id": 0,
    "timestamp-ms": 1_750_000_000_000,
    "summary": {"engine-name": "spark"},
    "default-namespace": ["ns"],
    "representations": [{"type": "sql", "sql": "select 1 as id", "dialect": "spark"}],
}
UNNAMED = ("/_catalog/core/commits/", "/_catalog/iceberg_pointers/", "/default/data/", "/default/views/")
# Words that only the inside of the server knows.
INSIDE = (
    "Traceback",
    'File "',
    "site-packages",
    "arco.catalog",
    "arco.surface",
    "arco.storage",
    "_catalog",
    "asyncio",
    "msgspec",
)


class Ground:
    """A running server with a namespace, a table and a view, and its objects as they should be."""

    def __init__(self, server: ServerProcess, connection: Wire) -> None:
        self.server = server
        self._connection = connection
        self._expected = server.marks()
        self.wrong: list[str] = []

    def send(self, method: str, path: str, body: Any = None, *lines: str) -> Reply:
        """A request that may be refused, but must be answered as the rules are."""
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        self._connection.send(request(method, path, data, *lines))
        reply = self._connection.reply(to_head=method == "HEAD")
        if complaint := self._complaint(reply, is_head=method == "HEAD"):
            shown = data[:2000].decode("utf-8", "backslashreplace")
            headers = " ".join(f"-H {shlex.quote(line)}" for line in lines)
            curl = f"curl -X {method} $SERVER{shlex.quote(path)} -d {shlex.quote(shown)} {headers}"
            self.wrong.append(f"{complaint}\n    {curl}\n    {reply.status} {reply.body[:300]!r}")
        if reply.headers.get("connection") == "close":
            self.reconnect()
        return reply

    def reconnect(self) -> None:
        self._connection.socket.close()
        with wire(self.server.address) as fresh:
            self._connection = Wire(fresh.socket.dup())

    def check(self) -> None:
        """Nothing was wrong so far, and the server is as it was."""
        assert not self.wrong, "\n" + "\n".join(self.wrong[:20]) + f"\n{len(self.wrong)} in all"
        assert self.send("GET", "/ready").status == 200
        assert self.send("GET", TABLE).status == 200
        assert "Traceback" not in self.server.log

    def _complaint(self, reply: Reply, *, is_head: bool) -> str | None:
        if reply.status >= 500:
            return "a server error"
        if reply.status < 400:
            self._expected = self.server.marks()
            return None
        if not is_head:
            error = reply.json.get("error")
            if not isinstance(error, dict) or set(error) != {"message", "type", "code"} or error["code"] != reply.status:
                return "not an envelope"
            if not error["message"] or any(word in error["message"] for word in INSIDE):
                return "the message says nothing, or too much"
        after = self.server.marks()
        changed = [name for name in after.keys() | self._expected.keys() if after.get(name) != self._expected.get(name)]
        surprising = [name for name in changed if not self._may_come(name, reply)]
        self._expected = after
        return f"a refusal that changed {surprising}" if surprising else None

    def _may_come(self, name: str, reply: Reply) -> bool:
        """What may appear though a request was refused: never a change, and never anything that a reader would find."""
        if name in self._expected:
            return False
        if "/iceberg/committed/" in name:  # completes an earlier success, after its answer
            return name.replace("/committed/", "/pending/") in self._expected
        # A create that finds its name taken may have prepared what nobody names then, and a collector will find.
        return reply.status == 409 and any(folder in name for folder in UNNAMED)


@contextmanager
def ground(root: Path) -> Iterator[Ground]:
    """The server is started anew once the catalog is made, so that nothing of its making is still under way."""
    with server_process(root, "--log-level", "warning") as server, wire(server.address) as connection:
        for path, body in (
            (NAMESPACES, {"namespace": ["ns"], "properties": {"a": "1"}}),
            (TABLES, {"name": "t", "schema": SCHEMA}),
            (VIEWS, {"name": "v", "schema": VIEW_SCHEMA, "view-version": VIEW_VERSION, "properties": {}}),
        ):
            connection.send(request("POST", path, json.dumps(body).encode()))
            reply = connection.reply()
            assert reply.status == 200, reply.body
    with server_process(root, "--log-level", "warning") as server, wire(server.address) as connection:
        made = Ground(server, Wire(connection.socket.dup()))
        yield made
        made._connection.socket.close()

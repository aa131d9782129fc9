"""A request that comes again, byte for byte, is answered from one look at the store: and gets what everybody else gets.

Whatever another server does to a table, and wherever it dies on the way, who asks as before is told what who asks anew is told.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from arco.catalog.ground import Ground
from arco.catalog.policy import LocationPolicy
from arco.kernel import crash_points
from arco.kernel.entropy import SeededEntropy
from arco.kernel.ids import UlidSource
from arco.kernel.scope import Scope
from arco.storage.local import LocalStore
from arco.storage.port import Condition, Outcome
from arco.surface.http.app import App
from arco.surface.http.call import Call
from arco.surface.http.exchange import Again
from arco.surface.http.for_clients import ForClients
from arco.surface.http.server_state import ServerState
from stand_ins.asgi import Answer, ask
from stand_ins.hand_clock import HandClock
from unit.surface.lines import Line, get

PREFIX = "/iceberg/v1/t.w"
PLACE = f"{PREFIX}/namespaces/db"
COLUMN = {"id": 1, "name": "a", "type": "long", "required": False}
SCHEMA = {"type": "struct", "fields": [COLUMN]}
VIEW = {
    "name": "v",
    "schema": {"type": "struct", "schema-id": 0, "fields": [COLUMN]},
    "view-version": {
        "version-id": 1,
        "timestamp-ms": 1,
        "schema-id": 0,
        "summary": {},
        "representations": [{"type": "sql", "sql": "select 1", "dialect": "spark"}],
        "default-namespace": ["db"],
    },
    "properties": {},
}
TABLE, VIEWED = f"{PLACE}/tables/a", f"{PLACE}/views/v"


class Died(BaseException):
    """What a process does at a crash point."""


def unless_died(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    if not isinstance(context.get("exception"), Died):
        loop.default_exception_handler(context)


class Watched(LocalStore):
    """A folder whose owner stops before and after each write, for somebody to look."""

    def __init__(self, root: str, clock: HandClock, entropy: SeededEntropy) -> None:
        super().__init__(root, clock, entropy, sync=False)
        self.seen_to: Callable[[], Awaitable[None]] | None = None
        self._looking = asyncio.Lock()

    async def put(self, key: str, data: bytes, condition: Condition) -> Outcome:
        await self._stop()
        outcome = await super().put(key, data, condition)
        await self._stop()
        return outcome

    async def _stop(self) -> None:
        if self.seen_to is not None:
            async with self._looking:
                await self.seen_to()


class Counting(App):
    """`again` is how many requests were answered again."""

    again = 0

    def answers_again(self, call: Call, again: Again) -> bool:
        is_done = super().answers_again(call, again)
        self.again += is_done
        return is_done


class Folder:
    """A folder with two tables and a view in it. `one` has a client that asks the same again and again; `two` changes things."""

    def __init__(self, root: Path, for_clients: ForClients | None = None) -> None:
        self.root = root
        self._for_clients = for_clients or ForClients()
        self.clock = HandClock()
        self.stores: dict[str, Watched] = {}
        self.one, self.two = self.server("one"), self.server("two")
        self.line = Line(self.one)
        self._asked = 0

    def server(self, name: str) -> Counting:
        clock, entropy = self.clock, SeededEntropy(name)
        store = self.stores[name] = Watched(str(self.root), clock, entropy)
        uri = self.root.as_uri()
        state = ServerState(store, uri, self._for_clients, LocationPolicy(), clock, entropy)
        return Counting(state, UlidSource(clock, entropy))

    async def change(self, method: str, path: str, body: Any = None) -> Answer:
        return await ask(self.two, method, path, b"" if body is None else json.dumps(body).encode())

    async def found(self) -> None:
        for path, body in (
            (f"{PREFIX}/namespaces", {"namespace": ["db"]}),
            (f"{PLACE}/tables", {"name": "a", "schema": SCHEMA}),
            (f"{PLACE}/tables", {"name": "b", "schema": SCHEMA}),
            (f"{PLACE}/views", VIEW),
        ):
            answer = await self.change("POST", path, body)
            assert answer.status == 200, answer.body
        await self.two._state.settle()

    async def hear(self, said: bytes) -> tuple[int, dict[str, str], bytes]:
        """The answer to a request of the client's; of its headers those that two answers have alike."""
        begin = len(self.line.socket.heard)
        self.line.hear(said)
        await self.line.end()
        head, _, body = self.line.socket.heard[begin:].partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = dict(one.split(": ", 1) for one in lines)
        del headers["x-request-id"]
        return int(first.split()[1]), headers, body

    async def close(self) -> None:
        for store in self.stores.values():
            await store.close()

    async def compare(self, *paths: str) -> None:
        """Who asks as before beside who asks in bytes that were never heard."""
        for path in paths:
            for method in ("GET", "HEAD"):
                self._asked += 1
                told = await self.hear(get(path, method=method))
                anew = await self.hear(get(path, f"X-Asked: {self._asked}", method=method))
                if told[0] >= 400 and method == "GET":
                    told, anew = ((one[0], json.loads(one[2])["error"]["type"]) for one in (told, anew))  # type: ignore[assignment]
                assert told == anew, f"{method} {path}"


def table_change(name: str, value: str) -> dict[str, Any]:
    return {"requirements": [], "updates": [{"action": "set-properties", "updates": {"k": value}}]} | {
        "identifier": {"namespace": ["db"], "name": name}
    }


async def commit(folder: Folder) -> None:
    await folder.change("POST", TABLE, table_change("a", "one"))


async def drop(folder: Folder) -> None:
    await folder.change("DELETE", TABLE)


async def rename(folder: Folder) -> None:
    names = {"source": {"namespace": ["db"], "name": "a"}, "destination": {"namespace": ["db"], "name": "c"}}
    await folder.change("POST", f"{PREFIX}/tables/rename", names)


async def replaced(folder: Folder) -> None:
    await drop(folder)
    await folder.change("POST", f"{PLACE}/tables", {"name": "a", "schema": SCHEMA})


async def transaction(folder: Folder) -> None:
    changes = [table_change("a", "two"), table_change("b", "two")]
    await folder.change("POST", f"{PREFIX}/transactions/commit", {"table-changes": changes})


async def creation(folder: Folder) -> None:
    """A transaction that brings a table with it: until it is decided, nobody knows what its name means."""
    staged = await folder.change("POST", f"{PLACE}/tables", {"name": "c", "schema": SCHEMA, "stage-create": True})
    metadata = staged.json["metadata"]
    made = {
        "identifier": {"namespace": ["db"], "name": "c"},
        "requirements": [{"type": "assert-create"}],
        "updates": [
            {"action": "assign-uuid", "uuid": metadata["table-uuid"]},
            {"action": "upgrade-format-version", "format-version": 2},
            {"action": "add-schema", "schema": metadata["schemas"][0]},
            {"action": "set-current-schema", "schema-id": -1},
            {"action": "add-spec", "spec": metadata["partition-specs"][0]},
            {"action": "set-default-spec", "spec-id": -1},
            {"action": "add-sort-order", "sort-order": metadata["sort-orders"][0]},
            {"action": "set-default-sort-order", "sort-order-id": -1},
            {"action": "set-location", "location": metadata["location"]},
        ],
    }
    changes = [table_change("a", "three"), made]
    await folder.change("POST", f"{PREFIX}/transactions/commit", {"table-changes": changes})


async def registered_over(folder: Folder) -> None:
    other = (await folder.change("GET", f"{PLACE}/tables/b")).json["metadata-location"]
    await folder.change("POST", f"{PLACE}/tables/b/unregister")
    body = {"name": "a", "metadata-location": other, "overwrite": True}
    await folder.change("POST", f"{PLACE}/register", body)


async def view_replaced(folder: Folder) -> None:
    await folder.change("POST", VIEWED, table_change("v", "four"))


CHANGES = [commit, drop, rename, replaced, transaction, creation, registered_over, view_replaced]


def at_step(root: Path, change: Callable[[Folder], Awaitable[None]], step: int) -> tuple[bool, int]:
    """Whether the other server got that far before it died; and how many requests were answered again before it began."""

    async def run() -> tuple[bool, int]:
        folder = Folder(root)
        await folder.found()
        for _ in range(3):
            await folder.compare(TABLE, VIEWED)
        again, steps, died = folder.one.again, iter(range(step)), asyncio.Event()

        def hook(point: str) -> None:
            if next(steps, None) is None:
                died.set()
                raise Died(point)

        async def changed() -> None:
            await change(folder)
            await folder.two._state.settle()

        asyncio.get_running_loop().set_exception_handler(unless_died)
        crash_points.install(hook)
        # Who waits for what died in another task waits for ever.
        both = {asyncio.ensure_future(changed()), asyncio.ensure_future(died.wait())}
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            crash_points.install(None)
            for one in both:
                one.cancel()
            await asyncio.gather(*both, return_exceptions=True)
        for _ in range(3):
            await folder.compare(TABLE, VIEWED)
        await folder.one._state.settle()
        await folder.close()
        return died.is_set(), again

    return asyncio.run(run())


@pytest.mark.parametrize("change", CHANGES)
def test_wherever_another_server_dies_who_asks_as_before_is_told_what_others_are(
    tmp_path: Path, change: Callable[[Folder], Awaitable[None]]
) -> None:
    step, goes_on = 0, True
    while goes_on:
        goes_on, again = at_step(tmp_path / f"{step}", change, step)
        assert again == 6, "the short way was not taken"
        step += 1
    assert step > 1


@pytest.mark.parametrize("change", CHANGES)
def test_at_every_write_of_another_server_who_asks_as_before_is_told_what_others_are(
    tmp_path: Path, change: Callable[[Folder], Awaitable[None]]
) -> None:
    async def run() -> None:
        folder = Folder(tmp_path)
        await folder.found()
        looks = 0

        async def look() -> None:
            nonlocal looks
            looks += 1
            # Twice, so that what is found in the middle of the change is what the next request comes again to.
            for _ in range(2):
                await folder.compare(TABLE, VIEWED)

        await folder.compare(TABLE, VIEWED)
        folder.stores["two"].seen_to = look
        await change(folder)
        await folder.two._state.settle()
        folder.stores["two"].seen_to = None
        assert looks > 2
        for _ in range(2):
            await folder.compare(TABLE, VIEWED)
        for server in (folder.one, folder.two):
            await server._state.settle()
        await folder.close()

    asyncio.run(run())


def test_a_table_whose_file_is_gone_is_not_shown_from_memory(tmp_path: Path) -> None:
    async def run() -> None:
        folder = Folder(tmp_path)
        await folder.found()
        for _ in range(3):
            await folder.compare(TABLE)
        location = (await folder.change("GET", TABLE)).json["metadata-location"]
        await folder.stores["two"].delete(location.removeprefix(f"{tmp_path.as_uri()}/"))
        status, _, body = await folder.hear(get(TABLE))
        assert (status, json.loads(body)["error"]["type"]) == (404, "NotFoundException")
        assert (await folder.hear(get(TABLE, method="HEAD")))[0] == 204
        await folder.close()

    asyncio.run(run())


@pytest.mark.parametrize("change", [replaced, drop, rename])
def test_a_name_that_changed_hands_while_its_table_was_read_is_no_ground(
    tmp_path: Path, change: Callable[[Folder], Awaitable[None]]
) -> None:
    async def run() -> None:
        folder = Folder(tmp_path)
        await folder.found()
        tables = folder.one._state.catalog(Scope.parse_prefix("t.w")).tables
        _, read = await tables.load(("db",), "a")
        assert tables.ground(("db",), "a", read, file=True) is not None
        await change(folder)
        # Another request learns the names that there are now, while the first one is not answered yet.
        await tables.load(("db",), "b")
        for file in (True, False):
            assert tables.ground(("db",), "a", read, file=file) is None
        await folder.two._state.settle()
        await folder.close()

    asyncio.run(run())


@pytest.mark.parametrize("change", [transaction, creation])
def test_what_a_transaction_has_not_decided_is_no_ground(
    tmp_path: Path, change: Callable[[Folder], Awaitable[None]]
) -> None:
    async def run() -> None:
        folder = Folder(tmp_path)
        await folder.found()
        tables = folder.one._state.catalog(Scope.parse_prefix("t.w")).tables
        grounds: list[tuple[Ground, str]] = []
        locations = set()

        async def look() -> None:
            held = [location for ground, location in grounds if ground.holds()]
            _, read = await tables.load(("db",), "a")
            assert set(held) <= {read.location}
            locations.add(read.location)
            ground = tables.ground(("db",), "a", read, file=True)
            if ground is not None:
                grounds.append((ground, read.location))

        folder.stores["two"].seen_to = look
        await change(folder)
        await folder.two._state.settle()
        folder.stores["two"].seen_to = None
        assert (len(locations), bool(grounds)) == (2, True)
        await folder.close()

    asyncio.run(run())


def test_who_has_the_table_hears_so_again_until_it_changes(tmp_path: Path) -> None:
    async def run() -> None:
        folder = Folder(tmp_path)
        await folder.found()
        etag = (await folder.hear(get(TABLE)))[1]["etag"]
        asked = get(TABLE, f"If-None-Match: {etag}")
        assert [(await folder.hear(asked))[0] for _ in range(3)] == [304] * 3
        assert folder.one.again == 2
        await commit(folder)
        assert (await folder.hear(asked))[0] == 200
        await folder.close()

    asyncio.run(run())

"""What a request that another worker did has cost is counted once, by the worker that has the client."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec

from arco.catalog.policy import LocationPolicy
from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SeededEntropy
from arco.kernel.ids import UlidSource
from arco.storage.memory import MemoryStore
from arco.surface.http.app import App
from arco.surface.http.crew import Crew
from arco.surface.http.for_clients import ForClients
from arco.surface.http.handed_over import done_for
from arco.surface.http.server_state import ServerState
from integration.catalog_costs import PREFIX, SCHEMA, TABLES, property_commit
from stand_ins.asgi import ask
from unit.surface.test_metrics import COMMIT, Samples, parsed, value

_TABLES = 8


def test_a_request_that_was_handed_over_has_the_round_trips_that_it_took_there(tmp_path: Path) -> None:
    clock, store = SystemClock(), MemoryStore(SystemClock())
    sockets = [tmp_path / f"{number}.sock" for number in range(2)]

    def worker(number: int) -> tuple[App, Crew]:
        entropy = SeededEntropy(number)
        state = ServerState(store, "memory://", ForClients(), LocationPolicy(), clock, entropy)
        crew = Crew(clock, number, sockets)
        return App(state, UlidSource(clock, entropy), crew=crew), crew

    async def post(app: App, path: str, body: Any) -> None:
        assert (await ask(app, "POST", path, msgspec.json.encode(body))).status == 200

    async def scene() -> list[Samples]:
        workers = [worker(number) for number in range(2)]
        for app, crew in workers:
            await crew.open(lambda asked, app=app: done_for(app, asked), lambda _warehouse: None)
        (asked, _), _ = workers
        await post(asked, f"{PREFIX}/namespaces", {"namespace": ["db"]})
        for number in range(_TABLES):
            await post(asked, TABLES, {"name": f"t{number}", "schema": SCHEMA})
        for number in range(_TABLES):
            await post(asked, f"{TABLES}/t{number}", property_commit("1"))
        told = [parsed((await ask(app, "GET", "/metrics")).body) for app, _ in workers]
        await asyncio.gather(*(crew.close() for _, crew in workers))
        for app, _ in workers:
            await app._end()
        return told

    mine, other = asyncio.run(scene())
    assert value(mine, "arco_handed_over_total", done="there") > 1
    assert value(mine, "arco_store_round_trips_count", operation=COMMIT) == _TABLES
    assert value(mine, "arco_store_round_trips_bucket", operation=COMMIT, le="1.0") == 0, "no commit takes less than two"
    assert not [
        name for name, labels in other if ("operation", COMMIT) in labels and name == "arco_store_round_trips_count"
    ]

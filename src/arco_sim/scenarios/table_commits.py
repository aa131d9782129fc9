"""Clients commit to one table through several servers that die, stall and lose replies, and retry with the same key.

Every commit's metadata file is named after its key, so the table's own history tells how often each request landed. A client
outlives its servers: what it was told, and what it still has to ask, is in the world's notes.
"""

import re
from typing import Any

import msgspec

from arco.catalog.bases import Bases
from arco.catalog.commits import Commits
from arco.catalog.committer import Author
from arco.catalog.idempotency import RequestKey
from arco.catalog.namespaces import create_namespace
from arco.catalog.pointer import Source
from arco.catalog.receipts import Receipt
from arco.catalog.relations import Relations
from arco.catalog.subject import Tables
from arco.catalog.workspace import Workspace
from arco.iceberg import requests
from arco.iceberg.metadata import TableMetadata
from arco.iceberg.requests import CommitTable
from arco.kernel.canonical_json import request_hash
from arco.kernel.errors import AskHistory, FixRequest, Refresh, RetryLater
from arco.kernel.ids import new_uuid7
from arco.kernel.scope import Scope
from arco.storage.paging import walk
from arco_sim import invariants
from arco_sim.faults import Fault, FaultProfile
from arco_sim.scenario import violate
from arco_sim.world import Env, World

SCOPE = Scope.of("t", "w")
NAMESPACE, TABLE = ("db",), "orders"
_FILE = re.compile(r"([0-9]{5,})-([0-9a-f]{32})\.metadata\.json")


def workspace(env: Env) -> Workspace:
    return Workspace.on(env.store, "file:///lake", SCOPE, env.clock, env.entropy)


def commits_of(ws: Workspace) -> Commits[TableMetadata, CommitTable]:
    return Commits(ws, Tables(), Bases(ws, Tables()))


def _new_column(metadata: TableMetadata, name: str) -> dict[str, Any]:
    """Add a column, if nobody added one since."""
    last = metadata.last_column_id
    field = {"id": last + 1, "name": name, "type": "long", "required": False}
    fields = [*metadata.current_schema["fields"], field]
    return {
        "requirements": [{"type": "assert-last-assigned-field-id", "last-assigned-field-id": last}],
        "updates": [
            {"action": "add-schema", "schema": {"type": "struct", "fields": fields}},
            {"action": "set-current-schema", "schema-id": -1},
        ],
    }


class TableCommitsScenario:
    name = "table_commits"
    promise = "a commit that was acknowledged is in the table's history exactly once, one that was refused is not"
    profile = FaultProfile.of(fault_share=0.06, crash_share=0.008, stall_s=900.0)
    faults = tuple(Fault)

    async def prepare(self, world: World, env: Env) -> None:
        ws = workspace(env)
        tables = Relations(ws, Tables(), Bases(ws, Tables()))
        key = RequestKey("first", "create", "0", durable=False)
        await create_namespace(ws, NAMESPACE, {}, key, Author())
        field = {"id": 1, "name": "a", "type": "long", "required": False}
        body = {"name": TABLE, "schema": {"type": "struct", "fields": [field]}}
        create = RequestKey("second", "create", "0", durable=False)
        metadata, _ = await tables.create(NAMESPACE, requests.parse_create_table(body), create, Source())
        world.notes.update(uuid=metadata.table_uuid, acknowledged=set(), refused=set(), asked={})

    def start(self, world: World, *, small: bool) -> None:
        servers, each = (2, 1) if small else (3, 3)
        for number in range(servers):
            world.spawn(f"server{number}", lambda env, n=number: self._serve(env, n, each), lives=4)  # type: ignore[misc]

    async def _serve(self, env: Env, number: int, each: int) -> None:
        ws = workspace(env)
        commits = commits_of(ws)
        asked: dict[str, Any] = env.world.notes["asked"]
        for place in range(each):
            label = f"{number}-{place}"
            if label not in asked:
                body = await self._body(env, commits, label, place)
                asked[label] = {"key": new_uuid7(env.clock, env.entropy), "answered": False, "body": body}
            await self._ask(env, commits, ws, label, asked[label])
        await ws.afterwards.settle()

    async def _body(self, env: Env, commits: Commits[TableMetadata, CommitTable], label: str, place: int) -> dict[str, Any]:
        """In turn: a change that always applies, one that only the first of several can make, one that never applies.

        None of them is the same done twice: a repeated commit must show.
        """
        update = {"action": "set-properties", "updates": {"last": label}}
        if place % 3 == 0:
            return {"requirements": [], "updates": [update]}
        if place % 3 == 2:
            requirement = {"type": "assert-current-schema-id", "current-schema-id": 77}
            return {"requirements": [requirement], "updates": [update]}
        while True:
            try:
                base = await commits.bases.read(env.world.notes["uuid"])
            except RetryLater:
                continue
            if base is not None:
                return _new_column(base.metadata, f"c{label}")

    async def _ask(
        self, env: Env, commits: Commits[TableMetadata, CommitTable], ws: Workspace, label: str, asked: dict[str, Any]
    ) -> None:
        """Ask until there is an answer, always with the same key."""
        notes = env.world.notes
        request = requests.parse_commit_table(asked["body"])
        for _ in range(8):
            if asked["answered"]:
                return
            try:
                key = ws.markers.request_key(asked["key"], "updateTable", request_hash(asked["body"]))
                await commits.commit(NAMESPACE, TABLE, request, key, Source())
            except (AskHistory, RetryLater):
                await env.clock.sleep(200.0)
                continue
            except (FixRequest, Refresh):
                asked["answered"] = True
                notes["refused"].add(asked["key"])
                return
            asked["answered"] = True
            notes["acknowledged"].add(asked["key"])

    async def verify(self, world: World, env: Env) -> None:
        ws = workspace(env)
        pointer = await ws.pointers.read(world.notes["uuid"])
        if pointer is None:
            violate(world, invariants.NOTHING_LOST, "the table's pointer is gone")
            return
        landed = await self._landed(env, world, pointer.value.commit_number, pointer.value.metadata_location)
        for label, asked in world.notes["asked"].items():
            name = ws.files.name(RequestKey(asked["key"], "updateTable", request_hash(asked["body"])), 0)
            count = landed.count(name.partition("-")[2].partition(".")[0])
            if count > 1:
                violate(world, invariants.NOTHING_DOUBLED, f"request {label} landed {count} times")
            if asked["key"] in world.notes["acknowledged"] and not count:
                violate(world, invariants.NOTHING_LOST, f"request {label} was acknowledged and is not in history")
            if asked["key"] in world.notes["refused"] and count:
                violate(world, invariants.OUTCOMES_TRUE, f"request {label} was refused and landed")

    async def _landed(self, env: Env, world: World, last: int, current: str) -> list[str]:
        """The hashes of all commits in order, from the receipts and the head; the receipts must have no gap below it."""
        found = {last: current}
        async for entry in walk(env.store, "t/w/_catalog/events/"):
            if "/committed/" in entry.key:
                stored = await env.store.get(entry.key)
                if stored is not None:
                    receipt = msgspec.json.decode(stored.data, type=Receipt)
                    found[receipt.commit.commit_number] = receipt.commit.metadata_location
        missing = [number for number in range(last) if number not in found]
        if missing:
            violate(world, invariants.RECEIPTS_COMPLETE, f"commits {missing} of {last} have no receipt")
        files = (_FILE.search(location) for location in found.values())
        return [file[2] for file in files if file]

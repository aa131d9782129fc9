"""Writers create, commit, stage, drop, restore, rename and register over weeks, while two collectors take away what is garbage.

Requests stall for ten times the grace and then go on, deletions among them; clocks are ten minutes wrong. Whatever is deleted is
looked at in that moment: nothing that can be reached may go. At the end nothing may be left that nobody can reach.
"""

from typing import Any

from arco.catalog.catalog import Catalog
from arco.catalog.checkpoint import checkpoint
from arco.catalog.idempotency import RequestKey
from arco.catalog.manifest import Author
from arco.catalog.model import Kind
from arco.catalog.namespaces import create_namespace
from arco.iceberg import requests
from arco.kernel.canonical_json import request_hash
from arco.kernel.errors import ArcoError, AskHistory, FixRequest, NotFound, Refresh, RetryLater
from arco.kernel.ids import new_uuid7
from arco.kernel.limits import UNDROP_HOLD_S, UPKEEP_GRACE_S
from arco.ledger.receipts import Source
from arco.storage.port import Absent
from arco.upkeep.passes import jobs_named, upkeep_pass
from arco.upkeep.sweep import Setting
from arco_sim import invariants
from arco_sim.audit import audit_of
from arco_sim.choices import Weights
from arco_sim.faults import Fault, FaultProfile
from arco_sim.scenario import readable, violate
from arco_sim.scenarios.table_commits import FIELD, NAMESPACE, SCOPE, open_catalog, unkeyed
from arco_sim.scenarios.upkeep_truth import BASE, Truth
from arco_sim.world import Env, World

_NAMES = ("a", "b", "c")
_KINDS = ("commit", "create", "drop", "purge", "undrop", "rename", "stage", "staged", "register")
_OFTEN = Weights(6, 4, 1, 3, 2, 1, 2, 3, 1)
_SMALL = ["create d", "commit a"]
_SMALL_JOBS = ("pointers", "names", "metadata")
_HOUR_S = 3600.0
_DAY_S = 86_400
_TRIES_MAX = 3


class UpkeepScenario:
    name = "upkeep"
    promise = "nothing that anybody can reach is deleted, and nothing stays that nobody can reach"
    profile = FaultProfile.of(
        fault_share=0.05, crash_share=0.004, stall_s=10.0 * UPKEEP_GRACE_S, jump_s=600.0, limit_s=400 * 24 * _HOUR_S
    )
    faults = tuple(Fault)

    async def prepare(self, world: World, env: Env) -> None:
        world.notes["truth"] = Truth(world, SCOPE)
        world.notes["requests"] = []
        catalog = open_catalog(env)
        await create_namespace(catalog.parts, NAMESPACE, {}, unkeyed("namespace"), Author())
        for name in _NAMES:
            metadata, _ = await catalog.tables.create(NAMESPACE, _table(name), unkeyed(name), Source())
            await env.store.put(_file(metadata.location, "first"), b"rows", Absent())
        await catalog.tables.drop(NAMESPACE, _NAMES[-1], purge=False, key=unkeyed("drop"), author=Author())
        await catalog.parts.afterwards.settle()

    def start(self, world: World, *, small: bool) -> None:
        scripts = [list(_SMALL)] if small else [self._script(world) for _ in range(3)]
        world.notes["days"] = (UNDROP_HOLD_S // _DAY_S + 12, 3) if small else (UNDROP_HOLD_S // _DAY_S + 12, 3, 3)
        for number, script in enumerate(scripts):
            world.spawn(f"writer{number}", lambda env, todo=script: self._write(env, todo), lives=4)  # type: ignore[misc]
        if small:
            world.spawn("collector", self._collect_once)
            return
        for number in range(2):
            world.spawn(f"collector{number}", lambda env: self._collect(env, 8), lives=4)

    def _script(self, world: World) -> list[str]:
        chosen = [_KINDS[world.choices.weighted(_OFTEN)] for _ in range(5)]
        return [f"{kind} {(*_NAMES, 'd')[world.choices.below(4)]}" for kind in chosen]

    async def _write(self, env: Env, todo: list[str]) -> None:
        """A client and its server in one. What a dead one had begun is left to lie; its successor goes on with the rest."""
        wrong_clock(env)
        catalog = open_catalog(env)
        while todo:
            await env.clock.sleep(_HOUR_S * (1 + env.world.choices.below(40)))
            if todo:
                await _Request(env, catalog, todo.pop(0)).run()
        await catalog.parts.afterwards.settle()

    async def _collect(self, env: Env, rounds: int) -> None:
        wrong_clock(env)
        parts = open_catalog(env).parts
        for _ in range(rounds):
            await env.clock.sleep(_HOUR_S * (4 + env.world.choices.below(60)))
            await upkeep_pass(Setting(parts))
            try:
                await checkpoint(parts.tier1, env.clock, env.entropy)
            except ArcoError:
                continue

    async def _collect_once(self, env: Env) -> None:
        """When whoever stalled is still asleep."""
        await env.clock.sleep(2.0 * _DAY_S)
        await upkeep_pass(Setting(open_catalog(env).parts), jobs_named(_SMALL_JOBS))

    async def verify(self, world: World, env: Env) -> None:
        await readable(world, self._verify(world, env))

    async def _verify(self, world: World, env: Env) -> None:
        truth: Truth = world.notes["truth"]
        await _tables_load(world, env)
        for text in audit_of(world.everything(), SCOPE).breaks:
            violate(world, invariants.CHAIN_INTACT, text)
        for days in world.notes["days"]:
            # Longer than the longest stall: whatever was still on its way has arrived.
            await env.clock.sleep(days * _DAY_S)
            for report in await upkeep_pass(Setting(open_catalog(env).parts)):
                if report.failed or report.trouble:
                    violate(world, invariants.NO_LITTER, f"{report.kind}: {report.failed or report.trouble[0]}")
        for text in truth.litter():
            violate(world, invariants.NO_LITTER, text)
        await _tables_load(world, env)
        for request in world.notes["requests"]:
            request.judge(truth)


def wrong_clock(env: Env) -> None:
    """Ten minutes wrong at most. A clock that goes at another pace would be wrong by hours after weeks."""
    env.incarnation.clock_rate = 1.0
    if env.world.choices.recorded:
        env.incarnation.clock_offset_s = (-600.0, 0.0, 600.0)[env.world.choices.below(3)]


def _table(name: str) -> requests.CreateTable:
    return requests.parse_create_table({"name": name, "schema": {"type": "struct", "fields": [FIELD]}})


def _file(location: str, name: str) -> str:
    return f"{location.removeprefix(BASE)}/data/{name}.parquet"


async def _tables_load(world: World, env: Env) -> None:
    """Everything that has a name loads, with its files; what can be restored still has them."""
    catalog, objects = open_catalog(env), world.everything()
    names = (await catalog.parts.tier1.current()).names
    for entry in names.members(NAMESPACE, Kind.TABLE):
        try:
            await catalog.tables.load(NAMESPACE, entry.name)
        except NotFound as error:
            if entry.name in {
                one.name for one in (await catalog.parts.tier1.current()).names.members(NAMESPACE, Kind.TABLE)
            }:
                violate(world, invariants.NOT_HALF_GONE, f"{entry.name} has a name and cannot be loaded: {error}")
    truth: Truth = world.notes["truth"]
    for uuid in [*names.places, *names.dropped]:
        for location in truth.swings.get(uuid, {}).values():
            if location.removeprefix(BASE) not in objects:
                violate(world, invariants.NOTHING_NEEDED_DELETED, f"{location} is in a table's history and is gone")


class _Request:
    """What one client wants, and what it heard."""

    def __init__(self, env: Env, catalog: Catalog, wish: str) -> None:
        self.env = env
        self.catalog = catalog
        self.kind, self.name = wish.split()
        self.key = new_uuid7(env.clock, env.entropy)
        self.durable = self.kind != "commit" or bool(env.world.choices.below(3))
        self.heard: Any = None
        self.file = ""
        env.world.notes["requests"].append(self)

    async def run(self) -> None:
        for attempt in range(_TRIES_MAX):
            if attempt:
                await self.env.clock.sleep(700.0)
            try:
                await getattr(self, f"_{self.kind}")()
            except (RetryLater, AskHistory) as error:
                self.heard = error
                if not self.durable:
                    return
                continue
            except (FixRequest, Refresh) as error:
                self.heard = error
                return
            self.heard = "done"
            return

    def judge(self, truth: Truth) -> None:
        """A commit that was acknowledged is in a history once, one that was refused in none."""
        if self.kind != "commit" or not self.file:
            return
        count = len(truth.landings(self.file))
        if count > 1:
            violate(self.env.world, invariants.NOTHING_DOUBLED, f"{self.file} landed {count} times")
        if self.heard == "done" and not count:
            violate(self.env.world, invariants.NOTHING_LOST, f"{self.file} was acknowledged and is in no history")
        if isinstance(self.heard, FixRequest | Refresh) and count:
            violate(self.env.world, invariants.OUTCOMES_TRUE, f"{self.file} was refused and landed: {self.heard}")

    def _asked(self, body: Any) -> RequestKey:
        """As a server takes it: one past its lifetime is refused before anything is written."""
        digest = request_hash(body)
        if not self.durable:
            return RequestKey(self.key, self.kind, digest, durable=False)
        return self.catalog.parts.markers.request_key(self.key, self.kind, digest)

    async def _commit(self) -> None:
        body = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"last": self.key}}]}
        key = self._asked(body)
        self.file = self.catalog.parts.files.name(key, 0, "")
        await self.catalog.table_commits.commit(NAMESPACE, self.name, requests.parse_commit_table(body), key, Source())

    async def _create(self) -> None:
        metadata, _ = await self.catalog.tables.create(NAMESPACE, _table(self.name), self._asked(self.name), Source())
        await self.env.store.put(_file(metadata.location, "rows"), b"rows", Absent())

    async def _drop(self, *, purge: bool = False) -> None:
        asked = self._asked([self.name, purge])
        await self.catalog.tables.drop(NAMESPACE, self.name, purge=purge, key=asked, author=Author())

    async def _purge(self) -> None:
        await self._drop(purge=True)

    async def _undrop(self) -> None:
        found = (await self.catalog.parts.tier1.current()).names.last_dropped(NAMESPACE, self.name)
        if found is not None:
            await self.catalog.tables.undrop(found, NAMESPACE, self.name, self._asked(found.drop_id), Author())

    async def _rename(self) -> None:
        await self.catalog.tables.rename((NAMESPACE, self.name), (NAMESPACE, "d"), self._asked(self.name), Author())

    async def _register(self) -> None:
        """A table that was dropped, by the file that it stands at."""
        names = (await self.catalog.parts.tier1.current()).names
        for uuid in sorted(names.dropped)[:1]:
            pointer = await self.catalog.parts.pointers.read(uuid)
            if pointer is not None:
                place = pointer.value.metadata_location
                await self.catalog.registering.register(
                    NAMESPACE, self.name, place, overwrite=False, key=self._asked(place), author=Author()
                )

    async def _stage(self) -> str:
        metadata = await self.catalog.staging.stage(NAMESPACE, _table(self.name), self._asked(["stage", self.name]))
        await self.env.store.put(_file(metadata.location, "staged"), b"rows", Absent())
        return metadata.table_uuid

    async def _staged(self) -> None:
        """Stage, write, and create by a commit under another key, hours later."""
        uuid = await self._stage()
        await self.env.clock.sleep(_HOUR_S * self.env.world.choices.below(40))
        self.key = new_uuid7(self.env.clock, self.env.entropy)
        await self.catalog.staging.create_by_commit(
            NAMESPACE, self.name, _first_commit(self.name, uuid), self._asked(uuid), Source()
        )


def _first_commit(name: str, uuid: str) -> requests.CommitTable:
    return requests.parse_commit_table(
        {
            "requirements": [{"type": "assert-create"}],
            "updates": [
                {"action": "assign-uuid", "uuid": uuid},
                {"action": "upgrade-format-version", "format-version": 2},
                {"action": "add-schema", "schema": {"type": "struct", "schema-id": 0, "fields": [FIELD]}},
                {"action": "set-current-schema", "schema-id": -1},
                {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
                {"action": "set-default-spec", "spec-id": -1},
                {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
                {"action": "set-default-sort-order", "sort-order-id": -1},
                {"action": "set-location", "location": f"{BASE}t/w/data/{name}-{uuid}"},
            ],
        }
    )

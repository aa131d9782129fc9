"""Writers publish snapshots of one table over weeks, others tag and roll back, while snapshots expire and collectors take files.

Requests stall for ten times the grace and then go on, deletions and swings among them; clocks are ten minutes wrong. A writer
keeps to the one rule that clients have: it sends its commit within two days of its first file. Whatever is deleted is looked at
in that moment. At the end everything that the table names is there, and nothing else is.
"""

from typing import Any

from arco.catalog.catalog import Catalog
from arco.catalog.manifest import Author
from arco.catalog.namespaces import create_namespace
from arco.iceberg import requests
from arco.iceberg.manifest_files import manifests_in
from arco.iceberg.metadata import TableMetadata
from arco.iceberg.shape import JsonObject
from arco.kernel.canonical_json import request_hash
from arco.kernel.errors import ArcoError, AskHistory, Conflict, NotFound, RetryLater
from arco.kernel.ids import new_uuid7
from arco.kernel.limits import UPKEEP_GRACE_S
from arco.ledger.receipts import Source
from arco.storage.port import Absent, Landed
from arco.upkeep.passes import jobs_named, upkeep_pass
from arco.upkeep.sweep import Setting
from arco_sim import invariants
from arco_sim.choices import Weights
from arco_sim.faults import Fault, FaultProfile
from arco_sim.manifests import ROWS, manifest, manifest_list
from arco_sim.scenario import violate
from arco_sim.scenarios.maintenance_truth import TableTruth
from arco_sim.scenarios.table_commits import FIELD, NAMESPACE, open_catalog, unkeyed
from arco_sim.scenarios.upkeep import wrong_clock
from arco_sim.scenarios.upkeep_truth import BASE
from arco_sim.world import Env, World

_TABLE = "t"
_KINDS = ("append", "replace", "tag", "untag", "back", "set")
_OFTEN = Weights(5, 5, 2, 1, 1, 2)
_JOBS = ("reconcile", "snapshots", "files", "metadata", "versions", "markers", "receipts")
_HOUR_S = 3600.0
_DAY_S = 86_400
_SENT_WITHIN_S = 2 * _DAY_S
_WRITES_H = 46
"""Hours from the first file of a snapshot to its manifest: nearly all that a writer has."""
_TRIES_MAX = 3


class MaintenanceScenario:
    name = "maintenance"
    promise = "snapshots expire and files go beside slow writers, and nothing that anybody can reach is touched"
    profile = FaultProfile.of(
        fault_share=0.05, crash_share=0.004, stall_s=10.0 * UPKEEP_GRACE_S, jump_s=600.0, limit_s=400 * 24 * _HOUR_S
    )
    faults = tuple(Fault)

    async def prepare(self, world: World, env: Env) -> None:
        world.notes["snapshot"] = 0
        catalog = open_catalog(env)
        await create_namespace(catalog.parts, NAMESPACE, {}, unkeyed("namespace"), Author())
        world.notes["truth"] = TableTruth(world)
        body = {
            "name": _TABLE,
            "schema": {"type": "struct", "fields": [FIELD]},
            "properties": {
                "maintenance.expire-snapshots.enabled": "true",
                "maintenance.orphan-files.enabled": "true",
                "history.expire.max-snapshot-age-ms": str(2 * _DAY_S * 1000),
                "history.expire.max-ref-age-ms": str(12 * _DAY_S * 1000),
                "write.metadata.delete-after-commit.enabled": "true",
                "write.metadata.previous-versions-max": str(1 + world.seed % 3),
            },
        }
        await catalog.tables.create(NAMESPACE, requests.parse_create_table(body), unkeyed("table"), Source())
        for kind in ("replace", "append"):
            await _Wish(env, catalog, kind).run()
        await catalog.parts.afterwards.settle()

    def start(self, world: World, *, small: bool) -> None:
        scripts = [["replace"]] if small else [self._script(world) for _ in range(3)]
        for number, script in enumerate(scripts):
            world.spawn(f"writer{number}", lambda env, todo=script: self._write(env, todo), lives=4)  # type: ignore[misc]
        if small:
            world.spawn("collector", self._collect_once)
            return
        for number in range(2):
            world.spawn(f"collector{number}", lambda env: self._collect(env, 8), lives=4)

    def _script(self, world: World) -> list[str]:
        return [_KINDS[world.choices.weighted(_OFTEN)] for _ in range(5)]

    async def _write(self, env: Env, todo: list[str]) -> None:
        wrong_clock(env)
        catalog = open_catalog(env)
        while todo:
            await env.clock.sleep(_HOUR_S * (1 + env.world.choices.below(60)))
            if todo:
                await _Wish(env, catalog, todo.pop(0)).run()
        await catalog.parts.afterwards.settle()

    async def _collect(self, env: Env, rounds: int) -> None:
        wrong_clock(env)
        parts = open_catalog(env).parts
        for _ in range(rounds):
            await env.clock.sleep(_HOUR_S * (4 + env.world.choices.below(60)))
            await upkeep_pass(Setting(parts), jobs_named(_JOBS))

    async def _collect_once(self, env: Env) -> None:
        """When whoever stalled is still asleep; what expired the first time goes the second."""
        parts = open_catalog(env).parts
        for days in (4, 2):
            await env.clock.sleep(days * _DAY_S)
            await upkeep_pass(Setting(parts), jobs_named(("snapshots", "files")))

    async def verify(self, world: World, env: Env) -> None:
        truth: TableTruth = world.notes["truth"]
        self._nothing_missing(world, truth)
        # Past whatever was staged and never swung, and longer than the longest stall.
        for days in (12, 5, 5, 5):
            await env.clock.sleep(days * _DAY_S)
            await _Wish(env, open_catalog(env), "set").run()
            await env.clock.sleep(2 * _DAY_S)
            for report in await upkeep_pass(Setting(open_catalog(env).parts), jobs_named(_JOBS)):
                if report.failed or report.trouble:
                    violate(world, invariants.NO_LITTER, f"{report.kind}: {report.failed or report.trouble[0]}")
        self._nothing_missing(world, truth)
        for key in truth.litter():
            violate(world, invariants.NO_LITTER, f"{key} is named by nothing")

    def _nothing_missing(self, world: World, truth: TableTruth) -> None:
        for key in truth.missing():
            violate(world, invariants.NOTHING_NEEDED_DELETED, f"the table names {key}, which is gone")


class _Wish:
    """What one client wants of the table."""

    def __init__(self, env: Env, catalog: Catalog, kind: str) -> None:
        self._env = env
        self._catalog = catalog
        self._kind = kind
        self._begun_ms = env.clock.now_ms()

    async def run(self) -> None:
        try:
            await getattr(self, f"_{self._kind}")()
        except (ArcoError, _GivenUp):
            return  # what it wrote is left to lie

    async def _load(self) -> TableMetadata:
        return (await self._catalog.tables.load(NAMESPACE, _TABLE))[1].metadata

    async def _commit(self, *updates: JsonObject, base: TableMetadata | None = None) -> None:
        """As a client sends it: with its own key, and again when the answer says so."""
        if self._env.clock.now_ms() - self._begun_ms > _SENT_WITHIN_S * 1000:
            raise _GivenUp
        required: list[Any] = []
        if base is not None:
            required = [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": base.current_snapshot_id}]
        body: JsonObject = {"requirements": required, "updates": list(updates)}
        key = new_uuid7(self._env.clock, self._env.entropy)
        for attempt in range(_TRIES_MAX):
            if attempt:
                await self._env.clock.sleep(700.0)
            asked = self._catalog.parts.markers.request_key(key, "commit", request_hash(body))
            try:
                await self._catalog.table_commits.commit(
                    NAMESPACE, _TABLE, requests.parse_commit_table(body), asked, Source()
                )
            except (RetryLater, AskHistory):
                continue
            return

    async def _set(self) -> None:
        await self._commit({"action": "set-properties", "updates": {"last": str(self._begun_ms)}})

    async def _tag(self) -> None:
        table = await self._load()
        chosen = table.snapshots[self._env.world.choices.below(len(table.snapshots))]
        ref: JsonObject = {
            "ref-name": f"tag{self._env.world.choices.below(3)}",
            "type": "tag",
            "snapshot-id": chosen["snapshot-id"],
        }
        await self._commit({"action": "set-snapshot-ref", **ref})

    async def _untag(self) -> None:
        await self._commit({"action": "remove-snapshot-ref", "ref-name": f"tag{self._env.world.choices.below(3)}"})

    async def _back(self) -> None:
        """Main at an older snapshot."""
        table = await self._load()
        chosen = table.snapshots[self._env.world.choices.below(len(table.snapshots))]["snapshot-id"]
        main = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": chosen}
        await self._commit(main, base=table)

    async def _append(self) -> None:
        await self._publish(keeps=True)

    async def _replace(self) -> None:
        await self._publish(keeps=False)

    async def _publish(self, *, keeps: bool) -> None:
        """A file, its manifest and a list; on a conflict another list with the same file, as engines do it."""
        table = await self._load()
        number = self._env.world.notes["snapshot"] = self._env.world.notes["snapshot"] + 1
        name = f"{number}-{self._env.entropy.token_bytes(4).hex()}"
        data = f"{table.location}/data/{name}.parquet"
        await self._write(data, ROWS)
        await self._env.clock.sleep(_HOUR_S * self._env.world.choices.below(_WRITES_H))
        named, content = manifest(f"{table.location}/metadata/{name}-m0.avro", number, [data])
        await self._write(f"{table.location}/metadata/{name}-m0.avro", content)
        for rebase in range(_TRIES_MAX):
            listed = f"{table.location}/metadata/snap-{name}-{rebase}.avro"
            parent, sequence = table.current_snapshot_id, table.last_sequence_number + 1
            others = await self._manifests_of(table) if keeps else []
            await self._write(listed, manifest_list(listed, number, parent, sequence, [named, *others]))
            try:
                await self._commit(*_snapshot(number, parent, sequence, listed, self._env.clock.now_ms()), base=table)
            except Conflict:
                table = await self._load()
                if any(one["snapshot-id"] == number for one in table.snapshots):
                    return
                continue
            return

    async def _manifests_of(self, table: TableMetadata) -> list[Any]:
        current = next(one for one in table.snapshots if one["snapshot-id"] == table.current_snapshot_id)
        found = await self._env.store.get(str(current["manifest-list"]).removeprefix(BASE))
        if found is None:
            raise NotFound("the list of the snapshot to build on is gone")
        return manifests_in(found.data, str(current["manifest-list"]))

    async def _write(self, location: str, content: bytes) -> None:
        if not isinstance(await self._env.store.put(location.removeprefix(BASE), content, Absent()), Landed):
            raise _GivenUp


def _snapshot(number: int, parent: int | None, sequence: int, listed: str, at_ms: int) -> tuple[JsonObject, JsonObject]:
    snapshot: JsonObject = {
        "snapshot-id": number,
        "sequence-number": sequence,
        "timestamp-ms": at_ms,
        "manifest-list": listed,
        "summary": {"operation": "overwrite"},
    }
    if parent is not None:
        snapshot["parent-snapshot-id"] = parent
    main = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": number}
    return {"action": "add-snapshot", "snapshot": snapshot}, main


class _GivenUp(Exception):
    """The client leaves what it wrote, and goes."""

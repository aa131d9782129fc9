"""The other half of what has a name: views, tables of other formats, staged creations, and what people do through the platform.

They share the names with the tables of `names`, and the servers that die, stall and lose replies. Owners are told by whoever
describes a table, properties of the namespace by whoever changes them: both must fit the same order of events, and what a change
of properties says that it removed must have been there.
"""

from typing import Any

from arco.catalog.catalog import Catalog
from arco.catalog.idempotency import RequestKey
from arco.catalog.inventory import Description, DropRef, Inventory, NewTable
from arco.catalog.manifest import Author
from arco.catalog.model import Format, Kind
from arco.catalog.namespaces import change_namespace
from arco.catalog.operations import Describe
from arco.catalog.operations import Operation as Change
from arco.iceberg import requests
from arco.kernel.canonical_json import request_hash
from arco.ledger.receipts import Source
from arco_sim.audit import Audit
from arco_sim.catalog_model import CatalogModel, CatalogState
from arco_sim.choices import Weights
from arco_sim.clients import Request
from arco_sim.linearizability import Operation
from arco_sim.models import Properties
from arco_sim.scenario import check_linearizable
from arco_sim.scenarios.names import Judged, NamesScenario, Work, made, new_table
from arco_sim.scenarios.table_commits import FIELD, NAMESPACE, open_catalog, unkeyed
from arco_sim.world import Env, World

_VIEW = "v"
"""A view that is there at first."""
_OFTEN = {
    "load": 2, "create": 2, "commit": 3, "drop": 2, "list": 1,
    "stage": 4, "view": 3, "replace": 4, "look": 3, "unview": 2, "review": 2, "views": 1, "csv": 2,
    "describe": 4, "show": 4, "remove": 4, "move": 4, "restore": 4, "change": 4, "properties": 2,
}  # fmt: skip
_OF_VIEWS = frozenset({"replace", "look", "unview", "review"})
_MODELLED = {
    "view": "create view", "csv": "create csv", "unview": "drop view", "review": "rename view",
    "remove": "drop any", "move": "rename any", "restore": "undrop",
}  # fmt: skip


class MoreNamesScenario(NamesScenario):
    name = "more_names"
    promise = (
        "views, staged tables, tables of other formats and what people say of them share one order of events with tables"
    )
    kinds = tuple(_OFTEN)
    often = Weights(*_OFTEN.values())
    small = (
        ("stage d", "describe a", "move a c", "remove b", "restore b"),
        ("view b", "replace v", "show c", "change p q", "unview v", "csv a"),
    )
    sources = ("a", "b", "c", _VIEW)

    def work(self, env: Env, catalog: Catalog, request: Request) -> Work:
        return _Work(env, catalog, request)

    def judged(self, world: World, env: Env, found: Audit, request: Request) -> Judged:
        return _Judged(world, env, found, request)

    def _wish(self, world: World) -> str:
        wish = super()._wish(world)
        kind, _, target = wish.split()
        # Most that is about views is about the one that is there.
        return f"{kind} {_VIEW} {target}" if kind in _OF_VIEWS and world.choices.below(3) else wish

    async def prepare(self, world: World, env: Env) -> None:
        await super().prepare(world, env)
        wanted = requests.parse_create_view(_new_view(_VIEW, "first v"))
        metadata, _ = await open_catalog(env).views.create(NAMESPACE, wanted, unkeyed(_VIEW), Source())
        first: CatalogState = world.notes["first"]
        uuid = metadata.view_uuid
        world.notes["first"] = first.bound(_VIEW, uuid).holding(uuid, "first v").of_kind(uuid, "view")

    def check_history(self, world: World, history: list[Operation]) -> None:
        properties = [line for line in history if line.key == "properties"]
        names = [line for line in history if line.key != "properties"]
        check_linearizable(world, CatalogModel(world.notes["first"]), names)
        check_linearizable(world, Properties(), properties)


def _new_view(name: str, label: str) -> dict[str, Any]:
    version = {
        "version-id": 1,
        "timestamp-ms": 1,
        "schema-id": 0,
        "default-namespace": list(NAMESPACE),
        "representations": [{"type": "sql", "sql": f"select '{label}'", "dialect": "spark"}],
    }
    schema = {"type": "struct", "fields": [FIELD]}
    return {"name": name, "schema": schema, "view-version": version, "properties": {"last": label}}


class _Work(Work):
    """The other requests."""

    async def decide(self) -> dict[str, Any]:
        kind, name, *rest = self.request.wish.split()
        if kind == "replace":
            update = {"action": "set-properties", "updates": {"last": str(self.request)}}
            return {"name": name, "body": {"requirements": [], "updates": [update]}}
        if kind == "stage":
            return {"name": name, **await self._staged(name)}
        if kind == "restore":
            return {"body": {"name": name}, **await self.some_table(live=False)}
        if kind == "change":
            return {"body": {"removals": [name, "never"], "updates": {rest[0]: str(self.request)}}}
        return await super().decide()

    async def some_table(self, *, live: bool) -> dict[str, Any]:
        """Anything that was dropped, of whatever kind."""
        names = (await open_catalog(self.env).parts.tier1.current()).names
        dropped = sorted(names.dropped.values(), key=lambda one: one.entry.uuid)
        if not dropped:
            return {}
        chosen = dropped[self.env.world.choices.below(len(dropped))]
        return {"uuid": chosen.entry.uuid, "drop_id": chosen.drop_id}

    async def _staged(self, name: str) -> dict[str, Any]:
        """The table is described first, under a key of its own that stays the same however often this is begun."""
        body = new_table(name, str(self.request)) | {"stage-create": True}
        last = "1" if self.request.key.endswith("0") else "0"
        key = RequestKey(self.request.key[:-1] + last, "stageTable", request_hash(body))
        metadata = await self.catalog.staging.stage(NAMESPACE, requests.parse_create_table(body), key)
        updates = [
            {"action": "assign-uuid", "uuid": metadata.table_uuid},
            {"action": "upgrade-format-version", "format-version": 2},
            {"action": "add-schema", "schema": metadata.current_schema},
            {"action": "set-current-schema", "schema-id": -1},
            {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
            {"action": "set-default-spec", "spec-id": -1},
            {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
            {"action": "set-default-sort-order", "sort-order-id": -1},
            {"action": "set-location", "location": metadata.location},
            {"action": "set-properties", "updates": {"last": str(self.request)}},
        ]
        return {"body": {"requirements": [{"type": "assert-create"}], "updates": updates}, "uuid": metadata.table_uuid}

    @property
    def _inventory(self) -> Inventory:
        return Inventory(self.catalog)

    # One method for each kind

    async def _stage(self, body: dict[str, Any], key: RequestKey) -> str:
        wanted, name = requests.parse_commit_table(body), self.request.known["name"]
        metadata, _ = await self.catalog.staging.create_by_commit(NAMESPACE, name, wanted, key, Source())
        return metadata.table_uuid

    async def _view(self, body: dict[str, Any], key: RequestKey) -> str:
        wanted = requests.parse_create_view(_new_view(body["name"], body["label"]))
        metadata, _ = await self.catalog.views.create(NAMESPACE, wanted, key, Source())
        return metadata.view_uuid

    async def _replace(self, body: dict[str, Any], _: RequestKey) -> str:
        key = RequestKey(self.request.key, "updateTable", request_hash(body))
        wanted, name = requests.parse_commit_view(body), self.request.known["name"]
        return (await self.catalog.view_commits.commit(NAMESPACE, name, wanted, key, Source())).location

    async def _look(self, body: dict[str, Any], _: RequestKey) -> tuple[str, str]:
        entry, base = await self.catalog.views.load(NAMESPACE, body["name"])
        return entry.uuid, base.metadata.properties["last"]

    async def _views(self, _: dict[str, Any], __: RequestKey) -> tuple[str, ...]:
        names = (await self.catalog.parts.tier1.current()).names
        return tuple(entry.name for entry in names.members(NAMESPACE, Kind.VIEW))

    async def _unview(self, body: dict[str, Any], key: RequestKey) -> str:
        await self.catalog.views.drop(NAMESPACE, body["name"], purge=False, key=key, author=Author())
        return "ok"

    async def _review(self, body: dict[str, Any], key: RequestKey) -> str:
        await self.catalog.views.rename((NAMESPACE, body["name"]), (NAMESPACE, body["to"]), key, Author())
        return "ok"

    async def _csv(self, body: dict[str, Any], key: RequestKey) -> str:
        table = NewTable(NAMESPACE, body["name"], Format.CSV, f"s3://elsewhere/{key.hash}")
        return await self._inventory.create(table, key, Author())

    async def _describe(self, body: dict[str, Any], key: RequestKey) -> str:
        wanted = Description({"owner": body["label"]})
        await self._inventory.describe((NAMESPACE, body["name"]), wanted, key, Author())
        return "ok"

    async def _show(self, body: dict[str, Any], _: RequestKey) -> tuple[str, str | None]:
        entry = await self._inventory.find((NAMESPACE, body["name"]))
        return entry.uuid, entry.governance.owner

    async def _remove(self, body: dict[str, Any], key: RequestKey) -> str:
        await self._inventory.drop((NAMESPACE, body["name"]), purge=False, key=key, author=Author())
        return "ok"

    async def _move(self, body: dict[str, Any], key: RequestKey) -> str:
        await self._inventory.rename((NAMESPACE, body["name"]), (NAMESPACE, body["to"]), key, Author())
        return "ok"

    async def _restore(self, body: dict[str, Any], key: RequestKey) -> str:
        if "drop_id" not in self.request.known:
            return "skipped"
        lost = DropRef(drop_id=self.request.known["drop_id"])
        await self._inventory.undrop(lost, (NAMESPACE, body["name"]), key, Author())
        return "ok"

    async def _change(self, body: dict[str, Any], key: RequestKey) -> tuple[tuple[str, ...], tuple[str, ...]]:
        removals = tuple(body["removals"])
        changes = await change_namespace(self.catalog.parts, NAMESPACE, removals, body["updates"], key, Author())
        return changes.removed, changes.missing

    async def _properties(self, _: dict[str, Any], __: RequestKey) -> tuple[tuple[str, str], ...]:
        namespace = (await self.catalog.parts.tier1.current()).names.namespace(NAMESPACE)
        return tuple(sorted(namespace.properties.items()))


class _Judged(Judged):
    """The other answers."""

    def lines(self) -> list[Operation]:
        request = self.request
        match request.kind:
            case "look":
                return self.seen("load view", self.body["name"])
            case "views":
                return self.seen("list view", self.body["name"])
            case "show":
                return self.seen("show", self.body["name"])
            case "properties":
                return [request.operation("read", None, request.answer, key="properties")] if request.landed else []
            case "replace":
                return self.committed("view")
            case "describe":
                return self._described()
            case "change":
                return self._changed_properties()
            case _:
                return super().lines()

    def _described(self) -> list[Operation]:
        done = self.done()
        uuid = done[0].uuid if done and isinstance(done[0], Describe) else None
        return [] if self.was_given_up else self.written(self.body["name"], uuid, "own", "any")

    def _changed_properties(self) -> list[Operation]:
        if not self.done():
            return []
        updates = tuple(self.body["updates"].items())
        return [
            self.request.operation("change", (tuple(self.body["removals"]), updates), self.request.answer, key="properties")
        ]

    @property
    def operation(self) -> str:
        return _MODELLED.get(self.request.kind, self.request.kind)

    def argument(self, done: list[Change]) -> Any:
        body, known = self.body, self.request.known
        match self.request.kind:
            case "stage":
                return (known["name"], known["uuid"], str(self.request))
            case "view" | "csv":
                return (body["name"], made(done), body["label"])
            case "review" | "move":
                return (body["name"], body["to"])
            case "restore":
                return (known["uuid"], body["name"])
            case _:
                return super().argument(done)

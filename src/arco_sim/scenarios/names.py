"""Clients create, drop, restore, rename and register tables under a few names, through servers that die, stall and lose replies.

Others commit to them, load and list them, make and remove namespaces, and a checkpointer folds the tail. What each client heard
must fit one order of events (`catalog_model.py`), and what is stored at the end must be whole: every operation once, every
name with its table, every state equal to the sum of its commits.
"""

from typing import Any

from arco.catalog.catalog import Catalog
from arco.catalog.checkpoint import checkpoint
from arco.catalog.idempotency import RequestKey
from arco.catalog.manifest import Author
from arco.catalog.model import Format, Kind
from arco.catalog.names import Names
from arco.catalog.namespaces import create_namespace, drop_namespace
from arco.catalog.once import GIVEN_UP
from arco.catalog.operations import Create
from arco.catalog.operations import Operation as Change
from arco.catalog.relations import Relations
from arco.catalog.standing import in_step
from arco.iceberg import requests
from arco.kernel.canonical_json import request_hash
from arco.kernel.errors import AlreadyExists, ArcoError, NoSuchNamespace, NotFound, Refresh
from arco.ledger.receipts import Source
from arco.storage.keys import parse
from arco_sim import invariants
from arco_sim.audit import Audit, audit_of
from arco_sim.catalog_model import CatalogModel, CatalogState
from arco_sim.choices import Weights
from arco_sim.clients import Clients, Request, written
from arco_sim.faults import Fault, FaultProfile
from arco_sim.linearizability import Operation
from arco_sim.models import Existence
from arco_sim.scenario import check_linearizable, readable, violate
from arco_sim.scenarios.table_commits import FIELD, NAMESPACE, SCOPE, landings, open_catalog, unkeyed
from arco_sim.world import Env, World

_NAMES = ("a", "b", "c")
"""Tables that are there at first, but for the last, which was dropped."""
_FREE = "d"
_SPACES = ("x", "y")
_KINDS = ("load", "create", "commit", "drop", "rename", "undrop", "register", "overwrite", "list", "space", "unspace")
_OFTEN = Weights(5, 4, 5, 5, 4, 4, 1, 2, 1, 1, 1)
_SMALL = (
    ("commit a", "rename a c", "drop b", "undrop b", "overwrite b"),
    ("load a", "create a", "commit c", "drop c", "register c", "space x", "unspace x"),
)


class NamesScenario:
    name = "names"
    promise = (
        "what clients hear of names fits one order of events; every operation is done once, and no table is half there"
    )
    profile = FaultProfile.of(fault_share=0.05, crash_share=0.006, stall_s=500.0, lingers=True)
    faults = tuple(Fault)
    kinds: tuple[str, ...] = _KINDS
    often = _OFTEN
    small: tuple[tuple[str, ...], ...] = _SMALL
    sources: tuple[str, ...] = _NAMES

    def work(self, env: Env, catalog: Catalog, request: Request) -> "Work":
        return Work(env, catalog, request)

    def judged(self, world: World, env: Env, found: Audit, request: Request) -> "Judged":
        return Judged(world, env, found, request)

    async def prepare(self, world: World, env: Env) -> None:
        catalog = open_catalog(env)
        await create_namespace(catalog.parts, NAMESPACE, {}, unkeyed("namespace"), Author())
        uuids = {}
        for name in _NAMES:
            wanted = requests.parse_create_table(new_table(name, f"first {name}"))
            metadata, _ = await catalog.tables.create(NAMESPACE, wanted, unkeyed(name), Source())
            uuids[name] = metadata.table_uuid
        *_, gone = _NAMES
        await catalog.tables.drop(NAMESPACE, gone, purge=False, key=unkeyed("drop"), author=Author())
        heads = frozenset((uuid, f"first {name}") for name, uuid in uuids.items())
        live = frozenset((name, uuid) for name, uuid in uuids.items() if name != gone)
        world.notes["first"] = CatalogState(live, frozenset({uuids[gone]}), heads)

    def start(self, world: World, *, small: bool) -> None:
        servers = 2 if small else 3
        scripts = [list(script) for script in self.small] if small else self._scripts(world, clients=4, each=4)
        world.notes["clients"] = Clients(world, scripts, servers)
        for number in range(servers):
            world.spawn(f"server{number}", lambda env, n=number: self._serve(env, n), lives=4)  # type: ignore[misc]
        if not small:
            world.spawn("checkpointer", self._checkpoint)

    def _scripts(self, world: World, *, clients: int, each: int) -> list[list[str]]:
        return [[self._wish(world) for _ in range(each)] for _ in range(clients)]

    def _wish(self, world: World) -> str:
        kind = self.kinds[world.choices.weighted(self.often)]
        if kind.endswith("space"):
            return f"{kind} {_SPACES[world.choices.below(len(_SPACES))]}"
        source, target = (choose[world.choices.below(len(choose))] for choose in (self.sources, (*self.sources, _FREE)))
        return f"{kind} {source} {target}"

    async def _serve(self, env: Env, number: int) -> None:
        catalog = open_catalog(env, take_turns=env.world.seed % 4 == 0)
        clients: Clients = env.world.notes["clients"]
        await clients.serve(env, number, lambda request: self.work(env, catalog, request).do())
        await catalog.parts.afterwards.settle()

    async def _checkpoint(self, env: Env) -> None:
        parts = open_catalog(env).parts
        clients: Clients = env.world.notes["clients"]
        while not clients.everything_done:
            await env.clock.sleep(40.0 + 40.0 * env.world.choices.below(4))
            try:
                await checkpoint(parts.tier1, env.clock, env.entropy)
            except ArcoError:
                continue

    async def verify(self, world: World, env: Env) -> None:
        await readable(world, self._verify(world, env))

    async def _verify(self, world: World, env: Env) -> None:
        clients: Clients = world.notes["clients"]
        await _Healing(world, env).check()
        found = audit_of(world.everything(), SCOPE)
        for text in (*found.gaps, *found.breaks):
            violate(world, invariants.RECEIPTS_COMPLETE if text in found.gaps else invariants.CHAIN_INTACT, text)
        _check_objects(world, found)
        await _check_states(world, env, found)
        history = [line for one in clients.requests if one.known for line in self.judged(world, env, found, one).lines()]
        self.check_history(world, history)

    def check_history(self, world: World, history: list[Operation]) -> None:
        spaces = [line for line in history if line.name in ("space", "unspace")]
        tables = [line for line in history if line not in spaces]
        check_linearizable(world, CatalogModel(world.notes["first"]), tables)
        check_linearizable(world, Existence(), spaces)


def new_table(name: str, label: str) -> dict[str, Any]:
    return {"name": name, "schema": {"type": "struct", "fields": [FIELD]}, "properties": {"last": label}}


class Work:
    """One request at one server. What it is about was decided when it was first sent, from what its client saw then."""

    def __init__(self, env: Env, catalog: Catalog, request: Request) -> None:
        self.env = env
        self.catalog = catalog
        self.request = request

    async def do(self) -> Any:
        body = await written(self.request, self.decide)
        key = RequestKey(self.request.key, self.request.kind, request_hash(body))
        return await getattr(self, f"_{self.request.kind}")(body, key)

    async def decide(self) -> dict[str, Any]:
        kind, name, *rest = self.request.wish.split()
        body: dict[str, Any] = {"name": name, "label": str(self.request), "to": rest[0] if rest else name}
        if kind == "commit":
            update = {"action": "set-properties", "updates": {"last": str(self.request)}}
            return {"name": name, "body": {"requirements": [], "updates": [update]}}
        if kind in ("undrop", "register", "overwrite"):
            return {"body": body, **await self.some_table(live=kind == "overwrite")}
        return {"body": body}

    async def some_table(self, *, live: bool) -> dict[str, Any]:
        """A table that was dropped, if there is one, or that exists; with where its metadata lies now."""
        parts = open_catalog(self.env).parts
        names = (await parts.tier1.current()).names
        dropped = sorted(names.dropped.values(), key=lambda one: one.entry.uuid)
        uuids = [one.entry.uuid for one in dropped] + ([entry.uuid for entry in names.entries.values()] if live else [])
        if not uuids:
            return {}
        uuid = uuids[self.env.world.choices.below(len(uuids))]
        pointer = await parts.pointers.read(uuid)
        if pointer is None:
            return {}
        location = pointer.value.metadata_location
        metadata = await open_catalog(self.env).tables.metadata_at(location)
        chosen = {"uuid": uuid, "location": location, "holds": metadata.properties["last"]}
        return chosen | {"dropped": names.dropped.get(uuid)}

    # One method for each kind

    async def _load(self, body: dict[str, Any], _: RequestKey) -> tuple[str, str]:
        entry, base = await self.catalog.tables.load(NAMESPACE, body["name"])
        return entry.uuid, base.metadata.properties["last"]

    async def _list(self, _: dict[str, Any], __: RequestKey) -> tuple[str, ...]:
        names = (await self.catalog.parts.tier1.current()).names
        return tuple(entry.name for entry in names.members(NAMESPACE, Kind.TABLE))

    async def _create(self, body: dict[str, Any], key: RequestKey) -> str:
        wanted = requests.parse_create_table(new_table(body["name"], body["label"]))
        metadata, _ = await self.catalog.tables.create(NAMESPACE, wanted, key, Source())
        return metadata.table_uuid

    async def _commit(self, body: dict[str, Any], _: RequestKey) -> str:
        wanted = requests.parse_commit_table(body)
        key = RequestKey(self.request.key, "updateTable", request_hash(body))
        done = await self.catalog.table_commits.commit(NAMESPACE, self.request.known["name"], wanted, key, Source())
        return done.location

    async def _drop(self, body: dict[str, Any], key: RequestKey) -> str:
        await self.catalog.tables.drop(NAMESPACE, body["name"], purge=False, key=key, author=Author())
        return "ok"

    async def _rename(self, body: dict[str, Any], key: RequestKey) -> str:
        await self.catalog.tables.rename((NAMESPACE, body["name"]), (NAMESPACE, body["to"]), key, Author())
        return "ok"

    async def _undrop(self, body: dict[str, Any], key: RequestKey) -> str:
        dropped = self.request.known.get("dropped")
        if dropped is None:
            return "skipped"
        await self.catalog.tables.undrop(dropped, NAMESPACE, body["name"], key, Author())
        return "ok"

    async def _register(self, body: dict[str, Any], key: RequestKey, *, overwrite: bool = False) -> str:
        if "location" not in self.request.known:
            return "skipped"
        place = self.request.known["location"]
        await self.catalog.registering.register(
            NAMESPACE, body["name"], place, overwrite=overwrite, key=key, author=Author()
        )
        return "ok"

    async def _overwrite(self, body: dict[str, Any], key: RequestKey) -> str:
        return await self._register(body, key, overwrite=True)

    async def _space(self, body: dict[str, Any], key: RequestKey) -> str:
        await create_namespace(self.catalog.parts, (body["name"],), {}, key, Author())
        return "ok"

    async def _unspace(self, body: dict[str, Any], key: RequestKey) -> str:
        await drop_namespace(self.catalog.parts, (body["name"],), key, Author())
        return "ok"


class Judged:
    """What a client heard, against what is in the chain and in the tables' histories."""

    def __init__(self, world: World, env: Env, found: Audit, request: Request) -> None:
        self.world = world
        self.env = env
        self.found = found
        self.request = request
        self.body: dict[str, Any] = request.known["body"]

    def lines(self) -> list[Operation]:
        """The request as operations of a history; none if nothing happened and nobody heard anything."""
        request = self.request
        if request.answer == "skipped":
            return []
        if request.kind in ("load", "list"):
            return self.seen(request.kind, self.body["name"])
        if request.kind == "commit":
            return self.committed()
        return self.changed()

    def seen(self, operation: str, name: str) -> list[Operation]:
        request = self.request
        if request.refusal is not None:
            return [request.operation(operation, name, self.refusal())]
        return [request.operation(operation, name, request.answer)] if request.landed else []

    def committed(self, kind: str = "table") -> list[Operation]:
        request, name = self.request, self.request.known["name"]
        landed = landings(self.env, self.found, request)
        self.judge(len(landed))
        return self.written(name, landed[0][0] if landed else None, "write", kind)

    def written(self, name: str, uuid: str | None, write: str, kind: str) -> list[Operation]:
        """Two operations within one interval: the name meant that table, and the table was written. `uuid` if it was done."""
        request = self.request
        if request.refusal is not None:
            if self.refusal() != "missing":
                self.complain(invariants.OUTCOMES_TRUE, f"always applies, and was refused: {request.refusal.message}")
            return [request.operation(f"resolve {kind}", (name, None), "ok")]
        if uuid is None:
            return []
        done = request.operation(write, (uuid, str(request)), "ok")
        named = [request.operation(f"resolve {kind}", (name, uuid), "ok")] if request.landed else []
        return [*named, done]

    def changed(self) -> list[Operation]:
        request, done = self.request, self.done()
        if request.refusal is None and not done:
            return []
        if self.was_given_up:
            return []
        result = "ok" if request.refusal is None else self.refusal()
        key = f"namespace {self.body['name']}" if request.kind in ("space", "unspace") else "catalog"
        return [request.operation(self.operation, self.argument(done), result, key=key)]

    @property
    def operation(self) -> str:
        """What the model calls it."""
        return self.request.kind

    @property
    def was_given_up(self) -> bool:
        """An earlier attempt was refused: the answer says that nothing was done, and nothing of the names."""
        return self.request.refusal is not None and self.request.refusal.message == GIVEN_UP

    def done(self) -> list[Change]:
        """What was done under the request's key, judged by what its client heard."""
        done = self.found.operations(RequestKey(self.request.key, "", "").hash)
        self.judge(len(done))
        return done

    def argument(self, done: list[Change]) -> Any:
        body, known = self.body, self.request.known
        match self.request.kind:
            case "create":
                return (body["name"], made(done), body["label"])
            case "rename":
                return (body["name"], body["to"])
            case "undrop":
                return (known["uuid"], body["name"])
            case "register" | "overwrite":
                return (body["name"], known["uuid"], known["holds"])
            case _:
                return body["name"]

    def judge(self, count: int) -> None:
        request = self.request
        if count > 1:
            self.complain(invariants.NOTHING_DOUBLED, f"was done {count} times")
        if request.landed and not count:
            self.complain(invariants.NOTHING_LOST, "was acknowledged, and nothing shows it")
        if request.refusal is not None and count:
            self.complain(invariants.OUTCOMES_TRUE, f"was refused and done: {request.refusal.message}")
        if request.cleaned_up and count:
            self.complain(invariants.OUTCOMES_TRUE, "was told that nothing happened and nothing will, and it was done")

    def refusal(self) -> str:
        match self.request.refusal:
            case AlreadyExists():
                return "exists"
            case NoSuchNamespace():
                return "missing"
            case NotFound() if self.request.kind in ("undrop", "restore"):
                return "gone"
            case NotFound():
                return "missing"
            case Refresh():
                return "conflict"
            case other:
                self.complain(invariants.OUTCOMES_TRUE, f"was refused for no good reason: {other!r}")
                return "refused"

    def complain(self, invariant: str, text: str) -> None:
        violate(self.world, invariant, f"{self.request} {text}")


def made(done: list[Change]) -> str:
    """The identity that a creation gave."""
    return done[0].entry.uuid if done and isinstance(done[0], Create) else "never"


class _Healing:
    """What was left half way must heal when somebody looks, and everything that has a name must then be there."""

    def __init__(self, world: World, env: Env) -> None:
        self.world = world
        self.catalog = open_catalog(env)

    async def check(self) -> None:
        names = (await self.catalog.parts.tier1.current()).names
        for listed in [entry for kind in Kind for entry in names.members(NAMESPACE, kind)]:
            name = listed.name
            try:
                entry, base = await _relations(self.catalog, listed.kind).load(NAMESPACE, name)
            except NotFound:
                continue
            if not in_step(entry, base.pointer):
                violate(self.world, invariants.NOT_HALF_GONE, f"{name} was loaded out of step with its pointer")
        await self._check_listed()

    async def _check_listed(self) -> None:
        names = (await self.catalog.parts.tier1.current()).names
        for entry in [entry for kind in Kind for entry in names.members(NAMESPACE, kind)]:
            try:
                await _relations(open_catalog_of(self.catalog), entry.kind).load(NAMESPACE, entry.name)
            except ArcoError as error:
                violate(self.world, invariants.NOT_HALF_GONE, f"{entry.name} is listed and cannot be loaded: {error}")
        for uuid in [uuid for uuid, one in names.dropped.items() if one.entry.format is Format.ICEBERG]:
            pointer = await self.catalog.parts.pointers.read(uuid)
            if pointer is None or pointer.value.tombstone is None:
                violate(self.world, invariants.NOT_HALF_GONE, f"{uuid} is dropped, and its pointer is not dead")


def _relations(catalog: Catalog, kind: Kind) -> Relations[Any, Any]:
    return catalog.views if kind is Kind.VIEW else catalog.tables


def open_catalog_of(catalog: Catalog) -> Catalog:
    """Another server on the same store, with nothing in its memory."""
    parts = catalog.parts
    return Catalog.open(parts.tier1.store, "file:///lake", SCOPE, parts.clock, parts.entropy)


def _check_objects(world: World, found: Audit) -> None:
    """Every object has a name that upkeep can read, and nothing that is referred to is missing."""
    for key in found.objects:
        try:
            parse(key)
        except ArcoError as error:
            violate(world, invariants.ALL_ACCOUNTED_FOR, f"{key} is no object of Arco's: {error}")
    files = [found.manifest.base, *found.manifest.deltas]
    needed = [file.key for file in files if file is not None]
    tables = {*found.names.places, *found.names.dropped}
    for uuid in tables & found.commits.keys():
        needed += [location.removeprefix("file:///lake/") for location in found.commits[uuid].values()]
    for key in needed:
        if key not in found.objects:
            violate(world, invariants.NOTHING_LOST, f"{key} is referred to and does not exist")


async def _check_states(world: World, env: Env, found: Audit) -> None:
    """A checkpoint and its tail add up to what all commits add up to."""
    loaded = (await open_catalog(env).parts.tier1.current()).names
    if _contents(loaded) != _contents(found.names):
        violate(world, invariants.STATES_EQUAL, "the checkpoint and its tail differ from the sum of all commits")


def _contents(names: Names) -> tuple[Any, ...]:
    places = {(one.entry.namespace, one.entry.name) for one in names.dropped.values()}
    last = {place: names.last_dropped(*place) for place in places}
    members = {levels: names.inhabitants(levels) for levels in names.namespaces}
    return names.namespaces, names.entries, names.places, names.dropped, last, members, names.children(())

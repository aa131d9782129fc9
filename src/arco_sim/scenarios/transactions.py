"""Clients change several tables at once through servers that die, stall and lose replies, beside commits of single tables.

The tables are a bank: transfers move money between them, so the sum of any moment is known. Others mark several tables:
always, together with a table that they create, against a requirement that cannot hold, or in a way that only one of the servers
allows. One table is dropped meanwhile, and readers look at all tables at once. In every other world all tables keep their
metadata files in one folder. The tables' own histories tell what landed: every transaction in all of its tables or in none, once,
in one order.
"""

from contextlib import suppress
from typing import Any

from arco.catalog.catalog import Catalog
from arco.catalog.idempotency import RequestKey
from arco.catalog.manifest import Author
from arco.catalog.namespaces import create_namespace
from arco.catalog.policy import LocationPolicy
from arco.catalog.side_by_side import side_by_side
from arco.iceberg import requests
from arco.iceberg.locations import inside
from arco.kernel.canonical_json import request_hash
from arco.kernel.entropy import SeededEntropy
from arco.kernel.errors import NoSuchTable
from arco.kernel.ids import new_uuid4
from arco.ledger.receipts import Source
from arco.storage.keys import Slug
from arco.storage.port import ObjectStore
from arco.txn.transactions import Transactions
from arco_sim import invariants
from arco_sim.audit import Audit, audit_of
from arco_sim.clients import Clients, Request, nothing_but, written
from arco_sim.faults import Fault, FaultProfile
from arco_sim.models import Bank
from arco_sim.scenario import check_linearizable, violate
from arco_sim.scenarios.table_commits import FIELD, SCOPE, Lenient, open_catalog, there_and_back, unkeyed
from arco_sim.world import Env, World

NAMESPACE = ("bank",)
BANK = ("t0", "t1", "t2")
FRAGILE = "t3"
NEW = "t4"
_BALANCE = 100
_FIRST = "nobody"
_SCRIPT = (
    "move t0 t1",
    "mark t2 t0 t1",
    "look",
    "single t1",
    "move t1 t2",
    "mark t0 t2",
    "never t1 t2",
    "far t0 t2",
    "found t4 t0",
    "found t1 t4",
    "mark t3 t1",
    "look",
    "drop t3",
    "move t2 t0",
    "look",
)


FOLDER = "file:///together/metadata"


class OneFolder(LocationPolicy):
    """Allows a folder in which several tables have their files; and, of one server, what it alone allows."""

    def __init__(self, store: ObjectStore, also: LocationPolicy | None = None) -> None:
        super().__init__()
        self._store = store
        self._also = also or LocationPolicy()

    def allows(self, location: str) -> bool:
        return inside(location, FOLDER) or self._also.allows(location)

    def outside(self, location: str) -> tuple[ObjectStore, str] | None:
        return (self._store, location.removeprefix("file:///")) if inside(location, FOLDER) else None


class TransactionsScenario:
    name = "transactions"
    promise = "a transaction is visible in all of its tables or in none, once, and in one order with all others"
    profile = FaultProfile.of(fault_share=0.05, crash_share=0.008, stall_s=500.0, lingers=True)
    faults = tuple(Fault)
    bank: tuple[str, ...] = BANK
    others: tuple[str, ...] = (FRAGILE,)
    may_share_a_folder = True

    def open(self, env: Env, policy: LocationPolicy | None = None) -> Catalog:
        return open_catalog(env, OneFolder(env.store, policy))

    def _place(self, world: World) -> dict[str, str]:
        return {"write.metadata.path": FOLDER} if self.may_share_a_folder and world.seed % 2 else {}

    async def prepare(self, world: World, env: Env) -> None:
        catalog = self.open(env)
        await create_namespace(catalog.parts, NAMESPACE, {}, unkeyed("first"), Author())
        uuids = {}
        kept = {"write.metadata.previous-versions-max": str(1 + world.seed % 3)}
        for name in (*self.bank, *self.others):
            properties = {"balance": str(_BALANCE)} | kept | self._place(world)
            body = {"name": name, "schema": {"type": "struct", "fields": [FIELD]}, "properties": properties}
            wanted = requests.parse_create_table(body)
            metadata, _ = await catalog.tables.create(NAMESPACE, wanted, unkeyed(name), Source())
            uuids[name] = metadata.table_uuid
        await catalog.parts.afterwards.settle()
        world.notes["uuids"] = uuids

    def start(self, world: World, *, small: bool) -> None:
        servers, clients, each = (2, 2, 1) if small else (3, 4, 3)
        step = 1 if small else world.seed
        scripts = [[_SCRIPT[(step + n + 5 * place) % len(_SCRIPT)] for place in range(each)] for n in range(clients)]
        if small:
            scripts = [["mark t0 t1"], ["mark t1 t0"]]
        world.notes["clients"] = Clients(world, scripts, servers)
        for number in range(servers):
            world.spawn(f"server{number}", lambda env, n=number: self._serve(env, n), lives=4)  # type: ignore[misc]

    async def _serve(self, env: Env, number: int) -> None:
        catalog = self.open(env, Lenient() if number == 0 else None)
        transactions = Transactions(catalog)
        clients: Clients = env.world.notes["clients"]
        await clients.serve(env, number, lambda request: self._work(env, catalog, transactions, request))
        await catalog.parts.afterwards.settle()

    async def _work(self, env: Env, catalog: Catalog, transactions: Transactions, request: Request) -> Any:
        if request.kind == "look":
            return await self._look(catalog)
        if request.kind in {"drop", "purge"}:
            return await self._drop(catalog, request)
        body = await written(request, lambda: nothing_but(self._body(env, request)))
        changes = [requests.parse_commit_table(change) for change in body]
        if request.kind == "single":
            name = _tables_of(request)[0]
            done = await catalog.table_commits.commit(NAMESPACE, name, changes[0], key_of(request), Source())
            return done.location
        await transactions.commit(changes, key_of(request), Source())
        return "done"

    async def _look(self, catalog: Catalog) -> dict[str, Any]:
        found = await side_by_side(catalog, [(NAMESPACE, name) for name in self.bank])
        return {
            entry.name: (
                base.pointer.value.commit_number,
                int(base.metadata.properties["balance"]),
                base.metadata.properties.get("last", _FIRST),
            )
            for entry, base in found
        }

    async def _drop(self, catalog: Catalog, request: Request) -> str:
        """Gone for a while. What is pending on it meanwhile must come to nothing, or to all of it."""
        key, purge = RequestKey(request.key, "dropTable", "0"), request.kind == "purge"
        return await catalog.tables.drop(NAMESPACE, FRAGILE, purge=purge, key=key, author=Author())

    async def _body(self, env: Env, request: Request) -> list[dict[str, Any]]:
        names = _tables_of(request)
        if request.kind == "far":
            return [await self._far(env, name, request) for name in names]
        if request.kind == "found":
            place = self._place(env.world)
            return [
                _created(env, request, place) if name == NEW else _change(name, {"last": str(request)}, [])
                for name in names
            ]
        if request.kind != "move":
            impossible = [{"type": "assert-current-schema-id", "current-schema-id": 77}] if request.kind == "never" else []
            last = len(names) - 1
            return [
                _change(name, {"last": str(request)}, impossible if place == last else [])
                for place, name in enumerate(names)
            ]
        catalog = self.open(env)
        amounts = {names[0]: -7, names[1]: 7}
        bodies = []
        for name in names:
            _, base = await catalog.tables.load(NAMESPACE, name)
            last = base.metadata.last_column_id
            balance = int(base.metadata.properties["balance"]) + amounts[name]
            fields = [*base.metadata.current_schema["fields"], FIELD | {"id": last + 1, "name": f"c{last + 1}"}]
            change = _change(name, {"balance": str(balance), "last": str(request)}, [_unchanged_since(last)])
            change["updates"] = [
                {"action": "add-schema", "schema": {"type": "struct", "fields": fields}},
                {"action": "set-current-schema", "schema-id": -1},
                *change["updates"],
            ]
            bodies.append(change)
        return bodies

    async def _far(self, env: Env, name: str, request: Request) -> dict[str, Any]:
        """A change that only a server takes which allows other places: refused by one, it must not be done by another."""
        _, base = await self.open(env).tables.load(NAMESPACE, name)
        identifier = {"namespace": list(NAMESPACE), "name": name}
        return {"identifier": identifier} | there_and_back(base.metadata.location, {"last": str(request)})

    async def verify(self, world: World, env: Env) -> None:
        # Names that were decided and not committed yet: whoever asks first brings them in.
        await open_catalog(env).parts.tier1.current()
        await self.judge(world, env, audit_of(world.everything(), SCOPE))

    async def judge(self, world: World, env: Env, found: Audit) -> None:
        """What clients heard and saw, against what is in the histories."""
        clients: Clients = world.notes["clients"]
        for gap in found.gaps:
            violate(world, invariants.RECEIPTS_COMPLETE, gap)
        landed: dict[str, dict[str, int]] = {}
        for request in clients.requests:
            if "body" in request.known:
                numbers = self._judge(world, env, found, request)
                if numbers:
                    landed[str(request)] = numbers
        _judge_order(world, landed)
        for request in clients.requests:
            _note(world, request, self.bank, landed=str(request) in landed)
        check_linearizable(world, Bank(self.bank, _FIRST, 1))
        for request in clients.requests:
            if request.kind == "look" and request.landed:
                self._judge_look(world, clients, landed, request)
        await self._judge_end(world, env)

    def _judge(self, world: World, env: Env, found: Audit, request: Request) -> dict[str, int]:
        """What a client heard, against what is in the histories of its tables. Where it landed, by table."""
        names = {uuid: name for name, uuid in world.notes["uuids"].items()}
        if request.kind == "found":
            names[_uuid_of(request)] = NEW
        where = found.landings(open_catalog(env).parts.files.name(key_of(request), 0, ""))
        # A pointer without a name is no table.
        where = [(uuid, number) for uuid, number in where if found.names.by_uuid(uuid) or names[uuid] == FRAGILE]
        numbers = {names[uuid]: number for uuid, number in where}
        if len(numbers) < len(where):
            violate(world, invariants.NOTHING_DOUBLED, f"{request} landed twice: {where}")
        if numbers and set(numbers) != set(_tables_of(request)):
            violate(world, invariants.NOT_HALF_VISIBLE, f"{request} landed only in {sorted(numbers)}")
        if request.landed and not numbers:
            violate(world, invariants.NOTHING_LOST, f"{request} was acknowledged and is in no history")
        if request.refusal is not None and numbers:
            violate(world, invariants.OUTCOMES_TRUE, f"{request} was refused and landed: {request.refusal.message}")
        if request.cleaned_up and numbers:
            violate(world, invariants.OUTCOMES_TRUE, f"{request} was told that nothing happened, and it landed")
        if request.refusal is not None and not _may_be_refused(request):
            violate(world, invariants.OUTCOMES_TRUE, f"{request} always applies: {request.refusal.message}")
        if request.kind == "never" and numbers:
            violate(world, invariants.OUTCOMES_TRUE, f"{request} has a requirement that never holds, and landed")
        return numbers

    def _judge_look(self, world: World, clients: Clients, landed: dict[str, dict[str, int]], look: Request) -> None:
        seen: dict[str, tuple[int, int, str]] = look.answer
        total = sum(balance for _, balance, _ in seen.values())
        if total != _BALANCE * len(self.bank):
            violate(world, invariants.NOT_HALF_VISIBLE, f"{look} saw {total} in the bank: {seen}")
        for request in clients.requests:
            numbers = {name: number for name, number in landed.get(str(request), {}).items() if name in seen}
            shown = {name for name, number in numbers.items() if seen[name][0] >= number}
            if shown and len(shown) < len(numbers):
                violate(world, invariants.NOT_HALF_VISIBLE, f"{look} saw {request} only in {sorted(shown)}")
            was_before = request.landed and request.returned_at is not None and request.returned_at < look.called_at
            if was_before and len(shown) < len(numbers):
                violate(world, invariants.LINEARIZABLE, f"{look} began after {request} was acknowledged and did not see it")

    async def _judge_end(self, world: World, env: Env) -> None:
        seen = await self._look(self.open(env))
        total = sum(balance for _, balance, _ in seen.values())
        if total != _BALANCE * len(self.bank):
            violate(world, invariants.NOT_HALF_VISIBLE, f"the bank holds {total} in the end: {seen}")
        for name in (*self.others, NEW):
            with suppress(NoSuchTable):
                await self.open(env).tables.load(NAMESPACE, name)


def key_of(request: Request) -> RequestKey:
    operation = "updateTable" if request.kind == "single" else "commitTransaction"
    return RequestKey(request.key, operation, request_hash(request.known["body"]))


def _tables_of(request: Request) -> list[str]:
    return request.wish.split(" ")[1:]


def _may_be_refused(request: Request) -> bool:
    return request.kind in {"move", "never", "far", "found"} or FRAGILE in _tables_of(request)


def _change(name: str, properties: dict[str, str], requirements: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "identifier": {"namespace": list(NAMESPACE), "name": name},
        "requirements": requirements,
        "updates": [{"action": "set-properties", "updates": properties}],
    }


def _uuid_of(request: Request) -> str:
    """The identity of the table that a request creates, from its key: one that says its time, or one that does not."""
    random = new_uuid4(SeededEntropy(request.key))
    return random if request.client % 2 else request.key[:-12] + random[-12:]


def _created(env: Env, request: Request, properties: dict[str, str]) -> dict[str, Any]:
    """A change that makes a new table, if there is none of that name."""
    uuid = _uuid_of(request)
    location = open_catalog(env).tables.own_location(Slug.from_name(NEW), uuid)
    updates = [
        {"action": "assign-uuid", "uuid": uuid},
        {"action": "set-location", "location": location},
        {"action": "add-schema", "schema": {"type": "struct", "fields": [FIELD]}},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        *([{"action": "set-properties", "updates": properties}] if properties else []),
    ]
    return _change(NEW, {}, [{"type": "assert-create"}]) | {"updates": updates}


def _unchanged_since(last_column: int) -> dict[str, Any]:
    return {"type": "assert-last-assigned-field-id", "last-assigned-field-id": last_column}


def _note(world: World, request: Request, bank: tuple[str, ...], *, landed: bool) -> None:
    """What happened to the bank, for who asks whether it can be told as one thing after another."""
    if request.kind == "look":
        if request.landed:
            seen = tuple(request.answer[name][2] for name in bank)
            world.history.append(request.operation("look", None, seen, key="bank"))
    elif request.kind == "move" and (landed or request.refusal is not None):
        lasts = tuple(
            (change["identifier"]["name"], change["requirements"][0]["last-assigned-field-id"])
            for change in request.known["body"]
        )
        result = "ok" if landed else "refused"
        world.history.append(request.operation("move", (lasts, str(request)), result, key="bank"))
    elif landed:
        tables = tuple(name for name in _tables_of(request) if name in bank)
        world.history.append(request.operation("set", (tables, str(request)), "ok", key="bank"))


def _judge_order(world: World, landed: dict[str, dict[str, int]]) -> None:
    """One order of all that landed: what comes first in one table comes first in every table they share."""
    waiting = dict(landed)
    while waiting:
        free = [one for one, numbers in waiting.items() if not any(_precedes(waiting[other], numbers) for other in waiting)]
        if not free:
            violate(world, invariants.SERIALIZABLE, f"no order of {sorted(waiting.items())}")
            return
        for one in free:
            del waiting[one]


def _precedes(earlier: dict[str, int], later: dict[str, int]) -> bool:
    return any(name in later and number < later[name] for name, number in earlier.items())

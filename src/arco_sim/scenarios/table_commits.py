"""Clients commit to one table through several servers that die, stall and lose replies, and retry with the same key elsewhere.

Every commit's metadata file is named after its key, so the table's own history tells how often each request landed. What a
client asks for follows from what it read itself, not from what a server remembers: a server whose memory is old gets requests
that hold only on the newer state. One server allows more than the others, so a retry may be refused where its first attempt
was not.
"""

from typing import Any

from arco.catalog.catalog import Catalog
from arco.catalog.idempotency import RequestKey
from arco.catalog.manifest import Author
from arco.catalog.namespaces import create_namespace
from arco.catalog.policy import LocationPolicy
from arco.catalog.workspace import Choices
from arco.iceberg import requests
from arco.iceberg.metadata import TableMetadata
from arco.kernel.canonical_json import request_hash
from arco.kernel.scope import Scope
from arco.ledger.receipts import Source
from arco_sim import invariants
from arco_sim.audit import Audit, audit_of
from arco_sim.clients import Clients, Request, nothing_but, written
from arco_sim.faults import Fault, FaultProfile
from arco_sim.models import Table
from arco_sim.scenario import check_linearizable, violate
from arco_sim.world import Env, World

SCOPE = Scope.of("t", "w")
NAMESPACE, TABLE = ("db",), "orders"
FIELD = {"id": 1, "name": "a", "type": "long", "required": False}
_ELSEWHERE = "file:///elsewhere/"
_FIRST = "nobody"
_KINDS = ("set", "column", "load", "elsewhere", "column", "nothing", "never", "load")


class Lenient(LocationPolicy):
    """Allows clients' data files in another place. The other servers do not."""

    def allows(self, location: str) -> bool:
        return location.startswith(_ELSEWHERE)


def open_catalog(env: Env, policy: LocationPolicy | None = None, *, take_turns: bool = False) -> Catalog:
    return Catalog.open(
        env.store, "file:///lake", SCOPE, env.clock, env.entropy, policy, choices=Choices(take_turns=take_turns)
    )


def unkeyed(name: str) -> RequestKey:
    return RequestKey(name, "prepare", "0", durable=False)


class TableCommitsScenario:
    name = "table_commits"
    promise = "a commit that was acknowledged is in the table's history exactly once, one that was refused is not"
    profile = FaultProfile.of(fault_share=0.06, crash_share=0.008, stall_s=500.0, lingers=True)
    faults = tuple(Fault)

    async def prepare(self, world: World, env: Env) -> None:
        catalog = open_catalog(env)
        await create_namespace(catalog.parts, NAMESPACE, {}, unkeyed("first"), Author())
        properties = {"last": _FIRST, "write.metadata.previous-versions-max": str(1 + world.seed % 3)}
        body = {"name": TABLE, "schema": {"type": "struct", "fields": [FIELD]}, "properties": properties}
        wanted = requests.parse_create_table(body)
        metadata, _ = await catalog.tables.create(NAMESPACE, wanted, unkeyed("second"), Source())
        world.notes["uuid"] = metadata.table_uuid

    at_once = 2
    kinds: tuple[str, ...] = _KINDS

    def sizes(self, *, small: bool) -> tuple[int, int, int]:
        """Servers, clients, and how many wishes each of them has."""
        return (2, 2, 1) if small else (3, 4, 3)

    def start(self, world: World, *, small: bool) -> None:
        servers, clients, each = self.sizes(small=small)
        scripts = [[self.kinds[(n + 3 * place) % len(self.kinds)] for place in range(each)] for n in range(clients)]
        world.notes["clients"] = Clients(world, scripts, servers)
        for number in range(servers):
            world.spawn(f"server{number}", lambda env, n=number: self._serve(env, n), lives=4)  # type: ignore[misc]

    async def _serve(self, env: Env, number: int) -> None:
        catalog = open_catalog(env, Lenient() if number == 0 else None)
        clients: Clients = env.world.notes["clients"]
        await clients.serve(env, number, lambda request: self._work(env, catalog, request), at_once=self.at_once)
        await catalog.parts.afterwards.settle()

    async def _work(self, env: Env, catalog: Catalog, request: Request) -> str:
        if request.kind == "load":
            _, base = await catalog.tables.load(NAMESPACE, TABLE)
            return base.metadata.properties["last"]
        body = await written(request, lambda: nothing_but(self._body(env, request)))
        done = await catalog.table_commits.commit(
            NAMESPACE, TABLE, requests.parse_commit_table(body), key_of(request), Source()
        )
        return done.location

    async def _body(self, env: Env, request: Request) -> dict[str, Any]:
        """None of them is the same done twice: a repeated commit must show."""
        label = {"last": str(request)}
        match request.kind:
            case "column":
                _, base = await open_catalog(env).tables.load(NAMESPACE, TABLE)
                return _new_column(base.metadata, label)
            case "never":
                return _setting(label, {"type": "assert-current-schema-id", "current-schema-id": 77})
            case "elsewhere":
                _, base = await open_catalog(env).tables.load(NAMESPACE, TABLE)
                return there_and_back(base.metadata.location, label)
            case "nothing":
                return _setting({"write.metadata.previous-versions-max": str(1 + env.world.seed % 3)})
            case _:
                return _setting(label)

    async def verify(self, world: World, env: Env) -> None:
        clients: Clients = world.notes["clients"]
        found = audit_of(world.everything(), SCOPE)
        for gap in found.gaps:
            violate(world, invariants.RECEIPTS_COMPLETE, gap)
        for request in clients.requests:
            if request.kind == "load":
                self._note_load(world, request)
            elif "body" in request.known:
                judge_commit(world, env, found, request)
                self._note_commit(world, request, landed=bool(landings(env, found, request)))
        check_linearizable(world, Table(_FIRST, 1))

    def _note_load(self, world: World, request: Request) -> None:
        if request.landed:
            world.history.append(request.operation("read", None, request.answer, key=TABLE))

    def _note_commit(self, world: World, request: Request, *, landed: bool) -> None:
        """What landed was written, whenever it was answered; a refusal must have been right at some moment."""
        if request.kind == "column" and (landed or request.refusal is not None):
            last = request.known["body"]["requirements"][0]["last-assigned-field-id"]
            world.history.append(
                request.operation("column", (last, str(request)), "ok" if landed else "refused", key=TABLE)
            )
        elif landed:
            world.history.append(request.operation("set", str(request), "ok", key=TABLE))


def key_of(request: Request) -> RequestKey:
    return RequestKey(request.key, "updateTable", request_hash(request.known["body"]))


def landings(env: Env, found: Audit, request: Request) -> list[tuple[str, int]]:
    return found.landings(open_catalog(env).parts.files.name(key_of(request), 0, ""))


def judge_commit(world: World, env: Env, found: Audit, request: Request) -> None:
    """What a client heard, against what is in history."""
    count = len(landings(env, found, request))
    if count > 1:
        violate(world, invariants.NOTHING_DOUBLED, f"{request} landed {count} times")
    if request.landed and not count and request.kind != "nothing":
        violate(world, invariants.NOTHING_LOST, f"{request} was acknowledged and is not in history")
    if request.refusal is not None and count:
        violate(world, invariants.OUTCOMES_TRUE, f"{request} was refused and landed: {request.refusal.message}")
    if request.refusal is not None and request.kind == "set":
        violate(world, invariants.OUTCOMES_TRUE, f"{request} always applies, and was refused: {request.refusal.message}")
    if request.cleaned_up and count:
        violate(
            world, invariants.OUTCOMES_TRUE, f"{request} was told that nothing happened and nothing will, and it landed"
        )


def _setting(properties: dict[str, str], *requirements: dict[str, Any]) -> dict[str, Any]:
    return {"requirements": list(requirements), "updates": [{"action": "set-properties", "updates": properties}]}


def there_and_back(location: str, label: dict[str, str]) -> dict[str, Any]:
    """A commit that only a server takes which allows other places; it leaves no trace of that."""
    body = _setting(label)
    moves = [{"action": "set-location", "location": place} for place in (f"{_ELSEWHERE}orders", location)]
    return body | {"updates": [*moves, *body["updates"]]}


def _new_column(metadata: TableMetadata, label: dict[str, str]) -> dict[str, Any]:
    """Add a column, if nobody added one since."""
    last = metadata.last_column_id
    fields = [*metadata.current_schema["fields"], FIELD | {"id": last + 1, "name": f"c{last + 1}"}]
    return {
        "requirements": [{"type": "assert-last-assigned-field-id", "last-assigned-field-id": last}],
        "updates": [
            {"action": "add-schema", "schema": {"type": "struct", "fields": fields}},
            {"action": "set-current-schema", "schema-id": -1},
            {"action": "set-properties", "updates": label},
        ],
    }

"""Clients of servers that are killed: what they ask, what they were told, and what must therefore be true.

Every request carries an idempotency key, and a client that loses its reply asks again with the same key, whichever server it
finds alive. Three kinds of clients: committers share a few tables; owners make, rename and drop tables and namespaces that
nobody else touches, so that for each of their names there is exactly one right answer; bankers move money between two or five
tables in one transaction, so that the sum of all tables never changes. An auditor adds all of them up at one moment, again and
again while servers die.
"""

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from arco.kernel.canonical_json import request_hash
from arco.kernel.clock import SystemClock
from arco.kernel.entropy import SystemEntropy
from arco.kernel.fingerprint import fingerprint
from arco.kernel.ids import new_uuid7

from .plain_http import Connection, NotSent, Reply, ReplyLost
from .server_fleet import Acknowledgements, Fleet

PREFIX = "/iceberg/v1/default.default"
SHARED = "shared"
BANK = "bank"
ENGINES = "engines"
ENGINE_TABLES = ("pyiceberg", "spark")
ACCOUNTS = tuple(f"a{number}" for number in range(8))
SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "a", "type": "long", "required": False}]}
NEVER_TRUE = {"type": "assert-current-schema-id", "current-schema-id": 77}
SNAPSHOTS_MAX = 40  # a table with more is left alone and a new one begun, so that a long run does not grow slow
CLOCK, ENTROPY = SystemClock(), SystemEntropy()


class State(StrEnum):
    OPEN = "open"
    ACKNOWLEDGED = "acknowledged"
    REFUSED = "refused"


class Kind(StrEnum):
    CREATE_NAMESPACE = "create namespace"
    DROP_NAMESPACE = "drop namespace"
    CREATE = "create table"
    RENAME = "rename table"
    DROP = "drop table"
    COMMIT = "commit"
    TRANSACTION = "transaction"


@dataclass
class Ask:
    """One request, with what its client knows about it. `rival` if others may rightly have made it impossible."""

    kind: Kind
    method: str
    path: str
    body: Any
    namespace: str
    name: str = ""
    to: str = ""
    rival: bool = False
    snapshot_id: int | None = None
    tables: int = 1
    key: str = field(default_factory=lambda: new_uuid7(CLOCK, ENTROPY))
    state: State = State.OPEN
    sent: int = 0
    answers: list[str] = field(default_factory=list)

    @property
    def file_hash(self) -> str:
        """What the metadata files of this request have in their names."""
        asked = request_hash({"method": self.method, "path": self.path, "body": self.body})
        return fingerprint("metadata file", self.key, asked)[:20]

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}.{self.name} {self.to} ({self.key}, sent {self.sent} times: {self.answers})"


@dataclass
class Memory:
    """All that clients asked, and the names that must exist because of it."""

    asks: list[Ask] = field(default_factory=list)
    namespaces: set[str] = field(default_factory=set)
    tables: dict[tuple[str, str], str] = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)

    def of(self, state: State) -> list[Ask]:
        return [ask for ask in self.asks if ask.state is state]

    def acknowledged(self, ask: Ask, reply: Reply) -> None:
        ask.state = State.ACKNOWLEDGED
        match ask.kind:
            case Kind.CREATE_NAMESPACE:
                self.namespaces.add(ask.namespace)
            case Kind.DROP_NAMESPACE:
                self.namespaces.discard(ask.namespace)
            case Kind.CREATE:
                if (ask.namespace, ask.name) in self.tables:
                    self.findings.append(f"created while it existed: {ask}")
                self.tables[ask.namespace, ask.name] = reply.json()["metadata"]["table-uuid"]
            case Kind.RENAME:
                self.tables[ask.namespace, ask.to] = self.tables.pop((ask.namespace, ask.name))
            case Kind.DROP:
                del self.tables[ask.namespace, ask.name]
            case Kind.COMMIT | Kind.TRANSACTION:
                pass

    def refused(self, ask: Ask, reply: Reply) -> None:
        ask.state = State.REFUSED
        if not ask.rival or reply.status != 409:
            self.findings.append(f"refused for no reason: {ask}: {reply.json()['error']['message']}")


class Client:
    """Asks one thing after another, with one connection to each server it knows."""

    def __init__(self, fleet: Fleet, memory: Memory, acknowledgements: Acknowledgements, chance: random.Random) -> None:
        self._fleet = fleet
        self._acknowledgements = acknowledgements
        self._connections: dict[str, Connection] = {}
        self.memory = memory
        self.chance = chance
        self.lost_replies = 0

    async def settle(self, ask: Ask, patience: int = 1) -> bool:
        """Ask, with the same key after a lost reply. False if the names it is about may not be what its client thinks.

        That is so if the servers could not say what became of it, as often as the client has patience. An attempt whose
        server died is in doubt for ten minutes: the client goes on with something else meanwhile.
        """
        if not ask.sent:
            self.memory.asks.append(ask)
        while patience:
            ask.sent += 1
            reply = await self._send(ask.method, ask.path, ask.body, Idempotency_Key=ask.key)
            if reply is None:
                continue
            ask.answers.append(str(reply.status))
            if reply.status < 300:
                self.memory.acknowledged(ask, reply)
                self._acknowledgements.add()
                return True
            if reply.status < 500:
                self.memory.refused(ask, reply)
                return ask.rival
            self._check_doubt(ask, reply)
            patience -= 1
        return False

    def _check_doubt(self, ask: Ask, reply: Reply) -> None:
        """Of the 5xx, clients know two: 503 had no effect, 504 may have had one."""
        kind = reply.json()["error"]["type"]
        if (reply.status, kind) not in {(503, "ServiceUnavailableException"), (504, "CommitStateUnknownException")}:
            self.memory.findings.append(f"an answer that clients cannot act on: {reply.status} {kind} to {ask}")

    async def load(self, namespace: str, name: str) -> dict[str, Any] | None:
        """A table's metadata as it is now; None if there is no such table."""
        while True:
            reply = await self._send("GET", f"{PREFIX}/namespaces/{namespace}/tables/{name}")
            if reply is None or reply.status >= 500:
                continue
            found: dict[str, Any] | None = reply.json()["metadata"] if reply.status == 200 else None
            return found

    async def together(self, namespace: str, names: Sequence[str]) -> list[str] | None:
        """The metadata files of some tables at one moment; None if the server could not say."""
        body = {"tables": [{"namespace": [namespace], "name": name} for name in names]}
        reply = await self._send("POST", "/api/v1/tables/together", body)
        if reply is None or reply.status >= 500:
            return None
        return [one["metadata_location"] for one in reply.json()["tables"]]

    async def _send(self, method: str, path: str, body: Any = None, **headers: str) -> Reply | None:
        """One request to a server that is alive; None if its reply was lost."""
        while True:
            address = await self._fleet.address()
            try:
                connection = self._connections.get(address)
                if connection is None or not connection.is_open:
                    connection = self._connections[address] = await Connection.open(address)
                return await connection.ask(method, path, body, **headers)
            except NotSent:
                # It died and is not yet known to be dead.
                await asyncio.sleep(0)
            except ReplyLost:
                self.lost_replies += 1
                return None

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()


# What clients ask for


def create_namespace(namespace: str) -> Ask:
    body = {"namespace": [namespace], "properties": {}}
    return Ask(Kind.CREATE_NAMESPACE, "POST", f"{PREFIX}/namespaces", body, namespace)


def drop_namespace(namespace: str) -> Ask:
    return Ask(Kind.DROP_NAMESPACE, "DELETE", f"{PREFIX}/namespaces/{namespace}", None, namespace)


def create_table(namespace: str, name: str, *, rival: bool = False) -> Ask:
    body = {"name": name, "schema": SCHEMA}
    return Ask(Kind.CREATE, "POST", f"{PREFIX}/namespaces/{namespace}/tables", body, namespace, name, rival=rival)


def rename_table(namespace: str, name: str, to: str) -> Ask:
    names = {"source": name, "destination": to}
    body = {end: {"namespace": [namespace], "name": called} for end, called in names.items()}
    return Ask(Kind.RENAME, "POST", f"{PREFIX}/tables/rename", body, namespace, name, to)


def drop_table(namespace: str, name: str) -> Ask:
    return Ask(Kind.DROP, "DELETE", f"{PREFIX}/namespaces/{namespace}/tables/{name}", None, namespace, name)


def set_property(namespace: str, name: str, label: str) -> Ask:
    """A change that always applies, and never is the same twice."""
    return _commit(namespace, name, [], [{"action": "set-properties", "updates": {"last": label}}])


def never_applies(namespace: str, name: str, label: str) -> Ask:
    update = {"action": "set-properties", "updates": {"last": label}}
    return _commit(namespace, name, [NEVER_TRUE], [update], rival=True)


def append(namespace: str, name: str, metadata: dict[str, Any], snapshot_id: int) -> Ask:
    """What a writer of data commits: a snapshot on the one it read, if that is still the last."""
    last = metadata.get("refs", {}).get("main", {}).get("snapshot-id")
    snapshot = {
        "snapshot-id": snapshot_id,
        "sequence-number": metadata["last-sequence-number"] + 1,
        "timestamp-ms": CLOCK.now_ms(),
        "manifest-list": f"{metadata['location']}/metadata/snap-{snapshot_id}.avro",
        "summary": {"operation": "append"},
        "schema-id": 0,
    } | ({} if last is None else {"parent-snapshot-id": last})
    updates = [
        {"action": "add-snapshot", "snapshot": snapshot},
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": snapshot_id},
    ]
    requirement = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": last}
    return _commit(namespace, name, [requirement], updates, rival=True, snapshot_id=snapshot_id)


def transfer(accounts: dict[str, dict[str, Any]], snapshot_id: int) -> Ask:
    """Money from the first account to the others, if all of them are as they were read. Only some snapshots are kept."""
    amounts = [-(len(accounts) - 1), *([1] * (len(accounts) - 1))]
    changes = []
    for amount, (name, metadata) in zip(amounts, accounts.items(), strict=True):
        change = append(BANK, name, metadata, snapshot_id).body
        change["updates"][0]["snapshot"]["summary"]["balance"] = str(balance_of(metadata) + amount)
        old = [one["snapshot-id"] for one in metadata.get("snapshots", [])][:-3]
        change["updates"] += [{"action": "remove-snapshots", "snapshot-ids": old}] if old else []
        changes.append({"identifier": {"namespace": [BANK], "name": name}, **change})
    path, body = f"{PREFIX}/transactions/commit", {"table-changes": changes}
    return Ask(Kind.TRANSACTION, "POST", path, body, BANK, "+".join(accounts), rival=True, tables=len(accounts))


def balance_of(metadata: dict[str, Any]) -> int:
    current = metadata.get("current-snapshot-id")
    found = [one for one in metadata.get("snapshots", []) if one["snapshot-id"] == current]
    return int(found[0]["summary"]["balance"]) if found else 0


def _commit(namespace: str, name: str, requirements: list[Any], updates: list[Any], **more: Any) -> Ask:
    body = {"requirements": requirements, "updates": updates}
    return Ask(Kind.COMMIT, "POST", f"{PREFIX}/namespaces/{namespace}/tables/{name}", body, namespace, name, **more)


# What clients do all day

Read = Callable[[str], Awaitable[dict[str, Any]]]
"""A metadata file, by its location."""


class Load:
    """Committers and owners, until they are told to stop."""

    def __init__(self, fleet: Fleet, acknowledgements: Acknowledgements, chance: random.Random, read: Read) -> None:
        self.memory = Memory()
        self.cuts = 0
        self._read = read
        self._chance = chance
        self._make = lambda: Client(fleet, self.memory, acknowledgements, random.Random(chance.random()))
        self._labels = itertools.count()
        self._stopping = False
        self.lost_replies = 0
        self.begun = asyncio.Event()

    async def run(self, committers: int, owners: int, tables: int, bankers: int) -> None:
        first = self._make()
        spaces = [create_namespace(name) for name in (SHARED, BANK, ENGINES)]
        accounts = [create_table(BANK, name) for name in ACCOUNTS]
        for ask in (*spaces, *accounts, *(create_table(ENGINES, name) for name in ENGINE_TABLES)):
            while not await first.settle(ask, patience=1000):
                pass
        first.close()
        self.begun.set()
        async with asyncio.TaskGroup() as group:
            for _ in range(committers):
                group.create_task(self._client(self._commit_to, tables))
            for number in range(owners):
                group.create_task(self._client(self._own, number))
            for number in range(bankers):
                group.create_task(self._client(self._transfer, 2 if number % 3 else 5))
            group.create_task(self._client(self._add_up, len(ACCOUNTS)))

    def stop(self) -> None:
        self._stopping = True

    async def _client(self, work: Any, number: int) -> None:
        client = self._make()
        await work(client, number)
        self.lost_replies += client.lost_replies
        client.close()

    async def _commit_to(self, client: Client, tables: int) -> None:
        """Commit to one of the shared tables at a time; whoever finds one missing, or full, makes the next."""
        ages = [0] * tables
        while not self._stopping:
            place = client.chance.randrange(tables)
            name = f"t{place}_{ages[place]}"
            metadata = await client.load(SHARED, name)
            if metadata is None:
                await client.settle(create_table(SHARED, name, rival=True))
            elif len(metadata.get("snapshots", ())) >= SNAPSHOTS_MAX:
                ages[place] += 1
            else:
                await client.settle(self._some_commit(client, name, metadata))

    async def _transfer(self, client: Client, accounts: int) -> None:
        """Read some accounts, one after the other, and move money between them if they are still so."""
        while not self._stopping:
            found = {name: await client.load(BANK, name) for name in client.chance.sample(ACCOUNTS, accounts)}
            there = {name: metadata for name, metadata in found.items() if metadata is not None}
            if len(there) < len(found):
                self.memory.findings.append(f"accounts are gone: {found}")
                return
            await client.settle(transfer(there, client.chance.getrandbits(62)))

    async def _add_up(self, client: Client, accounts: int) -> None:
        """All accounts at one moment: no transfer is in one of them and not in the other."""
        while not self._stopping:
            cut = await client.together(BANK, ACCOUNTS[:accounts])
            if cut is None:
                continue
            balances = [balance_of(metadata) for metadata in await asyncio.gather(*map(self._read, cut))]
            self.cuts += 1
            if sum(balances):
                self.memory.findings.append(
                    f"at one moment the accounts of the bank add up to {sum(balances)}: {balances}, {cut}"
                )

    def _some_commit(self, client: Client, name: str, metadata: dict[str, Any]) -> Ask:
        label = f"l{next(self._labels)}"
        draw = client.chance.random()
        if draw < 0.5:
            return set_property(SHARED, name, label)
        if draw < 0.9:
            return append(SHARED, name, metadata, client.chance.getrandbits(62))
        return never_applies(SHARED, name, label)

    async def _own(self, client: Client, number: int) -> None:
        """Lives of tables in a namespace of this client alone. What is in doubt stays as it is; the client moves on."""
        for age in itertools.count():
            namespace = f"own{number}_{age}"
            if await client.settle(create_namespace(namespace)):
                while not self._stopping and await self._life(client, namespace):
                    pass
            if self._stopping:
                return

    async def _life(self, client: Client, namespace: str) -> bool:
        """One table, and sometimes its namespace, from creation to drop. False once something is in doubt.

        The names are the same each time: a request that is done late, or twice, would hit the next table of that name.
        """
        label = f"l{next(self._labels)}"
        steps = [
            create_table(namespace, "a"),
            set_property(namespace, "a", label),
            rename_table(namespace, "a", "b"),
            set_property(namespace, "b", label + "b"),
            drop_table(namespace, "b"),
        ]
        if client.chance.random() < 0.3:
            steps += [drop_namespace(namespace), create_namespace(namespace)]
        for step in steps:
            if self._stopping or not await client.settle(step):
                return False
        return True

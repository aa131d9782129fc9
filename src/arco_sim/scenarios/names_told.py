"""Tables get names, change and lose them, while some tell the ledger of it: they die, stall, lose replies and tell at once.

A checkpointer takes commits out of the manifest, so that tellers have to walk the chain. In the end every commit that counts is
told, each thing that it says under one id, and the join of what was told is the names, whoever told it last.
"""

from collections import Counter

from arco.catalog.checkpoint import checkpoint
from arco.catalog.model import Entry, Format, Kind
from arco.catalog.operations import Create, CreateNamespace, Describe, Drop, Operation, Rename, Undrop
from arco.catalog.telling import Teller
from arco.catalog.tier1 import Tier1
from arco.fold.joins import joined
from arco.fold.shredding_names import SHREDDERS
from arco.fold.tables import CATALOG_TABLES
from arco.kernel.errors import ArcoError, AskHistory, AskOperator, Refresh, RetryLater
from arco.ledger.envelope import Event
from arco.ledger.segment import decode_segment
from arco.storage.keys import SegmentKey, parse
from arco_sim import invariants
from arco_sim.audit import Audit, audit_of
from arco_sim.faults import Fault, FaultProfile
from arco_sim.outage import FailingStore
from arco_sim.scenario import violate
from arco_sim.scenarios.table_commits import SCOPE, open_catalog
from arco_sim.world import Env, World

_SPACE = ("s",)
_NAMES = ("a", "b", "c")
_TABLES = tuple(f"0b54c2a4-6d6e-4c1e-9f0a-5a1c0d2e3f4{number}" for number in range(3))


class NamesToldScenario:
    name = "names_told"
    promise = (
        "everything that becomes of a name is told to the ledger, once in effect, whoever dies, stalls or tells at once"
    )
    profile = FaultProfile.of(fault_share=0.08, crash_share=0.01, stall_s=200.0, lingers=True)
    faults = tuple(Fault)

    async def prepare(self, world: World, env: Env) -> None:
        made = CreateNamespace(key_hash="space", id="space", levels=_SPACE, properties={})
        await open_catalog(env).parts.committer.submit(made, since=0)

    def start(self, world: World, *, small: bool) -> None:
        for number in range(1 if small else 2):
            world.spawn(f"committer{number}", lambda env: self._change(env, 2 if small else 8))
        for number in range(2):
            world.spawn(f"teller{number}", lambda env, n=number: self._tell(env, n, 2 if small else 8), lives=4)  # type: ignore[misc]
        if not small:
            world.spawn("checkpointer", self._checkpoint)

    async def _change(self, env: Env, times: int) -> None:
        parts = open_catalog(env).parts
        tier1, committer = parts.tier1, parts.committer
        for number in range(times):
            try:
                seen = await tier1.current()
                operation = _wish(env, tier1, f"{env.incarnation}/{number}")
                await committer.submit(operation, since=seen.sequence)
            except AskOperator as error:
                violate(env.world, invariants.UNEXPECTED, f"{env.name}: {error.one_line()}")
            except ArcoError:
                pass  # refused, or nobody knows: the chain says what happened
            await env.clock.sleep(10.0)

    async def _tell(self, env: Env, number: int, times: int) -> None:
        store = FailingStore(env) if number and env.world.seed % 2 else env.store
        teller = Teller(store, SCOPE, env.clock, env.entropy, commits_max=2)
        for _ in range(times):
            try:
                await teller.tell()
            except (RetryLater, AskHistory, Refresh):
                pass
            except AskOperator as error:
                violate(env.world, invariants.UNEXPECTED, f"{env.name}: {error.one_line()}")
            await env.clock.sleep(5.0 + 10.0 * env.world.choices.below(3))

    async def _checkpoint(self, env: Env) -> None:
        tier1 = Tier1(env.store, SCOPE, env.clock, env.entropy)
        for _ in range(6):
            await env.clock.sleep(15.0 + 10.0 * env.world.choices.below(2))
            try:
                await checkpoint(tier1, env.clock, env.entropy)
            except ArcoError:
                continue

    async def verify(self, world: World, env: Env) -> None:
        try:
            await Teller(env.store, SCOPE, env.clock, env.entropy).tell()
        except ArcoError as error:
            violate(world, invariants.UNEXPECTED, f"what is stored cannot be told: {error.one_line()}")
        found = audit_of(world.everything(), SCOPE)
        events = _events(found)
        _check_told(world, found, events)
        _check_names(world, found, events)


def _wish(env: Env, tier1: Tier1, key: str) -> Operation:
    """Something that may be done to a table now, as far as this committer knows."""
    below, names = env.world.choices.below, tier1.names
    uuid, name = _TABLES[below(len(_TABLES))], _NAMES[below(len(_NAMES))]
    live, dropped = names.by_uuid(uuid), names.dropped.get(uuid)
    if dropped is not None:
        return Undrop(key_hash=key, uuid=uuid, drop_id=dropped.drop_id, namespace=_SPACE, name=name)
    if live is None:
        now_ms = env.clock.now_ms()
        entry = Entry(uuid, f"asset {uuid}", Kind.TABLE, Format.ICEBERG, _SPACE, name, "loc", 1, now_ms, now_ms)
        return Create(key_hash=key, entry=entry, minted_ms=now_ms)
    match below(3):
        case 0:
            return Rename(key_hash=key, uuid=uuid, binding=live.binding, namespace=_SPACE, name=name)
        case 1:
            return Describe(key_hash=key, uuid=uuid, governance={"owner": key})
        case _:
            return Drop(key_hash=key, uuid=uuid, binding=live.binding, drop_id=key, purge=False, principal="p")


def _events(found: Audit) -> list[Event]:
    events: list[Event] = []
    for name, data in found.objects.items():
        if "/ledger/" in name and isinstance(key := parse(name), SegmentKey):
            events += decode_segment(key, data).events
    return events


def _check_told(world: World, found: Audit, events: list[Event]) -> None:
    """What every commit says is there, under one id each, and nothing else is."""
    wanted = {(commit.id, place) for commit in found.chain for place in range(_things(commit.operations))}
    told = {(event.data["commit"], event.data["place"], event.id) for event in events}
    for commit, place in sorted(wanted - {(commit, place) for commit, place, _ in told}):
        violate(world, invariants.NOTHING_LOST, f"nobody told thing {place} of commit {commit}")
    for (commit, place), ids in Counter((commit, place) for commit, place, _ in told).items():
        if ids > 1:
            violate(world, invariants.NOTHING_DOUBLED, f"thing {place} of commit {commit} was told under {ids} ids")
        if (commit, place) not in wanted:
            violate(world, invariants.OUTCOMES_TRUE, f"thing {place} of commit {commit} was told and never happened")


def _things(operations: tuple[Operation, ...]) -> int:
    """How many things some operations say of tables: one each, but for namespaces."""
    return sum(not isinstance(one, CreateNamespace) for one in operations)


def _check_names(world: World, found: Audit, events: list[Event]) -> None:
    rows = joined(CATALOG_TABLES, (row for event in events for _, row in SHREDDERS[event.type](event)))
    state = {uuid: (row["table"], row["dropped"], row["owner"]) for (uuid,), row in rows.items()}
    names = {uuid: _said(one.entry, gone=True) for uuid, one in found.names.dropped.items()}
    names |= {entry.uuid: _said(entry, gone=False) for entry in found.names.entries.values()}
    if state != names:
        violate(world, invariants.FOLD_EQUALS_MODEL, f"what was told comes to {state}, and the names are {names}")


def _said(entry: Entry, *, gone: bool) -> tuple[str, bool, str | None]:
    return entry.full_name, gone, entry.governance.owner

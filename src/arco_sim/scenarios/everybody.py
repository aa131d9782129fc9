"""Everybody at once, for weeks: transactions, commits of single tables, creations, staged ones, drops, restores, renames,
registrations, readers of all tables at one moment, two reconcilers and two collectors of everything.

The tables are the bank of `transactions.py`. Clients come in waves. A request may stall for ten times the patience with a silent
attempt, or for ten times the grace: then it arrives in the middle of the next wave, deletions among them. Clocks are ten minutes
wrong. Whatever is deleted is looked at in that moment, and at the end nothing is left that nobody can reach: no file, no record
of a transaction, no change that waits in a pointer, no name that is kept.
"""

from typing import Any

from arco.catalog.catalog import Catalog
from arco.catalog.idempotency import RequestKey
from arco.catalog.manifest import Author
from arco.iceberg import requests
from arco.kernel.canonical_json import request_hash
from arco.kernel.errors import OutcomeUnknown
from arco.kernel.ids import TransactionId
from arco.kernel.limits import (
    IDEMPOTENCY_LIFETIME_S,
    IDEMPOTENCY_TAKEOVER_S,
    TRANSACTION_KEPT_S,
    TRANSACTION_STALE_S,
    UPKEEP_GRACE_S,
)
from arco.txn.transactions import Transactions
from arco.upkeep.jobs import JOBS
from arco.upkeep.passes import jobs_named, upkeep_pass
from arco.upkeep.sweep import Setting
from arco_sim import invariants
from arco_sim.audit import audit_of
from arco_sim.choices import Weights
from arco_sim.clients import Clients, Request
from arco_sim.faults import Fault, FaultProfile
from arco_sim.scenario import readable, violate
from arco_sim.scenarios.table_commits import FIELD, SCOPE, open_catalog
from arco_sim.scenarios.transactions import FRAGILE, NAMESPACE, TransactionsScenario
from arco_sim.scenarios.upkeep import wrong_clock
from arco_sim.scenarios.upkeep_truth import BASE, Truth
from arco_sim.world import Env, World

ELSEWHERE, STAGED = "t5", "t6"
_DAY_S = 86_400.0
_WAVE_S = 10.0 * UPKEEP_GRACE_S
_WAVES = 2
_CLOCKS_S = 600.0
_ASKS_FOR_S = IDEMPOTENCY_LIFETIME_S - 2 * _CLOCKS_S
"""How long a client asks with one key: past its lifetime the key is refused, and says nothing of what it came to."""
_WISHES = (
    ("move t0 t1", 3),
    ("move t1 t2", 3),
    ("mark t2 t0 t1", 2),
    ("mark t0 t2", 2),
    ("single t1", 2),
    ("look", 3),
    ("found t4 t0", 2),
    ("found t1 t4", 2),
    ("mark t3 t1", 2),
    ("never t1 t2", 1),
    ("far t0 t2", 1),
    ("drop t3", 1),
    ("purge t3", 1),
    ("undrop t3", 2),
    ("rename t3 t5", 1),
    ("register t3", 1),
    ("stage t6", 1),
)
_OFTEN = Weights(*(weight for _, weight in _WISHES))
_RECONCILE = ("transactions", "reconcile")
_COLLECT = tuple(job.kind for job in JOBS if job.kind not in _RECONCILE)
_AFTER_A_WAVE_S = (5.0, 60.0, 4000.0, 2 * _DAY_S, 5 * _DAY_S, 31 * _DAY_S)


class EverybodyScenario(TransactionsScenario):
    name = "everybody"
    promise = "whoever collects and reconciles meanwhile: transactions are whole and nothing that anybody needs is deleted"
    profile = FaultProfile.of(
        fault_share=0.05,
        crash_share=0.005,
        stall_s=10.0 * TRANSACTION_STALE_S,
        longer_stalls_s=(10.0 * IDEMPOTENCY_TAKEOVER_S, _WAVE_S),
        lingers=True,
        wrong_s_max=_CLOCKS_S,
        limit_s=400 * _DAY_S,
    )
    faults = tuple(Fault)
    may_share_a_folder = False

    async def prepare(self, world: World, env: Env) -> None:
        world.notes["truth"] = Truth(world, SCOPE)
        await super().prepare(world, env)

    def start(self, world: World, *, small: bool) -> None:
        servers, clients, waves = (2, 2, 1) if small else (3, 4, _WAVES)
        scripts = [[self._wish(world) for _ in range(waves)] for _ in range(clients)]
        if small:
            scripts = [["mark t0 t1"], ["found t1 t4"]]
        asked = world.notes["clients"] = Clients(world, scripts, servers)
        for request in asked.requests:
            request.not_before_s = request.number * _WAVE_S + world.choices.below(30)
        for number in range(servers):
            world.spawn(f"server{number}", lambda env, n=number: self._serve(env, n), lives=4)  # type: ignore[misc]
        each = 1 if small else 2
        for number in range(each):
            world.spawn(f"reconciler{number}", lambda env: self._keep(env, _RECONCILE, waves), lives=4)
            world.spawn(f"collector{number}", lambda env: self._keep(env, _COLLECT, waves), lives=4)

    def _wish(self, world: World) -> str:
        return _WISHES[world.choices.weighted(_OFTEN)][0]

    async def _serve(self, env: Env, number: int) -> None:
        wrong_clock(env)
        await super()._serve(env, number)

    async def _work(self, env: Env, catalog: Catalog, transactions: Transactions, request: Request) -> Any:
        """As a server takes it: the age of a key is looked at before anything else."""
        age_s = (env.world.store_time_ms() - TransactionId(request.key).time_ms) / 1000
        if age_s > _ASKS_FOR_S:
            raise OutcomeUnknown("its client asks no more")
        catalog.parts.markers.request_key(request.key, request.kind, "0")
        if request.kind in _OF_NAMES:
            return await _OF_NAMES[request.kind](catalog, request)
        return await super()._work(env, catalog, transactions, request)

    async def _keep(self, env: Env, kinds: tuple[str, ...], waves: int) -> None:
        """Once in or after each wave."""
        wrong_clock(env)
        parts, notes = open_catalog(env).parts, env.world.notes
        passes = notes.setdefault(f"passes of {env.name}", iter(range(waves)))
        for wave in passes:
            due_s = wave * _WAVE_S + _AFTER_A_WAVE_S[env.world.choices.below(len(_AFTER_A_WAVE_S))]
            await env.clock.sleep(max(0.0, due_s - env.clock.monotonic_s()))
            await upkeep_pass(Setting(parts), jobs_named(kinds))

    async def verify(self, world: World, env: Env) -> None:
        await readable(world, self._verify(world, env))

    async def _verify(self, world: World, env: Env) -> None:
        truth: Truth = world.notes["truth"]
        # Longer than the longest stall: whatever was still on its way has arrived. Then as long as records are kept.
        for pause_s, kinds in (
            (_WAVE_S + _DAY_S, _RECONCILE),
            (TRANSACTION_KEPT_S, ("transactions", *_COLLECT)),
            (2 * _DAY_S, ("pointers",)),
        ):
            await env.clock.sleep(pause_s)
            for report in await upkeep_pass(Setting(open_catalog(env).parts), jobs_named(kinds)):
                if report.failed or report.trouble:
                    violate(world, invariants.NO_LITTER, f"{report.kind}: {report.failed or report.trouble[0]}")
            _nothing_waits(world)
        for text in truth.litter():
            violate(world, invariants.NO_LITTER, text)
        _files_are_there(world, truth)
        await self.judge(world, env, audit_of(truth.receipts_gone | world.everything(), SCOPE))


async def _undrop(catalog: Catalog, request: Request) -> str:
    dropped = (await catalog.parts.tier1.current()).names.last_dropped(NAMESPACE, FRAGILE)
    if dropped is not None:
        await catalog.tables.undrop(dropped, NAMESPACE, FRAGILE, _key(request), Author())
    return "done"


async def _rename(catalog: Catalog, request: Request) -> str:
    """Away and, by the next of them, back again."""
    places = ((NAMESPACE, FRAGILE), (NAMESPACE, ELSEWHERE))
    here, there = places if request.number % 2 == 0 else places[::-1]
    await catalog.tables.rename(here, there, _key(request), Author())
    return "done"


async def _register(catalog: Catalog, request: Request) -> str:
    """A table that was dropped, by the file that it stands at."""
    dropped = (await catalog.parts.tier1.current()).names.last_dropped(NAMESPACE, FRAGILE)
    pointer = None if dropped is None else await catalog.parts.pointers.read(dropped.entry.uuid)
    if pointer is not None:
        place = pointer.value.metadata_location
        await catalog.registering.register(
            NAMESPACE, FRAGILE, place, overwrite=False, key=_key(request, place), author=Author()
        )
    return "done"


async def _stage(catalog: Catalog, request: Request) -> str:
    """Staged and left: the folder, the note and the identity are upkeep's."""
    wanted = requests.parse_create_table({"name": STAGED, "schema": {"type": "struct", "fields": [FIELD]}})
    await catalog.staging.stage(NAMESPACE, wanted, _key(request))
    return "done"


_OF_NAMES = {"undrop": _undrop, "rename": _rename, "register": _register, "stage": _stage}


def _key(request: Request, body: str = "") -> RequestKey:
    return RequestKey(request.key, request.kind, request_hash([request.wish, body]))


def _nothing_waits(world: World) -> None:
    """Whatever a transaction left was finished: no pointer and no name waits for a decision."""
    found = audit_of(world.everything(), SCOPE)
    for pointer in found.pointers.values():
        if pointer.pending is not None:
            violate(world, invariants.NO_LITTER, f"{pointer.table_uuid} still waits for {pointer.pending.tx_id}")
    for reserved in found.names.reserved.values():
        violate(world, invariants.NO_LITTER, f"a name is still kept for {reserved.tx_id}")


def _files_are_there(world: World, truth: Truth) -> None:
    """Every file that a table's pointer ever named is there, but for tables that were purged."""
    names, objects = truth.names(), world.everything()
    for uuid in (*names.places, *names.dropped):
        for location in truth.swings.get(uuid, {}).values():
            if location.removeprefix(BASE) not in objects:
                violate(world, invariants.NOTHING_NEEDED_DELETED, f"{location} is in a table's history and is gone")

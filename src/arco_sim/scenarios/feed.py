"""Readers follow the feed of events while clients commit to tables, to several at once, and to names; everybody may die or stall.

Commits are those of the scenario of transactions, with processes that die before they write their receipts. Servers of the feed
look for what is new, all of them at once, and die too; each reader has a cursor that outlives them, and asks any of them for a
few events at a time. Months later receipts are collected, and a server that loaded a table at the beginning commits to it: it
writes one of them again. In the end every reader was shown the same: every commit and every change of names once, the commits of
a table in their order, the parts of a transaction at one place, and what made a table before its commits.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from arco.catalog.catalog import Catalog
from arco.catalog.feed import Feed
from arco.catalog.feed_pages import FeedPages
from arco.catalog.idempotency import RequestKey
from arco.catalog.operations import Create, CreateNamespace, Drop
from arco.iceberg import requests
from arco.kernel.errors import AskHistory, AskOperator, Refresh, RetryLater
from arco.kernel.ids import new_uuid7
from arco.kernel.limits import COMMITTED_RECEIPT_S, UPKEEP_CLOCKS_S
from arco.ledger.payloads import derived_event_id
from arco.ledger.receipts import Source, commit_key
from arco.storage.port import Page
from arco.surface.http.feed import Cursor, Query, Reading
from arco.txn.transactions import Transactions
from arco.upkeep.passes import jobs_named, upkeep_pass
from arco.upkeep.sweep import Setting
from arco_sim import invariants
from arco_sim.audit import Audit, audit_of
from arco_sim.faults import FaultProfile
from arco_sim.scenario import violate
from arco_sim.scenarios.table_commits import FIELD, SCOPE, open_catalog, unkeyed
from arco_sim.scenarios.transactions import NAMESPACE, TransactionsScenario
from arco_sim.scenarios.upkeep_truth import Truth
from arco_sim.world import Env, SimStore, World

_BUSY = ("busy0", "busy1")
_SIZES = (1, 3, 100)
_PAGE_S = 0.2
_MONTHS_S = COMMITTED_RECEIPT_S + 2.0 * UPKEEP_CLOCKS_S


@dataclass(eq=False, slots=True)
class _Reader:
    """A client that follows the feed. What it was shown and where it stands are its own, and survive every server."""

    cursor: Cursor = field(default_factory=Cursor)
    shown: list[dict[str, Any]] = field(default_factory=list)
    asked: Any = None

    @property
    def is_free(self) -> bool:
        return self.asked is None or not self.asked.alive


class FeedScenario(TransactionsScenario):
    name = "feed"
    promise = "every reader of the feed is shown every change once, in an order that keeps that of each table"
    profile = FaultProfile.of(
        fault_share=0.05, crash_share=0.008, stall_s=500.0, lingers=True, limit_s=_MONTHS_S + 100_000.0
    )
    may_share_a_folder = False

    async def prepare(self, world: World, env: Env) -> None:
        world.notes["truth"] = Truth(world, SCOPE)
        await super().prepare(world, env)
        catalog = open_catalog(env)
        for name in _BUSY:
            wanted = requests.parse_create_table({"name": name, "schema": {"type": "struct", "fields": [FIELD]}})
            await catalog.tables.create(NAMESPACE, wanted, unkeyed(name), Source())
        await catalog.parts.afterwards.settle()

    def start(self, world: World, *, small: bool) -> None:
        # The clients of that scenario are few here: what is told twice or never is told by servers of the feed.
        super().start(world, small=True)
        world.notes["readers"] = [_Reader() for _ in range(1 if small else 3)]
        for number in range(1 if small else 2):
            world.spawn(f"busy{number}", lambda env: self._commit(env, 2 if small else 14), lives=4)
        for number in range(2 if small else 3):
            world.spawn(f"feeder{number}", lambda env: self._feed(env, 2 if small else 10, 0 if small else 6), lives=4)
        if not small:
            world.spawn("sleeper", self._sleep, lives=4)
            world.spawn("keeper", self._collect, lives=4)

    async def _commit(self, env: Env, times: int) -> None:
        """One commit after the other to two tables, now and then to both at once. What came of them the receipts tell."""
        catalog = open_catalog(env)
        for number in range(times):
            # A task of its own, as a request has: it dies with its process without a word.
            with suppress(RetryLater, AskHistory, Refresh):
                await asyncio.ensure_future(self._commit_once(env, catalog, f"{env.incarnation}/{number}"))
            await env.clock.sleep(0.5 * env.world.choices.below(3))
        await catalog.parts.afterwards.settle()

    async def _commit_once(self, env: Env, catalog: Catalog, what: str) -> None:
        below = env.world.choices.below
        changes = [requests.parse_commit_table(_busy_change(name, what)) for name in _BUSY]
        if below(3):
            one = below(2)
            await catalog.table_commits.commit(NAMESPACE, _BUSY[one], changes[one], unkeyed(what), Source())
        else:
            key = RequestKey(new_uuid7(env.clock, env.entropy), "commitTransaction", "0", durable=False)
            await Transactions(catalog).commit(changes, key, Source())

    async def _sleep(self, env: Env) -> None:
        """A server that knows a table as it was long ago: by then the receipts of that time are collected."""
        catalog = open_catalog(env)
        for name in _BUSY:
            with suppress(RetryLater, AskHistory, Refresh):
                await catalog.tables.load(NAMESPACE, name)
        await _until(env, _MONTHS_S + 1000.0 * (1 + env.world.choices.below(3)))
        with suppress(RetryLater, AskHistory, Refresh):
            await asyncio.ensure_future(self._commit_once(env, catalog, f"{env.incarnation}/late"))
        await catalog.parts.afterwards.settle()

    async def _collect(self, env: Env) -> None:
        await _until(env, _MONTHS_S)
        if env.world.choices.below(2):
            env.world.calm()
        parts = open_catalog(env).parts
        for _ in range(6):
            await env.clock.sleep(200.0)
            with suppress(RetryLater, AskHistory, Refresh):
                # Nobody promises what is collected before the first look.
                if (await Feed(parts).fed()).number:
                    await upkeep_pass(Setting(parts), jobs_named(("receipts",)))

    async def _feed(self, env: Env, times: int, late: int) -> None:
        feed = Feed(_with_narrow_pages(env).parts)
        below = env.world.choices.below
        for number in range(times + late):
            if number < times:
                await env.clock.sleep((0.0, 0.5, 2.0, 20.0)[below(4)])
            else:
                await _until(env, _MONTHS_S)
                await env.clock.sleep((20.0, 500.0, 1000.0)[below(3)])
            reader: _Reader = env.world.notes["readers"][below(len(env.world.notes["readers"]))]
            if reader.is_free:
                await self._serve_reader(env, feed, reader)

    async def _serve_reader(self, env: Env, feed: Feed, reader: _Reader) -> None:
        reader.asked = env.incarnation
        size = _SIZES[env.world.choices.below(len(_SIZES))]
        reading = Reading(Query(page_size=size), reader.cursor)
        try:
            await reading.run(feed)
        except (RetryLater, AskHistory, Refresh):
            reader.asked = None
            return
        except AskOperator as error:
            violate(env.world, invariants.UNEXPECTED, f"{env.name}: {error.one_line()}")
            return
        reader.cursor, reader.asked = reading.cursor, None
        reader.shown += reading.events

    async def verify(self, world: World, env: Env) -> None:
        catalog = open_catalog(env)
        await catalog.parts.tier1.current()
        found = _audit(world)
        await self.judge(world, env, found)
        for uuid in found.pointers:
            # What upkeep's reconciler does: the receipts of last commits, whose process died before it wrote them.
            pointer = await catalog.parts.pointers.read(uuid)
            if pointer is not None and found.names.by_uuid(uuid):
                await catalog.parts.receipts.ensure_published(pointer.value)
        everything = await _all_after(Feed(catalog.parts), Cursor())
        for number, reader in enumerate(world.notes["readers"]):
            rest = await _all_after(Feed(catalog.parts), reader.cursor)
            if [*reader.shown, *rest] != everything:
                violate(world, invariants.FEED_ONCE, f"reader {number} was shown another feed than there is")
        found = _audit(world)
        _check_commits(world, found, everything)
        _check_names(world, found, everything)
        await _check_pages(world, env)


async def _until(env: Env, at_s: float) -> None:
    await env.clock.sleep(max(0.0, at_s - env.clock.monotonic_s()))


def _audit(world: World) -> Audit:
    """What happened, by what is there and by the receipts that were collected."""
    truth: Truth = world.notes["truth"]
    return audit_of(truth.receipts_gone | world.everything(), SCOPE)


class _NarrowPages(SimStore):
    """Lists a few names at a time, and slowly, so that much happens during a listing. When little happens there is no need."""

    def __init__(self, env: Env) -> None:
        super().__init__(env.world, env.incarnation)
        self._clock = env.clock

    async def list_page(self, prefix: str, after: str = "", limit: int = 1000) -> Page:
        if self._clock.monotonic_s() >= _MONTHS_S:
            return await super().list_page(prefix, after, limit)
        await self._clock.sleep(_PAGE_S)
        return await super().list_page(prefix, after, min(limit, 3))


def _with_narrow_pages(env: Env) -> Catalog:
    store = _NarrowPages(env)
    return Catalog.open(store, "file:///lake", SCOPE, env.clock, env.entropy)


def _busy_change(name: str, what: str) -> dict[str, Any]:
    return {
        "identifier": {"namespace": list(NAMESPACE), "name": name},
        "requirements": [],
        "updates": [{"action": "set-properties", "updates": {"busy": what}}],
    }


async def _all_after(feed: Feed, cursor: Cursor) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    while True:
        reading = Reading(Query(page_size=1000), cursor)
        await reading.run(feed)
        events += reading.events
        if reading.cursor == cursor:
            return events
        cursor = reading.cursor


def _check_commits(world: World, found: Audit, events: list[dict[str, Any]]) -> None:
    places = {event["event-id"]: place for place, event in enumerate(events)}
    if len(places) < len(events):
        violate(world, invariants.FEED_ONCE, "an event is in the feed twice")
    told: dict[str, list[tuple[int, int]]] = {}
    for key, receipt in found.receipts.items():
        commit = receipt.commit
        about = ("table committed", receipt.table_uuid, str(commit_key(commit.metadata_location, commit.commit_number)))
        place = places.get(derived_event_id(commit.at_ms, *about))
        is_beginning = commit.commit_number == 0 and commit.transaction is None
        if (place is None) != is_beginning:
            violate(world, invariants.FEED_ONCE, f"the feed has {place} for {key}")
        if place is not None:
            told.setdefault(receipt.table_uuid, []).append((commit.commit_number, place))
    for uuid, some in told.items():
        in_order = [place for _, place in sorted(some)]
        if in_order != sorted(in_order):
            violate(world, invariants.FEED_ORDERED, f"commits of {uuid} are at {sorted(some)}")
    _check_requests(world, events)


def _check_requests(world: World, events: list[dict[str, Any]]) -> None:
    requests: dict[str, list[int]] = {}
    for place, event in enumerate(events):
        requests.setdefault(event["request-id"], []).append(place)
    for request, some in requests.items():
        counts = {events[place]["request-event-count"] for place in some}
        if counts != {len(some)} or some != list(range(some[0], some[0] + len(some))):
            violate(world, invariants.FEED_ORDERED, f"the events of {request} are at {some}, of {counts}")


def _check_names(world: World, found: Audit, events: list[dict[str, Any]]) -> None:
    told = [event["operation"] for event in events]
    kinds = [one["operation-type"] for one in told]
    operations = [operation for commit in found.chain for operation in commit.operations]
    for kind, wanted in (("create-namespace", CreateNamespace), ("drop-table", Drop)):
        if kinds.count(kind) != sum(isinstance(one, wanted) for one in operations):
            violate(world, invariants.FEED_ONCE, f"the feed has {kinds.count(kind)} of {kind}")
    made = {one.entry.uuid for one in operations if isinstance(one, Create)}
    for uuid in {one["table-uuid"] for one in told if "table-uuid" in one}:
        first = next(one for one in told if one.get("table-uuid") == uuid)
        if first["operation-type"] != "create-table":
            violate(world, invariants.FEED_ORDERED, f"{uuid} was {first['operation-type']} before it was made")
        made.discard(uuid)
    if made:
        violate(world, invariants.FEED_ONCE, f"the feed never says that {made} were made")


async def _check_pages(world: World, env: Env) -> None:
    """No receipt in two pages."""
    pages, number, seen = FeedPages(env.store, SCOPE, env.clock, env.entropy), 1, set[str]()
    while (page := await pages.read(number)) is not None:
        if seen & set(page.receipts):
            violate(world, invariants.FEED_ONCE, f"page {number} has {sorted(seen & set(page.receipts))} again")
        seen |= set(page.receipts)
        number += 1

"""Folders, writers, a mover, a reader and somebody who rebuilds, all at once on two heads that read one domain.

Writers append events, some twice, some invalid, one late under an old number; commits leave receipts; notifications tell of
segments; what is consumed is moved aside, by a mover and by the folders. Folders die, stall and lose replies at every step. In
the end the published state is the join of everything that lies in the ledger, every manifest of the chain is whole, and nobody
ever saw a head go back.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

import msgspec

from arco.fold.archiving import copy_aside, movable
from arco.fold.finding import Batches
from arco.fold.folding import Folding, Settings
from arco.fold.heads import Heads
from arco.fold.manifests import Caps, Manifest
from arco.fold.merging import merge
from arco.fold.moving import move_crowd
from arco.fold.notifying import notify
from arco.fold.rebuilding import rebuild
from arco.fold.receipt_events import ReceiptEvents
from arco.kernel.clock import utc_date
from arco.kernel.errors import ArcoError, AskHistory, AskOperator, Refresh, RetryLater
from arco.kernel.ids import EventId, SegmentId, TableUuid, UlidSource, WriterId
from arco.kernel.position import HybridClock
from arco.ledger.appender import Appender
from arco.ledger.drafts import Draft, seal
from arco.ledger.envelope import encode
from arco.ledger.receipts import Published, Receipt, Source, commit_key, receipt_name
from arco.ledger.segment import encode_segment
from arco.storage.keys import Day, Domain, Head, MetadataHash, Phase, SegmentKey, Slug, TableMetadataKey
from arco.storage.paging import walk
from arco.storage.port import Absent
from arco.storage.readback import put_settled
from arco_sim import invariants
from arco_sim.faults import Fault, FaultProfile
from arco_sim.outage import FailingStore
from arco_sim.scenario import violate
from arco_sim.scenarios.fold_audit import FoldAudit
from arco_sim.scenarios.fold_work import HAPPENED, SCOPE, UNHEARD_OF, PlainWork
from arco_sim.world import Env, World

HEADS = (Head.ICEBERG, Head.SEARCH)
_TABLE = TableUuid("0b54c2a4-6d6e-4c1e-9f0a-5a1c0d2e3f40")
_TRIES_MAX = 8
_ROUNDS_MAX = 200
_TIGHT = Settings(
    batches=Batches(segments=3, receipts=2), caps=Caps(files=3, age_s=100_000), lists_max=3, crowd_max=2, grace_s=0
)


@dataclass(slots=True)
class Known:
    """What those outside the servers know."""

    acknowledged: set[str] = field(default_factory=set)
    commits: set[str] = field(default_factory=set)
    working: int = 0


class FoldScenario:
    name = "fold"
    promise = "the published state is the join of all events of the ledger, whoever dies, stalls or folds at the same time"
    profile = FaultProfile.of(fault_share=0.06, crash_share=0.008, stall_s=300.0, lingers=True)
    faults = tuple(Fault)

    async def prepare(self, world: World, env: Env) -> None:
        """A damaged segment, and the second segment of a writer whose first is still under way."""
        ulids = UlidSource(env.clock, env.entropy)
        world.notes["writer"] = WriterId(ulids.next())
        whole = _segment(env, ulids, WriterId(ulids.next()), 1, "damaged")
        await _put(env, whole[0], whole[1].replace(b"damaged", b"dAmaged"))
        await _put(env, *_segment(env, ulids, world.notes["writer"], 2, "second"))

    def start(self, world: World, *, small: bool) -> None:
        known = world.notes["known"] = Known()
        for number in range(1 if small else 2):
            known.working += 1
            world.spawn(f"writer{number}", lambda env: self._write(env, small=small))
        known.working += 1
        world.spawn("committer", lambda env: self._commit(env, small=small))
        for number in range(2):
            world.spawn(f"folder{number}", lambda env, n=number: self._fold(env, n, small=small), lives=4)  # type: ignore[misc]
        world.spawn("mover", lambda env: self._move(env, small=small))
        if not small:
            world.spawn("reader", self._read, lives=2)
            world.spawn("straggler", self._straggle, lives=6)
            if world.seed % 3 == 0:
                world.spawn("rebuilder", self._rebuild)

    # Who writes

    async def _write(self, env: Env, *, small: bool) -> None:
        store = env.store if small or env.name == "writer0" else FailingStore(env)
        appender = Appender(store, SCOPE, env.clock, env.entropy)
        for number in range(1 if small else 4):
            label = f"{env.name}/{number}"
            drafts = [_draft(label, f"thing{number % 3}"), _draft(f"{label}/bad", None)]
            if number == 2:
                drafts.append(Draft(type=UNHEARD_OF, source="sim", data={"x": label}, idempotencykey=f"{label}/new"))
            await self._send(env, appender, label, drafts)
            # Sent again by somebody who did not hear: the same event at another position.
            if number % 2:
                await self._send(env, appender, label, drafts[:1])
            await env.clock.sleep(20.0)
        await appender.close()
        env.world.notes["known"].working -= 1

    async def _send(self, env: Env, appender: Appender, label: str, drafts: list[Draft]) -> None:
        for _ in range(_TRIES_MAX):
            try:
                await appender.append(Domain.ICEBERG, drafts)
            except (AskHistory, RetryLater):
                await env.clock.sleep(5.0)
                continue
            env.world.notes["known"].acknowledged.add(label)
            return

    async def _commit(self, env: Env, *, small: bool) -> None:
        """Commits of a table, as the catalog leaves them: a metadata file, and a receipt after it."""
        for number in range(1 if small else 3):
            key = TableMetadataKey(SCOPE, Slug("t"), _TABLE, number, MetadataHash(f"{number:032x}"))
            if number != 1:  # the second one's file is gone by the time that anybody looks
                await _settled(env, str(key), msgspec.json.encode(_metadata(number)))
            commit = Published("e", number, str(key), None, None, 1_750_000_000_000 + number, Source())
            its_key = commit_key(str(key), number)
            receipt = Receipt("arco.receipt", 1, Phase.COMMITTED, str(_TABLE), str(its_key), commit)
            name = receipt_name(SCOPE, Phase.COMMITTED, its_key, commit.at_ms)
            await _settled(env, name, msgspec.json.encode(receipt))
            env.world.notes["known"].commits.add(str(its_key))
            await env.clock.sleep(30.0)
        env.world.notes["known"].working -= 1

    async def _straggle(self, env: Env) -> None:
        """The first segment of a writer turns up after its second."""
        await env.clock.sleep(150.0)
        ulids = UlidSource(env.clock, env.entropy)
        await _settled(env, *_segment(env, ulids, env.world.notes["writer"], 1, f"first {env.incarnation}"))
        env.world.notes["known"].acknowledged.add(f"first {env.incarnation}")

    # Who folds

    async def _fold(self, env: Env, number: int, *, small: bool) -> None:
        listing = small or not (number and env.world.seed % 4 == 1)
        if number and not small and env.world.seed % 2 == 0:
            env.store = FailingStore(env)
        folding = open_folding(env, listing=listing)
        for _ in range(1 if small else 12):
            for head in HEADS:
                await _patiently(env, lambda head=head: self._pass(env, folding, head, listing=listing))  # type: ignore[misc]
            await _patiently(env, folding.heads.publish_cut)
            await env.clock.sleep(5.0 + 10.0 * env.world.choices.below(4))

    async def _pass(self, env: Env, folding: Folding, head: Head, *, listing: bool) -> None:
        if not listing:
            names = [one.key async for one in walk(env.store, "t/w/_catalog/ledger/")]
            await notify(env.store, SCOPE, names, env.clock, env.entropy)
        done = await folding.catch_up(head)
        await merge(folding, head)
        await move_crowd(folding, {head: done})

    async def _rebuild(self, env: Env) -> None:
        await env.clock.sleep(60.0 + 40.0 * env.world.choices.below(4))
        folding, since = open_folding(env), None
        if env.world.seed % 2:
            standing = await folding.heads.read(Head.ICEBERG)
            since = standing.manifest.previous if standing.manifest else None
        await _patiently(env, lambda: rebuild(folding, Head.ICEBERG, since))

    async def _move(self, env: Env, *, small: bool) -> None:
        folding = open_folding(env)
        for _ in range(1 if small else 8):
            await _patiently(env, lambda: _move_consumed(env, folding))
            await env.clock.sleep(15.0 + 15.0 * env.world.choices.below(3))

    # Who looks

    async def _read(self, env: Env) -> None:
        """Everything that the root names can be read, and nothing goes back."""
        heads, work = Heads(env.store, SCOPE, env.clock, env.entropy), PlainWork(env)
        reached: dict[str, int] = {}
        for _ in range(10):
            await _patiently(env, lambda: _look(env, heads, work, reached))
            await env.clock.sleep(20.0)

    async def verify(self, world: World, env: Env) -> None:
        folding = open_folding(env)
        try:
            for head in HEADS:
                await _caught_up(world, folding, head)
            await folding.heads.publish_cut()
            await FoldAudit(world, env, folding).check(HEADS)
        except ArcoError as error:
            violate(world, invariants.UNEXPECTED, f"what is stored cannot be folded or read: {error.one_line()}")


async def _caught_up(world: World, folding: Folding, head: Head) -> None:
    """Nobody else is at work: who folds again what was folded would never come to an end."""
    for _ in range(_ROUNDS_MAX):
        if not (await folding.round(head)).more:
            return
    violate(world, invariants.NOTHING_DOUBLED, f"{head} is folded for the {_ROUNDS_MAX}th time and there is still more")


def open_folding(env: Env, *, listing: bool = True) -> Folding:
    async def read_metadata(location: str) -> bytes | None:
        found = await env.store.get(location)
        return None if found is None else found.data

    receipts = ReceiptEvents(env.store, SCOPE, read_metadata, env.clock, env.entropy)
    settings = replace(_TIGHT, listing=listing)
    return Folding(
        Heads(env.store, SCOPE, env.clock, env.entropy), PlainWork(env), settings, receipts=receipts if listing else None
    )


async def _patiently(env: Env, work: Callable[[], Awaitable[object]]) -> None:
    """Do something, and let it be for now if the store or others are in the way. Anything else is a finding."""
    try:
        await work()
    except (RetryLater, AskHistory, Refresh):
        await env.clock.sleep(3.0)
    except AskOperator as error:
        violate(env.world, invariants.UNEXPECTED, f"{env.name}: {error.one_line()}")


async def _move_consumed(env: Env, folding: Folding) -> None:
    async for key in movable(folding.heads, folding.lists, Domain.ICEBERG):
        if await copy_aside(folding.heads, key):
            await env.store.delete(str(key))


async def _look(env: Env, heads: Heads, work: PlainWork, reached: dict[str, int]) -> None:
    root = (await heads.read_root()).manifest
    for one in () if root is None else root.heads:
        if one.manifest.sequence < reached.get(one.head, 0):
            violate(env.world, invariants.CUTS_GO_FORWARD, f"{one.head} went back to {one.manifest.sequence}")
        reached[one.head] = one.manifest.sequence
        manifest: Manifest = await heads.manifest(Head(one.head), one.manifest)
        for file in manifest.files():
            await work.rows(file)


def _draft(label: str, thing: str | None) -> Draft:
    data = {"label": label, "value": label} | ({} if thing is None else {"thing": thing})
    return Draft(type=HAPPENED, source="sim", data=data, idempotencykey=label)


def _segment(env: Env, ulids: UlidSource, writer: WriterId, number: int, label: str) -> tuple[str, bytes]:
    """A segment that no appender wrote."""
    segment = SegmentId(ulids.next())
    key = SegmentKey(SCOPE, Domain.ICEBERG, Day(utc_date(segment.time_ms)), segment)
    position = HybridClock(env.clock, env.entropy).next()
    fresh = EventId(ulids.next())
    event = seal(_draft(label, label), SCOPE, fresh_id=fresh, position=position, now_ms=env.clock.now_ms())
    return str(key), encode_segment(key, writer, number, [encode(event)])


async def _put(env: Env, key: str, data: bytes) -> None:
    await env.store.put(key, data, Absent())


async def _settled(env: Env, key: str, data: bytes) -> None:
    """Write, again and again, until the store says that it is there."""
    for _ in range(_TRIES_MAX):
        try:
            await put_settled(env.store, key, data, Absent(), clock=env.clock, entropy=env.entropy)
        except RetryLater:
            await env.clock.sleep(5.0)
            continue
        return


def _metadata(number: int) -> dict[str, object]:
    return {"format-version": 2, "location": f"loc{number}", "schemas": [], "current-schema-id": 0, "snapshots": []}

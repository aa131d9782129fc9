"""Commit of one table or view: never lost, never doubled, whatever reply is lost and whoever dies.

    resolve → base → prepare → stage (claim ∥ metadata file ∥ pending receipt ∥ earlier receipts ∥ names) → swing → finish

Warm, three rounds: everything of `stage` goes out together, computed from what this process remembers; the swing's condition
proves that the pointer was right, the answer about the manifest that the name was, the claim's answer whether to swing at
all. `finish` (receipt, marker) protects nothing that recovery could not redo, so after a success it does not hold the answer
up. A refusal is different: it is never computed from memory, and is durable in the marker before anybody hears it.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import msgspec

from arco.catalog.answers import Answer, Refusal
from arco.catalog.history import Landing, landing
from arco.catalog.idempotency import Marker, RequestKey, State
from arco.catalog.model import Entry, Levels
from arco.catalog.names import missing
from arco.catalog.pointer import Pointer, Published, Source
from arco.catalog.subject import Facts, Subject
from arco.catalog.workspace import Workspace
from arco.iceberg.guardrails import Allowed, nowhere_else
from arco.kernel.crash_points import reach
from arco.kernel.errors import ArcoError, Conflict, FixRequest, OutcomeUnknown, Refresh
from arco.kernel.limits import POINTER_CACHE_TABLES_MAX, SWAP_ATTEMPTS_MAX
from arco.storage.cas import Held, Overtaken, Swung
from arco.storage.keys import Phase
from arco.storage.port import Lost, Unknown
from arco.storage.readback import pause_s

M = TypeVar("M")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Base(Generic[M]):
    """A pointer with its metadata. `receipts_exist` if this process knows that the receipts of its last swing do."""

    pointer: Held[Pointer]
    metadata: M
    receipts_exist: bool = False


@dataclass(frozen=True, slots=True)
class Prepared(Generic[M]):
    """A commit that is computed and not yet written."""

    base: Base[M]
    metadata: M
    location: str
    event_id: str

    @property
    def number(self) -> int:
        return self.base.pointer.value.commit_number + 1


@dataclass(frozen=True, slots=True)
class Committed(Generic[M]):
    """What is current after a commit."""

    metadata: M
    location: str


class Commits(Generic[M, R]):
    """Commits of the tables, or of the views, of one workspace, with what this process remembers of them."""

    def __init__(self, workspace: Workspace, subject: Subject[M, R, Any], allowed: Allowed = nowhere_else) -> None:
        self._ws = workspace
        self.subject = subject
        self.allowed = allowed
        self._bases: OrderedDict[str, Base[M]] = OrderedDict()
        self._finishing: set[asyncio.Future[None]] = set()

    async def commit(self, levels: Levels, name: str, request: R, key: RequestKey, source: Source) -> Committed[M]:
        """Commit, or raise why not. What a retry of a finished request gets is what it got the first time."""
        attempt = _Attempt(self, self._ws, levels, name, request, key, source)
        return await attempt.run()

    async def settle(self) -> None:
        """Wait for what was left to do after answers: for a graceful stop."""
        while self._finishing:
            await asyncio.gather(*self._finishing, return_exceptions=True)

    def remembered(self, uuid: str) -> Base[M] | None:
        return self._bases.get(uuid)

    def remember(self, base: Base[M]) -> None:
        uuid = base.pointer.value.table_uuid
        known = self._bases.get(uuid)
        if known is None or known.pointer.generation <= base.pointer.generation:
            self._bases[uuid] = base
            self._bases.move_to_end(uuid)
        if len(self._bases) > POINTER_CACHE_TABLES_MAX:
            self._bases.popitem(last=False)

    def forget(self, uuid: str) -> None:
        self._bases.pop(uuid, None)

    async def read_base(self, uuid: str) -> Base[M] | None:
        """The table as it is now, from the store."""
        pointer = await self._ws.pointers.read(uuid)
        if pointer is None:
            return None
        known = self._bases.get(uuid)
        if known is not None and known.pointer.version == pointer.version:
            return known
        location = pointer.value.metadata_location
        base = Base(pointer, self.subject.decode(await self._ws.files.read(location), location))
        self.remember(base)
        return base

    def finish_later(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._finishing.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Future[None]) -> None:
        self._finishing.discard(task)
        if not task.cancelled():
            # A failure here loses nothing: the next swing writes the receipt, a retry finishes the marker.
            task.exception()


class _Attempt(Generic[M, R]):
    """One request on its way through the steps, across as many bases as it takes."""

    def __init__(
        self,
        commits: Commits[M, R],
        workspace: Workspace,
        levels: Levels,
        name: str,
        request: R,
        key: RequestKey,
        source: Source,
    ) -> None:
        self._commits = commits
        self._ws = workspace
        self._levels = levels
        self._name = name
        self._request = request
        self._key = key
        self._source = source
        self._subject = commits.subject
        self._marker: Held[Marker] | None = None
        self._swung_before = False

    async def run(self) -> Committed[M]:
        entry = await self._resolve()
        for attempt in range(SWAP_ATTEMPTS_MAX):
            if attempt:
                await self._ws.clock.sleep(pause_s(min(attempt, 5), self._ws.entropy))
            try:
                done = await self._try(entry, warm=attempt == 0)
            except (FixRequest, Refresh) as refusal:
                done = await self._refuse(entry, refusal)
            if done is not None:
                return done
        raise OutcomeUnknown("this table was changed by others all the time; the commit may be tried again")

    # Resolve

    async def _resolve(self) -> Entry:
        """The table of this name; a retry uses the table its first attempt found, whatever the name says now."""
        entry = self._find()
        if entry is None:
            await self._ws.tier1.current()
            entry = self._find()
        if entry is None:
            return await self._resolve_without_name()
        return entry

    def _find(self) -> Entry | None:
        return self._ws.tier1.names.find(self._levels, self._name, self._subject.kind)

    async def _resolve_without_name(self) -> Entry:
        """No such name: but a retry of a commit that landed before a drop or rename must hear what it heard."""
        refusal = missing(self._levels, self._name, self._subject.kind)
        if not self._key.durable:
            raise refusal
        failed = self._failed(self._ws.markers.fresh(self._key, self._ws.tier1.seen.sequence), refusal)
        if await self._ws.markers.claim(self._key, failed) is not None:
            raise refusal
        held = await self._ws.markers.wait(self._key)
        uuid = held.value.table_uuid
        entry = None if uuid is None else self._ws.tier1.names.by_uuid(uuid)
        if entry is None and (uuid is None or held.value.state is not State.IN_PROGRESS):
            await self._replay(held)
            raise refusal
        if entry is None:
            raise refusal
        return entry

    # One base

    async def _try(self, entry: Entry, *, warm: bool) -> Committed[M] | None:
        """One pass over the steps. None if the base was lost and another pass is needed."""
        prepared = await self._prepare(entry, warm=warm)
        if prepared.metadata is prepared.base.metadata:
            return await self._nothing_to_do(prepared)
        staged = await self._stage(entry, prepared)
        if not isinstance(staged, Prepared):
            return staged
        reach("commit.staged")
        return await self._swing(entry, staged)

    async def _prepare(self, entry: Entry, *, warm: bool) -> Prepared[M]:
        """Compute the commit on a base: on what is remembered if that works, and never refuse on that alone."""
        known = self._commits.remembered(entry.uuid) if warm else None
        if known is not None:
            try:
                return self._computed(known)
            except ArcoError:
                self._commits.forget(entry.uuid)
        base = await self._commits.read_base(entry.uuid)
        if base is None or base.pointer.value.tombstone is not None:
            raise missing(self._levels, self._name, self._subject.kind)
        return self._computed(base)

    def _computed(self, base: Base[M]) -> Prepared[M]:
        pointer = base.pointer.value
        after = self._subject.committed(
            base.metadata, self._request, self._ws.clock.now_ms(), pointer.metadata_location, self._commits.allowed
        )
        name = self._ws.files.name(self._key, pointer.commit_number + 1)
        location = f"{self._subject.place(base.metadata).rstrip('/')}/metadata/{name}"
        return Prepared(base, after, location, self._ws.ulids.next())

    async def _nothing_to_do(self, prepared: Prepared[M]) -> Committed[M]:
        """The updates change nothing. That is an answer about now, so the pointer must still be the one it was."""
        if not await self._ws.pointers.is_unchanged(prepared.base.pointer):
            self._commits.forget(prepared.base.pointer.value.table_uuid)
            raise OutcomeUnknown("the table changed while this request was answered; send it again")
        return Committed(prepared.metadata, prepared.base.pointer.value.metadata_location)

    # Stage

    async def _stage(self, entry: Entry, prepared: Prepared[M]) -> Prepared[M] | Committed[M] | None:
        """Everything before the swing, in one round: what to swing to, which an earlier attempt may have written.

        Or the result, if the request was finished before; or None, if its marker was taken over and all begins anew.
        """
        ws = self._ws
        seen = ws.tier1.seen
        pending = self._published(prepared)
        marker_write = asyncio.ensure_future(self._write_marker(prepared, seen.sequence))
        file_write = asyncio.ensure_future(
            ws.files.write(prepared.location, self._subject.encode(prepared.metadata, prepared.location))
        )
        names_check = asyncio.ensure_future(ws.tier1.is_unchanged(seen))
        await together(
            marker_write,
            file_write,
            names_check,
            ws.receipts.ensure(Phase.PENDING, entry.uuid, pending),
            self._ensure_receipts(prepared.base),
        )
        marker, data, unchanged = marker_write.result(), file_write.result(), names_check.result()
        if self._key.durable:
            if marker is None:
                return await self._resume(entry)
            self._marker = marker
        if not unchanged:
            await ws.tier1.current()
            current = ws.tier1.names.by_uuid(entry.uuid)
            if current is None or (current.namespace, current.name) != (self._levels, self._name):
                raise missing(self._levels, self._name, self._subject.kind)
        return replace(prepared, metadata=self._subject.decode(data, prepared.location))

    async def _write_marker(self, prepared: Prepared[M], since: int) -> Held[Marker] | None:
        """Claim the key, or renew our claim for a new base: each swing has its own marker write before it."""
        if not self._key.durable:
            return None
        first = self._ws.markers.fresh(self._key, since) if self._marker is None else self._marker.value
        base = prepared.base.pointer.value
        marker = msgspec.structs.replace(
            first,
            table_uuid=base.table_uuid,
            event_id=prepared.event_id,
            base_commit_number=base.commit_number,
            base_metadata_location=base.metadata_location,
            metadata_location=prepared.location,
        )
        if self._marker is None:
            return await self._ws.markers.claim(self._key, marker)
        return await self._ws.markers.renew(self._key, self._marker, marker)

    async def _ensure_receipts(self, base: Base[M]) -> None:
        if base.receipts_exist:
            return
        uuid = base.pointer.value.table_uuid
        await together(*(self._ws.receipts.ensure(Phase.COMMITTED, uuid, one) for one in base.pointer.value.published))

    def _published(self, prepared: Prepared[M]) -> Published:
        facts = self._subject.facts(prepared.metadata)
        return Published(
            event_id=prepared.event_id,
            commit_number=prepared.number,
            metadata_location=prepared.location,
            previous_metadata_location=prepared.base.pointer.value.metadata_location,
            snapshot_id=facts.snapshot_id,
            at_ms=facts.at_ms,
            source=self._source,
        )

    # Swing and after

    async def _swing(self, entry: Entry, prepared: Prepared[M]) -> Committed[M] | None:
        published = self._published(prepared)
        after = next_pointer(prepared.base.pointer.value, published, self._subject.facts(prepared.metadata))
        self._swung_before = True
        outcome = await self._ws.pointers.swing(prepared.base.pointer, after)
        reach("commit.swung")
        match outcome:
            case Swung(held):
                self._commits.remember(Base(held, prepared.metadata))
                return self._landed(entry, prepared, published)
            case Overtaken():
                self._commits.forget(entry.uuid)
                return self._landed(entry, prepared, published)
            case Lost() | Unknown():
                self._commits.forget(entry.uuid)
                return await self._look_back(entry, prepared, published, outcome)

    async def _look_back(
        self, entry: Entry, prepared: Prepared[M], published: Published, outcome: Lost | Unknown
    ) -> Committed[M] | None:
        """Not a definite success: ask history before anything is computed again, for another attempt may share our file."""
        pointer = await self._ws.pointers.read(entry.uuid)
        base_number = prepared.base.pointer.value.commit_number
        match await landing(prepared.location, base_number, pointer, self._ws, self._subject):
            case Landing.LANDED:
                return self._landed(entry, prepared, published)
            case Landing.NOT_YET if isinstance(outcome, Unknown):
                raise OutcomeUnknown(f"the table's pointer did not say whether it was swung: {outcome.reason}")
            case Landing.NEVER | Landing.NOT_YET:
                return None

    def _landed(self, entry: Entry, prepared: Prepared[M], published: Published) -> Committed[M]:
        self._commits.finish_later(self._finish(entry, prepared, published))
        return Committed(prepared.metadata, prepared.location)

    async def _finish(self, entry: Entry, prepared: Prepared[M], published: Published) -> None:
        """The receipt, and the marker's answer. If we die before, whoever comes next does it."""
        await self._ws.receipts.ensure(Phase.COMMITTED, entry.uuid, published)
        reach("commit.receipt_written")
        known = self._commits.remembered(entry.uuid)
        if known is not None and known.pointer.value.metadata_location == prepared.location:
            self._commits.remember(Base(known.pointer, known.metadata, receipts_exist=True))
        if self._marker is not None:
            answer = Answer(200, metadata_location=prepared.location)
            done = msgspec.structs.replace(self._marker.value, state=State.COMMITTED, answer=answer)
            await self._ws.markers.object(self._key).swap(self._marker, done)

    # A request that was sent before

    async def _resume(self, entry: Entry) -> Committed[M] | None:
        """The key is in use: hear its answer, find that it landed, wait for it, or take it over."""
        held = await self._ws.markers.existing(self._key)
        if held.value.state is State.IN_PROGRESS:
            landed = await self._recover(held)
            if landed is not None:
                return landed
            held = await self._ws.markers.wait(self._key)
        if held.value.state is not State.IN_PROGRESS:
            return await self._replay(held)
        return await self._take_over(entry, held)

    async def _replay(self, held: Held[Marker]) -> Committed[M]:
        marker = held.value
        if marker.refusal is not None:
            raise replayed_error(marker.refusal)
        location = marker.metadata_location
        if location is None:
            raise OutcomeUnknown("the record of this request names no commit")
        return Committed(self._subject.decode(await self._ws.files.read(location), location), location)

    async def _recover(self, held: Held[Marker]) -> Committed[M] | None:
        """An unfinished marker whose commit is in history: finish what its owner left."""
        marker = held.value
        if marker.table_uuid is None or marker.metadata_location is None or marker.base_commit_number is None:
            return None
        pointer = await self._ws.pointers.read(marker.table_uuid)
        found = await landing(marker.metadata_location, marker.base_commit_number, pointer, self._ws, self._subject)
        if found is not Landing.LANDED or pointer is None:
            return None
        for published in pointer.value.published:
            await self._ws.receipts.ensure(Phase.COMMITTED, marker.table_uuid, published)
        answer = Answer(200, metadata_location=marker.metadata_location)
        done = msgspec.structs.replace(marker, state=State.COMMITTED, answer=answer)
        await self._ws.markers.object(self._key).swap(held, done)
        return await self._replay(held)

    async def _take_over(self, entry: Entry, held: Held[Marker]) -> Committed[M] | None:
        """A silent attempt's marker becomes ours. Its file keeps its name while its base is current, so we may share it."""
        landed = await self._recover(held)
        if landed is not None:
            return landed
        self._marker = await self._ws.markers.renew(self._key, held, self._ws.markers.taken_over(held.value))
        self._swung_before = True
        self._commits.forget(entry.uuid)
        return None

    # Saying no

    async def _refuse(self, entry: Entry, refusal: ArcoError) -> Committed[M] | None:
        """Make a refusal durable, then raise it; kill a swing of an earlier attempt that could still land.

        A retry may be refused for its own effect: what its key stands for is answered then, as in `_stage`.
        """
        if self._swung_before:
            pointer = await self._ws.pointers.read(entry.uuid)
            if pointer is not None and isinstance(await self._ws.pointers.touch(pointer), Unknown):
                raise OutcomeUnknown("an earlier attempt of this request may still land")
        if not self._key.durable:
            raise refusal
        if self._marker is None:
            fresh = self._ws.markers.fresh(self._key, self._ws.tier1.seen.sequence)
            if await self._ws.markers.claim(self._key, self._failed(fresh, refusal)) is None:
                return await self._resume(entry)
            raise refusal
        await self._ws.markers.renew(self._key, self._marker, self._failed(self._marker.value, refusal))
        raise refusal

    def _failed(self, marker: Marker, refusal: ArcoError) -> Marker:
        return msgspec.structs.replace(marker, state=State.FAILED, refusal=Refusal(refusal.code, refusal.message))


def next_pointer(base: Pointer, published: Published, facts: Facts) -> Pointer:
    """The pointer after one commit."""
    return msgspec.structs.replace(
        base,
        commit_number=published.commit_number,
        metadata_location=published.metadata_location,
        previous_metadata_location=published.previous_metadata_location,
        snapshot_id=facts.snapshot_id,
        refs=facts.refs,
        last_sequence_number=facts.last_sequence_number,
        updated_at_ms=published.at_ms,
        updated_by=published.source,
        published=(published,),
    )


def replayed_error(refusal: Refusal) -> ArcoError:
    """The error that a marker remembers."""
    for cls in _error_classes(ArcoError):
        if cls.code == refusal.code:
            return cls(refusal.message)
    return Conflict(refusal.message)


def _error_classes(cls: type[ArcoError]) -> list[type[ArcoError]]:
    return [cls, *(below for sub in cls.__subclasses__() for below in _error_classes(sub))]


async def together(*work: Awaitable[object]) -> None:
    """Everything at once, and to the end: a failure must not leave writes running behind an answer."""
    for result in await asyncio.gather(*work, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result

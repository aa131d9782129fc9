"""Commit of one table or view: never lost, never doubled, whatever reply is lost and whoever dies.

    resolve → base → prepare → stage (claim ∥ metadata file ∥ pending receipt ∥ earlier receipts ∥ names) → swing → finish

Warm, three rounds: everything of `stage` goes out together, computed from what this process remembers; the swing's condition
proves that the pointer was right, the answer about the manifest that the name was, the claim's answer whether to swing at
all. `finish` (receipt, marker) protects nothing that recovery could not redo, so after a success it does not hold the answer
up. A refusal is different: it is never computed from memory, and is durable in the marker before anybody hears it.
"""

import asyncio
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import msgspec

from arco.catalog.afterwards import together
from arco.catalog.answers import Answer, replayed_error
from arco.catalog.bases import Base, Bases
from arco.catalog.history import Landing, landing
from arco.catalog.idempotency import Marker, RequestKey, State
from arco.catalog.model import Entry, Levels
from arco.catalog.names import missing
from arco.catalog.once import refused
from arco.catalog.pointer import Pointer, Published, Source
from arco.catalog.standing import bring_in_step, in_step
from arco.catalog.subject import Facts, Subject
from arco.catalog.workspace import Workspace
from arco.iceberg.guardrails import Allowed, nowhere_else
from arco.kernel.crash_points import reach
from arco.kernel.errors import ArcoError, FixRequest, NotFound, OutcomeUnknown, Refresh
from arco.kernel.limits import SWAP_ATTEMPTS_MAX
from arco.storage.cas import Held, Overtaken, Swung
from arco.storage.keys import Phase
from arco.storage.port import Lost, Unknown
from arco.storage.readback import pause_s

M = TypeVar("M")
R = TypeVar("R")


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
    """Commits of the tables, or of the views, of one workspace."""

    def __init__(
        self, workspace: Workspace, subject: Subject[M, R, Any], bases: Bases[M], allowed: Allowed = nowhere_else
    ) -> None:
        self.ws = workspace
        self.subject = subject
        self.bases = bases
        self.allowed = allowed

    async def commit(self, levels: Levels, name: str, request: R, key: RequestKey, source: Source) -> Committed[M]:
        """Commit, or raise why not. What a retry of a finished request gets is what it got the first time."""
        return await _Attempt(self, levels, name, request, key, source).run()


class _Attempt(Generic[M, R]):
    """One request on its way through the steps, across as many bases as it takes."""

    def __init__(
        self, commits: Commits[M, R], levels: Levels, name: str, request: R, key: RequestKey, source: Source
    ) -> None:
        self._ws = commits.ws
        self._bases = commits.bases
        self._subject = commits.subject
        self._allowed = commits.allowed
        self._levels = levels
        self._name = name
        self._request = request
        self._key = key
        self._source = source
        self._uuid: str | None = None
        self._bound_by_name = True
        self._marker: Held[Marker] | None = None
        self._swung_before = False
        self._heard = False

    async def run(self) -> Committed[M]:
        with self._ws.markers.working(self._key):
            for attempt in range(SWAP_ATTEMPTS_MAX):
                if attempt:
                    await self._ws.clock.sleep(pause_s(min(attempt, 5), self._ws.entropy))
                try:
                    done = await self._try(await self._resolve(), warm=attempt == 0)
                except (FixRequest, Refresh) as refusal:
                    if self._heard:
                        raise
                    done = await self._refused(refusal)
                if done is not None:
                    return done
        raise OutcomeUnknown("this table was changed by others all the time; the commit may be tried again")

    # Resolve

    async def _resolve(self) -> Entry:
        """The table of this name, or of our marker: a retry goes on with the table its first attempt found (C7)."""
        entry = self._find()
        if entry is None:
            await self._ws.tier1.current()
            entry = self._find()
        if entry is None:
            raise self._missing()
        self._uuid = entry.uuid
        return entry

    def _find(self) -> Entry | None:
        if self._uuid is not None:
            return self._ws.tier1.names.by_uuid(self._uuid)
        return self._ws.tier1.names.find(self._levels, self._name, self._subject.kind)

    def _missing(self) -> NotFound:
        return missing(self._levels, self._name, self._subject.kind)

    # One base

    async def _try(self, entry: Entry, *, warm: bool) -> Committed[M] | None:
        """One pass over the steps. None if the base was lost and another pass is needed."""
        prepared = await self._prepare(entry, warm=warm)
        if prepared is None:
            return None
        if prepared.metadata is prepared.base.metadata:
            return await self._nothing_to_do(entry, prepared)
        staged = await self._stage(entry, prepared)
        if not isinstance(staged, Prepared):
            return staged
        reach("commit.staged")
        return await self._swing(entry, staged)

    async def _prepare(self, entry: Entry, *, warm: bool) -> Prepared[M] | None:
        """Compute the commit on a base: on what is remembered if that works, and never refuse on that alone."""
        known = self._bases.known(entry.uuid) if warm else None
        if known is not None and in_step(entry, known.pointer):
            try:
                return self._computed(known)
            except ArcoError:
                self._bases.forget(entry.uuid)
        base = await self._bases.read(entry.uuid)
        if base is None or not in_step(entry, base.pointer):
            await self._ws.tier1.current()
            await self._bring_in_step(entry.uuid, base)
            return None
        return self._computed(base)

    async def _bring_in_step(self, uuid: str, base: Base[M] | None) -> None:
        """Met a drop, a restore or a registration half way: finish it, and begin again."""
        self._bases.forget(uuid)
        entry = self._ws.tier1.names.by_uuid(uuid)
        if entry is not None:
            await bring_in_step(self._ws, self._subject, entry, None if base is None else base.pointer)

    def _computed(self, base: Base[M]) -> Prepared[M]:
        pointer = base.pointer.value
        after = self._subject.committed(
            base.metadata, self._request, self._ws.clock.now_ms(), pointer.metadata_location, self._allowed
        )
        name = self._ws.files.name(self._key, pointer.commit_number + 1)
        location = f"{self._subject.metadata_folder(after)}/{name}"
        return Prepared(base, after, location, self._ws.ulids.next())

    async def _nothing_to_do(self, entry: Entry, prepared: Prepared[M]) -> Committed[M] | None:
        """The updates change nothing. That is an answer about now: name and pointer must still be what they were."""
        seen = self._ws.tier1.seen
        names_check = asyncio.ensure_future(self._ws.tier1.is_unchanged(seen))
        pointer_check = asyncio.ensure_future(self._ws.pointers.is_unchanged(prepared.base.pointer))
        await together(names_check, pointer_check)
        if names_check.result() and pointer_check.result() and self._is_named(entry):
            return await self._unchanged(prepared)
        self._bases.forget(entry.uuid)
        await self._ws.tier1.current()
        if not self._is_named(entry):
            raise self._missing()
        return None

    async def _unchanged(self, prepared: Prepared[M]) -> Committed[M] | None:
        """Durable before it is sent: a duplicate that comes when it would change something must not."""
        location = prepared.base.location
        if self._key.durable:
            marker = self._marker.value if self._marker else self._ws.markers.fresh(self._key, self._ws.tier1.seen.sequence)
            answer = Answer(200, metadata_location=location)
            done = msgspec.structs.replace(marker, state=State.COMMITTED, answer=answer, metadata_location=location)
            if self._marker is not None:
                await self._ws.markers.renew(self._key, self._marker, done)
            elif await self._ws.markers.claim(self._key, done) is None:
                return await self._resume()
        return Committed(prepared.metadata, location)

    def _is_named(self, entry: Entry) -> bool:
        """Whether the name still means this table, as far as tier 1 is known now (C2)."""
        current = self._ws.tier1.names.by_uuid(entry.uuid)
        if current is None:
            return False
        return not self._bound_by_name or (current.namespace, current.name) == (self._levels, self._name)

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
                return await self._resume()
            self._marker = marker
        if not unchanged:
            await ws.tier1.current()
        if not self._is_named(entry):
            raise self._missing()
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
        if not base.receipts_exist:
            await self._ws.receipts.ensure_published(base.pointer.value)

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
                self._bases.remember(Base(held, prepared.metadata))
                return self._landed(entry, prepared, published)
            case Overtaken():
                self._bases.forget(entry.uuid)
                return self._landed(entry, prepared, published)
            case Lost() | Unknown():
                self._bases.forget(entry.uuid)
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
        self._ws.afterwards.do(self._finish(entry, prepared, published))
        return Committed(prepared.metadata, prepared.location)

    async def _finish(self, entry: Entry, prepared: Prepared[M], published: Published) -> None:
        """The receipt, and the marker's answer. If we die before, whoever comes next does it."""
        await self._ws.receipts.ensure(Phase.COMMITTED, entry.uuid, published)
        reach("commit.receipt_written")
        known = self._bases.known(entry.uuid)
        if known is not None and known.pointer.value.metadata_location == prepared.location:
            self._bases.remember(Base(known.pointer, known.metadata, receipts_exist=True))
        if self._marker is not None:
            answer = Answer(200, metadata_location=prepared.location)
            done = msgspec.structs.replace(self._marker.value, state=State.COMMITTED, answer=answer)
            await self._ws.markers.object(self._key).swap(self._marker, done)

    # A request that was sent before

    async def _resume(self) -> Committed[M] | None:
        """The key is in use: hear its answer, find that it landed, wait for it, or take it over."""
        self._heard = True
        held = await self._ws.markers.existing(self._key)
        if not held.value.state.is_final:
            landed = await self._recover(held)
            if landed is not None:
                return landed
            held = await self._ws.markers.wait(self._key)
        if held.value.state is not State.IN_PROGRESS:
            return await self._replay(held)
        return await self._take_over(held)

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
        await self._ws.receipts.ensure_published(pointer.value)
        answer = Answer(200, metadata_location=marker.metadata_location)
        done = msgspec.structs.replace(marker, state=State.COMMITTED, answer=answer)
        await self._ws.markers.object(self._key).swap(held, done)
        return await self._replay(held)

    async def _take_over(self, held: Held[Marker]) -> Committed[M] | None:
        """A silent attempt's marker becomes ours. Its file keeps its name while its base is current, so we may share it."""
        landed = await self._recover(held)
        if landed is not None:
            return landed
        self._marker = await self._ws.markers.renew(self._key, held, self._ws.markers.taken_over(held.value))
        self._swung_before = True
        self._bound_by_name = False
        self._heard = False
        self._uuid = held.value.table_uuid
        if self._uuid is not None:
            self._bases.forget(self._uuid)
        return None

    # Saying no

    async def _refused(self, refusal: ArcoError) -> Committed[M] | None:
        """Make a refusal durable, then raise it; or hear what an earlier attempt of this request came to."""
        await self._kill_earlier_swings()
        if not self._key.durable:
            raise refusal
        if self._marker is None:
            fresh = self._ws.markers.fresh(self._key, self._ws.tier1.seen.sequence)
            if await self._ws.markers.claim(self._key, refused(fresh, refusal)) is None:
                return await self._resume()
        else:
            await self._ws.markers.renew(self._key, self._marker, refused(self._marker.value, refusal))
        raise refusal

    async def _kill_earlier_swings(self) -> None:
        """A swing of this request may still be under way to the store: after a touch it can no longer land."""
        if not self._swung_before or self._uuid is None:
            return
        pointer = await self._ws.pointers.read(self._uuid)
        if pointer is not None and isinstance(await self._ws.pointers.touch(pointer), Unknown):
            raise OutcomeUnknown("an earlier attempt of this request may still land")


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

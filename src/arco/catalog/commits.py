"""Commit of one table or view: never lost, never doubled, whatever reply is lost and whoever dies.

    resolve → base → prepare → stage (claim ∥ metadata file ∥ pending receipt ∥ earlier receipts ∥ names) → swing → finish

Warm, three rounds: everything of `stage` goes out together, computed from what this process remembers; the swing's condition
proves that the pointer was right, the answer about the manifest that the name was, the claim's answer whether to swing at
all. `finish` (receipt ∥ marker) protects nothing that recovery could not redo, so after a success it does not hold the answer
up. A refusal is different: it is never computed from memory, and is durable in the marker before anybody hears it.

An attempt is *in doubt* while another attempt of its request may have landed, or still may. Then the history of the table that
the marker names is asked before anything is computed on a newer base; nothing is refused, and no other table is taken for the
one that the name means, before the swings under way were killed by a touch; and a silent store is no "nothing happened".
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
from arco.catalog.lines import Lines, Place
from arco.catalog.model import Entry, Levels
from arco.catalog.names import missing
from arco.catalog.once import refused
from arco.catalog.pointer import Pointer
from arco.catalog.standing import bring_in_step, in_step
from arco.catalog.subject import Facts, Subject
from arco.catalog.workspace import Workspace
from arco.iceberg.guardrails import Allowed, nowhere_else
from arco.kernel.crash_points import reach
from arco.kernel.errors import ArcoError, FixRequest, NotFound, OutcomeUnknown, Refresh, RetryLater
from arco.kernel.limits import SWAP_ATTEMPTS_MAX
from arco.ledger.receipts import Published, Source
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
        self.lines = Lines()

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
        self._lines = commits.lines
        self._place = Place()
        self._subject = commits.subject
        self._allowed = commits.allowed
        self._levels = levels
        self._name = name
        self._request = request
        self._key = key
        self._source = source
        self._marker: Held[Marker] | None = None
        # The request may have been sent before: only our own claim says that it was not.
        self._in_doubt = key.durable
        self._heard = False

    async def run(self) -> Committed[M]:
        with self._ws.markers.working(self._key):
            for attempt in range(SWAP_ATTEMPTS_MAX):
                if attempt:
                    await self._ws.clock.sleep(pause_s(min(attempt, 5), self._ws.entropy))
                try:
                    done = await self._pass(warm=attempt == 0)
                except RetryLater as silence:
                    if not self._in_doubt:
                        raise
                    raise OutcomeUnknown(f"this request may have been done before: {silence.message}") from silence
                if done is not None:
                    return done
        raise OutcomeUnknown("this table was changed by others all the time; the commit may be tried again")

    async def _pass(self, *, warm: bool) -> Committed[M] | None:
        """One pass over the steps. None if another is needed: the base was lost, or the name, or a marker was taken over."""
        try:
            entry = await self._resolve()
            return await self._try(entry, warm=warm) if isinstance(entry, Entry) else entry
        except (FixRequest, Refresh) as refusal:
            if self._heard:
                raise
            return await self._refused(refusal)

    # Resolve

    async def _resolve(self) -> Entry | Committed[M]:
        """The table that the name means. A retry first makes sure of the table that its first attempt found (C7)."""
        entry = self._find()
        if entry is None:
            await self._ws.tier1.current()
            entry = self._find()
        if entry is None:
            raise self._missing()
        if self._marker is not None and self._marker.value.table_uuid != entry.uuid:
            landed = await self._settle()
            if landed is not None:
                return landed
        return entry

    def _find(self) -> Entry | None:
        return self._ws.tier1.names.find(self._levels, self._name, self._subject.kind)

    def _missing(self) -> NotFound:
        return missing(self._levels, self._name, self._subject.kind)

    # One base

    async def _try(self, entry: Entry, *, warm: bool) -> Committed[M] | None:
        async with self._lines.at_the_head(entry.uuid) as self._place:
            return await self._commit_on_a_base(entry, warm=warm)

    async def _commit_on_a_base(self, entry: Entry, *, warm: bool) -> Committed[M] | None:
        prepared = await self._prepare(entry, warm=warm)
        if not isinstance(prepared, Prepared):
            return prepared
        if prepared.metadata is prepared.base.metadata:
            return await self._nothing_to_do(entry, prepared)
        staged = await self._stage(entry, prepared)
        if not isinstance(staged, Prepared):
            return staged
        reach("commit.staged")
        return await self._swing(entry, staged)

    async def _prepare(self, entry: Entry, *, warm: bool) -> Prepared[M] | Committed[M] | None:
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
        landed = await self._landed_since(base.pointer)
        if landed is not None:
            return landed
        try:
            return self._computed(base)
        except (FixRequest, Refresh):
            await self._ws.tier1.current()
            if self._is_named(entry):
                raise
            return None

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
        location = self._subject.metadata_file(after, name)
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
        return None

    async def _unchanged(self, prepared: Prepared[M]) -> Committed[M] | None:
        """Durable before it is sent: a duplicate that comes when it would change something must not."""
        landed = await self._settle()
        if landed is not None:
            return landed
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
        current = self._find()
        return current is not None and current.uuid == entry.uuid

    # Stage

    async def _stage(self, entry: Entry, prepared: Prepared[M]) -> Prepared[M] | Committed[M] | None:
        """Everything before the swing, in one round: what to swing to, which an earlier attempt may have written.

        Or the result, if the request was finished before; or None, if all begins anew: its marker was taken over, or the
        name means another table than we remembered.
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
            if self._marker is None:
                self._in_doubt = False
            self._marker = marker
        if not unchanged:
            await ws.tier1.renewed()
        if not self._is_named(entry):
            return None
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
                self._in_doubt = True
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
                # The pointer is past the version that we, and everybody before us, prepared for.
                self._in_doubt = False
                return None

    def _landed(self, entry: Entry, prepared: Prepared[M], published: Published) -> Committed[M]:
        self._ws.afterwards.do(self._finish(entry, prepared, published))
        return Committed(prepared.metadata, prepared.location)

    async def _finish(self, entry: Entry, prepared: Prepared[M], published: Published) -> None:
        """The receipt, and the marker's answer. If we die before, whoever comes next does it."""
        await together(self._write_receipt(entry, prepared, published), self._finish_marker(prepared))

    async def _write_receipt(self, entry: Entry, prepared: Prepared[M], published: Published) -> None:
        await self._ws.receipts.ensure(Phase.COMMITTED, entry.uuid, published)
        reach("commit.receipt_written")
        known = self._bases.known(entry.uuid)
        if known is not None and known.pointer.value.metadata_location == prepared.location:
            self._bases.remember(Base(known.pointer, known.metadata, receipts_exist=True))

    async def _finish_marker(self, prepared: Prepared[M]) -> None:
        if self._marker is not None:
            answer = Answer(200, metadata_location=prepared.location)
            done = msgspec.structs.replace(self._marker.value, state=State.COMMITTED, answer=answer)
            await self._ws.markers.object(self._key).swap(self._marker, done)

    # A request that was sent before

    async def _resume(self) -> Committed[M] | None:
        """The key is in use: hear its answer, find that it landed, wait for it, or take it over."""
        self._heard = self._in_doubt = True
        # Waiting for another attempt, which may stand behind us.
        self._place.leave()
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
        pointer = await self._pointer_of(held.value)
        if await self._landing_of(held.value, pointer) is not Landing.LANDED:
            return None
        return await self._finish_for(held, pointer)

    async def _pointer_of(self, marker: Marker) -> Held[Pointer] | None:
        return None if marker.table_uuid is None else await self._ws.pointers.read(marker.table_uuid)

    async def _landing_of(self, marker: Marker, pointer: Held[Pointer] | None) -> Landing:
        if marker.metadata_location is None or marker.base_commit_number is None:
            return Landing.NEVER
        return await landing(marker.metadata_location, marker.base_commit_number, pointer, self._ws, self._subject)

    async def _finish_for(self, held: Held[Marker], pointer: Held[Pointer] | None) -> Committed[M]:
        """The receipt and the answer that a commit's owner did not come to write."""
        if pointer is not None:
            await self._ws.receipts.ensure_published(pointer.value)
        marker = held.value
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
        self._heard = False
        if held.value.table_uuid is not None:
            self._bases.forget(held.value.table_uuid)
        return None

    # In doubt

    async def _landed_since(self, base: Held[Pointer]) -> Committed[M] | None:
        """An earlier attempt's swing may have landed after we looked: ask again with exactly the pointer to swing (C4)."""
        marker = self._marker
        if not self._in_doubt or marker is None or marker.value.table_uuid != base.value.table_uuid:
            return None
        match await self._landing_of(marker.value, base):
            case Landing.LANDED:
                return await self._finish_for(marker, base)
            case Landing.NEVER:
                self._in_doubt = False
            case Landing.NOT_YET:
                pass
        return None

    async def _settle(self) -> Committed[M] | None:
        """Make certain that no earlier attempt of this request can land any more; or find that one did (C6).

        Its swing may still be on its way to the store, for the version that it was prepared for. A touch of exactly the
        version whose history was asked leaves no room between the two.
        """
        held = self._marker
        if not self._in_doubt or held is None:
            return None
        for _ in range(SWAP_ATTEMPTS_MAX):
            pointer = await self._pointer_of(held.value)
            match await self._landing_of(held.value, pointer):
                case Landing.LANDED:
                    return await self._finish_for(held, pointer)
                case Landing.NOT_YET if pointer is not None:
                    outcome = await self._ws.pointers.touch(pointer)
                    if isinstance(outcome, Unknown):
                        raise OutcomeUnknown("an earlier attempt of this request may still land")
                    if isinstance(outcome, Lost):
                        continue
                case _:
                    pass
            self._in_doubt = False
            return None
        raise OutcomeUnknown("this table was changed by others all the time; an earlier attempt may still land")

    # Saying no

    async def _refused(self, refusal: ArcoError) -> Committed[M] | None:
        """Make a refusal durable, then raise it; or hear what an earlier attempt of this request came to."""
        landed = await self._settle()
        if landed is not None:
            return landed
        if not self._key.durable:
            raise refusal
        if self._marker is None:
            fresh = self._ws.markers.fresh(self._key, self._ws.tier1.seen.sequence)
            if await self._ws.markers.claim(self._key, refused(fresh, refusal)) is None:
                return await self._resume()
        else:
            await self._ws.markers.renew(self._key, self._marker, refused(self._marker.value, refusal))
        raise refusal


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

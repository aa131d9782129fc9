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
from dataclasses import replace
from typing import Any, Generic, TypeVar

import msgspec

from arco.catalog.afterwards import beside, together
from arco.catalog.answers import Answer, replayed_error
from arco.catalog.bases import Base, Bases
from arco.catalog.groups import Again, Done, Fate, Groups, InUse, Landed, Open, TooLate
from arco.catalog.history import Landing, landing
from arco.catalog.idempotency import Marker, RequestKey, State, Tried
from arco.catalog.lines import Lines, Place
from arco.catalog.model import Entry, Levels
from arco.catalog.names import missing
from arco.catalog.once import refused
from arco.catalog.pointer import Pointer
from arco.catalog.standing import bring_in_step, in_step
from arco.catalog.subject import Subject, adopted
from arco.catalog.swinging import Swings
from arco.catalog.versions import Committed, Prepared, Version, version_of
from arco.catalog.workspace import Workspace
from arco.iceberg.guardrails import Allowed, nowhere_else
from arco.kernel.crash_points import reach
from arco.kernel.errors import ArcoError, Busy, FixRequest, NotFound, OutcomeUnknown, Refresh, RetryLater
from arco.kernel.limits import (
    COMMIT_LASTS_S_MAX,
    CONTENTION_PAUSE_S_FIRST,
    CONTENTION_PAUSE_S_MAX,
    REQUEST_FRESH_S,
    SWAP_ATTEMPTS_MAX,
    TABLE_QUEUE_MAX,
    TABLE_QUEUE_S_MAX,
)
from arco.kernel.tallies import Tallied
from arco.ledger.receipts import Published, Source
from arco.storage.cas import Held, Overtaken, Swung
from arco.storage.keys import Phase
from arco.storage.port import Lost, Unknown

M = TypeVar("M")
R = TypeVar("R")


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
        self.swings = Swings(workspace, subject, bases)
        self.groups = Groups(self.swings, self.lines)

    def require_room(self, levels: Levels, name: str, key: RequestKey) -> None:
        """Before anything is done of a request: so many may be at one table, and the others come again.

        One with a key of its client's may have been sent before, and have landed: nobody is told that nothing was done (C8).
        """
        entry = self.ws.tier1.names.find(levels, name, self.subject.kind)
        if entry is not None and self.groups.length(entry.uuid) >= TABLE_QUEUE_MAX:
            self.ws.tallies.add(Tallied.QUEUE_FULL)
            if key.durable:
                raise OutcomeUnknown("so many commits to one table are under way that this one was not looked at")
            raise Busy("so many commits to one table are under way")

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
        self._swings = commits.swings
        self._groups = commits.groups
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
        self._alone = False
        self._told: tuple[Prepared[M], Published] | None = None
        self._wrote: tuple[Prepared[M], bytes] | None = None
        self._begun_ms = commits.ws.clock.now_ms()
        self._came_s = commits.ws.clock.monotonic_s()
        self._began = False

    async def run(self) -> Committed[M]:
        with self._ws.markers.working(self._key):
            began_s = self._came_s
            for attempt in range(SWAP_ATTEMPTS_MAX):
                if attempt:
                    self._ws.tallies.add(Tallied.COMMIT_RETRIED)
                    await self._ws.clock.sleep(self._pause_s(attempt, self._ws.clock.monotonic_s() - began_s))
                began_s = self._ws.clock.monotonic_s()
                try:
                    # Once from memory. Later on there may be a marker whose base is newer than what is remembered (C3).
                    done = await self._pass(warm=attempt == 0)
                except RetryLater as silence:
                    if not self._in_doubt:
                        raise
                    raise OutcomeUnknown(f"this request may have been done before: {silence.message}") from silence
                if done is not None:
                    self._ws.tallies.add(Tallied.COMMIT_LANDED)
                    return done
        raise OutcomeUnknown("this table was changed by others all the time; the commit may be tried again")

    def _pause_s(self, attempt: int, took_s: float) -> float:
        """Whoever won the swing takes about as long as we did: who sleeps longer than that only comes later."""
        longest_s = max(took_s, CONTENTION_PAUSE_S_FIRST) * 2.0 ** min(attempt - 1, 5)
        return min(longest_s, CONTENTION_PAUSE_S_MAX) * self._ws.entropy.fraction()

    async def _pass(self, *, warm: bool) -> Committed[M] | None:
        """One pass over the steps. None if another is needed: the base was lost, or the name, or a marker was taken over."""
        try:
            entry = await self._resolve()
            return await self._try(entry, warm=warm) if isinstance(entry, Entry) else entry
        except (FixRequest, Refresh) as refusal:
            self._ws.tallies.add(Tallied.COMMIT_REFUSED)
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
        if self._must_settle(entry):
            landed = await self._settle()
            if landed is not None:
                return landed
        return entry

    def _must_settle(self, entry: Entry) -> bool:
        """Whether an earlier attempt must be known to be dead before anything is prepared under another file name.

        It was about another table; or it stood behind others in a group, and what it wrote is worth nothing without them.
        """
        if self._marker is None:
            return False
        tried = self._marker.value.tried
        return self._marker.value.table_uuid != entry.uuid or (tried is not None and tried.is_behind_others)

    def _find(self) -> Entry | None:
        return self._ws.tier1.names.find(self._levels, self._name, self._subject.kind)

    def _missing(self) -> NotFound:
        return missing(self._levels, self._name, self._subject.kind)

    # One base

    async def _try(self, entry: Entry, *, warm: bool) -> Committed[M] | None:
        if self._may_join and self._groups.is_wanted(entry.uuid):
            return await self._heard_of(entry, await self._groups.join(entry, self))
        async with self._groups.turn(entry.uuid) as self._place:
            if not self.begin_in_time():
                self._ws.tallies.add(Tallied.QUEUE_TOO_OLD)
                raise Busy("this commit waited too long for its turn at the table")
            return await self._commit_on_a_base(entry, warm=warm)

    @property
    def _may_join(self) -> bool:
        """Not who was sent away by a group; nor who has a marker: its base never decreases, and a group goes by memory (C3)."""
        return not self._alone and self._marker is None

    async def _heard_of(self, entry: Entry, fate: Fate[M]) -> Committed[M] | None:
        """What became of this request in a group."""
        match fate:
            case Landed(prepared):
                if self._marker is not None:
                    self._ws.afterwards.do(self._finish_marker(prepared))
                return self._committed(prepared)
            case Open(prepared, outcome):
                self._in_doubt = True
                return await self._look_back(entry, prepared, outcome)
            case InUse():
                return await self._resume()
            case Again(alone):
                self._alone = alone
                return None
            case TooLate():
                raise Busy("this commit waited too long for its turn at the table")
            case Done(result):
                return result

    async def commit_alone(self, entry: Entry, place: Place) -> Committed[M] | None:
        """The turn of a group in which nobody else is."""
        self._place = place
        return await self._commit_on_a_base(entry, warm=True)

    def begin_in_time(self) -> bool:
        """Whether it may: only before its first turn does it matter how long it waited, for what has begun goes on."""
        waited_s = 0.0 if self._began else self._ws.clock.monotonic_s() - self._came_s
        self._began = True
        return waited_s <= TABLE_QUEUE_S_MAX

    async def _commit_on_a_base(self, entry: Entry, *, warm: bool) -> Committed[M] | None:
        prepared = await self._prepare(entry, warm=warm)
        if not isinstance(prepared, Prepared):
            return prepared
        if prepared.changes_nothing:
            return await self._nothing_to_do(entry, prepared)
        staged = await self._stage(entry, prepared)
        if not isinstance(staged, Prepared):
            return staged
        reach("commit.staged")
        self._give_up_if_late()
        return await self._swing(entry, staged)

    def is_in_time(self) -> bool:
        """Files that nothing names are kept for a time, and those of this commit are named by nothing before it is staged: one
        that is only staged after half a day must not land.
        """
        return self._ws.clock.now_ms() - self._begun_ms <= COMMIT_LASTS_S_MAX * 1000

    def _give_up_if_late(self) -> None:
        if not self.is_in_time():
            raise RetryLater("this commit was under way for half a day, and its files may be gone", hint="write them anew")

    async def _prepare(self, entry: Entry, *, warm: bool) -> Prepared[M] | Committed[M] | None:
        """Compute the commit on a base: on what is remembered if that works, and never refuse on that alone."""
        known = self._bases.known(entry.uuid) if warm else None
        if known is not None and in_step(entry, known.pointer):
            try:
                return self.computed(known)
            except ArcoError:
                self._bases.forget(entry.uuid)
        base = await self._bases.settled(entry.uuid)
        if base is None or not in_step(entry, base.pointer):
            await self._ws.tier1.current()
            await self._bring_in_step(entry.uuid, base)
            return None
        landed = await self._landed_since(base.pointer)
        if landed is not None:
            return landed
        try:
            return self.computed(base)
        except (FixRequest, Refresh):
            await self._ws.tier1.current()
            if self.is_named(entry):
                raise
            return None

    async def _bring_in_step(self, uuid: str, base: Base[M] | None) -> None:
        """Met a drop, a restore or a registration half way: finish it, and begin again."""
        self._bases.forget(uuid)
        entry = self._ws.tier1.names.by_uuid(uuid)
        if entry is not None:
            await bring_in_step(self._ws, self._subject, entry, None if base is None else base.pointer)

    def computed(self, base: Base[M], before: Version[M] | None = None) -> Prepared[M]:
        """The commit on a base; in a group, behind what has not landed yet."""
        behind = version_of(base) if before is None else before
        metadata = self._subject.committed(
            behind.metadata, self._request, self._ws.clock.now_ms(), behind.location, self._allowed
        )
        number = behind.number + 1
        location = self._begun_at(base, number) if before is None else None
        if location is None:
            uuid = base.pointer.value.table_uuid
            name = self._ws.files.name(self._key, number, uuid, "" if before is None else before.location)
            location = self._subject.metadata_file(metadata, name)
        return Prepared(base, behind, Version(number, location, metadata), self._ws.ulids.next())

    def _begun_at(self, base: Base[M], number: int) -> str | None:
        """Where an earlier attempt put its file for this base, whatever version of Arco named it: its swing may land yet (C3)."""
        marker = None if self._marker is None else self._marker.value
        if marker is None or marker.tried is None or marker.table_uuid != base.pointer.value.table_uuid:
            return None
        is_same = (marker.tried.number, marker.base_metadata_location) == (number, base.location)
        return marker.metadata_location if is_same else None

    async def _nothing_to_do(self, entry: Entry, prepared: Prepared[M]) -> Committed[M] | None:
        """The updates change nothing. That is an answer about now: name and pointer must still be what they were."""
        seen = self._ws.tier1.seen
        names_check = asyncio.ensure_future(self._ws.tier1.is_unchanged(seen))
        pointer_check = asyncio.ensure_future(self._ws.pointers.is_unchanged(prepared.base.pointer))
        await together(names_check, pointer_check)
        if names_check.result() and pointer_check.result() and self.is_named(entry):
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

    def is_named(self, entry: Entry) -> bool:
        """Whether the name still means this table, as far as tier 1 is known now (C2)."""
        current = self._find()
        return current is not None and current.uuid == entry.uuid

    # Stage

    async def _stage(self, entry: Entry, prepared: Prepared[M]) -> Prepared[M] | Committed[M] | None:
        """Everything before the swing, in one round: what to swing to, which an earlier attempt may have written.

        Or the result, if the request was finished before; or None, if all begins anew: its marker was taken over, or the
        name means another table than we remembered.
        """
        tier1 = self._ws.tier1
        seen = tier1.seen
        names_check = asyncio.ensure_future(tier1.is_unchanged(seen))
        staged = await beside(self.write(prepared), names_check, *self._swings.receipts_owed(prepared.base))
        unchanged = names_check.result()
        if staged is None:
            return await self._resume()
        if not unchanged:
            await tier1.renewed()
        return staged if self.is_named(entry) else None

    async def write(self, prepared: Prepared[M]) -> Prepared[M] | None:
        """What is this request's own before the swing: claim, file and pending receipt. None if the key is in use."""
        data = self._subject.encode(prepared.metadata, prepared.location)
        uuid = prepared.base.pointer.value.table_uuid
        file_write = self._ws.files.write(prepared.location, data)
        pending = self._ws.receipts.ensure(Phase.PENDING, uuid, self.published(prepared))
        if not self._key.durable:
            written = await beside(file_write, pending)
        else:
            writing = asyncio.ensure_future(file_write)
            marker = await beside(self._write_marker(prepared, self._ws.tier1.seen.sequence), writing, pending)
            written = writing.result()
            if marker is None:
                return None
            if self._marker is None:
                self._in_doubt = False
            self._marker = marker
        if written is data:
            self._wrote = prepared, data
            return prepared
        metadata = adopted(self._subject, written, prepared.location, prepared.metadata)
        return replace(prepared, after=replace(prepared.after, metadata=metadata))

    async def _write_marker(self, prepared: Prepared[M], since: int) -> Held[Marker] | None:
        """Claim the key, or renew our claim for a new base: each swing has its own marker write before it."""
        first = self._ws.markers.fresh(self._key, since) if self._marker is None else self._marker.value
        base = prepared.base.pointer.value
        marker = msgspec.structs.replace(
            first,
            table_uuid=base.table_uuid,
            event_id=prepared.event_id,
            base_commit_number=base.commit_number,
            base_metadata_location=base.metadata_location,
            metadata_location=prepared.location,
            commit_number=prepared.after.number,
        )
        if self._marker is None:
            return await self._ws.markers.claim(self._key, marker)
        return await self._ws.markers.renew(self._key, self._marker, marker)

    def published(self, prepared: Prepared[M]) -> Published:
        """What is told of a commit: its pending receipt, the pointer and its receipt say the same."""
        if self._told is None or self._told[0] is not prepared:
            self._told = prepared, self._published(prepared)
        return self._told[1]

    def _published(self, prepared: Prepared[M]) -> Published:
        facts = self._subject.facts(prepared.metadata)
        return Published(
            event_id=prepared.event_id,
            commit_number=prepared.after.number,
            metadata_location=prepared.location,
            previous_metadata_location=prepared.before.location,
            snapshot_id=facts.snapshot_id,
            at_ms=facts.at_ms,
            source=self._source,
        )

    # Swing and after

    async def _swing(self, entry: Entry, prepared: Prepared[M]) -> Committed[M] | None:
        outcome = await self._swings.swing([(prepared, self.published(prepared))])
        match outcome:
            case Swung() | Overtaken():
                return self._landed(entry, prepared)
            case Lost() | Unknown():
                self._in_doubt = True
                return await self._look_back(entry, prepared, outcome)

    async def _look_back(self, entry: Entry, prepared: Prepared[M], outcome: Lost | Unknown) -> Committed[M] | None:
        """Not a definite success: ask history before anything is computed again, for another attempt may share our file."""
        pointer = await self._ws.pointers.read(entry.uuid)
        tried = Tried(prepared.location, prepared.base.pointer.value.commit_number, prepared.after.number, self._begun_ms)
        match await landing(tried, pointer, self._ws, self._subject):
            case Landing.LANDED:
                return self._landed(entry, prepared)
            case Landing.NOT_YET if isinstance(outcome, Unknown):
                raise OutcomeUnknown(f"the table's pointer did not say whether it was swung: {outcome.reason}")
            case Landing.NEVER | Landing.NOT_YET:
                # The pointer is past the version that we, and everybody before us, prepared for.
                self._in_doubt = False
                return None

    def _landed(self, entry: Entry, prepared: Prepared[M]) -> Committed[M]:
        """The receipt, and the marker's answer. If we die before, whoever comes next does it."""
        self._ws.afterwards.do(self._swings.write_receipts(entry.uuid, [self.published(prepared)]))
        if self._marker is not None:
            self._ws.afterwards.do(self._finish_marker(prepared))
        return self._committed(prepared)

    def _committed(self, prepared: Prepared[M]) -> Committed[M]:
        """What was spelled for the file is not spelled again for the answer; packed, it is of no use there."""
        of, data = self._wrote if self._wrote is not None else (None, b"")
        spelled = data if of is prepared and data.startswith(b"{") else None
        return Committed(prepared.metadata, prepared.location, spelled)

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
        if self._ws.clock.monotonic_s() - self._came_s > REQUEST_FRESH_S:
            # Whoever fell silent may have told our client, which has asked again since, that nothing was done (C8).
            raise OutcomeUnknown("a later request for this commit may have been told that it was not done")
        return await self._take_over(held)

    async def _replay(self, held: Held[Marker]) -> Committed[M]:
        marker = held.value
        if marker.refusal is not None:
            raise replayed_error(marker.refusal)
        location = marker.metadata_location
        if location is None:
            raise OutcomeUnknown("the record of this request names no commit")
        return Committed(self._subject.decode(await self._ws.files.answered(location), location), location)

    async def _recover(self, held: Held[Marker]) -> Committed[M] | None:
        """An unfinished marker whose commit is in history: finish what its owner left."""
        pointer = await self._pointer_of(held.value)
        if await self._landing_of(held.value, pointer) is not Landing.LANDED:
            return None
        return await self._finish_for(held, pointer)

    async def _pointer_of(self, marker: Marker) -> Held[Pointer] | None:
        return None if marker.table_uuid is None else await self._ws.pointers.read(marker.table_uuid)

    async def _landing_of(self, marker: Marker, pointer: Held[Pointer] | None) -> Landing:
        return await landing(marker.tried, pointer, self._ws, self._subject)

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
            uuid = held.value.table_uuid
            pointer = None if uuid is None else await self._ws.pointers.settled(uuid)
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

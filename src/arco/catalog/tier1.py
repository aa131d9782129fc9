"""The state of tier 1 in one process: loaded once, carried forward commit by commit, checked on every use.

A read is linearizable: the state counts only if the manifest's version is still the one it was made from, and that is one
request. What changed since is in the manifest's tail; only a process that fell behind a checkpoint reads Parquet again.

A name that a transaction keeps is decided by the transaction's record. While there is such a name the record is asked too, and
what was decided is brought into the state before anybody is answered.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass

import msgspec

from arco.catalog.manifest import Commit, Manifest, ManifestCodec, StateFile, decode_commit
from arco.catalog.model import Reservation
from arco.catalog.names import Draft, Names
from arco.catalog.operations import Operation, Void
from arco.catalog.state_files import Change, load_into
from arco.catalog.transaction_records import Record, Records
from arco.kernel.clock import Clock
from arco.kernel.entropy import Entropy
from arco.kernel.errors import AskOperator, CorruptObject, UnknownFormat
from arco.kernel.ids import CommitId
from arco.kernel.limits import REMEMBERED_KEYS_MAX
from arco.kernel.scope import Scope
from arco.storage.cas import CasObject, Held
from arco.storage.keys import CatalogCommitKey, Head, HeadKey
from arco.storage.port import ObjectInfo, ObjectStore, Version


class Seen(msgspec.Struct, frozen=True):
    """A state that was current at some moment after it was asked for."""

    names: Names
    version: Version | None
    sequence: int

    def was_made_from(self, manifest: ObjectInfo | None) -> bool:
        return (None if manifest is None else manifest.version) == self.version


@dataclass(frozen=True, slots=True)
class Found:
    """The commit that has an operation under a key; a void one says that the key was refused."""

    sequence: int
    void: bool
    commit_id: str


class Tier1:
    """Names, as this process knows them."""

    def __init__(
        self, store: ObjectStore, scope: Scope, clock: Clock, entropy: Entropy, records: Records | None = None
    ) -> None:
        self.scope = scope
        self._records = records or Records(store, scope, clock, entropy)
        self.bring_in_names: Callable[[], Awaitable[None]] = _nothing
        """Commits what was decided of reserved names. The committer's."""
        self.store = store
        self.codec = ManifestCodec()
        self.head = CasObject(store, str(HeadKey(scope, Head.CATALOG)), self.codec, clock, entropy)
        self.names = Names()
        self.held: Held[Manifest] | None = None
        self._sequence = 0
        self._tail_changes: list[tuple[int, list[Change]]] = []
        self._keys: dict[str, Found] = {}
        self._keys_from = 1
        self._commit_before_keys: str | None = None
        self._advancing = asyncio.Lock()

    @property
    def manifest(self) -> Manifest:
        return Manifest() if self.held is None else self.held.value

    @property
    def seen(self) -> Seen:
        """What is known without asking. Only good for what a later condition proves."""
        return Seen(self.names, None if self.held is None else self.held.version, self._sequence)

    async def current(self) -> Seen:
        """The state as of now: one request if nothing changed, or nothing is known yet."""
        if self.held is None or not await self.is_unchanged(self.seen):
            return await self.renewed()
        return self.seen

    async def renewed(self) -> Seen:
        """The state as of now, for who has just seen that it changed: the manifest is read without asking again."""
        await self.reread()
        if await self._a_name_was_decided():
            await self.bring_in_names()
        return self.seen

    async def reread(self) -> Seen:
        """The state as it is stored, reserved names undecided: for who commits to it."""
        held = await self.head.read()
        if held is None and self.held is not None:
            raise CorruptObject(
                f"{self.head.key} is gone", hint="nobody deletes it: look whether the root is the right one"
            )
        try:
            await self.advance(held)
        except CorruptObject:
            # A file that a newer base has replaced since may be gone by now.
            newer = await self.head.read()
            if held is None or newer is None or newer.version == held.version:
                raise
            await self.advance(newer)
        return self.seen

    async def is_unchanged(self, seen: Seen) -> bool:
        """Whether a state is still what everybody sees."""
        return await self.is_unchanged_at(seen, await self.store.head(self.head.key))

    async def _a_name_was_decided(self) -> bool:
        """Whether a transaction that keeps a name was committed, and the name is not in the state yet."""
        kept = await self.kept_names()
        return any(record is not None and record.value.names(reservation.part()) for reservation, record in kept)

    async def kept_names(self) -> list[tuple[Reservation, Held[Record] | None]]:
        """The names that transactions keep, each with its record. Of one that cannot be read only its own name is not known."""
        names = self.names
        reserved = list(names.reserved.items())
        # One transaction may keep many names, and has one record.
        transactions = list(dict.fromkeys(one.tx_id for _, one in reserved))
        told = dict(zip(transactions, await asyncio.gather(*map(self._record, transactions)), strict=True))
        names.undecided = {place: error for place, one in reserved if isinstance(error := told[one.tx_id], AskOperator)}
        return [(one, found) for _, one in reserved if not isinstance(found := told[one.tx_id], AskOperator)]

    async def _record(self, tx_id: str) -> Held[Record] | AskOperator | None:
        try:
            return await self._records.read(tx_id)
        except (CorruptObject, UnknownFormat) as error:
            return error

    async def is_stored(self, seen: Seen) -> bool:
        """Whether the manifest still is the one a state was made from."""
        return seen.was_made_from(await self.store.head(self.head.key))

    async def is_unchanged_at(self, seen: Seen, manifest: ObjectInfo | None) -> bool:
        """`is_unchanged`, for who has looked at the manifest itself."""
        if not seen.was_made_from(manifest):
            return False
        return not self.names.reserved or not await self._a_name_was_decided()

    async def advance(self, held: Held[Manifest] | None) -> None:
        """Carry the state forward to a manifest that was read or written; one that is older is passed over."""
        async with self._advancing:
            if held is None or (self.held is not None and held.generation <= self.held.generation):
                return
            manifest = held.value
            if manifest.checkpointed_sequence > self._sequence:
                await self._reload(manifest)
            for commit in manifest.tail:
                if commit.sequence > self._sequence:
                    self._take_in(commit)
            if self._sequence != manifest.sequence:
                raise CorruptObject(f"{self.head.key} says {manifest.sequence} commits, its tail ends at {self._sequence}")
            self._tail_changes = [one for one in self._tail_changes if one[0] > manifest.checkpointed_sequence]
            self.held = held

    async def _reload(self, manifest: Manifest) -> None:
        """Start again from the files of the last checkpoint."""
        files = [*([manifest.base] if manifest.base else []), *manifest.deltas]
        bodies = await asyncio.gather(*(self._file(one) for one in files))
        names = Names()
        for file, data in zip(files, bodies, strict=True):
            load_into(names, data, file.checksum, file.key)
        self.names = names
        self._sequence = manifest.checkpointed_sequence
        self._tail_changes = []
        self._keys.clear()
        self._keys_from = manifest.checkpointed_sequence + 1
        self._commit_before_keys = manifest.tail[0].previous_id if manifest.tail else manifest.last_commit_id

    async def _file(self, file: StateFile) -> bytes:
        found = await self.store.get(file.key)
        if found is None:
            raise CorruptObject(f"{file.key} is missing", hint="run arco verify: it can be made again from the commits")
        return found.data

    def _take_in(self, commit: Commit) -> None:
        if commit.sequence != self._sequence + 1:
            raise CorruptObject(f"commit {commit.id} is number {commit.sequence}, expected {self._sequence + 1}")
        draft = Draft(self.names)
        for operation in commit.operations:
            draft.apply(operation, commit.at_ms)
            self._keys[operation.key_hash] = _found(commit, operation)
        self._tail_changes.append((commit.sequence, list(draft.changes())))
        draft.merge()
        self._sequence = commit.sequence
        if len(self._keys) > REMEMBERED_KEYS_MAX:
            # Whole commits are forgotten at once, or a key could be looked for where it no longer is.
            self._keys = {key: found for key, found in self._keys.items() if found.sequence == commit.sequence}
            self._keys_from, self._commit_before_keys = commit.sequence, commit.previous_id

    def changes_up_to(self, sequence: int) -> Iterator[Change]:
        """The newest document of everything that the tail changed, for a checkpoint."""
        newest: dict[tuple[str, str], Change] = {}
        for number, changes in self._tail_changes:
            if number <= sequence:
                newest |= {(kind, key): (kind, key, document) for kind, key, document in changes}
        return iter(newest.values())

    async def landed_at(self, key_hash: str, since: int) -> int | None:
        """The number of the commit after `since` in which what this key stands for was done, in the state that is known."""
        found = await self.find_key(key_hash, since)
        return None if found is None or found.void else found.sequence

    async def find_key(self, key_hash: str, since: int) -> Found | None:
        """The commit after number `since` that has an operation under this key, in the state that is known.

        What is remembered answers at once; further back the chain of commit objects is read.
        """
        known = self._keys.get(key_hash)
        if known is not None:
            # The newest under this key. An older one is of an earlier request: a key that says no time may come again.
            return known if known.sequence > since else None
        place = self._commit_before_keys
        number = self._keys_from - 1
        while place is not None and number > since:
            commit = await self._commit(place)
            for operation in commit.operations:
                if operation.key_hash == key_hash:
                    return _found(commit, operation)
            place, number = commit.previous_id, commit.sequence - 1
        return None

    async def recorded(self, key_hash: str, since: int) -> Operation | None:
        """The operation after `since` under this key, with what came of it when it was applied, in the state that is known."""
        found = await self.find_key(key_hash, since)
        if found is None:
            return None
        inline = next((one for one in self.manifest.tail if one.sequence == found.sequence), None)
        commit = inline or await self._commit(found.commit_id)
        return next(one for one in commit.operations if one.key_hash == key_hash)

    async def chain(self) -> AsyncIterator[Commit]:
        """All commits of the state that is known, the last one first. One request for each that is not in the manifest."""
        manifest = self.manifest
        for commit in reversed(manifest.tail):
            yield commit
        place = manifest.tail[0].previous_id if manifest.tail else manifest.last_commit_id
        while place is not None:
            commit = await self._commit(place)
            yield commit
            place = commit.previous_id

    async def _commit(self, commit_id: str) -> Commit:
        key = str(CatalogCommitKey(self.scope, CommitId(commit_id)))
        found = await self.store.get(key)
        if found is None:
            raise CorruptObject(f"{key} is missing from the chain")
        return decode_commit(found.data, key)


async def _nothing() -> None:
    """Nobody commits here."""


def _found(commit: Commit, operation: Operation) -> Found:
    return Found(commit.sequence, isinstance(operation, Void), commit.id)

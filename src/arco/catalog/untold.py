"""The commits of tier 1 after a mark, oldest first, each proved by the hash that the one after it has of it.

A chain is walked from its end, so the walk goes back to the mark and no further: what was told before is not read again. The tail
of the manifest costs nothing; commits that a checkpoint took out of it are read, several at a time, because their names sort
nearly in the order of the chain. What must never enter: what a commit means, and writing.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import msgspec

from arco.catalog.manifest import Commit, Manifest, ManifestCodec, decode_commit
from arco.catalog.read_ahead import ReadAhead
from arco.kernel.clock import Clock
from arco.kernel.entropy import Entropy
from arco.kernel.errors import CorruptObject, UnknownFormat
from arco.kernel.fingerprint import fingerprint
from arco.kernel.ids import CommitId
from arco.kernel.limits import FOLD_READS_MAX, TOLD_COMMITS_MAX
from arco.kernel.scope import Scope
from arco.storage.cas import CasObject, Held
from arco.storage.keys import CatalogCommitKey, Head, HeadKey, ToldKey, prefix_of
from arco.storage.paging import walk
from arco.storage.port import Object, ObjectStore, Version

_VERIFY = "run arco verify: it says what is wrong with the chain"


class Mark(msgspec.Struct, frozen=True):
    """Up to which commit the ledger was told. Before the first, number 0 and none."""

    sequence: int = 0
    commit: str | None = None


class MarkCodec:
    format = "arco.catalog_told"

    def encode(self, value: Mark) -> tuple[int, dict[str, Any]]:
        fields: dict[str, Any] = msgspec.to_builtins(value)
        return 1, fields

    def decode(self, format_version: int, fields: dict[str, Any]) -> Mark:
        if format_version != 1:
            raise UnknownFormat(f"the mark of what was told has format version {format_version}")
        try:
            return msgspec.convert(fields, Mark)
        except msgspec.ValidationError as error:
            raise CorruptObject(f"the mark of what was told has wrong fields: {error}") from error


class NameChain:
    """Where the chain of commits and its mark are looked up."""

    def __init__(
        self, store: ObjectStore, scope: Scope, clock: Clock, entropy: Entropy, *, commits_max: int = TOLD_COMMITS_MAX
    ) -> None:
        self._store = store
        self._scope = scope
        self._commits_max = commits_max
        self._manifest: CasObject[Manifest] = CasObject(
            store, str(HeadKey(scope, Head.CATALOG)), ManifestCodec(), clock, entropy
        )
        self.mark: CasObject[Mark] = CasObject(store, str(ToldKey(scope)), MarkCodec(), clock, entropy)

    async def version(self) -> Version | None:
        """The version of the manifest: while it is the same, nothing is new. None if there is none."""
        info = await self._store.head(self._manifest.key)
        return None if info is None else info.version

    async def manifest(self) -> Held[Manifest] | None:
        return await self._manifest.read()

    async def untold(self) -> "Untold":
        """What nobody told yet."""
        # The mark before the manifest: a mark that was read is never ahead of a manifest that is read after it.
        mark = await self.mark.read()
        manifest = await self._manifest.read()
        return Untold(
            self._store, self._scope, manifest, Mark() if mark is None else mark.value, commits_max=self._commits_max
        )


@dataclass(frozen=True, slots=True)
class _Link:
    id: str
    hash: str
    sequence: int


class Untold:
    """The commits of one manifest after a mark."""

    def __init__(
        self, store: ObjectStore, scope: Scope, held: Held[Manifest] | None, mark: Mark, *, commits_max: int
    ) -> None:
        self._store = store
        self._scope = scope
        self._manifest = Manifest() if held is None else held.value
        self.version = None if held is None else held.version
        self._mark = mark
        self._commits_max = commits_max
        self._held = {commit.id: commit for commit in self._manifest.tail}
        self._ahead: ReadAhead | None = None
        self._walked: list[_Link] | None = None

    async def groups(self) -> AsyncIterator[list[Commit]]:
        """All of them, oldest first, never more than a group in memory beside what the walk saw last."""
        links = await self._links()
        for start in range(0, len(links), self._commits_max):
            yield await self._commits(links[start : start + self._commits_max])

    async def after(self, sequence: int) -> list[Commit]:
        """The first group after a commit that is not before the mark. The chain is walked once, however often this is asked."""
        if self._walked is None:
            self._walked = await self._links()
        later = [link for link in self._walked if link.sequence > sequence]
        return await self._commits(later[: self._commits_max])

    async def _links(self) -> list[_Link]:
        manifest, mark = self._manifest, self._mark
        if mark.sequence > manifest.sequence:
            what = f"the ledger was told of {mark.sequence} commits, and the catalog has {manifest.sequence}"
            raise CorruptObject(what, hint="look whether the catalog's manifest was put back to an older state")
        found: list[_Link] = []
        link = _link(manifest.last_commit_id, manifest.last_commit_hash, manifest.sequence)
        try:
            while link is not None and link.sequence > mark.sequence:
                found.append(link)
                commit = self._held.get(link.id) or self._proved(link, await self._read_back(link))
                self._hold(commit)
                link = _link(commit.previous_id, commit.previous_hash, link.sequence - 1)
        finally:
            if self._ahead is not None:
                self._ahead.close()
        if (None if link is None else link.id) != mark.commit:
            raise CorruptObject(f"commit {mark.sequence} of the catalog is not {mark.commit}, which was told", hint=_VERIFY)
        return found[::-1]

    def _hold(self, commit: Commit) -> None:
        """Keep what the walk saw last: the oldest, which are needed first."""
        self._held.pop(commit.id, None)
        self._held[commit.id] = commit
        while len(self._held) > self._commits_max:
            self._held.pop(next(iter(self._held)))

    async def _read_back(self, link: _Link) -> Object | None:
        if self._ahead is None:
            after = "" if self._mark.commit is None else self._key(self._mark.commit)
            folder = prefix_of(self._scope, "_catalog", "core", "commits")
            self._ahead = ReadAhead(self._store, [one.key async for one in walk(self._store, folder, after)])
        return await self._ahead.get(self._key(link.id))

    async def _commits(self, links: list[_Link]) -> list[Commit]:
        """The commits of some links; those that the walk did not keep are read once more."""
        missing = [link for link in links if link.id not in self._held]
        read: dict[str, Commit] = {}
        for start in range(0, len(missing), FOLD_READS_MAX):
            some = missing[start : start + FOLD_READS_MAX]
            objects = await asyncio.gather(*(self._store.get(self._key(link.id)) for link in some))
            read |= {link.id: self._proved(link, one) for link, one in zip(some, objects, strict=True)}
        return [read[link.id] if link.id in read else self._held.pop(link.id) for link in links]

    def _proved(self, link: _Link, found: Object | None) -> Commit:
        key = self._key(link.id)
        if found is None:
            raise CorruptObject(f"{key} is missing from the chain", hint=_VERIFY)
        if fingerprint("catalog commit", found.data) != link.hash:
            raise CorruptObject(f"{key} is not what was committed: its hash is wrong", hint=_VERIFY)
        commit = decode_commit(found.data, key)
        if commit.sequence != link.sequence:
            raise CorruptObject(f"commit {commit.id} is number {commit.sequence}, expected {link.sequence}", hint=_VERIFY)
        return commit

    def _key(self, commit: str) -> str:
        return str(CatalogCommitKey(self._scope, CommitId(commit)))


def _link(commit: str | None, its_hash: str | None, sequence: int) -> _Link | None:
    if commit is None or its_hash is None:
        if sequence:
            raise CorruptObject(f"commit {sequence} of the catalog is named by nothing", hint=_VERIFY)
        return None
    return _Link(commit, its_hash, sequence)

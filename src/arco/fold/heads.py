"""Heads: the compare-and-swap objects that say which manifest counts, and the root that names all of them at once.

The failure this prevents (PROTOCOLS F2), in order:
  1. a folder writes its manifest as number 8, and dies before it swings the head
  2. every other folder finds that number 8 exists, and none can publish any more
So a manifest's name is a ULID, and the head names it by id and hash. Swinging is conditional on exactly the head that was read.

The root is swung after a head. Readers start there: the root names one manifest of every head, and moves each only forward,
because the root is read first and the heads after it. A folder that dies between the two leaves a root that is a little old;
the next one brings it up to date.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Generic

import msgspec

from arco.fold.manifests import (
    REBUILD,
    ROOT_FORMAT,
    C,
    CutHead,
    Link,
    Manifest,
    RootManifest,
    decode_manifest,
    encode_manifest,
    following,
)
from arco.fold.tables import FOLDED_FROM
from arco.kernel.clock import Clock
from arco.kernel.crash_points import reach
from arco.kernel.entropy import Entropy
from arco.kernel.errors import (
    BeyondReach,
    BrokenInvariant,
    Conflict,
    CorruptObject,
    OutcomeUnknown,
    RetryLater,
    UnknownFormat,
)
from arco.kernel.fingerprint import content_hash
from arco.kernel.ids import SnapshotId, UlidSource
from arco.kernel.limits import AS_OF_REACH_S, FOLD_NAME_ATTEMPTS_MAX, SWAP_ATTEMPTS_MAX
from arco.kernel.scope import Scope
from arco.storage.cas import CasObject, Held, Overtaken, Swung
from arco.storage.keys import Head, HeadKey, ManifestKey
from arco.storage.port import Absent, Landed, Lost, ObjectStore, Unknown
from arco.storage.readback import pause_s, put_settled

_MANIFESTS_REMEMBERED_MAX = 64


class HeadState(msgspec.Struct, frozen=True):
    """Which manifest counts."""

    manifest: Link


class HeadCodec:
    format = "arco.fold_head"

    def encode(self, value: HeadState) -> tuple[int, dict[str, Any]]:
        fields: dict[str, Any] = msgspec.to_builtins(value)
        return 1, fields

    def decode(self, format_version: int, fields: dict[str, Any]) -> HeadState:
        if format_version != 1:
            raise UnknownFormat(f"a head of the fold has format version {format_version}, not 1")
        try:
            return msgspec.convert(fields, HeadState)
        except msgspec.ValidationError as error:
            raise CorruptObject(f"a head of the fold has wrong fields: {error}") from error


@dataclass(frozen=True, slots=True)
class Standing(Generic[C]):
    """A head as it was read, with its manifest. Both are None before the first publish."""

    head: Head
    held: Held[HeadState] | None = None
    manifest: C | None = None

    @property
    def link(self) -> Link | None:
        return None if self.held is None else self.held.value.manifest

    @property
    def epoch(self) -> int:
        return 0 if self.held is None else self.held.epoch


class Heads:
    """The heads of one workspace. Manifests never change, so what was read once is remembered."""

    def __init__(
        self, store: ObjectStore, scope: Scope, clock: Clock, entropy: Entropy, *, reach_s: int = AS_OF_REACH_S
    ) -> None:
        self.store = store
        self._reach_s = reach_s
        self.scope = scope
        self.clock = clock
        self.entropy = entropy
        self._ulids = UlidSource(clock, entropy)
        self._remembered: dict[tuple[Head, str], Manifest | RootManifest] = {}

    # Reading

    def object(self, head: Head) -> CasObject[HeadState]:
        return CasObject(self.store, str(HeadKey(self.scope, head)), HeadCodec(), self.clock, self.entropy)

    def manifest_key(self, head: Head, snapshot: str) -> str:
        return str(ManifestKey(self.scope, head, SnapshotId(snapshot)))

    async def read(self, head: Head) -> Standing[Manifest]:
        """What a head has published. One request, if its manifest is remembered."""
        held = await self.object(head).read()
        manifest = None if held is None else await self._current(head, held, Manifest)
        return Standing(head, held, manifest)

    async def read_to_replace(self, head: Head) -> Standing[Manifest]:
        """A head for whoever makes everything anew: a manifest that is damaged or gone is none."""
        held = await self.object(head).read()
        try:
            manifest = None if held is None else await self._current(head, held, Manifest)
        except CorruptObject:
            manifest = None
        return Standing(head, held, manifest)

    async def read_root(self) -> Standing[RootManifest]:
        held = await self.object(Head.ROOT).read()
        manifest = None if held is None else await self._current(Head.ROOT, held, RootManifest)
        return Standing(Head.ROOT, held, manifest)

    async def _current(self, head: Head, held: Held[HeadState], wanted: type[C]) -> C:
        try:
            return await self._load(head, held.value.manifest, wanted)
        except BeyondReach as error:
            raise CorruptObject(f"{error.message}, and the head {head} names it", hint=REBUILD) from None

    async def manifest(self, head: Head, link: Link) -> Manifest:
        return await self._load(head, link, Manifest)

    async def root_manifest(self, link: Link) -> RootManifest:
        return await self._load(Head.ROOT, link, RootManifest)

    async def _load(self, head: Head, link: Link, wanted: type[C]) -> C:
        known = self._remembered.get((head, link.checksum))
        if isinstance(known, wanted) and known.link(link.checksum) == link:
            return known
        key = self.manifest_key(head, link.snapshot)
        found = await self.store.get(key)
        if found is None:
            raise BeyondReach(f"{key} is gone", hint="ask for the current state, or a later moment")
        manifest = decode_manifest(found.data, wanted, link, key)
        if isinstance(manifest, Manifest) and manifest.head != head:
            raise CorruptObject(f"{key} belongs to the head {manifest.head}")
        self._remember(head, link.checksum, manifest)
        return manifest

    def _remember(self, head: Head, checksum: str, manifest: Any) -> None:
        self._remembered[(head, checksum)] = manifest
        while len(self._remembered) > _MANIFESTS_REMEMBERED_MAX:
            self._remembered.pop(next(iter(self._remembered)))

    # Publishing

    def place(self, standing: Standing[C], epoch: int | None) -> dict[str, Any]:
        """The fields that every manifest after this one has, under a name that nobody has."""
        snapshot = self._ulids.next()
        own_epoch = standing.epoch if epoch is None else epoch
        place = following(standing.manifest, standing.link, snapshot, self.clock.now_ms(), own_epoch)
        return place | {"reach_s": self._reach_s}

    async def publish(self, standing: Standing[C], manifest: C) -> Standing[C] | None:
        """Write a manifest and swing exactly the head that was read. None: somebody else swung it first.

        OutcomeUnknown: it may count, now or later. Whoever reads the head again knows.
        """
        manifest, checksum = await self._write(standing.head, manifest)
        reach("fold.manifest_written")
        head, state = self.object(standing.head), HeadState(manifest.link(checksum))
        if standing.held is None:
            outcome = await head.create(state, epoch=manifest.epoch)
        else:
            outcome = await head.swap(standing.held, state, epoch=manifest.epoch)
        match outcome:
            case Swung(held):
                reach("fold.head_swung")
                self._remember(standing.head, checksum, manifest)
                return Standing(standing.head, held, manifest)
            case Overtaken(held):
                reach("fold.head_swung")
                return await self._overtaken(standing.head, held, type(manifest))
            case Lost():
                return None
            case Unknown(reason):
                raise OutcomeUnknown(f"{head.key} may name {manifest.snapshot}: {reason}", hint="run the fold again")

    async def _overtaken(self, head: Head, held: Held[HeadState], wanted: type[C]) -> Standing[C]:
        """Ours landed, and others have published since: what stands there now."""
        try:
            return Standing(head, held, await self._load(head, held.value.manifest, wanted))
        except RetryLater as error:
            # "Nothing happened" would be a lie.
            raise OutcomeUnknown(
                f"{head} was published and published again: {error.message}", hint="read it again"
            ) from error

    async def _write(self, head: Head, manifest: C) -> tuple[C, str]:
        for _ in range(FOLD_NAME_ATTEMPTS_MAX):
            key, data = self.manifest_key(head, manifest.snapshot), encode_manifest(manifest)
            outcome = await put_settled(self.store, key, data, Absent(), clock=self.clock, entropy=self.entropy)
            match outcome:
                case Landed():
                    return manifest, content_hash(data)
                case Unknown(reason):
                    raise OutcomeUnknown(f"{key} may be stored: {reason}", hint="run the fold again: it counts for nothing")
                case Lost():
                    manifest = msgspec.structs.replace(manifest, snapshot=self._ulids.next())
        raise BrokenInvariant(
            f"{FOLD_NAME_ATTEMPTS_MAX} new names in a row for a manifest of {head} were taken",
            hint="check the machine's clock and its source of randomness",
        )

    # The root

    async def publish_cut(self, seen: Iterable[Standing[Manifest]] = ()) -> Standing[RootManifest]:
        """Bring the root up to date with the heads. If it already names what was just seen, one request tells so."""
        known = {one.head: one.link for one in seen}
        for attempt in range(SWAP_ATTEMPTS_MAX):
            if attempt:
                await self.clock.sleep(pause_s(min(attempt, 6), self.entropy))
            root = await self.read_root()
            if known and root.manifest is not None and _names(root.manifest, known):
                return root
            # After the root, never before: what is read now is at least as new as what the root names.
            links = await self._links()
            if _cut(links) == (() if root.manifest is None else root.manifest.heads):
                return root  # also where nothing was folded yet: there is nothing to name
            manifest = RootManifest(format=ROOT_FORMAT, heads=_cut(links), **self.place(root, None))
            published = await self.publish(root, manifest)
            if published is not None:
                return published
        raise Conflict(f"the root was swung by others {SWAP_ATTEMPTS_MAX} times in a row")

    async def _links(self) -> dict[Head, Link | None]:
        heads = list(FOLDED_FROM)
        held = await asyncio.gather(*(self.object(head).read() for head in heads))
        return {head: None if one is None else one.value.manifest for head, one in zip(heads, held, strict=True)}


def _cut(links: dict[Head, Link | None]) -> tuple[CutHead, ...]:
    return tuple(CutHead(head=head.value, manifest=link) for head, link in sorted(links.items()) if link is not None)


def _names(root: RootManifest, known: dict[Head, Link | None]) -> bool:
    named = {one.head: one.manifest for one in root.heads}
    return all(named.get(head.value) == link for head, link in known.items())

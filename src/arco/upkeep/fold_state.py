"""What the fold published longer ago than anybody can ask for: manifests, files of state, and lists of what was consumed.

    floor      the manifest of a head that counted at the oldest moment that can be asked for, a grace earlier
    kept       the manifest that counts, the floor, and everything with a greater number
               every file and list that the floor or the current manifest names
               everything that was written after the floor was published, or a day before it

A file is written before the first manifest that names it, and a manifest after the floor may name it as long as nothing says that
it does not; so what is not older than the floor is not judged. The head is touched before anything goes: a swing that was
prepared before, and names what nobody else does, can no longer land. All names are ULIDs, drawn once.
"""

from dataclasses import dataclass

from arco.fold.folding import ALL_HEADS
from arco.fold.heads import Standing
from arco.fold.manifests import Link, Manifest, number_in
from arco.kernel.errors import BeyondReach, Conflict, OutcomeUnknown
from arco.kernel.limits import SWAP_ATTEMPTS_MAX, UPKEEP_CLOCKS_S, UPKEEP_GRACE_S
from arco.storage.cas import Overtaken, Swung
from arco.storage.keys import ConsumedKey, Head, ManifestKey, StateFileKey
from arco.storage.port import Listed, Lost, Unknown
from arco.upkeep.chains import counting_at
from arco.upkeep.sweep import STRANGE, Sweep

_AFTER_FLOOR = "a state that can be asked for may need it"


@dataclass(frozen=True, slots=True)
class _Floor:
    """The oldest manifest of a head that is needed. `published_ms` is when it was, by the clock of whoever folded."""

    sequence: int
    published_ms: int
    needed: frozenset[str]


async def collect(sweep: Sweep) -> None:
    cutoff_ms = sweep.now_ms - (sweep.retention.reach_s + UPKEEP_GRACE_S) * 1000
    named_by_root = await _collect_root(sweep, cutoff_ms)
    for head in ALL_HEADS:
        with sweep.apart(f"the state of {head.value}"):
            standing = await sweep.heads.read(head)
            floor = await _floor(sweep, standing, cutoff_ms, named_by_root.get(head.value))
            if floor is not None:
                await _Head(sweep, head, floor).collect()


async def _collect_root(sweep: Sweep, cutoff_ms: int) -> dict[str, Link]:
    """Collect old cuts; what the oldest one that is needed names of each head."""
    root = await sweep.heads.read_root()
    if root.manifest is None:
        return {}
    floor = await counting_at(root.manifest, cutoff_ms, sweep.heads.root_manifest)
    if floor is None:
        return {}
    current = sweep.heads.manifest_key(Head.ROOT, root.manifest.snapshot)
    judged = _Floor(floor.sequence, floor.published_ms, frozenset({current}))
    await _Head(sweep, Head.ROOT, judged).collect_manifests()
    return {one.head: one.manifest for one in floor.heads}


async def _floor(sweep: Sweep, standing: Standing[Manifest], cutoff_ms: int, cut: Link | None) -> _Floor | None:
    """The older of what the head had published at the cutoff and what the cut of that moment names of it."""
    head, newest = standing.head, standing.manifest
    found = None if newest is None else await counting_at(newest, cutoff_ms, lambda link: sweep.heads.manifest(head, link))
    if newest is None or found is None:
        return None
    needed = _objects(sweep, head, newest) | _objects(sweep, head, found)
    sequence, published_ms = found.sequence, found.published_ms
    if cut is not None and cut.sequence < sequence:
        sequence, published_ms = cut.sequence, cut.published_ms
        try:
            needed |= _objects(sweep, head, await sweep.heads.manifest(head, cut))
        except BeyondReach:
            sequence, published_ms = found.sequence, found.published_ms
    return _Floor(sequence, published_ms, frozenset(needed))


def _objects(sweep: Sweep, head: Head, manifest: Manifest) -> set[str]:
    """Everything that a manifest needs, itself among it."""
    lists = {sweep.lists.key(head, one.list) for one in manifest.consumed}
    files = {file.key for file in manifest.files()}
    return lists | files | {sweep.heads.manifest_key(head, manifest.snapshot)}


class _Head:
    """One head, or the root, with what is needed of it."""

    def __init__(self, sweep: Sweep, head: Head, floor: _Floor) -> None:
        self._sweep = sweep
        self._head = head
        self._floor = floor
        self._needed = set(floor.needed)
        # Files are written up to so long before the manifest that first names them, and clocks differ.
        self._before_ms = floor.published_ms - (UPKEEP_GRACE_S + UPKEEP_CLOCKS_S) * 1000
        self._touched = False

    async def collect(self) -> None:
        await self._collect_objects("consumed", ConsumedKey)
        await self._collect_objects("state", StateFileKey)
        await self.collect_manifests()

    async def collect_manifests(self) -> None:
        async for entry, key in self._sweep.walk("manifests", self._head.value):
            if not isinstance(key, ManifestKey):
                self._sweep.keep(STRANGE)
            elif entry.key in self._needed or entry.modified_ms >= self._before_ms:
                self._sweep.keep(_AFTER_FLOOR)
            elif await self._is_below(entry):
                await self._remove(entry, "the state of a time that is beyond reach")
            else:
                self._sweep.keep(_AFTER_FLOOR)

    async def _is_below(self, entry: Listed) -> bool:
        found = await self._sweep.store.get(entry.key)
        number = None if found is None else self._sweep.decoded(number_in, found.data, entry.key)
        return number is not None and number < self._floor.sequence

    async def _collect_objects(self, folder: str, kind: type) -> None:
        async for entry, key in self._sweep.walk(folder, self._head.value):
            if not isinstance(key, kind):
                self._sweep.keep(STRANGE)
            elif entry.key in self._needed or entry.modified_ms >= self._before_ms:
                self._sweep.keep(_AFTER_FLOOR)
            else:
                await self._remove(entry, "named by no state that can be asked for")

    async def _remove(self, entry: Listed, why: str) -> None:
        if not self._touched and not self._sweep.dry_run:
            await self._touch()
        if entry.key in self._needed:
            self._sweep.keep(_AFTER_FLOOR)
        else:
            await self._sweep.remove(entry, why)

    async def _touch(self) -> None:
        """The same head under a new version, and what it names by then."""
        head = self._sweep.heads.object(self._head)
        for _ in range(SWAP_ATTEMPTS_MAX):
            held = await head.read()
            if held is None:
                raise OutcomeUnknown(f"the head {self._head} is gone", hint="run arco verify")
            if self._head is not Head.ROOT:
                manifest = await self._sweep.heads.manifest(self._head, held.value.manifest)
                self._needed |= _objects(self._sweep, self._head, manifest)
            self._needed.add(self._sweep.heads.manifest_key(self._head, held.value.manifest.snapshot))
            match await head.swap(held, held.value):
                case Swung() | Overtaken():
                    self._touched = True
                    return
                case Lost():
                    continue
                case Unknown(reason):
                    raise OutcomeUnknown(f"the head {self._head} did not answer: {reason}", hint="run upkeep again")
        raise Conflict(f"the head {self._head} was swung by others all the time", hint="run upkeep again")

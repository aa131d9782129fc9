"""What the fold published, looked at again: heads, the chain of each one's manifests, and everything that they name.

A chain is walked from its head as far back as can be asked for. What is older may have been collected, in part too: then it is
left alone. Each file of state and each list of what was consumed is read once, by the newest manifest that names it: one that
is left out of a manifest never comes back into a later one.
"""

import asyncio
import io
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Generic

from arco.fold.consumed import decode_list
from arco.fold.dead_letters import DeadLetter, decode_letter, letter_hash
from arco.fold.heads import Heads, HeadState
from arco.fold.manifests import C, Link, ListRef, Manifest
from arco.fold.notifying import HintCodec
from arco.fold.tables import FOLDED_FROM
from arco.fold.work import StateFile
from arco.kernel.errors import BeyondReach, CorruptObject, UnknownFormat
from arco.kernel.fingerprint import content_hash
from arco.kernel.ids import ConsumedListId
from arco.kernel.limits import AS_OF_REACH_S, VERIFY_READ_AHEAD_MAX, VERIFY_READ_BYTES_MAX
from arco.storage.cas import Held
from arco.storage.findings import way_out
from arco.storage.keys import ConsumedKey, DeadLetterKey, Head, HintKey, parse
from arco.storage.looking import Look, readable
from arco.storage.port import Object

_REBUILD = "rebuild the head from the ledger (arco rebuild), or restore it from a backup or a copy of the root"
_HINT = "it is only a hint: take it away, and the next fold lists what there is"


async def verify_fold(look: Look, heads: Heads, reach_s: int = AS_OF_REACH_S) -> None:
    """Everything of the fold that was not collected. `reach_s` is how far back anybody may ask today.

    The root is read before the heads: what it names is at most as new as they are.
    """
    cut = await _Chain(look, heads, Head.ROOT, heads.root_manifest, reach_s).walk()
    named = {} if cut is None else {one.head: one.manifest for one in cut.heads}
    for head in FOLDED_FROM:
        await _HeadChain(look, heads, head, partial(heads.manifest, head), reach_s, named.get(head.value)).walk()
    await look.each("dead_letter_unreadable", "dead_letters", {DeadLetterKey: _judge_letter}, "dead_letters")
    await look.each("hint_unreadable", "hints", {HintKey: readable(HintCodec())}, "hints", todo=_HINT)


class _Chain(Generic[C]):
    """The manifests of one head, the newest first."""

    def __init__(
        self,
        look: Look,
        heads: Heads,
        head: Head,
        load: Callable[[Link], Awaitable[C]],
        reach_s: int,
        cut: Link | None = None,
    ) -> None:
        self._look = look
        self._heads = heads
        self._head = head
        self._load = load
        self._reach_s = reach_s
        self._cut = cut
        self._done = 0

    async def walk(self) -> C | None:
        """Look at everything; the newest manifest."""
        held = await self._held()
        if held is None:
            return None
        newest: C | None = None
        link: Link | None = held.value.manifest
        oldest_ms = after_ms = 0
        while link is not None:
            manifest = await self._read(link, needed=newest is None or after_ms > oldest_ms)
            if manifest is None:
                return newest
            if newest is None:
                newest, oldest_ms = manifest, self._oldest_ms(manifest)
            if manifest is newest or after_ms > oldest_ms:
                await self.look_below(manifest)
            after_ms = manifest.published_ms
            self._pass(link)
            link = manifest.previous
        return newest

    def _oldest_ms(self, newest: C) -> int:
        """What was published before may be gone: by what was promised then, or by what is promised now."""
        return self._heads.clock.now_ms() - min(newest.reach_s, self._reach_s) * 1000

    async def look_below(self, manifest: C) -> None:
        """A cut names manifests, and those are looked at where their heads are."""

    def _pass(self, link: Link) -> None:
        self._done += 1
        self._look.report.count("fold_manifests")
        self._look.progress(f"manifests of {self._head}", self._done, max(self._done, link.sequence))
        if self._cut is not None and link.sequence <= self._cut.sequence:
            if link != self._cut:
                root = self._heads.object(Head.ROOT).key
                what = f"the root ({root}) names a manifest of {self._head} that is not in its chain"
                self._look.find("cut_contradicts_head", root, what, _REBUILD)
            self._cut = None

    async def _held(self) -> Held[HeadState] | None:
        head = self._heads.object(self._head)
        try:
            held = await head.read()
        except (CorruptObject, UnknownFormat) as error:
            self._look.find("fold_head_unreadable", head.key, error.message, way_out(error, _REBUILD))
            return None
        if held is None and self._cut is not None:
            what = f"the root names a manifest of {self._head}, which has no head ({head.key})"
            self._look.find("fold_head_missing", head.key, what, _REBUILD)
        return held

    async def _read(self, link: Link, *, needed: bool) -> C | None:
        """The manifest of a link; None where the chain cannot be followed further."""
        name = self._heads.manifest_key(self._head, link.snapshot)
        try:
            return await self._load(link)
        except BeyondReach:
            if needed:
                what = f"manifest {link.sequence} of the fold of {self._head} is missing ({name})"
                self._look.find("fold_manifest_missing", name, what, _REBUILD)
        except (CorruptObject, UnknownFormat) as error:
            self._look.find("fold_manifest_unreadable", name, error.message, way_out(error, _REBUILD))
            if link.sequence > 1:
                self._look.report.note(f"what {self._head} published before manifest {link.sequence} was not looked at")
        return None


class _HeadChain(_Chain[Manifest]):
    """The manifests of a head of the fold, with the files and lists that they name."""

    _passed: frozenset[str] = frozenset()

    async def look_below(self, manifest: Manifest) -> None:
        files = {file.key: file for file in manifest.files()}
        lists = {self._list_key(ref): ref for ref in manifest.consumed}
        for group in _sized([file for key, file in files.items() if key not in self._passed]):
            bodies = await asyncio.gather(*(self._look.store.get(file.key) for file in group))
            for file, found in zip(group, bodies, strict=True):
                self._look_at_file(file, found)
        for key, ref in lists.items():
            if key not in self._passed:
                self._look_at_list(key, ref, await self._look.store.get(key))
        self._passed = frozenset((*files, *lists))

    def _list_key(self, ref: ListRef) -> str:
        return str(ConsumedKey(self._look.scope, self._head, ConsumedListId(ref.list)))

    def _look_at_file(self, file: StateFile, found: Object | None) -> None:
        self._look.report.count("fold_files")
        if found is None:
            self._look.find("fold_file_missing", file.key, f"{file.key}, a file of {file.table}, is missing", _REBUILD)
        elif content_hash(found.data) != file.checksum:
            what = f"{file.key}, a file of {file.table}, does not match its checksum"
            self._look.find("fold_file_altered", file.key, what, _REBUILD)
        elif (len(found.data), _rows_in(found.data)) != (file.bytes, file.rows):
            what = f"{file.key} is not the {file.rows} rows in {file.bytes} bytes that its manifest says"
            self._look.find("fold_file_contradicts_manifest", file.key, what, "report this: it was written so")

    def _look_at_list(self, key: str, ref: ListRef, found: Object | None) -> None:
        self._look.report.count("consumed_lists")
        if found is None:
            self._look.find("consumed_list_missing", key, f"{key} is missing, and a manifest names it", _REBUILD)
            return
        try:
            one = decode_list(found.data, ref, key)
        except (CorruptObject, UnknownFormat) as error:
            self._look.find("consumed_list_unreadable", key, error.message, way_out(error, _REBUILD))
            return
        if (one.head, one.list, len(one.names)) != (self._head.value, ref.list, ref.names):
            what = f"{key} is not the list of {ref.names} names that its manifest says"
            self._look.find("consumed_list_contradicts_manifest", key, what, "report this: it was written so")


def _sized(files: Sequence[StateFile]) -> list[list[StateFile]]:
    """What is read at once: a few files, or one that is large."""
    groups: list[list[StateFile]] = []
    size_bytes = 0
    for file in files:
        if not groups or len(groups[-1]) >= VERIFY_READ_AHEAD_MAX or size_bytes + file.bytes > VERIFY_READ_BYTES_MAX:
            groups.append([])
            size_bytes = 0
        groups[-1].append(file)
        size_bytes += file.bytes
    return groups


def _rows_in(data: bytes) -> int | None:
    """By the file's own footer; None if it has none."""
    # Only here: it takes long to load.
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        return int(pq.ParquetFile(io.BytesIO(data)).metadata.num_rows)
    except (pa.ArrowException, OSError):
        return None


def _judge_letter(key: DeadLetterKey, found: Object) -> None:
    letter = decode_letter(found.data, str(key))
    about = parse(letter.segment)
    if (letter.head, getattr(about, "segment", None)) != (key.head.value, key.segment) or not _is_called_right(key, letter):
        raise CorruptObject(f"{key} does not say what its name says")


def _is_called_right(key: DeadLetterKey, letter: DeadLetter) -> bool:
    """Bytes that were no text are not in the letter: its name cannot be made again from it."""
    return "\ufffd" in letter.line or letter_hash(key.segment, letter.event_id, letter.line.encode()) == key.letter

"""Files of state where DuckDB can read them: in place on a folder, fetched once from a bucket, and never unchecked.

A manifest names every file with its checksum. A file is read by questions only after its bytes were found to be those, once in
a process; one that is damaged or gone is named. Fetched files are kept under their checksum: files of state never change, so
nothing here is ever out of date. They are kept up to a limit; what an open reader holds stays, because DuckDB opens files late.
What must never enter: SQL, and which files a question needs.
"""

import asyncio
import hashlib
import os
import tempfile
import weakref
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from arco.fold.work import StateFile
from arco.kernel.errors import CorruptObject
from arco.kernel.limits import STATE_CHECKED_FILES_MAX, STATE_FETCHES_MAX, STATE_KEPT_BYTES_MAX
from arco.storage.port import ObjectStore


class Hold:
    """As long as this lives, the files stay that were asked for with it."""


@dataclass(slots=True)
class _Ready:
    """A file that was asked for: where it lies, once it is there, and who holds it."""

    path: asyncio.Future[str]
    size_bytes: int
    holds: weakref.WeakSet[Hold] = field(default_factory=weakref.WeakSet)

    @property
    def is_idle(self) -> bool:
        done = self.path.done() and not self.path.cancelled() and self.path.exception() is None
        return done and not self.holds


class Files:
    """The files of one store. `folder` is the store's own folder if it has one; others keep what they fetch in `cache`."""

    def __init__(
        self,
        store: ObjectStore,
        *,
        folder: Path | None = None,
        cache: Path | None = None,
        kept_bytes_max: int = STATE_KEPT_BYTES_MAX,
    ) -> None:
        self._store = store
        self._folder = folder
        self._kept = None if cache is not None or folder is not None else tempfile.TemporaryDirectory(prefix="arco-state-")
        self._cache = cache or (None if self._kept is None else Path(self._kept.name))
        self._kept_bytes_max = kept_bytes_max
        self._kept_bytes = 0
        self._ready: OrderedDict[str, _Ready] = OrderedDict()
        self._fetching = asyncio.Semaphore(STATE_FETCHES_MAX)

    async def paths(self, files: Iterable[StateFile], hold: Hold) -> list[str]:
        """Where the files lie on this machine, each checked."""
        found = list(await asyncio.gather(*(self._path(file, hold) for file in files)))
        self._make_room()
        return found

    async def _path(self, file: StateFile, hold: Hold) -> str:
        ready = self._ready.get(file.checksum)
        if ready is None:
            ready = self._ready[file.checksum] = _Ready(asyncio.ensure_future(self._prepared(file)), file.bytes)
            self._kept_bytes += file.bytes
            ready.path.add_done_callback(lambda done: self._forget_failure(file.checksum, done))
        ready.holds.add(hold)
        self._ready.move_to_end(file.checksum)
        return await asyncio.shield(ready.path)

    def _forget_failure(self, checksum: str, done: "asyncio.Future[str]") -> None:
        if done.cancelled() or done.exception() is not None:
            self._forget(checksum)

    def _forget(self, checksum: str) -> None:
        self._kept_bytes -= self._ready.pop(checksum).size_bytes

    def _make_room(self) -> None:
        """Of files that nobody holds those go first that were not asked for longest. In place they are only forgotten."""
        idle = [checksum for checksum, one in self._ready.items() if one.is_idle] if self._is_full else []
        for checksum in idle:
            if not self._is_full:
                return
            path = self._ready[checksum].path.result()
            self._forget(checksum)
            if self._folder is None:
                # In one go with forgetting it: whoever asks next fetches it anew.
                Path(path).unlink(missing_ok=True)

    @property
    def _is_full(self) -> bool:
        too_large = self._folder is None and self._kept_bytes > self._kept_bytes_max
        return too_large or len(self._ready) > STATE_CHECKED_FILES_MAX

    async def _prepared(self, file: StateFile) -> str:
        async with self._fetching:
            if self._folder is not None:
                place = self._folder / file.key
                await asyncio.to_thread(_check_in_place, place, file)
                return str(place)
            return await self._fetched(file)

    async def _fetched(self, file: StateFile) -> str:
        place = (self._cache or Path()) / f"{file.checksum}.parquet"
        if await asyncio.to_thread(_is_kept, place, file):
            return str(place)
        await asyncio.to_thread(_keep, place, await fetched(self._store, file))
        return str(place)


async def fetched(store: ObjectStore, file: StateFile) -> bytes:
    """The bytes of a file of state, if they are what the manifest says."""
    found = await store.get(file.key)
    if found is None:
        raise _gone(file)
    _check(hashlib.sha256(found.data).hexdigest(), file)
    return found.data


def _check_in_place(place: Path, file: StateFile) -> None:
    try:
        with place.open("rb") as opened:
            found = hashlib.file_digest(opened, "sha256").hexdigest()
    except FileNotFoundError:
        raise _gone(file) from None
    _check(found, file)


def _is_kept(place: Path, file: StateFile) -> bool:
    if not place.exists():
        return False
    with place.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest() == file.checksum


def _keep(place: Path, data: bytes) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    handle, beside = tempfile.mkstemp(dir=place.parent)
    with os.fdopen(handle, "wb") as opened:
        opened.write(data)
    Path(beside).replace(place)


def _check(found: str, file: StateFile) -> None:
    if found != file.checksum:
        raise CorruptObject(
            f"{file.key} is damaged: its checksum is {found[:12]}…, the manifest says {file.checksum[:12]}…",
            hint="`arco rebuild` makes the state again from the ledger",
        )


def _gone(file: StateFile) -> CorruptObject:
    return CorruptObject(f"{file.key} is gone", hint="`arco rebuild` makes the state again from the ledger")

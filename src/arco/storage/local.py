"""A folder as an object store: safe between processes, across `kill -9` and across a power cut.

How each promise is kept:

  no torn read          a file is written under a temporary name, and gets its real name complete
  create only if absent `link`, which fails if the name is taken
  compare and swap      compare and `rename` under the advisory lock of the key
  durable               bytes synced before the name is given, the folder synced before the answer; writes that go out
                        together sync at the same time, and a folder that several of them gave names in once for all
  versions never repeat modification time in nanoseconds, forced to grow on every overwrite, with inode and size
  no empty lake         a root that was there and is gone answers nothing and is not made anew: a disk that was taken away
                        is not a catalog without tables
  no litter             temporaries live in `.arco/tmp/<process>/`; a later process removes those of the dead

The name of an object is its path, so that Spark and every other reader finds data files where the catalog says. Therefore
a name cannot be both an object and a folder. Ordering between two objects (this one durable before that one) rests on the
caller awaiting the first; a reader may see a name a moment before it is durable, which ordered journals (ext4, xfs, btrfs,
APFS) never lose while keeping something written later.
"""

import asyncio
import errno
import hashlib
import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import ParamSpec, TypeVar

from arco.kernel.clock import Clock
from arco.kernel.entropy import Entropy
from arco.kernel.errors import ArcoError, InvalidInput, StoreRefused, Unavailable
from arco.kernel.ids import UlidSource, clip
from arco.kernel.limits import KEYS_CHECKED_KEPT_MAX, LOCAL_FOLDER_THREADS, LOCAL_IO_THREADS, LOCAL_LOCK_SHARDS
from arco.storage.disk import Disk, FileStat, RealDisk
from arco.storage.disk_threads import DiskThreads
from arco.storage.folders import Folders, Together, in_turn
from arco.storage.heads import Heads
from arco.storage.port import (
    Absent,
    Always,
    Condition,
    Landed,
    Listed,
    LooksAtOnce,
    Lost,
    Matches,
    Object,
    ObjectInfo,
    Outcome,
    Page,
    SignedMethod,
    Unknown,
    Version,
    check_key,
    check_prefix,
    check_range,
    is_key,
)

P = ParamSpec("P")
R = TypeVar("R")

NewFolders = tuple[str, ...]
"""The folders on the way to an object that are not known to be durable."""


class LocalFiles:
    """The store's steps as plain calls; `LocalStore` runs them on threads, the simulator runs them one by one."""

    def __init__(
        self,
        root: str,
        disk: Disk,
        clock: Clock,
        entropy: Entropy,
        *,
        sync: bool = True,
        together: Together = in_turn,
    ) -> None:
        self._root = root.rstrip("/")
        self._disk = disk
        self._clock = clock
        self._entropy = entropy
        self._sync = sync
        self._folders = Folders(self._root, disk, sync=sync, together=together)
        self._ulids = UlidSource(clock, entropy)
        self._temporaries: str | None = None
        self._swept_unasked = 0
        self._temporary_numbers = itertools.count()
        self._held: int | None = None
        self._opening = threading.Lock()
        self._path = lru_cache(KEYS_CHECKED_KEPT_MAX)(self._path_of)

    # Reading

    def get(self, key: str) -> Object | None:
        found = self._disk.read(self._path(key))
        if found is None:
            self._folders.need_root()
            return None
        data, stat = found
        return Object(_info(key, stat), data)

    def get_range(self, key: str, start: int, length: int) -> bytes | None:
        check_range(start, length)
        found = self._disk.read(self._path(key), start, length)
        if found is None:
            self._folders.need_root()
            return None
        return found[0]

    def head(self, key: str) -> ObjectInfo | None:
        stat = self._disk.stat(self._path(key))
        if stat is None:
            self._folders.need_root()
            return None
        return _info(key, stat)

    def list_page(self, prefix: str, after: str, limit: int) -> Page:
        check_prefix(prefix)
        entries: list[Listed] = []
        for key in self._walk(prefix, after):
            if len(entries) == limit:
                return Page(tuple(entries), entries[-1].key)
            stat = self._disk.stat(self._path(key))
            if stat is not None:
                entries.append(Listed(key, stat.size_bytes, stat.mtime_ns // 1_000_000))
        self._folders.need_root()
        return Page(tuple(entries), None)

    def _walk(self, prefix: str, after: str) -> Iterator[str]:
        found = self._disk.entries(f"{self._root}/{prefix}".rstrip("/"))
        # A folder sorts with its slash, so that the walk yields keys in the order of their bytes.
        for name in sorted(f"{entry.name}/" if entry.is_folder else entry.name for entry in found):
            key = prefix + name
            if not is_key(key.removesuffix("/")):
                continue
            if not name.endswith("/"):
                if key > after:
                    yield key
            elif after < key or after.startswith(key):
                yield from self._walk(key, after)

    # Writing

    def put(self, key: str, data: bytes, condition: Condition) -> Outcome:
        path = self._path(key)
        folder = path.rpartition("/")[0]
        new = self._folders.make(folder)
        match condition:
            case Absent():
                return self._create(path, folder, new, data)
            case Always() | Matches():
                return self._replace(path, folder, new, data, condition)

    def _create(self, path: str, folder: str, new: NewFolders, data: bytes) -> Outcome:
        temporary, stat = self._write_temporary(data)
        try:
            self._disk.link(temporary, path)
        except FileExistsError:
            # The winner's name may not be durable yet, and our caller is about to act on its existence.
            self._folders.keep(folder, new)
            if self._disk.is_folder(path):
                raise IsADirectoryError(errno.EISDIR, "is a folder", path) from None
            return Lost("the object exists")
        except OSError as error:
            return _named_or_not(error)
        finally:
            self._drop_temporary(temporary)
        return self._finish(folder, new, stat)

    def _replace(self, path: str, folder: str, new: NewFolders, data: bytes, condition: Always | Matches) -> Outcome:
        temporary, stat = self._write_temporary(data)
        with self._disk.locked(self._lock_path(path)):
            current = self._disk.stat(path)
            lost = _objection(current, condition)
            if lost is not None:
                self._drop_temporary(temporary)
                return lost
            try:
                stat = self._later_than(current, temporary, stat)
            except OSError:
                self._drop_temporary(temporary)
                raise
            try:
                self._disk.rename(temporary, path)
            except OSError as error:
                self._drop_temporary(temporary)
                return _named_or_not(error)
            return self._finish(folder, new, stat)

    def _later_than(self, current: FileStat | None, temporary: str, stat: FileStat) -> FileStat:
        """Times grow with every overwrite, whatever the clock says: a version must not come back."""
        if current is None or stat.mtime_ns > current.mtime_ns:
            return stat
        self._disk.set_mtime(temporary, current.mtime_ns + 1, sync=self._sync)
        return FileStat(stat.inode, current.mtime_ns + 1, stat.size_bytes)

    def _finish(self, folder: str, new: NewFolders, stat: FileStat) -> Outcome:
        try:
            self._folders.keep(folder, new)
        except OSError as error:
            return Unknown(f"the name is given but the folder could not be synced: {error.strerror}")
        return Landed(_version(stat))

    def delete(self, key: str) -> None:
        path = self._path(key)
        with self._disk.locked(self._lock_path(path)), suppress(FileNotFoundError, NotADirectoryError):
            with suppress(FileNotFoundError, IsADirectoryError):
                self._disk.unlink(path)
            # Also when the name was gone already: whoever removed it may have failed before it was durable.
            self._folders.keep(path.rpartition("/")[0])

    # Folders, temporaries, locks

    def _path_of(self, key: str) -> str:
        return f"{self._root}/{check_key(key)}"

    def _lock_path(self, path: str) -> str:
        shard = int.from_bytes(hashlib.sha256(path.encode()).digest()[:8], "big") % LOCAL_LOCK_SHARDS
        locks = f"{self._root}/.arco/locks"
        self._folders.make_durable(locks)
        return f"{locks}/{shard:04x}"

    def make_folder(self, prefix: str) -> None:
        """A folder for files that clients write themselves."""
        self._folders.make_durable(f"{self._root}/{check_prefix(prefix)}".rstrip("/"))

    def _write_temporary(self, data: bytes) -> tuple[str, FileStat]:
        path = f"{self._own_temporaries()}/{next(self._temporary_numbers)}"
        # The part below a millisecond is random: two processes in one millisecond must not make one version.
        mtime_ns = self._clock.now_ms() * 1_000_000 + int(self._entropy.fraction() * 1_000_000)
        return path, self._disk.write_new(path, data, mtime_ns, sync=self._sync)

    def _own_temporaries(self) -> str:
        """This process's folder for temporaries, guarded by a lock that ends with the process."""
        with self._opening:
            if self._temporaries is None:
                # Litter of the dead must not keep anybody from writing.
                with suppress(OSError):
                    self._swept_unasked += self.sweep_temporaries()
                parent = f"{self._root}/.arco/tmp"
                self._folders.make_durable(parent)
                own = f"{parent}/{self._ulids.next()}"
                while (held := self._disk.hold(f"{own}.lock")) is None:
                    own = f"{parent}/{self._ulids.next()}"
                self._disk.make_folder(own)
                self._held = held
                self._temporaries = own
            return self._temporaries

    def _drop_temporary(self, path: str) -> None:
        # Litter is swept later; a failure here must not turn a finished write into an error.
        with suppress(OSError):
            self._disk.unlink(path)

    def forget_folders(self) -> None:
        """Somebody removed folders under us: make them anew on the next write."""
        self._folders.forget()
        own = self._temporaries
        if own is not None and not self._disk.is_folder(own):
            self._let_go()

    def sweep_temporaries(self) -> int:
        """Remove what dead processes left behind; how many files. A living process's lock cannot be taken."""
        parent = f"{self._root}/.arco/tmp"
        swept = 0
        for entry in self._disk.entries(parent):
            lock = f"{parent}/{entry.name}"
            if entry.is_folder or not entry.name.endswith(".lock"):
                continue
            held = self._disk.hold(lock)
            if held is None:
                continue
            orphaned = lock.removesuffix(".lock")
            swept += self._empty(orphaned)
            with suppress(FileNotFoundError):
                self._disk.remove_folder(orphaned)
            self._disk.unlink(lock)
            self._disk.release(held)
        return swept

    def swept_unasked(self) -> int:
        """How many files went with this process's first write, for whoever reports them: said once."""
        with self._opening:
            swept, self._swept_unasked = self._swept_unasked, 0
            return swept

    def _empty(self, folder: str) -> int:
        left = self._disk.entries(folder)
        for entry in left:
            self._disk.unlink(f"{folder}/{entry.name}")
        return len(left)

    def close(self) -> None:
        """Leave nothing behind; what a crash leaves, the next process sweeps."""
        own = self._temporaries
        if own is not None:
            with suppress(OSError):
                self._empty(own)
                self._disk.remove_folder(own)
                self._disk.unlink(f"{own}.lock")
            self._let_go()

    def _let_go(self) -> None:
        with self._opening:
            held, self._held, self._temporaries = self._held, None, None
        # Whoever took it lets go of it: a number that was let go of is given to the next file that somebody opens.
        if held is not None:
            self._disk.release(held)


class LocalStore(LooksAtOnce):
    """`LocalFiles` as an object store: each call runs on a thread, so that syncs of one group go to the disk together."""

    def __init__(self, root: str, clock: Clock, entropy: Entropy, *, sync: bool = True, disk: Disk | None = None) -> None:
        # Made absolute here: the store must not move when the process changes its folder.
        self._root = str(Path(root).absolute())
        self._threads = DiskThreads(LOCAL_IO_THREADS, "arco-disk")
        # Threads of their own: who waits for a folder holds one of those above, and all of them may wait.
        self._folder_threads = DiskThreads(LOCAL_FOLDER_THREADS, "arco-folders")
        together = self._folder_threads.together
        self._files = LocalFiles(self._root, disk or RealDisk(), clock, entropy, sync=sync, together=together)
        self._heads = Heads(self._threads, self._files.head, clock)

    async def _run(self, call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._told(self._threads.run(call, *args, **kwargs))

    async def _told(self, work: "asyncio.Future[R]") -> R:
        try:
            return await work
        except OSError as error:
            raise self._refusal(error) from error

    def _refusal(self, error: OSError) -> ArcoError:
        if error.errno == errno.ENOENT:
            self._files.forget_folders()
        return _refused(self._root, error)

    async def get(self, key: str) -> Object | None:
        return await self._run(self._files.get, key)

    async def get_range(self, key: str, start: int, length: int) -> bytes | None:
        return await self._run(self._files.get_range, key, start, length)

    async def head(self, key: str) -> ObjectInfo | None:
        found = self.look((key,))
        return await self._told(self._heads.ask(key)) if found is None else found[0]

    def look(self, keys: Sequence[str]) -> list[ObjectInfo | None] | None:
        try:
            return self._heads.look(keys)
        except OSError as error:
            raise self._refusal(error) from error

    async def put(self, key: str, data: bytes, condition: Condition) -> Outcome:
        return await self._run(self._files.put, key, data, condition)

    async def delete(self, key: str) -> None:
        await self._run(self._files.delete, key)

    async def list_page(self, prefix: str, after: str = "", limit: int = 1000) -> Page:
        return await self._run(self._files.list_page, prefix, after, limit)

    async def sign(self, key: str, method: SignedMethod, ttl_s: int) -> str:
        raise InvalidInput("a folder has no links to sign", hint="serve its files through arco serve")

    async def make_folder(self, prefix: str) -> None:
        await self._run(self._files.make_folder, prefix)

    async def sweep_temporaries(self) -> int:
        return await self._run(self._files.sweep_temporaries)

    async def swept_unasked(self) -> int:
        return await self._run(self._files.swept_unasked)

    async def close(self) -> None:
        try:
            await self._run(self._files.close)
        finally:
            self._threads.close()
            self._folder_threads.close()


def _objection(current: FileStat | None, condition: Always | Matches) -> Lost | None:
    if isinstance(condition, Always):
        return None
    if current is None:
        return Lost("the object does not exist")
    return None if _version(current) == condition.version else Lost("the object has another version")


def _version(stat: FileStat) -> Version:
    return Version(f"{stat.mtime_ns:x}-{stat.inode:x}-{stat.size_bytes:x}")


@lru_cache(KEYS_CHECKED_KEPT_MAX)
def _info(key: str, stat: FileStat) -> ObjectInfo:
    """Kept, because the same few objects are looked at again and again, and writing a version takes longer than finding one."""
    return ObjectInfo(key, stat.size_bytes, _version(stat), stat.mtime_ns // 1_000_000)


_DEFINITE_REFUSALS = frozenset(
    {
        errno.EACCES,
        errno.EDQUOT,
        errno.EISDIR,
        errno.ENOENT,
        errno.ENOSPC,
        errno.ENOTDIR,
        errno.EPERM,
        errno.EROFS,
        errno.EXDEV,
    }
)


def _named_or_not(error: OSError) -> Unknown:
    """Giving a name failed: raise if it surely was not given, else say that nobody knows."""
    if error.errno in _DEFINITE_REFUSALS:
        raise error
    return Unknown(f"the disk failed while giving the name: {error.strerror}")


def _refused(root: str, error: OSError) -> ArcoError:
    """An error of the operating system in Arco's words. None of these leaves a new name behind."""
    # The second name is the object's where there are two; the first one is a temporary that nobody knows.
    where = clip(str(error.filename2 or error.filename or root))
    match error.errno:
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return StoreRefused(f"no permission to write {where}", hint="give this user write access to the root")
        case errno.ENOTDIR if where == clip(root):
            return StoreRefused(f"the root {where} is a file, or lies in one", hint="name a folder, or what is to be one")
        case errno.ENOTDIR | errno.EISDIR:
            return StoreRefused(f"{where} is a file and a folder at once", hint="a name is one or the other")
        case errno.ENOSPC | errno.EDQUOT:
            return Unavailable(f"no space left for {where}", hint="free some space; nothing was changed")
        case errno.EXDEV:
            return StoreRefused(f"{where} is on another file system than its root", hint="keep a root on one mount")
        case _:
            return Unavailable(f"{where}: {error.strerror}")

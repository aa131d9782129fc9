"""A disk that forgets, at a power cut, whatever was not synced.

What survives a cut is the unkindest thing the rules allow: of the names changed in a folder since it was last synced, any
may survive and any may not; of a file's bytes that were never synced, all, some or none. A name whose folder's own name did
not survive is gone too.
"""

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from arco.storage.disk import FileStat, FolderEntry
from arco_sim.faults import Fault


class PowerCutError(BaseException):
    """The machine is off. Nothing in product code may catch it."""


@dataclass(slots=True)
class _File:
    inode: int
    data: bytes
    mtime_ns: int
    synced: bool


_FOLDER = _File(0, b"", 0, synced=True)


class SimDisk:
    """One disk. `decide` is asked before every step; `below` decides what survives a cut."""

    def __init__(self, decide: Callable[[str, str], Fault], below: Callable[[int], int]) -> None:
        self._decide = decide
        self._below = below
        self._names: dict[str, _File] = {}
        self._durable: dict[str, _File] = {}
        self._unsynced: list[tuple[str, _File | None]] = []
        self._inodes = 1
        self._held: dict[int, str] = {}

    def format(self, root: str) -> None:
        """A new disk with one durable folder."""
        self._names[root] = self._durable[root] = _FOLDER

    # The port

    def write_new(self, path: str, data: bytes, mtime_ns: int, *, sync: bool) -> FileStat:
        with self._step("write", path):
            self._need_parent(path)
            if path in self._names:
                raise FileExistsError(errno.EEXIST, "exists", path)
            self._inodes += 1
            file = _File(self._inodes, data, mtime_ns, sync)
            self._name(path, file)
            return FileStat(file.inode, mtime_ns, len(data))

    def set_mtime(self, path: str, mtime_ns: int, *, sync: bool) -> None:
        with self._step("utime", path):
            file = self._names[path]
            file.mtime_ns = mtime_ns
            file.synced = sync or file.synced

    def link(self, source: str, target: str) -> None:
        with self._step("link", target):
            self._need_parent(target)
            if target in self._names:
                raise FileExistsError(errno.EEXIST, "exists", target)
            self._name(target, self._names[source])

    def rename(self, source: str, target: str) -> None:
        with self._step("rename", target):
            self._need_parent(target)
            self._name(target, self._names[source])
            self._name(source, None)

    def unlink(self, path: str) -> None:
        with self._step("unlink", path):
            if path not in self._names:
                raise FileNotFoundError(errno.ENOENT, "absent", path)
            self._name(path, None)

    def make_folder(self, path: str) -> None:
        with self._step("mkdir", path):
            if path in self._names:
                raise FileExistsError(errno.EEXIST, "exists", path)
            self._need_parent(path)
            self._name(path, _FOLDER)

    def remove_folder(self, path: str) -> None:
        with self._step("rmdir", path):
            self._name(path, None)

    def sync_folder(self, path: str) -> None:
        with self._step("sync", path):
            if path not in self._names:
                raise FileNotFoundError(errno.ENOENT, "no folder", path)
            waiting = self._unsynced
            self._unsynced = [one for one in waiting if _parent(one[0]) != path]
            for name, file in waiting:
                if _parent(name) == path:
                    self._keep(name, file)

    def stat(self, path: str) -> FileStat | None:
        file = self._names.get(path)
        return None if file is None or file is _FOLDER else FileStat(file.inode, file.mtime_ns, len(file.data))

    def is_folder(self, path: str) -> bool:
        return self._names.get(path) is _FOLDER

    def read(self, path: str, start: int = 0, length: int | None = None) -> tuple[bytes, FileStat] | None:
        stat = self.stat(path)
        if stat is None:
            return None
        data = self._names[path].data
        return data[start : None if length is None else start + length], stat

    def entries(self, path: str) -> list[FolderEntry]:
        return [
            FolderEntry(name.rpartition("/")[2], file is _FOLDER)
            for name, file in self._names.items()
            if _parent(name) == path
        ]

    @contextmanager
    def locked(self, path: str) -> Iterator[None]:
        yield

    def hold(self, path: str) -> int | None:
        if path in self._held.values():
            return None
        if path not in self._names:
            self._name(path, _File(0, b"", 0, synced=True))
        self._inodes += 1
        self._held[self._inodes] = path
        return self._inodes

    def release(self, handle: int) -> None:
        del self._held[handle]

    # The power

    def cut(self) -> None:
        """Lose the power, and start again with what survived. Locks end with the processes that held them."""
        self._held.clear()
        for name, file in self._unsynced:
            if self._below(2):
                self._keep(name, file)
        self._unsynced = []
        self._names = {name: file for name, file in self._durable.items() if self._reachable(name)}
        self._durable = dict(self._names)
        for file in self._names.values():
            if not file.synced:
                kept = self._below(3)
                file.data = (b"", file.data[: len(file.data) // 2], file.data)[kept]
                file.synced = True

    def _reachable(self, name: str) -> bool:
        parent = _parent(name)
        return parent == "" or (parent in self._durable and self._reachable(parent))

    def _name(self, path: str, file: _File | None) -> None:
        if file is None:
            self._names.pop(path, None)
        else:
            self._names[path] = file
        self._unsynced.append((path, file))

    def _keep(self, name: str, file: _File | None) -> None:
        if file is None:
            self._durable.pop(name, None)
        else:
            self._durable[name] = file

    def _need_parent(self, path: str) -> None:
        parent = _parent(path)
        if parent and parent not in self._names:
            raise FileNotFoundError(errno.ENOENT, "no folder", path)

    @contextmanager
    def _step(self, what: str, path: str) -> Iterator[None]:
        fault = self._decide(what, path)
        if fault is Fault.CRASH_BEFORE:
            raise PowerCutError
        if fault is Fault.ERROR_BEFORE:
            raise OSError(errno.EIO, "input/output error", path)
        yield
        if fault is Fault.CRASH_AFTER:
            raise PowerCutError
        if fault is Fault.ERROR_AFTER:
            raise OSError(errno.EIO, "input/output error", path)


def _parent(path: str) -> str:
    return path.rpartition("/")[0]

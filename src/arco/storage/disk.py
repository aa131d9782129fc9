"""The few file-system calls the local store is made of, as a port.

The local store's promises (no torn read, nothing acknowledged lost to a power cut) are about the order of these calls, so
they are a seam: the simulator replaces them with a disk that forgets whatever was not synced. What must never enter: policy.
Each method is one step, and says what is durable after it.
"""

import errno
import fcntl
import os
import stat as stat_module
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Protocol

import msgspec

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NEW_FILE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


class FileStat(msgspec.Struct, frozen=True, gc=False):
    """A struct, because every look at an object makes one: a frozen dataclass takes several times as long to make."""

    inode: int
    mtime_ns: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class FolderEntry:
    name: str
    is_folder: bool


class Disk(Protocol):
    """Paths are absolute. Every call is made from one thread at a time per path, or under `locked`."""

    def write_new(self, path: str, data: bytes, mtime_ns: int, *, sync: bool) -> FileStat:
        """A new file. With `sync` its bytes and times are durable; its name is not, until the folder is synced."""
        ...

    def set_mtime(self, path: str, mtime_ns: int, *, sync: bool) -> None: ...

    def link(self, source: str, target: str) -> None:
        """A second name, only if nobody has it (FileExistsError). Durable once the folder is synced."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Replace the target in one step. Durable once the folder is synced."""
        ...

    def unlink(self, path: str) -> None:
        """Remove a name (FileNotFoundError). Durable once the folder is synced."""
        ...

    def make_folder(self, path: str) -> None:
        """A new folder (FileExistsError). Durable once its parent is synced."""
        ...

    def remove_folder(self, path: str) -> None:
        """Remove an empty folder (OSError if it is not)."""
        ...

    def sync_folder(self, path: str) -> None:
        """Make the names in a folder durable."""
        ...

    def stat(self, path: str) -> FileStat | None:
        """None if no file has that name."""
        ...

    def is_folder(self, path: str) -> bool: ...

    def read(self, path: str, start: int = 0, length: int | None = None) -> tuple[bytes, FileStat] | None: ...

    def entries(self, path: str) -> list[FolderEntry]:
        """What a folder holds, in no order; nothing if there is no such folder."""
        ...

    @contextmanager
    def locked(self, path: str) -> Iterator[None]:
        """Hold the advisory lock of a lock file, made on first use; others wait. It ends with the process."""
        ...

    def hold(self, path: str) -> int | None:
        """Take a lock file's lock for good without waiting; None if somebody has it or it was swept meanwhile."""
        ...

    def release(self, handle: int) -> None: ...


class RealDisk:
    """The operating system's file system. Advisory locks are `flock`, so threads exclude each other too."""

    def write_new(self, path: str, data: bytes, mtime_ns: int, *, sync: bool) -> FileStat:
        handle = os.open(path, _NEW_FILE_FLAGS, 0o644)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(handle, view) :]
            os.utime(handle, ns=(mtime_ns, mtime_ns))
            if sync:
                os.fsync(handle)
            return _file_stat(os.fstat(handle))
        finally:
            os.close(handle)

    def set_mtime(self, path: str, mtime_ns: int, *, sync: bool) -> None:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.utime(handle, ns=(mtime_ns, mtime_ns))
            if sync:
                os.fsync(handle)
        finally:
            os.close(handle)

    def link(self, source: str, target: str) -> None:
        os.link(source, target)

    def rename(self, source: str, target: str) -> None:
        os.rename(source, target)

    def unlink(self, path: str) -> None:
        os.unlink(path)

    def make_folder(self, path: str) -> None:
        os.mkdir(path)

    def remove_folder(self, path: str) -> None:
        os.rmdir(path)

    def sync_folder(self, path: str) -> None:
        handle = os.open(path, _FOLDER_FLAGS)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def stat(self, path: str) -> FileStat | None:
        try:
            found = os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            if error.errno == errno.ELOOP:  # a link to itself is nobody's file
                return None
            raise
        if not stat_module.S_ISREG(found.st_mode):
            return None
        return FileStat(found.st_ino, found.st_mtime_ns, found.st_size)

    def is_folder(self, path: str) -> bool:
        return os.path.isdir(path)

    def read(self, path: str, start: int = 0, length: int | None = None) -> tuple[bytes, FileStat] | None:
        try:
            # Without waiting: a pipe that somebody left here would keep a reader for ever.
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            found = os.fstat(handle)
            if not stat_module.S_ISREG(found.st_mode):
                return None
            wanted = max(0, found.st_size - start) if length is None else length
            return _read_fully(handle, start, wanted), _file_stat(found)
        finally:
            os.close(handle)

    def entries(self, path: str) -> list[FolderEntry]:
        try:
            with os.scandir(path) as found:
                return [FolderEntry(entry.name, entry.is_dir(follow_symlinks=False)) for entry in found]
        except (FileNotFoundError, NotADirectoryError):
            return []

    @contextmanager
    def locked(self, path: str) -> Iterator[None]:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def hold(self, path: str) -> int | None:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Whoever sweeps removes the file while holding its lock: a lock on a removed file guards nothing.
            with suppress(FileNotFoundError):
                if os.stat(path).st_ino == os.fstat(handle).st_ino:
                    return handle
        except BlockingIOError:
            pass
        os.close(handle)
        return None

    def release(self, handle: int) -> None:
        os.close(handle)


def _file_stat(found: os.stat_result) -> FileStat:
    return FileStat(found.st_ino, found.st_mtime_ns, found.st_size)


def _read_fully(handle: int, start: int, length: int) -> bytes:
    chunks: list[bytes] = []
    while length > 0:
        chunk = os.pread(handle, length, start)
        if not chunk:
            break
        chunks.append(chunk)
        start += len(chunk)
        length -= len(chunk)
    return b"".join(chunks)

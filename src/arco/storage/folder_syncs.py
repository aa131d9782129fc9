"""Syncs of folders, shared by the threads that want the same one at the same time.

A sync makes durable every name that was given before it began. So whoever comes while one is under way cannot use it, and
waits for the next; and all who wait for the next need only one. The failure this prevents is taking the one under way for
one's own: it may have passed the folder before the name was there, and an acknowledged object is gone after a power cut.
"""

import errno
import threading
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(eq=False, slots=True)
class _Round:
    """One sync, and what came of it for everybody who waits: most of the time nobody does, and nothing is made for them."""

    ended: threading.Event | None = None
    is_done: bool = False
    failure: OSError | None = None

    def awaited(self) -> threading.Event:
        """What to wait for; made under the lock, which whoever leads takes before it says that it has ended."""
        if self.ended is None:
            self.ended = threading.Event()
        return self.ended


class FolderSyncs:
    """`sync` is one real sync of one folder. At most one a folder is under way, and at most one waits to follow it."""

    def __init__(self, sync: Callable[[str], None]) -> None:
        self._sync = sync
        self._lock = threading.Lock()
        self._under_way: dict[str, _Round] = {}
        self._following: dict[str, _Round] = {}

    def sync(self, folder: str) -> None:
        """Every name in the folder that the caller knows of is durable. Raises what the disk said to the shared sync."""
        with self._lock:
            before = self._under_way.get(folder)
            shared = None if before is None else self._following.get(folder)
            own = _Round() if shared is None else None
            if own is not None:
                (self._under_way if before is None else self._following)[folder] = own
            waits_for = shared if shared is not None else before
            ended = None if waits_for is None else waits_for.awaited()
        if ended is not None:
            ended.wait()
        if own is not None:
            self._lead(folder, own, follows=before is not None)
        elif shared is not None:
            _hear(shared, folder)

    def _lead(self, folder: str, own: _Round, *, follows: bool) -> None:
        if follows:
            with self._lock:
                # From here on nobody joins: whoever comes now gives its name too late for us.
                self._under_way[folder] = self._following.pop(folder)
        try:
            self._sync(folder)
            own.is_done = True
        except OSError as error:
            own.failure = error
            raise
        finally:
            with self._lock:
                if self._following.get(folder) is None:
                    del self._under_way[folder]
            # Who waits has asked for it under the lock, when this round was still to be found.
            if own.ended is not None:
                own.ended.set()


def _hear(shared: _Round, folder: str) -> None:
    """It has failed unless it is known that it has not."""
    if shared.failure is not None:
        # Each has an exception of its own: one object raised by many threads mixes up their traces.
        raise OSError(shared.failure.errno, shared.failure.strerror, folder) from shared.failure
    if not shared.is_done:
        raise OSError(errno.EIO, "the sync was not finished", folder)

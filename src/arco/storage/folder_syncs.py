"""Syncs of folders, shared by the threads that want the same one at the same time.

A sync makes durable every name that was given before it began. So whoever comes while one is under way cannot use it, and
waits for the next; and all who wait for the next need only one. The failure this prevents is taking the one under way for
one's own: it may have passed the folder before the name was there, and an acknowledged object is gone after a power cut.
"""

import errno
import threading
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(eq=False, slots=True)
class _Round:
    """One sync, and what came of it for everybody who waits. It has failed until it is known that it has not."""

    ended: threading.Event = field(default_factory=threading.Event)
    failure: OSError | None = field(default_factory=lambda: OSError(errno.EIO, "the sync was not finished"))


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
        if shared is not None:
            shared.ended.wait()
            if shared.failure is not None:
                # Each has an exception of its own: one object raised by many threads mixes up their traces.
                raise OSError(shared.failure.errno, shared.failure.strerror, folder) from shared.failure
        elif own is not None:
            self._lead(folder, own, before)

    def _lead(self, folder: str, own: _Round, before: _Round | None) -> None:
        if before is not None:
            before.ended.wait()
            with self._lock:
                # From here on nobody joins: whoever comes now gives its name too late for us.
                self._under_way[folder] = self._following.pop(folder)
        try:
            self._sync(folder)
            own.failure = None
        except OSError as error:
            own.failure = error
            raise
        finally:
            with self._lock:
                if self._following.get(folder) is None:
                    del self._under_way[folder]
            own.ended.set()

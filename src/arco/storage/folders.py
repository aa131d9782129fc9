"""The folders of a local root: made on the way, and durable together with what is put into them.

An object is durable when its name is, and the name of every folder above it. In which order does not matter as long as nobody
was answered: what a power cut takes away with its folder was never acknowledged. So a new folder costs no flush before the
object's own; its parent is synced beside the folder itself. A folder counts as durable only after all of that.
"""

import errno
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from arco.storage.disk import Disk
from arco.storage.folder_syncs import FolderSyncs

Together = Callable[[Sequence[Callable[[], None]]], None]
"""Runs some work to its end, at the same time where there are threads; raises if any of it failed."""


def in_turn(work: Sequence[Callable[[], None]]) -> None:
    for one in work:
        one()


class Folders:
    """What is known of the folders under one root. `sync` False: nothing is made durable, for tests and throw-away roots."""

    def __init__(self, root: str, disk: Disk, *, sync: bool, together: Together = in_turn) -> None:
        self._root = root
        self._disk = disk
        self._sync = sync
        self._syncs = FolderSyncs(disk.sync_folder)
        self._together = together
        self._durable: set[str] = set()
        self._root_was_there = False

    def need_root(self) -> None:
        """Before it is said that something is not there. Raises if the root was there once and is gone, or is no folder."""
        if self._disk.is_folder(self._root):
            self._root_was_there = True
        elif self._disk.stat(self._root) is not None:
            raise NotADirectoryError(errno.ENOTDIR, "the root is a file", self._root)
        elif self._root_was_there:
            raise FileNotFoundError(errno.ENOENT, "the root is gone", self._root)

    def make(self, folder: str) -> tuple[str, ...]:
        """Make a folder and those above it. Those of which it is not known that they are durable: `keep` must hear of them."""
        if folder in self._durable:
            return ()
        if folder == self._root:
            self._make_root()
            return ()
        above = self.make(_parent(folder))
        with suppress(FileExistsError):
            self._disk.make_folder(folder)
        return (*above, folder)

    def _make_root(self) -> None:
        self.need_root()
        with suppress(FileExistsError):
            self._disk.make_folder(self._root)
        self._root_was_there = True
        self._durable.add(self._root)

    def make_durable(self, folder: str) -> None:
        """A folder that is to stay even if nothing is put into it."""
        self._keep(self.make(folder), [])

    def keep(self, folder: str, new: Sequence[str] = ()) -> None:
        """Make durable every name in a folder, and the folders on the way to it that `make` said were new."""
        self._keep(new, [folder])

    def _keep(self, new: Sequence[str], wanted: list[str]) -> None:
        if self._sync:
            folders = dict.fromkeys([*wanted, *(_parent(one) for one in new)])
            self._together([partial(self._syncs.sync, one) for one in folders])
        self._durable.update(new)

    def forget(self) -> None:
        """Somebody removed folders under us: make them anew on the next write."""
        self._durable.clear()


def _parent(path: str) -> str:
    return path.rpartition("/")[0]

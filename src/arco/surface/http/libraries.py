"""What a server keeps open of what is folded: a library for each workspace that was asked about.

Files of a bucket are kept in one folder of this process, for all workspaces and up to one limit; it goes when the server ends.
"""

import tempfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

from arco.fold.heads import Heads
from arco.fold.receipt_events import ReceiptEvents
from arco.kernel.clock import Clock
from arco.kernel.entropy import Entropy
from arco.kernel.limits import READY_WORKSPACES_MAX
from arco.kernel.scope import Scope
from arco.read.files import Files
from arco.read.library import Library
from arco.storage.port import ObjectStore


class Libraries:
    """`folder` is the folder that the store is, if it is one: files are read there. `receipts` tell of commits to tables."""

    def __init__(
        self,
        store: ObjectStore,
        clock: Clock,
        entropy: Entropy,
        folder: Path | None,
        receipts: Callable[[Scope], ReceiptEvents],
    ) -> None:
        self._receipts = receipts
        self._store, self._clock, self._entropy = store, clock, entropy
        self._folder = folder
        self._cache: tempfile.TemporaryDirectory[str] | None = None
        self._files: Files | None = None
        self._open: OrderedDict[Scope, Library] = OrderedDict()

    def of(self, scope: Scope) -> Library:
        found = self._open.get(scope)
        if found is None:
            heads = Heads(self._store, scope, self._clock, self._entropy)
            receipts = self._receipts(scope)
            found = self._open[scope] = Library(heads, files=self._kept(), receipts=receipts)
        self._open.move_to_end(scope)
        while len(self._open) > READY_WORKSPACES_MAX:
            # Not closed: it may be answering. It goes when nobody holds it.
            self._open.popitem(last=False)
        return found

    def close(self) -> None:
        for library in self._open.values():
            library.close()
        self._open.clear()
        if self._cache is not None:
            self._cache.cleanup()
            self._cache = None
        self._files = None

    def _kept(self) -> Files:
        if self._files is None:
            if self._folder is None:
                self._cache = tempfile.TemporaryDirectory(prefix="arco-state-")
            cache = None if self._cache is None else Path(self._cache.name)
            self._files = Files(self._store, folder=self._folder, cache=cache)
        return self._files

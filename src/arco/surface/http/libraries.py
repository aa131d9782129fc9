"""What a server keeps open of what is folded: a library for each workspace that was asked about.

Files of a bucket are kept in one folder of this process, under their checksums; it goes when the server ends.
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
        self._open: OrderedDict[Scope, Library] = OrderedDict()

    def of(self, scope: Scope) -> Library:
        found = self._open.get(scope)
        if found is None:
            heads = Heads(self._store, scope, self._clock, self._entropy)
            receipts = self._receipts(scope)
            found = self._open[scope] = Library(heads, folder=self._folder, cache=self._kept_in(), receipts=receipts)
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

    def _kept_in(self) -> Path | None:
        if self._folder is not None:
            return None
        if self._cache is None:
            self._cache = tempfile.TemporaryDirectory(prefix="arco-state-")
        return Path(self._cache.name)

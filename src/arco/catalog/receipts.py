"""Receipts: one immutable record per commit, from which the event feed and recovery read.

Invariant R: the committed receipts of all commits of one swing exist before the next swing of that table. So below the head
the receipts are complete, and "has this commit landed?" can be answered long after. A receipt's name follows from the
commit's metadata location and its time alone, and its content from what the pointer says of its last swing: whoever finds one
missing can write it, byte for byte.
"""

import asyncio
from collections.abc import Callable
from functools import lru_cache

import msgspec

from arco.catalog.afterwards import together
from arco.catalog.pointer import Pointer
from arco.kernel.clock import Clock
from arco.kernel.entropy import Entropy
from arco.kernel.errors import OutcomeUnknown
from arco.kernel.ids import KeyHash
from arco.kernel.limits import FEED_WRITTEN_NAMES_MAX, KEYS_CHECKED_KEPT_MAX
from arco.kernel.scope import Scope
from arco.ledger.receipts import FORMAT, Published, Receipt, commit_key, decode_receipt, receipt_name
from arco.storage.keys import Phase
from arco.storage.port import Absent, ObjectStore, Unknown
from arco.storage.readback import put_settled


class Receipts:
    """The receipts of one workspace."""

    def __init__(self, store: ObjectStore, scope: Scope, clock: Clock, entropy: Entropy) -> None:
        self._store = store
        self._scope = scope
        self._clock = clock
        self._entropy = entropy
        # A receipt is named when it is written, and again when the next commit makes sure of it.
        self._name = lru_cache(KEYS_CHECKED_KEPT_MAX)(self._name_of)
        self._key = lru_cache(KEYS_CHECKED_KEPT_MAX)(commit_key)
        self._writing: dict[str, asyncio.Future[None]] = {}
        self.written: dict[str, None] = {}
        """Committed receipts that this process has written, oldest first: the newest of them, for who looks for new ones."""
        self.hears: Callable[[str], None] = lambda _name: None
        """Told of every committed receipt that this process has written."""

    async def ensure(self, phase: Phase, table_uuid: str, commit: Published) -> None:
        """Make sure that a receipt exists; it may be there already. Raises if the store does not say.

        Where this process is writing it right now, that write's answer is waited for: the next commit of a table comes while
        the receipt of the last is on its way, and both would say the same.
        """
        if phase is Phase.PENDING:
            # Nobody else waits for it.
            await self._write(*self._named(phase, table_uuid, commit))
        else:
            await asyncio.shield(self.begin(table_uuid, commit))

    def begin(self, table_uuid: str, commit: Published) -> "asyncio.Future[None]":
        """Begin to write a committed receipt at once, unless this process is writing it. Others may wait for the same."""
        name, receipt = self._named(Phase.COMMITTED, table_uuid, commit)
        writing = self._writing.get(name)
        if writing is None:
            writing = self._writing[name] = asyncio.ensure_future(self._write(name, receipt))
            writing.add_done_callback(lambda _: self._writing.pop(name))
        return writing

    def _named(self, phase: Phase, table_uuid: str, commit: Published) -> tuple[str, Receipt]:
        key = self._key(commit.metadata_location, commit.commit_number)
        return self._name(phase, key, commit.at_ms), Receipt(FORMAT, 1, phase, table_uuid, str(key), commit)

    async def _write(self, name: str, receipt: Receipt) -> None:
        data = msgspec.json.encode(receipt)
        outcome = await put_settled(self._store, name, data, Absent(), clock=self._clock, entropy=self._entropy)
        if isinstance(outcome, Unknown):
            raise OutcomeUnknown(
                f"the receipt of {receipt.commit.metadata_location} could not be written: {outcome.reason}"
            )
        if receipt.phase is Phase.COMMITTED:
            self.hears(name)
            self.written[name] = None
            if len(self.written) > FEED_WRITTEN_NAMES_MAX:
                self.written.pop(next(iter(self.written)))

    async def ensure_published(self, pointer: Pointer) -> None:
        """Invariant R, before anybody swings this pointer again."""
        await together(*(self.ensure(Phase.COMMITTED, pointer.table_uuid, one) for one in pointer.published))

    async def exists(self, metadata_location: str, commit_number: int, at_ms: int) -> bool:
        """Whether a commit has its committed receipt."""
        name = self._name(Phase.COMMITTED, commit_key(metadata_location, commit_number), at_ms)
        return await self._store.head(name) is not None

    def name(self, commit: Published) -> str:
        """Where the committed receipt of a commit lies."""
        return self._name(Phase.COMMITTED, commit_key(commit.metadata_location, commit.commit_number), commit.at_ms)

    async def committed(self, commit: Published) -> Receipt | None:
        """The committed receipt of a commit, if there is one."""
        return await self.find(commit.metadata_location, commit.commit_number, commit.at_ms)

    async def find(self, metadata_location: str, commit_number: int, at_ms: int) -> Receipt | None:
        """`committed`, for who knows no more of the commit than what names its receipt."""
        name = self._name(Phase.COMMITTED, commit_key(metadata_location, commit_number), at_ms)
        found = await self._store.get(name)
        return None if found is None else decode_receipt(found.data, name)

    def _name_of(self, phase: Phase, key: KeyHash, at_ms: int) -> str:
        return receipt_name(self._scope, phase, key, at_ms)

"""The versions that a table had, newest first, and how long ago each was superseded, by the store's clock.

A version's own time is when it was computed; its swing may have landed days later. What is known by the store's clock is when the
receipt of its commit was written, which is after its swing, and before the next one (invariant R). So a version was superseded
long ago if the receipt of the one after it was written long ago, or is gone: receipts outlive the grace. The version that is
current became so when its pointer was written last, at the latest.

Metadata files may be gone: clients delete what a table's log no longer names, some of them right after their commit. A version
that may be in somebody's hands and whose file is gone is not skipped: snapshots that expired with the next one were named by it,
and perhaps by no other that is left, and nothing else remembers which those were.
"""

import re
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass

from arco.catalog.pointer import Pointer
from arco.catalog.subject import Tables
from arco.iceberg.metadata import TableMetadata
from arco.kernel.limits import UPKEEP_CLOCKS_S, UPKEEP_GRACE_S, UPKEEP_HISTORY_READS_MAX
from arco.ledger.receipts import Published, Source
from arco.upkeep.sweep import Sweep

_FILE = re.compile(r"/([0-9]{5,20})-[0-9a-f]{32}(?:\.gz)?\.metadata\.json$")
KEPT_MS = (UPKEEP_GRACE_S + UPKEEP_CLOCKS_S) * 1000


class HistoryEnds(Exception):
    """A version, and all before it, cannot be looked at: its file is gone, there are more than are followed, or `why`."""

    def __init__(self, location: str, why: str = "") -> None:
        super().__init__(location)
        self.location = location
        self.why = why


async def version_at(sweep: Sweep, location: str) -> TableMetadata:
    data = await sweep.parts.files.fetch(location)
    if data is None:
        raise HistoryEnds(location)
    return Tables().decode(data, location)


async def is_missed(sweep: Sweep, uuid: str, location: str) -> bool:
    """Whether a version's file is gone though its table, as it is now, names it. Read anew: the table may have moved on."""
    pointer = await sweep.parts.pointers.read(uuid)
    if pointer is None:
        return False
    current = pointer.value.metadata_location
    log = Tables().decode(await sweep.parts.files.read(current), current).document["metadata-log"]
    named = {str(one["metadata-file"]) for one in log}
    if pointer.value.pending is not None:
        named.add(pointer.value.pending.change.metadata_location)
    return location in named and await sweep.parts.files.fetch(location) is None


def number_of(location: str) -> int | None:
    """The number of the commit that a metadata file belongs to; None if Arco did not name it."""
    found = _FILE.search(location)
    return None if found is None else int(found[1])


@dataclass(frozen=True, slots=True)
class Version:
    """A metadata file that was current, and when it was computed."""

    location: str
    at_ms: int


class Versions:
    """The versions of one table, from a pointer that was read."""

    def __init__(self, sweep: Sweep, pointer: Pointer) -> None:
        self._sweep = sweep
        self._pointer = pointer
        self.current = pointer.metadata_location

    async def in_reach(self) -> AsyncIterator[str]:
        """The versions that may still be in somebody's hands, newest first: down to the one that was current a day ago."""
        yield self.current
        async for version, successor in self._back():
            if await self.is_long_ago(successor):
                return
            yield version.location

    async def past(self) -> AsyncIterator[tuple[Version, Version]]:
        """Each version that is not current, with the one that superseded it, as far as they can be followed."""
        with suppress(HistoryEnds):
            async for version, successor in self._back():
                yield version, successor

    async def before(self, location: str) -> AsyncIterator[Version]:
        """The versions before one, newest first. Who asks says when it is enough."""
        while log := (await version_at(self._sweep, location)).document["metadata-log"]:
            for entry in reversed(log):
                yield Version(str(entry["metadata-file"]), int(entry["timestamp-ms"]))
            location = str(log[0]["metadata-file"])

    async def _back(self) -> AsyncIterator[tuple[Version, Version]]:
        """Down to the first of the table. Where a log ends, the oldest in it goes on."""
        location = self.current
        for _ in range(UPKEEP_HISTORY_READS_MAX):
            metadata = await version_at(self._sweep, location)
            after = Version(location, metadata.last_updated_ms)
            log = metadata.document["metadata-log"]
            for entry in reversed(log):
                version = Version(str(entry["metadata-file"]), int(entry["timestamp-ms"]))
                yield version, after
                after = version
            if not log or after.location == location:
                return
            location = after.location
        raise HistoryEnds(location)

    async def is_long_ago(self, version: Version) -> bool:
        """Whether a version became current so long ago that nobody reads the one before it any more."""
        return await self.is_older(version, KEPT_MS / 1000)

    async def is_older(self, version: Version, seconds: float) -> bool:
        """Whether a version became current so long ago: as long as a receipt is kept, at most."""
        sweep, number = self._sweep, number_of(version.location)
        if sweep.now_ms - version.at_ms <= seconds * 1000 or number is None:
            return False
        if version.location == self.current:
            pointer = await sweep.store.head(sweep.parts.pointers.object(self._pointer.table_uuid).key)
            return pointer is not None and sweep.now_ms - pointer.modified_ms > seconds * 1000
        commit = Published("", number, version.location, None, None, version.at_ms, Source())
        receipt = await sweep.store.head(sweep.parts.receipts.name(commit))
        return receipt is None or sweep.now_ms - receipt.modified_ms > seconds * 1000

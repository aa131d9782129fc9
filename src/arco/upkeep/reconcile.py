"""The reconciler: no table waits for a transaction that nobody finished, every table's last commit has its receipt, and the
table's own log agrees with the receipts.

Invariant R makes receipts complete below the head; only those of a table's last swing may be missing, if its process died.
They are written here, so that the feed of commits does not wait for the table's next one. What a transaction left in a pointer
is found there however long ago its process died: `transactions.py` looks at young records alone. The log of each table's
metadata says what was committed lately: a commit in it without a receipt is a discrepancy, which is told and never guessed
away. Nothing is listed: names lead to pointers, pointers to metadata, metadata to receipts.
"""

import re

from arco.catalog.model import Entry, Format, Kind
from arco.catalog.pointer import Pointer
from arco.catalog.subject import Tables
from arco.kernel.errors import ArcoError, NotFound
from arco.kernel.limits import TRANSACTION_STALE_S, UPKEEP_CLOCKS_S, UPKEEP_GRACE_S
from arco.storage.cas import Held
from arco.txn.finishing import finish_pointer
from arco.upkeep.sweep import Sweep

_STALE_S = TRANSACTION_STALE_S + UPKEEP_CLOCKS_S
_FILE = re.compile(r"/([0-9]{5,20})-[0-9a-f]{32}(?:\.gz)?\.metadata\.json$")


async def collect(sweep: Sweep) -> None:
    names = (await sweep.parts.tier1.current()).names
    if names.reserved and not sweep.dry_run:
        await sweep.parts.committer.bring_in_names()
        sweep.tally.changed += len(names.reserved) - len(sweep.parts.tier1.names.reserved)
    for entry in list(names.entries.values()):
        if entry.format is Format.ICEBERG:
            sweep.tally.looked_at += 1
            await _reconcile(sweep, entry)


async def _reconcile(sweep: Sweep, entry: Entry) -> None:
    try:
        pointer, finished = await _finished(sweep, entry.uuid)
        if pointer is None or pointer.value.tombstone is not None:
            sweep.keep("being dropped or registered: whoever meets it finishes it")
            return
        completed = await _complete(sweep, pointer.value)
        missing = await _missing(sweep, pointer.value) if entry.kind is Kind.TABLE else []
    except ArcoError as error:
        sweep.keep("it cannot be read")
        sweep.tally.trouble.append(error.one_line())
        return
    for number in missing:
        said = f"commit {number} of {entry.full_name} is in its metadata log and has no receipt"
        sweep.tally.trouble.append(f"{said}; run arco verify --deep")
    sweep.tally.changed += completed + finished
    sweep.keep("its receipts do not agree with its log" if missing else "in order")


async def _finished(sweep: Sweep, uuid: str) -> tuple[Held[Pointer] | None, bool]:
    """A pointer as it counts, written so where a transaction left a change in it: and whether it was."""
    parts = sweep.parts
    pointer = await parts.pointers.object(uuid).read()
    pending = None if pointer is None else pointer.value.pending
    if pending is None:
        return pointer, False
    if sweep.dry_run:
        return await parts.pointers.read(uuid), False
    if sweep.now_ms - pending.prepared_ms > _STALE_S * 1000:
        # Sent back if it is undecided; a younger one may still decide.
        await parts.pointers.settled(uuid)
    finished = await finish_pointer(parts, uuid, pending.tx_id)
    return await parts.pointers.read(uuid), finished


async def _complete(sweep: Sweep, pointer: Pointer) -> int:
    """Write what is missing of the last swing; how many there were."""
    receipts = sweep.parts.receipts
    absent = [
        one for one in pointer.published if not await receipts.exists(one.metadata_location, one.commit_number, one.at_ms)
    ]
    if absent and not sweep.dry_run:
        await receipts.ensure_published(pointer)
    return len(absent)


async def _missing(sweep: Sweep, pointer: Pointer) -> list[int]:
    """The commits of the last day that are in the table's log and have no receipt. Older ones may have been collected."""
    parts, location = sweep.parts, pointer.metadata_location
    try:
        metadata = Tables().decode(await parts.files.read(location), location)
    except NotFound as gone:
        raise NotFound(f"{location} is gone", hint="run arco verify") from gone
    missing = []
    for logged in metadata.document.get("metadata-log", []):
        file, at_ms = str(logged["metadata-file"]), int(logged["timestamp-ms"])
        number = _FILE.search(file)
        if number is None or sweep.now_ms - at_ms > UPKEEP_GRACE_S * 1000:
            continue
        if not await parts.receipts.exists(file, int(number[1]), at_ms):
            missing.append(int(number[1]))
    return missing

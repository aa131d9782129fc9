"""The reconciler: no table waits for a transaction that nobody finished, every table's last commit has its receipt, and the
table's own log agrees with the receipts.

Invariant R makes receipts complete below the head; only those of a table's last swing may be missing, if its process died.
They are written here, so that the feed of commits does not wait for the table's next one. What a transaction left in a pointer
is found there however long ago its process died: `transactions.py` looks at young records alone. The log of each table's
metadata says what was committed since the last pass that found everything in order, however long ago that was: a commit in it
without a receipt is a discrepancy, which is told, in every pass, and never guessed away. Nothing is listed: names lead to
pointers, pointers to metadata, metadata to receipts.
"""

from dataclasses import dataclass

from arco.catalog.model import Entry, Format, Kind
from arco.catalog.pointer import Pointer
from arco.catalog.subject import Tables
from arco.kernel.errors import ArcoError, NotFound
from arco.kernel.limits import TRANSACTION_STALE_S, UPKEEP_CLOCKS_S, UPKEEP_GRACE_S
from arco.storage.cas import Held
from arco.storage.keys import UpkeepKey, Word
from arco.storage.port import Always
from arco.txn.finishing import finish_pointer
from arco.upkeep.sweep import Sweep
from arco.upkeep.versions import number_of

_STALE_S = TRANSACTION_STALE_S + UPKEEP_CLOCKS_S
_YOUNG_MS = UPKEEP_GRACE_S * 1000
_DONE = b'{"format":"arco.upkeep_done","format_version":1}'


async def collect(sweep: Sweep) -> None:
    names = (await sweep.parts.tier1.current()).names
    if names.reserved and not sweep.dry_run:
        await sweep.parts.committer.bring_in_names()
        sweep.tally.changed += len(names.reserved) - len(sweep.parts.tier1.names.reserved)
    since_ms = await _last_pass_ms(sweep)
    for entry in list(names.entries.values()):
        if entry.format is Format.ICEBERG:
            sweep.tally.looked_at += 1
            await _reconcile(sweep, entry, since_ms)
    if not sweep.dry_run and not sweep.tally.trouble:
        await sweep.store.put(_note(sweep), _DONE, Always())


async def _reconcile(sweep: Sweep, entry: Entry, since_ms: int) -> None:
    try:
        pointer, finished = await _finished(sweep, entry.uuid)
        if pointer is None or pointer.value.tombstone is not None:
            sweep.keep("being dropped or registered: whoever meets it finishes it")
            return
        completed = await _complete(sweep, pointer.value)
        missing = await _missing(sweep, entry, pointer.value, since_ms) if entry.kind is Kind.TABLE else []
    except ArcoError as error:
        sweep.keep("it cannot be read")
        sweep.tell(error)
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


async def _missing(sweep: Sweep, entry: Entry, pointer: Pointer, since_ms: int) -> list[int]:
    """The commits since the last pass that are in the table's log and have no receipt.

    Receipts are collected oldest first, and none within a day: so one that is gone is missing if it is younger than that, or if
    one of a commit before it is still there.
    """
    logged = await _logged(sweep, entry, pointer.metadata_location)
    missing: list[int] = []
    for place, one in enumerate(logged):
        if one.at_ms < since_ms or await one.has_receipt(sweep):
            continue
        if await one.is_young(sweep) or any([await older.has_receipt(sweep) for older in logged[:place]]):
            missing.append(one.number)
    return missing


@dataclass(frozen=True, slots=True)
class _Logged:
    """A commit as the log of a table's metadata has it."""

    number: int
    location: str
    at_ms: int

    async def has_receipt(self, sweep: Sweep) -> bool:
        return await sweep.parts.receipts.exists(self.location, self.number, self.at_ms)

    async def is_young(self, sweep: Sweep) -> bool:
        """Whether its receipt is too young to be collected. A client whose clock is ahead takes the time of its table with it, so
        the store is asked when the file was written."""
        if sweep.now_ms - self.at_ms > _YOUNG_MS:
            return False
        written_ms = await sweep.parts.files.written_ms(self.location)
        return written_ms is None or sweep.now_ms - written_ms <= _YOUNG_MS


async def _logged(sweep: Sweep, entry: Entry, location: str) -> list[_Logged]:
    """The commits in a table's log that were made here: what was before its registration has its receipts where it was made."""
    try:
        metadata = Tables().decode(await sweep.parts.files.read(location), location)
    except NotFound as gone:
        raise NotFound(f"{location} is gone", hint="run arco verify") from gone
    found = [(str(one["metadata-file"]), int(one["timestamp-ms"])) for one in metadata.document.get("metadata-log", [])]
    start = None if entry.start is None else entry.start.metadata_location
    begun = [place for place, (file, _) in enumerate([*found, (location, 0)]) if file == start]
    here = found[begun[-1] + 1 :] if begun else found
    return [_Logged(number, file, at_ms) for file, at_ms in here if (number := number_of(file)) is not None]


async def _last_pass_ms(sweep: Sweep) -> int:
    """When everything was last found in order, a day earlier: clocks differ, and swings land late. 0 if never."""
    info = await sweep.store.head(_note(sweep))
    return 0 if info is None else info.modified_ms - UPKEEP_GRACE_S * 1000


def _note(sweep: Sweep) -> str:
    return str(UpkeepKey(sweep.scope, Word("reconcile")))

"""Every Iceberg table and view: its pointer, the metadata file it points to, the receipts of its last swing.

A name and its pointer may be out of step for a moment, because a drop, a restore or a registration is under way or its writer
died: whoever loads the table finishes it (`standing.py`). A transaction may not be decided yet: the next writer settles it.
That is no damage, and is counted as being under way.
"""

from typing import Any

from arco.catalog.catalog import Catalog
from arco.catalog.model import Entry, Kind
from arco.catalog.pointer import Pending, Pointer
from arco.catalog.spelling import spelled
from arco.catalog.standing import in_step
from arco.catalog.subject import Subject
from arco.kernel.errors import AskOperator, InvalidInput, TooLarge
from arco.ledger.receipts import commit_key
from arco.storage.cas import Held
from arco.storage.findings import Report, way_out

_RESTORE = "restore it from a backup or a copy of the root"
RECORD = "restore the record from a backup or a copy of the root, and nothing else: what it decides about is whole"
_NEWER = "restore a newer copy of the record, and nothing else: what it decides about is whole"


class TableCheck:
    """One look at one table. The pointers that were read are kept, for whoever looks at the receipts after."""

    def __init__(self, catalog: Catalog, report: Report) -> None:
        self._catalog = catalog
        self._ws = catalog.parts
        self._report = report
        self.pointers: dict[str, Pointer] = {}

    async def check(self, entry: Entry, *, dropped: bool) -> None:
        """Look at a table that has a name, or that was dropped and can be restored."""
        self._report.count("dropped" if dropped else f"iceberg_{entry.kind}s")
        called = f"{'dropped ' if dropped else ''}{entry.kind} {spelled(entry.namespace, entry.name)}"
        try:
            pointer = await self._ws.pointers.read(entry.uuid)
        except AskOperator as error:
            await self._unreadable(entry, called, error)
            return
        if pointer is None:
            await self._without_pointer(entry, called)
            return
        self.pointers[entry.uuid] = pointer.value
        if pointer.value.kind is not entry.kind:
            what = f"the pointer of {called} is that of a {pointer.value.kind}"
            self._find("pointer_of_another", entry, what, _RESTORE)
            return
        if not dropped:
            self._count_steps(entry, pointer)
        await self._metadata(entry, called, pointer.value.metadata_location, pointer.value)
        await self._receipts(entry, called, pointer.value)

    async def _unreadable(self, entry: Entry, called: str, error: AskOperator) -> None:
        """Which object keeps a pointer from being read as it counts: itself, or the record of the transaction it waits for.

        A pointer that is whole must not be restored for a record's sake: that would set its table back.
        """
        try:
            held = await self._ws.pointers.object(entry.uuid).read()
        except AskOperator as damage:
            what = f"the pointer of {called} cannot be read ({damage.message})"
            self._find("pointer_unreadable", entry, what, way_out(damage, _RESTORE))
            return
        pending = None if held is None else held.value.pending
        if pending is None:
            self._report.note(f"{called} was not looked at: others changed it meanwhile")
        elif pending.record != self._ws.records.key(pending.tx_id):
            self._find("pointer_unreadable", entry, f"the pointer of {called} cannot be right ({error.message})", _RESTORE)
        else:
            await self._held_up(called, pending, error)

    async def _held_up(self, called: str, pending: Pending, error: AskOperator) -> None:
        code, what, todo = "transaction_set_back", f"{called} is ahead of its transaction ({error.message})", _NEWER
        try:
            await self._ws.records.read(pending.tx_id)
        except AskOperator as damage:
            code, todo = "transaction_unreadable", way_out(damage, RECORD)
            what = f"{called} cannot be read before the record of its transaction can ({damage.message})"
        self._report.find(code, pending.record, what, todo)

    async def _without_pointer(self, entry: Entry, called: str) -> None:
        if entry.start is None:
            self._find("pointer_missing", entry, f"{called} has no pointer", _RESTORE)
            return
        self._report.count("under_way")
        await self._metadata(entry, called, entry.start.metadata_location, None)

    def _count_steps(self, entry: Entry, pointer: Held[Pointer]) -> None:
        if not in_step(entry, pointer) or pointer.value.pending is not None:
            self._report.count("under_way")

    async def _metadata(self, entry: Entry, called: str, location: str, pointer: Pointer | None) -> None:
        try:
            data = await self._ws.files.find(location)
        except InvalidInput:
            hint = "verify with --allow-location for its folder, or with the --root that it was made under"
            self._find(
                "metadata_out_of_reach", entry, f"the metadata of {called} lies outside the root, at {location}", hint
            )
            return
        if data is None:
            self._find("metadata_missing", entry, f"the metadata file of {called} is missing ({location})", _RESTORE)
            return
        subject = self._subject(entry)
        try:
            metadata = subject.decode(data, location)
        except (AskOperator, TooLarge) as error:
            what = f"the metadata of {called} cannot be read ({error.message})"
            self._find("metadata_unreadable", entry, what, way_out(error, _RESTORE))
            return
        if subject.identity(metadata) != entry.uuid:
            what = f"the metadata of {called} is that of {subject.identity(metadata)} ({location})"
            self._find("metadata_of_another", entry, what, _RESTORE)
        elif pointer is not None:
            self._compare(entry, called, pointer, subject, metadata)

    def _compare(
        self, entry: Entry, called: str, pointer: Pointer, subject: Subject[Any, Any, Any], metadata: object
    ) -> None:
        """What a pointer repeats of its metadata must be what the metadata says."""
        facts = subject.facts(metadata)
        said = (pointer.snapshot_id, pointer.refs, pointer.last_sequence_number)
        if said != (facts.snapshot_id, facts.refs, facts.last_sequence_number):
            what = f"the pointer of {called} says snapshot {pointer.snapshot_id}, its metadata {facts.snapshot_id} or other refs"
            self._find(
                "pointer_contradicts_metadata", entry, what, "report this: it is a bug, or one of the two was altered"
            )

    async def _receipts(self, entry: Entry, called: str, pointer: Pointer) -> None:
        """Of the last swing. They are written after it, by whoever comes next at the latest; a tombstone comes next."""
        for commit in pointer.published:
            name = self._ws.receipts.name(commit)
            try:
                receipt = await self._ws.receipts.committed(commit)
            except AskOperator as error:
                self._report.find("receipt_unreadable", name, error.message, way_out(error, _RESTORE))
                continue
            if receipt is None and pointer.tombstone is None:
                self._report.count("receipts_to_be_written")
            elif receipt is None:
                what = f"the receipt of commit {commit.commit_number} of {called} is missing ({name})"
                self._report.find("receipt_missing", name, what, _RESTORE)
            elif (receipt.table_uuid, receipt.commit, receipt.commit_key) != (
                entry.uuid,
                commit,
                commit_key(commit.metadata_location, commit.commit_number),
            ):
                what = f"the receipt of commit {commit.commit_number} of {called} is not what its pointer says ({name})"
                self._report.find("receipt_altered", name, what, _RESTORE)

    def _subject(self, entry: Entry) -> Subject[Any, Any, Any]:
        return self._catalog.views.subject if entry.kind is Kind.VIEW else self._catalog.tables.subject

    def _find(self, code: str, entry: Entry, what: str, todo: str) -> None:
        self._report.find(code, spelled(entry.namespace, entry.name), what, todo)

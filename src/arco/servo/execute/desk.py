"""The quarantine desk: what was held back is published after all, or given up, once, by whoever decides first.

    claim the decision → change the table in one commit → tell the ledger → call it done

A release and a discard both take the branch away, in the same commit that does the rest, and both assert that it is there as it
was: so of any number of people and of processes that were thought dead exactly one does anything. Whoever comes after finds what
was done: the materialization is in main's history, or the branch is gone. A process that dies after its commit leaves the claim;
the next who asks for the same tells the ledger, in the words of the first, under the same ids.

A branch that main leads to becomes main. Where main went on elsewhere, in partitions that the output does not touch, its files
are published on top as a new snapshot; where it went on in the same ones, the release is refused. Nothing is deleted here.

Rows that were set aside have no branch. They are added to the partitions that they were set aside from, if nobody published those
since, as a materialization of its own whose id follows from the decision: so whoever comes second finds it in main's history.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from pyiceberg.manifest import ManifestContent, ManifestEntry, ManifestEntryStatus

from arco.catalog.catalog import Catalog
from arco.catalog.model import Levels
from arco.iceberg import changes
from arco.iceberg.metadata import MAIN, TableMetadata
from arco.iceberg.requests import CommitTable
from arco.iceberg.shape import JsonObject
from arco.kernel.crash_points import reach
from arco.kernel.errors import Conflict, InvalidInput, NotFound, OutcomeUnknown, PartitionsTouched
from arco.kernel.ids import EventId, MaterializationId
from arco.kernel.limits import PUBLISH_REBASES_MAX
from arco.ledger.drafts import Draft as EventDraft
from arco.ledger.execution_events import (
    MATERIALIZATION_COMPLETED,
    OUTPUT_DISCARDED,
    OUTPUT_RELEASED,
    OutputDiscarded,
    OutputReleased,
)
from arco.ledger.payloads import SERVO, derived_event_id
from arco.ledger.receipts import Source, SourceKind
from arco.servo.execute.desk_decisions import DeskDecision, Stage, Verdict, claimed, decision_object
from arco.servo.execute.file_access import file_io, plain_path
from arco.servo.execute.held import ROWS, Held
from arco.servo.execute.publish import Publication, Publisher, parent_of, published_before
from arco.servo.execute.released_rows import read_rows, write_rows
from arco.servo.execute.snapshots import Drafting, Replay, applied, needed, place_of
from arco.servo.execute.standing import ancestors
from arco.servo.execute.table_files import TableFiles
from arco.servo.execute.table_state import state_of
from arco.servo.sdk.definitions import WriteMode
from arco.servo.sdk.tables import QUARANTINE_SUFFIX
from arco.storage.keys import Domain


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was done, by whom: perhaps by somebody else, before."""

    decision: DeskDecision
    snapshot_id: int | None = None
    snapshot: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class _Branch:
    """A branch as it was found, beside main."""

    table: TableMetadata
    name: str
    snapshot: JsonObject
    main: int | None

    @property
    def leads_on(self) -> bool:
        """Whether main leads to the branch, so that nothing is lost if the branch becomes main."""
        parents = {one["snapshot-id"] for one in ancestors(self.table, self.name)[1:]}
        return self.main in parents if self.main is not None else True

    @property
    def requirements(self) -> tuple[changes.TableRequirement, ...]:
        return (
            changes.AssertTableUuid(self.table.table_uuid),
            changes.AssertRefSnapshotId(self.name, self.snapshot["snapshot-id"]),
            changes.AssertRefSnapshotId(MAIN, self.main),
        )


class Desk:
    """The desk of one workspace."""

    def __init__(self, catalog: Catalog, principal: str, options: Mapping[str, str] | None = None) -> None:
        """`options`: those of the root's store, for the files of rows."""
        self._catalog = catalog
        self._options = options or {}
        self._source = Source(kind=SourceKind.SERVO, principal=principal)
        self._files = TableFiles(catalog.parts)
        self._publisher = Publisher(catalog, self._source)

    async def decide(self, one: Held, verdict: Verdict, who: str, why: str) -> Outcome:
        """Release or discard. Done before is done; what another began is finished in their name."""
        if not why.strip():
            raise InvalidInput("a decision without a reason", hint='say why: --why "the source was mended"')
        if one.what == ROWS and verdict is Verdict.RELEASE:
            _refuse_what_cannot_be_added(one)
        parts = self._catalog.parts
        record = decision_object(parts, one.materialization_id, one.what)
        wanted = DeskDecision(verdict=verdict, who=who, why=why, at_ms=parts.clock.now_ms())
        decision = (await record.update(lambda now: claimed(now, wanted))).value
        reach("quarantine.claimed")
        try:
            outcome = await self._done(one, decision)
        except (PartitionsTouched, NotFound) as error:
            refused = msgspec.structs.replace(decision, stage=Stage.REFUSED, message=error.message)
            await record.update(lambda now: refused if now is None or now.value.stage is not Stage.DONE else now.value)
            raise
        reach("quarantine.committed")
        if decision.stage is not Stage.DONE:
            await self._tell(one, outcome)
            reach("quarantine.told")
            done = msgspec.structs.replace(decision, stage=Stage.DONE)
            await record.update(lambda _: done)
        return outcome

    async def _done(self, one: Held, decision: DeskDecision) -> Outcome:
        """The table as the decision wants it, whoever made it so."""
        if one.what == ROWS:
            return await self._rows_released(one, decision) if decision.verdict is Verdict.RELEASE else Outcome(decision)
        for _ in range(PUBLISH_REBASES_MAX):
            levels, name, table = await self._table(one)
            found = None if table is None else _branch(table, one)
            if found is None:
                return _found_done(one, decision, table)
            try:
                await self._committed(one, decision.verdict, levels, name, found)
            except PartitionsTouched:
                raise
            except (Conflict, OutcomeUnknown):
                pass  # the table knows: the branch is there, or it is not
        raise OutcomeUnknown(f"{one.asset}: others commit to this table all the time", hint="try again")

    async def _rows_released(self, one: Held, decision: DeskDecision) -> Outcome:
        """Rows in the partitions that they were set aside from, added by whoever comes first."""
        levels, name, table = await self._table(one)
        added = _released_as(one, decision)
        if table is not None and decision.stage is not Stage.DONE and published_before(table, added) is None:
            since = published_before(table, one.materialization_id)
            if since is None:
                raise NotFound(f"{one.asset}: what these rows were set aside from is not there", hint="arco run makes it")
            table = await self._rows_added(one, decision, levels, name, table, since)
        landed = None if table is None else published_before(table, added)
        if table is None or landed is None:
            return Outcome(decision)
        return Outcome(decision, landed, state_of(table, snapshot_id=landed).snapshot)

    async def _rows_added(
        self, one: Held, decision: DeskDecision, levels: Levels, name: str, table: TableMetadata, since: int
    ) -> TableMetadata:
        io, aside = file_io(self._options), await self._catalog.tables.load(levels, f"{name}{QUARANTINE_SUFFIX}")
        rows = read_rows(aside[1].metadata, io, one.run_id or "", one.task_id or "")
        files = write_rows(rows, table, io, self._catalog.parts.entropy)
        own = await self._own_entries(table, since)
        places = frozenset(place_of(file) for file in (*files, *(entry.data_file for entry in own)))
        publication = Publication(
            levels=levels,
            name=name,
            base=table,
            files=files,
            change=Replay(frozenset(), places),
            run_id=one.run_id or "",
            task_id=f"{one.task_id}/released",
            materialization_id=_released_as(one, decision),
            attempt=1,
            at_ms=self._catalog.parts.clock.now_ms(),
            facts={
                "arco.asset": one.asset,
                "arco.asset-id": one.asset_id,
                "arco.released-rows": one.materialization_id,
                "arco.released-by": decision.who,
            },
        )
        await self._publisher.refuse_passed(publication, table, since)
        reach("quarantine.rows_written")
        return (await self._publisher.publish(publication)).metadata

    async def _table(self, one: Held) -> tuple[Levels, str, TableMetadata | None]:
        """The table that holds it, whatever it is called now."""
        names = (await self._catalog.parts.tier1.current()).names
        place = next((at for at, entry in names.entries.items() if str(entry.uuid) == one.table_uuid), None)
        if place is None:
            namespace, _, last = one.asset.rpartition(".")
            place = (tuple(namespace.split(".")), last)
        try:
            _, base = await self._catalog.tables.load(*place)
        except NotFound:
            return *place, None
        return *place, base.metadata

    async def _committed(self, one: Held, verdict: Verdict, levels: Levels, name: str, found: _Branch) -> None:
        gone = changes.RemoveSnapshotRef(found.name)
        if verdict is Verdict.DISCARD:
            await self._commit(levels, name, CommitTable(None, found.requirements[:2], (gone,)))
            return
        _refuse_other_columns(one, found)
        if found.leads_on:
            forward = changes.SetSnapshotRef(MAIN, found.snapshot["snapshot-id"], "branch")
            updates = (*_schema_of(found), forward, gone)
            await self._commit(levels, name, CommitTable(None, found.requirements, updates))
            return
        await self._replayed(one, levels, name, found)

    async def _replayed(self, one: Held, levels: Levels, name: str, found: _Branch) -> None:
        """What the branch did, on top of what main is by now."""
        table, parts = found.table, self._catalog.parts
        entries = await self._own_entries(table, found.snapshot["snapshot-id"])
        added = [entry.data_file for entry in entries if entry.status is ManifestEntryStatus.ADDED]
        gone = [entry.data_file for entry in entries if entry.status is ManifestEntryStatus.DELETED]
        change = Replay(
            frozenset(plain_path(file.file_path) for file in gone), frozenset(place_of(file) for file in (*added, *gone))
        )
        publication = Publication(
            levels=levels,
            name=name,
            base=table,
            files=tuple(added),
            change=change,
            run_id=one.run_id or "",
            task_id=one.task_id or "",
            materialization_id=MaterializationId(one.materialization_id),
            attempt=0,
            at_ms=0,
        )
        await self._publisher.refuse_passed(publication, table, found.snapshot.get("parent-snapshot-id"))
        parent = parent_of(table, MAIN)
        manifests = await self._files.manifests(parent)
        drawn = int.from_bytes(parts.entropy.token_bytes(8), "big") >> 1 or 1
        drafting = Drafting(table, parent, drawn, f"{one.materialization_id}-released-{drawn:016x}")
        own = await self._files.entries(needed(change, manifests, table))
        after = applied(drafting, change, manifests, own, added)
        facts = {word: text for word, text in found.snapshot["summary"].items() if word.startswith("arco.")}
        draft = drafting.draft(after, added, facts, max(parts.clock.now_ms(), table.last_updated_ms))
        await self._files.write(draft.files)
        updates = (
            changes.AddSnapshot(draft.snapshot),
            changes.SetSnapshotRef(MAIN, drawn, "branch"),
            changes.RemoveSnapshotRef(found.name),
        )
        await self._commit(levels, name, CommitTable(None, found.requirements, updates))

    async def _own_entries(self, table: TableMetadata, snapshot_id: int) -> list[ManifestEntry]:
        """What one snapshot added and removed."""
        state = state_of(table, snapshot_id=snapshot_id)
        manifests = [one for one in await self._files.manifests(state) if one.added_snapshot_id == state.snapshot_id]
        if any(one.content != ManifestContent.DATA for one in manifests):
            raise PartitionsTouched(
                "what was held back has files of deletes, and main went on meanwhile",
                hint="discard it, and make it again: arco run",
            )
        entries = await self._files.entries(manifests)
        return [entry for some in entries.values() for entry in some]

    async def _commit(self, levels: Levels, name: str, request: CommitTable) -> None:
        key = self._catalog.parts.markers.request_key(None, "quarantine", "")
        await self._catalog.table_commits.commit(levels, name, request, key, self._source)

    async def _tell(self, one: Held, outcome: Outcome) -> None:
        parts = self._catalog.parts
        ledger = parts.appender()
        try:
            await ledger.append(Domain.EXECUTION, _events(one, outcome))
        finally:
            await ledger.close()


def _released_as(one: Held, decision: DeskDecision) -> MaterializationId:
    """What rows are published as that somebody releases: the same for whoever finishes it."""
    return MaterializationId(derived_event_id(decision.at_ms, one.materialization_id, one.what, "released"))


def _refuse_what_cannot_be_added(one: Held) -> None:
    if one.completed is None:
        raise InvalidInput(
            "what these rows were set aside from is not published", hint="release that first: arco quarantine list"
        )
    mode = str(one.completed.get("mode", WriteMode.REPLACE))
    if mode in {WriteMode.APPEND, WriteMode.MERGE}:
        # Appended later, rows would be read again by who follows changes; merged ones may be there in another version.
        raise InvalidInput(
            f"{one.asset} is written by {mode}, and rows cannot be added to what it was",
            hint="mend the source or the check, then arco run",
        )


def _with_rows(completed: dict[str, Any], added: dict[str, str]) -> dict[str, Any]:
    """What an output is with the rows that were added to it, as the snapshot has counted them."""
    counted = {"rows": "added-records", "files": "added-data-files", "bytes": "added-files-size"}
    return {word: int(completed[word]) + int(added.get(theirs, 0)) for word, theirs in counted.items()} | {"counts": []}


def _branch(table: TableMetadata, one: Held) -> _Branch | None:
    ref = None if one.branch is None else table.refs.get(one.branch)
    if ref is None or one.branch is None:
        return None
    main = table.refs.get(MAIN)
    snapshot = state_of(table, snapshot_id=int(ref["snapshot-id"])).snapshot
    assert snapshot is not None  # noqa: S101 - a ref names a snapshot
    return _Branch(table, one.branch, snapshot, None if main is None else int(main["snapshot-id"]))


def _found_done(one: Held, decision: DeskDecision, table: TableMetadata | None) -> Outcome:
    """What is so: by our own commit, by an earlier try of this decision, or because the table is gone."""
    landed = None if table is None else published_before(table, one.materialization_id)
    if landed is not None and table is not None:
        if decision.verdict is Verdict.DISCARD:
            raise PartitionsTouched(f"{one.asset}: it is published", hint="arco history shows when, and by whom")
        return Outcome(decision, landed, state_of(table, snapshot_id=landed).snapshot)
    if decision.verdict is Verdict.RELEASE:
        raise NotFound(
            f"{one.asset}: the branch {one.branch or ''} is gone, and with it what was held", hint="make it again: arco run"
        )
    return Outcome(decision)


def _schema_of(found: _Branch) -> tuple[changes.TableUpdate, ...]:
    wanted = found.snapshot.get("schema-id")
    return () if wanted in {None, found.table.current_schema_id} else (changes.SetCurrentSchema(int(wanted)),)


def _refuse_other_columns(one: Held, found: _Branch) -> None:
    """An output with other columns than the table has fits only where nothing was published since."""
    if _schema_of(found) and found.main != found.snapshot.get("parent-snapshot-id"):
        raise PartitionsTouched(
            f"{one.asset}: the output has other columns than the table, which went on meanwhile",
            hint="discard it, and make it again: arco run",
        )


def _events(one: Held, outcome: Outcome) -> list[EventDraft]:
    """What the ledger is told. The ids follow from the decision: told twice, they are one."""
    decision = outcome.decision
    common: dict[str, Any] = {
        "materialization_id": one.materialization_id,
        "asset": one.asset,
        "asset_id": one.asset_id,
        "what": one.what,
        "who": decision.who,
        "why": decision.why,
        "settled_ms": decision.at_ms,
        "run_id": one.run_id,
        "task_id": one.task_id,
        "partitions": one.partitions,
        "branch": one.branch,
    }
    if decision.verdict is Verdict.DISCARD:
        return [_draft(one, decision, OUTPUT_DISCARDED, OutputDiscarded(**common).data())]
    released = OutputReleased(**common, snapshot_id=outcome.snapshot_id)
    told = [_draft(one, decision, OUTPUT_RELEASED, released.data())]
    if one.completed is not None:
        snapshot = outcome.snapshot or {}
        as_it_is = {"snapshot_id": outcome.snapshot_id, "sequence_number": snapshot.get("sequence-number")}
        if one.what == ROWS:
            as_it_is |= _with_rows(one.completed, snapshot.get("summary") or {})
            as_it_is["materialization_id"] = str(_released_as(one, decision))
        published = {**one.completed, **as_it_is, "published_ms": decision.at_ms}
        told.insert(0, _draft(one, decision, MATERIALIZATION_COMPLETED, published))
    return told


def _draft(one: Held, decision: DeskDecision, kind: Any, data: dict[str, Any]) -> EventDraft:
    event_id = derived_event_id(decision.at_ms, one.materialization_id, one.what, kind)
    return EventDraft(type=kind, source=SERVO, subject=one.asset, id=EventId(event_id), data=data, streamid=one.run_id)

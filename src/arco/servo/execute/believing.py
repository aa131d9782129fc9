"""What a worker believes of what the process of a task says it wrote: the names of files in the attempt's own directory, no more.

The process runs code that nobody here vouches for. It names files; that they are there, how large they are, which partition they
lie in, how many rows and what bounds they have is looked up here, in the store and in their footers. What an output does to its
table follows from the asset. So the worst that a task can publish is a wrong output of its own.

What must never enter: a number, a path outside the attempt's directory, or a change of the table on the word of the process.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
from pyiceberg.expressions import BooleanExpression
from pyiceberg.io import FileIO

from arco.iceberg.locations import is_winding
from arco.iceberg.metadata import TableMetadata
from arco.iceberg.schemas import checked
from arco.iceberg.shape import JsonObject
from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip
from arco.kernel.limits import TASK_WORD_CHARS_MAX
from arco.quality.checks import Check
from arco.quality.results import CheckResult, unmeasured
from arco.servo.execute.computing import Assignment, Computed, Stored
from arco.servo.execute.data_files import NewFile, Written, describe
from arco.servo.execute.file_access import files_below, plain_path
from arco.servo.execute.output_schema import with_new_ids
from arco.servo.execute.outputs import refuse_other_columns
from arco.servo.execute.partition_text import kinds_of, parse_folders
from arco.servo.execute.proved import proved
from arco.servo.execute.replacing import appended, own_rows, replaces_all
from arco.servo.execute.scans import plan_scan
from arco.servo.execute.snapshots import Change, Matching, Replace, ReplaceAll, Rewrite, refuse_outsiders
from arco.servo.execute.target import Target, kept_beside
from arco.servo.execute.task_messages import Files, Made
from arco.servo.sdk.definitions import InputKind, WriteMode

_EXTERNAL_MAX = 1000


def computed_of(said: Made, given: Assignment) -> Computed:
    """What the code made, as far as it can be so."""
    columns = _columns(said.columns)
    refuse_other_columns(given.asset, columns)
    if said.aside_columns is not None and not given.sets_rows_aside:
        raise _lie("rows are set aside, which no check of it asks for")
    changing = {one.parameter for one in given.asset.inputs if one.kind is InputKind.CHANGES}
    return Computed(
        columns,
        None if said.aside_columns is None else _columns(said.aside_columns),
        tuple(clip(one, TASK_WORD_CHARS_MAX) for one in said.external[:_EXTERNAL_MAX]),
        {word: clip(why, TASK_WORD_CHARS_MAX) for word, why in said.full_reads.items() if word in changing},
    )


def _columns(said: JsonObject) -> JsonObject:
    try:
        checked(with_new_ids(said), format_version=2)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise _lie(f"its columns are no schema ({type(error).__name__})") from None
    return said


@dataclass(frozen=True, slots=True)
class Believing:
    """One attempt's output, looked at through `io`, which is the worker's own."""

    given: Assignment
    done: Computed
    io: FileIO

    def stored(self, said: Files, table: TableMetadata, aside: TableMetadata | None) -> Stored:
        """What was written, from the files themselves."""
        given = self.given
        target = Target.of(table, given.materialization_id, given.attempt)
        new = self._written(said.new, target)
        kept = self._written(said.kept, replace(target, directory=kept_beside(target.directory)))
        beside = None
        if aside is not None:
            beside = self._written(said.aside or [], Target.of(aside, given.materialization_id, given.attempt))
        elif said.aside:
            raise _lie("it wrote rows aside, and none were to be")
        everything = Written((*new.files, *kept.files), new.rows + kept.rows, new.size_bytes + kept.size_bytes)
        change = self._change(said, new, kept, table, target)
        return Stored(new, everything, change, beside, self._results(said, new, beside, target))

    def _written(self, names: Sequence[str], target: Target) -> Written:
        """Files of a directory, described by themselves. A name that lies elsewhere, or that is not there, is no slip."""
        if not names:
            return Written()
        found = {one.location: one.size_bytes for one in files_below(self.io, target.directory)}
        inside, kinds = f"{target.directory}/", kinds_of(target.spec, target.schema)
        for name in names:
            if not name.startswith(inside) or is_winding(name):
                raise _lie(f"it names {clip(name, 300)}, which is not in the directory of this attempt")
            if name not in found:
                raise _lie(f"it names {clip(name, 300)}, which is not there")
        if len(set(names)) < len(names):
            raise _lie("it names a file twice")
        files = [NewFile(one, found[one], parse_folders(one.removeprefix(inside), kinds)) for one in sorted(names)]
        order_id = int(target.order["order-id"]) if target.order["fields"] else None
        return describe(
            self.io,
            files,
            target.schema,
            spec_id=target.spec["spec-id"],
            sort_order_id=order_id,
            properties=target.properties,
        )

    def _change(self, said: Files, new: Written, kept: Written, table: TableMetadata, target: Target) -> Change:
        """What the output does to its table: as the asset says. Files that are replaced hold rows of the task's partitions."""
        asset = self.given.asset
        if replaces_all(asset, self.done.full_reads):
            self._refuse_kept(said, kept)
            return ReplaceAll()
        rows = own_rows(self.given, target.schema)
        if asset.write.mode is WriteMode.APPEND:
            self._refuse_kept(said, kept)
            _refuse_strangers(new, rows, table)
            return appended(asset)
        if said.removed is None and asset.write.mode is not WriteMode.MERGE:
            self._refuse_kept(said, kept)
            refuse_outsiders(new.files, rows, table)
            return Replace(rows)
        _refuse_strangers(new, rows, table)
        removed = frozenset(said.removed or ())
        concerned = {plain_path(one.location) for one in plan_scan(table, self.io, where=rows).files} if removed else set()
        if strangers := sorted(removed - concerned):
            raise _lie(f"it replaces {clip(strangers[0], 300)}, which holds no rows of this task")
        return Rewrite(rows, removed)

    def _refuse_kept(self, said: Files, kept: Written) -> None:
        if kept.files or said.removed:
            raise _lie("it kept rows of files that are not rewritten")

    def _results(self, said: Files, new: Written, aside: Written | None, target: Target) -> tuple[CheckResult, ...]:
        """One result for every check: what the footers prove is proved here, the rest is what the process measured."""
        checks, at_ms = self.given.asset.checks, self.given.at_ms
        told = {one.check: one for one in map(CheckResult.from_document, said.results)}
        own = {one.check: one for one in proved(checks, new, target.schema, logical_time_ms=at_ms)}
        results = tuple(own.get(check.name) or _judged(check, told.get(check.name)) for check in checks)
        rows_aside = 0 if aside is None else aside.rows
        if any(one.quarantined_rows > rows_aside for one in results):
            raise _lie("more rows are set aside than there are in the files")
        return results


def _refuse_strangers(new: Written, rows: BooleanExpression, table: TableMetadata) -> None:
    """Files without any row of the task's partitions. What else a file holds, only whoever reads it knows: its process did."""
    wanted = Matching(rows, table)
    for file in new.files:
        if file.record_count and not wanted.some(file):
            raise _lie(f"{clip(file.file_path, 300)} holds rows outside the partitions that are made")


def _judged(check: Check, told: CheckResult | None) -> CheckResult:
    """What was measured, of the check as it is defined here."""
    if told is None:
        return unmeasured(check, "there is no result")
    return replace(
        told,
        kind=check.kind,
        severity=check.severity,
        columns=check.columns,
        expected=check.expected,
        fingerprint=check.fingerprint,
        message=clip(told.message, TASK_WORD_CHARS_MAX),
        measured=_small(told.measured),
        partitions=None if told.partitions is None else clip(told.partitions, TASK_WORD_CHARS_MAX),
        quarantined_rows=told.quarantined_rows if check.quarantine_rows else 0,
    )


def _small(measured: Any) -> Any:
    """What was measured, if it is of a size that a run's log may have."""
    return measured if len(msgspec.json.encode(measured)) <= TASK_WORD_CHARS_MAX else None


def _lie(what: str) -> InvalidInput:
    return InvalidInput(
        f"the process of the task is not believed: {what}",
        hint="nothing was published; see what the code of this asset does",
    )

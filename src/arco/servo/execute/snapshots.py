"""A new snapshot as data: which manifests stay, which are written anew without the replaced files, which are new.

Pure: what it needs of the base was read before, what it makes is bytes under names that were never used. Whole files are
replaced, never rows: a file that holds rows to replace and rows to keep is refused, unless the output contains the rows to
keep (`Rewrite`). What must never enter: the store, the catalog, Spark.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pyiceberg.expressions import BooleanExpression
from pyiceberg.expressions.visitors import (
    _InclusiveMetricsEvaluator,
    _StrictMetricsEvaluator,
    expression_evaluator,
    inclusive_projection,
    manifest_evaluator,
    strict_projection,
)
from pyiceberg.manifest import (
    DataFile,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestWriter,
    write_manifest,
    write_manifest_list,
)
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.snapshots import Operation, SnapshotSummaryCollector, Summary, update_snapshot_summaries
from pyiceberg.typedef import Record

from arco.iceberg.held_files import MadeFile
from arco.iceberg.metadata import TableMetadata
from arco.iceberg.shape import JsonObject
from arco.kernel.errors import InvalidInput, PartitionsTouched
from arco.kernel.ids import clip
from arco.servo.execute.data_files import values_of
from arco.servo.execute.file_access import plain_path
from arco.servo.execute.standing import CONTENT, content_id
from arco.servo.execute.table_state import TableState, pyiceberg_schema, pyiceberg_spec
from arco.storage.keys import FileName

FORMAT_VERSION: Literal[2] = 2
_ENTRIES_PER_MANIFEST = 10_000
_METADATA_PATH_PROPERTY = "write.metadata.path"
SMALL_SHARE = 0.75
"""A file or a manifest is small below so much of the size that its table asks for."""


@dataclass(frozen=True, slots=True)
class Append:
    """New rows beside what is there."""


@dataclass(frozen=True, slots=True)
class AppendNext(Append):
    """New rows that were made of what came after the last publish: after another one they would be there twice."""


@dataclass(frozen=True, slots=True)
class Replace:
    """New rows instead of all that match. Every new row matches too, or the next replacement would miss it."""

    where: BooleanExpression


@dataclass(frozen=True, slots=True)
class ReplaceAll:
    """New rows instead of everything."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """New files instead of these, with the rows of theirs that stay; decided on everything that matches `where`."""

    where: BooleanExpression
    files: frozenset[str]


@dataclass(frozen=True, slots=True)
class Replay:
    """What another snapshot did, done again on top of others: new files instead of these, in places that nobody touched since.

    A place is a partition of a spec. A table without partitions is one place.
    """

    files: frozenset[str]
    places: frozenset[str]


@dataclass(frozen=True, slots=True)
class Compact:
    """The same rows in other files. Nothing that anybody can read changes."""

    files: frozenset[str]


@dataclass(frozen=True, slots=True)
class MergeManifests:
    """The same files in fewer manifests of this size. Which are merged is decided on the base that is committed on."""

    size_bytes: int


Change = Append | Replace | ReplaceAll | Rewrite | Compact | MergeManifests | Replay


@dataclass(frozen=True, slots=True)
class Draft:
    """A snapshot that was made and not committed: its document, and the files it is in."""

    snapshot: JsonObject
    files: Mapping[str, bytes]
    removed: tuple[DataFile, ...]


class Matching:
    """Which files may hold, and which hold nothing but, rows that match an expression."""

    def __init__(self, where: BooleanExpression, table: TableMetadata) -> None:
        self._schema: Schema = pyiceberg_schema(table.current_schema)
        self._where = where
        specs = {spec["spec-id"]: pyiceberg_spec(spec) for spec in table.document["partition-specs"]}
        self._manifests = {number: self._of_manifests(spec) for number, spec in specs.items()}
        self._some = {number: self._of_partitions(spec, inclusive_projection) for number, spec in specs.items()}
        self._only = {number: self._of_partitions(spec, strict_projection) for number, spec in specs.items()}
        self._some_by_metrics = _InclusiveMetricsEvaluator(self._schema, where).eval
        self._only_by_metrics = _StrictMetricsEvaluator(self._schema, where).eval

    def may_be_in(self, manifest: ManifestFile) -> bool:
        return self._manifests[manifest.partition_spec_id](manifest)

    def some(self, file: DataFile) -> bool:
        """Whether a file may hold matching rows."""
        return self._some[file.spec_id](file.partition) and self._some_by_metrics(file)

    def may_concern(self, file: DataFile) -> bool:
        """Whether a file lies in a partition that may hold matching rows."""
        return self._some[file.spec_id](file.partition)

    def only(self, file: DataFile) -> bool:
        """Whether a file surely holds nothing but matching rows."""
        return self._only[file.spec_id](file.partition) or self._only_by_metrics(file)

    def _of_manifests(self, spec: PartitionSpec) -> Callable[[ManifestFile], bool]:
        return manifest_evaluator(spec, self._schema, inclusive_projection(self._schema, spec)(self._where))

    def _of_partitions(self, spec: PartitionSpec, projection: Any) -> Callable[[Record], bool]:
        partition = Schema(*spec.partition_type(self._schema).fields)
        return expression_evaluator(partition, projection(self._schema, spec)(self._where), case_sensitive=True)


def refuse_outsiders(added: Sequence[DataFile], where: BooleanExpression, table: TableMetadata) -> None:
    """An output must lie in the partitions it replaces: what lies outside would be doubled by the next run."""
    wanted = Matching(where, table)
    for file in added:
        if not wanted.only(file):
            values = ", ".join(str(file.partition[place]) for place in range(len(file.partition)))
            raise InvalidInput(
                f"the output holds rows outside the partitions it replaces ({clip(values) or 'no partition of its own'})",
                hint="filter the output by the run's partitions",
            )


@dataclass(slots=True)
class Drafting:
    """Everything about one new snapshot that is the same for all its manifests. `table` has the schema of the new files."""

    table: TableMetadata
    parent: TableState
    snapshot_id: int
    name: str
    files: dict[str, bytes] = field(default_factory=dict)
    removed: list[DataFile] = field(default_factory=list)
    merged: tuple[int, int] = (0, 0)
    """How many manifests were written as how many others."""

    @property
    def _version(self) -> Literal[1, 2]:
        return 1 if self.table.format_version == 1 else FORMAT_VERSION

    @property
    def _folder(self) -> str:
        found = self.table.properties.get(_METADATA_PATH_PROPERTY) or f"{self.table.location.rstrip('/')}/metadata"
        return found.rstrip("/")

    @property
    def _specs(self) -> dict[int, PartitionSpec]:
        return {one["spec-id"]: pyiceberg_spec(one) for one in self.table.document["partition-specs"]}

    def made(self, suffix: str) -> MadeFile:
        return MadeFile(f"{self._folder}/{FileName(f'{self.name}-{self.snapshot_id}-{suffix}.avro')}")

    def manifest_of(self, spec_id: int, entries: Sequence[ManifestEntry]) -> ManifestFile:
        """One new manifest with these entries."""
        file = self.made(f"m{len(self.files)}")
        schema = pyiceberg_schema(self.table.current_schema)
        with write_manifest(self._version, self._specs[spec_id], schema, file, self.snapshot_id, "deflate") as writer:
            for entry in entries:
                _enter(writer, entry)
        self.files[file.location] = file.data
        return writer.to_manifest_file()

    def added(self, files: Sequence[DataFile]) -> list[ManifestFile]:
        """Manifests of new files."""
        manifests = []
        for spec_id in sorted({file.spec_id for file in files}):
            entries = [self._entry(file) for file in files if file.spec_id == spec_id]
            starts = range(0, len(entries), _ENTRIES_PER_MANIFEST)
            manifests += [self.manifest_of(spec_id, entries[start : start + _ENTRIES_PER_MANIFEST]) for start in starts]
        return manifests

    def without(
        self, manifest: ManifestFile, entries: Sequence[ManifestEntry], gone: Sequence[ManifestEntry]
    ) -> ManifestFile:
        """A manifest written anew, its removed files marked."""
        paths = {entry.data_file.file_path for entry in gone}
        for entry in entries:
            entry.status = (
                ManifestEntryStatus.DELETED if entry.data_file.file_path in paths else ManifestEntryStatus.EXISTING
            )
        self.removed += [entry.data_file for entry in gone]
        return self.manifest_of(manifest.partition_spec_id, entries)

    def draft(
        self,
        manifests: Sequence[ManifestFile],
        added: Sequence[DataFile],
        facts: Mapping[str, str],
        at_ms: int,
        change: Change | None = None,
    ) -> Draft:
        sequence = self.table.last_sequence_number + 1
        file = self.made("list")
        parent = self.parent.snapshot_id
        with write_manifest_list(self._version, file, self.snapshot_id, parent, sequence, "deflate") as writer:
            if manifests:
                writer.add_manifests(list(manifests))
        self.files[file.location] = file.data
        snapshot: JsonObject = {
            "snapshot-id": self.snapshot_id,
            "timestamp-ms": at_ms,
            "manifest-list": file.location,
            "summary": {**self._summary(added), **self._rewritten(change), **facts},
            "schema-id": self.table.current_schema_id,
        }
        if self._version != 1:
            snapshot["sequence-number"] = sequence
        if parent is not None:
            snapshot["parent-snapshot-id"] = parent
        return Draft(snapshot, dict(self.files), tuple(self.removed))

    def _rewritten(self, change: Change | None) -> dict[str, str]:
        """What is said of a snapshot that changes no row."""
        if not isinstance(change, Compact | MergeManifests):
            return {}
        replaced, created = self.merged
        counts = {"manifests-replaced": str(replaced), "manifests-created": str(created)} if replaced else {}
        content = content_id(self.table)
        told = {} if content is None else {CONTENT: str(content)}
        return {"operation": Operation.REPLACE.value, **counts, **told}

    def _entry(self, file: DataFile) -> ManifestEntry:
        return ManifestEntry.from_args(
            status=ManifestEntryStatus.ADDED,
            snapshot_id=self.snapshot_id,
            sequence_number=None,
            file_sequence_number=None,
            data_file=file,
        )

    def _summary(self, added: Sequence[DataFile]) -> dict[str, str]:
        collector = SnapshotSummaryCollector()
        schema, specs = pyiceberg_schema(self.table.current_schema), self._specs
        for file in added:
            collector.add_file(file, schema, specs[file.spec_id])
        for file in self.removed:
            collector.remove_file(file, schema, specs[file.spec_id])
        # What removed nothing is an append to whoever reads only changes.
        operation = (
            Operation.OVERWRITE if self.removed and added else Operation.DELETE if self.removed else Operation.APPEND
        )
        before = (self.parent.snapshot or {}).get("summary")
        summary = update_snapshot_summaries(Summary(operation=operation, **collector.build()), before)
        return {"operation": operation.value, **summary.additional_properties}


def needed(change: Change, manifests: Iterable[ManifestFile], table: TableMetadata) -> list[ManifestFile]:
    """The manifests whose entries decide about a change."""
    match change:
        case Append():
            return []
        case ReplaceAll():
            return list(manifests)
        case Replay(files, _):
            return [one for one in manifests if one.content == ManifestContent.DATA] if files else []
        case Compact():
            return [one for one in manifests if one.content == ManifestContent.DATA]
        case MergeManifests(size_bytes):
            return small_manifests(manifests, size_bytes)
        case Replace(where) | Rewrite(where, _):
            wanted = Matching(where, table)
            return [one for one in manifests if one.content == ManifestContent.DATA and wanted.may_be_in(one)]


def applied(
    drafting: Drafting,
    change: Change,
    manifests: Sequence[ManifestFile],
    entries: Mapping[str, Sequence[ManifestEntry]],
    added: Sequence[DataFile],
) -> list[ManifestFile]:
    """The manifests after a change. `entries` are those of the manifests that were `needed`."""
    _refuse_other_formats(drafting.table, change)
    if isinstance(change, MergeManifests):
        return _merged(drafting, change, manifests, entries)
    gone = _remover(change, drafting.table)
    kept: list[ManifestFile] = []
    for manifest in manifests:
        if not _has_live(manifest):
            continue  # it only told what an earlier snapshot removed
        if manifest.manifest_path not in entries:
            kept.append(manifest)
            continue
        live = [one for one in entries[manifest.manifest_path] if one.status is not ManifestEntryStatus.DELETED]
        leaving = gone(live)
        if isinstance(change, ReplaceAll) and manifest.content == ManifestContent.DELETES:
            drafting.removed += [entry.data_file for entry in live]
        else:
            kept.append(drafting.without(manifest, live, leaving) if leaving else manifest)
    if isinstance(change, Rewrite | Compact | Replay):
        _refuse_missing(change.files, drafting.removed)
    return [*drafting.added(added), *kept]


def _remover(change: Change, table: TableMetadata) -> Callable[[list[ManifestEntry]], list[ManifestEntry]]:
    """Which of a manifest's files a change removes."""
    match change:
        case Append() | MergeManifests():
            return lambda _: []
        case ReplaceAll():
            return lambda live: live
        case Rewrite(_, files) | Compact(files) | Replay(files, _):
            return lambda live: [entry for entry in live if plain_path(entry.data_file.file_path) in files]
        case Replace(where):
            wanted = Matching(where, table)
            return lambda live: [entry for entry in live if _is_replaced(entry.data_file, wanted)]


def _is_replaced(file: DataFile, wanted: Matching) -> bool:
    if not wanted.some(file):
        return False
    if not wanted.only(file):
        raise InvalidInput(
            f"{clip(file.file_path, 300)} holds rows to replace beside rows to keep",
            hint="partition the table by what its runs replace, or merge by key",
        )
    return True


def place_of(file: DataFile) -> str:
    """The partition that a file lies in, as a text."""
    return repr((file.spec_id, [file.partition[place] for place in range(len(file.partition))]))


def small_manifests(manifests: Iterable[ManifestFile], size_bytes: int) -> list[ManifestFile]:
    """Manifests of data that are much smaller than they should be, where one of their spec is not alone.

    One that is full of entries is as large as it gets, however few bytes they take: merged again it would come to the same.
    """
    small = [
        one
        for one in manifests
        if one.content == ManifestContent.DATA
        and one.manifest_length < size_bytes * SMALL_SHARE
        and _has_live(one)
        and not _is_full(one)
    ]
    count = Counter(one.partition_spec_id for one in small)
    return [one for one in small if count[one.partition_spec_id] > 1]


def _refuse_other_formats(table: TableMetadata, change: Change) -> None:
    """Version 3 gives every row an identity, which is not written here.

    Version 1 has no sequence numbers, by which outputs are told to lie over each other: it is rewritten, and never published to.
    """
    if table.format_version == FORMAT_VERSION:
        return
    if table.format_version != 1 or not isinstance(change, Compact | MergeManifests):
        raise InvalidInput(
            f"this table has format version {table.format_version}, and snapshots are written for v{FORMAT_VERSION}",
            hint="write to a table of format version 2",
        )


def _has_live(manifest: ManifestFile) -> bool:
    return manifest.has_added_files() or manifest.has_existing_files()


def _is_full(manifest: ManifestFile) -> bool:
    live = (manifest.added_files_count or 0) + (manifest.existing_files_count or 0)
    return live >= _ENTRIES_PER_MANIFEST * SMALL_SHARE


def _merged(
    drafting: Drafting,
    change: MergeManifests,
    manifests: Sequence[ManifestFile],
    entries: Mapping[str, Sequence[ManifestEntry]],
) -> list[ManifestFile]:
    """Entries of small manifests together, files of one partition side by side; what only told of removed files is left out."""
    chosen = [one for one in manifests if one.manifest_path in entries]
    made: list[ManifestFile] = []
    for spec_id in sorted({one.partition_spec_id for one in chosen}):
        own = [one for one in chosen if one.partition_spec_id == spec_id]
        live = [
            entry for one in own for entry in entries[one.manifest_path] if entry.status is not ManifestEntryStatus.DELETED
        ]
        live.sort(key=lambda entry: repr(values_of(entry.data_file)))
        for entry in live:
            entry.status = ManifestEntryStatus.EXISTING
        size = sum(one.manifest_length for one in own)
        each = min(_ENTRIES_PER_MANIFEST, max(1, len(live) * change.size_bytes // max(1, size)))
        made += [drafting.manifest_of(spec_id, live[start : start + each]) for start in range(0, len(live), each)]
    drafting.merged = len(chosen), len(made)
    return [*made, *(one for one in manifests if one.manifest_path not in entries and _has_live(one))]


def _refuse_missing(files: frozenset[str], removed: Iterable[DataFile]) -> None:
    found = {plain_path(file.file_path) for file in removed}
    if len(found) < len(files):
        raise PartitionsTouched("files that were to be rewritten are no longer in the table")


def _enter(writer: ManifestWriter, entry: ManifestEntry) -> None:
    match entry.status:
        case ManifestEntryStatus.ADDED:
            writer.add(entry)
        case ManifestEntryStatus.EXISTING:
            writer.existing(entry)
        case ManifestEntryStatus.DELETED:
            writer.delete(entry)

"""Which files hold the rows of a snapshot, and what has to be done to read each of them right.

Made from manifests alone, and from footers only where the manifests do not tell. What could be read wrongly is refused here,
by name: equality deletes, other file formats, encrypted files, columns with a default for old rows, files with half of their
ids. What must never enter: Spark.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.expressions.visitors import bind, extract_field_ids
from pyiceberg.io import FileIO
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestContent, ManifestEntry, ManifestFile
from pyiceberg.table import ManifestGroupPlanner
from pyiceberg.table.delete_file_index import DeleteFileIndex
from pyiceberg.transforms import IdentityTransform
from pyiceberg.utils.concurrent import ExecutorFactory

from arco.iceberg.metadata import TableMetadata
from arco.iceberg.schemas import columns
from arco.iceberg.shape import JsonObject, listed
from arco.kernel.errors import InvalidInput
from arco.kernel.ids import clip
from arco.servo.execute.footers import arrow_schema_of
from arco.servo.execute.name_mapping import NAME_MAPPING_PROPERTY, Names, names_in_file
from arco.servo.execute.table_state import TableState, pyiceberg_schema, state_of

EVERYTHING: BooleanExpression = AlwaysTrue()


@dataclass(frozen=True, slots=True)
class ScannedFile:
    """One data file. `constants` are columns that it lacks because its partition has their value, by field id."""

    described: DataFile
    has_deletes: bool = False
    constants: tuple[tuple[int, Any], ...] = ()
    names: Names | None = None

    @property
    def location(self) -> str:
        return self.described.file_path


@dataclass(frozen=True, slots=True)
class Scan:
    """Files to read, with what was deleted from them. `where` still has to be applied to the rows.

    `schema` has the columns that are asked for and those that `where` looks at; `columns` names the first.
    """

    state: TableState
    columns: tuple[str, ...]
    schema: JsonObject
    where: BooleanExpression
    files: tuple[ScannedFile, ...]
    position_deletes: tuple[str, ...] = ()
    deletion_vectors: tuple[str, ...] = ()

    def groups(self) -> list[tuple[Names | None, tuple[ScannedFile, ...]]]:
        """Files that one read can take together: the same names, with or without constants, with or without deletes."""
        found: dict[tuple[Names | None, bool, bool], list[ScannedFile]] = defaultdict(list)
        for file in self.files:
            found[file.names, bool(file.constants), file.has_deletes].append(file)
        return [(names, tuple(files)) for (names, _, _), files in found.items()]


def plan_scan(
    table: TableMetadata,
    io: FileIO,
    *,
    snapshot_id: int | None = None,
    ref: str | None = None,
    columns_wanted: Iterable[str] | None = None,
    where: BooleanExpression = EVERYTHING,
) -> Scan:
    """The files of a snapshot that may hold rows matching `where`."""
    state = state_of(table, snapshot_id=snapshot_id, ref=ref)
    return _planned(state, io, state.manifests(io), columns_wanted, where, lambda _: True)


def plan_changes(
    table: TableMetadata,
    io: FileIO,
    *,
    since: int,
    until: int,
    columns_wanted: Iterable[str] | None = None,
    where: BooleanExpression = EVERYTHING,
) -> Scan | str:
    """The files appended after one snapshot and up to another; or, as a text, why only a full read will do."""
    state = state_of(table, snapshot_id=until)
    appended: set[int] = set()
    for snapshot in _between(table, since, until):
        if isinstance(snapshot, str):
            return snapshot
        operation = (snapshot.get("summary") or {}).get("operation")
        if operation == "append":
            appended.add(snapshot["snapshot-id"])
        elif operation != "replace":  # which only puts the same rows into other files
            return f"snapshot {snapshot['snapshot-id']} did not only append ({operation or 'it does not say what it did'})"
    manifests: dict[str, ManifestFile] = {}
    for snapshot_id in sorted(appended):
        for manifest in state_of(table, snapshot_id=snapshot_id).manifests(io):
            if manifest.added_snapshot_id == snapshot_id:
                if manifest.content == ManifestContent.DELETES:
                    return f"snapshot {snapshot_id} deleted rows"
                manifests[manifest.manifest_path] = manifest
    return _planned(
        state,
        io,
        manifests.values(),
        columns_wanted,
        where,
        lambda entry: _is_added(entry) and entry.snapshot_id in appended,
    )


def _between(table: TableMetadata, since: int, until: int) -> Iterable[JsonObject | str]:
    by_id = {snapshot["snapshot-id"]: snapshot for snapshot in table.snapshots}
    current: int | None = until
    while current != since:
        if current is None:
            yield f"snapshot {since} is not in the history of snapshot {until}"
            return
        if current not in by_id:
            yield f"snapshot {current} has expired"
            return
        yield by_id[current]
        current = by_id[current].get("parent-snapshot-id")


def _is_added(entry: ManifestEntry) -> bool:
    return entry.status == 1


def _planned(
    state: TableState,
    io: FileIO,
    manifests: Iterable[ManifestFile],
    columns_wanted: Iterable[str] | None,
    where: BooleanExpression,
    wanted: Callable[[ManifestEntry], bool],
) -> Scan:
    wanted_schema = selected(state.schema, columns_wanted)
    names = tuple(field["name"] for field in wanted_schema["fields"])
    schema = selected(state.schema, {*names, *columns_in(where, state.schema)})
    metadata = state.pyiceberg()
    planner = ManifestGroupPlanner(metadata, io, row_filter=where)
    data: list[ManifestEntry] = []
    index = DeleteFileIndex()
    for entry in chain.from_iterable(planner.plan_manifest_entries(list(manifests))):
        if not wanted(entry):
            continue
        _refuse_unreadable(entry.data_file)
        if entry.data_file.content == DataFileContent.DATA:
            data.append(entry)
        else:
            index.add_delete_file(entry, partition_key=entry.data_file.partition)
    files, deletes = _with_deletes(data, index)
    files = _with_what_footers_say(state, io, schema, data, files)
    vectors = sorted({one.file_path for one in deletes if one.file_format is FileFormat.PUFFIN})
    positions = sorted({one.file_path for one in deletes if one.file_format is FileFormat.PARQUET})
    return Scan(state, names, schema, where, tuple(files), tuple(positions), tuple(vectors))


def selected(schema: JsonObject, names: Iterable[str] | None) -> JsonObject:
    """A schema with some of its columns, in its own order. Columns that would be read wrongly are refused."""
    wanted = None if names is None else list(dict.fromkeys(names))
    known = [field["name"] for field in schema["fields"]]
    unknown = [] if wanted is None else [name for name in wanted if name not in known]
    if unknown:
        raise InvalidInput(f"there is no column {clip(unknown[0])!r}", hint=f"there are {listed(known)}")
    fields = [field for field in schema["fields"] if wanted is None or field["name"] in wanted]
    for column in columns({**schema, "fields": fields}):
        if column.raw.get("initial-default") is not None:
            raise InvalidInput(
                f"column {clip(column.full_name)!r} has a default for rows written before it, which is not read yet",
                hint="leave the column out",
            )
    return {**schema, "fields": fields}


def columns_in(where: BooleanExpression, schema: JsonObject) -> set[str]:
    """The columns, at the top level, that an expression looks at."""
    try:
        ids = extract_field_ids(bind(pyiceberg_schema(schema), where, case_sensitive=True))
    except ValueError as error:
        raise InvalidInput(f"the filter does not fit the table: {clip(str(error), 200)}") from error
    return {column.path[0] for column in columns(schema) if column.field_id in ids}


def _refuse_unreadable(file: DataFile) -> None:
    where = clip(file.file_path, 300)
    if file.content == DataFileContent.EQUALITY_DELETES:
        raise InvalidInput(
            f"rows were deleted by equality ({where}), which is not read yet", hint="rewrite the table's data files first"
        )
    formats = {FileFormat.PARQUET} if file.content == DataFileContent.DATA else {FileFormat.PARQUET, FileFormat.PUFFIN}
    if file.file_format not in formats:
        raise InvalidInput(
            f"{where} is a file of format {file.file_format.value}, which is not read yet", hint="use Parquet"
        )
    if file.key_metadata is not None:
        raise InvalidInput(f"{where} is encrypted, which is not read yet")


def _with_deletes(data: list[ManifestEntry], index: DeleteFileIndex) -> tuple[list[ScannedFile], set[DataFile]]:
    files, deletes = [], set()
    for entry in data:
        file = entry.data_file
        own = index.for_data_file(entry.sequence_number or 0, file, partition_key=file.partition)
        deletes |= own
        files.append(ScannedFile(file, has_deletes=bool(own)))
    return files, deletes


def _with_what_footers_say(
    state: TableState, io: FileIO, schema: JsonObject, data: list[ManifestEntry], files: list[ScannedFile]
) -> list[ScannedFile]:
    """Columns that only the partition has, and files without ids: the footers tell, where the manifests leave a doubt."""
    specs = {spec["spec-id"]: _identities(spec, schema) for spec in state.table.document["partition-specs"]}
    may_lack_ids = NAME_MAPPING_PROPERTY in state.table.properties

    def told(pair: tuple[ScannedFile, ManifestEntry]) -> ScannedFile:
        file, entry = pair
        uncounted = _uncounted(entry.data_file, specs[entry.data_file.spec_id])
        if not uncounted and not may_lack_ids:
            return file
        found = names_in_file(file.location, arrow_schema_of(io, file.location), schema, state.table.properties)
        constants = tuple(sorted((source, value) for source, value in uncounted.items() if source not in found.present))
        return replace(file, constants=constants, names=found.names)

    # Side by side: on a bucket each footer takes a round trip.
    return list(ExecutorFactory.get_or_create().map(told, zip(files, data, strict=True)))


def _uncounted(file: DataFile, identities: Mapping[int, int]) -> dict[int, Any]:
    """Identity partition columns that the manifest has no count for, so that the file may lack them (as files of Hive do)."""
    counted = file.value_counts or {}
    return {source: file.partition[place] for place, source in identities.items() if source not in counted}


def _identities(spec: JsonObject, schema: JsonObject) -> Mapping[int, int]:
    """The places of identity partition fields, each with its column, as far as the column is read."""
    wanted = {field["id"] for field in schema["fields"]}
    identity = str(IdentityTransform())
    return {
        place: field["source-id"]
        for place, field in enumerate(spec["fields"])
        if field["transform"] == identity and field["source-id"] in wanted
    }

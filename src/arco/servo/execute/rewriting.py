"""What of a table is worth to be written anew: small files, files of which rows were deleted, small manifests. And why.

From manifests alone, without Spark; what could be read wrongly is refused by name where files are planned (`scans.py`), and so
is a format version that snapshots are not written for. What must never enter: doing it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyiceberg.io import FileIO
from pyiceberg.manifest import DataFile, ManifestFile

from arco.iceberg.metadata import TableMetadata
from arco.kernel.errors import InvalidInput
from arco.servo.execute.data_files import values_of
from arco.servo.execute.scans import ScannedFile, plan_scan
from arco.servo.execute.snapshots import FORMAT_VERSION, SMALL_SHARE, small_manifests
from arco.servo.execute.target import FILE_BYTES_DEFAULT, FILE_BYTES_PROPERTY, rows_per_file

MANIFEST_BYTES_PROPERTY = "commit.manifest.target-size-bytes"
MANIFEST_BYTES_DEFAULT = 8 * 1024 * 1024
FILES_MIN = 5
TASK_BYTES_MAX = 20 * 1024**3


@dataclass(frozen=True, slots=True)
class Group:
    """Files of one partition that become fewer, or lose their deletes."""

    partition: tuple[Any, ...]
    files: tuple[ScannedFile, ...]
    why: str

    @property
    def size_bytes(self) -> int:
        return sum(one.described.file_size_in_bytes for one in self.files)

    @property
    def rows(self) -> int:
        return sum(one.described.record_count for one in self.files)


@dataclass(frozen=True, slots=True)
class Rewriting:
    """What is to be done for one table. `left` says how many files stay as they are, and why."""

    groups: tuple[Group, ...] = ()
    manifests: tuple[ManifestFile, ...] = ()
    left: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        return not self.groups and not self.manifests

    def shares(self) -> list[list[Group]]:
        """The groups as tasks: each is committed for itself, so that what was done stays when the next one fails."""
        shares: list[list[Group]] = []
        size = TASK_BYTES_MAX
        for group in self.groups:
            if size + group.size_bytes > TASK_BYTES_MAX:
                shares.append([])
                size = 0
            shares[-1].append(group)
            size += group.size_bytes
        return shares


def target_bytes(table: TableMetadata, word: str = FILE_BYTES_PROPERTY, default: int = FILE_BYTES_DEFAULT) -> int:
    """A size that a table asks for."""
    text = table.properties.get(word, str(default))
    if not text.isdecimal() or int(text) < 1:
        raise InvalidInput(f"property {word} of this table is {text[:50]!r}", hint="a number of bytes")
    return int(text)


def refuse_other_formats(table: TableMetadata) -> None:
    """Version 3 gives every row an identity, which a rewrite would have to carry along."""
    if table.format_version > FORMAT_VERSION:
        raise InvalidInput(
            f"this table has format version {table.format_version}, and files are rewritten up to v{FORMAT_VERSION}",
            hint="the row ids of v3 are not carried along yet",
        )


def files_to_rewrite(table: TableMetadata, io: FileIO, files_min: int = FILES_MIN) -> Rewriting:
    """The files of main that are worth it."""
    target, rows = target_bytes(table), rows_per_file(table)
    by_partition: dict[tuple[Any, ...], list[ScannedFile]] = defaultdict(list)
    left: Counter[str] = Counter()
    for file in plan_scan(table, io).files:
        if file.described.spec_id != table.default_spec_id:
            left["of an older partition spec"] += 1
        elif file.has_deletes or _is_small(file.described, target, rows):
            by_partition[values_of(file.described)].append(file)
        else:
            left["large enough"] += 1
    groups = []
    for partition, files in by_partition.items():
        why = _worth(files, target, files_min)
        if why is None:
            left["small, and too few of their partition"] += len(files)
        else:
            groups.append(Group(partition, tuple(sorted(files, key=lambda one: one.location)), why))
    groups.sort(key=lambda one: [(value is not None, str(value)) for value in one.partition])
    return Rewriting(tuple(groups), left=dict(left))


def _is_small(file: DataFile, target: int, rows: int | None) -> bool:
    """Writers cut files by their rows, of which the table's average is known: where rows are narrower than that, a file that has
    as many is as large as it gets, and would be written again and again.
    """
    is_cut = rows is not None and file.record_count >= rows * SMALL_SHARE
    return file.file_size_in_bytes < target * SMALL_SHARE and not is_cut


def _worth(files: list[ScannedFile], target: int, files_min: int) -> str | None:
    deleted = sum(one.has_deletes for one in files)
    if deleted:
        return f"rows may have been deleted from {deleted} of {len(files)} files"
    size = sum(one.described.file_size_in_bytes for one in files)
    if len(files) >= max(2, files_min) or (len(files) > 1 and size >= target):
        return f"{len(files)} small files"
    return None


def manifests_to_merge(
    table: TableMetadata, manifests: Iterable[ManifestFile], manifests_min: int = FILES_MIN
) -> tuple[ManifestFile, ...]:
    """Small manifests of data, if there are so many."""
    small = small_manifests(manifests, target_bytes(table, MANIFEST_BYTES_PROPERTY, MANIFEST_BYTES_DEFAULT))
    return tuple(small) if len(small) >= max(2, manifests_min) else ()

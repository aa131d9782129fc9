"""What the partitions of a table are now, for planning: one version a partition, from manifests alone and without Spark.

The version of a partition is a fingerprint of its live files, deletes among them: it changes when the partition may have
changed, and not when another one did. A file of deletes that concerns the whole table concerns every partition.

Files are found by `source_manifests.py`, or by PyIceberg in `source_files.py`. What must never enter: PyIceberg, which takes long
to load.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from arco.iceberg.metadata import TableMetadata
from arco.iceberg.schemas import columns_by_id
from arco.iceberg.shape import JsonObject
from arco.kernel.fingerprint import fingerprint
from arco.servo.execute.stored_values import python_value


class Content(IntEnum):
    """What a file holds, as manifests number it."""

    DATA = 0
    POSITION_DELETES = 1
    EQUALITY_DELETES = 2


@dataclass(frozen=True, slots=True)
class LiveFile:
    """A file that a snapshot has, as far as versions need it."""

    content: Content
    spec_id: int
    partition: tuple[Any, ...]
    path: str
    sequence_number: int | None
    rows: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class PartField:
    """A field of a partition spec: the column it is made from, and how. `type` is that of its values."""

    column: str
    transform: str
    type: str


@dataclass(frozen=True, slots=True)
class PartitionVersion:
    """One partition tuple of one spec. Values are dates, times, texts and numbers of Python; `hour` is hours since 1970."""

    fields: tuple[PartField, ...]
    values: tuple[Any, ...]
    version: str
    files: int
    rows: int
    size_bytes: int


def versions_of(table: TableMetadata, schema: JsonObject, files: Iterable[LiveFile]) -> list[PartitionVersion]:
    """Every partition that holds rows, in the order of specs and values, from the live files of a snapshot."""
    data: dict[tuple[int, tuple[Any, ...]], list[LiveFile]] = defaultdict(list)
    marks: dict[tuple[int, tuple[Any, ...]], list[str]] = defaultdict(list)
    everywhere: list[str] = []
    for file in files:
        place = file.spec_id, file.partition
        mark = fingerprint("file", file.path, str(file.sequence_number), str(file.rows))
        if file.content is Content.EQUALITY_DELETES and not file.partition:
            everywhere.append(mark)
            continue
        marks[place].append(mark)
        if file.content is Content.DATA:
            data[place].append(file)
    specs = {spec["spec-id"]: _fields(spec, schema) for spec in table.document["partition-specs"]}
    found = [
        PartitionVersion(
            fields=specs[spec_id],
            values=tuple(python_value(field.type, value) for field, value in zip(specs[spec_id], values, strict=True)),
            version=fingerprint("partition", *sorted(marks[spec_id, values]), "everywhere", *sorted(everywhere))[:32],
            files=len(held),
            rows=sum(file.rows for file in held),
            size_bytes=sum(file.size_bytes for file in held),
        )
        for (spec_id, values), held in data.items()
    ]
    return sorted(found, key=lambda one: (repr(one.fields), [(value is not None, str(value)) for value in one.values]))


def _fields(spec: JsonObject, schema: JsonObject) -> tuple[PartField, ...]:
    columns = columns_by_id(schema)
    found = []
    for field in spec["fields"]:
        column, transform = columns.get(field["source-id"]), str(field["transform"])
        made = _MADE.get(transform.partition("[")[0])
        name, kind = (field["name"], "unknown") if column is None else (column.full_name, str(column.type))
        found.append(PartField(name, transform, made or kind))
    return tuple(found)


_MADE = {"bucket": "int", "year": "int", "month": "int", "hour": "int", "day": "date"}
"""The types of what transforms make; the others keep their column's."""

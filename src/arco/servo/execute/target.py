"""Where an output goes: the schema it gets, how its files are laid out, and the directory of this attempt."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Self

from arco.iceberg.metadata import TableMetadata
from arco.iceberg.shape import JsonObject
from arco.iceberg.specs import UNPARTITIONED, UNSORTED
from arco.kernel.ids import MaterializationId

FILE_BYTES_PROPERTY = "write.target-file-size-bytes"
FILE_BYTES_DEFAULT = 512 * 1024 * 1024
DATA_PATH_PROPERTY = "write.data.path"


class Distribution(Enum):
    """How rows find their way to files."""

    AS_IS = "as is"  # no shuffle: each Spark task writes a file for every partition it has rows of
    BY_PARTITION = "by partition"  # one shuffle: the rows of a partition come together in a few files of even size


@dataclass(frozen=True, slots=True)
class Target:
    """What a writer needs to know. Nothing was ever written to `directory` before."""

    schema: JsonObject
    directory: str
    spec: JsonObject = field(default_factory=lambda: UNPARTITIONED)
    order: JsonObject = field(default_factory=lambda: UNSORTED)
    rows_per_file: int | None = None
    distribution: Distribution = Distribution.BY_PARTITION
    properties: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        table: TableMetadata,
        materialization: MaterializationId,
        attempt: int,
        distribution: Distribution = Distribution.BY_PARTITION,
    ) -> Self:
        """The target of one attempt to write to a table, with the table's current schema, spec and order."""
        document = table.document
        return cls(
            schema=table.current_schema,
            directory=directory_of(table.location, table.properties, materialization, attempt),
            spec=next(one for one in document["partition-specs"] if one["spec-id"] == table.default_spec_id),
            order=next(
                (one for one in document["sort-orders"] if one["order-id"] == table.default_sort_order_id), UNSORTED
            ),
            rows_per_file=rows_per_file(table),
            distribution=distribution,
            properties=table.properties,
        )


def directory_of(location: str, properties: Mapping[str, str], materialization: MaterializationId, attempt: int) -> str:
    """The directory of one attempt: no other attempt writes there."""
    folder = properties.get(DATA_PATH_PROPERTY) or f"{location.rstrip('/')}/data"
    return f"{folder.rstrip('/')}/{materialization}/{attempt}"


def kept_beside(directory: str) -> str:
    """Where rows go that stay, of files that an attempt replaces."""
    return f"{directory}-kept"


def rows_per_file(table: TableMetadata) -> int | None:
    """How many rows make a file of the size the table asks for, by the rows it has; None while that is not known."""
    summary = next(
        (one.get("summary") or {} for one in table.snapshots if one["snapshot-id"] == table.current_snapshot_id), {}
    )
    try:
        rows, size = int(summary["total-records"]), int(summary["total-files-size"])
        wanted = int(table.properties.get(FILE_BYTES_PROPERTY, FILE_BYTES_DEFAULT))
    except (KeyError, ValueError):
        return None
    return max(1, wanted * rows // size) if rows > 0 and size > 0 else None

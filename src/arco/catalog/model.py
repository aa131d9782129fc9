"""What tier 1 holds: namespaces, tables and views by name, and what was dropped and can still be restored.

Tier 1 owns identity, existence, format, location and the governance fields. For Iceberg tables the metadata file is the
authority for the schema; nothing here repeats it. Documents are frozen structs that encode to JSON as they are.
"""

from enum import StrEnum

import msgspec

from arco.catalog.transaction_records import Part

Levels = tuple[str, ...]
"""The levels of a namespace, outermost first."""


class Format(StrEnum):
    ICEBERG = "ICEBERG"
    DELTA = "DELTA"
    PARQUET = "PARQUET"
    CSV = "CSV"
    JSON = "JSON"
    ARCO_NATIVE = "ARCO_NATIVE"


class Kind(StrEnum):
    """Tables and views share one space of names."""

    TABLE = "table"
    VIEW = "view"


class Sensitivity(StrEnum):
    PUBLIC = "PUBLIC"
    INTERNAL = "INTERNAL"
    CONFIDENTIAL = "CONFIDENTIAL"
    RESTRICTED = "RESTRICTED"


class Namespace(msgspec.Struct, frozen=True):
    id: str
    levels: Levels
    properties: dict[str, str]
    created_ms: int
    updated_ms: int


class FormerName(msgspec.Struct, frozen=True):
    """A name that something had, until when."""

    namespace: Levels
    name: str
    until_ms: int


class Governance(msgspec.Struct, frozen=True):
    """What people say about a table; no protocol reads it."""

    owner: str | None = None
    description: str | None = None
    tags: tuple[str, ...] = ()
    sensitivity: Sensitivity | None = None
    pii_columns: dict[str, str] = {}
    row_count: int | None = None
    size_bytes: int | None = None
    last_modified_ms: int | None = None
    pii_field_ids: dict[str, int] = {}


class ColumnNote(msgspec.Struct, frozen=True):
    """A column of a table that is not Iceberg's, as whoever registered it said. Iceberg's own are read from its metadata."""

    name: str
    type: str
    nullable: bool = True
    description: str | None = None


class Start(msgspec.Struct, frozen=True):
    """Where the pointer of a registered table has to stand when it first serves this binding."""

    metadata_location: str
    binding: int


class Entry(msgspec.Struct, frozen=True):
    """A table or view under its name. `binding` grows when the name changes hands: rename, undrop, register."""

    uuid: str
    asset_id: str
    kind: Kind
    format: Format
    namespace: Levels
    name: str
    location: str
    binding: int
    created_ms: int
    updated_ms: int
    properties: dict[str, str] = {}
    governance: Governance = Governance()
    former_names: tuple[FormerName, ...] = ()
    start: Start | None = None
    columns: tuple[ColumnNote, ...] = ()

    @property
    def full_name(self) -> str:
        return dotted(self.namespace, self.name)


class Reservation(msgspec.Struct, frozen=True):
    """A name that a transaction takes if it is committed: the entry exists if and only if the record names exactly this part."""

    entry: Entry
    tx_id: str
    attempt: int
    metadata_location: str

    def part(self) -> Part:
        return Part(self.entry.uuid, self.metadata_location, self.attempt)


class Dropped(msgspec.Struct, frozen=True):
    """A dropped entry that can be restored until it is purged.

    One that was unregistered is neither restored nor purged: its files belong to whoever registers them, here or elsewhere.
    """

    entry: Entry
    drop_id: str
    purge: bool
    principal: str
    dropped_ms: int
    unregistered: bool = False


def dotted(levels: Levels, name: str | None = None) -> str:
    """How messages write a name: levels joined by dots, as Iceberg's own do."""
    return ".".join(levels if name is None else (*levels, name))
